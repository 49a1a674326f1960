//! A check as it goes: its progress, the anomalies that it meets, and a report of every replica. The JSON is that of
//! `holdfast check --json`.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::anomaly::{AnomalyClass, FiledAnomaly};
use crate::closed_set::closed_set;
use crate::gap::Gap;
use crate::replica::ReplicaId;

closed_set! {
    /// The depth of a check.
    CheckKind {
        /// Compares the lists of the replicas.
        Files = "files",
        /// Compares the bytes too: every copy is read again on its node.
        Checksums = "checksums",
    }
}

/// An event during a check. `A` is an anomaly as the part that checks knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckStep<A = FiledAnomaly> {
    /// The progress of one replica.
    Progress(CheckProgress),
    /// An anomaly that the check met.
    Anomaly(Box<A>),
    /// The report of one replica, whose comparison has ended.
    Report(ReplicaReport),
}

/// The progress of one replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckProgress {
    /// The replica that is compared.
    pub replica: ReplicaId,
    /// Files that were compared.
    pub files: u64,
    /// Bytes that were read of these files.
    pub bytes: u64,
    /// The number of files to compare, where known.
    pub files_total: Option<u64>,
    /// The number of bytes to read, where known.
    pub bytes_total: Option<u64>,
}

/// The result of comparing a replica.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReplicaReport {
    /// The replica that was compared.
    pub replica: ReplicaId,
    /// Files that were compared.
    pub files: u64,
    /// Files whose copies are intact.
    pub intact: u64,
    /// Files that people have withdrawn from the replica.
    pub withdrawn: u64,
    /// Files that the replica was never given: of all, if it must have every file; of those that were asked for by
    /// name, in any case. They are not among those that were compared.
    pub not_stored: u64,
    /// The number of anomalies of each kind.
    pub anomalies: BTreeMap<AnomalyClass, u64>,
    /// The parts of the replica that could not be asked. A report with gaps is partial.
    pub gaps: Vec<Gap>,
}
