//! The scrub of a real node: it finds damage, reads its neighbours, releases files, pauses, and remembers.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use archive_daemon::{ByteSize, Clock, Metrics, Period, Tasks, Workers};
use archive_model::{NodeKey, NodeScrub, ScrubActivity, ScrubOrder};

use tools_testing::{PATIENCE, eventually};

use super::broken::SIZE;
use super::*;
use crate::metrics::Instruments;
use crate::scrub::{Scrub, ScrubContext, ScrubControl};
use crate::settings::ScrubSettings;

const SECOND: Duration = Duration::from_secs(1);

fn clock_now() -> Timestamp {
    Clock::system_clock().now()
}

/// Returns settings by which every copy is due at once.
fn eager() -> ScrubSettings {
    ScrubSettings {
        deadline: Period::from_secs(1),
        young: Period::from_secs(0),
        ..ScrubSettings::default()
    }
}

/// Makes a machine with these files.
fn machine_with(files: &[&str]) -> NodeMachine {
    let machine = NodeMachine::new();
    let (node, _) = machine.start();
    for file in files {
        machine.store(&node, file, &bytes(SIZE)).unwrap();
    }
    // The time of the other tests is not that of the clock.
    let mut entries = listing(&node);
    for entry in &mut entries {
        entry.row.verified = Some(clock_now() - Duration::from_hours(2));
    }
    node.catalog.put_entries(&entries).unwrap();
    machine
}

struct RunningScrub {
    tasks: Tasks,
    workers: Workers,
    node: Arc<Node>,
    control: Arc<ScrubControl>,
}

impl RunningScrub {
    fn start(node: Node, data: &Path, settings: ScrubSettings) -> Self {
        let node = Arc::new(node);
        let control = Arc::new(ScrubControl::open(data, settings, clock_now()));
        let tasks = Tasks::new();
        let clock = Clock::system_clock();
        let instruments = Instruments::new(&Metrics::new(), &node.id).unwrap();
        let context = ScrubContext {
            node: Arc::clone(&node),
            control: Arc::clone(&control),
            clock: clock.clone(),
            instruments,
            stop: tasks.stop_token(),
        };
        let scrub = Scrub::new(context, tasks.clone());
        let workers = Workers::new(clock, tasks.clone());
        workers.spawn_worker(scrub).unwrap();
        Self {
            tasks,
            workers,
            node,
            control,
        }
    }

    fn state(&self) -> NodeScrub {
        let key = NodeKey {
            replica: self.node.replica.clone(),
            node: self.node.id.clone(),
        };
        self.control.scrub_state(key, clock_now())
    }

    /// Returns the number of steps that the scrub was asked to make.
    fn turns(&self) -> u64 {
        self.workers.list_workers()[0].steps
    }

    async fn until(&self, what: &str, is_so: impl Fn(&NodeScrub) -> bool) -> NodeScrub {
        eventually(what, PATIENCE, async || {
            let state = self.state();
            if is_so(&state) { Ok(state) } else { Err(state) }
        })
        .await
    }

    async fn stop(self) {
        self.tasks.stop_all();
        self.tasks.join_tasks(SECOND * 10).await.unwrap();
    }
}

/// Fails if the scrub leaves out a copy, passes over damage, or begins again after a restart.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scrub_reads_all_and_resumes_after_restart() {
    let machine = machine_with(&["a", "b", "c"]);
    machine.flip("b", &[3]);
    let settings = ScrubSettings {
        deadline: Period::from_secs(3600),
        ..eager()
    };
    let running = RunningScrub::start(machine.start().0, &machine.path("data"), settings.clone());
    let state = running.until("three files", |state| state.files >= 3).await;
    assert_eq!(state.found, 1);
    assert_eq!(running.node.files.count_findings().damaged, 1);
    assert!(state.bytes >= 3 * SIZE as u64);
    let state = running
        .until("known", |state| state.next.is_some() && state.due == 0)
        .await;
    assert_eq!((state.state, state.unknown), (ScrubActivity::Idle, 0));
    assert!(state.oldest.is_some());
    assert_eq!(
        running.node.files.scrub_age.oldest_verification(),
        state.oldest
    );
    running.stop().await;
    let running = RunningScrub::start(machine.start().0, &machine.path("data"), settings);
    let state = running
        .until("counted", |state| state.oldest.is_some())
        .await;
    assert_eq!((state.due, state.files), (0, 0), "what was read stays read");
    assert_eq!(running.node.files.scrub_age.verify_by(), None);
    running.stop().await;
}

/// Fails if the scrub reads during a pause, or a restart forgets an order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pause_and_throttle_survive_a_restart() {
    let machine = machine_with(&["a"]);
    let running = RunningScrub::start(machine.start().0, &machine.path("data"), eager());
    running.until("read", |state| state.files > 0).await;
    running
        .control
        .give_order(ScrubOrder::Throttle(Some(1000)), clock_now())
        .unwrap();
    running
        .control
        .give_order(ScrubOrder::Pause(None), clock_now())
        .unwrap();
    let state = running.state();
    assert_eq!(state.state, ScrubActivity::Paused);
    let until = state.paused_until.unwrap();
    assert!(
        until > clock_now() + Duration::from_hours(23)
            && until < clock_now() + Duration::from_hours(25)
    );
    running.stop().await;

    let running = RunningScrub::start(machine.start().0, &machine.path("data"), eager());
    let state = running.until("due again", |state| state.due > 0).await;
    assert_eq!(
        (state.paused_until, state.bytes_per_second),
        (Some(until), Some(1000))
    );
    let late = |running: &RunningScrub| {
        running
            .node
            .files
            .scrub_age
            .verify_by()
            .is_some_and(|by| by < clock_now())
    };
    running.until("late", |_| late(&running)).await;
    // The scrub has had turns, with copies due, and has read none.
    let turns = running.turns();
    let state = running.until("more turns", |_| running.turns() >= turns + 3);
    assert_eq!(state.await.bytes, 0, "it is paused");
    running
        .control
        .give_order(ScrubOrder::Resume, clock_now())
        .unwrap();
    // At this rate the file takes minutes; another caller gets it at once.
    running.until("reading", |state| state.bytes > 0).await;
    assert_eq!(running.state().files, 0);
    let node = Arc::clone(&running.node);
    let before = Instant::now();
    let verified = tokio::task::spawn_blocking(move || {
        node.files
            .verify_copy(&name("a"), None, clock_now(), &mut |_| {
                ControlFlow::Continue(())
            })
    });
    verified.await.unwrap().unwrap();
    assert!(before.elapsed() < 5 * SECOND, "{:?}", before.elapsed());
    let before = Instant::now();
    running.stop().await;
    assert!(
        before.elapsed() < 5 * SECOND,
        "a slow read holds up no stop"
    );
}

/// Fails if a scrub that is switched off reads, or does not say what is due.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn disabled_scrub_reads_nothing_but_counts() {
    let machine = machine_with(&["a"]);
    let off = ScrubSettings {
        enabled: false,
        rate: Some(ByteSize::from_bytes(77)),
        ..eager()
    };
    let running = RunningScrub::start(machine.start().0, &machine.path("data"), off);
    let state = running
        .until("counted", |state| state.oldest.is_some())
        .await;
    assert_eq!(
        (state.state, state.bytes_per_second, state.files),
        (ScrubActivity::Off, Some(77), 0)
    );
    running.stop().await;
}
