//! The door, the service `Replica`: decodes requests, asks nodes or decides, and encodes answers.

mod convert;
mod listing;
mod nodes_client;

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;

use archive_daemon::Clock;
use archive_model::limits::MOST_LISTINGS;
use archive_model::{FileName, NodeId, VolumeName};
use archive_rpc::{CallErrorKind, Identity, InvalidMessage, Page, Role, Services};
use futures_util::{Stream, stream};
use parking_lot::{Mutex, MutexGuard};
use proto_archive::wire::replica_server::{Replica, ReplicaServer};
use proto_archive::{convert as fields, wire};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;
use tonic::{Request, Response, Status};

use crate::listing::Merge;
use crate::locate::{SurveyAnswer, locate_copies};
use crate::metrics::Instruments;
use crate::nodes::{Address, HeartbeatNews, HeartbeatTime, Nodes};
use crate::placement::{Home, PlacementRequest, Placements};
use crate::settings::MonitorSettings;
use listing::Listing;
pub(crate) use nodes_client::Nodes as NodesClient;

/// The service.
pub(crate) struct Door {
    pub(crate) settings: MonitorSettings,
    pub(crate) clock: Clock,
    pub(crate) stop: CancellationToken,
    pub(crate) nodes: Arc<Mutex<Nodes>>,
    pub(crate) placements: Mutex<Placements>,
    pub(crate) client: Arc<NodesClient>,
    /// Listings at once ([`Door::listing_places`]).
    pub(crate) listings: Arc<Semaphore>,
    pub(crate) instruments: Instruments,
}

/// Returns the services of the monitor's server, and the callers they are offered to.
pub(crate) fn monitor_services(door: Door) -> Services {
    Services {
        routes: Routes::new(ReplicaServer::new(door)),
        rules: proto_archive::rules::archive_rules(),
        descriptors: vec![proto_archive::DESCRIPTORS],
    }
}

impl Door {
    /// Makes the places of the listings at once.
    pub(crate) fn listing_places() -> Arc<Semaphore> {
        Arc::new(Semaphore::new(MOST_LISTINGS))
    }

    /// Accepts a sign of life if the caller has the certificate of its node.
    fn believe(&self, identity: &Identity, request: wire::HeartbeatRequest) -> Result<(), Status> {
        let status = request
            .status
            .ok_or_else(|| InvalidMessage::missing_field("status"))?;
        let node = fields::node_id(&status.node)?;
        if !identity.is_named(Role::Node, node.as_str()) {
            let reason = format!("a heartbeat of node {node} with the certificate of {identity}");
            return Err(CallErrorKind::Refused.to_status(reason));
        }
        let report = convert::read_report(status)?;
        let address = Address {
            node,
            endpoint: report.endpoint.clone(),
        };
        self.client
            .node_channel(&address)
            .map_err(|error| InvalidMessage::invalid_field("endpoint", error.to_string()))?;
        let Address { node, endpoint } = address;
        let now = HeartbeatTime {
            instant: self.clock.instant(),
            time: self.clock.now(),
        };
        let mut nodes = lock(&self.nodes);
        match nodes.note_heartbeat(&node, report, now) {
            HeartbeatNews::Usual => {}
            HeartbeatNews::New => tracing::info!(%node, endpoint, "a node is here"),
            HeartbeatNews::Back { last } => {
                tracing::info!(%node, endpoint, %last, "a node is back");
            }
            HeartbeatNews::Moved { from } => {
                tracing::info!(%node, endpoint, from, "a node has moved");
            }
            HeartbeatNews::Contested { other } => {
                tracing::warn!(%node, endpoint, other, "two processes claim to be one node; stop one of them");
            }
        }
        self.instruments.show_nodes(&nodes.list_nodes(now.instant));
        Ok(())
    }

    async fn find(&self, name: &FileName, on_disk: bool) -> SurveyAnswer<wire::FileEntry> {
        let survey = lock(&self.nodes).survey_nodes(self.clock.instant());
        let ask = async |address: Address| self.client.find_file(&address, name, on_disk).await;
        let found = locate_copies(survey, self.settings.find.duration(), &self.clock, ask).await;
        if found.is_complete() {
            self.instruments.locates_complete.inc();
        } else {
            self.instruments.locates_partial.inc();
        }
        found
    }
}

type Answer<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl Replica for Door {
    async fn heartbeat(
        &self,
        request: Request<wire::HeartbeatRequest>,
    ) -> Answer<wire::HeartbeatResponse> {
        let identity = Identity::from_request(&request)?;
        match self.believe(&identity, request.into_inner()) {
            Ok(()) => self.instruments.heartbeats.inc(),
            Err(status) => {
                self.instruments.heartbeats_refused.inc();
                tracing::info!(caller = %identity, reason = status.message(), "a heartbeat was refused");
                return Err(status);
            }
        };
        let interval = self.settings.heartbeat.duration().as_millis();
        Ok(Response::new(wire::HeartbeatResponse {
            interval_ms: u64::try_from(interval).unwrap_or(u64::MAX),
        }))
    }

    async fn place(&self, request: Request<wire::PlaceRequest>) -> Answer<wire::PlaceResponse> {
        let request = request.into_inner();
        let name = fields::file_name("name", &request.name)?;
        let upload = fields::upload_id(&request.upload)?;
        let mut avoid = convert::node_ids("avoid", &request.avoid)?;
        let found = self.find(&name, false).await;
        let mut homes = homes(&found.entries)?;
        let mut unasked = Vec::new();
        for gap in found.gaps {
            let said = gap.to_string();
            // A disk that bears no id may be any volume of its node.
            match (gap.node, gap.volume.as_ref().and_then(VolumeName::id)) {
                // The node is busy until it can say whether it has the file, and no other node gets a second copy
                // meanwhile.
                (Some(node), None) if gap.is_at_work => {
                    let home = homes.entry(node).or_insert(Home::Receives);
                    *home = Home::Receives.max(*home);
                }
                // A node that cannot say whether it has the file cannot take it either.
                (Some(node), None) => {
                    avoid.insert(node);
                    unasked.push(said);
                }
                (_, Some(_)) | (None, None) => {}
            }
        }
        let wanted = PlacementRequest {
            upload: &upload,
            size: request.size,
            avoid: &avoid,
            homes: &homes,
        };
        let now = self.clock.instant();
        let mut nodes = lock(&self.nodes);
        match lock(&self.placements).place_file(&wanted, &nodes.list_candidates(now), now) {
            Ok(placed) => {
                nodes.promise_bytes(&placed.node, placed.promised);
                self.instruments.placed.inc();
                let node = placed.node.to_string();
                let endpoint = placed.endpoint;
                Ok(Response::new(wire::PlaceResponse { node, endpoint }))
            }
            Err(error) => {
                self.instruments.not_placed.inc();
                Err(convert::no_place(&self.settings.replica, error, &unasked))
            }
        }
    }

    async fn locate(&self, request: Request<wire::FindRequest>) -> Answer<wire::FindResponse> {
        let request = request.into_inner();
        let name = fields::file_name("name", &request.name)?;
        let found = self.find(&name, request.on_disk).await;
        let gaps = convert::wire_gaps(&self.settings.replica, &found.gaps);
        Ok(Response::new(wire::FindResponse {
            entries: found.entries,
            gaps,
            receiving: String::new(),
        }))
    }

    async fn listing(
        &self,
        request: Request<wire::FilesRequest>,
    ) -> Answer<Pin<Box<dyn Stream<Item = Result<wire::FilesResponse, Status>> + Send>>> {
        let request = request.into_inner();
        let after = fields::read_after(&request.after)?;
        let permit = Arc::clone(&self.listings)
            .try_acquire_owned()
            .map_err(|_none_left| {
                CallErrorKind::Busy.to_status(format!(
                    "{MOST_LISTINGS} listings are under way; ask again when one has ended"
                ))
            })?;
        let survey = lock(&self.nodes).survey_nodes(self.clock.instant());
        let nodes = survey.ask.iter().map(|address| address.node.clone());
        let mut merge = Merge::new(nodes, after.clone(), survey.gaps);
        let mut sources = Vec::new();
        for (index, address) in survey.ask.into_iter().enumerate() {
            let idle = self.settings.idle.duration();
            let messages = self.client.list_files(&address, request.clone(), idle);
            if let Err(error) = &messages {
                merge.fail_node(index, error);
            }
            sources.push((address, messages.ok()));
        }
        let listing = Listing {
            replica: self.settings.replica.clone(),
            merge,
            instruments: self.instruments.clone(),
            stop: self.stop.clone(),
            page: Page::new(),
            looked: vec![0; sources.len()],
            sources,
            _permit: permit,
        };
        let messages = stream::unfold(Some(listing), async |listing| Some(listing?.next().await));
        Ok(Response::new(Box::pin(messages)))
    }

    async fn replica_state(
        &self,
        request: Request<wire::ReplicaStateRequest>,
    ) -> Answer<wire::ReplicaStateResponse> {
        let request = request.into_inner();
        let known = convert::node_ids("known", &request.known)?;
        let retired = convert::node_ids("retired", &request.retired)?;
        let volumes = convert::known_volumes(&request.volumes)?;
        let now = self.clock.instant();
        let mut nodes = lock(&self.nodes);
        nodes.expect_nodes(known);
        nodes.expect_volumes(volumes);
        nodes.retire_nodes(retired);
        let all = nodes.list_nodes(now);
        self.instruments.show_nodes(&all);
        Ok(Response::new(wire::ReplicaStateResponse {
            replica: self.settings.replica.to_string(),
            nodes: all.iter().map(convert::node_status).collect(),
        }))
    }
}

/// Returns the nodes that know a file, each with what it knows: a volume that has the file outweighs one that misses
/// it.
fn homes(entries: &[wire::FileEntry]) -> Result<BTreeMap<NodeId, Home>, InvalidMessage> {
    let mut homes = BTreeMap::new();
    for entry in entries {
        let misses = entry.condition == i32::from(wire::CopyCondition::Missing);
        let known = if misses { Home::Misses } else { Home::Has };
        let home = homes.entry(fields::node_id(&entry.node)?).or_insert(known);
        *home = known.max(*home);
    }
    Ok(homes)
}

/// Locks the mutex. No holder panics, so that the content is whole even if the lock is poisoned.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}
