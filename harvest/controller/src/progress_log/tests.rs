//! The log of progress, by a clock that is set forward by hand.

use archive_daemon::clock::ManualClock;
use harvest_crawler::frontier::QueueLengths;

use super::*;

fn begin() -> ManualClock {
    ManualClock::new("2026-11-23T00:00:00Z".parse().unwrap())
}

fn lines(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap();
    assert!(text.ends_with('\n'), "{text}");
    text.lines().map(str::to_owned).collect()
}

/// Fails if a line comes at another time than every 20 seconds, or a pause of the crawl is not noted.
#[tokio::test]
async fn lines_come_every_twenty_seconds() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("progress-statistics.log");
    let manual = begin();
    let mut log = ProgressLog::open(&path, manual.clock()).unwrap();
    let (sender, progress) = watch::channel(CrawlProgress::default());
    let turn = || async {
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
    };
    let play = async {
        turn().await;
        for _ in 0..61 {
            manual.advance(Duration::from_secs(1));
            turn().await;
        }
        let paused = |under_way| CrawlProgress {
            is_paused: true,
            under_way,
            fetched: 40,
            bytes: 40 << 10,
            ..CrawlProgress::default()
        };
        for progress in [paused(2), paused(0), CrawlProgress::default()] {
            sender.send(progress).unwrap();
            turn().await;
        }
        drop(sender);
    };
    let (followed, ()) = tokio::join!(log.follow_crawl(progress), play);
    followed.unwrap();
    let lines = lines(&path);
    let times: Vec<&str> = lines[1..].iter().map(|line| line[..20].trim()).collect();
    assert_eq!(
        times,
        [
            "2026-11-23T00:00:00Z",
            "2026-11-23T00:00:00Z",
            "2026-11-23T00:00:20Z",
            "2026-11-23T00:00:40Z",
            "2026-11-23T00:01:00Z",
            "2026-11-23T00:01:01Z",
            "2026-11-23T00:01:01Z",
            "2026-11-23T00:01:01Z",
        ]
    );
    let notes: Vec<&str> = lines
        .iter()
        .filter_map(|line| line.split_once(" CRAWL ").map(|(_, note)| note))
        .collect();
    assert_eq!(
        notes,
        [
            "RUNNING - Running",
            "WAITING - Pausing",
            "PAUSED - Paused",
            "RUNNING - Running"
        ]
    );
}

/// Fails if a crawl that is resumed repeats the legend, writes on in an incomplete line, or loses what was there.
#[test]
fn resumed_log_goes_on_behind_whole_lines() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("progress-statistics.log");
    let manual = begin();
    let mut log = ProgressLog::open(&path, manual.clock()).unwrap();
    log.end_log(&CrawlProgress::default(), CrawlState::Checkpointed)
        .unwrap();
    let before = lines(&path);
    assert!(before[3].ends_with(" CRAWL PAUSED - Checkpointed"));
    let mut file = AppendFile::open(&path).unwrap();
    file.append(b"2026-11-23T00:00:2").unwrap();
    drop(ProgressLog::open(&path, manual.clock()).unwrap());
    let after = lines(&path);
    assert_eq!(after[..4], before);
    assert_eq!(after.len(), 5);
    assert!(after[4].ends_with(" CRAWL RUNNING - Running"), "{after:?}");
}

/// Fails if a cut takes a whole line, leaves a half one, or does not find the last end in a long log.
#[test]
fn cut_leaves_whole_lines() {
    let directory = tempfile::tempdir().unwrap();
    let long = "x".repeat(200_000);
    for (text, expected) in [
        (String::new(), 0),
        ("half".to_owned(), 0),
        ("one\n".to_owned(), 4),
        ("one\n\n".to_owned(), 5),
        (format!("one\n{long}"), 4),
        (long.clone(), 0),
        (format!("{long}\ntwo"), 200_001),
    ] {
        let path = directory
            .path()
            .join(expected.to_string() + &text.len().to_string());
        AppendFile::open(&path)
            .unwrap()
            .append(text.as_bytes())
            .unwrap();
        assert_eq!(cut_to_whole_lines(&path).unwrap(), expected);
        let left = std::fs::read(&path).unwrap();
        assert_eq!(left, text.as_bytes()[..usize::try_from(expected).unwrap()]);
    }
}

/// Fails if the columns about queues are zeros, or divide by the queues that have nothing.
#[test]
fn line_tells_how_long_queues_are() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("progress-statistics.log");
    let mut log = ProgressLog::open(&path, begin().clock()).unwrap();
    let queues = QueueLengths {
        longest: 70,
        not_empty: 4,
        wanting: 6,
        served: 4,
    };
    let progress = CrawlProgress {
        queued: 100,
        queues,
        ..CrawlProgress::default()
    };
    log.end_log(&progress, CrawlState::Checkpointed).unwrap();
    log.end_log(&CrawlProgress::default(), CrawlState::Checkpointed)
        .unwrap();
    let lines = lines(&path);
    let columns = |line: &str| {
        let columns = line.split_whitespace().rev().take(3);
        columns.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(columns(&lines[2]), ["25", "70", "1.5"]);
    assert_eq!(columns(&lines[4]), ["0", "0", "0"]);
}

/// Fails if a crawl that waits for room on the disk is told as running.
#[test]
fn crawl_without_space_is_reported_as_paused() {
    let progress = |is_paused, lacks_space, under_way| CrawlProgress {
        is_paused,
        lacks_space,
        under_way,
        ..CrawlProgress::default()
    };
    for (progress, expected) in [
        (progress(false, false, 1), CrawlState::Running),
        (progress(false, true, 1), CrawlState::Waiting),
        (progress(false, true, 0), CrawlState::Paused),
        (progress(true, true, 0), CrawlState::Paused),
    ] {
        assert_eq!(state(&progress), expected, "{progress:?}");
    }
}
