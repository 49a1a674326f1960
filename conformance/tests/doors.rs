//! Where the wire meets the house: generated types, and gRPC itself, are named at the doors only.
//!
//! Behind a door, code speaks of the nouns of `archive-model` and of [`archive_rpc::CallError`], whose kind says what a
//! caller does next. A field of a message may hold any nonsense; one of the model does not.

use conformance::tree::{self, File};

use crate::assert_none;

/// The crates of the core whose code behind the doors does not know gRPC.
const CORES: [&str; 7] = [
    "archive/bitarchive/src/",
    "archive/jobs/src/",
    "archive/monitor/src/",
    "archive/repository/src/",
    "archive/runs/src/",
    "archive/stores/src/",
    "index/server/src/",
];

/// Returns whether generated types may be named in this file: where the wire meets the house.
fn is_door(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    match parts.as_slice() {
        // Tests in a folder of their own play the party on the other side of a door.
        ["proto" | "conformance", ..]
        | ["archive" | "harvest" | "index", "client", ..]
        | ["archive", "replicas", ..]
        // Replicas of a script, for tests.
        | ["archive", "stores", "src", "scripted.rs"]
        | [_, _, "tests", ..] => true,
        [_, _, "src", file] => *file == "rpc.rs",
        [_, _, "src", folder, ..] => *folder == "rpc",
        _ => false,
    }
}

/// Fails if a door is taken for the inside of the house, or the reverse.
#[test]
fn doors_are_told_from_the_inside() {
    for (path, expected) in [
        ("proto/archive/src/convert.rs", true),
        ("archive/repository/src/rpc/ingest.rs", true),
        ("archive/monitor/src/rpc.rs", true),
        ("archive/client/src/access.rs", true),
        ("archive/monitor/src/nodes.rs", false),
        ("archive/monitor/tests/foreman/main.rs", true),
        ("archive/monitor/src/rpc_limits.rs", false),
        ("archive/replicas/src/admissions.rs", true),
        ("archive/jobs/src/rpc/run.rs", true),
        ("archive/stores/src/scripted.rs", true),
        ("archive/repository/src/restore.rs", false),
    ] {
        assert_eq!(is_door(path), expected, "{path}");
    }
}

/// Returns the lines of code that name a module of generated types. Others may have a module `wire`, too: the crawler's
/// records bytes.
fn wire_types(file: &File) -> Vec<String> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let names_it = |line: &str| {
        let mut words = line.split(|c| !is_name(c));
        let is_path = line.contains("wire::") || line.contains("::wire");
        !line.trim_start().starts_with("//") && is_path && words.any(|word| word == "wire")
    };
    file.places_where(names_it)
}

/// Fails if code that decides works on messages of the wire or gRPC statuses in place of types of the model, or the crate
/// that calls the replicas hands such a message on.
#[test]
fn the_wire_stops_at_the_door() {
    let files = tree::files().unwrap();
    let speaks =
        |file: &&File| file.path.ends_with("/Cargo.toml") && file.text.contains("\nproto-");
    let speakers = files.iter().filter(speaks);
    let speakers: Vec<&str> = speakers
        .map(|file| file.path.trim_end_matches("Cargo.toml"))
        .collect();
    let within = |file: &File, folders: &[&str]| folders.iter().any(|at| file.path.starts_with(at));
    let mut wrong = Vec::new();
    let mut inside = 0;
    let mut signatures = 0;
    for file in files.iter().filter(|file| file.is("rs")) {
        if !is_door(&file.path) && within(file, &speakers) {
            inside += 1;
            wrong.extend(wire_types(file));
        }
        if !is_door(&file.path) && within(file, &CORES) {
            wrong.extend(file.places_where(|line| line.contains("tonic::")));
        }
        if within(file, &["archive/replicas/src/"]) {
            for (line, signature) in public_signatures(&file.text) {
                signatures += 1;
                if signature.contains("wire::") || signature.contains("Client<") {
                    wrong.push(format!("{}:{line}: {signature}", file.path));
                }
            }
        }
    }
    assert!(inside > 50, "only {inside} files were found");
    assert!(signatures > 50, "only {signatures} signatures were found");
    assert_none(
        &wrong,
        "decode in `rpc.rs`, a client or `proto/*/src/convert.rs`, and pass on what the model knows, and a `CallError`",
    );
}

/// Returns the functions, fields and enumerations of a file that others can name, each with the number of its first
/// line.
fn public_signatures(text: &str) -> Vec<(usize, String)> {
    let (code, _tests) = text.split_once("#[cfg(test)]").unwrap_or((text, ""));
    let mut lines = code.lines().map(str::trim).zip(1..);
    let mut found = Vec::new();
    while let Some((line, at)) = lines.next() {
        let of_enum = line.starts_with("pub enum ");
        let is_struct = line.starts_with("pub struct ") && !line.contains("(pub ");
        if !line.starts_with("pub ") || is_struct {
            continue;
        }
        let mut signature = line.to_owned();
        let is_function = line.starts_with("pub ") && line.contains("fn ");
        let is_whole = |text: &str| !is_function || text.ends_with(['{', ';', '}']);
        let mut is_done = is_whole(&signature) && !of_enum;
        while let Some((next, _)) = (!is_done).then(|| lines.next()).flatten() {
            signature = format!("{signature} {next}");
            is_done = if of_enum { next == "}" } else { is_whole(next) };
        }
        found.push((at, signature));
    }
    found
}

/// Fails if a signature of several lines, or what an enumeration holds, is overlooked.
#[test]
fn public_signatures_are_found_whole() {
    let text = "pub fn a(\n    x: u8,\n) -> wire::A {\nwire::Inside\n}\npub struct B(pub wire::B);\npub struct C(wire::C);\n\
                pub enum D {\n    E { f: wire::F },\n}\nfn g(h: wire::H) {\n}\n    pub i: wire::I,\n    j: wire::J,\n\
                #[cfg(test)]\npub fn k(l: wire::L) {}\n";
    let signatures = public_signatures(text);
    let found: Vec<_> = signatures.iter().map(|(at, text)| (*at, &**text)).collect();
    assert_eq!(
        found,
        [
            (1, "pub fn a( x: u8, ) -> wire::A {"),
            (6, "pub struct B(pub wire::B);"),
            (8, "pub enum D { E { f: wire::F }, }"),
            (13, "pub i: wire::I,"),
        ]
    );
}
