//! The nouns of harvesting: what a job is to harvest, and by which order.
//!
//! Owns [`HarvestJob`] and its [`CrawlOrder`]: the command line makes the same two that a scheduler sends. They are
//! plain values: nothing here opens a file, reads a clock, or can await. Turns an order into the policies of
//! `harvest-policy`; does not carry them out.
//!
//! The rooms, in reading order: [`job`] has the job with its identity, [`order`] the settings of its crawl and what
//! they become, and [`seed`] reads lists of seeds.
//!
//! ```
//! use harvest_model::CrawlOrder;
//!
//! let order = CrawlOrder::parse("[scope]\nmax_hops = 3\n[politeness]\nmin_delay = \"1 s\"\n")?;
//! assert_eq!(order.scope.max_hops, 3);
//! let error = CrawlOrder::parse("[scope]\nmax_hops = 3\nmax_hop = 4\n").unwrap_err();
//! assert_eq!((error.line, error.key.as_deref()), (Some(3), Some("scope.max_hop")));
//! # Ok::<(), harvest_model::InvalidOrder>(())
//! ```

#![warn(missing_docs)]

pub mod job;
pub mod order;
pub mod seed;
mod text;

pub use job::{Collection, HarvestJob, InvalidCollection};
pub use order::{CrawlOrder, InvalidOrder};
