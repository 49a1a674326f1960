//! Recorders whose files are cut as a power cut does.

use archive_daemon::clock::ManualClock;
use archive_formats::warc::WarcReader;
use harvest_policy::quarantine::QuarantineRules;
use harvest_policy::status::FetchStatus;

use super::*;
use crate::capture::{RecordWriterPool, ResourceBlock, record_id};
use crate::frontier::{FrontierUri, NextStep, Urgency};

mod damage;

const FIRST: &str = "http://a.dk/1";

fn open(directory: &Path) -> (CrawlRecorder, u64) {
    try_open(directory).unwrap()
}

fn try_open(directory: &Path) -> Result<(CrawlRecorder, u64), RecorderError> {
    let settings = RecorderSettings {
        state: directory.join("state"),
        logs: directory.join("logs"),
        files: ArchiveFileSettings {
            directory: directory.join("warcs"),
            prefix: "1-2".to_owned(),
            host: "h".to_owned(),
            max_size: 1_000,
            compresses: true,
            warcinfo: "software: test\r\n".to_owned(),
        },
        frontier: FrontierSettings {
            limits: harvest_policy::account::QueueLimits::default().into(),
            cost: harvest_policy::cost::CostPolicy::Unit,
            connections: 1,
            fresh_key: [1; 32],
            begin: "2026-11-23T00:00:00Z".parse().unwrap(),
        },
        quarantine: Quarantine::new(QuarantineRules::default()),
    };
    let start = "2026-11-23T00:00:00Z".parse().unwrap();
    let clock = ManualClock::new(start).clock();
    CrawlRecorder::open(settings, clock, Chance::seeded_chance(1))
}

fn candidates(recorder: &CrawlRecorder, count: usize) -> Vec<CandidateUri> {
    let hasher = recorder.frontier().uri_hasher();
    let candidates = (1..=count).map(|number| {
        let uri = format!("http://a.dk/{number}");
        CandidateUri {
            key: hasher.key_of_text(&uri),
            queue: "a.dk".to_owned(),
            cost: 1,
            uri: FrontierUri {
                uri,
                hops: "-".to_owned(),
                via: None,
                source: None,
                urgency: Urgency::Normal,
                tries: 0,
            },
        }
    });
    candidates.collect()
}

fn schedule(recorder: &mut CrawlRecorder, count: usize) {
    let candidates = candidates(recorder, count);
    recorder.schedule_candidates(candidates).unwrap();
}

fn lease(recorder: &mut CrawlRecorder) -> Option<UriLease> {
    match recorder.next(CrawlMoment::ZERO).unwrap() {
        NextUri::Fetch(lease) => Some(*lease),
        NextUri::Later(_) | NextUri::Waiting | NextUri::Over => None,
    }
}

fn finished(lease: UriLease) -> FinishedTry {
    let uri = lease.uri.uri.clone();
    let time = "2026-11-23T00:00:00Z".parse().unwrap();
    let resource = ResourceBlock {
        uri: &uri,
        time,
        address: None,
        media_type: "text/plain",
        record_id: &record_id([7; 16]),
        block: uri.as_bytes(),
    };
    let scratch = RecordWriterPool::new(PathBuf::from("/nowhere"), true);
    let group = resource.into_records(&scratch).unwrap();
    let line = format!("2026-11-23T00:00:00.000Z 200 1 {uri} - - text/plain #001 - - - -");
    let outcome = LeaseOutcome {
        status: FetchStatus::from_http(200),
        bytes: 1,
        next: NextStep::Finish,
        rests_until: CrawlMoment::ZERO,
    };
    FinishedTry {
        subject: TrySubject::Uri { lease, outcome },
        records: vec![group],
        lines: vec![line.parse().unwrap()],
        candidates: Vec::new(),
        content: None,
    }
}

/// Returns the URIs in the log, and those in the archive files.
fn written(directory: &Path) -> (Vec<String>, Vec<String>) {
    let log = std::fs::read_to_string(directory.join("logs").join(CRAWL_LOG)).unwrap();
    let lines = log
        .lines()
        .map(|line| line.parse::<CrawlLogLine>().unwrap().uri);
    let mut records = Vec::new();
    let mut names = directory::list_names(&directory.join("warcs")).unwrap();
    names.sort();
    for name in names {
        let mut reader = WarcReader::new(File::open(directory.join("warcs").join(name)).unwrap());
        while let Some(record) = reader.next_record().unwrap() {
            let uri = record
                .header()
                .get("WARC-Target-URI")
                .map(|uri| uri.to_vec());
            records.extend(uri.map(|uri| String::from_utf8(uri).unwrap()));
            assert!(record.read_end().unwrap().defects.is_empty());
        }
    }
    (lines.collect(), records)
}

/// Fails if after any cut of the archive file or the log, unsynced or torn, a URI stands in one and not in the other,
/// stands there twice at the end, or never.
#[test]
fn log_and_records_agree_after_every_cut() {
    let count = 5;
    for (name, step) in [("logs/crawl.log", 17), ("warcs", 41)] {
        for cut in (0..2000).step_by(step) {
            let directory = tempfile::tempdir().unwrap();
            let (mut recorder, _) = open(directory.path());
            schedule(&mut recorder, count);
            for number in 0..3 {
                let lease = lease(&mut recorder).unwrap();
                recorder.record_batch(vec![finished(lease)]).unwrap();
                if number == 0 {
                    recorder.sync_files().unwrap();
                }
            }
            let synced = recorder.frontier().durable_place().unwrap();
            drop(recorder);
            let path = if name == "warcs" {
                let names = directory::list_names(&directory.path().join(name)).unwrap();
                directory.path().join(name).join(names.first().unwrap())
            } else {
                directory.path().join(name)
            };
            let least = if name == "warcs" {
                synced.file_length
            } else {
                synced.log_length
            };
            let length = least + cut;
            if length > path.metadata().unwrap().len() {
                continue;
            }
            AppendFile::open(&path).unwrap().cut(length).unwrap();
            let (mut recorder, _) = open(directory.path());
            let (lines, records) = written(directory.path());
            assert_eq!(lines, records, "{name} cut at {length}");
            assert_eq!(lines.first().map(String::as_str), Some(FIRST));
            while let Some(lease) = lease(&mut recorder) {
                recorder.record_batch(vec![finished(lease)]).unwrap();
            }
            recorder.close_file().unwrap();
            let (lines, records) = written(directory.path());
            assert_eq!(lines, records);
            let mut sorted = lines.clone();
            sorted.sort();
            sorted.dedup();
            assert_eq!((sorted.len(), lines.len()), (count, count));
        }
    }
}

/// Fails if a file gets records although it is full, or a full one is closed before its outcomes are durable.
#[test]
fn full_file_is_closed_between_tries() {
    let directory = tempfile::tempdir().unwrap();
    let (mut recorder, _) = open(directory.path());
    schedule(&mut recorder, 20);
    let mut closed = Vec::new();
    while let Some(lease) = lease(&mut recorder) {
        closed.extend(recorder.record_batch(vec![finished(lease)]).unwrap());
    }
    assert!(closed.len() > 2);
    assert!(closed.iter().all(|file| file.size < 2_000));
    closed.extend(recorder.close_file().unwrap());
    let (lines, records) = written(directory.path());
    assert_eq!((lines.len(), &lines), (20, &records));
}

/// Fails if URIs of a freed pattern stay where they are because the process ended meanwhile, or because they are more
/// than one batch.
#[test]
fn freed_uris_come_back_after_a_crash() {
    const COUNT: u64 = 5000;
    let directory = tempfile::tempdir().unwrap();
    let (mut recorder, _) = open(directory.path());
    let held = candidates(&recorder, usize::try_from(COUNT).unwrap());
    let mut changes = recorder.frontier.begin_changes();
    for candidate in held {
        let frontier = &mut recorder.frontier;
        let is_new = frontier.hold_back(&mut changes, "a.dk/#", candidate);
        assert!(is_new.unwrap());
    }
    // Of another pattern: it stays.
    let mut other = candidates(&recorder, 1).remove(0);
    other.key = [9; 16];
    let frontier = &mut recorder.frontier;
    frontier.hold_back(&mut changes, "a.dk/*", other).unwrap();
    frontier.put_pattern(&mut changes, "a.dk/*", true).unwrap();
    frontier.put_pattern(&mut changes, "a.dk/#", false).unwrap();
    frontier.commit_changes(changes).unwrap();
    assert_eq!(recorder.frontier().waiting_uris(), 0);
    drop(recorder);
    let (mut recorder, _) = open(directory.path());
    assert_eq!(recorder.frontier().waiting_uris(), COUNT);
    assert_eq!(recorder.quarantined_patterns(), [("a.dk/*".to_owned(), 1)]);
    assert_eq!(recorder.free_pattern("a.dk/*").unwrap(), 1);
    assert_eq!(recorder.frontier().waiting_uris(), COUNT + 1);
}

/// Fails if a page is lost that was first found on one of a host's pages with the same words, and is linked to by another
/// page; or if parts of such a page, and what is of other hosts, are held back as its links are.
#[test]
fn links_of_common_pages_wait_until_another_page_has_them() {
    const NAME: &str = "a.dk same-words-1";
    let directory = tempfile::tempdir().unwrap();
    let (mut recorder, _) = open(directory.path());
    recorder.quarantine.hold_pattern(NAME);
    let mut found = candidates(&recorder, 3);
    "L".clone_into(&mut found[0].uri.hops);
    "E".clone_into(&mut found[1].uri.hops);
    found[2].uri.uri = "http://b.dk/".to_owned();
    let page = Url::parse("http://a.dk/sorry/").unwrap();
    let add = |recorder: &mut CrawlRecorder, found: Vec<CandidateUri>, name| {
        let mut changes = recorder.frontier.begin_changes();
        recorder.add(&mut changes, found, name).unwrap();
        recorder.frontier.commit_changes(changes).unwrap();
        (
            recorder.quarantined_patterns()[0].1,
            recorder.frontier().waiting_uris(),
        )
    };
    let of_page = Some((&page, NAME));
    assert_eq!(add(&mut recorder, found.clone(), of_page), (1, 2));
    assert_eq!(add(&mut recorder, found.clone(), of_page), (1, 2));
    assert_eq!(add(&mut recorder, found.clone(), None), (0, 3));
    assert_eq!(add(&mut recorder, found, None), (0, 3));
}
