//! Reads of one file, or a range of it: each part from any replica that has it intact.

use std::ops::Range;
use std::time::Duration;

use archive_ledger::admin::AdminRow;
use archive_model::{ArchiveError, FileName, Groups, ReplicaId, ReplicaKind};
use archive_rpc::answers::send_within;
use archive_rpc::{CallErrorKind, InvalidMessage};
use archive_stores::assemble::{AssembledPart, Assembly, Donor, Proven, RefusedGroup, WantedFile};
use proto_archive::{convert as fields, wire};
use tonic::Status;

use super::{Answers, Door, send_answer};

/// The time for which a donor waits for a caller that does not read.
const LAG: Duration = Duration::from_secs(1);

/// A read of one file.
pub(super) struct GetJob {
    wanted: WantedFile,
    admission: String,
    asked: Range<u64>,
    donors: Vec<Donor>,
    /// The only replica that is read.
    only: Option<ReplicaId>,
}

impl GetJob {
    /// Checks the request against the file that the archive has.
    pub(super) fn new(row: &AdminRow, request: &wire::GetRequest) -> Result<Self, Status> {
        let absent = || fields::to_status(&ArchiveError::NotFound(row.record.name.to_string()));
        let (Some(content), Some(admission)) = (&row.record.content, &row.admission) else {
            return Err(absent());
        };
        // A reader of a record does not know the length of the file: bytes past its end are left out.
        let end = match request.end {
            0 => content.size,
            end => end.min(content.size),
        };
        if request.start > end {
            let start = request.start;
            let size = content.size;
            let (field, reason) = if start > size {
                let reason =
                    format!("{start} is behind the end of the file, which has {size} bytes");
                ("start", reason)
            } else {
                ("end", format!("{end} is before {start}, where to begin"))
            };
            return Err(InvalidMessage::invalid_field(field, reason).into());
        }
        let wanted = match request.replica.as_str() {
            "" => None,
            id => Some(fields::replica_id(id)?),
        };
        if let Some(id) = &wanted
            && let Some(copy) = row.record.replicas.get(id)
            && copy.kind == ReplicaKind::Checksum
        {
            let reason = format!("{id} keeps checksums only; name another replica");
            return Err(InvalidMessage::invalid_field("replica", reason).into());
        }
        let mut donors = donors(row);
        donors.retain(|donor| {
            wanted
                .as_ref()
                .is_none_or(|wanted| *wanted == donor.replica)
        });
        if donors.is_empty() {
            let nowhere = format!(
                "cannot read {}: it is in no replica that may be read",
                row.record.name
            );
            return Err(fields::to_status(&ArchiveError::Unavailable(nowhere)));
        }
        Ok(Self {
            wanted: WantedFile {
                name: row.record.name.clone(),
                root: content.root,
                size: content.size,
            },
            admission: admission.clone(),
            asked: request.start..end,
            donors,
            only: wanted,
        })
    }

    /// Sends the file, segment by segment. A group that no replica gives ends it with an error.
    pub(super) async fn run_get(
        self,
        door: &Door,
        answers: &Answers<wire::GetResponse>,
    ) -> Result<(), Status> {
        send_answer(
            answers,
            wire::GetResponse {
                step: Some(wire::get_response::Step::Head(self.response_head())),
            },
        )
        .await?;
        let name = self.wanted.name.clone();
        let only = self.only.clone();
        let preserver = door.preserver.clone();
        let mut reading = self.open_assembly(door);
        let mut ended = Ok(());
        while let Some(part) = reading.next().await {
            let sent = match part {
                AssembledPart::Proven(proven) => {
                    let step = Some(wire::get_response::Step::Segment(wire_segment(proven)));
                    give(answers, wire::GetResponse { step }, &mut reading).await
                }
                AssembledPart::Refused(group) => Err(nowhere(&name, only.as_ref(), &group)),
            };
            if sent.is_err() {
                ended = sent;
                break;
            }
        }
        for (replica, node) in reading.damaged_copies() {
            preserver.suspect_copy(&name, &replica, node.as_ref());
        }
        ended
    }

    /// Returns the message before the bytes.
    pub(super) fn response_head(&self) -> wire::get_response::Head {
        wire::get_response::Head {
            admission: self.admission.clone(),
            start: self.asked.start,
            end: self.asked.end,
        }
    }

    /// Returns the name of the file.
    pub(super) const fn name(&self) -> &FileName {
        &self.wanted.name
    }

    /// Begins to read.
    pub(super) fn open_assembly(self, door: &Door) -> Assembly {
        let donors = door.archive.assembler.by_load(self.donors);
        door.archive
            .assembler
            .read_range(self.wanted, donors, [self.asked])
    }
}

/// Sends an answer. The donor is let go while the caller does not receive the answer.
async fn give(
    answers: &Answers<wire::GetResponse>,
    answer: wire::GetResponse,
    reading: &mut Assembly,
) -> Result<(), Status> {
    match send_within(answers, answer, LAG).await? {
        None => Ok(()),
        Some(answer) => {
            reading.pause_reading();
            send_answer(answers, answer).await
        }
    }
}

/// Returns the replicas that have the bytes according to the admin data.
fn donors(row: &AdminRow) -> Vec<Donor> {
    let donor = |id: &archive_model::ReplicaId| Donor {
        replica: id.clone(),
        node: row
            .record
            .replicas
            .get(id)
            .and_then(|copy| copy.node.clone()),
        bad: Groups::none(),
    };
    row.record.donors().map(donor).collect()
}

/// Writes a proven part.
pub(super) fn wire_segment(proven: Proven) -> wire::Segment {
    wire::Segment {
        offset: proven.offset,
        length: proven.length,
        encoded: proven.encoded,
    }
}

/// Returns the error for a group that no replica gives. If one replica was read, it says nothing about the others.
fn nowhere(name: &FileName, only: Option<&ReplicaId>, group: &RefusedGroup) -> Status {
    let Range { start, end } = group.range;
    match only {
        Some(replica) if group.unknown.is_empty() => {
            let last = end.saturating_sub(1);
            return CallErrorKind::Damaged.to_status(format!(
                "cannot read {name}: bytes {start}-{last} are damaged in replica {replica}; without --replica they come from any \
                 other replica that has them"
            ));
        }
        None if group.unknown.is_empty() => {
            let name = name.clone();
            return fields::to_status(&ArchiveError::Damaged { name, start, end });
        }
        _ => {}
    }
    fields::to_status(&ArchiveError::Unavailable(format!(
        "cannot read {name} from byte {start} on: {}",
        group.said
    )))
}

#[cfg(test)]
mod tests {

    use archive_ledger::restore::testing::row;

    use super::*;

    /// Fails if the error of an impossible range lacks the wrong offset, or names a field that the caller did not set.
    #[test]
    fn impossible_range_names_the_wrong_offset() {
        let behind =
            "field `start`: 201 is behind the end of the file, which has 200 bytes".to_owned();
        let before = "field `end`: 5 is before 9, where to begin".to_owned();
        for (start, end, expected) in [
            (201, 0, Err(behind.clone())),
            (201, 300, Err(behind)),
            (9, 5, Err(before)),
            (200, 0, Ok(200..200)),
            (9, 300, Ok(9..200)),
        ] {
            let request = wire::GetRequest {
                name: "a".to_owned(),
                start,
                end,
                ..wire::GetRequest::default()
            };
            let answer = GetJob::new(&row("a", 200), &request);
            let asked = answer.map(|job| job.asked);
            let told = asked.map_err(|status| status.message().to_owned());
            assert_eq!(told, expected, "{start}..{end}");
        }
    }

    /// Fails if damage in the one replica that was read is reported as damage everywhere.
    #[test]
    fn damage_in_one_replica_names_that_replica() {
        let name = FileName::new("a").unwrap();
        let group = RefusedGroup {
            range: 491_520..507_904,
            unknown: Vec::new(),
            is_silence: false,
            said: String::new(),
        };
        let two = ReplicaId::new("two").unwrap();
        let one = nowhere(&name, Some(&two), &group);
        let all = nowhere(&name, None, &group);
        for status in [&one, &all] {
            assert_eq!(CallErrorKind::from_status(status), CallErrorKind::Damaged);
            assert!(status.message().contains("bytes 491520-507903"), "{status}");
        }
        assert!(one.message().contains("damaged in replica two"), "{one}");
        assert!(!one.message().contains("no replica"), "{one}");
        assert!(all.message().contains("intact in no replica"), "{all}");
    }
}
