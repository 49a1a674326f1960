//! The queue of jobs: pure, fair by person.
//!
//! The jobs of people and those of the index are two classes, each with its own places in every replica: a class is
//! served as if the other did not exist. Within a class, persons who wait take turns; the jobs of one person go in the
//! order in which they came. Jobs that were running when the repository stopped go first. Owns nothing on disk: it is
//! filled from the table at the start.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};

use archive_model::{JobClass, JobId, ReplicaId};

/// The most jobs of the index that may wait for their turn: it submits the next when it has read the last, and a faulty
/// program must not fill the admin data.
const MOST_OF_INDEX_WAIT: usize = 100;

/// The jobs that wait, and the number of jobs that run.
#[derive(Debug)]
pub struct JobQueue {
    /// The most jobs of people that may run at once over one replica.
    most: usize,
    classes: BTreeMap<ClassKey, ClassQueue>,
}

/// The place where a job waits and runs: its replica and its class.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClassKey {
    /// The replica.
    pub replica: ReplicaId,
    /// The class: of people, or of the index.
    pub class: JobClass,
}

#[derive(Debug, Default)]
struct ClassQueue {
    running: usize,
    /// Resumed jobs: before everybody else.
    first: VecDeque<JobId>,
    /// The persons who wait, the next one first.
    turns: VecDeque<String>,
    waiting: BTreeMap<String, VecDeque<JobId>>,
}

/// The reason why a further job may not wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueFull {
    /// The class is full: the number of jobs that wait in it.
    Class(usize),
    /// The person has too many jobs: the number of them that wait.
    Own(usize),
}

/// Decides whether a job may wait beside those that wait already, each given by its class and whether the same person
/// has submitted it. At most `most` jobs of people wait, half of them, rounded up, of one person. The index has places
/// of its own, and may use all of them.
///
/// # Errors
///
/// [`QueueFull`] if the class of the job, or the person, has too many jobs that wait.
pub fn admit_job(
    class: JobClass,
    most: usize,
    waiting: impl IntoIterator<Item = (JobClass, bool)>,
) -> Result<(), QueueFull> {
    let mut all = 0_usize;
    let mut own = 0_usize;
    for (_, is_own) in waiting.into_iter().filter(|(other, _)| *other == class) {
        all = all.saturating_add(1);
        own = own.saturating_add(usize::from(is_own));
    }
    let (most, most_own) = match class {
        JobClass::Research => (most, most.div_ceil(2)),
        JobClass::Index => (MOST_OF_INDEX_WAIT, MOST_OF_INDEX_WAIT),
    };
    if all >= most {
        Err(QueueFull::Class(all))
    } else if own >= most_own {
        Err(QueueFull::Own(own))
    } else {
        Ok(())
    }
}

impl JobQueue {
    /// Creates an empty queue. At least one job of people may run over a replica.
    pub fn new(most: usize) -> Self {
        Self {
            most: most.max(1),
            classes: BTreeMap::new(),
        }
    }

    /// Adds a job behind the others of its person.
    pub fn push_job(&mut self, key: &ClassKey, who: &str, job: JobId) {
        let class = self.classes.entry(key.clone()).or_default();
        if !class.waiting.contains_key(who) {
            class.turns.push_back(who.to_owned());
        }
        class
            .waiting
            .entry(who.to_owned())
            .or_default()
            .push_back(job);
    }

    /// Adds a job that ran already, before all that have not.
    pub fn push_first(&mut self, key: &ClassKey, job: JobId) {
        let class = self.classes.entry(key.clone()).or_default();
        class.first.push_back(job);
    }

    /// Takes the next job that may run now; it counts as running until [`JobQueue::end_job`].
    pub fn take_next(&mut self) -> Option<(ClassKey, JobId)> {
        let most_of_people = self.most;
        let mut classes = self.classes.iter_mut();
        classes.find_map(|(key, class)| {
            let most = match key.class {
                JobClass::Research => most_of_people,
                JobClass::Index => JobClass::MOST_OF_INDEX,
            };
            let job = (class.running < most).then(|| class.take())??;
            class.running += 1;
            Some((key.clone(), job))
        })
    }

    /// Frees the place of a job that [`JobQueue::take_next`] returned.
    pub fn end_job(&mut self, key: &ClassKey) {
        if let Some(class) = self.classes.get_mut(key) {
            class.running = class.running.saturating_sub(1);
        }
    }

    /// Removes a waiting job. Returns whether it waited.
    pub fn remove_job(&mut self, key: &ClassKey, job: &JobId) -> bool {
        self.classes
            .get_mut(key)
            .is_some_and(|class| class.remove(job))
    }
}

impl ClassQueue {
    fn take(&mut self) -> Option<JobId> {
        if let Some(job) = self.first.pop_front() {
            return Some(job);
        }
        let who = self.turns.pop_front()?;
        let own = self.waiting.get_mut(&who)?;
        let job = own.pop_front();
        if own.is_empty() {
            self.waiting.remove(&who);
        } else {
            self.turns.push_back(who);
        }
        job
    }

    fn remove(&mut self, job: &JobId) -> bool {
        if let Some(at) = self.first.iter().position(|first| first == job) {
            return self.first.remove(at).is_some();
        }
        let found = self
            .waiting
            .iter_mut()
            .find_map(|(who, own)| Some((who.clone(), own.iter().position(|one| one == job)?)));
        let Some((who, at)) = found else {
            return false;
        };
        if let Some(own) = self.waiting.get_mut(&who) {
            own.remove(at);
            if own.is_empty() {
                self.waiting.remove(&who);
                self.turns.retain(|waiting| *waiting != who);
            }
        }
        true
    }
}
