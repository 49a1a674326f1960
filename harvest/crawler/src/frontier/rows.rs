//! The rows of a frontier as they are stored.

use archive_db::Value;
use harvest_policy::account::QueueAccount;
use serde::{Deserialize, Serialize};

/// How urgent a URI is within its queue (Heritrix' scheduling classes).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Urgency {
    /// Others cannot be fetched before it: `dns:`, robots.txt.
    Prerequisite,
    /// Before the others, because a person says so.
    High,
    /// Redirects, and the parts of a page that was just fetched.
    Medium,
    /// All others.
    Normal,
}

/// A URI to be fetched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrontierUri {
    /// The URI.
    pub uri: String,
    /// The letters of the hops from its seed.
    pub hops: String,
    /// The URI that led here.
    pub via: Option<String>,
    /// The seed that all of it began with.
    pub source: Option<String>,
    /// How urgent it is.
    pub urgency: Urgency,
    /// The number of tries so far.
    pub tries: u32,
}

impl Value for FrontierUri {}

/// The row of a queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct QueueRow {
    pub(super) number: u32,
    pub(super) account: AccountRow,
    pub(super) is_retired: bool,
}

impl Value for QueueRow {}

/// The account of a queue, as it is stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct AccountRow {
    session: u64,
    total: u64,
    successes: u64,
    bytes: u64,
    errors: u64,
}

/// One number of the frontier as a whole, under its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StateRow(pub(super) Vec<u8>);

impl Value for StateRow {}

/// That a URI was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SeenRow;

impl Value for SeenRow {}

impl From<AccountRow> for QueueAccount {
    fn from(row: AccountRow) -> Self {
        Self {
            session: row.session,
            total: row.total,
            successes: row.successes,
            bytes: row.bytes,
            errors: row.errors,
        }
    }
}

impl From<QueueAccount> for AccountRow {
    fn from(account: QueueAccount) -> Self {
        Self {
            session: account.session,
            total: account.total,
            successes: account.successes,
            bytes: account.bytes,
            errors: account.errors,
        }
    }
}
