//! The way of one file through a job, on a thread that may block.

use std::sync::OnceLock;

use archive_batch::{File, FileInput, FileResult, Stop, run_file};
use archive_bitarchive::{CatalogEntry, Condition, Layout, NodeError};
use archive_durable::DiskError;
use archive_model::{BatchFileOutcome, FailureKind, FileFailure, FileName, Root};

use crate::context::JobContext;
use crate::early_end::EarlyEnd;
use crate::output::{FileEvent, FileOutput};
use crate::pick::{Pick, PickedCopy, pick_copy};
use crate::source::{CopyProblem, ProvenCopy};

/// Runs the job over one file, and sends its output.
pub(crate) fn compute_file(shared: &JobContext, name: &FileName, mut turn: FileOutput) {
    let last = match pick_copy(&shared.node, name) {
        Err(error) => FileEvent::Failed(EarlyEnd::Node(error)),
        Ok(Pick::Gone) => FileEvent::Gone,
        Ok(Pick::Offline(volumes)) => FileEvent::Offline(volumes),
        Ok(Pick::Missing { entry, root }) => {
            let done = failed(unread("it is known here and missing"));
            FileEvent::Done(Box::new(outcome(shared, &entry, root, done, 0)))
        }
        Ok(Pick::Read(picked)) => match read(shared, &picked, &mut turn) {
            Ok((done, output)) => {
                let done = outcome(shared, &picked.entry, picked.root, done, output);
                FileEvent::Done(Box::new(done))
            }
            Err(ended) => FileEvent::Failed(ended),
        },
    };
    turn.end_file(last);
}

fn read(
    shared: &JobContext,
    picked: &PickedCopy,
    turn: &mut FileOutput,
) -> Result<(FileResult, u64), EarlyEnd> {
    let PickedCopy {
        entry,
        root,
        layout,
    } = picked;
    let file = File {
        name: entry.name.clone(),
        size: entry.row.size,
        root: *root,
        stored: entry.row.stored.to_string(),
    };
    let copy = OnceLock::new();
    let counted = (&shared.bytes, &shared.instruments.bytes);
    let mut source = ProvenCopy::new(picked, &copy, &shared.control, counted);
    // A bug in a job, met by some odd file, must not cost the node that stores the others.
    let done = archive_daemon::catch_panic(|| {
        let input = FileInput {
            file: &file,
            source: &mut source,
        };
        run_file(&*shared.plan, input, turn, &shared.control)
    });
    let trouble = source.into_trouble();
    let done = match done {
        Ok(done) => done.map_err(EarlyEnd::Stopped)?,
        Err(panicked) => {
            tracing::error!(file = %entry.name, job = %shared.id, %panicked, "a batch job");
            failed(FileFailure {
                kind: FailureKind::Job,
                offset: None,
                reason: "the job panicked; that is a bug of it, please report it".to_owned(),
            })
        }
    };
    let done = recheck(shared, entry, layout, done, &trouble)?;
    let output = turn.finish_output().map_err(EarlyEnd::Stopped)?;
    Ok((done, output))
}

/// Looks again at a copy that could not be read: the disk may have gone away; and damage is filed as a verification
/// files it, so that it is repaired.
fn recheck(
    shared: &JobContext,
    entry: &CatalogEntry,
    layout: &Layout,
    done: FileResult,
    trouble: &CopyProblem,
) -> Result<FileResult, EarlyEnd> {
    let reason = match trouble {
        CopyProblem::None => return Ok(done),
        CopyProblem::Closed(error) if error.is_exhausted() => {
            return Err(EarlyEnd::Exhausted(error.to_string()));
        }
        CopyProblem::Closed(error) if error.is_absent() => Some("it is known here and missing"),
        CopyProblem::Damaged | CopyProblem::Closed(_) => None,
    };
    if let Err(gone) = shared.node.disks.confirm_volume(&entry.volume, layout) {
        let reason = format!("its volume went away while it was read: {gone}");
        let records = done.records;
        return Ok(FileResult {
            records,
            ..failed(unread(&reason))
        });
    }
    if !matches!(entry.row.condition, Condition::Damaged { .. }) {
        file_finding(shared, entry)?;
    }
    let closed = |error: &DiskError| FileFailure {
        kind: FailureKind::Damaged,
        offset: None,
        reason: format!("it cannot be opened: {error}"),
    };
    Ok(match (reason, trouble) {
        (Some(reason), _) => failed(unread(reason)),
        (None, CopyProblem::Closed(error)) => failed(closed(error)),
        (None, CopyProblem::None | CopyProblem::Damaged) => done,
    })
}

/// Verifies the whole copy, so that its damage is noted in the catalog.
fn file_finding(shared: &JobContext, entry: &CatalogEntry) -> Result<(), EarlyEnd> {
    let now = shared.clock.now();
    let mut progress = |_| match shared.control.check_stop() {
        Ok(()) => std::ops::ControlFlow::Continue(()),
        Err(_stop) => std::ops::ControlFlow::Break(()),
    };
    let name = &entry.name;
    let volume = &entry.volume;
    let verified = shared
        .node
        .files
        .verify_copy(name, Some(volume), now, &mut progress);
    match verified {
        Ok(_) => Ok(()),
        Err(NodeError::Stopped(_)) => Err(EarlyEnd::Stopped(
            shared.control.stop_reason().unwrap_or(Stop::Cancelled),
        )),
        Err(error) => {
            tracing::warn!(file = %name, %volume, %error, "a batch job met damage, and the file was not verified");
            shared.node.files.suspect_neighbours(entry, now);
            Ok(())
        }
    }
}

fn failed(failure: FileFailure) -> FileResult {
    FileResult {
        failures: vec![failure],
        ..FileResult::default()
    }
}

fn unread(reason: &str) -> FileFailure {
    FileFailure {
        kind: FailureKind::Unread,
        offset: None,
        reason: reason.to_owned(),
    }
}

fn outcome(
    shared: &JobContext,
    entry: &CatalogEntry,
    root: Root,
    done: FileResult,
    output: u64,
) -> BatchFileOutcome {
    BatchFileOutcome {
        name: entry.name.clone(),
        node: shared.node.id.clone(),
        volume: entry.volume.clone(),
        root,
        size: entry.row.size,
        records: done.records,
        output,
        failures: done.failures,
        more_failures: done.more_failures,
    }
}
