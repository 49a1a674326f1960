//! The shared parts of the tests: the chain from a stored file to the replay listener, its judges, and the browser.

pub mod browser;
pub mod chain;
pub mod curl;
#[path = "../crawl/support/job.rs"]
pub mod job;
pub mod judge;
pub mod links;
pub mod made;
#[path = "../crawl/support/nginx.rs"]
pub mod nginx;
pub mod outside;
pub mod samples;
pub mod site_authority;
#[path = "../crawl/support/tools.rs"]
pub mod tools;
