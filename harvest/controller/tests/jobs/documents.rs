//! The documents of a job: what they say, and what they do not.

use std::fs;
use std::sync::Arc;

use crate::prelude::*;

/// The environment of URIs of a whole metadata file, in their order.
const PARTS: [&str; 22] = [
    "setup/duplicatereductionjobs?majorversion=1&minorversion=0&harvestid=34&harvestnum=0&jobid=12",
    "setup/harvestInfo.xml?heritrixVersion=",
    "setup/order.toml?heritrixVersion=",
    "setup/seeds.txt?heritrixVersion=",
    "reports/archivefiles-report.txt?heritrixVersion=",
    "reports/crawl-report.txt?heritrixVersion=",
    "reports/frontier-nonempty-report.txt?heritrixVersion=",
    "reports/frontier-summary-report.txt?heritrixVersion=",
    "reports/hosts-report.txt?heritrixVersion=",
    "reports/mimetype-report.txt?heritrixVersion=",
    "reports/processors-report.txt?heritrixVersion=",
    "reports/responsecode-report.txt?heritrixVersion=",
    "reports/seeds-report.txt?heritrixVersion=",
    "reports/source-report.txt?heritrixVersion=",
    "reports/threads-report.txt?heritrixVersion=",
    "logs/crawl.log?heritrixVersion=",
    "logs/progress-statistics.log?heritrixVersion=",
    "logs/requests.log?heritrixVersion=",
    "logs/runtime-errors.log?heritrixVersion=",
    "logs/uri-errors.log?heritrixVersion=",
    "index/cdx?majorversion=2&minorversion=0&harvestid=34&jobid=12&filename=",
    "index/captures?majorversion=1&minorversion=0&harvestid=34&jobid=12&filename=",
];

/// Fails if a record is missing, twice, or out of its order; or if a request is not recorded.
#[tokio::test]
async fn metadata_records_stand_in_their_order() {
    let _disk = DISK.read().await;
    let base = tempfile::tempdir().unwrap();
    let directory = create(base.path(), site().await, "");
    let request = directory.path_of("done/1795392000123-more.free");
    archive_durable::replace_file(&request, b"pattern one\nhttp://u:hunter2-secret@a.dk/\n")
        .unwrap();
    run(&directory, &environment(None, Clock::system_clock())).await;
    let bytes = fs::read(directory.path_of("metadata/12-metadata-1.warc.gz")).unwrap();
    let records = records(&bytes);
    assert_eq!(records[0].0, WarcType::Warcinfo);
    let uris: Vec<&str> = records[1..].iter().map(|(_, uri)| uri.as_str()).collect();
    assert_eq!(uris.len(), PARTS.len(), "{uris:?}");
    for (uri, part) in uris.iter().zip(PARTS) {
        let start = format!("metadata://example.dk/crawl/{part}");
        assert!(uri.starts_with(&start), "{uri}, not {start}");
    }
    assert_eq!(record(&bytes, "duplicatereductionjobs"), "");
    assert_eq!(
        record(&bytes, "requests.log"),
        "2026-11-23T00:00:00.123Z more.free taken\n\tpattern one\n\thttp://a.dk/\n"
    );
    let threads = record(&bytes, "threads-report.txt");
    assert!(
        threads.contains("Number of threads: 1 (0 active)"),
        "{threads}"
    );
    let name = only(&directory.path_of("warcs"));
    let name = name.file_name().unwrap().to_str().unwrap();
    for (part, path) in [
        ("logs/crawl.log", "logs/crawl.log"),
        (
            "logs/progress-statistics.log",
            "logs/progress-statistics.log",
        ),
        ("setup/harvestInfo.xml", "harvestInfo.xml"),
        ("reports/seeds-report.txt", "reports/seeds-report.txt"),
    ] {
        let file = fs::read_to_string(directory.path_of(path)).unwrap();
        assert_eq!(record(&bytes, part), file, "{part}");
    }
    let files = record(&bytes, "archivefiles-report.txt");
    assert!(files.contains(name), "{files}");
    assert!(
        record(&bytes, "index/cdx")
            .lines()
            .all(|line| line.contains(name))
    );
}

/// Fails if a clock that is set back while a crawl goes on puts files, and their indexes, into another order.
#[tokio::test]
async fn files_stand_by_number_not_time() {
    let _disk = DISK.read().await;
    let base = tempfile::tempdir().unwrap();
    let order = "limits.max_fetches = 1\nfiles.max_size = \"1 kB\"";
    let directory = create(base.path(), site().await, order);
    let late = "2026-11-23T12:00:00Z".parse().unwrap();
    let early = "2026-11-23T03:00:00Z".parse().unwrap();
    for (begin, is_suspended) in [(late, true), (early, false)] {
        let environment = environment(None, ManualClock::new(begin).clock());
        if is_suspended {
            suspend(&directory, &environment).await;
        } else {
            assert_ne!(
                run(&directory, &environment).await.status,
                HarvestJobEnd::Suspended
            );
        }
    }
    let bytes = fs::read(directory.path_of("metadata/12-metadata-1.warc.gz")).unwrap();
    let indexes = records(&bytes).into_iter();
    let indexes = indexes.filter_map(|(_, uri)| {
        let (_, name) = uri.split_once("index/cdx?")?;
        Some(name.rsplit_once('=')?.1.to_owned())
    });
    let indexes: Vec<String> = indexes.collect();
    let numbers: Vec<&str> = indexes
        .iter()
        .map(|name| name.split('-').nth(3).unwrap())
        .collect();
    let expected: Vec<String> = (1..=numbers.len()).map(|n| format!("{n:05}")).collect();
    assert_eq!(numbers, expected);
    assert!(!indexes.is_sorted(), "{indexes:?}");
    let report = record(&bytes, "archivefiles-report.txt");
    let listed: Vec<&str> = report
        .lines()
        .skip(1)
        .map(|line| line.split_once(' ').unwrap().0)
        .collect();
    assert_eq!(listed, indexes);
}

/// Fails if a queue that a limit has retired is not in the report of queues with what is left of it.
#[tokio::test]
async fn frontier_report_shows_what_is_left() {
    let _disk = DISK.read().await;
    let base = tempfile::tempdir().unwrap();
    let order = "limits.max_fetches = 1\nlimits.max_objects = 3";
    let directory = create(base.path(), site().await, order);
    let report = run(&directory, &environment(None, Clock::system_clock())).await;
    assert_eq!(report.objects, 3);
    let text =
        fs::read_to_string(directory.path_of("reports/frontier-nonempty-report.txt")).unwrap();
    let (_, inactive) = text.split_once("INACTIVE QUEUES").unwrap();
    let row = inactive.lines().nth(2).unwrap();
    let fields: Vec<&str> = row.split(' ').collect();
    assert_eq!(fields.len(), 12, "{row}");
    // Of four links two were followed.
    assert_eq!(
        (fields[0], fields[2], fields[8]),
        ("127.0.0.1", "2", "3/-1")
    );
    let log = fs::read_to_string(directory.path_of("logs/crawl.log")).unwrap();
    assert!(!log.contains(fields[10]), "{row}");
    let hosts = fs::read_to_string(directory.path_of("reports/hosts-report.txt")).unwrap();
    let host: Vec<&str> = hosts.lines().nth(1).unwrap().split(' ').collect();
    assert_eq!((host[2], host[4]), ("127.0.0.1", "2"));
}

/// Fails if a password that was sent to a host gets into an archive file, a log, a report or the metadata file, as it
/// is or as it was sent.
#[tokio::test]
async fn sent_password_is_in_no_file() {
    let _disk = DISK.read().await;
    let base = tempfile::tempdir().unwrap();
    let directory = create(base.path(), site().await, WITH_PASSWORD);
    let unreliable = Arc::new(UnreliableArchive::new(&directory));
    let mut environment = environment(
        Some(Arc::clone(&unreliable) as Arc<dyn Ingest>),
        Clock::system_clock(),
    );
    environment.keeps_files = true;
    let report = run(&directory, &environment).await;
    assert_eq!(report.status, HarvestJobEnd::Done);
    let log = fs::read_to_string(directory.path_of("logs/crawl.log")).unwrap();
    let opened = log
        .lines()
        .filter(|line| line.contains("/4 ") && line.contains("   200 "));
    assert_eq!(opened.count(), 1, "{log}");
    let mut requests = 0;
    for (name, bytes) in &*unreliable.files.lock() {
        let mut reader = WarcReader::new(bytes.as_slice());
        while let Some(mut record) = reader.next_record().unwrap() {
            let kind = record.kind();
            let mut block = record.header().raw().to_vec();
            std::io::Read::read_to_end(&mut record, &mut block).unwrap();
            for secret in ["hunter2-secret", "dTpodW50ZXIyLXNlY3JldA"] {
                let text = String::from_utf8_lossy(&block);
                assert!(!text.contains(secret), "{name}: {text}");
            }
            requests += u32::from(kind == WarcType::Request);
        }
    }
    assert!(requests > 5);
}
