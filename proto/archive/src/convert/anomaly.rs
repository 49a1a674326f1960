//! A filed anomaly, in both directions.

use archive_model::FiledAnomaly;
use archive_rpc::InvalidMessage;

use super::{
    anomaly_class, anomaly_state, file_name, finder, group_ranges, optional, optional_time,
    plain_text, read_groups, read_time, replica_id, text_of, typed_id, visible_text,
};
use crate::wire;

/// Reads an anomaly.
///
/// # Errors
/// The first field that is missing or invalid.
pub fn filed_anomaly(message: &wire::AnomalyState) -> Result<FiledAnomaly, InvalidMessage> {
    Ok(FiledAnomaly {
        id: typed_id("id", &message.id)?,
        file: file_name("file", &message.file)?,
        replica: replica_id(&message.replica)?,
        kind: anomaly_class("kind", message.kind)?,
        what: visible_text(&message.what),
        groups: read_groups("groups", &message.groups)?,
        lost: read_groups("lost", &message.lost)?.into(),
        size: message.size,
        node: optional("node", &message.node)?,
        volume: optional("volume", &message.volume)?,
        since: read_time("since", &message.since)?,
        state: anomaly_state("state", message.state)?,
        found_by: finder("found_by", message.found_by)?,
        ended: optional_time("ended", &message.ended)?,
        ended_why: plain_text(&message.ended_why),
        held: plain_text(&message.held),
    })
}

/// Writes an anomaly.
pub fn anomaly_message(anomaly: FiledAnomaly) -> wire::AnomalyState {
    let lost = anomaly.lost.into_iter();
    wire::AnomalyState {
        id: anomaly.id,
        file: anomaly.file.into(),
        replica: anomaly.replica.into(),
        kind: wire::AnomalyKind::from(anomaly.kind).into(),
        what: anomaly.what,
        groups: group_ranges(&anomaly.groups),
        lost: lost
            .map(|(start, end)| wire::GroupRange { start, end })
            .collect(),
        node: text_of(anomaly.node),
        volume: text_of(anomaly.volume),
        since: anomaly.since.to_string(),
        state: wire::anomaly_state::State::from(anomaly.state).into(),
        found_by: wire::anomaly_state::Finder::from(anomaly.found_by).into(),
        ended: text_of(anomaly.ended),
        ended_why: anomaly.ended_why.unwrap_or_default(),
        held: anomaly.held.unwrap_or_default(),
        size: anomaly.size,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use archive_model::{AnomalyClass, AnomalyState, Finder, Groups};
    use jiff::Timestamp;

    use super::*;

    pub(in crate::convert) fn anomaly() -> FiledAnomaly {
        FiledAnomaly {
            id: "a17".to_owned(),
            file: "a".parse().unwrap(),
            replica: "one".parse().unwrap(),
            kind: AnomalyClass::Corrupt,
            what: "corrupt".to_owned(),
            groups: Groups::try_from(vec![(3, 4), (7, 10)]).unwrap(),
            lost: vec![(5, 9)],
            size: 7,
            node: Some("n".parse().unwrap()),
            volume: Some("v".parse().unwrap()),
            since: Timestamp::UNIX_EPOCH,
            state: AnomalyState::Accepted,
            found_by: Finder::Read,
            ended: Some(Timestamp::UNIX_EPOCH),
            ended_why: Some("the disk is gone".to_owned()),
            held: Some("the brake".to_owned()),
        }
    }

    /// Fails if a field of an anomaly is lost on its way, or two are exchanged.
    #[test]
    fn anomaly_is_read_as_written() {
        assert_eq!(filed_anomaly(&anomaly_message(anomaly())), Ok(anomaly()));
    }

    type Break = fn(&mut wire::AnomalyState);

    /// Fails if a field that breaks a rule is not named, or a text steers the terminal.
    #[test]
    fn field_that_breaks_rule_is_named() {
        let cases: [(Break, &str); 10] = [
            (|m| m.id = "a b".into(), "`id`"),
            (|m| m.file = "../a".into(), "`file`"),
            (|m| m.replica.clear(), "`replica`"),
            (|m| m.kind = 99, "`kind`"),
            (|m| m.groups[1].start = 4, "`groups`"),
            (
                |m| m.lost = vec![wire::GroupRange { start: 2, end: 2 }],
                "`lost`",
            ),
            (|m| m.since = "yesterday".into(), "`since`"),
            (|m| m.state = 0, "`state`"),
            (|m| m.found_by = 99, "`found_by`"),
            (|m| m.node = "N 1".into(), "`node`"),
        ];
        for (break_it, field) in cases {
            let mut broken = anomaly_message(anomaly());
            break_it(&mut broken);
            let error = filed_anomaly(&broken).unwrap_err().to_string();
            assert!(error.contains(field), "{field}: {error}");
        }
        let steering = wire::AnomalyState {
            what: "said\u{1b}[2J\u{202e} why".into(),
            ..anomaly_message(anomaly())
        };
        assert_eq!(filed_anomaly(&steering).unwrap().what, "said [2J  why");
    }
}
