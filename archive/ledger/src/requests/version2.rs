//! Requests as version 2 of their table has them: a volume or a node by its bare id. Read, and never written.

use archive_db::InvalidValue;
use archive_db::value::decode_body;
use archive_model::{FileName, NodeId, ReplicaId, Root, VolumeId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::act::ActOnDisk;
use super::{Accepted, Request, State};

/// A request of version 2.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Request2 {
    pub(super) number: u64,
    pub(super) act: Act2,
    pub(super) reason: String,
    pub(super) asked_by: String,
    pub(super) asked: Timestamp,
    pub(super) expires: Timestamp,
    pub(super) state: State,
}

/// An act of version 2.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Act2 {
    Remove {
        name: FileName,
        replica: ReplicaId,
        checksum: Root,
        last_copies: bool,
    },
    Purge {
        replica: ReplicaId,
        node: NodeId,
        volume: VolumeId,
        id: String,
    },
    RetireVolume {
        volume: VolumeId,
        last_copies: bool,
    },
    RetireNode {
        node: NodeId,
        last_copies: bool,
    },
    RetireReplica(ReplicaId),
    Accept {
        anomaly: String,
        of: Option<Accepted>,
    },
    NewRoot {
        name: FileName,
        replica: ReplicaId,
        root: Root,
    },
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
            act: ActOnDisk::from(act).into(),
            reason,
            asked_by,
            asked,
            expires,
            state,
        }
    }
}

impl From<Act2> for ActOnDisk {
    fn from(old: Act2) -> Self {
        match old {
            Act2::Remove {
                name,
                replica,
                checksum,
                last_copies,
            } => Self::Remove {
                name,
                replica,
                checksum,
                last_copies,
            },
            Act2::Purge {
                replica,
                node,
                volume,
                id,
            } => Self::Purge {
                replica,
                node,
                volume,
                id,
            },
            Act2::RetireVolume {
                volume,
                last_copies,
            } => Self::RetireVolume {
                volume,
                node: None,
                replica: None,
                last_copies,
            },
            Act2::RetireNode { node, last_copies } => Self::RetireNode {
                node,
                replica: None,
                last_copies,
            },
            Act2::RetireReplica(replica) => Self::RetireReplica(replica),
            Act2::Accept { anomaly, of } => Self::Accept { anomaly, of },
            Act2::NewRoot {
                name,
                replica,
                root,
            } => Self::NewRoot {
                name,
                replica,
                root,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use archive_db::{Database, Options, Table, Value};
    use archive_model::{Act, NodeSelector, VolumeSelector};

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
        let (volume, node) = (VolumeId::new("disk-1").unwrap(), NodeId::new("n").unwrap());
        let acts = [
            Act2::RetireVolume {
                volume: volume.clone(),
                last_copies: true,
            },
            Act2::RetireNode {
                node: node.clone(),
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
                state: State::Open,
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
