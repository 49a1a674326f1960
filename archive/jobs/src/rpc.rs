//! The door to the nodes: what a job is told to them, and what is read of their answers.
//!
//! - `run` reads files on every node of a replica, `reduction` makes the result of a component on one of them;
//! - `requests` ends what a node does when nobody listens to it any more.

pub(crate) mod reduction;
mod requests;
pub(crate) mod run;
