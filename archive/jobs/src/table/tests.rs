//! Tests of the table: rows survive a restart, and each step that people ask about has its line in the trail.

use archive_daemon::clock::ManualClock;
use archive_decisions::batch::life::UnreadFiles;
use archive_ledger::admin::Admin;
use archive_model::{JobLimits, Program, ReplicaId};

use super::*;

fn id(text: &str) -> JobId {
    JobId::new(text).unwrap()
}

pub(crate) fn row(text: &str, who: &str) -> JobRow {
    JobRow {
        id: id(text),
        spec: JobSpec {
            program: Program::BuiltIn("file-list".to_owned()),
            arguments: vec![("a".to_owned(), "b".to_owned())],
            files: ".*".to_owned(),
            names: None,
            replica: ReplicaId::new("one").unwrap(),
            limits: JobLimits::default(),
            keep: None,
        },
        component_size: 0,
        who: who.to_owned(),
        submitted: "2026-01-01T00:00:00Z".parse().unwrap(),
        started: None,
        ended: None,
        expires: None,
        life: JobLife::default(),
        checkpoint: Checkpoint::default(),
        result: None,
    }
}

pub(crate) struct TableFixture {
    directory: tempfile::TempDir,
    hand: ManualClock,
}

impl TableFixture {
    pub(crate) fn new() -> Self {
        Self {
            directory: tempfile::tempdir().unwrap(),
            hand: ManualClock::new("2026-01-01T00:00:00Z".parse().unwrap()),
        }
    }

    pub(crate) fn open(&self) -> (Admin, JobTable) {
        let admin = Admin::init(self.directory.path()).unwrap();
        let clock = self.hand.clock();
        let keep = Duration::from_hours(1);
        let patience = Duration::from_mins(2);
        let jobs = JobTable::new(
            JobLedger::open(admin.clone()).unwrap(),
            clock,
            keep,
            patience,
        );
        (admin, jobs)
    }
}

fn compared(total: u64) -> JobEvent {
    let by_node = std::collections::BTreeMap::new();
    JobEvent::Compared(UnreadFiles { total, by_node })
}

/// Fails if a restart loses a job or a step of it, or the audit trail lacks one of its lines.
#[test]
fn job_survives_restart_in_each_step() {
    let fixture = TableFixture::new();
    let (_, jobs) = fixture.open();
    assert!(matches!(
        jobs.submit_job(row("j", "researcher/anna"), 1).unwrap(),
        SubmitOutcome::Taken(_)
    ));
    drop(jobs);
    let steps = [
        (JobEvent::Turn, JobStep::Look),
        (JobEvent::Progress, JobStep::Run),
        (JobEvent::Finished(Vec::new()), JobStep::Compare),
        (compared(2), JobStep::Reduce),
        (JobEvent::Reduced, JobStep::Stop),
        (JobEvent::Failed("late".to_owned()), JobStep::Stop),
    ];
    let mut before = None;
    for (at, (event, expected)) in (1_u64..).zip(steps) {
        let (_, jobs) = fixture.open();
        let found = jobs.get(&id("j")).unwrap();
        assert!(before.is_none() || before == found);
        fixture.hand.advance(Duration::from_mins(1));
        let (after, step) = jobs
            .apply_event(&id("j"), event, |row| row.checkpoint.files = at)
            .unwrap()
            .unwrap();
        assert_eq!(step, expected);
        before = Some(after);
    }
    let row = before.unwrap();
    assert_eq!(row.checkpoint.files, 5, "what has ended stays as it is");
    let started: Timestamp = "2026-01-01T00:01:00Z".parse().unwrap();
    let ended: Timestamp = "2026-01-01T00:05:00Z".parse().unwrap();
    let expires: Timestamp = "2026-01-01T01:05:00Z".parse().unwrap();
    assert_eq!(
        (row.started, row.ended, row.expires),
        (Some(started), Some(ended), Some(expires))
    );
    let (admin, jobs) = fixture.open();
    jobs.forget_job(&row).unwrap();
    assert_eq!(jobs.get(&id("j")).unwrap(), None);
    assert_eq!(
        jobs.apply_event(&id("j"), JobEvent::Turn, |_row| {})
            .unwrap(),
        None
    );
    let trail = admin.audit_rows(0).unwrap().map(|row| row.unwrap().1);
    let trail: Vec<_> = trail
        .map(|line| format!("{}: {}", line.who, line.what))
        .collect();
    assert_eq!(
        trail,
        [
            "researcher/anna: batch job j submitted: file-list over replica one",
            "repository: batch job j partial; 2 files unread, 0 gaps",
            "repository: batch job j of researcher/anna is kept no longer",
        ]
    );
}

/// Fails if an id has two jobs, or more jobs wait than the settings allow to all or to one person.
#[test]
fn id_is_one_job_and_waiting_is_limited() {
    let fixture = TableFixture::new();
    let (admin, jobs) = fixture.open();
    let submit = |id: &str| jobs.submit_job(row(id, "researcher/anna"), 4).unwrap();
    let other = |id: &str| jobs.submit_job(row(id, "researcher/bo"), 4).unwrap();
    assert!(matches!(submit("a"), SubmitOutcome::Taken(_)));
    assert!(matches!(submit("a"), SubmitOutcome::Known(_)));
    assert!(matches!(submit("b"), SubmitOutcome::Taken(_)));
    // Half of the places, and no more: the others are for others, up to the last one.
    assert_eq!(submit("c"), SubmitOutcome::Own(2));
    assert!(matches!(other("x"), SubmitOutcome::Taken(_)));
    assert!(matches!(other("y"), SubmitOutcome::Taken(_)));
    assert_eq!(other("z"), SubmitOutcome::Full(4));
    assert_eq!(submit("c"), SubmitOutcome::Full(4));
    assert!(matches!(submit("b"), SubmitOutcome::Known(_)));
    jobs.apply_event(&id("a"), JobEvent::Turn, |_row| {})
        .unwrap();
    assert!(matches!(submit("c"), SubmitOutcome::Taken(_)));
    let cancelled = JobEvent::Cancelled("operator/olga".to_owned());
    jobs.apply_event(&id("b"), cancelled, |_row| {}).unwrap();
    assert!(matches!(submit("d"), SubmitOutcome::Taken(_)));
    let ids: Vec<_> = jobs
        .all_jobs()
        .unwrap()
        .map(|row| row.unwrap().id)
        .collect();
    assert_eq!(ids, ["a", "b", "c", "d", "x", "y"].map(id));
    // One person may have the bigger half of an odd number, and the only place if there is one.
    for (most, half) in [(0, 0), (1, 1), (2, 1), (3, 2)] {
        let fixture = TableFixture::new();
        let (_, jobs) = fixture.open();
        let taken = (0..4).filter(|at| {
            let one = row(&format!("j-{at}"), "researcher/anna");
            matches!(jobs.submit_job(one, most).unwrap(), SubmitOutcome::Taken(_))
        });
        assert_eq!(taken.count(), half, "{most}");
    }
    let cancelled = jobs.get(&id("b")).unwrap().unwrap();
    assert_eq!(cancelled.started, None);
    let last: Vec<_> = admin
        .audit_rows(0)
        .unwrap()
        .map(|row| row.unwrap().1)
        .filter(|line| line.who == "operator/olga")
        .map(|line| line.what)
        .collect();
    assert_eq!(last, ["batch job b cancelled before it began"]);
}

/// Fails if the jobs that the index runs all day fill the audit trail, or one that was cancelled is not recorded.
#[test]
fn trail_tells_only_of_cancelled_index_jobs() {
    let fixture = TableFixture::new();
    let (admin, jobs) = fixture.open();
    for name in ["read", "ended"] {
        jobs.submit_job(row(name, "index/main"), 1).unwrap();
        jobs.apply_event(&id(name), JobEvent::Turn, |_row| {})
            .unwrap();
    }
    let failed = JobEvent::Failed("no room".to_owned());
    jobs.apply_event(&id("read"), failed, |_row| {}).unwrap();
    let cancelled = JobEvent::Cancelled("operator/otto".to_owned());
    for event in [cancelled, compared(0)] {
        jobs.apply_event(&id("ended"), event, |_row| {}).unwrap();
    }
    for name in ["read", "ended"] {
        let row = jobs.get(&id(name)).unwrap().unwrap();
        jobs.forget_job(&row).unwrap();
    }
    let lines = admin.audit_rows(0).unwrap().map(|row| row.unwrap().1.what);
    let expected = ["batch job ended cancelled; 0 files unread, 0 gaps"];
    assert_eq!(lines.collect::<Vec<_>>(), expected);
}

/// Fails if a job is kept longer than the repository is set, or for another time than it asked.
#[test]
fn job_is_kept_no_longer_than_set() {
    let fixture = TableFixture::new();
    let (_, jobs) = fixture.open();
    let minutes = |count| Some(Duration::from_mins(count));
    for (name, keep, kept) in [
        ("a", None, 60),
        ("b", minutes(5), 5),
        ("c", minutes(90), 60),
    ] {
        let mut row = row(name, "researcher/anna");
        row.spec.keep = keep;
        jobs.submit_job(row, 10).unwrap();
        let cancelled = JobEvent::Cancelled("researcher/anna".to_owned());
        let (row, _) = jobs
            .apply_event(&id(name), cancelled, |_row| {})
            .unwrap()
            .unwrap();
        let expires = row.expires.unwrap().duration_since(row.ended.unwrap());
        assert_eq!(expires.as_mins(), kept, "{name}");
    }
}
