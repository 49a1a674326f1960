//! The tables beside files, nodes and trail: anomalies, requests, and what is filled, drained or out of service.
//!
//! A row is a line by itself; its kind is the key of the line. Each kind comes sorted by its key, so that a row which
//! is there twice, or in another place, is noticed.
//!
//! # Errors
//!
//! All functions fail with [`DbError`] if the database does, or a row cannot be decoded.

use archive_db::{DbError, Load, Table, Text};
use archive_model::{FileName, NodeId, ReplicaId, VolumeId, VolumeKey};
use serde::{Deserialize, Serialize};

use crate::admin::Admin;
use crate::admin::schema::{RETIRED_VOLUMES, VolumeTableKey, to_table};
use crate::anomalies::{AnomalyRecord, ClosedAnomaly, DatedReason};
use crate::requests::PersonRequest;
use crate::standing::{DrainKey, DrainRow, DrainSource, ReplicaRow, Retirement};

/// A row of one of these tables.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TableRow {
    /// An anomaly that is open or accepted.
    Anomaly(OpenRow),
    /// An anomaly that was closed.
    ClosedAnomaly(ClosedRow),
    /// A request for an act that needs two persons.
    Request(PersonRequest),
    /// A replica that is being filled, or is retired.
    Replica(ReplicaLine),
    /// A retired volume.
    Volume(VolumeLine),
    /// A volume, or a node, that is drained.
    Drain(DrainLine),
}

/// An anomaly that is open or accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenRow {
    file: FileName,
    replica: ReplicaId,
    filed: AnomalyRecord,
}

/// An anomaly that was closed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClosedRow {
    file: FileName,
    replica: ReplicaId,
    filed: AnomalyRecord,
    ended: DatedReason,
}

/// The state of a replica.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplicaLine {
    replica: ReplicaId,
    stands: ReplicaRow,
}

/// A retired volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VolumeLine {
    volume: VolumeId,
    stands: RetiredVolume,
}

/// The replica and node of a retired volume, and since when and why it is retired.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct RetiredVolume {
    replica: ReplicaId,
    node: NodeId,
    retired: Retirement,
}

/// The volume or node that is drained.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrainLine {
    replica: ReplicaId,
    node: NodeId,
    stands: DrainRow,
}

/// The number of rows of each kind in an export.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowCounts {
    anomalies: u64,
    closed_anomalies: u64,
    requests: u64,
    replicas: u64,
    volumes: u64,
    drains: u64,
}

/// The tables.
#[derive(Clone, Debug)]
pub struct Tables {
    anomalies: Table<(Text<FileName>, Text<ReplicaId>, String), AnomalyRecord>,
    closed: Table<u64, ClosedAnomaly>,
    requests: Table<u64, PersonRequest>,
    replicas: Table<Text<ReplicaId>, ReplicaRow>,
    volumes: Table<VolumeTableKey, Retirement>,
    drains: Table<DrainKey, DrainRow>,
}

/// Rows, as they were when the reading began.
pub type TableRows<'a> = Box<dyn Iterator<Item = Result<TableRow, DbError>> + 'a>;

impl Tables {
    /// Opens the tables.
    ///
    /// # Errors
    /// [`DbError`] if a table is not there.
    pub fn open(admin: &Admin) -> Result<Self, DbError> {
        Ok(Self {
            anomalies: admin.open_table("anomalies")?,
            closed: admin.open_table("anomaly-log")?,
            requests: admin.open_table("requests")?,
            replicas: admin.open_table("replicas")?,
            volumes: admin.open_table(RETIRED_VOLUMES)?,
            drains: admin.open_table("drains")?,
        })
    }

    /// Returns every row of every table, kind by kind.
    pub fn read_tables(&self) -> Result<TableRows<'_>, DbError> {
        let anomalies = self.anomalies.scan()?.map(|row| {
            row.map(|((Text(file), Text(replica), _), filed)| {
                TableRow::Anomaly(OpenRow {
                    file,
                    replica,
                    filed,
                })
            })
        });
        let closed = self.closed.scan()?.map(|row| {
            row.map(|(_, closed)| {
                TableRow::ClosedAnomaly(ClosedRow {
                    file: closed.file,
                    replica: closed.replica,
                    filed: closed.filed,
                    ended: closed.ended,
                })
            })
        });
        let requests = self.requests.scan()?;
        let requests = requests.map(|row| row.map(|(_, request)| TableRow::Request(request)));
        let replicas = self.replicas.scan()?.map(|row| {
            row.map(|(Text(replica), stands)| TableRow::Replica(ReplicaLine { replica, stands }))
        });
        let volumes = self.volumes.scan()?.map(|row| {
            row.map(|((Text(replica), Text(node), Text(volume)), retired)| {
                let stands = RetiredVolume {
                    replica,
                    node,
                    retired,
                };
                TableRow::Volume(VolumeLine { volume, stands })
            })
        });
        // The bare id comes first in the order of an export.
        let mut volumes: Vec<_> = volumes.collect::<Result<_, _>>()?;
        volumes.sort_by_key(TableRow::sort_key);
        let volumes = volumes.into_iter().map(Ok);
        let drains = self.drains.scan()?.map(|row| {
            row.map(|((Text(replica), Text(node), _), stands)| {
                TableRow::Drain(DrainLine {
                    replica,
                    node,
                    stands,
                })
            })
        });
        let rows = anomalies.chain(closed).chain(requests);
        Ok(Box::new(rows.chain(replicas).chain(volumes).chain(drains)))
    }

    /// Puts a row into the table of its kind.
    pub fn load_row(&self, load: &mut Load, row: TableRow) -> Result<(), DbError> {
        match row {
            TableRow::Anomaly(OpenRow {
                file,
                replica,
                filed,
            }) => {
                let key = (Text(file), Text(replica), filed.slot_key());
                load.put(&self.anomalies, &key, &filed)
            }
            TableRow::ClosedAnomaly(ClosedRow {
                file,
                replica,
                filed,
                ended,
            }) => {
                let id = filed.id;
                let closed = ClosedAnomaly {
                    file,
                    replica,
                    filed,
                    ended,
                };
                load.put(&self.closed, &id, &closed)
            }
            TableRow::Request(request) => load.put(&self.requests, &request.number, &request),
            TableRow::Replica(ReplicaLine { replica, stands }) => {
                load.put(&self.replicas, &Text(replica), &stands)
            }
            TableRow::Volume(VolumeLine { volume, stands }) => {
                let key = VolumeKey {
                    replica: stands.replica,
                    node: stands.node,
                    volume,
                };
                load.put(&self.volumes, &to_table(&key), &stands.retired)
            }
            TableRow::Drain(DrainLine {
                replica,
                node,
                stands,
            }) => {
                let source = DrainSource {
                    replica,
                    node,
                    volume: stands.volume.clone(),
                };
                load.put(&self.drains, &source.drain_key(), &stands)
            }
        }
    }
}

impl TableRow {
    /// Returns the place of the row among all rows: first its kind, then the key by which its table is sorted.
    pub fn sort_key(&self) -> (u8, Vec<String>) {
        let number = |number: u64| vec![format!("{number:020}")];
        match self {
            Self::Anomaly(row) => {
                let slot = row.filed.slot_key();
                (0, vec![row.file.to_string(), row.replica.to_string(), slot])
            }
            Self::ClosedAnomaly(row) => (1, number(row.filed.id)),
            Self::Request(request) => (2, number(request.number)),
            Self::Replica(row) => (3, vec![row.replica.to_string()]),
            Self::Volume(row) => {
                let RetiredVolume { replica, node, .. } = &row.stands;
                let place = [row.volume.as_str(), replica.as_str(), node.as_str()];
                (4, place.map(str::to_owned).into())
            }
            Self::Drain(row) => {
                let volume = row.stands.volume.as_ref().map(ToString::to_string);
                let place = [row.replica.to_string(), row.node.to_string()];
                let place = place.into_iter().chain([volume.unwrap_or_default()]);
                (5, place.collect())
            }
        }
    }

    /// Whether the archive would do something that destroys because this row says so.
    pub const fn is_pending_act(&self) -> bool {
        match self {
            Self::Request(request) => !request.is_over(),
            Self::Anomaly(_)
            | Self::ClosedAnomaly(_)
            | Self::Replica(_)
            | Self::Volume(_)
            | Self::Drain(_) => false,
        }
    }
}

impl RowCounts {
    /// Counts a row by its kind.
    pub const fn add(&mut self, row: &TableRow) {
        match row {
            TableRow::Anomaly(_) => self.anomalies += 1,
            TableRow::ClosedAnomaly(_) => self.closed_anomalies += 1,
            TableRow::Request(_) => self.requests += 1,
            TableRow::Replica(_) => self.replicas += 1,
            TableRow::Volume(_) => self.volumes += 1,
            TableRow::Drain(_) => self.drains += 1,
        }
    }
}
