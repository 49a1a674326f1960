//! Salvage of a file: every byte that some replica has intact, and a map of the rest.

use std::ops::Range;

use archive_stores::assemble::AssembledPart;
use proto_archive::wire;
use proto_archive::wire::salvage_response::{Hole, Step};
use tonic::Status;

use super::get::{self, wire_segment};
use super::{Answers, Door, send_answer};

/// Sends the file. Adjacent holes of the same sort are merged.
pub(super) async fn run_salvage(
    job: get::GetJob,
    door: &Door,
    answers: &Answers<wire::SalvageResponse>,
) -> Result<(), Status> {
    step(answers, Step::Head(job.response_head())).await?;
    let name = job.name().clone();
    let mut reading = job.open_assembly(door);
    let mut hole: Option<(Range<u64>, bool)> = None;
    while let Some(part) = reading.next().await {
        match part {
            AssembledPart::Refused(next) => {
                let is_unknown = !next.unknown.is_empty();
                match &mut hole {
                    Some((range, was)) if *was == is_unknown && range.end == next.range.start => {
                        range.end = next.range.end;
                    }
                    _ => {
                        flush(answers, hole.take()).await?;
                        hole = Some((next.range, is_unknown));
                    }
                }
            }
            AssembledPart::Proven(proven) => {
                flush(answers, hole.take()).await?;
                step(answers, Step::Segment(wire_segment(proven))).await?;
            }
        }
    }
    flush(answers, hole).await?;
    for (replica, node) in reading.damaged_copies() {
        door.preserver.suspect_copy(&name, &replica, node.as_ref());
    }
    Ok(())
}

async fn flush(
    answers: &Answers<wire::SalvageResponse>,
    hole: Option<(Range<u64>, bool)>,
) -> Result<(), Status> {
    let Some((range, unknown)) = hole else {
        return Ok(());
    };
    let hole = Hole {
        start: range.start,
        end: range.end,
        unknown,
    };
    step(answers, Step::Hole(hole)).await
}

async fn step(answers: &Answers<wire::SalvageResponse>, step: Step) -> Result<(), Status> {
    send_answer(answers, wire::SalvageResponse { step: Some(step) }).await
}
