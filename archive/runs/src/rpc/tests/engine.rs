//! Jobs that were made to break the engine: damage, endless computing, more output than anybody reads.

use archive_model::{FileSelection, GROUP_SIZE, JobClass};
use tools_testing::noise;

use super::*;

/// The deed of a test's job with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TestDeed {
    /// Writes the bytes of the file.
    Copy,
    /// Computes until it is told to end.
    Spin,
    /// Computes for the given number of milliseconds.
    Work(u64),
    /// Writes the given number of KiB.
    Write(usize),
    /// Panics over the file `bad`.
    Panic,
}

#[derive(Debug)]
struct TestPlan {
    does: TestDeed,
    /// Bytes that were written by all jobs.
    written: Arc<AtomicU64>,
    files: Arc<FileCount>,
}

/// The number of files that are in the job at once, now and at most.
#[derive(Debug, Default)]
struct FileCount {
    now: AtomicUsize,
    most: AtomicUsize,
}

impl Plan for TestPlan {
    fn reduce(&self) -> Reduce {
        Reduce::Concatenate
    }

    fn start(&self, control: &StopControl) -> Result<Box<dyn Job + '_>, BatchJobError> {
        let now = self.files.now.fetch_add(1, Ordering::Relaxed) + 1;
        self.files.most.fetch_max(now, Ordering::Relaxed);
        Ok(Box::new(TestJob {
            test: self,
            control: control.clone(),
        }))
    }
}

struct TestJob<'a> {
    test: &'a TestPlan,
    control: StopControl,
}

impl Drop for TestJob<'_> {
    fn drop(&mut self) {
        self.test.files.now.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Job for TestJob<'_> {
    fn reads(&self) -> Reads {
        match self.test.does {
            TestDeed::Copy => Reads::Bytes,
            TestDeed::Spin | TestDeed::Work(_) | TestDeed::Write(_) | TestDeed::Panic => {
                Reads::Nothing
            }
        }
    }

    fn begin(&mut self, file: &File, out: &mut dyn Sink) -> Result<(), BatchJobError> {
        match self.test.does {
            TestDeed::Copy => {}
            TestDeed::Spin => loop {
                self.control.check_stop()?;
                std::hint::spin_loop();
            },
            TestDeed::Work(millis) => {
                let begun = Instant::now();
                while begun.elapsed() < Duration::from_millis(millis) {
                    self.control.check_stop()?;
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
            TestDeed::Write(kib) => {
                for _ in 0..kib {
                    out.write(&[7; 1024])?;
                    self.test.written.fetch_add(1024, Ordering::Relaxed);
                }
            }
            TestDeed::Panic => {
                out.write(b"x")?;
                assert!(file.name.as_str() != "bad", "a bug");
            }
        }
        Ok(())
    }

    fn bytes(&mut self, bytes: &[u8], out: &mut dyn Sink) -> Result<(), BatchJobError> {
        Ok(out.write(bytes)?)
    }
}

impl TestNode {
    /// Makes an engine with this number of workers.
    fn workers(&self, workers: u16) -> Arc<NodeJobs> {
        self.with(NodeBatchSettings {
            workers: NonZeroU16::new(workers),
            ..NodeBatchSettings::default()
        })
    }

    fn with(&self, settings: NodeBatchSettings) -> Arc<NodeJobs> {
        let node_jobs = NodeJobs::open(NodeJobsParts {
            settings,
            ..self.parts()
        });
        Arc::new(node_jobs.unwrap())
    }

    fn running(&self) -> (i64, i64) {
        let counters = &self.counters;
        (counters.jobs.get(), counters.files.get())
    }

    /// Waits until nothing of any job is left.
    async fn quiet(&self) {
        eventually("nothing is left", PATIENCE, async || match self.running() {
            (0, 0) => Ok(()),
            running => Err(running),
        })
        .await;
    }
}

struct StartedJob {
    running: RunningJob,
    control: StopControl,
    stop: CancellationToken,
    written: Arc<AtomicU64>,
    files: Arc<FileCount>,
}

fn begin(node_jobs: &Arc<NodeJobs>, does: TestDeed, output: u64) -> StartedJob {
    begin_as(
        node_jobs,
        does,
        output,
        &Program::BuiltIn("test".to_owned()),
    )
}

/// Begins a job as a component would, which may have 512 MiB.
fn begin_as(
    node_jobs: &Arc<NodeJobs>,
    does: TestDeed,
    output: u64,
    program: &Program,
) -> StartedJob {
    let control = StopControl::default();
    let stop = CancellationToken::new();
    let written = Arc::new(AtomicU64::new(0));
    let files = Arc::new(FileCount::default());
    let order = RunOrder {
        id: JobId::new("j1").unwrap(),
        plan: Box::new(TestPlan {
            does,
            written: Arc::clone(&written),
            files: Arc::clone(&files),
        }),
        selection: FileSelection::default(),
        after: None,
        output,
        ahead: node_jobs.most_ahead(program, 512 << 20),
        control: control.clone(),
        stop: stop.clone(),
    };
    StartedJob {
        running: RunningJob::begin_job(
            node_jobs,
            node_jobs.take_slot(JobClass::Research).unwrap(),
            order,
        ),
        control,
        stop,
        written,
        files,
    }
}

/// Collects all files with their output.
async fn all(
    running: &mut RunningJob,
) -> Result<Vec<(archive_model::BatchFileOutcome, Vec<u8>)>, EarlyEnd> {
    let mut files = Vec::new();
    let mut half = Vec::new();
    loop {
        match in_time(running.next()).await? {
            RunStep::Output(bytes) => half.extend_from_slice(&bytes),
            RunStep::Done(done) => files.push((*done, std::mem::take(&mut half))),
            RunStep::Begin(_) | RunStep::Progress(_) => {}
            RunStep::End(..) => return Ok(files),
        }
    }
}

/// Fails if damage of one file ends a job or costs another file, or the catalog does not hear of it.
#[tokio::test(flavor = "multi_thread")]
async fn damage_costs_its_own_file_and_is_filed() {
    let fixture = TestNode::new();
    let files: Vec<(String, Vec<u8>)> = (0..8_u8)
        .map(|number| (format!("f{number}"), noise(3_000_000, number.into())))
        .collect();
    for (name, bytes) in &files {
        fixture.store(name, bytes);
    }
    let target = |name: &str| {
        let name = FileName::new(name).unwrap();
        let volume = fixture.node.files.find_copies(&name).unwrap()[0]
            .volume
            .clone();
        fixture
            .node
            .disks
            .find_layout(&volume)
            .unwrap()
            .target_paths(&name)
    };
    let flip = |path: &std::path::Path, at: usize| {
        let mut bytes = std::fs::read(path).unwrap();
        bytes[at] ^= 1;
        std::fs::write(path, bytes).unwrap();
    };
    // A rotten outboard, a flipped bit, both, a cut file, none; and no outboard.
    flip(&target("f1").outboard, 64 * 182 - 1);
    flip(&target("f2").file, 2_000_000);
    flip(&target("f3").file, 2_000_000);
    std::fs::write(target("f3").outboard, vec![0; 11_648]).unwrap();
    let cut = std::fs::read(target("f4").file).unwrap();
    std::fs::write(target("f4").file, &cut[..2_500_000]).unwrap();
    std::fs::remove_file(target("f5").file).unwrap();
    std::fs::remove_file(target("f6").outboard).unwrap();

    let mut begun = begin(&fixture.workers(2), TestDeed::Copy, u64::MAX);
    let found = all(&mut begun.running).await.unwrap();
    drop(begun);
    assert_eq!(found.len(), 8);
    let group = |at: u64| at - at % GROUP_SIZE;
    for ((done, output), (name, bytes)) in found.iter().zip(&files) {
        assert_eq!((done.name.as_str(), done.size), (name.as_str(), 3_000_000));
        assert_eq!(done.output, output.len() as u64);
        let expected = match name.as_str() {
            "f2" => Some(("damaged", Some(group(2_000_000)))),
            "f3" => Some(("damaged", None)),
            "f4" => Some(("damaged", Some(group(2_500_000)))),
            "f5" => Some(("unread", None)),
            _ => None,
        };
        match expected {
            None => assert!(done.failures.is_empty() && output == bytes, "{name}"),
            Some((kind, offset)) => {
                let failure = &done.failures[0];
                assert_eq!(failure.kind.as_str(), kind, "{name}: {failure:?}");
                if offset.is_some() {
                    assert_eq!(failure.offset, offset, "{name}");
                }
                assert!(bytes.starts_with(output), "{name}: never a wrong byte");
            }
        }
    }
    for (name, is_damaged) in [("f1", false), ("f2", true), ("f3", true), ("f4", true)] {
        let found = fixture
            .node
            .files
            .find_copies(&FileName::new(name).unwrap())
            .unwrap();
        let condition = &found[0].row.condition;
        let damaged = matches!(condition, Condition::Damaged { .. });
        assert_eq!(damaged, is_damaged, "{name}: {condition:?}");
    }
    let gone = fixture
        .node
        .files
        .find_copies(&FileName::new("f5").unwrap())
        .unwrap();
    assert!(matches!(gone[0].row.condition, Condition::Missing { .. }));
    fixture.quiet().await;
    let counters = &fixture.counters;
    assert_eq!((counters.whole.get(), counters.failed.get()), (4, 4));
}

/// Fails if files of a job are still read or computed after its caller has gone or stopped it, or the reason of the
/// stop is lost.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_a_cancelled_job_runs_on() {
    let fixture = TestNode::new();
    for number in 0..20 {
        fixture.store(&format!("f{number:02}"), &noise(2_000_000, number));
    }
    let node_jobs = fixture.workers(2);
    for does in [
        TestDeed::Spin,
        TestDeed::Work(600_000),
        TestDeed::Write(1 << 30),
    ] {
        let mut begun = begin(&node_jobs, does, u64::MAX);
        // Files are begun while somebody asks what comes next.
        while fixture.running().1 < 2 {
            let next = begun.running.next();
            drop(tokio::time::timeout(Duration::from_millis(20), next).await);
        }
        drop(begun);
        fixture.quiet().await;
    }
    for why in [Stop::Time, Stop::Cancelled] {
        let mut begun = begin(&node_jobs, TestDeed::Spin, u64::MAX);
        while fixture.running().1 < 2 {
            in_time(begun.running.next()).await.unwrap();
        }
        begun.control.stop(why);
        begun.stop.cancel();
        let ended = all(&mut begun.running).await.unwrap_err();
        assert!(
            matches!(ended, EarlyEnd::Stopped(stop) if stop == why),
            "{ended}"
        );
        drop(begun);
        fixture.quiet().await;
    }
}

/// Fails if a job whose output nobody reads keeps others from computing, or fills the memory.
#[tokio::test(flavor = "multi_thread")]
async fn unread_job_holds_no_worker() {
    let fixture = TestNode::new();
    for number in 0..30 {
        fixture.store(&format!("f{number:02}"), b"x");
    }
    let node_jobs = fixture.workers(1);
    let unread = begin(&node_jobs, TestDeed::Write(5 * 1024), u64::MAX);
    let mut unread = unread;
    // The job computes as long as a caller asks for the next step.
    for _ in 0..40 {
        if let RunStep::Done(_) = in_time(unread.running.next()).await.unwrap() {
            break;
        }
    }
    unread.running.let_go();
    let mut second = begin(&node_jobs, TestDeed::Write(2 * 1024), u64::MAX);
    let files = all(&mut second.running).await.unwrap();
    assert_eq!(files.len(), 30, "while nobody reads the first");
    assert!(files.iter().all(|(_, output)| output.len() == 2 << 20));
    let written = unread.written.load(Ordering::Relaxed);
    assert!(written <= 10 << 20, "{written} bytes, and nobody reads");
    let files = all(&mut unread.running).await.unwrap();
    assert!(files.len() >= 29, "it goes on when it is read");
    drop((unread, second));
    fixture.quiet().await;
}

/// Fails if more components of a job are begun than its share of the memory holds.
#[tokio::test(flavor = "multi_thread")]
async fn components_fit_into_the_share_of_memory() {
    let fixture = TestNode::new();
    for number in 0..30 {
        fixture.store(&format!("f{number:02}"), b"x");
    }
    let component = Program::Component(root(b"x"));
    for (gib, fitting) in [(1, 1), (2, 1), (4, 2), (6, 3)] {
        let node_jobs = fixture.with(NodeBatchSettings {
            workers: NonZeroU16::new(4),
            memory: Some(ByteSize::from_bytes(gib << 30)),
            ..NodeBatchSettings::default()
        });
        let mut job = begin_as(&node_jobs, TestDeed::Work(2), u64::MAX, &component);
        assert_eq!(all(&mut job.running).await.unwrap().len(), 30);
        let most = job.files.most.load(Ordering::Relaxed);
        assert_eq!(node_jobs.most_ahead(&component, 512 << 20).get(), fitting);
        assert!(most <= fitting, "{most} at once, {fitting} fit");
        drop(job);
        fixture.quiet().await;
    }
}

/// Fails if a job that computes without an end takes the permits of others.
#[tokio::test(flavor = "multi_thread")]
async fn endless_job_keeps_no_other_waiting() {
    let fixture = TestNode::new();
    for number in 0..5 {
        fixture.store(&format!("f{number}"), b"x");
    }
    let node_jobs = fixture.workers(1);
    let mut endless = begin(&node_jobs, TestDeed::Spin, u64::MAX);
    while fixture.running().1 < 1 {
        in_time(endless.running.next()).await.unwrap();
    }
    let mut beside = begin(&node_jobs, TestDeed::Write(1), u64::MAX);
    assert_eq!(all(&mut beside.running).await.unwrap().len(), 5);
    assert_eq!(endless.control.stop_reason(), None, "it goes on");
    drop((endless, beside));
    fixture.quiet().await;
}

/// Fails if output is limited for each file and not for the job, the limit is off by a byte, or a caller cannot tell it
/// from a lack of time.
#[tokio::test(flavor = "multi_thread")]
async fn more_output_than_allowed_ends_the_job() {
    let fixture = TestNode::new();
    for number in 0..5 {
        fixture.store(&format!("f{number}"), b"x");
    }
    let node_jobs = fixture.workers(2);
    let mut begun = begin(&node_jobs, TestDeed::Write(1024), 5 << 20);
    assert_eq!(all(&mut begun.running).await.unwrap().len(), 5);
    let mut begun = begin(&node_jobs, TestDeed::Write(1024), (5 << 20) - 1);
    let ended = all(&mut begun.running).await.unwrap_err();
    assert!(matches!(ended, EarlyEnd::Stopped(Stop::Output)), "{ended}");
    let mut limited = open();
    limited.spec.as_mut().unwrap().output = 8;
    let (heard, ended) = run_to_end(&fixture, limited).await;
    assert_eq!(
        CallErrorKind::from_status(&ended.unwrap_err()),
        CallErrorKind::NoSpace
    );
    assert_eq!(heard.names(), ["f0", "f1"]);
    let mut short = open();
    short.left_ms = 0;
    let (_, ended) = super::run_to_end(&fixture, short).await;
    assert_eq!(
        CallErrorKind::from_status(&ended.unwrap_err()),
        CallErrorKind::TimedOut
    );
}

/// Fails if a panic of a job ends the job, or the node.
#[tokio::test(flavor = "multi_thread")]
async fn panic_of_a_job_costs_one_file() {
    let fixture = TestNode::new();
    for name in ["a", "bad", "c"] {
        fixture.store(name, b"x");
    }
    let mut begun = begin(&fixture.workers(1), TestDeed::Panic, u64::MAX);
    let files = all(&mut begun.running).await.unwrap();
    let failed: Vec<usize> = files.iter().map(|(done, _)| done.failures.len()).collect();
    assert_eq!(failed, [0, 1, 0]);
    drop(begun);
    fixture.quiet().await;
    let next = begin(&fixture.workers(1), TestDeed::Copy, u64::MAX);
    let mut next = next;
    assert_eq!(all(&mut next.running).await.unwrap().len(), 3);
}
