//! Budgets of a job and of a domain: they hold within one object a connection, and the log says which one ended what.

use std::path::Path;

use crate::interruptions::write_site;
use crate::support::job::{JobFolder, LogLine, crawl};
use crate::support::nginx::Nginx;
use crate::support::tools::nginx;

/// The connections of a crawl.
const CONNECTIONS: usize = 4;

/// A site on two addresses, of which each is a domain of its own.
struct TwoDomains {
    directory: tempfile::TempDir,
    server: Nginx,
}

/// The addresses of the two hosts.
const HOSTS: [&str; 2] = ["127.0.0.1", "127.0.0.2"];

impl TwoDomains {
    fn serve(binary: &Path) -> Self {
        let directory = tempfile::tempdir().unwrap();
        write_site(directory.path());
        let listen = HOSTS.map(|host| format!("listen {host}:{{port}};"));
        let root = directory.path().display();
        let http = format!("server {{ {} root {root}; }}", listen.concat());
        let server = Nginx::start(binary, &http);
        Self { directory, server }
    }

    /// Crawls both under an order, in a folder of that name.
    fn crawl(&self, name: &str, order: &str) -> (JobFolder, serde_json::Value) {
        let file = self.directory.path().join(format!("{name}.toml"));
        std::fs::write(&file, order).unwrap();
        let seeds = HOSTS.map(|host| format!("http://{host}:{}/", self.server.port));
        let connections = CONNECTIONS.to_string();
        let words = [&seeds[0], &seeds[1], "--delay", "0", "--connections"];
        let words = [
            &words[..],
            &[&connections, "--order", file.to_str().unwrap()],
        ]
        .concat();
        crawl(&self.directory.path().join(name), &words)
    }
}

/// Returns the objects of the log, of one host or of all. Heritrix counts as one what came from a host, whatever its
/// status; what is asked for before the URIs of a host is in the log, and in no budget.
fn objects(job: &JobFolder, host: &str) -> Vec<LogLine> {
    let lines = job.log().into_iter();
    let host = format!("http://{host}");
    lines
        .filter(|line| line.status > 0 && line.uri.starts_with(&host))
        .filter(|line| !line.uri.ends_with("/robots.txt"))
        .collect()
}

/// Returns the bytes of objects, without the last ones that were on their way when the limit was reached.
fn bytes_before_the_last(objects: &[LogLine]) -> u64 {
    let before = objects.len().saturating_sub(CONNECTIONS);
    objects[..before].iter().map(LogLine::size).sum()
}

/// Fails if a job continues behind its limits by more than one object a connection, or ends before them.
#[test]
fn job_limits_hold_within_open_connections() {
    let Some(nginx) = nginx() else { return };
    let site = TwoDomains::serve(&nginx);
    // Both domains have connections.
    let open = CONNECTIONS * HOSTS.len();
    let (job, report) = site.crawl("objects", "[limits]\nmax_objects = 50\n");
    let count = objects(&job, "").len();
    assert!((50..=50 + open).contains(&count), "{count}");
    assert_eq!(
        report["stop_reason"],
        "Finished - Maximum number of documents limit hit"
    );
    // What is in no log was not asked for either, but for the two robots.txt.
    let asked = site.server.requests().len();
    assert!(asked <= 50 + open + HOSTS.len(), "{asked} requests");

    let (job, report) = site.crawl("bytes", "[limits]\nmax_bytes = '100 kB'\n");
    let all = objects(&job, "");
    let total: u64 = all.iter().map(LogLine::size).sum();
    let before: u64 = all[..all.len() - open].iter().map(LogLine::size).sum();
    assert!(before <= 100_000 && total >= 100_000, "{before} of {total}");
    assert_eq!(
        report["stop_reason"],
        "Finished - Maximum amount of data limit hit"
    );
}

/// Fails if a domain gets more than its quota by more than one object a connection, less than it, or no word why.
#[test]
fn domain_quotas_hold_within_open_connections() {
    let Some(nginx) = nginx() else { return };
    let site = TwoDomains::serve(&nginx);
    let cases = [
        (
            "objects",
            "max_objects = 40",
            "Q:groupMaxFetchSuccesses",
            "object limit",
        ),
        (
            "bytes",
            "max_bytes = '80 kB'",
            "Q:groupMaxAllKb",
            "size limit",
        ),
    ];
    for (name, limit, annotation, reason) in cases {
        let order = format!("[queues]\n{limit}\n");
        let (job, report) = site.crawl(name, &order);
        for host in HOSTS {
            let found = objects(&job, host);
            if name == "objects" {
                assert!(
                    (40..=40 + CONNECTIONS).contains(&found.len()),
                    "{}",
                    found.len()
                );
            } else {
                let total: u64 = found.iter().map(LogLine::size).sum();
                let before = bytes_before_the_last(&found);
                assert!(before <= 80_000 && total >= 80_000, "{before} of {total}");
            }
            let prefix = format!("http://{host}");
            let told = job.log().into_iter().any(|line| {
                line.status == -5003
                    && line.uri.starts_with(&prefix)
                    && line.annotations.iter().any(|text| text == annotation)
            });
            assert!(told, "{host}: no line with {annotation}");
        }
        for domain in report["domains"].as_array().unwrap() {
            assert_eq!(domain["stop_reason"], reason, "{report}");
        }
        assert_eq!(report["domains"].as_array().unwrap().len(), HOSTS.len());
        job.check_files();
    }
}
