//! A page host over an index in memory, and a client that looks at its answers.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use archive_daemon::{Chance, Clock, Daemon};
use archive_formats::cdx::Capture;
use archive_formats::surt::UrlKey;
use axum::body::{Body, to_bytes};
use axum::http::Request as HttpRequest;
use index_client::{CaptureSearch, FakeIndex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tools_testing::in_time;
use viewer_proxy::connections::ConnectionLimits;

use super::super::{PageHost, PageParts};
use crate::collections::Collections;
use crate::listener::SiteListener;
use crate::metrics::Instruments;
use crate::settings::WebSettings;

/// Returns a plain capture of a URL at a time.
pub(super) fn capture(url: &str, stamp: &str) -> Capture {
    let mut capture = Capture::new(UrlKey::parse(url).as_str(), stamp.parse().unwrap());
    capture.original = Some(url.to_owned());
    capture.mime = Some("text/html".to_owned());
    capture.status = Some(200);
    capture.file = Some("1-1-a.warc.gz".to_owned());
    capture.offset = Some(0);
    capture
}

/// A page host in the making.
pub(super) struct TestPages {
    index: Arc<dyn CaptureSearch>,
    /// Settings, as for `--set`.
    set: Vec<String>,
}

/// An answer, read to its end.
#[derive(Debug)]
pub(super) struct PageAnswer {
    pub(super) status: u16,
    fields: Vec<(String, String)>,
    pub(super) text: String,
}

/// A page host that listens.
pub(super) struct ServedPages {
    address: SocketAddr,
    daemon: Daemon,
}

impl Drop for ServedPages {
    fn drop(&mut self) {
        self.daemon.tasks.stop_all();
    }
}

impl TestPages {
    pub(super) fn new(captures: impl IntoIterator<Item = Capture>) -> Self {
        Self::over(Arc::new(FakeIndex::new(captures.into_iter().collect())))
    }

    pub(super) fn over(index: Arc<dyn CaptureSearch>) -> Self {
        Self {
            index,
            set: Vec::new(),
        }
    }

    pub(super) fn set(mut self, setting: impl Into<String>) -> Self {
        self.set.push(setting.into());
        self
    }

    fn host(&self) -> (PageHost, WebSettings, Daemon) {
        let own = self.set.iter().map(String::as_str);
        let set: Vec<&str> = std::iter::once("web.url=http://localhost:8090")
            .chain(own)
            .collect();
        let settings = crate::settings::tests::settings(&set);
        settings.check().unwrap();
        let daemon = Daemon::new(Clock::system_clock(), Chance::system_chance());
        let parts = PageParts {
            index: Arc::clone(&self.index),
            collections: Collections::open(&settings.all_collections()).unwrap(),
            visitors: settings.visitor_settings().unwrap(),
            instruments: Instruments::new(&daemon.metrics).unwrap(),
            clock: daemon.clock.clone(),
            origin: "http://localhost:8090".to_owned(),
            replay: "http://127.0.0.1:8091".to_owned(),
        };
        let web = settings.web.unwrap();
        (PageHost::new(parts, web.clone()).unwrap(), web, daemon)
    }

    /// Asks with fields of one's own.
    pub(super) async fn ask(
        &self,
        method: &str,
        target: &str,
        fields: &[(&str, &str)],
    ) -> PageAnswer {
        let (host, _, _daemon) = self.host();
        let mut request = HttpRequest::builder().method(method).uri(target);
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::empty()).unwrap();
        let peer = SocketAddr::from(([127, 0, 0, 1], 40_000));
        let response = in_time(host.answer_request(peer, request)).await;
        let (head, body) = response.into_parts();
        let fields = head
            .headers
            .iter()
            .map(|(name, value)| (name.as_str().to_owned(), value.to_str().unwrap().to_owned()));
        let bytes = to_bytes(body, usize::MAX).await.unwrap();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        // No text was left unfilled, and no page has a script.
        assert!(!text.contains("{$") && !text.contains("{ $"), "{text}");
        assert!(!text.contains("<script"), "{text}");
        PageAnswer {
            status: head.status.as_u16(),
            fields: fields.collect(),
            text,
        }
    }

    pub(super) async fn get(&self, target: &str) -> PageAnswer {
        self.ask("GET", target, &[]).await
    }

    /// Listens.
    pub(super) async fn serve(&self) -> ServedPages {
        let (host, web, daemon) = self.host();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let limits = ConnectionLimits {
            connections: web.connections.get(),
            longest_target: usize::try_from(web.longest_url.bytes()).unwrap(),
            head_time: web.head_time.duration(),
            unread: web.unread_time.duration(),
            drain: Duration::from_secs(1),
        };
        let door = SiteListener {
            listener,
            tls: None,
            limits,
        };
        let serving = door.serve_site(Arc::new(host), daemon.tasks.stop_token());
        daemon.tasks.spawn("pages", serving);
        ServedPages { address, daemon }
    }
}

impl PageAnswer {
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        let mut fields = self.fields.iter();
        let found = fields.find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Returns the address of the first link with an attribute before its `href`.
    pub(super) fn link(&self, attribute: &str) -> Option<String> {
        let (_, rest) = self.text.split_once(&format!("<a {attribute} href=\""))?;
        let (href, _) = rest.split_once('"')?;
        Some(href.replace("&#38;", "&").replace("&amp;", "&"))
    }
}

impl ServedPages {
    /// Sends a request, and reads until the server closes.
    pub(super) async fn exchange(&self, request: &str) -> String {
        in_time(async {
            let mut stream = TcpStream::connect(self.address).await.unwrap();
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            answer
        })
        .await
    }
}
