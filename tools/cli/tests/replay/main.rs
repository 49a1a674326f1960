//! Captures and replay of a whole archive, judged by others: the clients and readers of the field, curl, and a real
//! browser.
//!
//! Every test starts `holdfast up`, stores files through the command line, and asks the replay listener. Judges are
//! Python programs over warcio, cdxj-indexer and `cdx_toolkit`; the browser is Debian's Chromium. A test without its
//! tools says SKIPPED.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::print_stdout,
    unreachable_pub,
    clippy::disallowed_methods,
    dead_code,
    reason = "helpers of the tests, some of which other tests share; tests write files"
)]

mod access;
#[path = "../whole/archive.rs"]
mod archive;
mod calendar;
mod damage;
mod dialects;
mod encodings;
mod hostile;
mod kills;
mod mementos;
mod outages;
mod proxied;
mod raw;
mod shown;
mod support;
mod time_maps;
mod tls;
