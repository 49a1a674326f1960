//! Which crate may use which: no arrow up, outside crates, what cannot await, licences.

use std::collections::BTreeSet;

use conformance::cargo::{Graph, Metadata};
use conformance::tree;
use spdx::{Expression, ParseMode};

use crate::assert_none;

/// The licences that may be in the graph of a programme that a national library gives away.
const LICENCES: [&str; 14] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "MPL-2.0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// The crates that are a part: one process each, met on the wire only.
const PARTS: [&str; 7] = [
    "archive-bitarchive",
    "archive-monitor",
    "archive-repository",
    "harvest-controller",
    "harvest-scheduler",
    "index-server",
    "viewer-web",
];

/// The crates that let a crate wait for something without a thread.
const RUNTIMES: [&str; 4] = ["async-std", "futures-executor", "smol", "tokio"];

/// The crates that have no runtime anywhere under them, so that nothing in them is dropped halfway.
const NO_AWAIT: [&str; 15] = [
    "archive-batch",
    "archive-component",
    "archive-db",
    "archive-decisions",
    "archive-durable",
    "archive-formats",
    "archive-model",
    "archive-proof",
    "harvest-model",
    "harvest-extraction",
    "harvest-policy",
    "harvest-reports",
    "index-captures",
    "index-dedup",
    "viewer-replay",
];

/// Crates that are clients of the web.
const HTTP_CLIENTS: [&str; 14] = [
    "attohttpc",
    "awc",
    "curl",
    "fantoccini",
    "h2",
    "harvest-crawler",
    "hudsucker",
    "hyper-rustls",
    "hyper-tls",
    "isahc",
    "minreq",
    "reqwest",
    "surf",
    "ureq",
];

/// The outside crates that are some crates' business: these name them, and no others.
const OUTSIDE: [(&str, &[&str]); 24] = [
    ("askama", &["viewer-web"]),
    ("axum", &["archive-daemon", "viewer-proxy", "viewer-web"]),
    ("bao-tree", &["archive-proof"]),
    ("chardetng", &["harvest-extraction"]),
    ("cookie", &["harvest-policy"]),
    ("ed25519-dalek", &["archive-proof"]),
    ("fluent-bundle", &["viewer-web"]),
    ("h2", &["harvest-crawler"]),
    ("hyper", &["viewer-proxy", "viewer-web"]),
    ("lettre", &["archive-daemon"]),
    ("lol_html", &["harvest-extraction", "viewer-replay"]),
    ("openssl", &["harvest-crawler"]),
    ("publicsuffix", &["harvest-policy"]),
    ("quick-xml", &["harvest-extraction"]),
    ("rocksdb", &["archive-db"]),
    ("rustls", &["archive-rpc", "harvest-crawler"]),
    ("rustls-native-certs", &["harvest-crawler"]),
    ("tokio-openssl", &["harvest-crawler"]),
    ("tokio-rustls", &["archive-rpc", "harvest-crawler"]),
    ("tracing-subscriber", &["archive-daemon"]),
    ("unic-langid", &["viewer-web"]),
    ("wasmparser", &["archive-component"]),
    ("wasmtime", &["archive-component"]),
    ("zstd-safe", &["archive-formats"]),
];

/// Returns the arrows between the crates of the workspace, without those of this crate.
fn arrows() -> Graph {
    let metadata = Metadata::read().unwrap();
    let members = metadata.members().unwrap();
    let mut graph = metadata.dependencies().unwrap();
    graph.remove("conformance");
    for named in graph.values_mut() {
        named.retain(|name| members.contains(name));
    }
    graph
}

/// Returns the nodes and edges that are in one graph and not in the other, as `name` or `name -> other`.
fn beyond(graph: &Graph, other: &Graph) -> Vec<String> {
    let mut found = Vec::new();
    for (name, names) in graph {
        match other.get(name) {
            None => found.push(name.clone()),
            Some(others) => {
                found.extend(names.difference(others).map(|to| format!("{name} -> {to}")));
            }
        }
    }
    found
}

/// Fails if the archive depends on the harvester, the index or the viewer, a part on another part, or any crate on
/// `tools-testing`, `conformance` or `tools-cli`.
#[test]
fn no_arrow_leads_up_or_across() {
    let mut wrong = Vec::new();
    for (from, names) in arrows() {
        for to in names {
            let leaves_archive = from.starts_with("archive-") || from == "proto-archive";
            let enters_others = [
                "harvest-",
                "index-",
                "viewer-",
                "proto-harvest",
                "proto-index",
            ];
            let part_to_part = PARTS.contains(&from.as_str()) && PARTS.contains(&to.as_str());
            if (leaves_archive && enters_others.iter().any(|prefix| to.starts_with(prefix)))
                || part_to_part
                || ["conformance", "tools-testing", "tools-cli"].contains(&to.as_str())
            {
                wrong.push(format!("{from} -> {to}"));
            }
        }
    }
    assert_none(
        &wrong,
        "must not be: the archive outlives the rest, parts meet on the wire, nobody sees the top, and only tests see \
         `tools-testing`",
    );
}

/// Fails if a crate has another name than its folder, so that the name in an error message does not lead to the code.
#[test]
fn a_crate_is_named_after_its_folder() {
    let mut wrong = Vec::new();
    for file in tree::files()
        .unwrap()
        .iter()
        .filter(|file| file.path.ends_with("/Cargo.toml"))
    {
        let folder = file.path.trim_end_matches("/Cargo.toml").replace('/', "-");
        if !file.text.contains(&format!("\nname = \"{folder}\"\n")) {
            wrong.push(format!("{} is not named {folder}", file.path));
        }
    }
    assert_none(
        &wrong,
        "name the crate after its folder, so that nobody looks up where it lives",
    );
}

/// Fails if an outside crate that is left to one crate is used by a second one, or is listed for a
/// crate that does not use it.
#[test]
fn outside_crates_are_named_only_where_listed() {
    let names = |users: &[&str]| users.iter().map(|user| (*user).to_owned()).collect();
    let drawn: Graph = OUTSIDE
        .iter()
        .map(|(outside, users)| ((*outside).to_owned(), names(users)))
        .collect();
    let mut found: Graph = drawn
        .keys()
        .map(|outside| (outside.clone(), BTreeSet::new()))
        .collect();
    for (from, names) in Metadata::read().unwrap().dependencies().unwrap() {
        for name in names {
            if let Some(users) = found.get_mut(&name) {
                users.insert(from.clone());
            }
        }
    }
    assert_none(
        &beyond(&found, &drawn),
        "name an outside crate that is another crate's business: ask that crate",
    );
    assert_none(
        &beyond(&drawn, &found),
        "are listed here and in no Cargo.toml: take them off the list",
    );
}

/// Fails if a feature of some dependency puts an asynchronous runtime under a crate that must not await.
#[test]
fn crates_that_cannot_await_have_no_runtime() {
    let metadata = Metadata::read().unwrap();
    let mut wrong = Vec::new();
    for name in NO_AWAIT {
        let closure = metadata.closure(name).unwrap();
        assert!(closure.contains(name), "the closure of {name} is empty");
        wrong.extend(
            RUNTIMES
                .iter()
                .filter(|at| closure.contains(**at))
                .map(|at| format!("{name} has {at} under it")),
        );
    }
    assert_none(
        &wrong,
        "find the way with `cargo tree -p NAME -i RUNTIME`, and turn the feature off or drop the crate",
    );
}

/// Fails if a crate of the viewer can ask the live web: what it replays must not lead there.
#[test]
fn nothing_under_viewer_is_an_http_client() {
    let named = Metadata::read().unwrap().dependencies().unwrap();
    let of_viewer = named.iter().filter(|(name, _)| name.starts_with("viewer-"));
    let mut wrong = Vec::new();
    let mut crates = 0;
    for (name, dependencies) in of_viewer {
        crates += 1;
        let clients = dependencies
            .iter()
            .filter(|to| HTTP_CLIENTS.contains(&to.as_str()));
        wrong.extend(clients.map(|client| format!("{name} -> {client}")));
    }
    assert!(crates >= 2, "only {crates} crates of the viewer were found");
    let files = tree::files().unwrap();
    for file in files.iter().filter(|file| file.path.starts_with("viewer/")) {
        let is_manifest = file.path.ends_with("/Cargo.toml");
        let is_code = file.is("rs");
        let lines = file.text.lines().enumerate();
        for (at, line) in lines {
            // Features make clients of crates that are servers, too.
            let asks = is_manifest && line.starts_with("hyper") && line.contains("client");
            let dials =
                is_code && (line.contains("hyper::client") || line.contains("client::legacy"));
            if asks || dials {
                wrong.push(format!("{}:{}: {}", file.path, at + 1, line.trim()));
            }
        }
    }
    assert_none(
        &wrong,
        "make the viewer able to ask the live web: what cannot dial cannot leak",
    );
}

/// Fails if a dependency under a licence that is not on the list gets in, or one half of `MIT AND AGPL-3.0-only` is
/// enough to pass.
#[test]
fn every_licence_is_on_the_list() {
    let packages = Metadata::read().unwrap().resolved().unwrap();
    assert!(
        packages.len() > 20,
        "only {} packages were found",
        packages.len()
    );
    let refused = |expression: &str| match Expression::parse_mode(expression, ParseMode::LAX) {
        Ok(parsed) => !parsed.evaluate(|wanted| LICENCES.contains(&wanted.to_string().as_str())),
        Err(_) => true,
    };
    for expression in [
        "MIT OR GPL-3.0-only",
        "MIT/Apache-2.0",
        "(MIT OR LGPL-2.1-only) AND Unicode-3.0",
    ] {
        assert!(!refused(expression), "{expression}");
    }
    for expression in [
        "GPL-3.0-only",
        "MIT AND AGPL-3.0-only",
        "Apache-2.0 WITH Bison-exception-2.2",
        "nonsense",
    ] {
        assert!(refused(expression), "{expression}");
    }
    let wrong: Vec<String> = packages
        .iter()
        .filter(|package| package.license.as_deref().is_none_or(refused))
        .map(|package| {
            format!(
                "{} {}: {}",
                package.name,
                package.version,
                package.license.as_deref().unwrap_or("none")
            )
        })
        .collect();
    assert_none(
        &wrong,
        "are under a licence that is not on the list: use another crate",
    );
}

/// The code spans of a line of Markdown.
fn spans(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// Fails if a new crate is missing in the code map, or a crate that is gone still has a row.
#[test]
fn code_map_has_every_crate() {
    let files = tree::files().unwrap();
    let manifests = files
        .iter()
        .filter_map(|file| file.path.strip_suffix("/Cargo.toml"));
    // The fuzz targets have a row with `conformance`, the examples of components are programs of others.
    let crates: BTreeSet<&str> = manifests
        .filter(|path| path.split('/').count() <= 2)
        .filter(|path| *path != "conformance/fuzz")
        .collect();
    let page = tree::read("ARCHITECTURE.md").unwrap();
    let (_, map) = page.split_once("## Code map").unwrap();
    let map = map.split("\n## ").next().unwrap();
    let rows = map.lines().filter(|line| line.starts_with("| "));
    let drawn: BTreeSet<&str> = rows
        .filter_map(|row| row.split('|').nth(1))
        .flat_map(spans)
        .collect();
    let missing: Vec<String> = crates
        .difference(&drawn)
        .map(|path| (*path).to_owned())
        .collect();
    assert_none(
        &missing,
        "give the crate a row in the code map of ARCHITECTURE.md: what it owns",
    );
    let gone: Vec<String> = drawn
        .difference(&crates)
        .map(|path| (*path).to_owned())
        .collect();
    assert_none(
        &gone,
        "take the row out of the code map of ARCHITECTURE.md: there is no such crate",
    );
}

/// Fails if `ARCHITECTURE.md` names a file or folder that was moved.
#[test]
fn places_in_the_page_exist() {
    let page = tree::read("ARCHITECTURE.md").unwrap();
    let folders = [
        "archive/",
        "conformance/",
        "harvest/",
        "index/",
        "proto/",
        "tools/",
        "viewer/",
    ];
    let is_place = |span: &&str| folders.iter().any(|folder| span.starts_with(folder));
    let places: BTreeSet<&str> = page.lines().flat_map(spans).filter(is_place).collect();
    let gone: Vec<String> = places
        .iter()
        .filter(|place| !tree::root().join(place).try_exists().unwrap())
        .map(|place| (*place).to_owned())
        .collect();
    assert!(places.len() > 60, "only {} places were found", places.len());
    assert_none(&gone, "stand in ARCHITECTURE.md: name where it lies now");
}
