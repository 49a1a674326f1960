//! Valid runs, and runs with an invalid value in each field.

use archive_model::batch::Program;

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

/// Fails if a request at a permitted limit is refused, or its class, names or arguments are not read.
#[test]
fn request_at_its_limits_is_read() {
    let run = JobRun::read_open(open()).unwrap();
    assert_eq!(run.left, LONGEST_TIME);
    assert_eq!(run.spec.program, Program::BuiltIn("file-list".to_owned()));
    assert_eq!((run.class, run.spec.names), (JobClass::Research, None));
    let mut open = open();
    let spec = open.spec.as_mut().unwrap();
    spec.job.clear();
    (spec.component, spec.component_size) = (vec![7; 32].into(), LARGEST_COMPONENT);
    spec.arguments = vec![value("a", ""), value("b", "")];
    spec.names = ["a.warc", "b.warc"].map(str::to_owned).to_vec();
    open.of_index = true;
    let run = JobRun::read_open(open).unwrap();
    assert_eq!(run.component_size, LARGEST_COMPONENT);
    assert_eq!(run.spec.arguments.len(), 2);
    assert_eq!(run.class, JobClass::Index);
    let names = run.spec.names.unwrap();
    assert_eq!(convert::wire_names(Some(&names)), ["a.warc", "b.warc"]);
}

/// Fails if a field of a job run or a reduce step is lost on its way to the node.
#[test]
fn run_is_read_as_it_was_written() {
    let run = JobRun::read_open(wire::batch_run_request::Open {
        after: "a.warc".to_owned(),
        left_ms: 9,
        of_index: true,
        ..open()
    })
    .unwrap();
    assert_eq!(JobRun::read_open(run.write_open()), Ok(run.clone()));
    let reduce = JobRun {
        after: None,
        class: JobClass::Research,
        ..run
    };
    assert_eq!(JobRun::read_reduce(reduce.write_reduce()), Ok(reduce));
}

/// Fails if a request with an absent limit, unsorted or hostile names, or too many arguments is accepted, or the error
/// names another field.
#[test]
fn wrong_field_is_refused_and_named() {
    let refused = |field: &str, change: &dyn Fn(&mut wire::BatchSpec)| {
        let mut open = open();
        change(open.spec.as_mut().unwrap());
        let error = JobRun::read_open(open).unwrap_err().to_string();
        assert!(error.contains(&format!("`{field}`")), "{field}: {error}");
    };
    refused("time_ms", &|spec| spec.time_ms = 0);
    refused("file_time_ms", &|spec| spec.file_time_ms = 0);
    refused("memory", &|spec| spec.memory = 0);
    refused("output", &|spec| spec.output = 0);
    refused("replica", &|spec| spec.replica.clear());
    refused("component_size", &|spec| spec.component_size = 1);
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
        JobRun::read_open(nothing)
            .unwrap_err()
            .to_string()
            .contains("`spec`")
    );
    let no_id = wire::batch_run_request::Open {
        id: "../x".to_owned(),
        ..open()
    };
    assert!(
        JobRun::read_open(no_id)
            .unwrap_err()
            .to_string()
            .contains("`id`")
    );
    let no_name = wire::batch_run_request::Open {
        after: "../x".to_owned(),
        ..open()
    };
    assert!(
        JobRun::read_open(no_name)
            .unwrap_err()
            .to_string()
            .contains("`after`")
    );
}

/// Fails if a field or a kind of failure is lost in the outcome of a file, or an outcome with endless or contradicting
/// failures is accepted.
#[test]
fn outcome_is_read_as_written() {
    use archive_model::batch::{FailureKind, FileFailure};
    use archive_model::{NodeId, Root, VolumeId};
    let done = BatchFileOutcome {
        name: FileName::new("a.warc").unwrap(),
        node: NodeId::new("n1").unwrap(),
        volume: VolumeId::new("v1").unwrap(),
        root: Root::from_bytes([7; 32]),
        size: 1,
        records: 2,
        output: 3,
        failures: FailureKind::ALL
            .iter()
            .map(|kind| FileFailure {
                kind: *kind,
                offset: Some(9),
                reason: "x".to_owned(),
            })
            .collect(),
        more_failures: 5,
    };
    let written = write_done(done.clone());
    assert_eq!(read_done(written.clone()), Ok(done));
    let mut bad = written.clone();
    bad.failures[0].kind = 99;
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
