//! The promises of each trait, held against everything that implements it: one archive over the wire, the one in
//! memory, both kinds of replica, and all that bytes are read from. `seeded` shows that a suite can fail.

mod seeded;

use archive_client::{Depositor, FakeArchive, Keeper};
use archive_durable::UncachedFile;
use archive_proof::{Admission, ReadAt};
use archive_rpc::{ExpectedIdentity, Role, RpcLimits, connect_lazy};
use conformance::contract::access::{self, Doors};
use conformance::contract::preservation::{self, People};
use conformance::contract::replica::{self, Foreman};
use conformance::contract::{Outcome, ingest, read_at};
use conformance::tree;
use proto_archive::wire::replica_client::ReplicaClient;
use tonic::transport::Channel;

use super::visits::{limits, name, noise, store};
use super::world::{CHECKSUMS, Cluster, MONITORS, on_a_cluster};
use crate::assert_none;

/// The results of every suite that was run, each with the name of the implementation.
#[derive(Default)]
struct SuiteResults {
    kept: usize,
    broken: Vec<String>,
}

impl SuiteResults {
    fn take(&mut self, of: &str, outcome: &Outcome) {
        assert!(
            outcome.kept_count() > 0 || !outcome.broken().is_empty(),
            "{of}"
        );
        self.kept += outcome.kept_count();
        let broken = outcome.broken().iter();
        self.broken
            .extend(broken.map(|promise| format!("{of}: {promise}")));
    }

    fn check(&self) {
        assert!(self.kept > 0, "nothing was promised");
        assert_none(
            &self.broken,
            "mend what breaks its promise: `conformance/src/contract` says what it is",
        );
    }
}

/// Fails if the archive over the wire, a monitor or the checksum replica breaks a promise of the trait that it
/// implements.
#[test]
fn contracts() {
    on_a_cluster(async |cluster: &mut Cluster| {
        let mut said = SuiteResults::default();
        let depositor: Depositor = cluster.depositor();
        let another: Depositor = cluster.depositor_as("harvester/h-2");
        let outcome = ingest::all(&depositor, &another, cluster.trust()).await;
        said.take("ingest over the wire", &outcome);
        let reader = cluster.reader();
        let follower = cluster.reader_as("index/i-1");
        let doors = Doors {
            depositor: &depositor,
            reader: &reader,
            follower: &follower,
            trust: cluster.trust(),
        };
        said.take("access over the wire", &access::all(doors).await);
        let keeper = |grant| Keeper::new(cluster.channel(grant), limits());
        let people = People {
            depositor: &depositor,
            officer: &keeper("officer/ole"),
            custodian: &keeper("custodian/cora"),
            second: &keeper("custodian/carl"),
        };
        said.take(
            "preservation over the wire",
            &preservation::all(people).await,
        );

        let mut files = Vec::new();
        for n in 0..3 {
            let stored = store(cluster, &name(&format!("replica-{n}")), &noise(1000, n)).await;
            files.push(stored.unwrap().admission);
        }
        let monitor = foreman(cluster, MONITORS[0], "one", &files);
        said.take("a monitor", &replica::all(&monitor).await);
        let checksums = foreman(cluster, CHECKSUMS, "three", &files);
        said.take("a checksum replica", &replica::all(&checksums).await);
        said.check();
    });
}

fn foreman<'a>(
    cluster: &Cluster,
    part: &str,
    replica: &str,
    files: &'a [Admission],
) -> Foreman<'a> {
    let client = |grant: &str| -> ReplicaClient<Channel> {
        let channel = connect_lazy(
            &cluster.address(part),
            &cluster.credentials(grant),
            &ExpectedIdentity::any_of_role(Role::Monitor),
            &RpcLimits::default(),
        );
        ReplicaClient::new(channel.unwrap())
    };
    Foreman {
        repository: client("repository/kb"),
        node: client(&format!("node/{replica}-1")),
        replica: replica.parse().unwrap(),
        files,
    }
}

/// Fails if the archive in memory behaves otherwise than the real one, so that what is tested against it proves
/// nothing.
#[tokio::test]
async fn the_archive_in_memory_keeps_the_contract() {
    let mut said = SuiteResults::default();
    let archive = FakeArchive::new();
    let another = archive.depositing_as("harvester/another");
    let outcome = ingest::all(&archive, &another, archive.trust()).await;
    said.take("ingest in memory", &outcome);
    let doors = Doors {
        depositor: &archive,
        reader: &archive,
        follower: &archive,
        trust: archive.trust(),
    };
    said.take("access in memory", &access::all(doors).await);
    said.check();
}

/// Fails if one of the sources of bytes ends early or shifts what it reads: around a boundary of 4096 bytes when the
/// cache is bypassed.
#[test]
#[expect(clippy::disallowed_methods, reason = "a test makes a file")]
fn everything_that_is_read_from_reads_alike() {
    let directory = tempfile::tempdir().unwrap();
    let mut said = SuiteResults::default();
    for size in [0, 1, 4095, 4096, 4097, (1 << 20) + 513, 3 << 20] {
        let bytes = noise(size, size as u64);
        let path = directory.path().join("file");
        std::fs::write(&path, &bytes).unwrap();
        let file = std::fs::File::open(&path).unwrap();
        let uncached = UncachedFile::open(&path).unwrap();
        let sources: [(&str, &dyn ReadAt); 5] = [
            ("a slice", &bytes.as_slice()),
            ("a vector", &bytes),
            ("a file", &file),
            ("a reference", &&file),
            ("a file past the cache", &uncached),
        ];
        for (of, source) in sources {
            let of = format!("{of} of {size} bytes");
            said.take(&of, &read_at::all(source, &bytes));
        }
    }
    said.check();
}

/// Fails if a promise was written and its suite does not call it, so that no implementation is held to it.
#[test]
fn every_promise_of_a_suite_is_run() {
    let files = tree::files().unwrap();
    let suites: Vec<_> = files
        .iter()
        .filter(|file| file.is("rs") && file.path.starts_with("conformance/src/contract/"))
        .collect();
    let mut forgotten = Vec::new();
    let mut count = 0;
    for file in &suites {
        // A file in the folder of a suite is a part of that suite, whose `all` calls its promises, or its own `all`.
        let (folder, module) = file.path.trim_end_matches(".rs").rsplit_once('/').unwrap();
        let whole = format!("{folder}.rs");
        let whole = suites.iter().find(|suite| suite.path == whole);
        let whole = whole.map_or("", |suite| body_of_all(&suite.text));
        let own = body_of_all(&file.text);
        let public = file.text.lines().filter_map(|line| {
            let function = line.strip_prefix("pub ")?;
            let function = function.strip_prefix("async ").unwrap_or(function);
            function.strip_prefix("fn ")?.split(['(', '<']).next()
        });
        for promise in public.filter(|promise| *promise != "all" || !whole.is_empty()) {
            count += 1;
            let is_called = calls(own, &format!("{promise}("))
                || calls(whole, &format!("{module}::{promise}("));
            if !is_called {
                forgotten.push(format!("{}: {promise}", file.path));
            }
        }
    }
    assert!(count > 40, "only {count} promises were found");
    assert_none(&forgotten, "call it in `all`, or make it private");
}

/// Returns the body of the function `all` of a suite; empty if the file has none.
fn body_of_all(text: &str) -> &str {
    let begins = ["\npub fn all(", "\npub async fn all("];
    let all = begins.iter().find_map(|begin| text.split_once(*begin));
    let body = all.and_then(|(_, rest)| rest.split_once("\n}\n"));
    body.map_or("", |(body, _)| body)
}

/// Returns whether a function is called by this name, and not another one whose name ends alike.
fn calls(body: &str, call: &str) -> bool {
    let is_name = |before: char| before.is_alphanumeric() || before == '_' || before == ':';
    let pieces: Vec<&str> = body.split(call).collect();
    let before = pieces.split_last().map(|(_, before)| before);
    before.is_some_and(|before| before.iter().any(|piece| !piece.ends_with(is_name)))
}
