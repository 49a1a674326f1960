//! Requests in the directory of a job that runs: when a file is taken, what becomes of it, and that one process works
//! on a job.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use harvest_controller::RunSettings;
use parking_lot::Mutex;

use crate::prelude::*;

const BEGIN: &str = "2026-11-23T00:00:00Z";

/// Writes a request as `mv` does: whole.
fn ask(job: &JobDirectory, name: &str, text: &str) {
    archive_durable::replace_file(&job.path_of("action").join(name), text.as_bytes()).unwrap();
}

/// Runs a job that pauses from its start, while time passes a hundred times faster, until `count` requests were
/// answered; then it goes on. Returns its report and the answers.
async fn run_with_requests(job: &JobDirectory, count: usize) -> (JobReport, Vec<(String, String)>) {
    let manual = ManualClock::running_from(BEGIN.parse().unwrap());
    let (control, requests) = mpsc::unbounded_channel();
    control.send(CrawlCommand::Pause).unwrap();
    let (progress, _) = watch::channel(CrawlProgress::default());
    let answers: Mutex<Vec<(String, String)>> = Mutex::default();
    let notify = |notice: JobNotice<'_>| {
        let (name, answer) = match notice {
            JobNotice::Action { name, done } => (name, format!("done: {done}")),
            JobNotice::ActionRefused { name, why } => (name, format!("refused: {why}")),
            _ => return,
        };
        let mut answers = answers.lock();
        answers.push((name.to_owned(), answer));
        if answers.len() == count {
            control.send(CrawlCommand::Resume).unwrap();
        }
    };
    let hurry = async {
        loop {
            tokio::time::sleep(Duration::from_millis(1)).await;
            if answers.lock().len() < count {
                manual.advance(Duration::from_millis(100));
            }
        }
    };
    let environment = environment(None, manual.clock());
    let report = tokio::select! {
        report = run_job(job, &environment, JobConsole { requests, progress, notify: &notify }) => report.unwrap(),
        () = hurry => unreachable!(),
    };
    (report, answers.into_inner())
}

/// Fails if a request is not carried out, one that cannot be understood is lost or passes for done, or the person is
/// not told why.
#[tokio::test]
async fn every_request_is_answered_and_kept() {
    let _disk = DISK.read().await;
    let base = tempfile::tempdir().unwrap();
    let job = create(base.path(), site().await, "");
    let seed = job.job().seeds[0].clone();
    ask(&job, "a.reject", &format!("# two pages\n{seed}1\n.*/2\n"));
    ask(&job, "b.budget", "127.0.0.1 50 -1\n");
    ask(&job, "c.free", "127.0.0.1/cal/#\n");
    ask(&job, "d.reject", "example.dk/calendar\n");
    ask(&job, "e.accept", "http://nobody.dk/\n");
    ask(
        &job,
        "f.order",
        "[politeness]\nmin_delay = \"1 ms\"\nmax_delay = \"1 ms\"\n",
    );
    ask(&job, "g.order", "[http]\ncookies = false\n");
    ask(&job, "h.retry", ".*\n");
    ask(&job, "pause.txt", "");
    ask(&job, "pause", "");
    let (report, mut answers) = run_with_requests(&job, 10).await;
    answers.sort();
    let begins = [
        ("a.reject", "done: rejected from now on"),
        ("b.budget", "done: queues with other limits: 1"),
        ("c.free", "refused: 127.0.0.1/cal/# is not under quarantine"),
        (
            "d.reject",
            "refused: line 1: `example.dk/calendar` would match no URI",
        ),
        ("e.accept", "refused: http://(dk,nobody,)/ is not rejected"),
        ("f.order", "done: the order is changed"),
        ("g.order", "refused: http.cookies cannot change while"),
        ("h.retry", "done: tried again: 0 URIs that were given up"),
        ("pause", "done: the crawl pauses"),
        ("pause.txt", "refused: it is no request"),
    ];
    assert_eq!(answers.len(), begins.len());
    for ((name, answer), (expected, begin)) in answers.iter().zip(begins) {
        assert_eq!(name, expected);
        assert!(answer.starts_with(begin), "{name}: {answer}");
    }
    // The home page and two of four others.
    assert_eq!(report.objects, 3);
    assert_eq!(names(&job.path_of("action")), BTreeSet::new());
    let done = names(&job.path_of("done"));
    assert_eq!(done.len(), 15, "{done:?}");
    let order = fs::read_to_string(job.path_of("order.toml")).unwrap();
    assert!(order.contains("min_delay = \"1 ms\""), "{order}");
    let resumed = JobDirectory::open(job.root()).unwrap();
    let pause = resumed.job().order.politeness.min_delay;
    assert_eq!(pause.duration(), Duration::from_millis(1));
    let refused = done.iter().find(|name| name.ends_with("-d.reject.refused"));
    let kept = fs::read_to_string(job.path_of("done").join(refused.unwrap())).unwrap();
    assert_eq!(kept, "example.dk/calendar\n");
    let log = fs::read_to_string(job.path_of("logs/requests.log")).unwrap();
    assert!(log.contains("d.reject refused\n\t# line 1: "), "{log}");
    let crawl_log = fs::read_to_string(job.path_of("logs/crawl.log")).unwrap();
    let is_rejected = |line: &str| line.contains(&format!("{seed}1 ")) || line.contains("/2 ");
    assert!(!crawl_log.lines().any(is_rejected), "{crawl_log}");
}

/// Fails if a file is taken while it is being written, or one that nobody writes any more is not.
#[tokio::test]
async fn half_written_request_is_waited_for() {
    let _disk = DISK.read().await;
    let base = tempfile::tempdir().unwrap();
    let job = create(base.path(), site().await, "");
    let other = site().await;
    ask(&job, "more.seeds", other.as_str().trim_end_matches('/'));
    ask(&job, "later.seeds.part", "nonsense");
    let manual = ManualClock::running_from(BEGIN.parse().unwrap());
    let clock = manual.clock();
    let (control, requests) = mpsc::unbounded_channel();
    control.send(CrawlCommand::Pause).unwrap();
    let (progress, _) = watch::channel(CrawlProgress::default());
    let taken = Mutex::new(None);
    let notify = |notice: JobNotice<'_>| {
        if let JobNotice::Action { name, done } = notice {
            assert_eq!(name, "more.seeds");
            *taken.lock() = Some((clock.now(), done.to_owned()));
            control.send(CrawlCommand::Resume).unwrap();
        }
    };
    let hurry = async {
        loop {
            tokio::time::sleep(Duration::from_millis(1)).await;
            if taken.lock().is_none() {
                manual.advance(Duration::from_millis(50));
            }
        }
    };
    let environment = environment(None, manual.clock());
    let report = tokio::select! {
        report = run_job(&job, &environment, JobConsole { requests, progress, notify: &notify }) => report.unwrap(),
        () = hurry => unreachable!(),
    };
    let (time, done) = taken.into_inner().unwrap();
    let begin: jiff::Timestamp = BEGIN.parse().unwrap();
    assert!(time.duration_since(begin).as_secs() >= 5, "{time}");
    assert!(done.starts_with("new seeds: 1;"), "{done}");
    assert_eq!(report.objects, 10);
    assert_eq!(
        names(&job.path_of("action")),
        ["later.seeds.part".to_owned()].into()
    );
}

/// Fails if a crawl ends, or takes no request any more, because its directories of requests were taken away.
#[tokio::test]
async fn directory_of_requests_is_made_again() {
    let _disk = DISK.read().await;
    let base = tempfile::tempdir().unwrap();
    let job = create(base.path(), site().await, "");
    fs::remove_dir(job.path_of("action")).unwrap();
    fs::remove_dir(job.path_of("done")).unwrap();
    let asking = async {
        while !job.path_of("action").try_exists().unwrap() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        ask(&job, "a.reject", ".*/2\n");
        std::future::pending().await
    };
    let (report, answers) = tokio::select! {
        ended = run_with_requests(&job, 1) => ended,
        never = asking => never,
    };
    assert!(answers[0].1.starts_with("done: rejected"), "{answers:?}");
    assert_eq!(report.objects, 4);
    assert_eq!(names(&job.path_of("done")).len(), 1);
}

/// Fails if two processes work on one job, or the lock outlives the first.
#[tokio::test]
async fn second_process_of_a_job_is_refused() {
    let _disk = DISK.read().await;
    let base = tempfile::tempdir().unwrap();
    let job = create(base.path(), site().await, "");
    let (control, requests) = mpsc::unbounded_channel();
    control.send(CrawlCommand::Pause).unwrap();
    let (progress, mut watched) = watch::channel(CrawlProgress::default());
    let environment = environment(None, Clock::system_clock());
    let quiet = |_: JobNotice<'_>| {};
    let first = run_job(
        &job,
        &environment,
        JobConsole {
            requests,
            progress,
            notify: &quiet,
        },
    );
    let second = async {
        watched
            .wait_for(|progress| progress.is_paused)
            .await
            .unwrap();
        let again = JobDirectory::open(job.root()).unwrap();
        let (_control, requests) = mpsc::unbounded_channel();
        let (progress, _) = watch::channel(CrawlProgress::default());
        let refused = run_job(
            &again,
            &environment,
            JobConsole {
                requests,
                progress,
                notify: &quiet,
            },
        )
        .await;
        control.send(CrawlCommand::Resume).unwrap();
        refused.unwrap_err()
    };
    let (report, refused) = tokio::join!(first, second);
    assert!(matches!(refused, HarvestJobError::Lock(_)), "{refused:?}");
    assert!(refused.to_string().contains("another process"), "{refused}");
    assert_eq!(report.unwrap().objects, 5);
}

/// Fails if a directory that was not finished passes for a job, or the choices of the person come later than the job.
#[tokio::test]
async fn job_appears_with_everything_in_it() {
    let _disk = DISK.read().await;
    let base = tempfile::tempdir().unwrap();
    let settings = RunSettings {
        stores_nothing: true,
        keeps_files: true,
        organization: "example.dk".to_owned(),
    };
    let submitted = BEGIN.parse().unwrap();
    let seeds = vec![Url::parse("http://127.0.0.1/").unwrap()];
    let job = || HarvestJob::new(12, 34, submitted).with_seeds(seeds.clone());
    let created = JobDirectory::begin_job(base.path(), job(), &settings, submitted).unwrap();
    assert_eq!(names(base.path()), ["12_1795392000000".to_owned()].into());
    let opened = JobDirectory::open(created.root()).unwrap();
    assert_eq!(opened.run_settings().unwrap(), settings);
    // The same job at the same time is another one's.
    assert!(JobDirectory::begin_job(base.path(), job(), &settings, submitted).is_err());
}
