//! Tests of fairness, and that no job is lost or started twice.

use super::*;

fn job(text: &str) -> JobId {
    JobId::new(text).unwrap()
}

fn class(replica: &str, class: JobClass) -> ClassKey {
    ClassKey {
        replica: ReplicaId::new(replica).unwrap(),
        class,
    }
}

/// Returns the class of people of a replica.
fn replica(text: &str) -> ClassKey {
    class(text, JobClass::Research)
}

fn drain(queue: &mut JobQueue) -> Vec<String> {
    let mut order = Vec::new();
    while let Some((replica, job)) = queue.take_next() {
        order.push(job.to_string());
        queue.end_job(&replica);
    }
    order
}

/// Fails if one person's many jobs delay those of another, or overtake each other.
#[test]
fn persons_take_turns_in_order() {
    let mut queue = JobQueue::new(1);
    let one = replica("one");
    for at in 1..=4 {
        queue.push_job(&one, "researcher/anna", job(&format!("a{at}")));
    }
    assert_eq!(queue.take_next().unwrap().1, job("a1"));
    queue.push_job(&one, "researcher/bo", job("b1"));
    queue.push_job(&one, "researcher/bo", job("b2"));
    queue.push_job(&one, "researcher/cy", job("c1"));
    assert_eq!(queue.take_next(), None, "one runs");
    queue.end_job(&one);
    assert_eq!(drain(&mut queue), ["a2", "b1", "c1", "a3", "b2", "a4"]);
}

/// Fails if a job waits for a place of another replica, or a resumed job waits behind new ones.
#[test]
fn resumed_job_goes_first_in_its_replica() {
    let one = replica("one");
    let two = replica("two");
    let mut queue = JobQueue::new(2);
    for at in 1..=3 {
        queue.push_job(&one, "researcher/anna", job(&format!("a{at}")));
        queue.push_job(&two, "researcher/anna", job(&format!("z{at}")));
    }
    queue.push_first(&one, job("again"));
    let given: Vec<_> =
        std::iter::from_fn(|| queue.take_next().map(|(_, job)| job.to_string())).collect();
    assert_eq!(given, ["again", "a1", "z1", "z2"]);
    queue.end_job(&two);
    assert_eq!(queue.take_next(), Some((two, job("z3"))));
    assert_eq!(queue.take_next(), None);
}

/// Fails if a removed job still runs, or its removal changes the order of the others.
#[test]
fn removed_job_leaves_turns_of_others() {
    let one = replica("one");
    let fill = || {
        let mut queue = JobQueue::new(1);
        queue.push_first(&one, job("f"));
        for (who, id) in [("a", "a1"), ("b", "b1"), ("a", "a2"), ("b", "b2")] {
            queue.push_job(&one, who, job(id));
        }
        queue
    };
    let all = ["f", "a1", "b1", "a2", "b2"];
    assert_eq!(drain(&mut fill()), all);
    for out in all {
        let mut queue = fill();
        assert!(queue.remove_job(&one, &job(out)));
        assert!(!queue.remove_job(&one, &job(out)), "{out} twice");
        let mut left = drain(&mut queue);
        assert!(!left.contains(&out.to_owned()));
        left.sort();
        let mut expected: Vec<_> = all.iter().filter(|id| **id != out).collect();
        expected.sort();
        assert_eq!(left.iter().collect::<Vec<_>>(), expected);
    }
    let mut queue = fill();
    assert!(queue.remove_job(&one, &job("a1")) && queue.remove_job(&one, &job("a2")));
    assert_eq!(drain(&mut queue), ["f", "b1", "b2"]);
    assert!(!queue.remove_job(&replica("none"), &job("b1")));
}

/// An event of a class.
#[derive(Clone, Copy, Debug)]
enum Act {
    /// A job of this person comes.
    Push(char),
    /// A job that ran before a restart comes.
    Again,
    /// The job that runs longest ends.
    End,
    /// The job that came last is cancelled.
    Cancel,
}

/// A queue, and the jobs that its classes have started.
struct Play {
    queue: JobQueue,
    given: BTreeMap<ClassKey, Vec<(u32, JobId)>>,
    running: BTreeMap<ClassKey, usize>,
    last: BTreeMap<ClassKey, JobId>,
}

impl Play {
    fn new() -> Self {
        Self {
            queue: JobQueue::new(2),
            given: BTreeMap::new(),
            running: BTreeMap::new(),
            last: BTreeMap::new(),
        }
    }

    /// Applies an event to a class at a moment, and starts the jobs that may run then.
    fn act(&mut self, moment: u32, key: &ClassKey, act: Act) {
        let id = job(&format!("j{moment}"));
        match act {
            Act::Push(who) => self.queue.push_job(key, &who.to_string(), id.clone()),
            Act::Again => self.queue.push_first(key, id.clone()),
            Act::End => {
                let running = self.running.entry(key.clone()).or_default();
                if *running > 0 {
                    *running -= 1;
                    self.queue.end_job(key);
                }
            }
            Act::Cancel => {
                if let Some(last) = self.last.get(key) {
                    self.queue.remove_job(key, last);
                }
            }
        }
        if matches!(act, Act::Push(_) | Act::Again) {
            self.last.insert(key.clone(), id);
        }
        while let Some((key, job)) = self.queue.take_next() {
            let running = self.running.entry(key.clone()).or_default();
            *running += 1;
            assert!(*running <= 2, "{key:?}");
            self.given.entry(key).or_default().push((moment, job));
        }
    }
}

/// Fails if, in any order of events, a job of the index starts at another moment because of jobs of people, or the
/// other way round; or if more jobs of a class run than have places.
#[test]
fn class_is_independent_of_the_other() {
    const DEEP: u32 = 5;
    let keys = JobClass::ALL.map(|of| class("one", of));
    let acts = [
        Act::Push('a'),
        Act::Push('b'),
        Act::Again,
        Act::End,
        Act::Cancel,
    ];
    let all: Vec<_> = keys
        .iter()
        .flat_map(|key| acts.map(|act| (key, act)))
        .collect();
    let mut sequences = 0_u32;
    for number in 0..all.len().pow(DEEP) {
        let mut both = Play::new();
        let mut rest = number;
        let mut alone = [Play::new(), Play::new()];
        for moment in 0..DEEP {
            let (key, act) = all[rest % all.len()];
            rest /= all.len();
            both.act(moment, key, act);
            let own = usize::from(key.class == JobClass::Index);
            alone[own].act(moment, key, act);
        }
        for (key, alone) in keys.iter().zip(&alone) {
            assert_eq!(both.given.get(key), alone.given.get(key), "{number}");
        }
        sequences += 1;
    }
    assert_eq!(sequences, 100_000);
}

/// Fails if jobs of people take places of the index, the index those of people, or either has more than its own.
#[test]
fn each_class_has_its_own_waiting_places() {
    let waiting = |people: usize, own: usize, index: usize| {
        let people = (0..people).map(move |at| (JobClass::Research, at < own));
        people.chain((0..index).map(|_| (JobClass::Index, true)))
    };
    let most = MOST_OF_INDEX_WAIT;
    for people in 0..6 {
        for own in 0..=people {
            for index in [0, 1, most - 1, most, most + 1] {
                let of_people = admit_job(JobClass::Research, 4, waiting(people, own, index));
                let expected = match (people, own) {
                    (4.., _) => Err(QueueFull::Class(people)),
                    (_, 2..) => Err(QueueFull::Own(own)),
                    _ => Ok(()),
                };
                assert_eq!(of_people, expected, "{people} {own} {index}");
                let of_index = admit_job(JobClass::Index, 4, waiting(people, own, index));
                let expected = if index < most {
                    Ok(())
                } else {
                    Err(QueueFull::Class(index))
                };
                assert_eq!(of_index, expected, "{people} {own} {index}");
            }
        }
    }
    assert_eq!(
        admit_job(JobClass::Research, 0, []),
        Err(QueueFull::Class(0)),
        "no place"
    );
}
