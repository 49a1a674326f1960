//! The door `Preservation`: checks, anomalies, repairs, and the verbs of people. Decodes, asks, and encodes.

mod anomalies;
mod check;
mod repair;
mod scrubs;

use std::sync::Arc;

use archive_rpc::{Identity, Role};
use proto_archive::wire;
use proto_archive::wire::preservation_server::Preservation;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

use super::{AnswerStream, Answers, Door};

#[tonic::async_trait]
impl Preservation for Door {
    async fn check(
        &self,
        request: Request<wire::CheckRequest>,
    ) -> Result<Response<AnswerStream<wire::CheckResponse>>, Status> {
        let who = acting(&request, Role::Officer)?;
        let order = check::order(&request.into_inner(), who)?;
        let door = self.clone();
        Ok(self.answer("check", |answers| async move {
            check::run(&door, &order, &answers).await
        }))
    }

    async fn anomalies(
        &self,
        request: Request<wire::AnomaliesRequest>,
    ) -> Result<Response<AnswerStream<wire::AnomaliesResponse>>, Status> {
        let wanted = anomalies::Wanted::new(&request.into_inner())?;
        let door = self.clone();
        Ok(self.answer("anomalies", |answers| async move {
            wanted.run(&door, &answers).await
        }))
    }

    async fn repair(
        &self,
        request: Request<wire::RepairRequest>,
    ) -> Result<Response<AnswerStream<wire::RepairResponse>>, Status> {
        let who = acting(&request, Role::Officer)?;
        let job = repair::Job::new(&request.into_inner(), who)?;
        job.allow(self).await?;
        let door = self.clone();
        Ok(self.answer(
            "repair",
            |answers| async move { job.run(&door, &answers).await },
        ))
    }

    async fn scrubs(
        &self,
        request: Request<wire::ScrubsRequest>,
    ) -> Result<Response<wire::ScrubsResponse>, Status> {
        scrubs::run(self, request.into_inner())
            .await
            .map(Response::new)
    }
}

impl Door {
    /// Does work in a task of its own; what it sends is the answer, and so is the error it ends with.
    fn answer<T: Send + 'static, F>(
        &self,
        name: &str,
        work: impl FnOnce(Answers<T>) -> F,
    ) -> Response<AnswerStream<T>>
    where
        F: Future<Output = Result<(), Status>> + Send + 'static,
    {
        let (answers, stream) = mpsc::channel(4);
        let work = Box::pin(work(answers.clone()));
        let stop = self.tasks.stop();
        self.tasks.spawn_once(name, async move {
            let done = tokio::select! {
                () = stop.cancelled() => Err(archive_rpc::Kind::Unavailable.status("the repository is stopping; ask again when it is back")),
                done = work => done,
            };
            if let Err(status) = done {
                // A caller that is gone needs no answer.
                drop(answers.send(Err(status)).await);
            }
            Ok::<(), std::convert::Infallible>(())
        });
        Response::new(Box::pin(ReceiverStream::new(stream)))
    }
}

/// In whose name the caller acts: as `role/name`.
fn acting<T>(request: &Request<T>, role: Role) -> Result<Arc<str>, Status> {
    let identity = Identity::of(request)?;
    let grants = identity.grants();
    let exact = grants.iter().find(|grant| grant.role() == role);
    let grant = exact.or_else(|| grants.iter().find(|grant| grant.role().includes(role)));
    Ok(grant
        .map_or_else(|| identity.to_string(), ToString::to_string)
        .into())
}
