//! Acts that destroy: one person asks, another approves.

use archive_model::{ActKind, FileName, NodeId, ReplicaId, RequestState, Role, Root, VolumeId};
use archive_rpc::InvalidMessage;
use jiff::Timestamp;
use proto_archive::wire::ask_request::{
    Accept, Act as Asked, NewRoot, ReinstateNode, ReinstateVolume, Remove, RetireNode,
    RetireReplica, RetireVolume,
};
use proto_archive::{convert, wire};
use serde::Serialize;

use super::attic::AtticPlace;
use super::machines::{NodeName, VolumeName, or_empty};
use crate::error::plain;
use crate::file_status::text;
use crate::word::id;

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// Move the copy of one replica into the attic; it is withdrawn from then on.
    Remove {
        /// The file.
        name: FileName,
        /// The replica.
        replica: ReplicaId,
        /// BLAKE3 of the copy.
        checksum: Root,
        /// The caller knows that this leaves no copy.
        last_copies: bool,
    },
    /// Destroy what lies in an attic.
    Purge {
        /// Where it lies.
        place: AtticPlace,
        /// BLAKE3 of the file in it; none of groups and leftovers.
        checksum: Option<Root>,
        /// The caller knows that no other good copy of the file is left.
        last_copies: bool,
    },
    /// Take a volume out of service for good.
    RetireVolume {
        /// The volume.
        volume: VolumeId,
        /// Its node, where more than one volume bears that id.
        node: Option<NodeId>,
        /// Its replica, likewise.
        replica: Option<ReplicaId>,
        /// The caller knows that this takes the last good copies of files.
        last_copies: bool,
    },
    /// Take a node out of service for good.
    RetireNode {
        /// The node.
        node: NodeId,
        /// Its replica, where more than one node bears that id.
        replica: Option<ReplicaId>,
        /// The caller knows that this takes the last good copies of files.
        last_copies: bool,
    },
    /// Take a replica out of service for good.
    RetireReplica(ReplicaId),
    /// Live with an anomaly.
    Accept {
        /// Its id.
        anomaly: String,
    },
    /// Take content of another root under a name that has no good copy left.
    NewRoot {
        /// The file.
        name: FileName,
        /// Which replica has the content.
        replica: ReplicaId,
        /// The root that it has.
        root: Root,
    },
    /// Take a retired volume back into service.
    ReinstateVolume(VolumeName),
    /// Take a retired node back into service.
    ReinstateNode(NodeName),
}

/// A request, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Request {
    /// Names it.
    pub id: String,
    /// What kind of act it is.
    pub act: ActKind,
    /// What exactly, for people.
    pub what: String,
    /// Why.
    pub reason: String,
    /// Who asked, as `role/name`.
    pub asked_by: String,
    /// When.
    pub asked: Timestamp,
    /// Until when it can be approved.
    pub expires: Timestamp,
    /// How it stands.
    pub state: RequestState,
    /// Who approved or withdrew it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_by: Option<String>,
    /// When.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<Timestamp>,
    /// What came of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// Which roles may approve it.
    pub approvers: Vec<Role>,
}

impl Act {
    /// What kind of act it is.
    pub const fn kind(&self) -> ActKind {
        match self {
            Self::Remove { .. } => ActKind::Remove,
            Self::Purge { .. } => ActKind::Purge,
            Self::RetireVolume { .. } | Self::RetireNode { .. } | Self::RetireReplica(_) => {
                ActKind::Retire
            }
            Self::Accept { .. } => ActKind::Accept,
            Self::NewRoot { .. } => ActKind::NewRoot,
            Self::ReinstateVolume(_) | Self::ReinstateNode(_) => ActKind::Reinstate,
        }
    }

    /// The request for it.
    pub(super) fn request(&self, reason: &str) -> wire::AskRequest {
        let act = match self {
            Self::Remove {
                name,
                replica,
                checksum,
                last_copies,
            } => Asked::Remove(Remove {
                name: name.to_string(),
                replica: replica.to_string(),
                checksum: convert::root_bytes(checksum),
                last_copies: *last_copies,
            }),
            Self::Purge {
                place,
                checksum,
                last_copies,
            } => Asked::Purge(wire::AtticsRef {
                checksum: checksum
                    .as_ref()
                    .map(convert::root_bytes)
                    .unwrap_or_default(),
                last_copies: *last_copies,
                ..place.reference(reason)
            }),
            Self::RetireVolume {
                volume,
                node,
                replica,
                last_copies,
            } => Asked::RetireVolume(RetireVolume {
                volume: volume.to_string(),
                last_copies: *last_copies,
                node: or_empty(node.as_ref()),
                replica: or_empty(replica.as_ref()),
            }),
            Self::RetireNode {
                node,
                replica,
                last_copies,
            } => Asked::RetireNode(RetireNode {
                node: node.to_string(),
                last_copies: *last_copies,
                replica: or_empty(replica.as_ref()),
            }),
            Self::RetireReplica(replica) => Asked::RetireReplica(RetireReplica {
                replica: replica.to_string(),
            }),
            Self::Accept { anomaly } => Asked::Accept(Accept {
                anomaly: anomaly.clone(),
            }),
            Self::NewRoot {
                name,
                replica,
                root,
            } => Asked::NewRoot(NewRoot {
                name: name.to_string(),
                replica: replica.to_string(),
                root: convert::root_bytes(root),
            }),
            Self::ReinstateVolume(name) => Asked::ReinstateVolume(ReinstateVolume {
                volume: name.volume.to_string(),
                node: or_empty(name.node.as_ref()),
                replica: or_empty(name.replica.as_ref()),
            }),
            Self::ReinstateNode(name) => Asked::ReinstateNode(ReinstateNode {
                node: name.node.to_string(),
                replica: or_empty(name.replica.as_ref()),
            }),
        };
        wire::AskRequest {
            act: Some(act),
            reason: reason.to_owned(),
        }
    }
}

impl TryFrom<wire::RequestState> for Request {
    type Error = InvalidMessage;

    fn try_from(message: wire::RequestState) -> Result<Self, InvalidMessage> {
        Ok(Self {
            id: id("id", &message.id)?,
            act: convert::act_kind("act", message.act)?,
            what: plain(&message.what),
            reason: plain(&message.reason),
            asked_by: plain(&message.asked_by),
            asked: convert::time("asked", &message.asked)?,
            expires: convert::time("expires", &message.expires)?,
            state: convert::request_state("state", message.state)?,
            ended_by: text(&message.ended_by),
            ended: convert::optional_time("ended", &message.ended)?,
            outcome: text(&message.outcome),
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

    #[test]
    fn a_request_is_read_field_by_field() {
        let request = Request::try_from(message()).unwrap();
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
            let error = Request::try_from(broken).unwrap_err().to_string();
            assert!(error.contains(field), "{field}: {error}");
        }
    }

    #[test]
    fn every_act_is_asked_for_as_itself() {
        let name = || FileName::new("a").unwrap();
        let replica = || "one".parse().unwrap();
        let root = Root::from_bytes([7; 32]);
        let acts = [
            (
                Act::Purge {
                    place: "one/n/v/x".parse().unwrap(),
                    checksum: None,
                    last_copies: false,
                },
                "purge",
            ),
            (
                Act::RetireVolume {
                    volume: "v".parse().unwrap(),
                    node: None,
                    replica: None,
                    last_copies: false,
                },
                "retire",
            ),
            (
                Act::RetireNode {
                    node: "n".parse().unwrap(),
                    replica: None,
                    last_copies: true,
                },
                "retire",
            ),
            (Act::RetireReplica(replica()), "retire"),
            (
                Act::Accept {
                    anomaly: "1".into(),
                },
                "accept",
            ),
            (
                Act::NewRoot {
                    name: name(),
                    replica: replica(),
                    root,
                },
                "new-root",
            ),
        ];
        for (act, word) in acts {
            assert_eq!(act.kind().as_str(), word);
            assert!(act.request("why").act.is_some());
        }
        let remove = Act::Remove {
            name: name(),
            replica: replica(),
            checksum: root,
            last_copies: true,
        };
        let request = remove.request("why");
        assert_eq!(request.reason, "why");
        let Some(Asked::Remove(asked)) = request.act else {
            panic!("asked for something else");
        };
        assert_eq!((asked.checksum.len(), asked.last_copies), (32, true));
    }
}
