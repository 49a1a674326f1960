//! Decisions of a crawl: which URIs may be fetched, when, and in which order.
//!
//! Owns the decisions of the harvester that need no socket, no disk and no clock: they are functions of what was seen, so
//! that each of them is tested by itself and exhaustively. Does not fetch, remember or wait: `harvest-crawler` does.

pub mod account;
pub mod address;
pub mod address_turns;
pub mod canonical;
pub mod cookies;
pub mod cost;
pub mod credential;
pub mod hops;
pub mod politeness;
pub mod quarantine;
pub mod queue_name;
pub mod queue_rules;
pub mod rejections;
pub mod robots;
pub mod scope;
pub mod status;
pub mod suffixes;
pub mod surt;
pub mod traps;
pub mod turns;
