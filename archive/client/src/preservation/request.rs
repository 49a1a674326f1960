//! Acts that destroy: one person asks, another approves.

use archive_model::{ActKind, RequestState, Role};
use archive_rpc::InvalidMessage;
use jiff::Timestamp;
use proto_archive::{convert, wire};
use serde::Serialize;

use crate::error::visible_text;
use crate::file_status::nonempty_text;

/// A request, and its outcome.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RequestRecord {
    /// The id of the request.
    pub id: String,
    /// The kind of the act.
    pub act: ActKind,
    /// The description of the act, for people.
    pub what: String,
    /// The reason that was given.
    pub reason: String,
    /// The person who asked, as `role/name`.
    pub asked_by: String,
    /// When the request was made.
    pub asked: Timestamp,
    /// The time until which the request can be approved.
    pub expires: Timestamp,
    /// The state of the request.
    pub state: RequestState,
    /// The person who approved or withdrew the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_by: Option<String>,
    /// When the request was approved or withdrawn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<Timestamp>,
    /// The result of the act.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// The roles that may approve the request.
    pub approvers: Vec<Role>,
}

impl TryFrom<wire::RequestState> for RequestRecord {
    type Error = InvalidMessage;

    fn try_from(message: wire::RequestState) -> Result<Self, InvalidMessage> {
        Ok(Self {
            id: convert::typed_id("id", &message.id)?,
            act: convert::act_kind("act", message.act)?,
            what: visible_text(&message.what),
            reason: visible_text(&message.reason),
            asked_by: visible_text(&message.asked_by),
            asked: convert::read_time("asked", &message.asked)?,
            expires: convert::read_time("expires", &message.expires)?,
            state: convert::request_state("state", message.state)?,
            ended_by: nonempty_text(&message.ended_by),
            ended: convert::optional_time("ended", &message.ended)?,
            outcome: nonempty_text(&message.outcome),
            approvers: message
                .approvers
                .iter()
                .map(|role| convert::role("approvers", *role))
                .collect::<Result<_, _>>()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message() -> wire::RequestState {
        wire::RequestState {
            id: "r-1".into(),
            act: wire::request_state::Act::NewRoot.into(),
            what: "a in one".into(),
            asked: "2026-01-02T03:04:05Z".into(),
            expires: "2026-01-09T03:04:05Z".into(),
            state: wire::request_state::State::Open.into(),
            approvers: vec![wire::Role::Custodian.into()],
            ..wire::RequestState::default()
        }
    }

    type Break = fn(&mut wire::RequestState);

    /// Fails if a request with an unknown act, state or approver, or an unreadable time, is accepted, or the error does
    /// not name the field.
    #[test]
    fn a_request_is_read_field_by_field() {
        let request = RequestRecord::try_from(message()).unwrap();
        assert_eq!((request.act, request.ended_by), (ActKind::NewRoot, None));
        let cases: [(Break, &str); 6] = [
            (|m| m.id = "r 1; rm".into(), "`id`"),
            (|m| m.act = 99, "`act`"),
            (|m| m.asked.clear(), "`asked`"),
            (|m| m.expires = "soon".into(), "`expires`"),
            (|m| m.state = 99, "`state`"),
            (|m| m.approvers = vec![99], "`approvers`"),
        ];
        for (break_it, field) in cases {
            let mut broken = message();
            break_it(&mut broken);
            let error = RequestRecord::try_from(broken).unwrap_err().to_string();
            assert!(error.contains(field), "{field}: {error}");
        }
    }
}
