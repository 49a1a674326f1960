//! The nouns of harvesting: what a job is to harvest, and by which order.
//!
//! Owns [`Job`] and its [`Order`]: the command line makes the same two that a scheduler sends. They are plain values: nothing
//! here opens a file, reads a clock, or can await. Turns an order into the policies of `harvest-policy`; does not carry them
//! out.
//!
//! ```
//! use harvest_model::Order;
//!
//! let order = Order::parse("[scope]\nmax_hops = 3\n[politeness]\nmin_delay = \"1 s\"\n")?;
//! assert_eq!(order.scope.max_hops, 3);
//! let error = Order::parse("[scope]\nmax_hops = 3\nmax_hop = 4\n").unwrap_err();
//! assert_eq!((error.line, error.key.as_deref()), (Some(3), Some("scope.max_hop")));
//! # Ok::<(), harvest_model::InvalidOrder>(())
//! ```

pub mod job;
pub mod order;
pub mod seed;
mod text;

pub use job::{Collection, InvalidCollection, Job};
pub use order::{InvalidOrder, Order};
