//! Jobs over a site on loopback and an archive in memory.

mod documents;
mod faults;
mod life;
mod prelude;
mod reopen;
mod requests;
mod salvage;
mod uploads;
