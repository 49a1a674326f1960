//! Which crate may use which: no arrow up, outside crates, what cannot await, licences.

use std::collections::BTreeSet;

use conformance::cargo::{self, Graph, Metadata};
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

fn block(info: &str) -> Graph {
    cargo::read_block(&tree::read("ARCHITECTURE.md").unwrap(), info).unwrap()
}

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
/// `testing`, `conformance` or `tools-cli`.
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
                || ["conformance", "testing", "tools-cli"].contains(&to.as_str())
            {
                wrong.push(format!("{from} -> {to}"));
            }
        }
    }
    assert_none(
        &wrong,
        "must not be: the archive outlives the rest, parts meet on the wire, nobody sees the top, and only tests see \
         `testing`",
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

/// Fails if an outside crate that `ARCHITECTURE.md` leaves to one crate is used by a second one, or is listed for a
/// crate that does not use it.
#[test]
fn outside_crates_are_named_only_where_listed() {
    let drawn = block("outside");
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
        "are drawn in ARCHITECTURE.md and in no Cargo.toml: take them away there",
    );
}

/// Fails if a feature of some dependency puts an asynchronous runtime under a crate that must not await.
#[test]
fn crates_that_cannot_await_have_no_runtime() {
    let metadata = Metadata::read().unwrap();
    let mut wrong = Vec::new();
    for (name, _) in block("no-await") {
        let closure = metadata.closure(&name).unwrap();
        assert!(closure.contains(&name), "the closure of {name} is empty");
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
