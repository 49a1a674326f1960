//! A server that speaks HTTP/2 alone, behind TLS with a certificate of nobody: nghttpd.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use tools_testing::{PATIENCE, eventually_blocking};

use crate::support::job::{crawl, run};
use crate::support::tools::{Tools, free_port, program};

/// The pages of the site.
const PAGES: usize = 30;

/// nghttpd on a free port of loopback.
struct Nghttpd {
    child: Child,
    port: u16,
}

impl Nghttpd {
    /// Serves the files of a folder. Key, certificate and log lie in another one.
    fn serve(binary: &Path, root: &Path, place: &Path) -> Self {
        // The server ends at once if somebody took the port.
        for _ in 0..20 {
            if let Some(server) = Self::serve_on(binary, root, place, free_port()) {
                return server;
            }
        }
        panic!("nghttpd found no port");
    }

    fn serve_on(binary: &Path, root: &Path, place: &Path, port: u16) -> Option<Self> {
        let log = std::fs::File::create(place.join("log")).unwrap();
        std::fs::write(place.join("types"), "text/html html\n").unwrap();
        let child = Command::new(binary)
            .args(["--verbose", "--address", "127.0.0.1", "--htdocs"])
            .arg(root)
            .arg("--mime-types-file")
            .arg(place.join("types"))
            .arg(port.to_string())
            .args([place.join("key.pem"), place.join("certificate.pem")])
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut server = Self { child, port };
        let listens = eventually_blocking("nghttpd listens or ends", PATIENCE, || {
            let said = std::fs::read_to_string(place.join("log")).unwrap();
            if said.contains("listen 127.0.0.1") {
                return Ok(true);
            }
            match server.child.try_wait().unwrap() {
                Some(_) => Ok(false),
                None => Err(said),
            }
        });
        listens.then_some(server)
    }
}

impl Drop for Nghttpd {
    fn drop(&mut self) {
        self.child.kill().unwrap_or_default();
        self.child.wait().expect("an end");
    }
}

/// Fails if a server that refuses HTTP/1.1 is not crawled, its captures pass for the bytes of the wire, or its
/// certificate is not noted.
#[test]
fn server_of_http2_alone_is_captured() {
    let Some(tools) = Tools::find() else { return };
    let (Some(nghttpd), Some(openssl)) = (program("nghttpd"), program("openssl")) else {
        tools_testing::skipped("nghttpd or openssl is not installed (nghttp2-server)");
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("root");
    std::fs::create_dir(&root).unwrap();
    for page in 0..PAGES {
        let next = [page + 1, page * 2].map(|next| next % PAGES);
        let html = format!(
            "<a href='/{}.html'>next</a> <a href='/{}.html'>further</a>{}",
            next[0],
            next[1],
            "<p>text</p>".repeat(page * 500)
        );
        std::fs::write(root.join(format!("{page}.html")), html).unwrap();
    }
    std::fs::write(root.join("index.html"), "<a href='/0.html'>in</a>").unwrap();
    let certificate = directory.path().join("certificate.pem");
    let words = [
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=localhost",
        "-keyout",
    ];
    let mut command = Command::new(openssl);
    command.args(words).arg(directory.path().join("key.pem"));
    run(command.arg("-out").arg(&certificate)).expect(0);

    let server = Nghttpd::serve(&nghttpd, &root, directory.path());
    let base = format!("https://127.0.0.1:{}/", server.port);
    let (job, report) = crawl(&directory.path().join("crawl"), &[&base, "--delay", "0"]);
    assert_eq!(report["status"], "done");
    let fetched = job.log().into_iter().filter(|line| line.status > 0);
    let fetched: Vec<_> = fetched.collect();
    assert_eq!(
        fetched.len(),
        PAGES + 3,
        "the pages, the home page, robots.txt and the icon"
    );
    for line in &fetched {
        let has = |start: &str| line.annotations.iter().any(|text| text.starts_with(start));
        assert!(has("h2") && has("tls:"), "{line:?}");
    }
    let files = job.archive_files();
    let judged = tools.judge("http2.py", &[certificate.to_str().unwrap()], &files);
    assert_eq!(judged["captured"], fetched.len());
    tools.judge("site.py", &[root.to_str().unwrap(), &base], &files);
    job.check_files();
    assert!(tools.warcio_failures(&job.files()).is_empty());
}
