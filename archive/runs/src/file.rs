//! One file through the job, on a thread that may block.

use std::sync::OnceLock;

use archive_batch::{File, FileResult, Stop, run_file};
use archive_bitarchive::{Condition, Entry, Layout, NodeError};
use archive_durable::DiskError;
use archive_model::{FailureKind, FileFailure, FileName, FileOutcome, Root};

use crate::ended::Ended;
use crate::pick::{Pick, pick};
use crate::shared::Shared;
use crate::source::{Proven, Trouble};
use crate::turn::{Piece, Turn};

/// Computes one file and hands on what comes of it.
pub(crate) fn compute(shared: &Shared, name: &FileName, mut turn: Turn) {
    let last = match pick(&shared.node, name) {
        Err(error) => Piece::Failed(Ended::Node(error)),
        Ok(Pick::Gone) => Piece::Gone,
        Ok(Pick::Offline(volumes)) => Piece::Offline(volumes),
        Ok(Pick::Missing { entry, root }) => {
            let done = failed(unread("it is known here and missing"));
            Piece::Done(Box::new(outcome(shared, &entry, root, done, 0)))
        }
        Ok(Pick::Read {
            entry,
            root,
            layout,
        }) => match read(shared, (&entry, root, &layout), &mut turn) {
            Ok((done, output)) => {
                Piece::Done(Box::new(outcome(shared, &entry, root, done, output)))
            }
            Err(ended) => Piece::Failed(ended),
        },
    };
    turn.end(last);
}

fn read(
    shared: &Shared,
    (entry, root, layout): (&Entry, Root, &Layout),
    turn: &mut Turn,
) -> Result<(FileResult, u64), Ended> {
    let file = File {
        name: entry.name.clone(),
        size: entry.row.size,
        root,
        stored: entry.row.stored.to_string(),
    };
    let copy = OnceLock::new();
    let counted = (&shared.bytes, &shared.instruments.bytes);
    let mut source = Proven::new((entry, root, layout), &copy, &shared.control, counted);
    // A bug in a job, met by some odd file, must not cost the node that stores the others.
    let done = archive_daemon::spare(|| {
        run_file(&*shared.plan, &file, &mut source, turn, &shared.control)
    });
    let trouble = source.into_trouble();
    let done = match done {
        Ok(done) => done.map_err(Ended::Stopped)?,
        Err(panicked) => {
            tracing::error!(file = %entry.name, job = %shared.id, %panicked, "a batch job");
            failed(FileFailure {
                kind: FailureKind::Job,
                offset: None,
                reason: "the job panicked; that is a bug of it, please report it".to_owned(),
            })
        }
    };
    let done = settle(shared, entry, layout, done, &trouble)?;
    let output = turn.finish().map_err(Ended::Stopped)?;
    Ok((done, output))
}

/// Looks again at a copy that made trouble: it may be the disk that went away; and damage is filed as a verification
/// files it, so that it is repaired.
fn settle(
    shared: &Shared,
    entry: &Entry,
    layout: &Layout,
    done: FileResult,
    trouble: &Trouble,
) -> Result<FileResult, Ended> {
    let reason = match trouble {
        Trouble::None => return Ok(done),
        Trouble::Closed(error) if error.is_exhausted() => {
            return Err(Ended::Exhausted(error.to_string()));
        }
        Trouble::Closed(error) if error.is_absent() => Some("it is known here and missing"),
        Trouble::Damaged | Trouble::Closed(_) => None,
    };
    if let Err(gone) = shared.node.still_there(&entry.volume, layout) {
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
        (None, Trouble::Closed(error)) => failed(closed(error)),
        (None, Trouble::None | Trouble::Damaged) => done,
    })
}

/// Verifies the whole copy, which notes in the catalog what is wrong with it.
fn file_finding(shared: &Shared, entry: &Entry) -> Result<(), Ended> {
    let now = shared.clock.now();
    let mut progress = |_| match shared.control.check() {
        Ok(()) => std::ops::ControlFlow::Continue(()),
        Err(_stop) => std::ops::ControlFlow::Break(()),
    };
    let (name, volume) = (&entry.name, &entry.volume);
    let verified = shared.node.verify(name, Some(volume), now, &mut progress);
    match verified {
        Ok(_) => Ok(()),
        Err(NodeError::Stopped(_)) => Err(Ended::Stopped(
            shared.control.why().unwrap_or(Stop::Cancelled),
        )),
        Err(error) => {
            tracing::warn!(file = %name, %volume, %error, "a batch job met damage, and the file was not verified");
            shared.node.suspect(entry, now);
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
    shared: &Shared,
    entry: &Entry,
    root: Root,
    done: FileResult,
    output: u64,
) -> FileOutcome {
    FileOutcome {
        name: entry.name.clone(),
        node: shared.node.id().clone(),
        volume: entry.volume.clone(),
        root,
        size: entry.row.size,
        records: done.records,
        output,
        failures: done.failures,
        more_failures: done.more_failures,
    }
}
