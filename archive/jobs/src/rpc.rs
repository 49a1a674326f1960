//! The calls to the nodes: writes their orders, and reads their answers.
//!
//! - `run` reads files on every node of a replica, `reduction` makes the result of a component on one of them;
//! - `requests` ends the work of a node when its answers are no longer read.

pub(crate) mod reduction;
mod requests;
pub(crate) mod run;
