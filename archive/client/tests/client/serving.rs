//! The answers of an honest archive to a reader.

use std::collections::BTreeMap;
use std::ops::Range;

use archive_model::GROUP_SIZE;
use archive_proof::testing::admission;
use archive_proof::{CopyBytes, TreeBuilder, encode_ranges};
use archive_rpc::CallErrorKind;
use proto_archive::wire::get_response::{Head, Step as Get};
use proto_archive::wire::salvage_response::{Hole, Step as Salvage};
use proto_archive::wire::{GetRequest, GetResponse, SalvageResponse, Segment};
use tonic::Status;

use crate::world::key;

/// The honest answer to a request, three groups in a segment.
pub fn honest(name: &str, bytes: &[u8], asked: Range<u64>) -> Vec<GetResponse> {
    let size = bytes.len() as u64;
    let mut builder = TreeBuilder::new(Vec::new());
    builder.update(bytes).expect("in memory");
    let tree = builder.finish().expect("in memory");
    let signed = admission(name, bytes).sign(&key(1)).expect("sign");
    let head = Head {
        admission: signed.as_str().to_owned(),
        start: asked.start,
        end: asked.end,
    };
    let mut messages = vec![GetResponse {
        step: Some(Get::Head(head)),
    }];
    let end = asked.end.next_multiple_of(GROUP_SIZE).min(size);
    let mut start = asked.start / GROUP_SIZE * GROUP_SIZE;
    while start < end {
        let next = (start + 3 * GROUP_SIZE).min(end);
        let mut encoded = Vec::new();
        let range = start..next;
        let copy = CopyBytes {
            data: &bytes,
            outboard: Some(&tree.sink),
        };
        encode_ranges(copy, tree.content(), &[range], &mut encoded).expect("encode");
        let segment = Segment {
            offset: start,
            length: next - start,
            encoded: encoded.into(),
        };
        messages.push(GetResponse {
            step: Some(Get::Segment(segment)),
        });
        start = next;
    }
    messages
}

/// The same with `holes`, which are of whole groups.
///
/// # Errors
///
/// Fails as the archive would answer.
pub fn salvaged(
    files: &BTreeMap<String, Vec<u8>>,
    holes: &[Hole],
    asked: &GetRequest,
) -> Result<Vec<Result<SalvageResponse, Status>>, Status> {
    let bytes = files
        .get(&asked.name)
        .ok_or_else(|| CallErrorKind::NotFound.to_status(&asked.name))?;
    let size = bytes.len() as u64;
    let end = if asked.end == 0 {
        size
    } else {
        asked.end.min(size)
    };
    let mut steps = Vec::new();
    let mut at = asked.start / GROUP_SIZE * GROUP_SIZE;
    let last = end.next_multiple_of(GROUP_SIZE).min(size);
    for hole in holes {
        let from = hole.start.clamp(at, last);
        steps.extend(good(&asked.name, bytes, at..from));
        at = hole.end.clamp(at, last);
        if from < at {
            steps.push(Salvage::Hole(Hole {
                start: from,
                end: at,
                unknown: hole.unknown,
            }));
        }
    }
    steps.extend(good(&asked.name, bytes, at..last));
    let mut head = honest(&asked.name, bytes, asked.start..end);
    if let Some(Get::Head(head)) = head.swap_remove(0).step {
        steps.insert(0, Salvage::Head(head));
    }
    Ok(steps
        .into_iter()
        .map(|step| Ok(SalvageResponse { step: Some(step) }))
        .collect())
}

/// Ends an honest answer before its first hole, and adds `holes` as they are.
pub fn claim_holes(parts: &mut Vec<Result<SalvageResponse, Status>>, holes: &[Hole]) {
    let is_hole = |part: &Result<SalvageResponse, Status>| {
        matches!(
            part,
            Ok(SalvageResponse {
                step: Some(Salvage::Hole(_))
            })
        )
    };
    let first = parts.iter().position(is_hole);
    parts.truncate(first.unwrap_or(parts.len()));
    parts.extend(holes.iter().map(|hole| {
        Ok(SalvageResponse {
            step: Some(Salvage::Hole(*hole)),
        })
    }));
}

fn good(name: &str, bytes: &[u8], range: Range<u64>) -> Vec<Salvage> {
    if range.is_empty() {
        return Vec::new();
    }
    honest(name, bytes, range)
        .into_iter()
        .filter_map(|message| match message.step {
            Some(Get::Segment(segment)) => Some(Salvage::Segment(segment)),
            _ => None,
        })
        .collect()
}
