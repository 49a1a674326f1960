//! Restoring from an export or from sidecars: what comes back, and what does not.

mod rows;

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use archive_decisions::store::NamePhase;
use archive_model::FileName;
use archive_proof::SigningKey;
use archive_proof::testing::{signing_key, trust_in};
use flate2::{Compression, write::GzEncoder};

use super::combine::{AdmissionRule, NameVerdict, Sighting};
use super::testing::{admission, archive, row, sighting, specs};
use super::*;
use crate::admin::{Admin, AdminRow};
use crate::audit::Trail;
use crate::audit_log::{AuditLog, LogOptions};
use crate::export::TablesExport;

struct RestoreScene {
    directory: tempfile::TempDir,
    rows: Vec<AdminRow>,
    trail: Vec<AuditLine>,
    export: Vec<u8>,
}

fn listing(admin: &Admin) -> Vec<AdminRow> {
    admin
        .list_files(None)
        .unwrap()
        .map(Result::unwrap)
        .collect()
}

fn trail(admin: &Admin, data: &Path) -> Vec<AuditLine> {
    let trail = Trail::read_trail(admin, &data.join("audit")).unwrap();
    trail.map(|entry| entry.unwrap().line).collect()
}

fn now() -> Timestamp {
    "2026-02-02T00:00:00Z".parse().unwrap()
}

impl RestoreScene {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let old = directory.path().join("old");
        let admin = archive(&old, 4);
        rows::furnish(&admin);
        let mut export = Vec::new();
        let writing = TablesExport {
            admin: &admin,
            log: &old.join("audit"),
            archive: "kb",
            time: "2026-02-01T00:00:00Z".parse().unwrap(),
            is_stopping: &|| false,
        };
        writing.write_export(&mut export).unwrap();
        archive_durable::replace_file(
            &directory.path().join("trust.json"),
            trust_in(&signing_key()).to_json().unwrap().as_bytes(),
        )
        .unwrap();
        Self {
            rows: listing(&admin),
            trail: trail(&admin, &old),
            directory,
            export,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Restores `export` into a directory of this name.
    fn restore(&self, data: &str, export: &[u8], skip: bool) -> Result<FromExport, RestoreError> {
        let file = self.path("export.jsonl");
        archive_durable::replace_file(&file, export).unwrap();
        let target = RestoreTarget {
            data: &self.path(data),
            archive: "kb",
            trust: &self.path("trust.json"),
        };
        from_export(target, &file, skip, now())
    }
}

/// Fails if an export and its restore lose a row or a line, or if a restore overwrites admin data.
#[test]
fn export_restores_listing_and_trail() {
    let world = RestoreScene::new();
    let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
    packer.write_all(&world.export).unwrap();
    for (data, bytes) in [
        ("plain", world.export.clone()),
        ("packed", packer.finish().unwrap()),
    ] {
        let report = world.restore(data, &bytes, false).unwrap();
        assert!(report.written && report.damaged.count == 0, "{report:?}");
        assert_eq!((report.files, report.nodes), (4, 2));
        let lines = world.trail.len();
        assert_eq!(report.audit, lines as u64);
        let admin = Admin::init(&world.path(data)).unwrap();
        assert_eq!(listing(&admin), world.rows);
        let said = trail(&admin, &world.path(data));
        assert_eq!(said[..lines], world.trail);
        assert!(said[lines].what.contains("restored"), "{said:?}");
        assert_eq!(said.len(), lines + 1);
        assert_eq!(admin.list_nodes(&"one".parse().unwrap()).unwrap().len(), 1);
        drop(admin);
        let again = world.restore(data, &bytes, true).unwrap_err();
        assert!(matches!(again, RestoreError::There(_)), "{again}");
    }
}

/// Fails if a restore loses lines that only the surviving log has, or accepts a log that contradicts the export.
#[test]
fn the_log_that_is_still_there_continues() {
    let world = RestoreScene::new();
    let log = |data: &str, lines: &[AuditLine]| {
        fs::create_dir(world.path(data)).unwrap();
        let at = world.path(data).join("audit");
        let admin = Admin::init(&world.path("rows")).unwrap();
        let mut log = AuditLog::open(&at, &admin, LogOptions::default(), &|| false).unwrap();
        log.append(&(0..).zip(lines.iter().cloned()).collect::<Vec<_>>())
            .unwrap();
    };
    let more = restored_line("kb", now(), "after the export".to_owned());
    let longer = [world.trail.clone(), vec![more]].concat();
    for (data, lines) in [("shorter", &world.trail[..2]), ("longer", &longer[..])] {
        log(data, lines);
        assert!(world.restore(data, &world.export, false).unwrap().written);
        let admin = Admin::init(&world.path(data)).unwrap();
        let said = trail(&admin, &world.path(data));
        let kept = lines.len().max(world.trail.len());
        assert_eq!(said[..kept], longer[..kept], "{data}");
        assert_eq!(said.len(), kept + 1, "{data}");
    }
    let mut other = world.trail.clone();
    other[1].who = "harvester/x".to_owned();
    log("other", &other);
    let error = world.restore("other", &world.export, true).unwrap_err();
    assert!(matches!(error, RestoreError::Log(_)), "{error}");
    assert!(!world.path("other").join("admin").try_exists().unwrap());
}

/// Fails if admin data are restored over a log without its last lines, which the stamp of the lost data names.
#[test]
fn log_shorter_than_its_stamp_is_refused() {
    let world = RestoreScene::new();
    let admin = Admin::init(&world.path("rows")).unwrap();
    let lines = || (0..).zip(world.trail.iter().cloned());
    let mut ends = vec![LogPosition::first_position()];
    for (number, line) in lines() {
        let mut position = ends[ends.len() - 1];
        position.chain.chain_line(number, &line).unwrap();
        ends.push(position);
    }
    let count = world.trail.len();
    let foreign = "0".repeat(64);
    for (data, has, stamped, head, is_good) in [
        ("whole", count, count, None, true),
        ("longer", count, count - 2, None, true),
        ("shorter", count - 1, count, None, false),
        ("other", count, count, Some(foreign), false),
    ] {
        let at = world.path(data).join("audit");
        fs::create_dir(world.path(data)).unwrap();
        let mut log = AuditLog::open(&at, &admin, LogOptions::default(), &|| false).unwrap();
        log.append(&lines().take(has).collect::<Vec<_>>()).unwrap();
        let chain = ends[stamped].chain;
        let audit = stamp::LogEnd {
            lines: chain.next(),
            head: head.unwrap_or_else(|| chain.previous().to_string()),
        };
        let content = stamp::StampContent {
            sequence: 7,
            database: Some("lost".to_owned()),
            audit: Some(audit),
        };
        let text = serde_json::to_vec(&content).unwrap();
        archive_durable::StampWriter::begin(&world.path(data).join(STAMP), &text).unwrap();
        let restored = world.restore(data, &world.export, true);
        if is_good {
            assert!(restored.unwrap().written, "{data}");
        } else {
            let is_refused = matches!(restored, Err(RestoreError::Log(_)));
            assert!(is_refused, "{data}: {restored:?}");
            assert!(!world.path(data).join("admin").try_exists().unwrap());
        }
    }
}

/// Fails if a damaged export is restored without a request for that, or a forged row in any case.
#[test]
fn damaged_export_is_restored_only_on_request() {
    let world = RestoreScene::new();
    let length = world.export.len();
    let mut tried = 0;
    for byte in (0..length).step_by(37) {
        let mut changed = world.export.clone();
        changed[byte] ^= 1;
        match world.restore("no", &changed, false) {
            Ok(report) => {
                assert!(
                    report.damaged.count > 0 && !report.written,
                    "byte {byte}: {report:?}"
                );
            }
            Err(error) => assert!(
                matches!(error, RestoreError::Export { .. }),
                "{byte}: {error}"
            ),
        }
        assert!(!world.path("no").join("admin").try_exists().unwrap());
        tried += 1;
    }
    assert!(tried > 100);
    for cut in (0..length).step_by(211) {
        match world.restore("no", &world.export[..cut], false) {
            Ok(report) => assert!(report.damaged.count > 0 && !report.written, "cut at {cut}"),
            Err(error) => assert!(
                matches!(error, RestoreError::Export { .. }),
                "{cut}: {error}"
            ),
        }
    }
    // A root that nobody signed, and a line of the trail that was changed.
    let text = String::from_utf8(world.export.clone()).unwrap();
    let forged: String = text
        .split_inclusive('\n')
        .map(|line| match line {
            _ if line.contains("\"file-2\"") && line.starts_with("{\"file\"") => {
                line.replace(&"03".repeat(32), &"09".repeat(32))
            }
            _ if line.starts_with("{\"audit\":{\"number\":1,") => "{\"audit\":{}}\n".to_owned(),
            _ => line.to_owned(),
        })
        .collect();
    let report = world.restore("no", forged.as_bytes(), false).unwrap();
    assert!(!report.written);
    assert!(
        report.damaged.list[0].what.starts_with("file-2"),
        "{report:?}"
    );
    let report = world.restore("skipped", forged.as_bytes(), true).unwrap();
    assert!(report.written && report.files == 3, "{report:?}");
    let admin = Admin::init(&world.path("skipped")).unwrap();
    let names: Vec<_> = listing(&admin)
        .into_iter()
        .map(|row| row.record.name.to_string())
        .collect();
    assert_eq!(names, ["file-0", "file-1", "file-3"]);
    let said = trail(&admin, &world.path("skipped"));
    assert_eq!(
        (said[0].clone(), said[2].clone()),
        (world.trail[0].clone(), world.trail[2].clone())
    );
    assert!(said[1].what.contains("damaged"), "{said:?}");
}

/// Fails if an export of another archive or format is restored, even where damage is accepted.
#[test]
fn export_of_another_archive_or_format_is_refused() {
    let world = RestoreScene::new();
    let text = String::from_utf8(world.export.clone()).unwrap();
    for (from, to) in [
        ("\"archive\":\"kb\"", "\"archive\":\"sb\""),
        ("holdfast-admin-export/2", "holdfast-admin-export/1"),
        ("holdfast-admin-export/2", "holdfast-admin-export/3"),
    ] {
        let error = world
            .restore("no", text.replacen(from, to, 1).as_bytes(), true)
            .unwrap_err();
        assert!(matches!(error, RestoreError::Export { .. }), "{error}");
    }
    world.restore("no", b"", true).unwrap_err();
    world
        .restore("no", &[0x1f, 0x8b, 1, 2, 3], true)
        .unwrap_err();
}

fn combine(name: &str, sightings: &[Sighting]) -> NameVerdict {
    let trust = trust_in(&signing_key());
    let specs = specs();
    let rule = AdmissionRule {
        archive: "kb",
        trust: &trust,
        specs: &specs,
        now: now(),
    };
    rule.combine_admissions(&FileName::new(name).unwrap(), sightings, &[])
}

/// Fails if an admission of an unknown key or of another name restores a file, or outweighs a good one.
#[test]
fn only_admissions_of_trusted_keys_and_name_count() {
    let good = admission("a", 1).sign(&signing_key()).unwrap();
    let forged = admission("a", 2)
        .sign(&SigningKey::from_seed([9; 32]))
        .unwrap();
    let elsewhere = admission("b", 2).sign(&signing_key()).unwrap();
    let bad = [
        forged.as_str(),
        elsewhere.as_str(),
        "",
        "{",
        &good.as_str().replace('A', "B"),
    ];
    for bad in bad {
        assert!(
            matches!(
                combine("a", &[sighting("one", bad)]),
                NameVerdict::Unsigned(_)
            ),
            "{bad}"
        );
        let both = [sighting("one", bad), sighting("two", good.as_str())];
        let NameVerdict::File(row) = combine("a", &both) else {
            panic!("{bad}")
        };
        assert_eq!(row.admission.as_deref(), Some(good.as_str()));
        assert_eq!(row.record.phase, NamePhase::Bound);
        let open: Vec<_> = row
            .record
            .open_replicas()
            .map(|(id, _)| id.as_str())
            .collect();
        assert_eq!(open, ["one"]);
    }
    assert_eq!(
        combine(
            "a",
            &["one", "two"].map(|replica| sighting(replica, good.as_str()))
        ),
        NameVerdict::File(Box::new(row("a", 1)))
    );
}

/// Fails if the program chooses between two good admissions of a name, or does not say where each lies.
#[test]
fn admissions_that_contradict_each_other_are_for_people() {
    let [one, two] = [1, 2].map(|content| admission("a", content).sign(&signing_key()).unwrap());
    let both = [sighting("one", one.as_str()), sighting("two", two.as_str())];
    let NameVerdict::Contradicting(what) = combine("a", &both) else {
        panic!("one of two was believed")
    };
    assert!(
        what.contains("one/one-1") && what.contains(&"02".repeat(32)),
        "{what}"
    );
}

/// Fails if a later admission of the same content replaces the first, or a file without a copy is left out.
#[test]
fn first_admission_counts_and_file_gone_is_restored() {
    let first = admission("a", 1).sign(&signing_key()).unwrap();
    let later = archive_proof::Admission {
        admitted: "2026-01-05T00:00:00Z".parse().unwrap(),
        ..admission("a", 1)
    };
    let later = later.sign(&signing_key()).unwrap();
    let gone = Sighting {
        is_there: false,
        ..sighting("one", later.as_str())
    };
    let NameVerdict::File(row) = combine("a", &[gone, sighting("two", first.as_str())]) else {
        panic!("left out")
    };
    assert_eq!(row.admission.as_deref(), Some(first.as_str()));
    assert_eq!(
        row.record.phase,
        NamePhase::Complete,
        "the check finds it missing"
    );
}

/// Fails if a removal of which only an attic tells looks as if two persons were known to have decided it, what was
/// removed is copied again, what came back or what another replica removed is withdrawn, or a name is free again
/// because its last copies were removed.
#[test]
fn removal_known_to_attics_stays_unproven() {
    let good = admission("a", 1).sign(&signing_key()).unwrap();
    let other = admission("a", 2).sign(&signing_key()).unwrap();
    let removal = |replica: &str, admission: &str| {
        let Sighting { node, volume, .. } = sighting(replica, admission);
        super::combine::RemovedCopy {
            replica: replica.parse().unwrap(),
            node,
            volume,
            name: FileName::new("a").unwrap(),
            at: now(),
            approval: archive_model::Approval {
                request: "r1".to_owned(),
                asked_by: "custodian/anna".to_owned(),
                approved_by: "custodian/bert".to_owned(),
            },
            why: "r1: law".to_owned(),
            admission: admission.to_owned(),
        }
    };
    let states = |sightings: &[Sighting], removals: &[super::combine::RemovedCopy]| {
        let trust = trust_in(&signing_key());
        let specs = specs();
        let rule = AdmissionRule {
            archive: "kb",
            trust: &trust,
            specs: &specs,
            now: now(),
        };
        match rule.combine_admissions(&FileName::new("a").unwrap(), sightings, removals) {
            NameVerdict::File(row) => {
                assert!(row.record.content.is_some() && row.admission.is_some());
                let replicas = row.record.replicas.values();
                let states = replicas.map(|copy| copy.state.to_string());
                // A removal that only an attic reports never looks like one that is known.
                let states = states.map(|state| match state.split_once("withdrawn: unproven") {
                    Some((_, why)) if why.contains("r1: law (by custodian/anna") => {
                        "unproven r1".into()
                    }
                    Some(_) => "unproven".to_owned(),
                    None => state,
                });
                let states: Vec<_> = states.collect();
                format!("{:?}: {}", row.record.phase, states.join(", "))
            }
            NameVerdict::Contradicting(_) => "contradicting".to_owned(),
            NameVerdict::Unsigned(_) => "unsigned".to_owned(),
        }
    };
    let good = good.as_str();
    let other = other.as_str();
    let two = sighting("two", good);
    let removed = [removal("one", good)];
    assert_eq!(
        states(std::slice::from_ref(&two), &removed),
        "Complete: unproven r1, upload completed"
    );
    assert_eq!(
        states(std::slice::from_ref(&two), &[removal("one", other)]),
        "Complete: unproven r1, upload completed",
        "what was removed decides nothing where there are copies"
    );
    assert_eq!(
        states(&[sighting("one", good), two], &removed),
        "Complete: upload completed, upload completed",
        "it came back"
    );
    assert_eq!(states(&[], &removed), "Complete: unproven r1, unproven");
    assert_eq!(
        states(&[], &[removal("one", good), removal("two", good)]),
        "Complete: unproven r1, unproven r1"
    );
    assert_eq!(
        states(&[], &[removal("one", good), removal("two", other)]),
        "contradicting"
    );
    assert_eq!(states(&[], &[removal("one", "")]), "unsigned");
}
