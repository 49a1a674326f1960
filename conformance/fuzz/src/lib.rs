//! Everything of ours that is parsed from a disk, a wire or a person, as functions of some bytes.
//!
//! Two run them: libFuzzer (`tools/fuzz`), which searches, and the ordinary tests (`conformance/tests/hostile.rs`),
//! which go through thousands of mutations that are the same every time. So a target is written once.
//!
//! Not promised: an interface. This crate is outside the workspace, because libFuzzer wants other flags for all of it.

pub mod inputs;
#[cfg(feature = "node")]
#[path = "inputs/node.rs"]
pub mod node;

use inputs::Target;

#[cfg(feature = "node")]
use node::NODE;
#[cfg(not(feature = "node"))]
const NODE: &[Target] = &[];

/// Returns every target.
pub fn all() -> impl Iterator<Item = &'static Target> {
    inputs::LIGHT.iter().chain(NODE)
}

/// Runs the target of that name.
pub fn run(name: &str, input: &[u8]) {
    let target = all().find(|target| target.name == name);
    (target
        .expect("a file in `fuzz_targets/` is named after its target")
        .run)(input);
}
