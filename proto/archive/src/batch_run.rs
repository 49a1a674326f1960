//! A batch job as the repository tells it to a node, and what a node says of each file: both directions.

use std::collections::BTreeSet;
use std::time::Duration;

use archive_model::batch::{JobId, JobLane, JobLimits, JobSpec, Program};
use archive_model::limits::LONGEST_REASON;
use archive_model::{FileName, FileOutcome};
use archive_rpc::InvalidMessage;
use bytes::Bytes;

use crate::{convert, wire};

/// The most arguments of a job.
const MOST_ARGUMENTS: usize = 100;

/// The most bytes of all names and values of arguments together.
const LONGEST_ARGUMENTS: usize = 64 * 1024;

/// The largest component, in bytes.
const LARGEST_COMPONENT: u64 = 64 << 20;

/// The longest that a job is given at once; what asks for more is given this.
const LONGEST_TIME: Duration = Duration::from_hours(366 * 24);

/// A run of a batch job on one node, or its reduce step there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobRun {
    /// The job.
    pub id: JobId,
    /// What is to be done.
    pub spec: JobSpec,
    /// The size of its component in bytes; 0 of a built-in job.
    pub component_size: u64,
    /// Only files after this name are read.
    pub after: Option<FileName>,
    /// How long it may still take.
    pub left: Duration,
    /// The lane in which it has its place.
    pub lane: JobLane,
}

impl JobRun {
    /// Reads the message that begins a run.
    ///
    /// # Errors
    /// The first field that is missing, or is not what it must be.
    pub fn read(open: wire::batch_run_request::Open) -> Result<Self, InvalidMessage> {
        let lane = if open.of_index {
            JobLane::Index
        } else {
            JobLane::Research
        };
        let after = convert::after(&open.after)?;
        Ok(Self {
            after,
            lane,
            ..Self::of(&open.id, open.spec, open.left_ms)?
        })
    }

    /// Reads the message that begins a reduce step.
    ///
    /// # Errors
    /// As of [`JobRun::read`].
    pub fn read_reduce(open: wire::batch_reduce_request::Open) -> Result<Self, InvalidMessage> {
        Self::of(&open.id, open.spec, open.left_ms)
    }

    fn of(id: &str, spec: Option<wire::BatchSpec>, left_ms: u64) -> Result<Self, InvalidMessage> {
        let id =
            JobId::new(id).map_err(|error| InvalidMessage::invalid("id", error.to_string()))?;
        let spec = spec.ok_or_else(|| InvalidMessage::missing("spec"))?;
        let component_size = spec.component_size;
        Ok(Self {
            id,
            spec: read_spec(spec)?,
            component_size,
            after: None,
            left: Duration::from_millis(left_ms).min(LONGEST_TIME),
            lane: JobLane::Research,
        })
    }

    /// Writes the message that begins a run.
    pub fn write(&self) -> wire::batch_run_request::Open {
        wire::batch_run_request::Open {
            id: self.id.to_string(),
            spec: Some(write_spec(&self.spec, self.component_size)),
            after: self
                .after
                .as_ref()
                .map(FileName::to_string)
                .unwrap_or_default(),
            left_ms: millis(self.left),
            of_index: self.lane == JobLane::Index,
        }
    }

    /// Writes the message that begins a reduce step.
    pub fn write_reduce(&self) -> wire::batch_reduce_request::Open {
        wire::batch_reduce_request::Open {
            id: self.id.to_string(),
            spec: Some(write_spec(&self.spec, self.component_size)),
            left_ms: millis(self.left),
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Writes what is to be done. `component_size` is in bytes; 0 of a built-in job.
pub fn write_spec(spec: &JobSpec, component_size: u64) -> wire::BatchSpec {
    let (job, component) = match &spec.program {
        Program::BuiltIn(name) => (name.clone(), Bytes::new()),
        Program::Component(root) => (String::new(), convert::root_bytes(root)),
    };
    let arguments = spec.arguments.iter();
    let arguments = arguments.map(|(name, value)| wire::batch_spec::Value {
        name: name.clone(),
        value: value.clone(),
    });
    wire::BatchSpec {
        job,
        component,
        component_size,
        arguments: arguments.collect(),
        files: spec.files.clone(),
        replica: spec.replica.to_string(),
        time_ms: millis(spec.limits.time),
        file_time_ms: millis(spec.limits.file_time),
        memory: spec.limits.memory,
        output: spec.limits.output,
        names: convert::names(spec.names.as_ref()),
        keep_ms: spec.keep.map_or(0, millis),
    }
}

fn read_spec(spec: wire::BatchSpec) -> Result<JobSpec, InvalidMessage> {
    let program = if spec.job.is_empty() {
        if !(1..=LARGEST_COMPONENT).contains(&spec.component_size) {
            let reason = format!("is {}, not 1 to {LARGEST_COMPONENT}", spec.component_size);
            return Err(InvalidMessage::invalid("component_size", reason));
        }
        Program::Component(convert::root("component", &spec.component)?)
    } else {
        if !spec.component.is_empty() || spec.component_size != 0 {
            let reason = "a job is built in or a component, not both";
            return Err(InvalidMessage::invalid("component", reason));
        }
        Program::BuiltIn(spec.job)
    };
    convert::name_pattern("files", &spec.files)?;
    let names = convert::name_list("names", &spec.names)?;
    if names.is_some() && !spec.files.is_empty() {
        let reason = "a job is about files by an expression or by their names, not both";
        return Err(InvalidMessage::invalid("names", reason));
    }
    for (field, value) in [
        ("time_ms", spec.time_ms),
        ("file_time_ms", spec.file_time_ms),
        ("memory", spec.memory),
        ("output", spec.output),
    ] {
        if value == 0 {
            return Err(InvalidMessage::missing(field));
        }
    }
    Ok(JobSpec {
        program,
        arguments: read_arguments(spec.arguments)?,
        files: spec.files,
        names,
        replica: convert::replica_id(&spec.replica)?,
        limits: JobLimits {
            time: Duration::from_millis(spec.time_ms).min(LONGEST_TIME),
            file_time: Duration::from_millis(spec.file_time_ms).min(LONGEST_TIME),
            memory: spec.memory,
            output: spec.output,
        },
        keep: None,
    })
}

fn read_arguments(
    arguments: Vec<wire::batch_spec::Value>,
) -> Result<Vec<(String, String)>, InvalidMessage> {
    let refused = |reason: String| Err(InvalidMessage::invalid("arguments", reason));
    if arguments.len() > MOST_ARGUMENTS {
        return refused(format!("are more than {MOST_ARGUMENTS}"));
    }
    let each = arguments.iter();
    let bytes: usize = each.map(|one| one.name.len() + one.value.len()).sum();
    if bytes > LONGEST_ARGUMENTS {
        return refused(format!("are longer than {LONGEST_ARGUMENTS} bytes"));
    }
    let mut seen = BTreeSet::new();
    for argument in &arguments {
        if argument.name.is_empty() {
            return refused("have one without a name".to_owned());
        }
        if !seen.insert(&argument.name) {
            return refused(format!("name {:?} twice", argument.name));
        }
    }
    let pair = |one: wire::batch_spec::Value| (one.name, one.value);
    Ok(arguments.into_iter().map(pair).collect())
}

/// Writes what became of a file.
pub fn write_done(done: FileOutcome) -> wire::batch_run_response::Done {
    let failure = |failure: archive_model::FileFailure| wire::BatchFailure {
        kind: failure.kind.word().to_owned(),
        offset: failure.offset,
        reason: failure.reason.chars().take(LONGEST_REASON).collect(),
    };
    wire::batch_run_response::Done {
        name: done.name.to_string(),
        node: done.node.to_string(),
        volume: done.volume.to_string(),
        root: convert::root_bytes(&done.root),
        size: done.size,
        records: done.records,
        output: done.output,
        failures: done.failures.into_iter().map(failure).collect(),
        more_failures: done.more_failures,
    }
}

/// Reads what became of a file, down to the last field.
///
/// # Errors
/// The first field that is missing, or is not what it must be.
pub fn read_done(done: wire::batch_run_response::Done) -> Result<FileOutcome, InvalidMessage> {
    use archive_model::batch::{FailureKind, MOST_FAILURES};
    if done.failures.len() > MOST_FAILURES {
        let reason = format!("are more than {MOST_FAILURES}");
        return Err(InvalidMessage::invalid("failures", reason));
    }
    if done.failures.is_empty() && done.more_failures > 0 {
        let reason = format!("are none, and {} more", done.more_failures);
        return Err(InvalidMessage::invalid("failures", reason));
    }
    let failure = |failure: wire::BatchFailure| {
        let mut kinds = FailureKind::ALL.into_iter();
        let kind = kinds.find(|kind| kind.word() == failure.kind);
        if failure.reason.chars().count() > LONGEST_REASON {
            let why = format!("is longer than {LONGEST_REASON} characters");
            return Err(InvalidMessage::invalid("reason", why));
        }
        Ok(archive_model::FileFailure {
            kind: kind.ok_or_else(|| InvalidMessage::invalid("kind", "is none of a failure"))?,
            offset: failure.offset,
            reason: failure.reason,
        })
    };
    Ok(FileOutcome {
        name: convert::file_name("name", &done.name)?,
        node: convert::node_id(&done.node)?,
        volume: convert::volume_id(&done.volume)?,
        root: convert::root("root", &done.root)?,
        size: done.size,
        records: done.records,
        output: done.output,
        failures: done
            .failures
            .into_iter()
            .map(failure)
            .collect::<Result<_, _>>()?,
        more_failures: done.more_failures,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open() -> wire::batch_run_request::Open {
        wire::batch_run_request::Open {
            id: "j1".to_owned(),
            spec: Some(wire::BatchSpec {
                job: "file-list".to_owned(),
                replica: "r".to_owned(),
                time_ms: 1,
                file_time_ms: 1,
                memory: 1,
                output: 1,
                ..wire::BatchSpec::default()
            }),
            after: String::new(),
            left_ms: u64::MAX,
            of_index: false,
        }
    }

    fn value(name: &str, value: &str) -> wire::batch_spec::Value {
        wire::batch_spec::Value {
            name: name.to_owned(),
            value: value.to_owned(),
        }
    }

    #[test]
    fn what_is_whole_is_read() {
        let run = JobRun::read(open()).unwrap();
        assert_eq!(run.left, LONGEST_TIME);
        assert_eq!(run.spec.program, Program::BuiltIn("file-list".to_owned()));
        assert_eq!((run.lane, run.spec.names), (JobLane::Research, None));
        let mut open = open();
        let spec = open.spec.as_mut().unwrap();
        spec.job.clear();
        (spec.component, spec.component_size) = (vec![7; 32].into(), LARGEST_COMPONENT);
        spec.arguments = vec![value("a", ""), value("b", "")];
        spec.names = ["a.warc", "b.warc"].map(str::to_owned).to_vec();
        open.of_index = true;
        let run = JobRun::read(open).unwrap();
        assert_eq!(run.component_size, LARGEST_COMPONENT);
        assert_eq!(run.spec.arguments.len(), 2);
        assert_eq!(run.lane, JobLane::Index);
        let names = run.spec.names.unwrap();
        assert_eq!(convert::names(Some(&names)), ["a.warc", "b.warc"]);
    }

    #[test]
    fn run_is_read_as_it_was_written() {
        let run = JobRun::read(wire::batch_run_request::Open {
            after: "a.warc".to_owned(),
            left_ms: 9,
            of_index: true,
            ..open()
        })
        .unwrap();
        assert_eq!(JobRun::read(run.write()), Ok(run.clone()));
        let reduce = JobRun {
            after: None,
            lane: JobLane::Research,
            ..run
        };
        assert_eq!(JobRun::read_reduce(reduce.write_reduce()), Ok(reduce));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let refused = |field: &str, change: &dyn Fn(&mut wire::BatchSpec)| {
            let mut open = open();
            change(open.spec.as_mut().unwrap());
            let error = JobRun::read(open).unwrap_err().to_string();
            assert!(error.contains(&format!("`{field}`")), "{field}: {error}");
        };
        refused("time_ms", &|spec| spec.time_ms = 0);
        refused("file_time_ms", &|spec| spec.file_time_ms = 0);
        refused("memory", &|spec| spec.memory = 0);
        refused("output", &|spec| spec.output = 0);
        refused("replica", &|spec| spec.replica.clear());
        refused("component", &|spec| spec.component_size = 1);
        refused("component", &|spec| spec.component = vec![7; 32].into());
        refused("component_size", &|spec| spec.job.clear());
        refused("component_size", &|spec| {
            spec.job.clear();
            (spec.component, spec.component_size) = (vec![7; 32].into(), LARGEST_COMPONENT + 1);
        });
        refused("component", &|spec| {
            spec.job.clear();
            (spec.component, spec.component_size) = (vec![7; 31].into(), 9);
        });
        refused("files", &|spec| spec.files = "x".repeat(64 * 1024 + 1));
        let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        refused("names", &|spec| spec.names = list(&["b", "a"]));
        refused("names", &|spec| spec.names = list(&["a", "a"]));
        refused("names", &|spec| spec.names = list(&["../x"]));
        refused("names", &|spec| {
            (spec.files, spec.names) = ("a".to_owned(), list(&["a"]));
        });
        refused("names", &|spec| {
            spec.names = (0..=10_000).map(|number| format!("{number:05}")).collect();
        });
        refused("arguments", &|spec| {
            spec.arguments = vec![value("a", "1"), value("a", "2")];
        });
        refused("arguments", &|spec| spec.arguments = vec![value("", "1")]);
        refused("arguments", &|spec| {
            spec.arguments = vec![value("a", &"x".repeat(64 * 1024))];
        });
        refused("arguments", &|spec| {
            spec.arguments = (0..101).map(|i| value(&i.to_string(), "")).collect();
        });
        let nothing = wire::batch_run_request::Open {
            spec: None,
            ..open()
        };
        assert!(
            JobRun::read(nothing)
                .unwrap_err()
                .to_string()
                .contains("`spec`")
        );
        let no_id = wire::batch_run_request::Open {
            id: "../x".to_owned(),
            ..open()
        };
        assert!(
            JobRun::read(no_id)
                .unwrap_err()
                .to_string()
                .contains("`id`")
        );
        let no_name = wire::batch_run_request::Open {
            after: "../x".to_owned(),
            ..open()
        };
        assert!(
            JobRun::read(no_name)
                .unwrap_err()
                .to_string()
                .contains("`after`")
        );
    }

    #[test]
    fn what_became_of_a_file_is_read_as_it_was_written() {
        use archive_model::batch::{FailureKind, FileFailure};
        use archive_model::{NodeId, Root, VolumeId};
        let done = FileOutcome {
            name: FileName::new("a.warc").unwrap(),
            node: NodeId::new("n1").unwrap(),
            volume: VolumeId::new("v1").unwrap(),
            root: Root::from_bytes([7; 32]),
            size: 1,
            records: 2,
            output: 3,
            failures: FailureKind::ALL
                .map(|kind| FileFailure {
                    kind,
                    offset: Some(9),
                    reason: "x".to_owned(),
                })
                .to_vec(),
            more_failures: 5,
        };
        let written = write_done(done.clone());
        assert_eq!(read_done(written.clone()), Ok(done));
        let mut bad = written.clone();
        bad.failures[0].kind = "else".to_owned();
        assert!(read_done(bad).is_err());
        let mut bad = written.clone();
        bad.failures[0].reason = "ä".repeat(LONGEST_REASON + 1);
        assert!(read_done(bad).is_err());
        let mut bad = written.clone();
        bad.failures.clear();
        assert!(read_done(bad).is_err(), "more failures than none");
        let mut bad = written;
        bad.failures = vec![wire::BatchFailure::default(); 101];
        assert!(read_done(bad).is_err());
    }
}
