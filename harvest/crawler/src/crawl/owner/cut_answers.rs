//! Answers within which a host has broken off, for as long as its URI is tried again.
//!
//! Owns how many of them are kept. One that is not kept, or whose process ends, costs what the further tries do not get.

use std::collections::HashMap;

use crate::process::FetchedUri;

/// The most answers that are kept: each may be a file.
const MOST: usize = 256;

/// The answers that are kept, by URI.
#[derive(Debug, Default)]
pub(super) struct CutAnswers(HashMap<String, Box<FetchedUri>>);

impl CutAnswers {
    /// Keeps an answer, if there is room.
    pub(super) fn keep_answer(&mut self, answer: Box<FetchedUri>) {
        if self.0.len() < MOST {
            self.0.insert(answer.uri.uri.clone(), answer);
        }
    }

    /// Takes the answer of a URI out.
    pub(super) fn take_answer(&mut self, uri: &str) -> Option<Box<FetchedUri>> {
        self.0.remove(uri)
    }
}
