//! Certificates that are made for the hosts that clients name, and a client that we have not written.

use std::error::Error;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use archive_rpc::browser::{HostPem, MakeCertificate, UnknownHosts};
use archive_rpc::{BrowserAcceptor, BrowserOptions};
use parking_lot::Mutex;
use tokio::task::spawn_blocking;

use super::{Folder, Site, answer, shake};
use crate::environment::now;

/// Makes certificates of the lab for all hosts but those that begin with `bad`.
struct Maker {
    folder: Arc<Folder>,
    count: AtomicUsize,
    asked: Mutex<Vec<String>>,
}

impl MakeCertificate for Maker {
    fn make(&self, host: &str) -> Result<HostPem, Box<dyn Error + Send + Sync>> {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.asked.lock().push(host.to_owned());
        let named = match host {
            "bad.example" => return Err("nobody knows it".into()),
            "other.example" => "another.example",
            host => host,
        };
        let issued = self.folder.issue(&[named], 2000, 2200);
        Ok(match host {
            "broken.example" => HostPem {
                certificate: String::new(),
                ..issued
            },
            _ => issued,
        })
    }
}

/// Fails if a proxy shows a certificate of another host, makes one for each visit, or shows what it could not make.
#[tokio::test]
async fn certificates_are_made_for_whatever_host() {
    let folder = Arc::new(Folder::new());
    let maker = Arc::new(Maker {
        folder: Arc::clone(&folder),
        count: AtomicUsize::new(0),
        asked: Mutex::default(),
    });
    let made: Arc<dyn MakeCertificate> = Arc::clone(&maker) as _;
    let acceptor = BrowserAcceptor::making_certificates(made, BrowserOptions::default());
    let acceptor = Arc::new(acceptor.expect("acceptor"));
    let mut site = Site::start(Arc::clone(&acceptor)).await;
    let browser = folder.browser();
    for host in ["a.example", "B.example", "a.example", "b.example"] {
        site.visit(&browser, host).await.expect(host);
        site.outcome().await.expect(host);
    }
    assert_eq!(*maker.asked.lock(), ["a.example", "b.example"]);
    for (host, why) in [
        ("bad.example", "nobody knows it"),
        ("other.example", "not valid for name"),
        ("broken.example", "nothing of the kind"),
    ] {
        site.visit(&browser, host).await.expect_err(host);
        let refused = site.outcome().await.expect_err(host).to_string();
        assert!(refused.contains(why) && refused.contains(host), "{refused}");
    }
    acceptor.reload_certificates(now()).expect("forgotten");
    site.visit(&browser, "a.example").await.expect("again");
    assert_eq!(maker.count.load(Ordering::Relaxed), 6, "made anew");
}

/// Fails if a proxy cannot encrypt what is no TCP, or an address that the client has named in `CONNECT` alone.
#[tokio::test]
async fn address_that_was_named_before_counts() {
    let folder = Arc::new(Folder::new());
    let maker = Maker {
        folder: Arc::clone(&folder),
        count: AtomicUsize::new(0),
        asked: Mutex::default(),
    };
    let acceptor = BrowserAcceptor::making_certificates(Arc::new(maker), BrowserOptions::default());
    let acceptor = acceptor.expect("acceptor");
    let browser = folder.browser();
    for (meant, host, is_shown) in [
        ("127.0.0.1", "127.0.0.1", true),
        ("::1", "::1", true),
        ("127.0.0.1", "127.0.0.2", false),
        ("a.example", "b.example", true),
    ] {
        let (client, server) = tokio::io::duplex(4096);
        let serving = async {
            if let Ok(stream) = acceptor.accept_for(server, meant).await {
                answer(stream).await;
            }
        };
        let (visit, ()) = tokio::join!(shake(client, &browser, host), serving);
        assert_eq!(visit.is_ok(), is_shown, "{meant} {host}");
    }
}

/// Fails if a client that we have not written does not get through.
#[tokio::test]
async fn curl_gets_through() {
    let curl = |arguments: &[&str]| {
        let mut curl = Command::new("curl");
        curl.args(arguments).stdin(Stdio::null());
        let running = spawn_blocking(move || curl.output());
        async move { running.await.expect("no panic") }
    };
    if curl(&["--version"]).await.is_err() {
        tools_testing::skipped("there is no curl");
        return;
    }
    let folder = Folder::new();
    let acceptor = folder.acceptor(UnknownHosts::Refused, BrowserOptions::default());
    let site = Site::start(Arc::new(acceptor)).await;
    let authority = folder.write("ca.pem", folder.world.authority.certificate());
    let authority = authority.to_str().expect("text");
    for (host, is_known) in [
        ("a.example", true),
        ("x.b.example", true),
        ("c.example", false),
    ] {
        let port = site.address.port();
        let resolve = format!("{host}:{port}:127.0.0.1");
        let url = format!("https://{host}:{port}/");
        let asked = [
            "--silent",
            "--show-error",
            "--noproxy",
            "*",
            "--max-time",
            "20",
            "--cacert",
            authority,
            "--resolve",
            &resolve,
            &url,
        ];
        let said = curl(&asked).await.expect("curl");
        assert_eq!(said.status.success(), is_known, "{host}: {said:?}");
        assert_eq!(said.stdout == b"hello\n", is_known, "{host}: {said:?}");
    }
}
