//! The targets: what they are called, what is good input, and what must be true of any.
//!
//! A target must not panic, whatever it is given; most also assert what the thing promises. A new parser of something
//! that comes from outside gets a line here and a file in `fuzz_targets/`; a test compares the two.

#[path = "inputs/cdx_request.rs"]
mod cdx_request;
#[path = "inputs/files.rs"]
pub(crate) mod files;
#[path = "inputs/index.rs"]
mod index;
#[path = "inputs/journal.rs"]
mod journal;
#[path = "inputs/kept.rs"]
pub mod kept;
#[path = "inputs/links.rs"]
mod links;
#[path = "inputs/names.rs"]
mod names;
#[path = "inputs/proof.rs"]
pub(crate) mod proof;
#[path = "inputs/proxy.rs"]
mod proxy;
#[path = "inputs/records.rs"]
mod records;
#[path = "inputs/replay.rs"]
mod replay;
#[path = "inputs/response.rs"]
mod response;
#[path = "inputs/words.rs"]
pub(crate) mod words;

/// Something that takes bytes from outside.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The name of the target, which is also that of its file in `fuzz_targets/`.
    pub name: &'static str,
    /// Returns good input, to begin with.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Takes any input; panics where a promise is broken.
    pub run: fn(&[u8]),
}

pub(crate) const fn target(
    name: &'static str,
    seeds: fn() -> Vec<Vec<u8>>,
    run: fn(&[u8]),
) -> Target {
    Target { name, seeds, run }
}

/// All that need no RocksDB.
pub const LIGHT: &[Target] = &[
    target(
        "access_rules",
        replay::access_rules_seeds,
        replay::access_rules,
    ),
    target("admission", proof::admission_seeds, proof::admission),
    target("arc", records::arc_seeds, records::arc),
    target(
        "archived_page",
        replay::archived_page_seeds,
        replay::archived_page,
    ),
    target("cdx", index::cdx_seeds, index::cdx),
    target("cdx_request", cdx_request::seeds, cdx_request::cdx_request),
    target("certificate", words::certificate_seeds, words::certificate),
    target("client_file", files::client_file_seeds, files::client_file),
    target("date", index::date_seeds, index::date),
    target("digest", index::digest_seeds, index::digest),
    target("envelope", proof::envelope_seeds, proof::envelope),
    target("file_name", names::file_name_seeds, names::file_name),
    target("groups", names::groups_seeds, names::groups),
    target("gzip", records::gzip_seeds, records::gzip),
    target("http", records::http_seeds, records::http),
    target("journal", journal::journal_seeds, journal::journal),
    target("links", links::links_seeds, links::links),
    target("outboard", proof::outboard_seeds, proof::outboard),
    target("points", words::points_seeds, words::points),
    target("post", index::post_seeds, index::post),
    target(
        "proxy_request",
        proxy::proxy_request_seeds,
        proxy::proxy_request,
    ),
    target("ranges", proof::ranges_seeds, proof::ranges),
    target("receipt", proof::receipt_seeds, proof::receipt),
    target("record_end", names::record_end_seeds, names::record_end),
    target(
        "record_proof",
        proof::record_proof_seeds,
        proof::record_proof,
    ),
    target(
        "replay_request",
        replay::replay_request_seeds,
        replay::replay_request,
    ),
    target("response", response::response_seeds, response::response),
    target("settings", files::settings_seeds, files::settings),
    target("sidecar", files::sidecar_seeds, files::sidecar),
    target("surt", index::surt_seeds, index::surt),
    target("trust_file", proof::trust_file_seeds, proof::trust_file),
    target(
        "volume_label",
        files::volume_label_seeds,
        files::volume_label,
    ),
    target("warc", records::warc_seeds, records::warc),
    target("words", words::words_seeds, words::words),
];
