//! The rows of a frontier as they are stored.

use std::net::IpAddr;

use archive_db::TableValue;
use harvest_policy::account::QueueAccount;
use harvest_policy::hops::{Hop, HopPath};
use serde::{Deserialize, Serialize};

/// The urgency of a URI within its queue (Heritrix' scheduling classes).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Urgency {
    /// Others cannot be fetched before it: `dns:`, robots.txt.
    Prerequisite,
    /// Before the others, because a person says so.
    High,
    /// Redirects, and the parts of a page that was just fetched.
    Medium,
    /// All other URIs.
    Normal,
    /// URIs whose last try has failed: after all others.
    Retry,
    /// URIs of a pattern under quarantine that are fetched all the same, while its host's trial lasts.
    Trial,
}

/// A URI to be fetched.
///
/// ```
/// use harvest_crawler::frontier::{FrontierUri, Urgency};
/// use harvest_policy::hops::Hop;
///
/// let page = FrontierUri {
///     uri: "http://example.dk/a".to_owned(),
///     hops: "LL".to_owned(),
///     via: None,
///     source: None,
///     urgency: Urgency::Normal,
///     tries: 0,
/// };
/// assert_eq!(page.hops_to(Hop::Embed), "LLE");
/// assert!(Urgency::Prerequisite < page.urgency);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrontierUri {
    /// The URI as text.
    pub uri: String,
    /// The letters of the hops from the seed.
    pub hops: String,
    /// The URI that led to this one.
    pub via: Option<String>,
    /// The seed that the way to this URI began with.
    pub source: Option<String>,
    /// The urgency of the URI within its queue.
    pub urgency: Urgency,
    /// The number of tries so far.
    pub tries: u32,
}

impl FrontierUri {
    /// Returns the letters of the hops to what this URI leads to by a hop.
    pub fn hops_to(&self, hop: Hop) -> String {
        let seed = HopPath::seed_path().to_string();
        let before = Some(self.hops.as_str()).filter(|hops| *hops != seed);
        format!("{}{}", before.unwrap_or_default(), hop.letter())
    }
}

impl TableValue for FrontierUri {}

/// The row of a queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct QueueRow {
    pub(super) number: u32,
    pub(super) account: AccountRow,
    pub(super) is_retired: bool,
}

impl TableValue for QueueRow {}

/// The account of a queue, as it is stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct AccountRow {
    session: u64,
    total: u64,
    successes: u64,
    bytes: u64,
    errors: u64,
}

/// The rest of a queue that outlives its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct QueueRestRow {
    /// The millisecond since 1970 until which it rests.
    pub(super) until: i64,
}

impl TableValue for QueueRestRow {}

/// The limits that a person has given a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct BudgetRow {
    pub(super) objects: Option<u64>,
    pub(super) bytes: Option<u64>,
}

impl TableValue for BudgetRow {}

/// The random key of a frontier, which its hashes are made with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SeenKeyRow(pub(super) [u8; 32]);

impl TableValue for SeenKeyRow {}

/// A place in the files that a crawl writes: all before it is recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedPlace {
    /// The number of the archive file, from 1; 0 before the first one.
    pub serial: u32,
    /// The name that the archive file gets when it is closed; empty before the first one.
    pub file: String,
    /// The length of the archive file in bytes.
    pub file_length: u64,
    /// The length of the crawl log in bytes.
    pub log_length: u64,
}

impl TableValue for RecordedPlace {}

/// The answer of a host to a question that goes before every URI of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PrerequisiteRow {
    /// The addresses of a host, from `dns:HOST`.
    Addresses {
        /// The addresses in the order of the answer; empty if there is no such host.
        addresses: Vec<IpAddr>,
        /// The second since 1970 from which they are asked for again.
        until: i64,
    },
    /// The robots.txt of a host, from its URI.
    Robots {
        /// The status of the response; `None`: the host could not be reached.
        status: Option<u16>,
        /// The file, as much of it as is read.
        file: Vec<u8>,
        /// The second since 1970 from which it is asked for again.
        until: i64,
    },
}

impl TableValue for PrerequisiteRow {}

/// A URI that waits for its pattern to be freed from quarantine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct HeldUriRow {
    pub(super) queue: String,
    pub(super) uri: FrontierUri,
    pub(super) cost: u8,
}

impl TableValue for HeldUriRow {}

/// An outcome that a power cut may take back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PendingOutcomeRow {
    /// The place behind the records and the line of the outcome.
    pub(super) place: RecordedPlace,
    pub(super) undo: UndoRow,
}

impl TableValue for PendingOutcomeRow {}

/// The steps by which an outcome is taken back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum UndoRow {
    /// The URI goes back to where it was, and its queue has the account from before.
    Uri {
        key: (u32, u8, u8, u64),
        uri: FrontierUri,
        /// The place that the URI went back to by itself.
        requeued: Option<(u32, u8, u8, u64)>,
        account: AccountRow,
    },
    /// The answer of the host is forgotten.
    Prerequisite(String),
}

/// The empty row of a URI that was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SeenUriRow;

impl TableValue for SeenUriRow {}

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
