//! Doors to a real monitor that break a promise each.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use conformance::contract::replica::{self, Foreman};
use proto_archive::wire::replica_client::ReplicaClient;
use proto_archive::wire::replica_server::{Replica, ReplicaServer};
use proto_archive::wire::{
    FilesRequest, FilesResponse, FindRequest, FindResponse, Gap, HeartbeatRequest,
    HeartbeatResponse, PlaceRequest, PlaceResponse, ReplicaStateRequest, ReplicaStateResponse,
};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::codegen::BoxStream;
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Code, Request, Response, Status};

use super::super::foreman;
use crate::cluster::visits::{name, noise, store};
use crate::cluster::world::{Cluster, MONITORS, on_a_cluster};

/// A seeded bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bug {
    /// No node has disks.
    HidesVolumes,
    /// A node may speak for another one.
    Believes,
    /// A file is placed on a node that does not exist.
    Misplaces,
    /// Each answer names another place.
    Wanders,
    /// Every file is a byte longer.
    Stretches,
    /// Somebody could not be asked where a file is.
    Doubts,
    /// The end counts a file too many.
    Miscounts,
    /// A listing begins at its beginning, whatever it is to go on after.
    BeginsAnew,
    /// All files are findings.
    Accuses,
    /// No refusal names its field.
    Mumbles,
    /// The nodes that the repository knows are not read.
    Forgets,
}

/// The monitor behind the door, as the repository and as a node know it.
#[derive(Clone)]
struct SeededMonitor {
    repository: ReplicaClient<Channel>,
    node: ReplicaClient<Channel>,
    bug: Bug,
    places: Arc<AtomicU32>,
}

impl SeededMonitor {
    /// Opens the door, and returns a client at it. It is open until `tasks` are dropped.
    async fn open(self, tasks: &mut JoinSet<()>) -> ReplicaClient<Channel> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = Server::builder().add_service(ReplicaServer::new(self));
        let connections = TcpListenerStream::new(listener);
        tasks.spawn(async move { server.serve_with_incoming(connections).await.unwrap() });
        let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
        ReplicaClient::new(endpoint.connect_lazy())
    }

    /// Returns an answer, or the refusal without the name of the field.
    fn told<T>(&self, answer: Result<T, Status>) -> Result<T, Status> {
        answer.map_err(|status| {
            if self.bug == Bug::Mumbles && status.code() == Code::InvalidArgument {
                return Status::invalid_argument("something is wrong");
            }
            status
        })
    }
}

#[tonic::async_trait]
impl Replica for SeededMonitor {
    async fn heartbeat(
        &self,
        request: Request<HeartbeatRequest>,
    ) -> Result<Response<HeartbeatResponse>, Status> {
        let answer = self.node.clone().heartbeat(request.into_inner()).await;
        if self.bug == Bug::Believes {
            return Ok(Response::new(HeartbeatResponse::default()));
        }
        answer
    }

    async fn place(
        &self,
        request: Request<PlaceRequest>,
    ) -> Result<Response<PlaceResponse>, Status> {
        let answer = self.repository.clone().place(request.into_inner()).await;
        let mut placed = self.told(answer)?;
        if self.bug == Bug::Misplaces {
            placed.get_mut().node.push_str("-of-nobody");
        }
        if self.bug == Bug::Wanders {
            let number = self.places.fetch_add(1, Ordering::Relaxed);
            placed.get_mut().endpoint = format!("127.0.0.1:{number}");
        }
        Ok(placed)
    }

    async fn locate(
        &self,
        request: Request<FindRequest>,
    ) -> Result<Response<FindResponse>, Status> {
        let answer = self.repository.clone().locate(request.into_inner()).await;
        let mut found = self.told(answer)?;
        if self.bug == Bug::Stretches {
            for entry in &mut found.get_mut().entries {
                entry.size += 1;
            }
        }
        if self.bug == Bug::Doubts {
            found.get_mut().gaps.push(Gap::default());
        }
        Ok(found)
    }

    async fn listing(
        &self,
        request: Request<FilesRequest>,
    ) -> Result<Response<BoxStream<FilesResponse>>, Status> {
        let mut request = request.into_inner();
        if self.bug == Bug::BeginsAnew {
            request.after.clear();
        }
        if self.bug == Bug::Accuses {
            request.only_findings = false;
        }
        let answer = self.repository.clone().listing(request).await;
        let messages = self.told(answer)?.into_inner();
        let own = self.clone();
        let messages = messages.map(move |message| -> Result<FilesResponse, Status> {
            let mut message = own.told(message)?;
            if let Some(end) = &mut message.end
                && own.bug == Bug::Miscounts
            {
                end.count += 1;
            }
            Ok(message)
        });
        Ok(Response::new(Box::pin(messages)))
    }

    async fn replica_state(
        &self,
        request: Request<ReplicaStateRequest>,
    ) -> Result<Response<ReplicaStateResponse>, Status> {
        let mut request = request.into_inner();
        if self.bug == Bug::Forgets {
            request.known.clear();
        }
        let answer = self.repository.clone().replica_state(request).await;
        let mut state = self.told(answer)?;
        if self.bug == Bug::HidesVolumes {
            for node in &mut state.get_mut().nodes {
                node.volumes.clear();
            }
        }
        Ok(state)
    }
}

/// Fails if the suite of a replica passes a part that breaks one of its promises, or does not name that promise.
#[test]
fn broken_promise_of_replica_is_found_and_named() {
    on_a_cluster(async |cluster: &mut Cluster| {
        let mut files = Vec::new();
        for n in 0..3 {
            let stored = store(cluster, &name(&format!("replica-{n}")), &noise(1000, n)).await;
            files.push(stored.unwrap().admission);
        }
        let monitor = foreman(cluster, MONITORS[0], "one", &files);
        let mut doors = JoinSet::new();
        for (bug, expected) in [
            (Bug::HidesVolumes, "the_state_names_its_nodes"),
            (Bug::Believes, "a_node_speaks_for_itself_only"),
            (Bug::Misplaces, "a_file_is_placed_where_it_is"),
            (Bug::Wanders, "upload_continues_on_the_same_node"),
            (Bug::Stretches, "a_file_is_located_where_it_is"),
            (Bug::Doubts, "an_unknown_file_is_nowhere"),
            (Bug::Miscounts, "a_listing_is_sorted_counted_and_ended"),
            (Bug::BeginsAnew, "listing_continues_after_a_name"),
            (Bug::Accuses, "a_healthy_replica_lists_no_findings"),
            (Bug::Mumbles, "a_field_that_cannot_be_is_named"),
            (Bug::Forgets, "a_known_unheard_node_is_silent"),
        ] {
            let seeded = SeededMonitor {
                repository: monitor.repository.clone(),
                node: monitor.node.clone(),
                bug,
                places: Arc::default(),
            };
            let door = seeded.open(&mut doors).await;
            let part = Foreman {
                repository: door.clone(),
                node: door,
                ..monitor.clone()
            };
            let outcome = replica::all(&part).await;
            super::assert_named(&bug, outcome.broken(), expected);
        }
    });
}
