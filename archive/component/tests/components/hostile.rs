//! Components that break the rules: each is stopped, with the right reason, while another job continues undisturbed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use archive_batch::{BatchJobError, Sink, Stop, StopControl};
use archive_component::Components;
use archive_model::JobLimits;

use crate::drive::{binary, compile, file, limits, resources, show, show_to};

/// A sink that takes a number of bytes and no more, as the node's does.
struct LimitedSink {
    left: usize,
    taken: usize,
    largest: usize,
}

impl Sink for LimitedSink {
    fn write(&mut self, bytes: &[u8]) -> Result<(), Stop> {
        self.largest = self.largest.max(bytes.len());
        self.left = self.left.checked_sub(bytes.len()).ok_or(Stop::Output)?;
        self.taken += bytes.len();
        Ok(())
    }
}

/// Counts records over and over while something else happens.
fn count_during<R>(components: &Components, happens: impl FnOnce() -> R) -> R {
    let count = compile(components, "examples/count.wat").unwrap();
    let bytes = resources(50);
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let other = scope.spawn(|| {
            let mut runs = 0;
            while !over.load(Ordering::Relaxed) || runs == 0 {
                let came = show(&count, &[], limits(), "other.warc.gz", &bytes);
                assert_eq!(came.errors(), [""; 0]);
                assert_eq!(came.text(), "other.warc.gz\t50\n");
                runs += 1;
            }
        });
        let happened = happens();
        over.store(true, Ordering::Relaxed);
        other.join().unwrap();
        happened
    })
}

/// Fails if a component that computes, allocates, recurses or writes without end runs on, disturbs another job, or is
/// stopped for a reason that is not the true one.
#[test]
fn hostile_component_is_stopped_with_its_reason() {
    let components = Components::new(None).unwrap();
    let small = JobLimits {
        file_time: Duration::from_millis(300),
        memory: 200 << 20,
        ..limits()
    };
    for (name, broken, reason) in [
        ("endless", true, "computed for more than 0.3 s, its limit"),
        (
            "greedy",
            true,
            "wants more memory than its limit of 209715200 bytes",
        ),
        ("trapping", true, "gave up (`unreachable`)"),
        ("deep", true, "stack overflow"),
        ("shouting", true, "hands over more than 16 MiB at once"),
        ("wrong-text", true, "did what it must not: invalid utf-8"),
        ("endless-text", true, "did what it must not"),
        ("failing", false, "these bytes are no music"),
    ] {
        let began = Instant::now();
        let came = count_during(&components, || {
            let hostile = compile(&components, &format!("tests/hostile/{name}.wat")).unwrap();
            show(&hostile, &[], small, "a.bin", b"some bytes")
        });
        let errors = came.errors();
        assert_eq!(errors.len(), 1, "{name}: {errors:?}");
        assert!(errors[0].contains(reason), "{name}: {errors:?}");
        assert_eq!(
            matches!(came.errors[0], BatchJobError::Broken(_)),
            broken,
            "{name}"
        );
        assert!(began.elapsed() < Duration::from_secs(30), "{name}");
        eprintln!("{name}: {:?}: {}", began.elapsed(), errors[0]);
    }
}

/// Fails if a component can write on after the sink is full, or hands it pieces of any size.
#[test]
fn endless_writer_is_stopped_at_limit_of_sink() {
    let components = Components::new(None).unwrap();
    let chatty = compile(&components, "tests/hostile/chatty.wat").unwrap();
    let mut sink = LimitedSink {
        left: 10 << 20,
        taken: 0,
        largest: 0,
    };
    let known = file("a.bin", b"some bytes");
    let errors = count_during(&components, || {
        let control = StopControl::default();
        show_to(
            &chatty,
            &[],
            limits(),
            &known,
            &mut &b"some bytes"[..],
            &mut sink,
            &control,
        )
    });
    assert!(
        matches!(errors[..], [BatchJobError::Stopped(Stop::Output)]),
        "{errors:?}"
    );
    assert_eq!((sink.taken, sink.largest), (10 << 20, 64 << 10));
}

/// Fails if a component that never calls the host does not end when its job is cancelled.
#[test]
fn endless_component_ends_soon_after_stop() {
    let components = Components::new(None).unwrap();
    let endless = compile(&components, "tests/hostile/endless.wat").unwrap();
    let known = file("a.bin", b"some bytes");
    let control = StopControl::default();
    let long = JobLimits {
        file_time: Duration::from_hours(1),
        ..limits()
    };
    thread::scope(|scope| {
        let running = scope.spawn(|| {
            let mut out = Vec::new();
            let errors = show_to(
                &endless,
                &[],
                long,
                &known,
                &mut &b"x"[..],
                &mut out,
                &control,
            );
            (errors, Instant::now())
        });
        thread::sleep(Duration::from_millis(200));
        assert!(!running.is_finished());
        let told = Instant::now();
        control.stop(Stop::Cancelled);
        let (errors, ended) = running.join().unwrap();
        assert!(
            matches!(errors[..], [BatchJobError::Stopped(Stop::Cancelled)]),
            "{errors:?}"
        );
        let took = ended - told;
        eprintln!("ended {took:?} after it was told");
        // A few milliseconds; more only where the machine has other things to do.
        assert!(took < Duration::from_secs(10), "{took:?}");
    });
}

/// Fails if a file that is no component, or one with imports or types that a job may not have, is accepted, or the
/// error does not say what is wrong.
#[test]
fn foreign_component_is_refused_in_plain_words() {
    let components = Components::new(None).unwrap();
    let noise: Vec<u8> = (0..100_000_u32)
        .map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()[3])
        .collect();
    let whole = binary("examples/count.wat");
    let nothing = wat::parse_bytes(b"(component)").unwrap();
    let too_large = vec![b' '; (64 << 20) + 1];
    for (bytes, reason) in [
        (&b""[..], "it is empty"),
        (&noise[..], "it is no WebAssembly component"),
        (
            &b"\0asm\x01\0\0\0"[..],
            "it is a core module and no component",
        ),
        (&b"\0asm\x0d\0\x01\0"[..], "it exports neither"),
        (&whole[..whole.len() / 2], "does not compile"),
        (
            &nothing[..],
            "it exports neither holdfast:batch/records@1.0.0 nor holdfast:batch/bytes@1.0.0, but nothing",
        ),
        (
            &b"(component)"[..],
            "it is no WebAssembly component in binary form",
        ),
        (
            &b"#!/usr/bin/env python3\nprint('hello')\n"[..],
            "it is no WebAssembly component",
        ),
        (
            &too_large[..],
            "it has 67108865 bytes; at most 67108864 are taken",
        ),
    ] {
        let refused = components.compile_component(bytes, &StopControl::default());
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains(reason), "{refused}\nis not: {reason}");
    }
    for (name, reason) in [
        (
            "boasting",
            "asked for `describe`, it has written more than it may",
        ),
        (
            "lying",
            "its function `more` has another type than in holdfast:batch@1.0.0",
        ),
        (
            "foreign",
            "it imports wasi:sockets/tcp@0.2.0, wasi:clocks/wall-clock@0.2.0, and a job may import only",
        ),
    ] {
        let refused = compile(&components, &format!("tests/hostile/{name}.wat")).unwrap_err();
        let refused = refused.to_string();
        assert!(refused.contains(reason), "{refused}\nis not: {reason}");
        eprintln!("{refused}");
    }
}
