//! The collections as they are served: which captures are in each, and who sees them.
//!
//! Owns the one door to the access decision: every route asks [`ReplayCollection::decide_access`] or
//! [`ReplayCollection::decide_file`]. Rules are read from their files at the start, where a fault refuses the start,
//! and again when a file changes, where a fault leaves the old rules and is written to the log.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use archive_daemon::{OwnThread, StartError, Worker, WorkerStep, WorkerStepError};
use archive_formats::cdx::Capture;
use archive_formats::cdx::query::{CaptureField, Filter, FilterTest, Pattern, SET_FIELD};
use jiff::Timestamp;
use parking_lot::RwLock;
use viewer_replay::access::{
    AccessDecision, AccessLevel, AccessPolicy, AccessSubject, AccessVerdict, DecisionReason,
    InvalidRules, RuleFile, RuleSet, Visitor,
};

use crate::settings::CollectionSettings;

/// The largest file of rules that is read, in bytes.
const LARGEST_RULES: u64 = 64 << 20;

/// The longest time until a change of a file of rules is noticed.
const RELOAD: Duration = Duration::from_secs(2);

/// The reason why there are no rules.
#[derive(Debug, thiserror::Error)]
pub enum RulesError {
    /// A file cannot be read.
    #[error("cannot read the file of rules {}: {source}", .path.display())]
    Read {
        /// The file of rules.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// Lines of a file are no rules.
    #[error("cannot use the rules of collection `{collection}`: {faults}")]
    Invalid {
        /// The name of the collection.
        collection: String,
        /// The lines that are no rules.
        faults: Box<InvalidRules>,
    },
}

/// A collection of the viewer: the captures that it has, and the rules of who sees them. The collection of a harvest
/// (`harvest_model::Collection`) is something else.
#[derive(Debug)]
pub(crate) struct ReplayCollection {
    name: String,
    files: Option<Pattern>,
    jobs: BTreeSet<u64>,
    sets: BTreeSet<String>,
    rules: Vec<PathBuf>,
    policy: RwLock<Arc<AccessPolicy>>,
}

/// All collections, by name. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Collections {
    all: Arc<BTreeMap<String, Arc<ReplayCollection>>>,
}

/// The mark that distinguishes one state of a file from another: when it was written, and how long it is. `None` if the
/// file cannot be read.
type Fingerprint = Option<(SystemTime, u64)>;

impl Collections {
    /// Reads the rules of all collections.
    pub(crate) fn open(settings: &[CollectionSettings]) -> Result<Self, StartError> {
        let all = settings.iter().map(|own| {
            let collection = ReplayCollection::open(own)?;
            Ok((own.name.clone(), Arc::new(collection)))
        });
        Ok(Self {
            all: Arc::new(all.collect::<Result<_, StartError>>()?),
        })
    }

    /// Returns the collection of a name.
    pub(crate) fn find_collection(&self, name: &str) -> Option<&Arc<ReplayCollection>> {
        self.all.get(name)
    }

    /// Returns the collection that is meant where a path names none: `all`, or the only one.
    pub(crate) fn sole_collection(&self) -> Option<&Arc<ReplayCollection>> {
        let only = || match self.all.len() {
            1 => self.all.values().next(),
            _ => None,
        };
        self.all
            .get(crate::settings::DEFAULT_COLLECTION)
            .or_else(only)
    }

    /// Returns the names of the collections, sorted.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.all.keys().map(String::as_str)
    }

    /// Returns the job that reads changed rules.
    pub(crate) fn reload_worker(&self) -> RuleReloadWorker {
        let states = self
            .all
            .values()
            .map(|own| (Arc::clone(own), fingerprints(&own.rules)));
        RuleReloadWorker {
            states: states.collect(),
            thread: OwnThread::new("rules"),
        }
    }
}

impl ReplayCollection {
    fn open(settings: &CollectionSettings) -> Result<Self, StartError> {
        let rules = read_rules(&settings.name, &settings.rules)
            .map_err(|error| StartError::of_setting("collection.rules", error))?;
        let policy = AccessPolicy {
            rules,
            embargo: settings.embargo()?,
            default_access: settings
                .default_access
                .map_or(AccessLevel::Allow, AccessLevel::from),
            file_groups: settings.groups()?,
        };
        Ok(Self {
            name: settings.name.clone(),
            files: settings.pattern()?,
            jobs: settings.jobs.clone(),
            sets: settings.sets.clone(),
            rules: settings.rules.clone(),
            policy: RwLock::new(Arc::new(policy)),
        })
    }

    /// Returns the name of the collection.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns whether a file is in the collection.
    pub(crate) fn has_file(&self, file: &str) -> bool {
        if self.files.is_none() && self.jobs.is_empty() && self.sets.is_empty() {
            return true;
        }
        let is_named = self
            .files
            .as_ref()
            .is_some_and(|files| files.is_match(file));
        is_named || job_of(file).is_some_and(|job| self.jobs.contains(&job))
    }

    /// Returns whether a capture is in the collection: by its file, or by the set that it was imported with.
    fn has_capture(&self, capture: &Capture) -> bool {
        let set = capture.extra(SET_FIELD);
        set.is_some_and(|set| self.sets.contains(set))
            || self.has_file(capture.file.as_deref().unwrap_or_default())
    }

    /// Returns a filter that the index can apply already. It lets through all captures that are in the collection, and
    /// maybe others.
    pub(crate) fn index_filter(&self) -> Option<Filter> {
        let is_by_file = self.jobs.is_empty() && self.sets.is_empty();
        let files = self.files.clone().filter(|_| is_by_file)?;
        Some(Filter {
            field: CaptureField::File,
            negate: false,
            test: FilterTest::Matches(files),
        })
    }

    /// Returns whether a visitor sees a capture. A capture of another collection does not exist in this one.
    pub(crate) fn decide_access(
        &self,
        visitor: &Visitor,
        capture: &Capture,
        now: Timestamp,
    ) -> AccessDecision {
        if !self.has_capture(capture) {
            return outside_decision();
        }
        self.decide_anywhere(visitor, capture, now)
    }

    /// Returns whether a visitor sees a capture, whatever file it lies in: the original of a revisit may lie in a file
    /// of an earlier harvest.
    pub(crate) fn decide_anywhere(
        &self,
        visitor: &Visitor,
        capture: &Capture,
        now: Timestamp,
    ) -> AccessDecision {
        let subject = AccessSubject::Capture {
            key: &capture.key,
            time: capture.timestamp,
        };
        self.policy().decide_access(visitor, subject, now)
    }

    /// Returns whether a visitor may read a whole file.
    pub(crate) fn decide_file(
        &self,
        visitor: &Visitor,
        file: &str,
        now: Timestamp,
    ) -> AccessDecision {
        if !self.has_file(file) {
            return outside_decision();
        }
        self.policy()
            .decide_access(visitor, AccessSubject::WholeFile, now)
    }

    fn policy(&self) -> Arc<AccessPolicy> {
        Arc::clone(&self.policy.read())
    }

    /// Reads the rules of the collection again. With an error the old ones stay.
    fn reload(&self) -> Result<usize, RulesError> {
        let rules = read_rules(&self.name, &self.rules)?;
        let count = rules.len();
        let mut policy = self.policy.write();
        let changed = AccessPolicy {
            rules,
            ..AccessPolicy::clone(&policy)
        };
        *policy = Arc::new(changed);
        Ok(count)
    }
}

/// Returns the decision about what is not in a collection: it does not exist there.
pub(crate) fn outside_decision() -> AccessDecision {
    AccessDecision {
        verdict: AccessVerdict::Exclude,
        reason: DecisionReason::Default,
    }
}

/// Returns the harvest job whose number a file name begins with: `17-4-20260101….warc.gz`.
pub(crate) fn job_of(file: &str) -> Option<u64> {
    let (digits, _) = file.split_once('-')?;
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| is_number)
}

fn read_rules(collection: &str, paths: &[PathBuf]) -> Result<RuleSet, RulesError> {
    let read = paths.iter().map(|path| {
        let text = read_file(path).map_err(|source| RulesError::Read {
            path: path.clone(),
            source,
        })?;
        Ok((path.display().to_string(), text))
    });
    let read = read.collect::<Result<Vec<_>, RulesError>>()?;
    let files = read.iter().map(|(name, text)| RuleFile { name, text });
    RuleSet::parse(files).map_err(|faults| RulesError::Invalid {
        collection: collection.to_owned(),
        faults: Box::new(faults),
    })
}

fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    let mut file = File::open(path)?.take(LARGEST_RULES + 1);
    file.read_to_end(&mut text)?;
    if text.len() as u64 > LARGEST_RULES {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            "it is too large to be one",
        ));
    }
    Ok(text)
}

fn fingerprints(paths: &[PathBuf]) -> Vec<Fingerprint> {
    let look = |path: &PathBuf| {
        let metadata = path.metadata().ok()?;
        Some((metadata.modified().ok()?, metadata.len()))
    };
    paths.iter().map(look).collect()
}

/// The job that reloads rules when their files have changed.
pub(crate) struct RuleReloadWorker {
    states: Vec<(Arc<ReplayCollection>, Vec<Fingerprint>)>,
    thread: OwnThread,
}

impl Worker for RuleReloadWorker {
    const NAME: &'static str = "rules";

    async fn step(&mut self) -> Result<WorkerStep, WorkerStepError> {
        let mut states = self.states.clone();
        let looked = self.thread.run_on_thread(move || {
            for (collection, seen) in &mut states {
                reload_if_changed(collection, seen);
            }
            states
        });
        self.states = looked.await?;
        Ok(WorkerStep::Idle(RELOAD))
    }
}

fn reload_if_changed(collection: &ReplayCollection, seen: &mut Vec<Fingerprint>) {
    let now = fingerprints(&collection.rules);
    if *seen == now {
        return;
    }
    *seen = now;
    let name = collection.name();
    match collection.reload() {
        Ok(rules) => tracing::info!(collection = name, rules, "reloaded the rules"),
        Err(error) => {
            tracing::error!(collection = name, %error, "cannot use the changed rules; the old ones stay");
        }
    }
}

#[cfg(test)]
mod tests;
