//! Tests of the comparison: every combination of read and present files; manifests that are cut, disordered or foreign.

use std::collections::BTreeMap;

use archive_decisions::store::{Content, FileRecord, NamePhase, ReplicaRecord};
use archive_ledger::admin::Admin;
use archive_model::{Digests, NameList, NamePattern, ReplicaKind, ReplicaState, Root};

use super::*;

fn name(text: &str) -> FileName {
    FileName::new(text).unwrap()
}

fn replica(text: &str) -> ReplicaId {
    ReplicaId::new(text).unwrap()
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// Creates a file with copies: replica, state, since.
fn file(text: &str, copies: &[(&str, ReplicaState, i64)]) -> AdminRow {
    let copies = copies.iter().map(|(id, state, since)| {
        let mut copy = ReplicaRecord::started_record(ReplicaKind::Bitarchive, true, at(*since));
        copy.state = state.clone();
        copy.node = Some(NodeId::new("n").unwrap());
        (replica(id), copy)
    });
    let record = FileRecord {
        name: name(text),
        phase: NamePhase::Bound,
        upload: None,
        content: Some(Content {
            size: 1,
            root: Root::from_bytes([1; 32]),
            digests: Digests::default(),
        }),
        replicas: copies.collect::<BTreeMap<_, _>>(),
    };
    AdminRow {
        record,
        depositor: "harvester/h".to_owned(),
        admission: None,
    }
}

fn whole(text: &str) -> AdminRow {
    file(text, &[("one", ReplicaState::UploadCompleted, 5)])
}

fn about(files: &str) -> CompareScope {
    CompareScope {
        replica: replica("one"),
        selection: FileSelection::Pattern(NamePattern::parse(files).unwrap()),
        since: at(10),
    }
}

fn manifest(names: &[&str]) -> Vec<u8> {
    let mut lines = b"{\"job\":\"j\"}\n".to_vec();
    for name in names {
        lines.extend(line(name, 1, 1, 0));
    }
    lines
}

/// Returns a line of a manifest: root, size, failures.
fn line(name: &str, root: u8, size: u64, failures: u64) -> Vec<u8> {
    let root = Root::from_bytes([root; 32]);
    let text = format!(
        "{{\"file\":\"{name}\",\"root\":\"{root}\",\"size\":{size},\"node\":\"n\",\"failures\":{failures}}}\n"
    );
    text.into_bytes()
}

fn errors(names: &[&str]) -> Vec<u8> {
    let lines = names
        .iter()
        .map(|name| format!("{{\"file\":\"{name}\",\"kind\":\"x\"}}\n"));
    lines.collect::<String>().into_bytes()
}

type CompareResult = (Vec<String>, Vec<String>, u64);

/// Returns the files that nobody has read, the files of which other bytes were read, and the number of the latter that
/// had no failures before.
fn found(
    about: &CompareScope,
    manifest: &[u8],
    errors: &[u8],
    rows: Vec<AdminRow>,
) -> Result<CompareResult, CompareError> {
    let mut nobody = Vec::new();
    let mut other = Vec::new();
    let rows = rows.into_iter().map(|row| Ok(row.into()));
    let now = StandingSnapshot::default();
    let control = StopControl::default();
    let lists = Lists { manifest, errors };
    let count = find_unread(about, &now, lists, rows, &control, |finding| {
        match finding {
            ComparisonFinding::Unread(file, MissReason::Here) => nobody.push(file.name.to_string()),
            ComparisonFinding::Unread(file, missed) => panic!("{}: {missed:?}", file.name),
            ComparisonFinding::Other(read, content) => {
                other.push(format!("{}: {} {}", read.file, read.size, content.size));
            }
        }
        Ok(())
    })?;
    assert_eq!(usize::try_from(count.unread).unwrap(), nobody.len());
    Ok((nobody, other, count.failed))
}

fn run(
    about: &CompareScope,
    manifest: &[u8],
    rows: Vec<AdminRow>,
) -> Result<Vec<String>, CompareError> {
    let (nobody, other, failed) = found(about, manifest, b"", rows)?;
    assert_eq!((other.len(), failed), (0, 0));
    Ok(nobody)
}

/// Fails if, for any set of files and any manifest, a file is missed that was read, or one is not that was not.
#[test]
fn every_manifest_shows_its_missing_files() {
    let names = ["a", "b", "c", "d"];
    let some = |bits: usize| {
        let chosen = (0..4).filter(move |at| bits & (1 << at) != 0);
        chosen.map(|at| names[at]).collect::<Vec<_>>()
    };
    for there in 0..16 {
        for read in 0..16 {
            let rows = some(there).into_iter().map(whole).collect();
            let missed = run(&about(""), &manifest(&some(read)), rows).unwrap();
            assert_eq!(missed, some(there & !read), "{there} {read}");
        }
    }
}

/// Fails if a file that is in the list of errors counts twice, or a damaged list passes for a whole one.
#[test]
fn reported_file_is_not_reported_again() {
    let rows = || ["a", "b", "c", "d", "e"].map(whole).to_vec();
    let run = |errors: &[u8]| found(&about(""), &manifest(&["b"]), errors, rows());
    // `b` was read, with failures; `a` and `d` were not, as their nodes said.
    let (nobody, ..) = run(&errors(&["a", "b", "b", "d", "z"])).unwrap();
    assert_eq!(nobody, ["c", "e"]);
    for bad in [
        &errors(&["b", "a"])[..],
        b"{}\n",
        b"{\"file\":\"a\"}\n{\"fi",
    ] {
        let error = run(bad).unwrap_err().to_string();
        assert!(error.contains("of the list of errors"), "{error}");
    }
}

/// Fails if other bytes than those of the archive pass for the file, or its earlier failures count twice.
#[test]
fn file_with_other_bytes_is_reported() {
    let mut undecided = whole("d");
    undecided.record.content = None;
    // A copy that does not count in the replica, and was read nevertheless.
    let withdrawn = file(
        "e",
        &[("one", ReplicaState::Withdrawn("why".to_owned()), 5)],
    );
    let rows = vec![
        whole("a"),
        whole("b"),
        whole("c"),
        undecided,
        withdrawn,
        whole("f"),
    ];
    let mut read = manifest(&[]);
    for (name, root, size, failures) in [
        ("a", 2, 1, 0),
        ("b", 1, 7, 3),
        ("c", 1, 1, 2),
        ("d", 2, 7, 0),
        ("e", 2, 7, 0),
        ("not-known", 2, 7, 0),
    ] {
        read.extend(line(name, root, size, failures));
    }
    let (nobody, other, failed) = found(&about(""), &read, b"", rows).unwrap();
    assert_eq!(nobody, ["f"]);
    assert_eq!(other, ["a: 1 1", "b: 7 1", "e: 7 1"]);
    assert_eq!(failed, 2, "one had failed before");
}

/// Fails if a file is missed that the job need not read, or one is not that it must.
#[test]
fn only_selected_files_are_missed() {
    use ReplicaState::{DataUploaded, UploadCompleted, Withdrawn};
    let rows = vec![
        whole("a.warc"),
        file("b.warc", &[("two", UploadCompleted, 5)]),
        file("c.warc", &[("one", DataUploaded, 5)]),
        file("d.warc", &[("one", Withdrawn("why".to_owned()), 5)]),
        // Stored after the job began.
        file("e.warc", &[("one", UploadCompleted, 11)]),
        // Repaired after the job began, and in the archive before: it is known, and was read by nobody.
        file(
            "f.warc",
            &[("one", UploadCompleted, 11), ("two", UploadCompleted, 5)],
        ),
        whole("g.txt"),
    ];
    let missed = run(&about(r".*\.warc"), &manifest(&[]), rows).unwrap();
    assert_eq!(missed, ["a.warc", "f.warc"]);
}

/// Fails if a named file that nobody has read is passed over, whatever the archive knows of it, or one that was read,
/// or is reported already, is named again.
#[test]
fn each_named_file_is_read_or_missed() {
    use ReplicaState::{DataUploaded, UploadCompleted, Withdrawn};
    let mut undecided = whole("f");
    undecided.record.content = None;
    let rows = [
        whole("a"),
        whole("b"),
        whole("c"),
        // Stored after the job began.
        file("d", &[("one", UploadCompleted, 11)]),
        file("e", &[("two", UploadCompleted, 5)]),
        undecided,
        file("g", &[("one", DataUploaded, 5)]),
        file("h", &[("one", Withdrawn("why".to_owned()), 5)]),
        // A file that the job does not name.
        whole("y"),
    ];
    let directory = tempfile::tempdir().unwrap();
    let admin = Admin::init(directory.path()).unwrap();
    let mut changes = admin.begin_changes();
    for row in &rows {
        admin.put_row(&mut changes, row).unwrap();
    }
    admin.commit_changes(changes).unwrap();
    let ledger = JobLedger::open(admin).unwrap();
    let named = ["a", "b", "c", "d", "e", "f", "g", "h", "z"].map(name);
    let about = CompareScope {
        selection: FileSelection::Names(NameList::new(named.to_vec()).unwrap()),
        ..about("")
    };
    let read = manifest(&["a"]);
    let reported = errors(&["b"]);
    let lists = Lists {
        manifest: read.as_slice(),
        errors: reported.as_slice(),
    };
    let mut missed = Vec::new();
    let candidates = about.list_candidates(&ledger).unwrap();
    let now = StandingSnapshot::default();
    let count = find_unread(
        &about,
        &now,
        lists,
        candidates,
        &StopControl::default(),
        |finding| {
            match finding {
                ComparisonFinding::Unread(file, why) => missed.push((file.name.to_string(), why)),
                ComparisonFinding::Other(read, _) => panic!("{}", read.file),
            }
            Ok(())
        },
    );
    assert_eq!(count.unwrap().unread, 7);
    let counts = |copy: &AdminRow| {
        let one = replica("one");
        now.copy_counts(&one, &copy.record.replicas[&one])
    };
    assert!(counts(&rows[0]) && !counts(&rows[6]) && !counts(&rows[7]));
    let expected = [
        ("c", MissReason::Here),
        ("d", MissReason::Here),
        ("e", MissReason::Elsewhere),
        ("f", MissReason::Unknown),
        ("g", MissReason::Elsewhere),
        ("h", MissReason::Elsewhere),
        ("z", MissReason::Unknown),
    ];
    assert_eq!(missed, expected.map(|(name, why)| (name.to_owned(), why)));
}

/// Fails if a damaged manifest is read as if it were whole, so that its files count as unread.
#[test]
fn damaged_manifest_is_an_error() {
    let rows = || vec![whole("a"), whole("z")];
    let whole = manifest(&["b", "c"]);
    // Cut within a line: never a shorter manifest. Behind a line, the table knows its length.
    for cut in 0..whole.len() {
        let is_line = cut == 0 || whole[cut - 1] == b'\n';
        let outcome = run(&about(""), &whole[..cut], rows());
        assert_eq!(outcome.is_ok(), is_line, "{cut}");
    }
    for names in [["c", "b"], ["b", "b"]] {
        let error = run(&about(""), &manifest(&names), rows()).unwrap_err();
        assert!(error.to_string().contains("line 3"), "{error}");
    }
    let error = run(&about(""), b"{}\n{\"file\":7}\n", rows()).unwrap_err();
    assert!(error.to_string().contains("line 2"), "{error}");
    let mut long = manifest(&[]);
    long.extend(std::iter::repeat_n(b'x', 3 << 20));
    assert!(run(&about(""), &long, rows()).is_err());
}

/// Fails if a cancelled job searches on for unread files.
#[test]
fn stopped_comparison_ends() {
    let control = StopControl::default();
    control.stop(Stop::Cancelled);
    let rows = vec![Ok(whole("a").into())].into_iter();
    let outcome = find_unread(
        &about(""),
        &StandingSnapshot::default(),
        Lists {
            manifest: manifest(&[]).as_slice(),
            errors: &b""[..],
        },
        rows,
        &control,
        |_finding| Ok(()),
    );
    assert!(matches!(outcome, Err(CompareError::Stop(Stop::Cancelled))));
}
