//! Kinds of documents: by the `Content-Type`, by the first bytes where it says little, by the name in the URL.

use archive_formats::http::MediaType;
use url::Url;

use crate::FetchedDocument;

/// The kind of a document: it decides how the document is read for its links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DocumentKind {
    Html,
    /// A page whose server says that it is XML.
    Xhtml,
    Css,
    Script,
    Json,
    Xml,
    /// A sitemap of one URL in each line.
    UrlList,
    /// A playlist of audio or video.
    Playlist,
    Pdf,
    /// No links are looked for.
    Other,
}

impl DocumentKind {
    /// Returns the kind of a document that begins with these bytes.
    ///
    /// Servers send feeds as HTML and pages as plain text, so the bytes decide where they are plain; but a script or a
    /// style sheet is what the server says, or else its name.
    pub(crate) fn detect_kind(document: &FetchedDocument<'_>, start: &[u8]) -> Self {
        let media = document
            .field("content-type")
            .and_then(MediaType::read_media);
        let named = media.and_then(|media| Self::from_essence(&media.essence));
        let begins = Self::from_start(start);
        match (named, begins) {
            (Some(Self::Xhtml), _) | (Some(Self::Xml), Some(Self::Html)) => Self::Xhtml,
            (Some(Self::Html | Self::Xml) | None, Some(begins)) => begins,
            (Some(named), _) => named,
            (None, None) if document.is_manifest => Self::UrlList,
            (None, None) => Self::from_extension(document.url).unwrap_or(Self::Other),
        }
    }

    /// Returns whether documents of this kind have characters.
    pub(crate) const fn is_text(self) -> bool {
        !matches!(self, Self::Pdf | Self::Other)
    }

    /// Returns the kind of a media type; `None` of one that servers send for anything.
    fn from_essence(essence: &str) -> Option<Self> {
        let (class, name) = essence.split_once('/')?;
        Some(match (class, name) {
            ("text", "html") => Self::Html,
            ("application", "xhtml+xml" | "vnd.wap.xhtml+xml") => Self::Xhtml,
            ("text", "css") => Self::Css,
            ("application", "pdf" | "x-pdf") => Self::Pdf,
            (_, "vnd.apple.mpegurl" | "x-mpegurl" | "mpegurl") => Self::Playlist,
            ("text" | "application", "json") => Self::Json,
            ("text" | "application", "xml") => Self::Xml,
            ("text", "plain")
            | ("application", "octet-stream" | "x-unknown" | "gzip" | "x-gzip" | "unknown") => {
                return None;
            }
            _ if name.ends_with("+json") => Self::Json,
            _ if name.ends_with("+xml") => Self::Xml,
            _ if name.contains("javascript") || name.contains("ecmascript") => Self::Script,
            _ => Self::Other,
        })
    }

    /// Returns the kind of a document that shows by its first bytes what it is.
    fn from_start(start: &[u8]) -> Option<Self> {
        // The tags by which a page is known (MIME Sniffing Standard §7.1), and `frameset`.
        const PAGES: [&[u8]; 16] = [
            b"html",
            b"head",
            b"script",
            b"iframe",
            b"h1",
            b"div",
            b"font",
            b"table",
            b"a",
            b"style",
            b"title",
            b"b",
            b"body",
            b"br",
            b"p",
            b"frameset",
        ];
        let start = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start);
        if start.starts_with(b"%PDF-") {
            return Some(Self::Pdf);
        }
        if start.starts_with(b"#EXTM3U") {
            return Some(Self::Playlist);
        }
        let mut rest = start.trim_ascii_start();
        let mut is_xml = false;
        while let Some(markup) = rest.strip_prefix(b"<") {
            let end = if markup.starts_with(b"!--") {
                memchr::memmem::find(markup, b"-->").map(|at| at + 3)
            } else if markup.starts_with(b"?") || markup.starts_with(b"!") {
                is_xml |= markup.starts_with(b"?xml");
                if is_named(markup, b"!doctype") {
                    let name = markup.get(8..).unwrap_or_default().trim_ascii_start();
                    return Some(if is_named(name, b"html") {
                        Self::Html
                    } else {
                        Self::Xml
                    });
                }
                memchr::memchr(b'>', markup).map(|at| at + 1)
            } else if PAGES.iter().any(|page| is_named(markup, page)) {
                return Some(Self::Html);
            } else {
                return (is_xml || is_feed(markup)).then_some(Self::Xml);
            };
            let Some(behind) = end.and_then(|end| markup.get(end..)) else {
                break;
            };
            rest = behind.trim_ascii_start();
        }
        is_xml.then_some(Self::Xml)
    }

    fn from_extension(url: &Url) -> Option<Self> {
        let (_, extension) = url.path().rsplit_once('.')?;
        Some(match extension.to_ascii_lowercase().as_str() {
            "css" => Self::Css,
            "js" | "mjs" => Self::Script,
            "json" => Self::Json,
            "xml" | "rss" | "atom" | "svg" => Self::Xml,
            "html" | "htm" => Self::Html,
            "m3u8" | "m3u" => Self::Playlist,
            _ => return None,
        })
    }
}

/// Returns whether a document is gzip that a sitemap is in: its bytes are gzip, and it was reached as a sitemap or is
/// named like one.
pub(crate) fn is_packed_sitemap(document: &FetchedDocument<'_>, start: &[u8]) -> bool {
    start.starts_with(&[0x1f, 0x8b])
        && (document.is_manifest || document.url.path().ends_with(".xml.gz"))
}

/// Returns whether this is the name, in any case, and ends there.
fn is_named(markup: &[u8], name: &[u8]) -> bool {
    let behind = markup.get(name.len());
    markup
        .get(..name.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(name))
        && behind.is_none_or(|byte| !byte.is_ascii_alphanumeric() && *byte != b':')
}

fn is_feed(markup: &[u8]) -> bool {
    const FEEDS: [&[u8]; 6] = [b"rss", b"feed", b"urlset", b"sitemapindex", b"rdf", b"opml"];
    FEEDS.iter().any(|name| {
        markup.starts_with(name)
            && (is_named(markup, name) || (*name == b"rdf" && markup.starts_with(b"rdf:RDF")))
    })
}
