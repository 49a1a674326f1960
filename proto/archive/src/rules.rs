//! The rules of which role may make which call: one table for every server of the archive. `archive/README.md` lists
//! the roles.
//!
//! An RPC that is not listed here is refused to everyone, and a server that offers it does not start.

use archive_rpc::{Role, Rules};

/// Returns the rules of `holdfast.archive.v1`.
///
/// A role that includes another (an officer is a reader) need not be named beside it.
pub fn archive_rules() -> Rules {
    Rules::new()
        .allow_call("/holdfast.archive.v1.Ingest/Store", &[Role::Harvester])
        .allow_call(
            "/holdfast.archive.v1.Ingest/Stat",
            &[Role::Harvester, Role::Reader, Role::Custodian],
        )
        .allow_call(
            "/holdfast.archive.v1.Access/Get",
            &[Role::Reader, Role::Index, Role::Viewer],
        )
        .allow_call(
            "/holdfast.archive.v1.Access/List",
            &[Role::Reader, Role::Index, Role::Viewer],
        )
        .allow_call("/holdfast.archive.v1.Access/Changes", &[Role::Index])
        .allow_call(
            "/holdfast.archive.v1.Access/Status",
            &[Role::Reader, Role::Operator],
        )
        .allow_call("/holdfast.archive.v1.Replica/Heartbeat", &[Role::Node])
        .allow_call("/holdfast.archive.v1.Replica/Place", &[Role::Repository])
        .allow_call("/holdfast.archive.v1.Replica/Locate", &[Role::Repository])
        .allow_call("/holdfast.archive.v1.Replica/Listing", &[Role::Repository])
        .allow_call(
            "/holdfast.archive.v1.Replica/ReplicaState",
            &[Role::Repository],
        )
        .allow_call("/holdfast.archive.v1.Node/Upload", &[Role::Repository])
        .allow_call("/holdfast.archive.v1.Node/Read", &[Role::Repository])
        .allow_call(
            "/holdfast.archive.v1.Node/Find",
            &[Role::Repository, Role::Monitor],
        )
        .allow_call(
            "/holdfast.archive.v1.Node/Files",
            &[Role::Repository, Role::Monitor],
        )
        .allow_call(
            "/holdfast.archive.v1.Node/NodeState",
            &[Role::Repository, Role::Monitor],
        )
        .allow_call("/holdfast.archive.v1.Node/Verify", &[Role::Repository])
        .allow_call("/holdfast.archive.v1.Node/Mend", &[Role::Repository])
        .allow_call("/holdfast.archive.v1.Node/Scrub", &[Role::Repository])
        .allow_call("/holdfast.archive.v1.Node/SetVolume", &[Role::Repository])
        .allow_call("/holdfast.archive.v1.Node/SetMode", &[Role::Repository])
        .allow_call("/holdfast.archive.v1.Node/Attic", &[Role::Repository])
        .allow_call("/holdfast.archive.v1.Node/PutAside", &[Role::Repository])
        .allow_call("/holdfast.archive.v1.Node/RestoreItem", &[Role::Repository])
        .allow_call("/holdfast.archive.v1.Node/Purge", &[Role::Repository])
        .allow_call("/holdfast.archive.v1.Node/Adopt", &[Role::Repository])
        .allow_call("/holdfast.archive.v1.Node/Admissions", &[Role::Repository])
        .allow_call(
            "/holdfast.archive.v1.Access/Salvage",
            &[Role::Reader, Role::Index, Role::Viewer],
        )
        .allow_call(
            "/holdfast.archive.v1.Access/Receipt",
            &[Role::Harvester, Role::Reader],
        )
        .allow_call("/holdfast.archive.v1.Preservation/Check", &[Role::Officer])
        .allow_call(
            "/holdfast.archive.v1.Preservation/Anomalies",
            &[Role::Officer, Role::Custodian, Role::Operator],
        )
        .allow_call("/holdfast.archive.v1.Preservation/Repair", &[Role::Officer])
        .allow_call(
            "/holdfast.archive.v1.Preservation/Scrubs",
            &[Role::Officer, Role::Operator],
        )
        .allow_call(
            "/holdfast.archive.v1.Preservation/Replace",
            &[Role::Officer],
        )
        .allow_call("/holdfast.archive.v1.Preservation/Adopt", &[Role::Officer])
        .allow_call(
            "/holdfast.archive.v1.Preservation/Attics",
            &[Role::Officer, Role::Custodian],
        )
        .allow_call(
            "/holdfast.archive.v1.Preservation/Restore",
            &[Role::Officer],
        )
        // The repository decides for each act which roles may ask for it, and approve it.
        .allow_call(
            "/holdfast.archive.v1.Preservation/Ask",
            &[Role::Custodian, Role::Officer, Role::Operator],
        )
        .allow_call(
            "/holdfast.archive.v1.Preservation/Requests",
            &[Role::Custodian, Role::Officer, Role::Operator],
        )
        .allow_call(
            "/holdfast.archive.v1.Preservation/Approve",
            &[Role::Custodian, Role::Officer],
        )
        .allow_call(
            "/holdfast.archive.v1.Preservation/Withdraw",
            &[Role::Custodian, Role::Officer, Role::Operator],
        )
        .allow_call(
            "/holdfast.archive.v1.Preservation/Volume",
            &[Role::Operator],
        )
        .allow_call("/holdfast.archive.v1.Preservation/Node", &[Role::Operator])
        .allow_call(
            "/holdfast.archive.v1.Preservation/Bootstrap",
            &[Role::Operator],
        )
        .allow_call("/holdfast.archive.v1.Preservation/Audit", &[Role::Officer])
        .allow_call(
            "/holdfast.archive.v1.Preservation/Export",
            &[Role::Operator],
        )
        .allow_call(
            "/holdfast.archive.v1.Preservation/NotifyTest",
            &[Role::Operator],
        )
        .allow_call(
            "/holdfast.archive.v1.Batch/BatchJobs",
            &[Role::Researcher, Role::Index],
        )
        .allow_call(
            "/holdfast.archive.v1.Batch/BatchSubmit",
            &[Role::Researcher, Role::Index],
        )
        .allow_call(
            "/holdfast.archive.v1.Batch/BatchList",
            &[Role::Researcher, Role::Operator, Role::Index],
        )
        .allow_call(
            "/holdfast.archive.v1.Batch/BatchFind",
            &[Role::Researcher, Role::Operator, Role::Index],
        )
        // A job of another caller is refused by the repository, job by job.
        .allow_call(
            "/holdfast.archive.v1.Batch/BatchCancel",
            &[Role::Researcher, Role::Operator, Role::Index],
        )
        .allow_call(
            "/holdfast.archive.v1.Batch/BatchOutput",
            &[Role::Researcher, Role::Index],
        )
        .allow_call("/holdfast.archive.v1.Node/RunBatch", &[Role::Repository])
        .allow_call("/holdfast.archive.v1.Node/ReduceBatch", &[Role::Repository])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if an RPC has no rule, or a rule no RPC.
    #[test]
    fn rules_and_rpcs_match_each_other() {
        archive_rpc::testing::check_rules(&archive_rules(), crate::DESCRIPTORS);
    }
}
