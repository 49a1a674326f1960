//! The findings of earlier fuzzing: for each target the inputs that reach what nothing smaller reaches, a line in
//! base64 each.
//!
//! They lie in `corpus/`, so that a new search begins where the last one ended, and every test run goes through them.

use std::io;
use std::path::Path;

use data_encoding::BASE64;

/// The most of one target: a test goes through all of them, and a person has to fetch them.
const MOST: usize = 256 * 1024;

/// Returns the inputs that are kept of a target; an empty list where nobody has searched yet.
///
/// # Errors
///
/// The system's reason, or a line that is not base64.
pub fn kept(corpus: &Path, target: &str) -> io::Result<Vec<Vec<u8>>> {
    let text = match std::fs::read_to_string(corpus.join(target)) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let lines = text.lines().map(|line| BASE64.decode(line.as_bytes()));
    lines.collect::<Result<_, _>>().map_err(io::Error::other)
}

/// Returns the lines of a file for these inputs: the smallest of them first, as many as there is room for.
pub fn lines(mut inputs: Vec<Vec<u8>>) -> String {
    inputs.sort_by(|a, b| (a.len(), a).cmp(&(b.len(), b)));
    inputs.dedup();
    let mut text = String::new();
    for input in inputs {
        let line = BASE64.encode(&input);
        if text.len() + line.len() > MOST {
            break;
        }
        text.push_str(&line);
        text.push('\n');
    }
    text
}
