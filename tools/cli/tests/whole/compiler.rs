//! Components are compiled in a process of their own: this executable once more, which may fail, grow and hang.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use archive_batch::{Stop, StopControl};
use archive_component::{CompileError, Compiler, Components, ProcessHooks};

fn compiler() -> Compiler {
    Compiler::new(PathBuf::from(env!("CARGO_BIN_EXE_holdfast")))
}

fn components(compiler: Compiler, cache: &Path) -> Components {
    let around = ProcessHooks {
        compiler: Some(compiler),
        ..ProcessHooks::default()
    };
    Components::with_hooks(around, Some(cache)).expect("an engine")
}

fn count() -> Vec<u8> {
    let text = include_bytes!("../../../../archive/component/examples/count.wat");
    wat::parse_bytes(text).expect("a component").into_owned()
}

fn leb(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = u8::try_from(number & 0x7f).expect("7 bits");
        number >>= 7;
        if number == 0 {
            bytes.push(low);
            return bytes;
        }
        bytes.push(low | 0x80);
    }
}

fn section(id: u8, content: &[u8]) -> Vec<u8> {
    [vec![id], leb(content.len()), content.to_vec()].concat()
}

/// Returns a module of long functions, as a section of a component.
fn long_functions(functions: usize) -> Vec<u8> {
    let mut body = vec![0, 0x20, 0];
    for _ in 0..300_000 {
        // Times itself.
        body.extend([0x20, 0, 0x6c]);
    }
    body.push(0x0b);
    let code = [leb(body.len()), body].concat();
    let module = [
        b"\0asm\x01\0\0\0".to_vec(),
        section(1, &[1, 0x60, 1, 0x7f, 1, 0x7f]),
        section(3, &[leb(functions), vec![0; functions]].concat()),
        section(10, &[leb(functions), code.repeat(functions)].concat()),
    ]
    .concat();
    section(1, &module)
}

/// Returns a component over which a compiler sits for many seconds.
fn long() -> Vec<u8> {
    [b"\0asm\x0d\0\x01\0".to_vec(), long_functions(40)].concat()
}

/// Returns a component that is taken, and for which a compiler needs more than 400 MiB.
fn hungry() -> Vec<u8> {
    [count(), long_functions(1)].concat()
}

/// Returns a compiler that lists in `left`, beside the cache, which files are there when it ends.
fn listing_compiler(cache: &Path) -> Compiler {
    const SCRIPT: &str = r#"#!/bin/sh
"${0%/*}/holdfast" "$@"
code=$?
(cd "$2" && find . -type f) >"${0%/*}/left"
exit $code
"#;
    let program = cache.join("compiler");
    symlink(env!("CARGO_BIN_EXE_holdfast"), cache.join("holdfast")).expect("a link");
    // Written by another process: what this one has open for writing, no child of another thread may run.
    let mut writing = Command::new("sh");
    writing.args(["-c", r#"printf %s "$0" >"$1" && chmod +x "$1""#, SCRIPT]);
    assert!(writing.arg(&program).status().expect("run").success());
    Compiler::new(program)
}

/// Fails if nothing comes back from the other process, or if none is asked and this one compiles.
#[test]
fn component_is_compiled_by_another_process() {
    let cache = tempfile::tempdir().expect("a directory");
    let components = components(listing_compiler(cache.path()), cache.path());
    let component = components.compile_component(&count(), &StopControl::default());
    assert!(component.expect("compiled").about().reduces);
    let read = |name| std::fs::read_to_string(cache.path().join(name)).expect(name);
    let sums = read("sums");
    let left = read("left");
    let [sum] = sums.lines().collect::<Vec<_>>()[..] else {
        panic!("compiled once: {sums}")
    };
    let (_, name) = sum.split_once("  ").expect("a sum and a name");
    let name = format!("./{name}");
    assert!(left.lines().any(|file| file == name), "{name} in {left}");
}

/// Fails if a component that compiles for long, or in much memory, is not refused, or harms the one who asked. The one
/// that is refused for want of memory is a good one: it is compiled where there is enough.
#[test]
fn compiler_at_its_limits_refuses_the_component() {
    let cache = tempfile::tempdir().expect("a directory");
    let slow = Compiler {
        time: Duration::from_secs(1),
        ..compiler()
    };
    let small = Compiler {
        memory: 200 << 20,
        ..compiler()
    };
    let broken = Compiler::new(PathBuf::from("/bin/false"));
    for (compiler, component, words) in [
        (slow, long(), "longer than 1 s"),
        (small, hungry(), "more than 200 MiB of memory"),
        (broken, long(), "the compiler ended"),
    ] {
        let components = components(compiler, cache.path());
        let began = Instant::now();
        let refused = components
            .compile_component(&component, &StopControl::default())
            .unwrap_err();
        println!("{refused} ({:?})", began.elapsed());
        assert!(matches!(refused, CompileError::Refused(_)), "{refused:?}");
        assert!(refused.to_string().contains(words), "{refused}");
        assert!(began.elapsed() < Duration::from_mins(1));
    }
    let none = Compiler::new(PathBuf::from("/there/is/none"));
    let untried =
        components(none, cache.path()).compile_component(&long(), &StopControl::default());
    assert!(
        matches!(untried, Err(CompileError::Untried(_))),
        "{untried:?}"
    );
    let good = components(compiler(), cache.path());
    assert!(
        good.compile_component(&hungry(), &StopControl::default())
            .is_ok()
    );
}

/// Fails if cancelling a job waits for the compiler.
#[test]
fn compiling_ends_when_it_is_cancelled() {
    let cache = tempfile::tempdir().expect("a directory");
    let components = components(compiler(), cache.path());
    let control = StopControl::default();
    let stop = control.clone();
    let stopping = thread::spawn(move || {
        // The compiler compiles for longer than a second, so that it is at work. A cancel that comes before it has
        // begun has the same outcome.
        thread::sleep(Duration::from_millis(500));
        stop.stop(Stop::Cancelled);
        Instant::now()
    });
    let stopped = components.compile_component(&long(), &control).unwrap_err();
    let waited = stopping.join().expect("stopped").elapsed();
    assert_eq!(stopped, CompileError::Stopped(Stop::Cancelled));
    assert!(waited < Duration::from_secs(10), "{waited:?}");
}
