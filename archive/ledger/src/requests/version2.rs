//! Requests in the form of version 2 of their table: a volume or a node by its bare id. Read, and never written.

use archive_db::InvalidValue;
use archive_db::value::decode_body;
use archive_model::{NodeId, ReplicaId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::act::ActOnDisk;
use super::{Request, RequestStatus};

/// A request of version 2.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Request2 {
    pub(super) number: u64,
    pub(super) act: Act2,
    pub(super) reason: String,
    pub(super) asked_by: String,
    pub(super) asked: Timestamp,
    pub(super) expires: Timestamp,
    pub(super) state: RequestStatus,
}

/// An act of version 2.
pub(super) type Act2 = ActOnDisk<Unbound, Unbound>;

/// The node or the replica that version 2 did not name: no byte of a row.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Unbound;

impl From<Unbound> for Option<NodeId> {
    fn from(Unbound: Unbound) -> Self {
        None
    }
}

impl From<Unbound> for Option<ReplicaId> {
    fn from(Unbound: Unbound) -> Self {
        None
    }
}

/// Reads a request of version 2.
pub(super) fn read(body: &[u8]) -> Result<Request, InvalidValue> {
    decode_body::<Request2>(body).map(Request::from)
}

impl From<Request2> for Request {
    fn from(old: Request2) -> Self {
        let Request2 {
            number,
            act,
            reason,
            asked_by,
            asked,
            expires,
            state,
        } = old;
        Self {
            number,
            act: act.into(),
            reason,
            asked_by,
            asked,
            expires,
            state,
        }
    }
}

#[cfg(test)]
mod tests {
    use archive_db::{Database, Options, Table, Value};
    use archive_model::{Act, NodeSelector, VolumeId, VolumeSelector};

    use super::*;
    use crate::requests::table::Requests;

    impl Value for Request2 {
        const VERSION: u8 = 2;
    }

    /// Fails if a request that an older release has taken is lost, or is bound to a volume that nobody named.
    #[test]
    fn version_2_request_is_read_unbound() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("admin");
        let database = Database::open(&path, &Options::new("admin", 1, &["files", "requests"]));
        let database = database.unwrap();
        let table: Table<u64, Request2> = database.table("requests").unwrap();
        let volume = VolumeId::new("disk-1").unwrap();
        let node = NodeId::new("n").unwrap();
        let acts = [
            Act2::RetireVolume {
                volume: volume.clone(),
                node: Unbound,
                replica: Unbound,
                last_copies: true,
            },
            Act2::RetireNode {
                node: node.clone(),
                replica: Unbound,
                last_copies: false,
            },
        ];
        let mut batch = database.batch();
        for (number, act) in (1..).zip(acts) {
            let request = Request2 {
                number,
                act,
                reason: "dead".to_owned(),
                asked_by: "operator/otto".to_owned(),
                asked: Timestamp::UNIX_EPOCH,
                expires: Timestamp::MAX,
                state: RequestStatus::Open,
            };
            batch.put(&table, &number, &request).unwrap();
        }
        batch.commit().unwrap();
        drop((database, table));
        let admin = crate::admin::Admin::open(directory.path()).unwrap();
        let all = Requests::new(admin).unwrap().all(Timestamp::UNIX_EPOCH);
        let acts: Vec<_> = all.unwrap().into_iter().map(|one| one.act.act).collect();
        let expected = [
            Act::RetireVolume {
                volume: VolumeSelector {
                    replica: None,
                    node: None,
                    volume,
                },
                last_copies: true,
            },
            Act::RetireNode {
                node: NodeSelector {
                    replica: None,
                    node,
                },
                last_copies: false,
            },
        ];
        assert_eq!(acts, expected);
    }
}
