//! An export says the same twice, and notices what changed.

use super::*;
use crate::admin::AuditLine;
use crate::restore::testing::{archive, row};

fn export(admin: &Admin, log: &Path, time: &str) -> (Vec<u8>, ExportSummary) {
    let mut out = Vec::new();
    let export = TablesExport {
        admin,
        log,
        archive: "kb",
        time: time.parse().unwrap(),
        is_stopping: &|| false,
    };
    let exported = export.write_export(&mut out).unwrap();
    (out, exported)
}

/// Fails if two exports of the same admin data differ, a table or the trail is left out, or the hash at the end is not
/// of all lines before it.
#[test]
fn export_is_json_lines_in_stable_order() {
    let directory = tempfile::tempdir().unwrap();
    let admin = archive(directory.path(), 3);
    let log = directory.path().join("audit");
    let (bytes, exported) = export(&admin, &log, "2026-01-01T00:00:00Z");
    let text = String::from_utf8(bytes.clone()).unwrap();
    let kinds: Vec<String> = text
        .lines()
        .map(|line| {
            let value: serde_json::Value = serde_json::from_str(line).unwrap();
            value.as_object().unwrap().keys().next().unwrap().clone()
        })
        .collect();
    let expected = [
        "header", "file", "file", "file", "node", "node", "audit", "audit", "audit", "end",
    ];
    assert_eq!(kinds, expected);
    assert_eq!(export(&admin, &log, "2026-01-01T00:00:00Z").0, bytes);
    let last = text.lines().last().unwrap();
    let before = text.len() - last.len() - 1;
    assert_eq!(
        blake3::hash(&bytes[..before]).to_hex().as_str(),
        exported.end.blake3
    );
}

/// Fails if the file and the line of the trail that an export leaves count as changes, so that each export causes the
/// next, or a new file counts as none.
#[test]
fn traces_of_an_export_are_not_changes() {
    let directory = tempfile::tempdir().unwrap();
    let admin = archive(directory.path(), 2);
    let log = directory.path().join("audit");
    let content = |time: &str| export(&admin, &log, time).1.content;
    let first = content("2026-01-01T00:00:00Z");
    let name = format!("{}20260101T000000Z.jsonl.gz", file_prefix("kb"));
    let own = row(&name, 7);
    let mut changes = admin.begin_changes();
    admin.put_row(&mut changes, &own).unwrap();
    changes.note_line(AuditLine {
        at: "2026-01-01T00:00:00Z".parse().unwrap(),
        who: "repository/kb".to_owned(),
        file: Some(own.record.name.clone()),
        what: "admin data exported".to_owned(),
    });
    admin.commit_changes(changes).unwrap();
    assert_eq!(content("2026-01-02T00:00:00Z"), first);
    let mut changes = admin.begin_changes();
    admin.put_row(&mut changes, &row("new", 8)).unwrap();
    admin.commit_changes(changes).unwrap();
    assert_ne!(content("2026-01-02T00:00:00Z"), first);
}
