//! The rows of the tables that the admin data themselves read: files, trail, nodes, and what is retired.
//!
//! Plain values. The room of each table says when its rows are written; those of requests and anomalies are in theirs.

use archive_db::value::decode_body;
use archive_db::{InvalidValue, Value};
use archive_decisions::store::FileRecord;
use archive_model::FileName;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// One file, as it was decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdminRow {
    /// The record of how it stands in every replica.
    pub record: FileRecord,
    /// The depositor of it: `role/name`.
    pub depositor: String,
    /// The signed admission, a DSSE envelope in JSON; none until all bytes have passed.
    pub admission: Option<String>,
}

impl Value for AdminRow {}

/// One line of the audit trail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditLine {
    /// When.
    pub at: Timestamp,
    /// Who, as `role/name`; the repository itself, where nobody asked.
    pub who: String,
    /// Which file; none where no single one is meant.
    pub file: Option<FileName>,
    /// The act, in a few words.
    pub what: String,
}

impl Value for AuditLine {}

/// Taken out of service for good.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retired {
    /// When.
    pub at: Timestamp,
    /// The person who asked for it, as `role/name`.
    pub by: String,
    /// The request and its reason.
    pub why: String,
    /// Whether every file has been told.
    pub emptied: bool,
}

impl Value for Retired {}

/// The row of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeRow {
    /// Whether people took it out of service, when and why.
    pub retired: Option<Retired>,
}

impl Value for NodeRow {
    const VERSION: u8 = 2;

    /// In version 1 there was nothing to say of a node.
    fn upgrade(version: u8, body: &[u8]) -> Result<Self, InvalidValue> {
        match version {
            1 => decode_body(body).map(|()| Self::default()),
            _ => Err(InvalidValue::Version {
                found: version,
                written: Self::VERSION,
            }),
        }
    }
}
