//! httpbin: passwords, cookies, redirects, codings, statuses and exclusions, as a server by other people has them.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::json;

use crate::support::job::crawl;
use crate::support::tools::Tools;

/// Serves httpbin on a free port, and prints the port.
const SERVER: &str = "import sys
from werkzeug.serving import WSGIRequestHandler, make_server
import httpbin
WSGIRequestHandler.protocol_version = 'HTTP/1.1'
server = make_server('127.0.0.1', 0, httpbin.app, threaded=True)
print(server.port, flush=True)
server.serve_forever()";

/// The password. The server has it in the paths of its pages, so that it stands in their URIs.
const PASSWORD: &str = "correct-horse";

/// httpbin, until it is dropped.
struct Httpbin(Child);

impl Httpbin {
    /// Starts httpbin, if this Python has it. Returns the port.
    fn start(tools: &Tools) -> Option<(Self, u16)> {
        let mut child = Command::new(tools.python())
            .args(["-c", SERVER])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        lines.read_line(&mut line).unwrap();
        let server = Self(child);
        let port = line.trim().parse().ok();
        if port.is_none() {
            tools_testing::skipped("httpbin is not installed beside warcio (pip install httpbin)");
        }
        Some((server, port?))
    }
}

impl Drop for Httpbin {
    fn drop(&mut self) {
        self.0.kill().unwrap_or_default();
        self.0.wait().expect("an end");
    }
}

/// Fails if a login does not succeed or its password is recorded, a cookie is not sent back, a redirect is not
/// followed, a content coding is undone, or robots.txt is not obeyed.
#[test]
fn services_of_httpbin_are_captured() {
    let Some(tools) = Tools::find() else { return };
    let Some((_server, port)) = Httpbin::start(&tools) else {
        return;
    };
    let base = format!("http://127.0.0.1:{port}/");
    let directory = tempfile::tempdir().unwrap();
    let order = directory.path().join("order.toml");
    let text = format!(
        "[retry]\nmax_tries = 4\nfirst_delay = '10 ms'\ndelay = '10 ms'\n[http]\naccept_compression = true\n[[credential]]\nhost = '127.0.0.1'\nuser = 'anna'\npassword = '{PASSWORD}'\n"
    );
    std::fs::write(&order, text).unwrap();
    let logins =
        ["basic-auth/anna", "digest-auth/auth/anna"].map(|path| format!("{path}/{PASSWORD}"));
    let paths = [
        &logins[0],
        &logins[1],
        "basic-auth/anna/another",
        "digest-auth/auth/anna/another",
        "redirect/3",
        "cookies/set?flavour=oat",
        "gzip",
        "deflate",
        "stream/20",
        "status/404",
        "status/418",
        "status/204",
        "status/503",
        "deny",
        "cache",
        "delay/1",
        "drip?duration=1&numbytes=10&delay=0",
        "stream-bytes/2000?chunk_size=100&seed=1",
        "response-headers?Set-Cookie=%3B%3Dodd%00",
        "etag/seven",
        "encoding/utf8",
        "image/png",
        "links/5/0",
    ];
    let seeds = paths.map(|path| format!("{base}{path}"));
    let mut words = vec![
        "--delay",
        "0",
        "--max-hops",
        "5",
        "--order",
        order.to_str().unwrap(),
    ];
    words.extend(seeds.iter().map(String::as_str));
    let (job, report) = crawl(&directory.path().join("crawl"), &words);
    assert_eq!(report["status"], "done");
    let judged = tools.judge("services.py", &[&base, "anna", PASSWORD], &job.files());
    let status = |path: &str| judged[path]["status"].as_u64();
    for (path, expected) in [
        ("redirect/3", 302),
        ("relative-redirect/2", 302),
        ("get", 200),
        ("cookies/set?flavour=oat", 302),
        ("status/404", 404),
        ("status/418", 418),
        ("status/204", 204),
        ("status/503", 503),
        ("basic-auth/anna/another", 401),
        ("digest-auth/auth/anna/another", 401),
        ("cache", 200),
        ("delay/1", 200),
        ("drip?duration=1&numbytes=10&delay=0", 200),
        ("stream-bytes/2000?chunk_size=100&seed=1", 200),
        ("response-headers?Set-Cookie=%3B%3Dodd%00", 200),
        ("etag/seven", 200),
        ("encoding/utf8", 200),
        ("image/png", 200),
        ("links/5/4", 200),
        ("robots.txt", 200),
    ] {
        assert_eq!(status(path), Some(expected), "{path}: {judged:#}");
    }
    for login in &logins {
        assert_eq!(
            judged[login]["document"],
            json!({"authenticated": true, "user": "anna"}),
            "{login}"
        );
    }
    assert_eq!(judged["cookies"]["document"]["cookies"]["flavour"], "oat");
    assert_eq!(
        (
            &judged["gzip"]["coding"],
            &judged["gzip"]["document"]["gzipped"]
        ),
        (&"gzip".into(), &true.into())
    );
    assert_eq!(judged["deflate"]["document"]["deflated"], true);
    let line = |path: &str| {
        job.log()
            .into_iter()
            .find(|line| line.uri == format!("{base}{path}"))
    };
    assert_eq!(line("deny").unwrap().status, -9998);
    assert_eq!(status("deny"), None);
    job.check_files();
}
