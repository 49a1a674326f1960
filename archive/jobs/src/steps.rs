//! The long steps of a job: reads files, finds those that nobody has read, makes the result.

use std::collections::BTreeMap;
use std::io::BufReader;
use std::sync::Arc;

use archive_batch::{Stop, StopControl};
use archive_db::DbError;
use archive_decisions::batch::life::{JobEvent, UnreadFiles};
use archive_model::{NodeId, Program};
use proto_archive::batch_run::JobRun;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;

use super::chunks::JobBytes;
use super::folder::JobFile;
use super::keeper::{Keeper, RunEnd, RunPiece};
use super::reduce::ResultFile;
use super::runner::{BatchError, Runner};
use super::table::JobRow;
use super::unread::{CompareError, CompareScope, ComparisonFinding, Lists};
use super::{lines, unread};
use crate::rpc::reduction::{self, ReductionMessage};
use crate::rpc::run::{self, ReplicaRun, RunMessage};

/// The most messages of a run that wait to be written.
const WAITING: usize = 8;

impl Runner {
    fn job_run(&self, row: &JobRow) -> JobRun {
        JobRun {
            id: row.id.clone(),
            spec: row.spec.clone(),
            component_size: row.component_size,
            after: row.checkpoint.after.clone(),
            left: self.time_left(row),
            class: row.class(),
        }
    }

    fn bytes(&self, row: &JobRow, name: JobFile, length: u64) -> JobBytes {
        JobBytes {
            folder: Arc::new(self.job_folder(row)),
            name,
            offset: 0,
            length,
        }
    }

    /// Runs the job over the files after the last finished one, and writes its output.
    pub(super) async fn read_files(
        &self,
        row: &JobRow,
        halt: &CancellationToken,
    ) -> Result<JobEvent, BatchError> {
        let about = match row.spec.selection() {
            Ok(about) => about,
            Err(error) => return Ok(JobEvent::Failed(error.to_string())),
        };
        let jobs = self.jobs.clone();
        let folder = self.job_folder(row);
        let of = row.clone();
        let clock = self.clock.clone();
        let meters = self.meters.clone();
        let space = self.space.clone();
        let opened =
            spawn_blocking(move || Keeper::open(&jobs, &folder, &of, clock, meters, space));
        let keeper = match opened.await? {
            Ok(keeper) => keeper,
            Err(why) => return Ok(JobEvent::Failed(why)),
        };
        let order = run::RunOrder {
            run: self.job_run(row),
            selection: about,
            component: row
                .is_component()
                .then(|| self.bytes(row, JobFile::Component, row.component_size)),
            left_out: row.life.left_out().cloned().collect(),
            present: row.life.present_nodes().cloned().collect(),
        };
        let nodes = tokio::select! {
            () = halt.cancelled() => return Ok(JobEvent::Woke),
            nodes = self.asked_nodes(row) => nodes,
        };
        let begun = nodes
            .and_then(|nodes| ReplicaRun::begin_run(&self.replicas, &order, &nodes, &self.clock));
        let mut run = match begun {
            Ok(run) => run,
            Err(event) => return Ok(event),
        };
        self.live.begin_job(&row.id);
        let (pieces, written) = mpsc::channel(WAITING);
        let runtime = Handle::current();
        let keeping = spawn_blocking(move || keeper.run_keeper(written, &runtime));
        let cut = tokio::select! {
            () = halt.cancelled() => None,
            cut = self.forward(row, &mut run, pieces) => cut,
        };
        // The nodes end the run when its connections are dropped.
        drop(run);
        let kept = keeping.await??;
        Ok(match (kept, cut) {
            (RunEnd::Whole(gaps), None) => JobEvent::Finished(gaps),
            (RunEnd::Wrong(why), _) => JobEvent::Failed(why),
            (RunEnd::Over, _) | (RunEnd::Cut, None) => JobEvent::Woke,
            (RunEnd::Whole(_) | RunEnd::Cut, Some(event)) => event,
        })
    }

    /// Forwards messages until the end, or until the keeper has stopped. Returns the event of a failed run.
    async fn forward(
        &self,
        row: &JobRow,
        run: &mut ReplicaRun,
        pieces: mpsc::Sender<RunPiece>,
    ) -> Option<JobEvent> {
        loop {
            let piece = match run.next().await {
                Err(event) => return Some(event),
                Ok(RunMessage::Progress(progress)) => {
                    self.live.note_progress(&row.id, progress, self.clock.now());
                    continue;
                }
                Ok(RunMessage::Output(bytes)) => RunPiece::Output(bytes),
                Ok(RunMessage::Done(outcome)) => RunPiece::Done(outcome),
                Ok(RunMessage::End(gaps)) => {
                    // If the keeper has stopped, it says why.
                    _ = pieces.send(RunPiece::End(gaps)).await;
                    return None;
                }
            };
            if pieces.send(piece).await.is_err() {
                return None;
            }
        }
    }

    /// Searches for files that nobody has read, or of which other bytes were read, and adds them to the list of errors.
    pub(super) async fn compare_outputs(
        &self,
        row: &JobRow,
        halt: &CancellationToken,
    ) -> Result<JobEvent, BatchError> {
        let own = self.clone();
        let row = row.clone();
        let control = StopControl::default();
        let stop = control.clone();
        let comparing = spawn_blocking(move || own.compare_all(&row, &stop));
        match until(halt, &control, comparing).await?? {
            Ok(event) => Ok(event),
            Err(CompareError::Db(error)) => Err(error.into()),
            Err(CompareError::Stop(_)) => Ok(JobEvent::Woke),
            Err(
                error @ (CompareError::List(..) | CompareError::Line(..) | CompareError::Write(_)),
            ) => Ok(JobEvent::Failed(error.to_string())),
        }
    }

    fn compare_all(
        &self,
        row: &JobRow,
        control: &StopControl,
    ) -> Result<Result<JobEvent, CompareError>, DbError> {
        let failed = |error: &dyn std::fmt::Display| CompareError::Write(error.to_string());
        let compared = (|| {
            let about = CompareScope {
                replica: row.spec.replica.clone(),
                selection: row.spec.selection().map_err(|error| failed(&error))?,
                since: row.started.unwrap_or(row.submitted),
            };
            let folder = self.job_folder(row);
            let mut files = folder
                .open_files(&row.checkpoint)
                .map_err(|error| failed(&error))?;
            let list = |name, length| {
                let read = folder.read_file(name, length);
                read.map(BufReader::new).map_err(|error| failed(&error))
            };
            let lists = Lists {
                manifest: list(JobFile::Manifest, row.checkpoint.manifest)?,
                errors: list(JobFile::Errors, row.checkpoint.errors)?,
            };
            let mut errors = row.checkpoint.errors;
            let replica = &about.replica;
            let mut by_node: BTreeMap<NodeId, u64> = BTreeMap::new();
            let count = unread::find_unread(
                &about,
                &self.standing.current_snapshot(),
                lists,
                about.list_candidates(self.jobs.ledger())?,
                control,
                |finding| {
                    let line = match finding {
                        ComparisonFinding::Unread(file, missed) => {
                            let node = file.node(replica);
                            if let Some(node) = node {
                                let count = by_node.entry(node.clone()).or_default();
                                *count = count.saturating_add(1);
                            }
                            lines::unread_line(&file.name, node, missed)
                        }
                        ComparisonFinding::Other(read, content) => {
                            lines::other_content_line(read, content)
                        }
                    };
                    let line = line.map_err(|error| failed(&error))?;
                    let length = line.len() as u64;
                    self.space
                        .take_bytes(length)
                        .map_err(|error| failed(&error))?;
                    files.errors.append(&line).map_err(|error| failed(&error))?;
                    errors = errors.saturating_add(length);
                    Ok(())
                },
            )?;
            files.sync().map_err(|error| failed(&error))?;
            Ok((count, by_node, errors))
        })();
        let (count, by_node, errors) = match compared {
            Ok(compared) => compared,
            Err(error) => return Ok(Err(error)),
        };
        // Files that a node could not read are counted already.
        let total = row.life.unread.saturating_add(count.unread);
        let unread = UnreadFiles { total, by_node };
        let noted = self
            .jobs
            .apply_event(&row.id, JobEvent::Compared(unread), |row| {
                row.checkpoint.errors = errors;
                row.checkpoint.failed = row.checkpoint.failed.saturating_add(count.failed);
            })?;
        drop(noted);
        Ok(Ok(JobEvent::Woke))
    }

    /// Makes the result.
    pub(super) async fn reduce_outputs(
        &self,
        row: &JobRow,
        halt: &CancellationToken,
    ) -> Result<JobEvent, BatchError> {
        let made = match &row.spec.program {
            Program::BuiltIn(name) => {
                let name = name.clone();
                let arguments = row.spec.arguments.clone();
                let own = self.clone();
                let of = row.clone();
                let control = StopControl::default();
                let stop = control.clone();
                let reducing = spawn_blocking(move || {
                    let plan = archive_batch::plan_job(&name, &arguments);
                    let kind = plan.map_err(|error| error.to_string())?.reduce();
                    let folder = own.job_folder(&of);
                    super::reduce::reduce_result(kind, &of, &folder, &own.space, &stop)
                });
                until(halt, &control, reducing)
                    .await?
                    .map_err(JobEvent::Failed)
            }
            Program::Component(_) => {
                tokio::select! {
                    () = halt.cancelled() => Err(JobEvent::Woke),
                    made = self.reduce_there(row) => made?,
                }
            }
        };
        if halt.is_cancelled() {
            return Ok(JobEvent::Woke);
        }
        let result = match made {
            Ok(result) => result,
            Err(event) => return Ok(event),
        };
        let jobs = self.jobs.clone();
        let id = row.id.clone();
        let noted = spawn_blocking(move || {
            jobs.apply_event(&id, JobEvent::Reduced, |row| row.result = result)
        });
        drop(noted.await??);
        Ok(JobEvent::Woke)
    }

    /// Has a node make the result by the component's own reduce step. Returns `None` as the result if the component has
    /// no reduce step: the output is then the result.
    async fn reduce_there(&self, row: &JobRow) -> Result<ReduceOutcome, BatchError> {
        let nodes = match self.asked_nodes(row).await {
            Ok(nodes) => nodes,
            Err(event) => return Ok(Err(event)),
        };
        let order = reduction::ReductionOrder {
            run: self.job_run(row),
            component: self.bytes(row, JobFile::Component, row.component_size),
            input: self.bytes(row, JobFile::Output, row.checkpoint.output),
        };
        let first = row.life.restarts;
        let begun = reduction::begin_reduction(&self.replicas, &order, &nodes, first, &self.clock);
        let mut reduction = match begun.await {
            Ok(Some(reduction)) => reduction,
            Ok(None) => return Ok(Ok(None)),
            Err(event) => return Ok(Err(event)),
        };
        let of = row.clone();
        let folder = self.job_folder(row);
        let space = self.space.clone();
        let opened = spawn_blocking(move || ResultFile::open(&of, &folder, &space));
        let mut file = match opened.await? {
            Ok(file) => file,
            Err(why) => return Ok(Err(JobEvent::Failed(why))),
        };
        loop {
            let bytes = match reduction.next().await {
                Err(event) => return Ok(Err(event)),
                Ok(ReductionMessage::End(Err(why))) => return Ok(Err(JobEvent::Failed(why))),
                Ok(ReductionMessage::End(Ok(()))) => {
                    let length = spawn_blocking(move || file.finish()).await?;
                    return Ok(length.map(Some).map_err(JobEvent::Failed));
                }
                Ok(ReductionMessage::Data(bytes)) => bytes,
            };
            let appended = spawn_blocking(move || {
                let appended = file.append(&bytes);
                (file, appended)
            });
            let (back, appended) = appended.await?;
            file = back;
            if let Err(why) = appended {
                return Ok(Err(JobEvent::Failed(why)));
            }
        }
    }
}

/// The length of the result, `None` if it is the output itself; or the event if there is no result.
type ReduceOutcome = Result<Option<u64>, JobEvent>;

/// Waits for blocking work; a halt makes it end early.
async fn until<T>(
    halt: &CancellationToken,
    control: &StopControl,
    mut work: tokio::task::JoinHandle<T>,
) -> Result<T, tokio::task::JoinError> {
    tokio::select! {
        () = halt.cancelled() => {
            control.stop(Stop::Cancelled);
            work.await
        }
        done = &mut work => done,
    }
}
