//! The shared parts of the tests: tools, servers and judges, and the crawl with what it leaves.

pub mod dnsmasq;
pub mod job;
pub mod nginx;
pub mod relay;
pub mod tools;
