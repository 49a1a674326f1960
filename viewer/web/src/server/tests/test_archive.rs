//! A server over an index and an archive in memory, and a client that looks at every byte.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use archive_client::{AnnouncedDigests, Deposit, FakeArchive, Ingest};
use archive_daemon::{Chance, Clock, Daemon};
use archive_formats::cdx::{Capture, extract_capture};
use archive_formats::digest::{Algorithm, digest_bytes};
use archive_formats::warc::{Builder, WarcReader, WarcType, WarcWriter};
use archive_model::FileName;
use index_client::{CaptureSearch, FakeIndex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tools_testing::in_time;
use viewer_proxy::connections::ConnectionLimits;

use crate::collections::Collections;
use crate::listener::SiteListener;
use crate::metrics::Instruments;
use crate::records::Records;
use crate::server::{Server, ServerParts, WorkerScript};
use crate::settings::Settings;

/// Archive files in the making.
pub(super) struct Warc {
    writer: WarcWriter<Vec<u8>>,
    records: u32,
}

impl Warc {
    pub(super) fn new() -> Self {
        Self {
            writer: WarcWriter::gzip_writer(Vec::new(), 6),
            records: 0,
        }
    }

    fn write(&mut self, record: &Builder, block: &[u8]) {
        let head = record.render_head(block.len() as u64).unwrap();
        let mut block = block;
        self.writer
            .write_record(&head, block.len() as u64, &mut block)
            .unwrap();
    }

    fn id(&mut self) -> String {
        self.records += 1;
        format!("urn:uuid:00000000-0000-4000-8000-{:012}", self.records)
    }

    /// Adds a response of HTTP, with the digest of its payload.
    pub(super) fn response(mut self, url: &str, date: &str, head: &str, body: &[u8]) -> Self {
        let id = self.id();
        let payload = digest_bytes(Algorithm::Sha1, body).to_string();
        let record = Builder::new(WarcType::Response, &id, date)
            .target_uri(url)
            .content_type("application/http; msgtype=response")
            .with_field("WARC-Payload-Digest", &payload);
        self.write(&record, &[head.as_bytes(), body].concat());
        self
    }

    /// Adds a response whose payload has another digest than its record says.
    pub(super) fn mismatch(mut self, url: &str, date: &str, body: &[u8]) -> Self {
        let id = self.id();
        let other = digest_bytes(Algorithm::Sha1, b"other").to_string();
        let record = Builder::new(WarcType::Response, &id, date)
            .target_uri(url)
            .content_type("application/http; msgtype=response")
            .with_field("WARC-Payload-Digest", &other);
        self.write(&record, &[OK.as_bytes(), body].concat());
        self
    }

    /// Adds a revisit of an earlier capture with this body.
    pub(super) fn revisit(mut self, url: &str, date: &str, of: (&str, &str), body: &[u8]) -> Self {
        let id = self.id();
        let payload = digest_bytes(Algorithm::Sha1, body).to_string();
        let record = Builder::identical_payload(&id, date, &payload)
            .target_uri(url)
            .content_type("application/http; msgtype=response")
            .refers_to_capture(of.0, of.1);
        self.write(&record, OK.as_bytes());
        self
    }

    /// Adds a revisit of an earlier capture with this body, which it does not name.
    pub(super) fn unnamed_revisit(mut self, url: &str, date: &str, body: &[u8]) -> Self {
        let id = self.id();
        let payload = digest_bytes(Algorithm::Sha1, body).to_string();
        let record = Builder::identical_payload(&id, date, &payload)
            .target_uri(url)
            .content_type("application/http; msgtype=response");
        self.write(&record, OK.as_bytes());
        self
    }

    /// Adds a record of any type, with a block of one's own.
    pub(super) fn record(
        mut self,
        kind: WarcType,
        facts: (&str, &str),
        media: &str,
        block: &[u8],
    ) -> Self {
        let id = self.id();
        let record = Builder::new(kind, &id, facts.1)
            .target_uri(facts.0)
            .content_type(media);
        self.write(&record, block);
        self
    }

    /// Adds a `warcinfo` record.
    pub(super) fn warcinfo(mut self, date: &str) -> Self {
        let id = self.id();
        let record =
            Builder::new(WarcType::Warcinfo, &id, date).content_type("application/warc-fields");
        self.write(&record, b"software: test\r\n");
        self
    }

    pub(super) fn bytes(self) -> Vec<u8> {
        self.writer.into_inner()
    }
}

/// The head of a plain answer.
pub(super) const OK: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nSet-Cookie: a=b\r\nX-Own: x\r\n\r\n";

/// The archive and the index of a test, and the settings of its server.
pub(super) struct TestArchive {
    pub(super) archive: FakeArchive,
    pub(super) captures: Vec<Capture>,
    /// Settings, as for `--set`.
    pub(super) set: Vec<String>,
    pub(super) index: Option<Arc<dyn CaptureSearch>>,
    /// The origin of the page host.
    pub(super) page_host: Option<String>,
}

/// A server that listens.
pub(super) struct TestServer {
    pub(super) address: SocketAddr,
    daemon: Daemon,
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.daemon.tasks.stop_all();
    }
}

impl TestArchive {
    pub(super) fn new() -> Self {
        Self {
            archive: FakeArchive::new(),
            captures: Vec::new(),
            set: Vec::new(),
            index: None,
            page_host: None,
        }
    }

    pub(super) fn set(mut self, setting: impl Into<String>) -> Self {
        self.set.push(setting.into());
        self
    }

    /// Stores a file, and puts its captures into the index.
    pub(super) async fn with(self, name: &str, warc: Warc) -> Self {
        self.with_bytes(name, warc.bytes()).await
    }

    /// Stores a file that is made elsewhere, and puts its captures into the index.
    pub(super) async fn with_bytes(mut self, name: &str, bytes: Vec<u8>) -> Self {
        let mut reader = WarcReader::new(bytes.as_slice());
        while let Some(record) = reader.next_record().unwrap() {
            self.captures
                .extend(extract_capture(record, name).unwrap().capture);
        }
        self.store(name, bytes).await;
        self
    }

    pub(super) async fn store(&self, name: &str, bytes: Vec<u8>) {
        let deposit = Deposit {
            name: FileName::new(name).unwrap(),
            size: bytes.len() as u64,
            source: Arc::new(bytes),
            announced: AnnouncedDigests::default(),
            no_digest: true,
        };
        self.archive.store(&deposit, &|_| {}).await.unwrap();
    }

    /// Returns the settings and the parts of a server.
    fn parts(self, daemon: &Daemon) -> (Settings, ServerParts) {
        let set: Vec<&str> = self.set.iter().map(String::as_str).collect();
        let settings = crate::settings::tests::settings(&set);
        settings.check().unwrap();
        let replay = settings.replay.clone();
        let index = self
            .index
            .unwrap_or_else(|| Arc::new(FakeIndex::new(self.captures)));
        let parts = ServerParts {
            index,
            records: Records::new(
                Arc::new(self.archive),
                replay.records.get(),
                replay.unread_time.duration(),
            ),
            collections: Collections::open(&settings.all_collections()).unwrap(),
            visitors: settings.visitor_settings().unwrap(),
            instruments: Instruments::new(&daemon.metrics).unwrap(),
            clock: daemon.clock.clone(),
            page_host: self.page_host,
            worker: WorkerScript::open_script(replay.service_worker.as_deref()).unwrap(),
        };
        (settings, parts)
    }

    /// Listens.
    pub(super) async fn serve(self) -> TestServer {
        let daemon = Daemon::new(Clock::system_clock(), Chance::system_chance());
        let (settings, parts) = self.parts(&daemon);
        let replay = settings.replay;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let limits = ConnectionLimits {
            connections: replay.connections.get(),
            longest_target: usize::try_from(replay.longest_url.bytes()).unwrap(),
            head_time: replay.head_time.duration(),
            unread: replay.unread_time.duration(),
            drain: Duration::from_secs(1),
        };
        let server = Arc::new(Server::new(parts, replay, address));
        let door = SiteListener {
            listener,
            tls: None,
            limits,
        };
        let serving = door.serve_site(server, daemon.tasks.stop_token());
        daemon.tasks.spawn("replay", serving);
        TestServer { address, daemon }
    }

    /// Listens as a proxy, whose settings are in the section `[proxy]`.
    pub(super) async fn serve_proxy(self) -> TestServer {
        let daemon = Daemon::new(Clock::system_clock(), Chance::system_chance());
        let (settings, parts) = self.parts(&daemon);
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 1));
        let server = Arc::new(Server::new(parts, settings.replay, nowhere));
        let drain = Duration::from_secs(1);
        let begun = viewer_proxy::serve_proxy(settings.proxy.unwrap(), server, drain, &daemon);
        TestServer {
            address: begun.await.unwrap(),
            daemon,
        }
    }
}

/// An answer, byte for byte.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    fields: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
    /// Whether the answer came to its end, as its framing says.
    pub(super) is_whole: bool,
}

impl Answer {
    /// Returns the values of all fields of a name, as one list.
    pub(super) fn list(&self, name: &str) -> String {
        let fields = self.fields.iter();
        let named = fields.filter(|(known, _)| known.eq_ignore_ascii_case(name));
        let values: Vec<&str> = named.map(|(_, value)| value.as_str()).collect();
        values.join(", ")
    }

    pub(super) fn field(&self, name: &str) -> Option<&str> {
        let mut fields = self.fields.iter();
        let found = fields.find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Returns the page in front of the banner that stands at its end.
    pub(super) fn page(&self) -> String {
        let text = self.text();
        text.split("<div role=").next().unwrap().to_owned()
    }

    pub(super) fn read(bytes: &[u8], is_head: bool) -> Self {
        let end = bytes
            .windows(4)
            .position(|at| at == b"\r\n\r\n")
            .expect("a head")
            + 4;
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let mut lines = head.trim_end().split("\r\n");
        let status = lines
            .next()
            .unwrap()
            .split(' ')
            .nth(1)
            .unwrap()
            .parse()
            .unwrap();
        let fields: Vec<(String, String)> = lines
            .map(|line| line.split_once(": ").unwrap_or((line, "")))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        let mut answer = Self {
            status,
            fields,
            body: bytes[end..].to_vec(),
            is_whole: true,
        };
        if is_head {
            return answer;
        }
        if answer.field("transfer-encoding") == Some("chunked") {
            (answer.body, answer.is_whole) = unchunk(&answer.body);
        } else if let Some(length) = answer.field("content-length") {
            answer.is_whole = length.parse() == Ok(answer.body.len());
        }
        answer
    }
}

fn unchunk(mut bytes: &[u8]) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    while let Some(end) = bytes.windows(2).position(|at| at == b"\r\n") {
        let size = usize::from_str_radix(&String::from_utf8_lossy(&bytes[..end]), 16).unwrap();
        bytes = &bytes[end + 2..];
        if size == 0 {
            return (body, true);
        }
        if bytes.len() < size + 2 {
            break;
        }
        body.extend_from_slice(&bytes[..size]);
        bytes = &bytes[size + 2..];
    }
    (body, false)
}

impl TestServer {
    /// Sends bytes, and reads until the server closes.
    pub(super) async fn exchange(&self, request: &[u8]) -> io::Result<Vec<u8>> {
        in_time(async {
            let mut stream = TcpStream::connect(self.address).await?;
            stream.write_all(request).await?;
            let mut answer = Vec::new();
            // A connection that is cut is an end, too.
            match stream.read_to_end(&mut answer).await {
                Ok(_) => Ok(answer),
                Err(_) if !answer.is_empty() => Ok(answer),
                Err(error) => Err(error),
            }
        })
        .await
    }

    /// Asks with fields of one's own.
    pub(super) async fn ask(&self, method: &str, path: &str, fields: &[(&str, &str)]) -> Answer {
        let mut request =
            format!("{method} {path} HTTP/1.1\r\nHost: replay.example:80\r\nConnection: close\r\n");
        for (name, value) in fields {
            request.extend([name, ": ", value, "\r\n"]);
        }
        request.push_str("\r\n");
        let bytes = self.exchange(request.as_bytes()).await.unwrap();
        Answer::read(&bytes, method == "HEAD")
    }

    pub(super) async fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, &[]).await
    }

    /// Asks with a body.
    pub(super) async fn post(&self, path: &str, content_type: &str, body: &str) -> Answer {
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        Answer::read(&self.exchange(request.as_bytes()).await.unwrap(), false)
    }
}
