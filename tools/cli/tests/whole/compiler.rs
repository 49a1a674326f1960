//! Components are compiled in a process of their own: this executable once more, which may fail, grow and hang.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use archive_batch::component::to_binary;
use archive_batch::{CompileError, Compiler, Components, Control, Stop, Surroundings};

fn compiler() -> Compiler {
    Compiler::new(PathBuf::from(env!("CARGO_BIN_EXE_holdfast")))
}

fn components(compiler: Compiler, cache: &Path) -> Components {
    let around = Surroundings {
        compiler: Some(compiler),
        ..Surroundings::default()
    };
    Components::within(around, Some(cache)).expect("an engine")
}

fn count() -> Vec<u8> {
    let text = include_bytes!("../../../../archive/batch/examples/count.wat");
    to_binary(text).expect("a component").into_owned()
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

/// A component of long functions, over which a compiler sits for many seconds.
fn long() -> Vec<u8> {
    const FUNCTIONS: usize = 40;
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
        section(3, &[leb(FUNCTIONS), vec![0; FUNCTIONS]].concat()),
        section(10, &[leb(FUNCTIONS), code.repeat(FUNCTIONS)].concat()),
    ]
    .concat();
    [b"\0asm\x0d\0\x01\0".to_vec(), section(1, &module)].concat()
}

/// Fails if nothing comes back from the process that compiles.
#[test]
fn component_is_compiled_by_another_process() {
    let cache = tempfile::tempdir().expect("a directory");
    let components = components(compiler(), cache.path());
    let component = components.compile(&count(), &Control::default());
    assert!(component.expect("compiled").about().reduces);
    let sums = std::fs::read_to_string(cache.path().join("sums")).expect("sums");
    assert_eq!(sums.lines().count(), 1, "compiled once: {sums}");
}

/// Fails if a component that compiles for long, or in much memory, is not refused, or harms the one who asked.
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
    for (compiler, words) in [
        (slow, "longer than 1 s"),
        (small, ""),
        (broken, "the compiler ended"),
    ] {
        let components = components(compiler, cache.path());
        let began = Instant::now();
        let refused = components
            .compile(&long(), &Control::default())
            .unwrap_err();
        println!("{refused} ({:?})", began.elapsed());
        assert!(matches!(refused, CompileError::Refused(_)), "{refused:?}");
        assert!(refused.to_string().contains(words), "{refused}");
        assert!(began.elapsed() < Duration::from_mins(1));
    }
    let none = Compiler::new(PathBuf::from("/there/is/none"));
    let untried = components(none, cache.path()).compile(&long(), &Control::default());
    assert!(
        matches!(untried, Err(CompileError::Untried(_))),
        "{untried:?}"
    );
    let good = components(compiler(), cache.path());
    assert!(good.compile(&count(), &Control::default()).is_ok());
}

/// Fails if cancelling a job waits for the compiler.
#[test]
fn compiling_ends_when_it_is_cancelled() {
    let cache = tempfile::tempdir().expect("a directory");
    let components = components(compiler(), cache.path());
    let control = Control::default();
    let stop = control.clone();
    let stopping = thread::spawn(move || {
        thread::sleep(Duration::from_millis(500));
        stop.stop(Stop::Cancelled);
        Instant::now()
    });
    let stopped = components.compile(&long(), &control).unwrap_err();
    let waited = stopping.join().expect("stopped").elapsed();
    assert_eq!(stopped, CompileError::Stopped(Stop::Cancelled));
    assert!(waited < Duration::from_secs(10), "{waited:?}");
}
