//! The archive's language on the wire.
//!
//! Owns `holdfast.archive.v1`: the `.proto` files in `archive/v1` are the manual of the API, [`wire`] is generated from
//! them, and [`convert`] is the only way from it to the model and back. A message that breaks a rule is refused with
//! the name of its field.
//!
//! [`convert`] is for what every part speaks of, [`feed`] and [`batch_run`] for the feed and for batch jobs; [`rules`]
//! says which role may make which call.
//!
//! Not promised: that a message that converts makes sense; the parts decide that.

#![warn(missing_docs)]

pub mod batch_run;
pub mod convert;
pub mod feed;
pub mod rules;
pub mod wire;

/// The descriptors of every service and message, for reflection and for the walk over every RPC.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
