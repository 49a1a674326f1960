//! One file, or a range of it, out of the archive: from whichever replica has each part intact.

use std::ops::Range;

use archive_model::groups::GROUP_SIZE;
use archive_model::{ArchiveError, NodeId, ReplicaId, ReplicaKind, Root};
use archive_proof::decode;
use archive_rpc::{InvalidMessage, Kind};
use proto_archive::{convert as fields, wire};
use tonic::Status;

use super::{Answers, Door, send};
use crate::admin::AdminRow;
use crate::store::ReplicaRecord;

/// What is to be sent.
pub(super) struct Job {
    row: AdminRow,
    admission: String,
    root: Root,
    size: u64,
    asked: Range<u64>,
    copies: Vec<(ReplicaId, NodeId)>,
}

impl Job {
    /// Holds the request against what the archive has.
    pub(super) fn new(row: AdminRow, request: &wire::GetRequest) -> Result<Self, Status> {
        let absent = || fields::to_status(&ArchiveError::NotFound(row.record.name.to_string()));
        let (Some(content), Some(admission)) = (&row.record.content, &row.admission) else {
            return Err(absent());
        };
        let end = if request.end == 0 {
            content.size
        } else {
            request.end
        };
        if request.start > end || end > content.size {
            let reason = format!("is no range of a file of {} bytes", content.size);
            return Err(InvalidMessage::invalid("end", reason).into());
        }
        let wanted = match request.replica.as_str() {
            "" => None,
            id => Some(fields::replica_id(id)?),
        };
        let keeps_bytes = |copy: &ReplicaRecord| copy.kind == ReplicaKind::Bitarchive;
        if let Some(id) = &wanted
            && let Some(copy) = row.record.replicas.get(id)
            && !keeps_bytes(copy)
        {
            let reason = format!("{id} keeps checksums only; read from another one");
            return Err(InvalidMessage::invalid("replica", reason).into());
        }
        let copies: Vec<_> = row
            .record
            .replicas
            .iter()
            .filter(|(id, copy)| {
                keeps_bytes(copy)
                    && copy.state.is_completed()
                    && wanted.as_ref().is_none_or(|wanted| wanted == *id)
            })
            .filter_map(|(id, copy)| Some((id.clone(), copy.node.clone()?)))
            .collect();
        if copies.is_empty() {
            let nowhere = format!("{} is in no replica that was asked for", row.record.name);
            return Err(fields::to_status(&ArchiveError::Unavailable(nowhere)));
        }
        let (root, size, admission) = (content.root, content.size, admission.clone());
        Ok(Self {
            admission,
            root,
            size,
            asked: request.start..end,
            copies,
            row,
        })
    }

    /// Sends it, segment by segment.
    pub(super) async fn run(
        mut self,
        door: &Door,
        answers: &Answers<wire::GetResponse>,
    ) -> Result<(), Status> {
        let head = wire::get_response::Head {
            admission: self.admission.clone(),
            start: self.asked.start,
            end: self.asked.end,
        };
        send(
            answers,
            wire::GetResponse {
                step: Some(wire::get_response::Step::Head(head)),
            },
        )
        .await?;
        let mut offset = self.asked.start - self.asked.start % GROUP_SIZE;
        let end = self.asked.end.next_multiple_of(GROUP_SIZE).min(self.size);
        while offset < end {
            let before = offset;
            let mut failures = self.pass(door, answers, &mut offset, end).await?;
            if offset == before {
                // Damage in the same segment of every replica may lie in different groups: ask for one group.
                let group = (offset + GROUP_SIZE).min(end);
                failures.extend(self.pass(door, answers, &mut offset, group).await?);
            }
            if offset == before {
                return Err(self.nowhere(offset, &failures));
            }
        }
        Ok(())
    }

    /// Reads from each replica in turn until `end`, or until each has failed once.
    async fn pass(
        &mut self,
        door: &Door,
        answers: &Answers<wire::GetResponse>,
        offset: &mut u64,
        end: u64,
    ) -> Result<Vec<Status>, Status> {
        let mut failures = Vec::new();
        while *offset < end && failures.len() < self.copies.len() {
            let Some((replica, node)) = self.copies.first().cloned() else {
                break;
            };
            match self
                .read(door, &replica, &node, offset..&mut end.clone(), answers)
                .await?
            {
                None => {}
                Some(status) => {
                    let file = &self.row.record.name;
                    tracing::warn!(%file, %replica, %node, offset = *offset, %status, "a read goes on from another replica");
                    failures.push(status);
                    // The one that failed is asked last from now on.
                    self.copies.rotate_left(1);
                }
            }
        }
        Ok(failures)
    }

    /// Forwards what one node sends; `Ok(Some)`: it failed, and `range.start` says how far it came.
    async fn read(
        &self,
        door: &Door,
        replica: &ReplicaId,
        node: &NodeId,
        range: Range<&mut u64>,
        answers: &Answers<wire::GetResponse>,
    ) -> Result<Option<Status>, Status> {
        let (offset, end) = (range.start, *range.end);
        let name = &self.row.record.name;
        let opened = door
            .replicas
            .read(replica, node, name, &self.root, (*offset, end));
        let opened = door
            .clock
            .timeout(door.settings.stall.duration(), opened)
            .await;
        let mut segments = match opened {
            Ok(Ok(segments)) => segments,
            Ok(Err(status)) => return Ok(Some(status)),
            Err(late) => return Ok(Some(Kind::TimedOut.status(late.to_string()))),
        };
        while *offset < end {
            let message = door
                .clock
                .timeout(door.settings.stall.duration(), segments.message())
                .await;
            let segment = match message {
                Ok(Ok(Some(segment))) => segment,
                Ok(Ok(None)) => {
                    return Ok(Some(
                        Kind::Unavailable.status("the node ended before the range did"),
                    ));
                }
                Ok(Err(status)) => return Ok(Some(status)),
                Err(late) => return Ok(Some(Kind::TimedOut.status(late.to_string()))),
            };
            let next = segment.offset.saturating_add(segment.length);
            if segment.offset != *offset || next <= *offset || next > end {
                return Ok(Some(
                    Kind::Damaged.status("the node sent another range than asked for"),
                ));
            }
            let proven = *offset..next;
            let check = decode(
                &segment.encoded[..],
                self.root,
                self.size,
                std::slice::from_ref(&proven),
                |_, _| Ok(()),
            );
            if let Err(error) = check {
                return Ok(Some(
                    Kind::Damaged.status(format!("what the node sent: {error}")),
                ));
            }
            send(
                answers,
                wire::GetResponse {
                    step: Some(wire::get_response::Step::Segment(segment)),
                },
            )
            .await?;
            *offset = next;
        }
        Ok(None)
    }

    fn nowhere(&self, offset: u64, failures: &[Status]) -> Status {
        let is_damage =
            |status: &Status| matches!(Kind::of(status), Kind::Damaged | Kind::NotFound);
        let name = self.row.record.name.clone();
        if failures.iter().all(is_damage) {
            let end = (offset + GROUP_SIZE).min(self.size);
            return fields::to_status(&ArchiveError::Damaged {
                name,
                start: offset,
                end,
            });
        }
        let said = failures
            .iter()
            .map(Status::message)
            .collect::<Vec<_>>()
            .join("; ");
        fields::to_status(&ArchiveError::Unavailable(format!(
            "{name} from byte {offset} on: {said}"
        )))
    }
}
