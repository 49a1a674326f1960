//! The state of a drain, in both directions.

use archive_model::{Drain, FilesToLeave};
use archive_rpc::InvalidMessage;

use super::{node_id, optional, optional_time, plain_text, read_time, replica_id, text_of};
use crate::wire::status_response;

/// Reads the state of a drain.
///
/// # Errors
/// The first field that is missing or invalid.
pub fn read_drain(message: &status_response::Drain) -> Result<Drain, InvalidMessage> {
    let left = FilesToLeave {
        files: message.files,
        bytes: message.bytes,
    };
    Ok(Drain {
        replica: replica_id(&message.replica)?,
        node: node_id(&message.node)?,
        volume: optional("volume", &message.volume)?,
        since: read_time("since", &message.since)?,
        left: message.counted.then_some(left),
        drained: optional_time("drained", &message.drained)?,
        held: plain_text(&message.held),
    })
}

/// Writes the state of a drain.
pub fn drain_message(drain: Drain) -> status_response::Drain {
    let (files, bytes) = drain.left.map_or((0, 0), |left| (left.files, left.bytes));
    status_response::Drain {
        replica: drain.replica.into(),
        node: drain.node.into(),
        volume: text_of(drain.volume),
        since: drain.since.to_string(),
        counted: drain.left.is_some(),
        files,
        bytes,
        drained: text_of(drain.drained),
        held: drain.held.unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    /// Fails if a field of a drain is lost on its way, or files that are not counted yet are taken for none.
    #[test]
    fn drain_is_read_as_written() {
        let whole = Drain {
            replica: "one".parse().unwrap(),
            node: "n".parse().unwrap(),
            volume: Some("v".parse().unwrap()),
            since: Timestamp::UNIX_EPOCH,
            left: Some(FilesToLeave { files: 1, bytes: 2 }),
            drained: Some(Timestamp::UNIX_EPOCH),
            held: Some("why".to_owned()),
        };
        let begun = Drain {
            volume: None,
            left: None,
            drained: None,
            held: None,
            ..whole.clone()
        };
        let empty = Drain {
            left: Some(FilesToLeave { files: 0, bytes: 0 }),
            ..begun.clone()
        };
        for one in [whole, begun, empty] {
            assert_eq!(read_drain(&drain_message(one.clone())), Ok(one));
        }
        assert!(read_drain(&status_response::Drain::default()).is_err());
    }
}
