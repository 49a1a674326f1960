//! Browsers at the door without client certificates: which certificate they are shown, and who is refused.

mod made;

use std::fs::{self, Permissions};
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use archive_rpc::browser::{HostPem, SiteFiles, UnknownHosts};
use archive_rpc::{BrowserAcceptor, BrowserError, BrowserOptions, SiteError};
use rcgen::{CertificateParams, Issuer, KeyPair, date_time_ymd};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tools_testing::in_time;

use crate::environment::{DoorEnvironment, now};

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nhello\n";

/// A function that tells whether an error is the expected one.
type ExpectedIdentity = fn(&SiteError) -> bool;

/// The time that the impatient doors of these tests wait.
const SHORT: Duration = Duration::from_millis(200);

/// Certificates of sites in a folder.
struct Folder {
    world: DoorEnvironment,
    directory: tempfile::TempDir,
}

impl Folder {
    fn new() -> Self {
        Self {
            world: DoorEnvironment::new("lab"),
            directory: tempfile::tempdir().expect("directory"),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Issues a certificate as other authorities do: our own makes no wildcards.
    fn issue(&self, hosts: &[&str], from: i32, to: i32) -> HostPem {
        let authority = &self.world.authority;
        let signer = KeyPair::from_pem(&authority.key()).expect("a key");
        let by = Issuer::from_ca_cert_pem(authority.certificate(), signer);
        let hosts: Vec<_> = hosts.iter().map(|host| (*host).to_owned()).collect();
        let mut params = CertificateParams::new(hosts).expect("hosts");
        params.not_before = date_time_ymd(from, 1, 1);
        params.not_after = date_time_ymd(to, 1, 1);
        let key = KeyPair::generate().expect("a key");
        let issued = params.signed_by(&key, &by.expect("an issuer"));
        HostPem {
            certificate: issued.expect("issued").pem(),
            key: key.serialize_pem(),
        }
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "a certificate of a test need not be durable"
    )]
    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, text).expect("written");
        // As a private key is.
        fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("closed");
        path
    }

    fn site_of(&self, name: &str, issued: &HostPem) -> SiteFiles {
        SiteFiles {
            certificate: self.write(&format!("{name}.pem"), &issued.certificate),
            key: self.write(&format!("{name}-key.pem"), &issued.key),
        }
    }

    fn site(&self, name: &str, hosts: &[&str]) -> SiteFiles {
        self.site_of(name, &self.issue(hosts, 2000, 2200))
    }

    fn acceptor(&self, unknown: UnknownHosts, options: BrowserOptions) -> BrowserAcceptor {
        let sites = vec![
            self.site("a", &["a.example", "127.0.0.1"]),
            self.site("b", &["b.example", "*.b.example"]),
        ];
        BrowserAcceptor::for_sites(sites, unknown, options, now()).expect("acceptor")
    }

    /// Returns a browser that trusts the authority.
    fn browser(&self) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        let authority = self.world.authority.certificate();
        let authority = CertificateDer::from_pem_slice(authority.as_bytes());
        roots.add(authority.expect("PEM")).expect("a root");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots)
            .with_no_client_auth()
    }
}

/// The outcome of a stream: the host that was named and whether it is HTTP/2, or why it was not accepted.
type Outcome = Result<(Option<String>, bool), BrowserError>;

/// A listener with a door, which answers every request alike.
struct Site {
    address: SocketAddr,
    outcomes: UnboundedReceiver<Outcome>,
    _serving: JoinSet<()>,
}

impl Site {
    async fn start(acceptor: Arc<BrowserAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bind");
        let address = listener.local_addr().expect("address");
        let (tell, outcomes) = mpsc::unbounded_channel();
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let mut visits = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.expect("accepted");
                let acceptor = Arc::clone(&acceptor);
                let tell = tell.clone();
                visits.spawn(async move {
                    match acceptor.accept_browser(stream).await {
                        Ok(stream) => {
                            let host = stream.host().map(str::to_owned);
                            _ = tell.send(Ok((host, stream.is_http2())));
                            answer(stream).await;
                        }
                        Err(error) => _ = tell.send(Err(error)),
                    }
                });
            }
        });
        Self {
            address,
            outcomes,
            _serving: serving,
        }
    }

    async fn visit(&self, browser: &ClientConfig, host: &str) -> io::Result<TlsStream<TcpStream>> {
        let stream = TcpStream::connect(self.address).await?;
        shake(stream, browser, host).await
    }

    async fn outcome(&mut self) -> Outcome {
        in_time(self.outcomes.recv()).await.expect("a visit")
    }
}

async fn shake<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    browser: &ClientConfig,
    host: &str,
) -> io::Result<TlsStream<S>> {
    let name = ServerName::try_from(host.to_owned()).expect("a host");
    let connector = TlsConnector::from(Arc::new(browser.clone()));
    let mut stream = in_time(connector.connect(name, stream)).await?;
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").await?;
    let mut said = Vec::new();
    in_time(stream.read_to_end(&mut said)).await?;
    assert_eq!(said, ANSWER);
    Ok(stream)
}

/// Reads a request and answers it; the client may have gone.
async fn answer(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    let mut said = Vec::new();
    let mut part = [0; 1024];
    while !said.ends_with(b"\r\n\r\n") {
        match stream.read(&mut part).await {
            Ok(count) if count > 0 => said.extend(part.iter().take(count)),
            _ => return,
        }
    }
    if stream.write_all(ANSWER).await.is_ok() {
        _ = stream.shutdown().await;
    }
}

/// Fails if a browser is shown the certificate of another host, or asked for one of its own.
#[tokio::test]
async fn host_chooses_the_certificate() {
    let folder = Folder::new();
    let acceptor = folder.acceptor(UnknownHosts::Refused, BrowserOptions::default());
    let mut site = Site::start(Arc::new(acceptor)).await;
    let browser = folder.browser();
    for host in ["a.example", "b.example", "www.b.example", "WWW.B.EXAMPLE"] {
        // The browser checks itself whether the certificate is for that host.
        site.visit(&browser, host).await.expect(host);
        let (named, is_http2) = site.outcome().await.expect(host);
        let named = named.map(|named| named.to_ascii_lowercase());
        assert_eq!(named, Some(host.to_ascii_lowercase()));
        assert!(!is_http2);
    }
}

/// Fails if a host without a certificate is shown one of another host where that is not wanted, or refused where it is.
#[tokio::test]
async fn unknown_host_is_refused_or_shown_the_first() {
    let folder = Folder::new();
    let browser = folder.browser();
    let mut silent = browser.clone();
    silent.enable_sni = false;
    let acceptor = folder.acceptor(UnknownHosts::Refused, BrowserOptions::default());
    let mut site = Site::start(Arc::new(acceptor)).await;
    for host in ["c.example", "x.a.example", "x.y.b.example"] {
        site.visit(&browser, host).await.expect_err(host);
        let refused = site.outcome().await.expect_err(host);
        assert!(
            matches!(&refused, BrowserError::UnknownHost(named) if named == host),
            "{refused}"
        );
    }
    site.visit(&silent, "a.example").await.expect_err("no host");
    let refused = site.outcome().await.expect_err("no host");
    assert!(matches!(refused, BrowserError::NoHost), "{refused}");

    let acceptor = folder.acceptor(UnknownHosts::First, BrowserOptions::default());
    let mut site = Site::start(Arc::new(acceptor)).await;
    site.visit(&silent, "a.example").await.expect("the first");
    site.outcome().await.expect("the first");
    // Browsers name no addresses.
    site.visit(&browser, "127.0.0.1").await.expect("the first");
    site.outcome().await.expect("the first");
    let error = site.visit(&browser, "c.example").await.expect_err("a's");
    assert!(error.to_string().contains("not valid for name"), "{error}");
    site.outcome().await.expect_err("the browser broke off");
}

/// Fails if a protocol is agreed on that the other end does not speak.
#[tokio::test]
async fn protocol_is_one_of_both_ends() {
    let folder = Folder::new();
    for (http2, offered, expected) in [
        (false, vec![], Some(false)),
        (false, vec!["http/1.1"], Some(false)),
        (false, vec!["h2", "http/1.1"], Some(false)),
        (false, vec!["h2"], None),
        (true, vec![], Some(false)),
        (true, vec!["http/1.1"], Some(false)),
        (true, vec!["http/1.1", "h2"], Some(true)),
    ] {
        let options = BrowserOptions {
            http2,
            ..BrowserOptions::default()
        };
        let acceptor = folder.acceptor(UnknownHosts::Refused, options);
        let mut site = Site::start(Arc::new(acceptor)).await;
        let mut browser = folder.browser();
        browser.alpn_protocols = offered
            .iter()
            .map(|name| name.as_bytes().to_vec())
            .collect();
        let visit = site.visit(&browser, "a.example").await;
        assert_eq!(visit.is_ok(), expected.is_some(), "{offered:?}");
        let agreed = site.outcome().await.ok().map(|(_, is_http2)| is_http2);
        assert_eq!(agreed, expected, "{http2} {offered:?}");
    }
}

/// Fails if a client that says nothing, or no TLS, is waited for, or keeps others out.
#[tokio::test]
async fn silent_and_noisy_clients_are_refused() {
    let folder = Folder::new();
    let options = BrowserOptions {
        handshake: SHORT,
        ..BrowserOptions::default()
    };
    let acceptor = folder.acceptor(UnknownHosts::Refused, options);
    let mut site = Site::start(Arc::new(acceptor)).await;
    let mut silent = TcpStream::connect(site.address).await.expect("tcp");
    let closed = in_time(silent.read(&mut [0; 1])).await;
    assert!(matches!(closed, Ok(0) | Err(_)), "{closed:?}");
    let late = site.outcome().await.expect_err("silent");
    assert!(matches!(late, BrowserError::TimedOut(SHORT)), "{late}");
    let huge_record = [&[0x16, 3, 1, 0xff, 0xff][..], &vec![0; 70_000]].concat();
    let half_hello = [0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3];
    for noise in [
        b"GET / HTTP/1.1\r\n\r\n".as_slice(),
        &[0; 300],
        &[0xff; 300],
        &huge_record,
        &half_hello,
    ] {
        let mut client = TcpStream::connect(site.address).await.expect("tcp");
        // The door may close before it has read everything.
        _ = client.write_all(noise).await;
        drop(client);
        site.outcome().await.expect_err("noise");
    }
    let patient = folder.acceptor(UnknownHosts::Refused, BrowserOptions::default());
    let site = Site::start(Arc::new(patient)).await;
    let visit = site.visit(&folder.browser(), "a.example").await;
    visit.expect("the door is open");
}

/// Fails if a certificate that was exchanged on disk is not shown, or if what does not fit is taken up.
#[tokio::test]
async fn sites_are_exchanged_while_browsers_come() {
    let folder = Folder::new();
    let site = folder.site("a", &["a.example"]);
    let open = |sites| {
        let options = BrowserOptions::default();
        BrowserAcceptor::for_sites(sites, UnknownHosts::Refused, options, now())
    };
    let acceptor = Arc::new(open(vec![site.clone()]).expect("acceptor"));
    let mut served = Site::start(Arc::clone(&acceptor)).await;
    let browser = folder.browser();
    folder.site("a", &["a.example", "new.example"]);
    served
        .visit(&browser, "new.example")
        .await
        .expect_err("old");
    served.outcome().await.expect_err("old");
    acceptor.reload_certificates(now()).expect("reloaded");
    served.visit(&browser, "new.example").await.expect("new");
    served.outcome().await.expect("new");

    let good = folder.issue(&["a.example", "new.example"], 2000, 2200);
    let other = folder.issue(&["a.example"], 2000, 2200);
    let with = |certificate: &str, key: &str| HostPem {
        certificate: certificate.to_owned(),
        key: key.to_owned(),
    };
    let cut = |text: &str| text[..text.len() - 30].to_owned();
    let is_pem: ExpectedIdentity = |error| matches!(error, SiteError::Pem { .. });
    let cases: [(&str, HostPem, ExpectedIdentity); 7] = [
        (
            "another's key",
            with(&good.certificate, &other.key),
            |error| matches!(error, SiteError::Key { .. }),
        ),
        (
            "a cut certificate",
            with(&cut(&good.certificate), &good.key),
            is_pem,
        ),
        (
            "a cut key",
            with(&good.certificate, &cut(&good.key)),
            is_pem,
        ),
        ("no certificate", with("", &good.key), is_pem),
        (
            "a key for a certificate",
            with(&good.key, &good.key),
            is_pem,
        ),
        (
            "expired",
            folder.issue(&["a.example"], 2000, 2001),
            |error| matches!(error, SiteError::Term { .. }),
        ),
        ("not of a host", folder.issue(&[], 2000, 2200), |error| {
            matches!(error, SiteError::NoHost { .. })
        }),
    ];
    for (what, issued, expected) in cases {
        folder.site_of("a", &issued);
        let error = acceptor.reload_certificates(now()).expect_err(what);
        assert!(expected(&error), "{what}: {error}");
        assert!(error.to_string().contains("a.pem") || what.contains("key"));
        assert!(
            !format!("{error} {error:?}").contains("PRIVATE KEY"),
            "{what}"
        );
        served.visit(&browser, "new.example").await.expect(what);
        served.outcome().await.expect(what);
    }
    fs::set_permissions(&site.key, Permissions::from_mode(0o644)).expect("opened");
    let error = acceptor
        .reload_certificates(now())
        .expect_err("exposed")
        .to_string();
    assert!(error.contains("a-key.pem: its mode is 0644"), "{error}");
    fs::remove_file(&site.key).expect("removed");
    let error = acceptor.reload_certificates(now()).expect_err("no key");
    assert!(matches!(error, SiteError::Read { .. }), "{error}");
    let huge = SiteFiles {
        certificate: "/dev/zero".into(),
        ..site
    };
    let error = open(vec![huge]).expect_err("huge");
    assert!(matches!(error, SiteError::Read { .. }), "{error}");
    assert!(matches!(open(vec![]), Err(SiteError::Nothing)));
    let twice = vec![
        folder.site("one", &["x.example", "a.example"]),
        folder.site("two", &["a.example"]),
    ];
    let error = open(twice).expect_err("two for one").to_string();
    assert!(
        error.contains("one.pem") && error.contains("two.pem"),
        "{error}"
    );
    assert!(error.contains("a.example"), "{error}");
}
