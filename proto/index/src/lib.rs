//! The language of the index on the wire.
//!
//! Owns `holdfast.index.v1`: the `.proto` files in `index/v1` are the manual of the API, [`wire`] is generated from
//! them, [`capture`], [`query`] and [`export`] are the only way between it and the nouns of `archive_formats::cdx`;
//! [`status`] and [`sets`] have the nouns of the index itself, [`rules`] the roles that may call, and `fields` the
//! checks of single fields. A message that breaks a rule is refused with the name of its field.
//!
//! Not promised: that a message that converts makes sense; the part decides that.

#![warn(missing_docs)]

pub mod capture;
pub mod export;
mod fields;
pub mod query;
pub mod rules;
pub mod sets;
pub mod status;
pub mod wire;

/// The descriptors of every service and message, for reflection and for the walk over every RPC.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
