//! The shared parts of the tests: the chain from a stored file to the replay listener, its judges, and the browser.

pub mod chain;
pub mod curl;
pub mod judge;
pub mod made;
pub mod samples;
#[path = "../crawl/support/tools.rs"]
pub mod tools;
