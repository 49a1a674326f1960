//! Hosts with TLS that speak HTTP/2 alone, HTTP/1.1 alone, or both.

use std::process::{Child, Command, Stdio};

use h2::server::SendResponse;
use rcgen::{CertificateParams, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::LazyConfigAcceptor;

use super::*;

const PAGE: &str = "<a href=/a>a</a>\n";

/// The protocols of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ServerProtocol {
    /// The host selects one of these protocols, or refuses the connection.
    Selects(&'static [&'static str]),
    /// The host selects HTTP/2, or else nothing, and speaks HTTP/2 whatever was agreed on.
    InsistsOnHttp2,
    /// The host selects HTTP/2, or else nothing, and closes the connection then.
    ClosesOtherwise,
    /// The host selects no protocol, and knows HTTP/1.1 only.
    Old,
}

/// Returns a certificate for this machine by itself, and its key.
fn identity() -> (rcgen::Certificate, KeyPair) {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    (params.self_signed(&key).unwrap(), key)
}

fn server(protocols: &[&str]) -> Arc<ServerConfig> {
    let (certificate, key) = identity();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    let protocols = protocols.iter();
    config.alpn_protocols = protocols.map(|name| name.as_bytes().to_vec()).collect();
    Arc::new(config)
}

/// Serves a page and a leaf; returns its base URI and the number of its connections.
pub(super) async fn host(speech: ServerProtocol) -> (Url, Arc<Mutex<usize>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("https://{}/", listener.local_addr().unwrap());
    let connections = Arc::<Mutex<usize>>::default();
    let counted = Arc::clone(&connections);
    let (selecting, silent) = match speech {
        ServerProtocol::Selects(protocols) => (server(protocols), None),
        ServerProtocol::InsistsOnHttp2 | ServerProtocol::ClosesOtherwise => {
            (server(&["h2"]), Some(server(&[])))
        }
        ServerProtocol::Old => (server(&[]), None),
    };
    tokio::task::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            *counted.lock() += 1;
            let selecting = Arc::clone(&selecting);
            let silent = silent.clone();
            tokio::task::spawn(async move {
                let begun = LazyConfigAcceptor::new(rustls::server::Acceptor::default(), stream);
                let begun = begun.await.unwrap();
                let offered = begun.client_hello().alpn().into_iter().flatten();
                let knows = offered.into_iter().any(|name| name == b"h2");
                let config = silent.filter(|_| !knows).unwrap_or(selecting);
                // The other end may refuse what is offered here.
                let Ok(stream) = begun.into_stream(config).await else {
                    return;
                };
                let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
                match speech {
                    ServerProtocol::ClosesOtherwise if !is_http2 => {}
                    ServerProtocol::Selects(_) if is_http2 => speak_frames(stream).await,
                    ServerProtocol::InsistsOnHttp2 | ServerProtocol::ClosesOtherwise => {
                        speak_frames(stream).await;
                    }
                    ServerProtocol::Selects(_) | ServerProtocol::Old => speak_text(stream).await,
                }
            });
        }
    });
    (Url::parse(&base).unwrap(), connections)
}

fn answer_to(path: &str) -> Option<&'static str> {
    match path {
        "/" => Some(PAGE),
        "/a" => Some("leaf\n"),
        _ => None,
    }
}

/// Returns the first argument of a method, empty: the types of the crate `http` have no names here.
fn first_argument<S, A: Default, B, R>(_: fn(&mut S, A, B) -> R) -> A {
    A::default()
}

async fn speak_frames(stream: impl AsyncRead + AsyncWrite + Unpin) {
    // A client that speaks another protocol is sent away with frames that it cannot read.
    let Ok(mut connection) = h2::server::handshake(stream).await else {
        return;
    };
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        let mut head = first_argument(SendResponse::<bytes::Bytes>::send_response);
        let body = answer_to(request.uri().path());
        *head.status_mut() = if body.is_some() { 200 } else { 404 }.try_into().unwrap();
        let fields = [(
            "content-type".parse().unwrap(),
            "text/html".parse().unwrap(),
        )];
        *head.headers_mut() = fields.into_iter().collect();
        let mut stream = respond.send_response(head, false).unwrap();
        stream
            .send_data(body.unwrap_or_default().into(), true)
            .unwrap();
    }
}

async fn speak_text(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    loop {
        let Some(head) = read_head(&mut stream).await else {
            return;
        };
        let body = answer_to(path_of(&head));
        let gone = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned();
        let response = body.map_or(gone, page);
        stream.write_all(response.as_bytes()).await.unwrap();
        stream.flush().await.unwrap();
    }
}

/// Returns a field of each record of one kind, and the blocks, by URI; all files are valid.
fn fields(
    directory: &Path,
    kind: WarcType,
    name: &str,
) -> BTreeMap<String, (Option<String>, String)> {
    recorded(directory, kind);
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(directory.join("warcs")).unwrap() {
        let bytes = fs::read(entry.unwrap().path()).unwrap();
        let mut reader = WarcReader::new(bytes.as_slice());
        while let Some(mut record) = reader.next_record().unwrap() {
            if record.kind() == kind {
                let text = |name: &str| {
                    let value = record.header().get(name)?;
                    Some(String::from_utf8(value.to_vec()).unwrap())
                };
                let uri = text("WARC-Target-URI").unwrap();
                let field = text(name);
                let mut block = String::new();
                record.read_to_string(&mut block).unwrap();
                found.insert(uri, (field, block));
            }
        }
    }
    found
}

/// Fails if a host that speaks only HTTP/2 is not harvested, one that speaks HTTP/1.1 is harvested otherwise unless the
/// order says so, or records by HTTP/2 do not say so.
#[tokio::test]
async fn http2_is_spoken_where_needed_or_ordered() {
    use ServerProtocol as S;
    let both: &[&str] = &["h2", "http/1.1"];
    for (speech, http2, expected, connections) in [
        (S::Selects(&["h2"]), "when-needed", Some(true), 2),
        (S::InsistsOnHttp2, "when-needed", Some(true), 2),
        (S::ClosesOtherwise, "when-needed", Some(true), 2),
        (S::Selects(both), "when-needed", Some(false), 1),
        (S::Old, "when-needed", Some(false), 1),
        (S::Selects(both), "always", Some(true), 1),
        (S::Selects(&["http/1.1"]), "always", Some(false), 1),
        (S::Old, "always", Some(false), 1),
        (S::Selects(both), "never", Some(false), 1),
        (S::Selects(&["h2"]), "never", None, 2),
    ] {
        let (base, made) = host(speech).await;
        let directory = tempfile::tempdir().unwrap();
        let order =
            format!("http.http2 = \"{http2}\"\nretry.max_tries = 1\nrobots.policy = \"ignore\"");
        let seeds = std::slice::from_ref(&base);
        crawl(settings(directory.path(), seeds, &order)).await;
        let case = format!("{speech:?} {http2}");
        assert_eq!(*made.lock(), connections, "{case}");
        let lines = log(directory.path());
        let Some(is_http2) = expected else {
            let last = lines.last().unwrap();
            assert_eq!(
                (last.status, last.annotations.as_slice()),
                (-9, &["err=Tls".to_owned()][..])
            );
            continue;
        };
        assert_eq!(statuses(directory.path(), &base).len(), 3, "{case}");
        for line in lines {
            assert_eq!(
                line.annotations.contains(&"h2".to_owned()),
                is_http2,
                "{case}"
            );
            assert!(
                line.annotations.contains(&"tls:selfSigned".to_owned()),
                "{case}"
            );
        }
        let protocol = is_http2.then(|| "h2".to_owned());
        for kind in [WarcType::Request, WarcType::Response, WarcType::Metadata] {
            for (field, _) in fields(directory.path(), kind, "WARC-Protocol").values() {
                assert_eq!(*field, protocol, "{case} {kind:?}");
            }
        }
        let metadata = fields(directory.path(), WarcType::Metadata, "WARC-Protocol");
        let (_, lines) = &metadata[base.as_str()];
        for line in [
            "tlsVersion: TLSv1_3\r\n",
            "tlsCipher: TLS13_",
            "tlsCertificateSha256: ",
            "tlsCertificateVerdict: tls:selfSigned\r\n",
        ] {
            assert!(lines.contains(line), "{case}: {lines}");
        }
        let responses = fields(directory.path(), WarcType::Response, "WARC-Protocol");
        let (_, block) = &responses[base.as_str()];
        let text = format!("HTTP/1.1 200 \r\ncontent-type: text/html\r\n\r\n{PAGE}");
        assert_eq!(*block == text, is_http2, "{case}: {block}");
        let requests = fields(directory.path(), WarcType::Request, "WARC-Protocol");
        let (_, block) = &requests[base.as_str()];
        let host = base
            .as_str()
            .trim_start_matches("https://")
            .trim_end_matches('/');
        assert!(
            block.starts_with(&format!("GET / HTTP/1.1\r\nHost: {host}\r\n")),
            "{block}"
        );
    }
}

/// `nghttpd`, which is ended with the test.
struct Nghttpd(Child);

impl Drop for Nghttpd {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

/// Fails if a server of others that speaks HTTP/2 alone is not harvested as it is set by default.
#[tokio::test]
async fn nghttpd_is_harvested() {
    let directory = tempfile::tempdir().unwrap();
    let (certificate, key) = identity();
    let site = directory.path().join("site");
    fs::create_dir(&site).unwrap();
    let large = "<p>many words\n".repeat(200_000);
    for (name, text) in [
        (
            "site/index.html",
            "<a href=large.html>l</a> <a href=none>n</a>",
        ),
        ("site/large.html", &large),
        ("key.pem", &key.serialize_pem()),
        ("certificate.pem", &certificate.pem()),
    ] {
        #[expect(
            clippy::disallowed_methods,
            reason = "files of a test need not be durable"
        )]
        fs::write(directory.path().join(name), text).unwrap();
    }
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let started = Command::new("nghttpd")
        .arg("--address=127.0.0.1")
        .arg("--htdocs")
        .arg(&site)
        .arg(address.port().to_string())
        .args(["key.pem", "certificate.pem"].map(|name| directory.path().join(name)))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let Ok(child) = started else {
        tools_testing::skipped("nghttpd is not on PATH (apt-get install nghttp2-server)");
        return;
    };
    let mut server = Nghttpd(child);
    while TcpStream::connect(address).await.is_err() {
        assert!(server.0.try_wait().unwrap().is_none(), "nghttpd has ended");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let base = Url::parse(&format!("https://{address}/")).unwrap();
    let crawled = directory.path().join("crawl");
    crawl(settings(&crawled, std::slice::from_ref(&base), "")).await;
    let expected = [
        ("/", 200),
        ("/large.html", 200),
        ("/none", 404),
        ("/robots.txt", 404),
    ];
    let expected = expected.map(|(path, status)| (path.to_owned(), status));
    assert_eq!(statuses(&crawled, &base), expected.into());
    let responses = fields(&crawled, WarcType::Response, "WARC-Protocol");
    let (protocol, block) = &responses[base.join("large.html").unwrap().as_str()];
    assert_eq!(protocol.as_deref(), Some("h2"));
    assert!(block.starts_with("HTTP/1.1 200 \r\n") && block.ends_with(&format!("\r\n\r\n{large}")));
}

/// Fails if a host whose TLS is too old is tried again and again, or its status does not say so.
#[tokio::test]
async fn old_tls_ends_at_once() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("https://{}/", listener.local_addr().unwrap());
    tokio::task::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut hello = [0; 16 << 10];
            let length = stream.read(&mut hello).await.unwrap();
            assert!(length > 0);
            // The alert `protocol_version` of TLS 1.0.
            stream.write_all(&[21, 3, 1, 0, 2, 2, 70]).await.unwrap();
        }
    });
    let base = Url::parse(&base).unwrap();
    // A next try would come after a quarter of an hour.
    for (policy, page) in [
        ("ignore", (-9, "err=OldTls")),
        ("obey", (-61, "err=Robots")),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let order = format!("robots.policy = \"{policy}\"");
        let seeds = std::slice::from_ref(&base);
        crawl(settings(directory.path(), seeds, &order)).await;
        let lines = log(directory.path());
        let lines = lines.iter();
        let lines = lines.map(|line| (line.status, line.annotations.join(",")));
        let expected = [(-9, "err=OldTls"), page];
        let expected = expected.map(|(status, annotations)| (status, annotations.to_owned()));
        assert_eq!(lines.collect::<Vec<_>>(), expected, "{policy}");
    }
}
