//! The executable as people and scripts meet it: real processes against an archive over real TLS.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    unreachable_pub,
    dead_code,
    reason = "helpers of the tests, of which the client's tests use more"
)]

#[path = "../../../../archive/client/tests/client/archive.rs"]
mod archive;
mod archive_files;
mod audit_log;
mod captures;
mod checks;
mod crawl_documents;
mod crawl_life;
mod crawls;
mod dedup;
mod files;
mod help;
mod holdfast;
mod index_judges;
mod jobs;
#[path = "../../../../archive/client/tests/client/keeping.rs"]
mod keeping;
mod listings;
mod nodes;
mod persons;
mod pki;
mod record;
mod records;
mod scrubs;
#[path = "../../../../archive/client/tests/client/serving.rs"]
mod serving;
mod settings;
mod starts;
#[path = "../../../../archive/client/tests/client/world.rs"]
mod world;
