//! An honest component is shown its input, and compiled ones are kept.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use archive_batch::{BatchJobError, Reduce, Stop, StopControl};
use archive_component::{About, CompileError, Component, Components, ProcessHooks};
use archive_formats::warc::WarcType;

use crate::drive::{binary, compile, file, limits, resources, show, show_to, warc};

const COUNT: &str = "examples/count.wat";

/// Fails if a component is not shown every record, keeps its memory from one file to the next, or is described in other
/// words than its own.
#[test]
fn records_are_counted_and_each_file_begins_anew() {
    let components = Components::new(None).unwrap();
    let count = compile(&components, COUNT).unwrap();
    let about = About {
        text: "Counts records. Argument: fail, a kind of record to fail at.".to_owned(),
        reduces: true,
    };
    assert_eq!(*count.about(), about);
    let plan = Arc::clone(&count).make_plan(&[], limits()).unwrap();
    assert_eq!(plan.reduce(), Reduce::Component);
    for (name, records) in [
        ("one.warc.gz", 1),
        ("none.warc.gz", 0),
        ("many.warc.gz", 1234),
    ] {
        let came = show(&count, &[], limits(), name, &resources(records));
        assert_eq!(came.errors(), [""; 0]);
        assert_eq!(came.text(), format!("{name}\t{records}\n"));
    }
}

/// Fails if a component that returns an error for one record is not shown the records after it, or counts as broken.
#[test]
fn a_record_that_fails_fails_alone() {
    let components = Components::new(None).unwrap();
    let count = compile(&components, COUNT).unwrap();
    let bytes = warc(&[
        (WarcType::Resource, "http://a.example/", "text/plain", b"a"),
        (WarcType::Metadata, "http://b.example/", "text/plain", b"b"),
        (WarcType::Resource, "http://c.example/", "text/plain", b"c"),
    ]);
    let came = show(
        &count,
        &[("fail", "metadata")],
        limits(),
        "a.warc.gz",
        &bytes,
    );
    assert_eq!(came.errors(), ["this kind fails"]);
    assert!(matches!(came.errors[0], BatchJobError::Failed(_)));
    assert_eq!(came.text(), "a.warc.gz\t3\n");
}

/// Fails if the reduce step of a component is given only a part of the output where that comes in many pieces.
#[test]
fn reduce_of_a_component_reads_all_output() {
    let components = Components::new(None).unwrap();
    let count = compile(&components, COUNT).unwrap();
    let input = "name\t1\n".repeat(300_000);
    let mut output = Vec::new();
    let mut read = input.as_bytes();
    let reducer = count.make_reducer(&[], limits()).unwrap();
    reducer
        .reduce_outputs(&mut read, &mut output, &StopControl::default())
        .unwrap();
    assert_eq!(String::from_utf8(output).unwrap(), "files\t300000\n");
}

/// Fails if a component is still called for a job that was stopped before.
#[test]
fn stopped_job_does_nothing_more() {
    let components = Components::new(None).unwrap();
    let count = compile(&components, COUNT).unwrap();
    let control = StopControl::default();
    control.stop(Stop::Cancelled);
    let bytes = resources(1);
    let known = file("a.warc.gz", &bytes);
    let mut out = Vec::new();
    let errors = show_to(
        &count,
        &[],
        limits(),
        &known,
        &mut &bytes[..],
        &mut out,
        &control,
    );
    assert!(
        matches!(errors[..], [BatchJobError::Stopped(Stop::Cancelled)]),
        "{errors:?}"
    );
    assert!(out.is_empty());
}

/// Fails if callers that ask for one component at the same time each compile it, or get code of their own.
#[test]
fn component_is_compiled_once_for_all_callers() {
    static STEPS: AtomicUsize = AtomicUsize::new(0);
    let bytes = binary(COUNT);
    // Returns the component as each of `callers` threads got it, and the number of steps that compiling took.
    let compiled = |callers: usize| -> (Components, Vec<Arc<Component>>, usize) {
        let spare = |work: &mut dyn FnMut()| {
            STEPS.fetch_add(1, Ordering::SeqCst);
            work();
            true
        };
        let around = ProcessHooks {
            spare,
            ..ProcessHooks::default()
        };
        let components = Components::with_hooks(around, None).unwrap();
        let before = STEPS.load(Ordering::SeqCst);
        let compile = || {
            components
                .compile_component(&bytes, &StopControl::default())
                .unwrap()
        };
        let all = thread::scope(|scope| {
            let threads: Vec<_> = (0..callers).map(|_| scope.spawn(compile)).collect();
            let joined = threads.into_iter().map(|thread| thread.join().unwrap());
            joined.collect()
        });
        let steps = STEPS.load(Ordering::SeqCst) - before;
        (components, all, steps)
    };
    let (_, _, once) = compiled(1);
    assert!(once > 0, "compiling takes a step");
    let (components, all, steps) = compiled(8);
    assert_eq!(steps, once);
    assert!(all.iter().all(|one| Arc::ptr_eq(one, &all[0])));
    let kept = components.get(&all[0].digest()).unwrap();
    assert!(Arc::ptr_eq(&kept, &all[0]));
}

/// Fails if compiled components pile up in memory, the oldest is evicted though it was used since, or eviction breaks a
/// job that runs.
#[test]
fn least_recently_used_component_is_evicted() {
    let components = Components::new(None).unwrap();
    let hostile = |name: &str| compile(&components, &format!("tests/hostile/{name}.wat")).unwrap();
    let is_kept = |one: &Arc<Component>| components.get(&one.digest()).is_some();
    let count = compile(&components, COUNT).unwrap();
    let others = ["endless", "greedy", "chatty"].map(hostile);
    // The oldest is used again: now the second is the one that was not used for the longest time.
    assert!(is_kept(&count));
    let trapping = hostile("trapping");
    assert!(!is_kept(&others[0]));
    for one in [&count, &others[1], &others[2], &trapping] {
        assert!(is_kept(one), "{}", one.about().text);
    }
    hostile("endless");
    assert!(!is_kept(&count));
    // A caller that holds the component can still run it.
    let came = show(&count, &[], limits(), "a.warc.gz", &resources(2));
    assert_eq!(came.text(), "a.warc.gz\t2\n");
}

/// Returns the path of the only file with machine code under a cache.
fn code(cache: &Path) -> PathBuf {
    let sums = fs::read_to_string(cache.join("sums")).unwrap();
    assert_eq!(sums.lines().count(), 1, "{sums:?}");
    let (_, name) = sums.trim_end().split_once("  ").unwrap();
    cache.join("code").join(name)
}

/// Fails if a restart compiles a component again, or compiled code with a flipped bit is run.
#[test]
#[expect(clippy::disallowed_methods, reason = "it damages a file")]
fn compiled_code_is_reused_unless_damaged() {
    let cache = tempfile::tempdir().unwrap();
    let counts = || {
        let components = Components::new(Some(cache.path())).unwrap();
        let count = compile(&components, COUNT).unwrap();
        show(&count, &[], limits(), "a.warc.gz", &resources(3)).text()
    };
    assert_eq!(counts(), "a.warc.gz\t3\n");
    let path = code(cache.path());
    let written = fs::metadata(&path).unwrap().ino();
    assert_eq!(counts(), "a.warc.gz\t3\n");
    assert_eq!(fs::metadata(&path).unwrap().ino(), written, "not again");

    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&path, &bytes).unwrap();
    assert_eq!(counts(), "a.warc.gz\t3\n");
    assert_ne!(
        fs::read(code(cache.path())).unwrap(),
        bytes,
        "compiled again"
    );
}

/// Fails if a component that exports no reduce step is asked to reduce, or its output is not concatenated.
#[test]
fn component_without_reduce_step_refuses_to_reduce() {
    let components = Components::new(None).unwrap();
    let failing = compile(&components, "tests/hostile/failing.wat").unwrap();
    let refused = failing.make_reducer(&[], limits());
    assert!(
        refused
            .unwrap_err()
            .to_string()
            .contains("has no reduce step")
    );
    let plan = failing.make_plan(&[], limits()).unwrap();
    assert_eq!(plan.reduce(), Reduce::Concatenate);
}

/// Fails if a failed compilation leaves a lock or an entry behind, so that the second attempt hangs or succeeds.
#[test]
fn a_refused_component_is_refused_again() {
    let components = Components::new(None).unwrap();
    for _ in 0..2 {
        let broken = b"\0asm\x0d\0\x01\0broken";
        let refused = components.compile_component(broken, &StopControl::default());
        let refused = refused.unwrap_err();
        assert!(matches!(refused, CompileError::Refused(_)));
        assert!(
            refused.to_string().contains("does not compile"),
            "{refused}"
        );
    }
}
