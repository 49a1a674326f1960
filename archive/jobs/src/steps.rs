//! The long steps of a job: to read files, to find what nobody has read, to make the result.

use std::collections::BTreeMap;
use std::io::BufReader;
use std::sync::Arc;
use std::time::Duration;

use archive_batch::{Control, Stop};
use archive_db::DbError;
use archive_model::{NodeId, Program};
use archive_rpc::Kind;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;
use tonic::Status;

use super::chunks::JobBytes;
use super::folder::Name;
use super::keeper::{Keeper, Kept, Piece};
use super::life::{Event, UnreadFiles};
use super::reduce::ResultFile;
use super::runner::{Runner, Stuck, broke, silent};
use super::table::Row;
use super::unread::{About, Finding, Lists, Unsaid};
use super::{lines, unread};
use crate::replicas::{BatchOrder, BatchRun, Brought, Reduced, reduce_batch, run_batch};

/// How many messages of a run wait to be written, at most.
const WAITING: usize = 8;

/// How long a monitor may say nothing, not even how far its nodes are.
const SILENCE: Duration = Duration::from_mins(5);

/// How long a monitor may take to begin.
const BEGIN: Duration = Duration::from_mins(1);

impl Runner {
    fn order(&self, row: &Row) -> BatchOrder {
        let after = row.mark.after.as_ref();
        BatchOrder {
            id: row.id.to_string(),
            spec: row.spec.clone(),
            component_size: row.component_size,
            after: after.map(ToString::to_string).unwrap_or_default(),
            left: self.left(row),
            without: row.life.left_out().cloned().collect(),
            present: row.life.present().cloned().collect(),
            lane: row.lane(),
        }
    }

    fn bytes(&self, row: &Row, name: Name, length: u64) -> JobBytes {
        JobBytes {
            folder: Arc::new(self.folder(row)),
            name,
            offset: 0,
            length,
        }
    }

    /// Runs the job after its last file, and writes what comes.
    pub(super) async fn read(&self, row: &Row, halt: &CancellationToken) -> Result<Event, Stuck> {
        let selection = match row.spec.selection() {
            Ok(selection) => selection,
            Err(error) => return Ok(Event::Failed(error.to_string())),
        };
        let instruments = (self.clock.clone(), self.meters.clone(), self.space.clone());
        let (jobs, folder, of) = (self.jobs.clone(), self.folder(row), row.clone());
        let opened =
            spawn_blocking(move || Keeper::open(&jobs, &folder, &of, selection, instruments));
        let keeper = match opened.await? {
            Ok(keeper) => keeper,
            Err(why) => return Ok(Event::Failed(why)),
        };
        let component = row
            .is_component()
            .then(|| self.bytes(row, Name::Component, row.component_size));
        let begun = self.clock.timeout(
            BEGIN,
            run_batch(&self.replicas, &self.order(row), component),
        );
        let begun = tokio::select! {
            () = halt.cancelled() => return Ok(Event::Woke),
            begun = begun => begun,
        };
        let mut run = match begun {
            Err(late) => return Ok(Event::Broke(silent(row, &late.to_string()))),
            Ok(Err(status)) => return Ok(broke(row, &status)),
            Ok(Ok(run)) => run,
        };
        self.live.begin(&row.id);
        let (pieces, written) = mpsc::channel(WAITING);
        let runtime = Handle::current();
        let keeping = spawn_blocking(move || keeper.run(written, &runtime));
        let cut = tokio::select! {
            () = halt.cancelled() => None,
            cut = self.forward(row, &mut run, pieces) => cut,
        };
        // The monitor ends the run when nobody listens.
        drop(run);
        let kept = keeping.await??;
        Ok(match (kept, cut) {
            (Kept::Whole(gaps), None) => Event::Finished(gaps),
            (Kept::Wrong(why), _) => Event::Failed(why),
            (Kept::Over, _) | (Kept::Cut, None) => Event::Woke,
            (Kept::Whole(_) | Kept::Cut, Some(status)) => broke(row, &status),
        })
    }

    /// Hands on what comes until the end, or until nobody takes it any more; or says how it broke.
    async fn forward(
        &self,
        row: &Row,
        run: &mut BatchRun,
        pieces: mpsc::Sender<Piece>,
    ) -> Option<Status> {
        let mut is_whole = false;
        loop {
            let next = match self.clock.timeout(SILENCE, run.next()).await {
                Ok(next) => next,
                Err(late) => Err(Kind::TimedOut.status(late.to_string())),
            };
            let piece = match next {
                Err(status) => return Some(status),
                Ok(None) if is_whole => return None,
                Ok(None) => {
                    let said = "the run ended before its end";
                    return Some(Kind::Unavailable.status(said));
                }
                Ok(Some(Brought::Progress(progress))) => {
                    self.live.progress(&row.id, progress, self.clock.now());
                    continue;
                }
                Ok(Some(Brought::Output(bytes))) => Piece::Output(bytes),
                Ok(Some(Brought::Done(outcome))) => Piece::Done(outcome),
                Ok(Some(Brought::End { files, gaps })) => {
                    is_whole = true;
                    Piece::End(files, gaps)
                }
            };
            if pieces.send(piece).await.is_err() {
                // The keeper says why.
                return None;
            }
        }
    }

    /// Looks for files that nobody has read, or of which other bytes were read, and names them among the errors.
    pub(super) async fn compare(
        &self,
        row: &Row,
        halt: &CancellationToken,
    ) -> Result<Event, Stuck> {
        let (own, row, control) = (self.clone(), row.clone(), Control::default());
        let stop = control.clone();
        let comparing = spawn_blocking(move || own.compare_all(&row, &stop));
        match until(halt, &control, comparing).await?? {
            Ok(event) => Ok(event),
            Err(Unsaid::Db(error)) => Err(error.into()),
            Err(Unsaid::Stop(_)) => Ok(Event::Woke),
            Err(error @ (Unsaid::List(..) | Unsaid::Line(..) | Unsaid::Write(_))) => {
                Ok(Event::Failed(error.to_string()))
            }
        }
    }

    fn compare_all(&self, row: &Row, control: &Control) -> Result<Result<Event, Unsaid>, DbError> {
        let failed = |error: &dyn std::fmt::Display| Unsaid::Write(error.to_string());
        let compared = (|| {
            let about = About {
                replica: row.spec.replica.clone(),
                selection: row.spec.selection().map_err(|error| failed(&error))?,
                since: row.started.unwrap_or(row.submitted),
            };
            let folder = self.folder(row);
            let mut files = folder.open(&row.mark).map_err(|error| failed(&error))?;
            let list = |name, length| {
                let read = folder.read(name, length);
                read.map(BufReader::new).map_err(|error| failed(&error))
            };
            let lists = Lists {
                manifest: list(Name::Manifest, row.mark.manifest)?,
                errors: list(Name::Errors, row.mark.errors)?,
            };
            let mut errors = row.mark.errors;
            let replica = &about.replica;
            let mut by_node: BTreeMap<NodeId, u64> = BTreeMap::new();
            let count = unread::unread(
                &about,
                &self.standing.now(),
                lists,
                about.candidates(&self.admin)?,
                control,
                |finding| {
                    let line = match finding {
                        Finding::Unread(file, missed) => {
                            let node = file.node(replica);
                            if let Some(node) = node {
                                let count = by_node.entry(node.clone()).or_default();
                                *count = count.saturating_add(1);
                            }
                            lines::unread(&file.name, node, missed)
                        }
                        Finding::Other(read, content) => lines::other(read, content),
                    };
                    let line = line.map_err(|error| failed(&error))?;
                    let length = u64::try_from(line.len()).unwrap_or(u64::MAX);
                    self.space.take(length).map_err(|error| failed(&error))?;
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
        // Those that a node could not read are counted already.
        let total = row.life.unread.saturating_add(count.unread);
        let unread = UnreadFiles { total, by_node };
        let noted = self.jobs.happen(&row.id, Event::Compared(unread), |row| {
            row.mark.errors = errors;
            row.mark.failed = row.mark.failed.saturating_add(count.failed);
        })?;
        drop(noted);
        Ok(Ok(Event::Woke))
    }

    /// Makes the result.
    pub(super) async fn reduce(&self, row: &Row, halt: &CancellationToken) -> Result<Event, Stuck> {
        let made = match &row.spec.program {
            Program::BuiltIn(name) => {
                let (name, arguments) = (name.clone(), row.spec.arguments.clone());
                let (own, of, control) = (self.clone(), row.clone(), Control::default());
                let stop = control.clone();
                let reducing = spawn_blocking(move || {
                    let plan = archive_batch::plan(&name, &arguments);
                    let kind = plan.map_err(|error| error.to_string())?.reduce();
                    let folder = own.folder(&of);
                    super::reduce::reduce(kind, &of, &folder, &own.space, &stop)
                });
                until(halt, &control, reducing)
                    .await?
                    .map_err(Event::Failed)
            }
            Program::Component(_) => {
                tokio::select! {
                    () = halt.cancelled() => Err(Event::Woke),
                    made = self.reduce_there(row) => made?,
                }
            }
        };
        if halt.is_cancelled() {
            return Ok(Event::Woke);
        }
        let result = match made {
            Ok(result) => result,
            Err(event) => return Ok(event),
        };
        let (jobs, id) = (self.jobs.clone(), row.id.clone());
        let noted =
            spawn_blocking(move || jobs.happen(&id, Event::Reduced, |row| row.result = result));
        drop(noted.await??);
        Ok(Event::Woke)
    }

    /// Has the component's own reduce step make it, at the monitor.
    async fn reduce_there(&self, row: &Row) -> Result<Made, Stuck> {
        let looked = self.look(row).await;
        if !matches!(looked, Event::Looked { .. }) {
            return Ok(Err(looked));
        }
        // Most often it is not there. Where it is, nobody asks for it.
        if let Some(made) = self.reduce_once(row, false).await? {
            return Ok(made);
        }
        let again = self.reduce_once(row, true).await?;
        let said = "its monitor asked for the component, and then not again";
        Ok(again.unwrap_or_else(|| Err(Event::Broke(said.to_owned()))))
    }

    /// The same, with or without the component. None: it is the other that is wanted.
    async fn reduce_once(&self, row: &Row, is_sent: bool) -> Result<Option<Made>, Stuck> {
        let component = self.bytes(row, Name::Component, row.component_size);
        let component = is_sent.then_some(component);
        let input = self.bytes(row, Name::Output, row.mark.output);
        let order = self.order(row);
        let began = reduce_batch(&self.replicas, &order, component, input);
        let mut reduction = match self.clock.timeout(BEGIN, began).await {
            Err(late) => return Ok(Some(Err(Event::Broke(silent(row, &late.to_string()))))),
            Ok(Err(status)) => return Ok(Some(reduce_broke(row, &status))),
            Ok(Ok(reduction)) => reduction,
        };
        let (of, folder, space) = (row.clone(), self.folder(row), self.space.clone());
        let opened = spawn_blocking(move || ResultFile::open(&of, &folder, &space));
        let mut file = match opened.await? {
            Ok(file) => file,
            Err(why) => return Ok(Some(Err(Event::Failed(why)))),
        };
        let mut waits = is_sent;
        loop {
            let next = if waits {
                match self.clock.timeout(BEGIN, reduction.next()).await {
                    Ok(next) => next,
                    Err(_late) => return Ok(None),
                }
            } else {
                reduction.next().await
            };
            let bytes = match next {
                Err(status) => return Ok(Some(reduce_broke(row, &status))),
                Ok(None) => {
                    let said = "the result ended before its end".to_owned();
                    return Ok(Some(Err(Event::Broke(said))));
                }
                Ok(Some(Reduced::Want)) if waits => {
                    waits = false;
                    continue;
                }
                Ok(Some(Reduced::Want)) => return Ok(None),
                Ok(Some(Reduced::End(Err(why)))) => return Ok(Some(Err(Event::Failed(why)))),
                Ok(Some(Reduced::End(Ok(())))) => {
                    let length = spawn_blocking(move || file.finish()).await?;
                    return Ok(Some(length.map(Some).map_err(Event::Failed)));
                }
                Ok(Some(Reduced::Data(bytes))) => bytes,
            };
            let appended = spawn_blocking(move || {
                let appended = file.append(&bytes);
                (file, appended)
            });
            let (back, appended) = appended.await?;
            file = back;
            if let Err(why) = appended {
                return Ok(Some(Err(Event::Failed(why))));
            }
        }
    }
}

/// The length of the result, where it is not the output itself; or why there is none.
type Made = Result<Option<u64>, Event>;

/// What follows from an error of the reduce step. A component without one leaves the output as it is.
fn reduce_broke(row: &Row, status: &Status) -> Made {
    match Kind::of(status) {
        Kind::NotFound => Ok(None),
        Kind::Unavailable
        | Kind::Invalid
        | Kind::Exists
        | Kind::Busy
        | Kind::Mismatch
        | Kind::NotEnoughReplicas
        | Kind::Damaged
        | Kind::Refused
        | Kind::NoSpace
        | Kind::TimedOut
        | Kind::Storage
        | Kind::Internal => Err(broke(row, status)),
    }
}

/// Waits for blocking work; a halt makes it end soon.
async fn until<T>(
    halt: &CancellationToken,
    control: &Control,
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
