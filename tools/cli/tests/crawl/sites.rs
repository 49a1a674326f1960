//! Real sites by nginx: every file that links reach is captured, byte for byte, and nothing else is called a page.

use std::path::Path;

use crate::support::job::crawl;
use crate::support::nginx::Nginx;
use crate::support::tools::Tools;

/// Crawls a site of Debian's documentation, whose pages are at least `least`, and has it compared with its files.
fn site_is_captured_whole(folder: &str, package: &str, least: u64) {
    let Some(tools) = Tools::find() else { return };
    let folder = Path::new(folder);
    if !folder.is_dir() {
        tools_testing::skipped(&format!("{package} is not installed"));
        return;
    }
    let site = Nginx::serve(&tools.nginx, folder);
    let directory = tempfile::tempdir().unwrap();
    let base = site.base();
    let words = [&base, "--delay", "0", "--connections", "4"];
    let (job, report) = crawl(directory.path(), &words);
    job.check_files();
    let words = [folder.to_str().unwrap(), &base];
    let judged = tools.judge("site.py", &words, &job.archive_files());
    let reached = judged["reached"].as_u64().unwrap();
    assert!(reached >= least, "{judged}");
    assert_eq!(report["status"], "done");
    // A server that is asked for a URI twice has captures that the archive has not.
    let uris = job.log().iter().filter(|line| line.status > 0).count();
    let requests = site.requests_when(|requests| requests.len() >= uris).len();
    assert_eq!(requests, uris);
}

/// Fails if a page of the first site that links reach is not captured, or a capture differs from its file.
#[test]
fn postgresql_site_is_captured_whole() {
    let folder = "/usr/share/doc/postgresql-doc-15/html";
    site_is_captured_whole(folder, "postgresql-doc-15", 1000);
}

/// Fails if a page of the second site that links reach is not captured, or a capture differs from its file.
#[test]
fn python_site_is_captured_whole() {
    site_is_captured_whole("/usr/share/doc/python3-doc/html", "python3-doc", 500);
}
