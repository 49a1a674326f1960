//! Tests of collections: what is in them, and what becomes of rules that change.

use std::fs::OpenOptions;
use std::io::Write;

use super::*;

fn write(path: &Path, text: &str) {
    let mut options = OpenOptions::new();
    let file = options.write(true).create(true).truncate(true).open(path);
    file.unwrap().write_all(text.as_bytes()).unwrap();
}

fn capture(url_key: &str, file: &str) -> Capture {
    let mut capture = Capture::new(url_key, "20200101000000".parse().unwrap());
    capture.file = Some(file.to_owned());
    capture
}

fn verdict(collection: &ReplayCollection, key: &str) -> AccessVerdict {
    let visitor = Visitor::anonymous();
    let decision =
        collection.decide_access(&visitor, &capture(key, "a.warc"), Timestamp::UNIX_EPOCH);
    decision.verdict
}

fn with_rules(path: &Path) -> CollectionSettings {
    CollectionSettings {
        rules: vec![path.to_owned()],
        ..CollectionSettings::whole_archive()
    }
}

const BLOCKED: &str = "org,example)/ - {\"access\": \"block\"}\n";
const EXCLUDED: &str = "org,example)/ - {\"access\": \"exclude\"}\n";

/// Fails if a collection shows captures of files that it does not have, or hides its own.
#[test]
fn files_and_jobs_make_a_collection() {
    let settings = CollectionSettings {
        files: Some(r"news-\d+\.warc".to_owned()),
        jobs: BTreeSet::from([17]),
        ..CollectionSettings::whole_archive()
    };
    let collection = ReplayCollection::open(&settings).unwrap();
    for (file, expected) in [
        ("news-1.warc", true),
        ("news-1.warc.gz", false),
        ("17-3-20260101.warc.gz", true),
        ("170-3-20260101.warc.gz", false),
        ("+17-3.warc", false),
        ("-17.warc", false),
        ("", false),
    ] {
        assert_eq!(collection.has_file(file), expected, "{file}");
    }
    let visitor = Visitor::anonymous();
    let foreign = capture("org,example)/", "other.warc");
    let decision = collection.decide_access(&visitor, &foreign, Timestamp::UNIX_EPOCH);
    assert_eq!(decision.verdict, AccessVerdict::Exclude);
    assert!(
        collection.index_filter().is_none(),
        "it would hide the files of jobs"
    );
}

/// Fails if a collection of sets shows captures of the archive or of other sets, or hides its own.
#[test]
fn imported_sets_make_a_collection() {
    let imported = |set: Option<&str>, file| {
        let mut capture = capture("org,example)/", file);
        let set = set.map(|set| (SET_FIELD.to_owned(), set.to_owned()));
        capture.extra.extend(set);
        capture
    };
    let check = |files: Option<&str>, expected: [bool; 4]| {
        let settings = CollectionSettings {
            files: files.map(str::to_owned),
            sets: BTreeSet::from(["old".to_owned()]),
            ..CollectionSettings::whole_archive()
        };
        settings.check().unwrap();
        let collection = ReplayCollection::open(&settings).unwrap();
        let captures = [
            imported(Some("old"), "x.arc"),
            imported(Some("other"), "x.arc"),
            imported(None, "x.arc"),
            imported(None, "news.warc"),
        ];
        let shown = captures.map(|capture| {
            let visitor = Visitor::anonymous();
            let decision = collection.decide_access(&visitor, &capture, Timestamp::UNIX_EPOCH);
            decision.verdict == AccessVerdict::Allow
        });
        assert_eq!(shown, expected, "{files:?}");
        assert!(collection.index_filter().is_none(), "it would hide the set");
        assert_eq!(collection.has_file("x.arc"), expected[2]);
    };
    check(None, [true, false, false, false]);
    check(Some("news.*"), [true, false, false, true]);
    let everything = ReplayCollection::open(&CollectionSettings::whole_archive()).unwrap();
    let visitor = Visitor::anonymous();
    let decision = everything.decide_access(
        &visitor,
        &imported(Some("other"), "x.arc"),
        Timestamp::UNIX_EPOCH,
    );
    assert_eq!(decision.verdict, AccessVerdict::Allow);
    let wrong = CollectionSettings {
        sets: BTreeSet::from(["Old set".to_owned()]),
        ..CollectionSettings::whole_archive()
    };
    let error = wrong.check().unwrap_err().to_string();
    assert!(
        error.contains("sets") && error.contains("Old set"),
        "{error}"
    );
}

/// Fails if faulty rules let a viewer start: everything would be open.
#[test]
fn faulty_rules_refuse_the_start() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.aclj");
    write(&path, "org,example)/ - {\"acess\": \"block\"}\n");
    let error = Collections::open(&[with_rules(&path)])
        .unwrap_err()
        .to_string();
    assert!(error.contains("a.aclj:1"), "{error}");
    let absent = directory.path().join("absent.aclj");
    let error = Collections::open(&[with_rules(&absent)])
        .unwrap_err()
        .to_string();
    assert!(error.contains("absent.aclj"), "{error}");
}

/// Fails if changed rules are not taken up, or faulty ones open what was closed.
#[test]
fn faulty_change_of_rules_leaves_the_old() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.aclj");
    write(&path, BLOCKED);
    let collection = ReplayCollection::open(&with_rules(&path)).unwrap();
    let mut seen = fingerprints(&collection.rules);
    assert_eq!(verdict(&collection, "org,example)/a"), AccessVerdict::Block);
    write(&path, EXCLUDED);
    reload_if_changed(&collection, &mut seen);
    assert_eq!(
        verdict(&collection, "org,example)/a"),
        AccessVerdict::Exclude
    );
    write(&path, "nonsense");
    reload_if_changed(&collection, &mut seen);
    assert_eq!(
        verdict(&collection, "org,example)/a"),
        AccessVerdict::Exclude
    );
    std::fs::remove_file(&path).unwrap();
    reload_if_changed(&collection, &mut seen);
    assert_eq!(
        verdict(&collection, "org,example)/a"),
        AccessVerdict::Exclude
    );
    write(&path, BLOCKED);
    reload_if_changed(&collection, &mut seen);
    assert_eq!(verdict(&collection, "org,example)/a"), AccessVerdict::Block);
}
