//! Reduce steps: any pieces, any memory, any order of ties, lines of any kind.

use tools_testing::{FailingReader, PieceReader};

use super::*;

fn reduced(kind: Reduce, input: &[u8], piece: usize, memory: usize) -> Result<Vec<u8>, String> {
    let scratch = tempfile::tempdir().unwrap();
    let mut out = Vec::new();
    let reducer = Reducer::with_memory(kind, scratch.path(), memory);
    let result = reducer.reduce_outputs(
        &mut PieceReader::new(input, piece),
        &mut out,
        &StopControl::default(),
    );
    assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0);
    result.map(|()| out).map_err(|error| error.to_string())
}

fn check(kind: Reduce, input: &[u8], expected: &[u8]) {
    for piece in [1, 2, 3, 7, 1000] {
        for memory in [0, 1, 50, 500, MEMORY] {
            let out = reduced(kind, input, piece, memory);
            let shown = out.as_ref().map(|out| String::from_utf8_lossy(out));
            assert_eq!(
                out.as_deref(),
                Ok(expected),
                "{kind} {piece} {memory}: {shown:?}"
            );
        }
    }
}

/// Fails if reducing no output at all yields an empty line or an error.
#[test]
fn nothing_gives_nothing() {
    for kind in [
        Reduce::Concatenate,
        Reduce::Sort,
        Reduce::Unique,
        Reduce::Sum,
    ] {
        check(kind, b"", b"");
    }
}

/// Fails if concatenation alters bytes, a last line without line feed is lost or joined, or the header line of an index
/// is sorted among the others or kept twice.
#[test]
fn bytes_are_unchanged_and_lines_sorted() {
    check(
        Reduce::Concatenate,
        b"b\n\xff\0a\nno end",
        b"b\n\xff\0a\nno end",
    );
    check(
        Reduce::Sort,
        b"b\na\n\na\nab\n c\nb",
        b"\n c\na\na\nab\nb\nb\n",
    );
    check(Reduce::Unique, b"b\na\n\na\nab\n c\nb", b"\n c\na\nab\nb\n");
    // The header line of a form comes first, and once.
    check(
        Reduce::Unique,
        b" CDX N b\norg,b)/ 2\n CDX N b\norg,a)/ 1\n",
        b" CDX N b\norg,a)/ 1\norg,b)/ 2\n",
    );
}

/// Fails if a sum depends on the order of the lines or the memory, a key that is empty or has a space is lost, or sums
/// overflow before 128 bits.
#[test]
fn counts_add_up_per_key_in_any_order() {
    let lines = [
        "b\t1\t10", "a\t7\t0", "b\t2\t20", "\t1", "a x\t3", "a\t00\t5", "b\t0\t0", "\t2",
    ];
    let expected = b"\t3\na\t7\t5\na x\t3\nb\t3\t30\n";
    let mut order: Vec<usize> = (0..lines.len()).collect();
    // Every rotation, forwards and backwards.
    for _ in 0..lines.len() {
        order.rotate_left(1);
        for reversed in [false, true] {
            let mut order = order.clone();
            if reversed {
                order.reverse();
            }
            let input: String = order.iter().flat_map(|at| [lines[*at], "\n"]).collect();
            check(Reduce::Sum, input.as_bytes(), expected);
        }
    }
    let most = u128::MAX - 1;
    check(
        Reduce::Sum,
        format!("a\t{most}\na\t1").as_bytes(),
        format!("a\t{}\n", u128::MAX).as_bytes(),
    );
}

/// Fails if a line that is no count is skipped or added as zero, a sum wraps around, or the error does not say which
/// line.
#[test]
fn a_line_that_cannot_be_added_is_named() {
    for (input, says) in [
        ("a\t1\nno number\n", "line 2"),
        ("a\t1\na\t\n", "line 2"),
        ("a\t-1\n", "line 1"),
        ("a\t+1\n", "line 1"),
        ("a\t1.5\n", "line 1"),
        ("a\t1\t\n", "line 1"),
        ("a\n", "line 1"),
        ("\n", "line 1"),
        ("a\t1\na\t1\t2\n", "as many numbers"),
        (
            "a\t340282366920938463463374607431768211455\na\t1\n",
            "128 bits",
        ),
        ("a\t340282366920938463463374607431768211456\n", "line 1"),
    ] {
        for memory in [0, MEMORY] {
            let error = reduced(Reduce::Sum, input.as_bytes(), 5, memory).unwrap_err();
            assert!(error.contains(says), "{input:?} {memory}: {error}");
        }
    }
}

/// Fails if a line of exactly the allowed length is refused, or a longer one fills the memory or is cut.
#[test]
fn only_line_beyond_limit_is_refused() {
    for kind in [Reduce::Sort, Reduce::Unique] {
        let longest = [b"x".repeat(LONGEST_LINE), b"\n".to_vec()].concat();
        let input = [b"a\n", &longest[..]].concat();
        assert_eq!(reduced(kind, &input, 1 << 20, MEMORY).unwrap(), input);
        let error = reduced(kind, &[b"a\nx", &longest[..]].concat(), 1 << 20, MEMORY).unwrap_err();
        assert!(
            error.starts_with("line 2 of the output is longer"),
            "{error}"
        );
    }
}

/// Says stop with the first bytes.
struct StoppingSink(StopControl);

impl Sink for StoppingSink {
    fn write(&mut self, _: &[u8]) -> Result<(), Stop> {
        self.0.stop(Stop::Cancelled);
        Ok(())
    }
}

/// Fails if lines are lost or misplaced between the sorted pieces on disk, or a stop is not seen while they are merged.
#[test]
fn sort_spills_beyond_memory_and_obeys_stop() {
    let mut lines: Vec<String> = (0..50_000_u32)
        .map(|n| format!("{:08x}", n.wrapping_mul(2_654_435_761)))
        .collect();
    let input = lines.join("\n");
    lines.sort();
    let expected = lines.join("\n") + "\n";
    let out = reduced(Reduce::Sort, input.as_bytes(), 4096, 10_000).unwrap();
    assert!(out == expected.as_bytes());
    let scratch = tempfile::tempdir().unwrap();
    for kind in [Reduce::Concatenate, Reduce::Sort] {
        let control = StopControl::default();
        let error = Reducer::with_memory(kind, scratch.path(), 10_000)
            .reduce_outputs(
                &mut input.repeat(2).as_bytes(),
                &mut StoppingSink(control.clone()),
                &control,
            )
            .unwrap_err();
        assert!(
            matches!(error, BatchJobError::Stopped(Stop::Cancelled)),
            "{error:?}"
        );
    }
}

/// Fails if output that cannot be read counts as its end, a full sink is ignored, or the reduce step of a component is
/// done by a built-in one.
#[test]
fn failing_input_or_sink_is_reported() {
    struct FullSink;
    impl Sink for FullSink {
        fn write(&mut self, _: &[u8]) -> Result<(), Stop> {
            Err(Stop::Output)
        }
    }
    let scratch = tempfile::tempdir().unwrap();
    for kind in [
        Reduce::Concatenate,
        Reduce::Sort,
        Reduce::Unique,
        Reduce::Sum,
    ] {
        let control = StopControl::default();
        let reducer = || Reducer::new(kind, scratch.path());
        let error = reducer().reduce_outputs(
            &mut FailingReader::new(b"", "the disk is gone"),
            &mut Vec::new(),
            &control,
        );
        assert!(error.unwrap_err().to_string().contains("the disk is gone"));
        let error = reducer().reduce_outputs(&mut &b"a\t1"[..], &mut FullSink, &control);
        assert!(
            matches!(error, Err(BatchJobError::Stopped(Stop::Output))),
            "{kind}"
        );
    }
    let reducer = Reducer::new(Reduce::Component, scratch.path());
    let error = reducer.reduce_outputs(&mut &b""[..], &mut Vec::new(), &StopControl::default());
    assert!(matches!(error, Err(BatchJobError::Failed(_))));
}
