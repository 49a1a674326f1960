//! The roles that may call each RPC, written down a second time, without the table that servers use.
//!
//! A mistake in the rules is seen only by somebody who does not read them. A new RPC fails the walk until it stands
//! here.

use archive_rpc::Role;
use archive_rpc::Role::{
    Custodian, Harvester, Index, Monitor, Node, Officer, Operator, Reader, Repository, Researcher,
    Viewer,
};

/// Every RPC, with every role that may call it. Researchers and officers are readers too.
const TABLE: &[(&str, &[Role])] = &[
    ("Ingest/Store", &[Harvester]),
    (
        "Ingest/Stat",
        &[Harvester, Reader, Researcher, Officer, Custodian],
    ),
    ("Access/Get", &[Reader, Researcher, Officer, Index, Viewer]),
    ("Access/List", &[Reader, Researcher, Officer, Index, Viewer]),
    (
        "Access/Salvage",
        &[Reader, Researcher, Officer, Index, Viewer],
    ),
    ("Access/Receipt", &[Harvester, Reader, Researcher, Officer]),
    // A part that keeps something beside the archive follows it; people list.
    ("Access/Changes", &[Index]),
    ("Access/Status", &[Reader, Researcher, Officer, Operator]),
    // A node speaks for itself; everything else is asked by the repository, listings also by the foreman.
    ("Replica/Heartbeat", &[Node]),
    ("Replica/Place", &[Repository]),
    ("Replica/Locate", &[Repository]),
    ("Replica/Listing", &[Repository]),
    ("Replica/ReplicaState", &[Repository]),
    ("Node/Upload", &[Repository]),
    ("Node/Read", &[Repository]),
    ("Node/Find", &[Repository, Monitor]),
    ("Node/Files", &[Repository, Monitor]),
    ("Node/NodeState", &[Repository, Monitor]),
    ("Node/Verify", &[Repository]),
    ("Node/Mend", &[Repository]),
    ("Node/Scrub", &[Repository]),
    ("Node/SetVolume", &[Repository]),
    ("Node/SetMode", &[Repository]),
    ("Node/Attic", &[Repository]),
    ("Node/PutAside", &[Repository]),
    ("Node/RestoreItem", &[Repository]),
    ("Node/Purge", &[Repository]),
    ("Node/Adopt", &[Repository]),
    ("Node/Admissions", &[Repository]),
    ("Preservation/Check", &[Officer]),
    // Custodians see what they are to accept, operators what is wrong with their machines.
    ("Preservation/Anomalies", &[Officer, Custodian, Operator]),
    ("Preservation/Repair", &[Officer]),
    // An operator sees how far scrubs are, and orders nothing: see `only_an_officer_orders_scrubs`.
    ("Preservation/Scrubs", &[Officer, Operator]),
    ("Preservation/Replace", &[Officer]),
    ("Preservation/Adopt", &[Officer]),
    // Custodians see what they are to purge.
    ("Preservation/Attics", &[Officer, Custodian]),
    ("Preservation/Restore", &[Officer]),
    // Each act has its own rule for who may ask and who may approve.
    ("Preservation/Ask", &[Custodian, Officer, Operator]),
    ("Preservation/Requests", &[Custodian, Officer, Operator]),
    ("Preservation/Approve", &[Custodian, Officer]),
    ("Preservation/Withdraw", &[Custodian, Officer, Operator]),
    ("Preservation/Volume", &[Operator]),
    ("Preservation/Node", &[Operator]),
    ("Preservation/Bootstrap", &[Operator]),
    ("Preservation/Audit", &[Officer]),
    ("Preservation/Export", &[Operator]),
    ("Preservation/NotifyTest", &[Operator]),
    // A job runs from the researcher to the repository, its monitor, and the nodes: each speaks to the next one only.
    // Operators see what loads their machines, and end it. The index runs jobs as a researcher does, in its own class.
    ("Batch/BatchJobs", &[Researcher, Index]),
    ("Batch/BatchSubmit", &[Researcher, Index]),
    ("Batch/BatchList", &[Researcher, Operator, Index]),
    ("Batch/BatchFind", &[Researcher, Operator, Index]),
    ("Batch/BatchCancel", &[Researcher, Operator, Index]),
    ("Batch/BatchOutput", &[Researcher, Index]),
    ("Node/RunBatch", &[Repository]),
    ("Node/ReduceBatch", &[Repository]),
];

/// Every RPC of the index. Looking captures up is reading; what changes the index, or takes all of it, is for
/// operators.
const OF_INDEX: &[(&str, &[Role])] = &[
    ("Captures/Query", &[Reader, Researcher, Officer, Viewer]),
    ("Captures/Status", &[Operator]),
    ("Captures/Retry", &[Operator]),
    ("Captures/Rebuild", &[Operator]),
    ("Captures/Import", &[Operator]),
    ("Captures/Export", &[Operator]),
];

/// RPCs, each with the roles that may call it.
type RoleTable = &'static [(&'static str, &'static [Role])];

/// Each table, with what its paths begin with.
const TABLES: [(&str, RoleTable); 2] = [
    ("/holdfast.archive.v1.", TABLE),
    ("/holdfast.index.v1.", OF_INDEX),
];

/// Returns whether a role may call a path; `None` if nobody has written down who may.
pub(super) fn may(role: Role, path: &str) -> Option<bool> {
    let mut tables = TABLES.iter();
    let (rpc, table) =
        tables.find_map(|(begin, table)| Some((path.strip_prefix(begin)?, table)))?;
    let mut rows = table.iter();
    let (_, roles) = rows.find(|(own, _)| *own == rpc)?;
    Some(roles.contains(&role))
}

/// Returns every path in the tables.
pub(super) fn paths() -> impl Iterator<Item = String> {
    TABLES.iter().flat_map(|(begin, table)| {
        let rows = table.iter();
        rows.map(move |(rpc, _)| format!("{begin}{rpc}"))
    })
}
