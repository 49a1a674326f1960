//! Conversions between the wire and the model.
//!
//! A value from the wire must pass the model's own rules; the error names the field. Writing a value cannot fail.
//!
//! # Errors
//!
//! Every function that reads fails with an [`InvalidMessage`] if a required field is absent, or if a value breaks a
//! rule of the model.

mod act;
mod anomaly;
mod attic;
mod check;
mod closed_sets;
mod copy;
mod disk_order;
mod drain;
mod gap;
mod job;
mod job_spec;
mod mend;
mod node;
mod replica_status;
mod scrub;

use archive_model::{
    Approval, ArchiveError, Cause, FileName, Groups, InvalidNameList, NameList, NamePattern,
    NodeId, ReplicaId, Root, UploadId, VolumeId,
};
use archive_rpc::{CallErrorKind, InvalidMessage};
use bytes::Bytes;
use jiff::Timestamp;

pub use act::{
    ask_request, attic_place, attics_ref, node_selector, or_empty, read_act, volume_selector,
};
pub use anomaly::{anomaly_message, filed_anomaly};
pub use archive_rpc::text::visible_text;
pub use attic::{attic_item, attic_item_message, typed_id};
pub use check::{check_response, check_step};
pub use closed_sets::{
    act_kind, anomaly_class, anomaly_count_messages, anomaly_counts, anomaly_state, attic_kind,
    check_kind, copy_standing, failure_kind, finder, job_output, job_state, reduce, repair_outcome,
    replica_kind, replica_progress, request_state, role, scrub_activity, unknown_value,
};
pub use copy::{file_copy, file_entry};
pub use disk_order::{disk_order, disk_order_message};
pub use drain::{drain_message, read_drain};
pub use gap::{gap_message, gap_within, read_gap};
pub use job::{job_id, job_progress, job_progress_message, job_status, job_status_message};
pub(crate) use job_spec::whole_millis;
pub use job_spec::{read_spec, write_spec};
pub use mend::{mend_open, mend_order};
pub use node::{node_state, node_status, read_mode, wire_mode};
pub use replica_status::{replica_status, replica_status_message};
pub use scrub::{node_scrub, scrub_order, scrub_request, scrub_state};

use crate::wire;

/// The longest `role/name` in an approval, in bytes.
const MAX_PERSON: usize = 100;

/// Reads a field that parses from text.
fn text<T: std::str::FromStr<Err: std::fmt::Display>>(
    field: &'static str,
    text: &str,
) -> Result<T, InvalidMessage> {
    if text.is_empty() {
        return Err(InvalidMessage::missing_field(field));
    }
    text.parse()
        .map_err(|error: T::Err| InvalidMessage::invalid_field(field, error.to_string()))
}

/// Reads a field that may be empty: `None` then.
fn optional<T: std::str::FromStr<Err: std::fmt::Display>>(
    field: &'static str,
    value: &str,
) -> Result<Option<T>, InvalidMessage> {
    if value.is_empty() {
        Ok(None)
    } else {
        text(field, value).map(Some)
    }
}

/// Reads the name of an archive file.
pub fn file_name(field: &'static str, value: &str) -> Result<FileName, InvalidMessage> {
    text(field, value)
}

/// Reads the expression that whole names must match; an empty one matches every name.
pub fn name_pattern(field: &'static str, value: &str) -> Result<NamePattern, InvalidMessage> {
    NamePattern::parse(value)
        .map_err(|error| InvalidMessage::invalid_field(field, error.to_string()))
}

/// Reads names of files that are sorted, each once; `None` if the list is empty.
///
/// # Errors
/// A name is invalid, or the names are too many, too long together, or not in order.
pub fn name_list(
    field: &'static str,
    values: &[String],
) -> Result<Option<NameList>, InvalidMessage> {
    if values.is_empty() {
        return Ok(None);
    }
    let invalid = |reason: String| InvalidMessage::invalid_field(field, reason);
    // Too many names are not even parsed.
    if values.len() > NameList::MOST {
        return Err(invalid(InvalidNameList::Many(values.len()).to_string()));
    }
    let names = values.iter().map(|value| file_name(field, value));
    let list = NameList::from_sorted(names.collect::<Result<_, _>>()?);
    list.map(Some).map_err(|error| invalid(error.to_string()))
}

/// Writes names of files; no names if the list is absent.
pub fn wire_names(list: Option<&NameList>) -> Vec<String> {
    let names = list.map(NameList::as_slice).unwrap_or_default();
    names.iter().map(ToString::to_string).collect()
}

/// Reads the name to list after; `None` if it is empty.
pub fn read_after(value: &str) -> Result<Option<FileName>, InvalidMessage> {
    optional("after", value)
}

/// Reads the id of an upload.
pub fn upload_id(value: &str) -> Result<UploadId, InvalidMessage> {
    text("upload", value)
}

/// Reads the id of a node.
pub fn node_id(value: &str) -> Result<NodeId, InvalidMessage> {
    text("node", value)
}

/// Reads the id of a volume.
pub fn volume_id(value: &str) -> Result<VolumeId, InvalidMessage> {
    text("volume", value)
}

/// Reads the id of a replica.
pub fn replica_id(value: &str) -> Result<ReplicaId, InvalidMessage> {
    text("replica", value)
}

/// Reads a time.
pub fn read_time(field: &'static str, value: &str) -> Result<Timestamp, InvalidMessage> {
    text(field, value)
}

/// Reads a time that may be absent.
pub fn optional_time(
    field: &'static str,
    value: &str,
) -> Result<Option<Timestamp>, InvalidMessage> {
    optional(field, value)
}

/// Reads a time that is sent as a number.
fn timestamp(
    field: &'static str,
    value: Option<prost_types::Timestamp>,
) -> Result<Timestamp, InvalidMessage> {
    optional_timestamp(field, value)?.ok_or_else(|| InvalidMessage::missing_field(field))
}

/// Reads a time that is sent as a number and may be absent.
pub fn optional_timestamp(
    field: &'static str,
    value: Option<prost_types::Timestamp>,
) -> Result<Option<Timestamp>, InvalidMessage> {
    let Some(prost_types::Timestamp { seconds, nanos }) = value else {
        return Ok(None);
    };
    if nanos < 0 {
        let reason = format!("has {nanos} nanoseconds, but they count forwards");
        return Err(InvalidMessage::invalid_field(field, reason));
    }
    Timestamp::new(seconds, nanos)
        .map(Some)
        .map_err(|error| InvalidMessage::invalid_field(field, error.to_string()))
}

/// Writes a time as a number.
fn timestamp_message(time: Timestamp) -> prost_types::Timestamp {
    let seconds = time.as_second();
    let nanos = time.subsec_nanosecond();
    // Nanoseconds count forwards on the wire, also before 1970.
    let (seconds, nanos) = match nanos {
        ..0 => (seconds - 1, nanos + 1_000_000_000),
        0.. => (seconds, nanos),
    };
    prost_types::Timestamp { seconds, nanos }
}

/// Reads a root.
pub fn read_root(field: &'static str, value: &[u8]) -> Result<Root, InvalidMessage> {
    Root::try_from(value).map_err(|error| InvalidMessage::invalid_field(field, error.to_string()))
}

/// Reads a root that may be absent.
pub fn optional_root(field: &'static str, value: &[u8]) -> Result<Option<Root>, InvalidMessage> {
    if value.is_empty() {
        Ok(None)
    } else {
        read_root(field, value).map(Some)
    }
}

/// Reads a text for people; `None` if it is empty.
fn plain_text(value: &str) -> Option<String> {
    (!value.is_empty()).then(|| visible_text(value))
}

/// Writes a value that may be absent.
fn text_of(value: Option<impl ToString>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// Reads who asked for an act, and why.
pub fn read_cause(who: &str, why: &str) -> Result<Cause, InvalidMessage> {
    Cause::new(who, why).map_err(|error| InvalidMessage::invalid_field(error.field, error.reason))
}

/// Reads the approval of an act; `None` if no two persons decided it.
pub fn read_approval(value: Option<wire::Approval>) -> Result<Option<Approval>, InvalidMessage> {
    let field = |name, text: String| match text.len() {
        0 => Err(InvalidMessage::missing_field(name)),
        1..=MAX_PERSON if !text.contains(char::is_control) => Ok(text),
        _ => Err(InvalidMessage::invalid_field(
            name,
            format!("has control characters, or more than {MAX_PERSON} bytes"),
        )),
    };
    value
        .map(|value| {
            Ok(Approval {
                request: field("approval.request", value.request)?,
                asked_by: field("approval.asked_by", value.asked_by)?,
                approved_by: field("approval.approved_by", value.approved_by)?,
            })
        })
        .transpose()
}

/// Writes the approval of an act.
pub fn approval_message(approval: Approval) -> wire::Approval {
    wire::Approval {
        request: approval.request,
        asked_by: approval.asked_by,
        approved_by: approval.approved_by,
    }
}

/// Reads `N` bytes that may be absent.
pub fn optional_bytes<const N: usize>(
    field: &'static str,
    value: &[u8],
) -> Result<Option<[u8; N]>, InvalidMessage> {
    if value.is_empty() {
        return Ok(None);
    }
    let reason = format!("is {} bytes long, not {N}", value.len());
    value
        .try_into()
        .map(Some)
        .or(Err(InvalidMessage::invalid_field(field, reason)))
}

/// Writes a root.
pub fn root_bytes(root: &Root) -> Bytes {
    Bytes::copy_from_slice(root.as_bytes())
}

/// Reads a set of groups.
pub fn read_groups(
    field: &'static str,
    ranges: &[wire::GroupRange],
) -> Result<Groups, InvalidMessage> {
    let pairs: Vec<(u64, u64)> = ranges
        .iter()
        .map(|range| (range.start, range.end))
        .collect();
    Groups::try_from(pairs).map_err(|error| InvalidMessage::invalid_field(field, error.to_string()))
}

/// Writes a set of groups.
pub fn group_ranges(groups: &Groups) -> Vec<wire::GroupRange> {
    groups
        .ranges()
        .map(|range| wire::GroupRange {
            start: range.start,
            end: range.end,
        })
        .collect()
}

/// Writes an error of the archive as a status: its text for people, its kind for programs.
pub fn to_status(error: &ArchiveError) -> tonic::Status {
    let kind = match error {
        ArchiveError::Invalid(_) | ArchiveError::Name { .. } => CallErrorKind::Invalid,
        ArchiveError::NotFound(_) => CallErrorKind::NotFound,
        ArchiveError::Exists { .. } => CallErrorKind::Exists,
        ArchiveError::Busy(_) => CallErrorKind::Busy,
        ArchiveError::Mismatch { .. } => CallErrorKind::Mismatch,
        ArchiveError::NotEnoughReplicas { .. } => CallErrorKind::NotEnoughReplicas,
        ArchiveError::Damaged { .. } => CallErrorKind::Damaged,
        ArchiveError::Refused(_) => CallErrorKind::Refused,
        ArchiveError::NoSpace(_) => CallErrorKind::NoSpace,
        ArchiveError::Unavailable(_) => CallErrorKind::Unavailable,
        ArchiveError::TimedOut(_) => CallErrorKind::TimedOut,
        ArchiveError::Storage(_) => CallErrorKind::Storage,
    };
    kind.to_status(error.to_string())
}
