//! Admin data for tests: rows with admissions that a key signed.

#![expect(
    clippy::missing_panics_doc,
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests"
)]

use std::path::Path;

use archive_decisions::store::ReplicaSpec;
use archive_model::{Digests, FileName, NodeId, ReplicaId, ReplicaKind, Root};
use archive_proof::Admission;
use archive_proof::testing::{signing_key, trust_in};

use super::combine::{AdmissionRule, NameVerdict, Sighting};
use crate::admin::{Admin, AdminRow, AuditLine};

/// Returns two bitarchive replicas, `one` and `two`, both required.
pub fn specs() -> Vec<ReplicaSpec> {
    let spec = |id: &str| ReplicaSpec {
        id: ReplicaId::new(id).unwrap(),
        kind: ReplicaKind::Bitarchive,
        required: true,
    };
    vec![spec("one"), spec("two")]
}

/// Returns an admission of `name`, whose size and root follow from `content`.
pub fn admission(name: &str, content: u8) -> Admission {
    Admission {
        size: u64::from(content),
        root: Root::from_bytes([content; 32]),
        digests: Digests {
            sha256: Some([content; 32]),
            md5: None,
        },
        ..archive_proof::testing::admission(name, b"")
    }
}

/// Returns a copy in `replica` with this signed admission beside it.
pub fn sighting(replica: &str, admission: &str) -> Sighting {
    Sighting {
        replica: ReplicaId::new(replica).unwrap(),
        node: NodeId::new(&format!("{replica}-1")).unwrap(),
        volume: format!("volume-{replica}").parse().unwrap(),
        stored: "2026-01-01T00:00:01Z".parse().unwrap(),
        is_there: true,
        admission: admission.to_owned(),
    }
}

/// Returns the row of a file that both replicas have.
pub fn row(name: &str, content: u8) -> AdminRow {
    let signed = admission(name, content).sign(&signing_key()).unwrap();
    let trust = trust_in(&signing_key());
    let specs = specs();
    let rule = AdmissionRule {
        archive: "kb",
        trust: &trust,
        specs: &specs,
        now: jiff::Timestamp::UNIX_EPOCH,
    };
    let sightings = ["one", "two"].map(|replica| sighting(replica, signed.as_str()));
    let verdict = rule.combine_admissions(&FileName::new(name).unwrap(), &sightings, &[]);
    let NameVerdict::File(row) = verdict else {
        panic!("{verdict:?}")
    };
    *row
}

/// Returns admin data with that number of files, a node, and a line of the trail for each file.
pub fn archive(data: &Path, files: u8) -> Admin {
    let admin = Admin::init(data).unwrap();
    for number in 0..files {
        let mut changes = admin.begin_changes();
        let row = row(&format!("file-{number}"), number + 1);
        admin.put_row(&mut changes, &row).unwrap();
        changes.note_line(AuditLine {
            at: "2026-01-01T00:00:00Z".parse().unwrap(),
            who: "harvester/h".to_owned(),
            file: Some(row.record.name.clone()),
            what: format!("stored\n{number}"),
        });
        admin.commit_changes(changes).unwrap();
    }
    let node = NodeId::new("one-1").unwrap();
    admin
        .add_nodes(&ReplicaId::new("one").unwrap(), &[node])
        .unwrap();
    admin
}
