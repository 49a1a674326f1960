//! Nothing that comes from a disk, a wire or a person makes us panic or believe it: mutations of good input, thousands
//! for each parser, the same at every run. `tools/fuzz` searches the same targets without an end.

#[expect(unreachable_pub, reason = "it is public where it is fuzzed")]
#[path = "../fuzz/src/inputs.rs"]
mod inputs;
#[expect(unreachable_pub, reason = "it is public where it is fuzzed")]
#[path = "../fuzz/src/inputs/node.rs"]
mod node;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use conformance::tree;
use tools_testing::Random;

use self::inputs::Target;
use self::inputs::kept::{kept, lines};

/// The number of mutations of each seed.
const MUTATIONS: u64 = 1500;

/// Tokens that parsers trip over.
const TOKENS: [&[u8]; 20] = [
    b"\0",
    b"\xff",
    b"\n",
    b"\r\n\r\n",
    b"\"",
    b"\\",
    b"{",
    b"[",
    b"}",
    b"null",
    b"-1",
    b"1e999",
    b"18446744073709551615",
    b"18446744073709551616",
    b"\xff\xff\xff\xff\xff\xff\xff\xff",
    b"\x00\x00\x00\x00\x00\x00\x00\x80",
    b"../",
    "\u{202e}\u{301}".as_bytes(),
    b"\x1f\x8b\x08\x1f",
    b"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
];

/// Damages `input` in one way, or a few.
fn mutate(dice: &mut Random, input: &mut Vec<u8>, others: &[Vec<u8>]) {
    for _ in 0..=dice.index(3) {
        let at = dice.index(input.len() + 1);
        let upto = (at + 1 + dice.index(40)).min(input.len()).max(at);
        match dice.index(8) {
            0 | 1 => {
                let bit = dice.index(8);
                if let Some(byte) = input.get_mut(at) {
                    *byte ^= 1 << bit;
                }
            }
            2 => input.truncate(at),
            3 => drop(input.drain(at..upto)),
            4 => {
                let copy = input[at..upto].to_vec();
                let to = dice.index(input.len() + 1);
                drop(input.splice(to..to, copy));
            }
            5 => {
                let token = TOKENS[dice.index(TOKENS.len())];
                drop(input.splice(at..at, token.iter().copied()));
            }
            6 => {
                let token = TOKENS[dice.index(TOKENS.len())];
                drop(input.splice(at..upto, token.iter().copied()));
            }
            _ => {
                let other = others.get(dice.index(others.len().max(1)));
                let tail = other.map(Vec::as_slice).unwrap_or_default();
                let start = dice.index(tail.len().max(1));
                input.truncate(at);
                input.extend_from_slice(&tail[start..]);
            }
        }
    }
}

/// Longer than any answer takes on the slowest machine: who is waited for so long never answers.
const FOR_EVER: Duration = Duration::from_mins(5);

/// Gives a target all that it is to be given; what it panics at, or never comes back from, is named.
#[expect(clippy::panic, reason = "so a test fails")]
fn torment(target: &'static Target, mutations: u64) {
    let (given, seen) = mpsc::sync_channel::<Vec<u8>>(1);
    let worker = std::thread::spawn(move || {
        each_input(target, mutations, |input| {
            let _whoever_sees_it_may_have_given_up = given.send(input.to_vec());
            (target.run)(input);
        });
    });
    let mut last = Vec::new();
    let failure = loop {
        match seen.recv_timeout(FOR_EVER) {
            Ok(input) => last = input,
            Err(RecvTimeoutError::Timeout) => break "never came back",
            Err(RecvTimeoutError::Disconnected) if worker.join().is_ok() => return,
            Err(RecvTimeoutError::Disconnected) => break "panicked",
        }
    };
    let shown = last.get(..2000).unwrap_or(&last);
    panic!(
        "{} {failure}; it was given: {}",
        target.name,
        shown.escape_ascii()
    );
}

/// Returns the directory with the inputs that fuzzing has found.
fn corpus() -> PathBuf {
    tree::root().join("conformance/fuzz/corpus")
}

fn each_input(target: &Target, mutations: u64, run: impl Fn(&[u8])) {
    let seeds = (target.seeds)();
    assert!(!seeds.is_empty(), "{} has no seed", target.name);
    for (number, seed) in seeds.iter().enumerate() {
        run(seed);
        let mut dice = Random::new(u64::try_from(number).unwrap());
        for _ in 0..mutations {
            let mut input = seed.clone();
            mutate(&mut dice, &mut input, &seeds);
            run(&input);
        }
    }
    for input in kept(&corpus(), target.name).unwrap() {
        run(&input);
    }
    for input in [&[][..], &[0], &[0xff; 100], &[b'['; 10_000]] {
        run(input);
    }
    run(&vec![b' '; 100_000]);
}

/// Fails if a parser of outside input panics, never returns, or breaks a rule of its fuzz target for some mutation of
/// good input.
#[test]
fn hostile_input_from_outside_is_no_panic() {
    std::thread::scope(|scope| {
        for half in inputs::LIGHT.chunks(inputs::LIGHT.len().div_ceil(2)) {
            scope.spawn(move || half.iter().for_each(|target| torment(target, MUTATIONS)));
        }
    });
}

/// Fails if a file on a node's disk that was cut, flipped or spliced makes the node panic or hang, or is believed.
#[test]
fn hostile_bytes_on_disk_are_no_panic() {
    // The targets of a node write, and sync what they write.
    for target in node::NODE {
        torment(target, MUTATIONS / 5);
    }
}

/// Fails if a parser is tested with mutations here but cannot be fuzzed further, since its executable or its `[[bin]]`
/// is missing.
#[test]
fn every_target_can_be_fuzzed() {
    let files = tree::files().unwrap();
    let found: BTreeSet<String> = files
        .iter()
        .filter_map(|file| file.path.strip_prefix("conformance/fuzz/fuzz_targets/"))
        .map(|name| name.trim_end_matches(".rs").to_owned())
        .collect();
    let targets: BTreeSet<String> = inputs::LIGHT
        .iter()
        .chain(node::NODE)
        .map(|target| target.name.to_owned())
        .collect();
    assert_eq!(found, targets, "each has a file in `fuzz_targets/`");
    let manifest = tree::read("conformance/fuzz/Cargo.toml").unwrap();
    for name in targets {
        assert!(
            manifest.contains(&format!("\nname = \"{name}\"\n")),
            "{name} is no [[bin]] of conformance/fuzz"
        );
    }
}

/// Fails if inputs that fuzzing has found are kept under a name that no target has, so that they are never run again.
#[test]
fn kept_fuzzing_inputs_have_targets_and_tool_format() {
    let mut names = BTreeSet::new();
    for entry in std::fs::read_dir(corpus()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let inputs = kept(&corpus(), &name).unwrap();
        let text = std::fs::read_to_string(corpus().join(&name)).unwrap();
        assert_eq!(lines(inputs), text, "{name}");
        names.insert(name);
    }
    let targets = inputs::LIGHT.iter().chain(node::NODE);
    let targets: BTreeSet<String> = targets.map(|target| target.name.to_owned()).collect();
    assert!(names.is_subset(&targets), "{names:?}");
}
