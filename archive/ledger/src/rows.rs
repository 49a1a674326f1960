//! The rows of the tables that the admin data themselves read: files, trail, nodes, and what is retired.
//!
//! Plain values. The room of each table says when its rows are written; those of requests and anomalies are in theirs.

use archive_db::TableValue;
use archive_decisions::store::FileRecord;
use archive_model::FileName;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The row of a file, with what was decided about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdminRow {
    /// The record of the file, with its state in every replica.
    pub record: FileRecord,
    /// The depositor of the file, as `role/name`.
    pub depositor: String,
    /// The signed admission, a DSSE envelope in JSON; `None` until all bytes have passed.
    pub admission: Option<String>,
}

impl TableValue for AdminRow {}

/// A line of the audit trail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditLine {
    /// The time of the act.
    pub at: Timestamp,
    /// The person or part that acted, as `role/name`; the repository itself, if nobody asked.
    pub who: String,
    /// The file of the act; `None` if no single file is meant.
    pub file: Option<FileName>,
    /// The act, in a few words.
    pub what: String,
}

impl TableValue for AuditLine {}

/// The retirement of a replica, node or volume: when, by whom and why it was permanently taken out of service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retirement {
    /// The time of the retirement.
    pub at: Timestamp,
    /// The person who asked to retire it, as `role/name`.
    pub by: String,
    /// The request and its reason.
    pub why: String,
    /// Whether the rows of all files have changed.
    pub emptied: bool,
}

impl TableValue for Retirement {}

/// The row of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeRow {
    /// When and why people took the node out of service; `None` if it is in service.
    pub retired: Option<Retirement>,
}

impl TableValue for NodeRow {
    const VERSION: u8 = 2;
}
