//! Decisions of a crawl: which URIs may be fetched, when, and in which order.
//!
//! Owns the decisions of the harvester that need no socket, no disk and no clock: they are functions of what was seen,
//! so that each of them is tested by itself and exhaustively. Does not fetch, remember or wait: `harvest-crawler` does.
//!
//! | Module | Decides |
//! |---|---|
//! | [`hops`] | how a URI was reached |
//! | [`scope`], with [`surt`] and [`traps`] | whether a URI belongs to the crawl |
//! | [`rejections`], [`quarantine`] | whether a person, or a pattern that only makes more of itself, keeps it out |
//! | [`canonical`] | whether it was seen before |
//! | [`queue_name`], with [`suffixes`] | the queue that it waits in |
//! | [`cost`], [`account`], [`queue_rules`] | its place in the queue, and what the queue may still fetch |
//! | [`turns`], [`address_turns`] | which queue and which address may have the next request |
//! | [`robots`], [`address`] | whether its host and its address may be asked |
//! | [`credential`], [`cookies`] | what the request says of the visitor |
//! | [`status`] | what a try was worth, and whether it is tried again |
//! | [`politeness`], [`host_rests`] | how long the host rests then, after an answer and after a failure |
//!
//! ```
//! use harvest_policy::hops::{Hop, HopPath};
//! use harvest_policy::politeness::{FinishedFetch, Politeness};
//! use harvest_policy::scope::Scope;
//! use std::time::Duration;
//! use url::Url;
//!
//! let mut scope = Scope::default();
//! scope.accepted.add_host(&Url::parse("http://example.dk/")?);
//! let page = HopPath::seed_path().followed_by(Hop::Link);
//! assert!(scope.decide_scope(&Url::parse("http://example.dk/news")?, &page).is_accepted());
//! assert!(!scope.decide_scope(&Url::parse("http://example.com/")?, &page).is_accepted());
//! let fetch = FinishedFetch { duration: Duration::from_secs(1), bytes: 9_000, crawl_delay: None };
//! assert_eq!(Politeness::default().pause_after(fetch), Duration::from_secs(5));
//! # Ok::<(), url::ParseError>(())
//! ```

#![warn(missing_docs)]

pub mod account;
pub mod address;
pub mod address_turns;
pub mod canonical;
pub mod cookies;
pub mod cost;
pub mod credential;
pub mod hops;
pub mod host_rests;
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
