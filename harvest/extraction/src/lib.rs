//! The links of captured documents: bytes in, URIs out.
//!
//! Owns how a document is read for its links: what it is, which charset it is in, where links stand in it, and by which
//! hop each of them leads on. Reads HTML, style sheets, strings of scripts and of JSON, XML with feeds and sitemaps,
//! lists of URLs, playlists, PDF, and the head of the response. Knows no socket, no file and no clock, and does not decide what is
//! fetched: the scope judges the links later.
//!
//! The rooms, in reading order: `kind` says what a document is and `charset` how its text is encoded; `source` bounds
//! what is read; `header`, `html`, `xhtml`, `css`, `script`, `xml`, `url_list`, `playlist` and `pdf` find references in one kind
//! each, with `references`, `entities` and `speculation`; `outlinks` makes links of them.
//!
//! All bytes are hostile. Reading ends where memory or bytes run out; it takes time linear in what is read, and what
//! was found before the end stays.
//!
//! ```
//! use harvest_extraction::{FetchedDocument, ExtractionLimits, extract_links};
//! use url::Url;
//!
//! let url = Url::parse("http://a.dk/news/")?;
//! let page = b"<html><body><img src=logo.png><a href='/x?a=1&amp;b=2#top'>next</a>";
//! let document = FetchedDocument::new(&url);
//! let extraction = extract_links(&document, &page[..], &ExtractionLimits::default());
//! let links = extraction.links.iter().map(|link| (link.hop.letter(), link.url.as_str(), link.context));
//! assert!(links.eq([
//!     ('E', "http://a.dk/news/logo.png", "img/@src"),
//!     ('L', "http://a.dk/x?a=1&b=2", "a/@href"),
//! ]));
//! # Ok::<(), url::ParseError>(())
//! ```

mod charset;
mod css;
mod entities;
mod header;
mod html;
mod kind;
mod outlinks;
mod pdf;
mod playlist;
mod references;
mod script;
mod source;
mod speculation;
mod url_list;
mod xhtml;
mod xml;

use std::cell::Cell;
use std::io::{BufRead, BufReader, Cursor, Read as _};

use archive_formats::http::{Coding, Head};
use flate2::bufread::MultiGzDecoder;
use harvest_policy::hops::Hop;
use url::Url;

pub use outlinks::as_link;

use charset::{DocumentCharset, Utf8Reader};
use kind::DocumentKind;
use outlinks::Outlinks;
use source::{BoundedReader, ReadEnd};

/// A document that was fetched.
#[derive(Clone, Copy, Debug)]
pub struct FetchedDocument<'a> {
    /// The URL of the document: links are relative to it, unless the document says otherwise.
    pub url: &'a Url,
    /// The head of the response, if there was one.
    pub head: Option<&'a Head>,
    /// The heads of interim responses that came before (103 Early Hints).
    pub interim: &'a [Head],
    /// The URL of the document that led here. The strings of a script are relative to it, because a script runs there.
    pub via: Option<&'a Url>,
    /// Whether the document was reached as a sitemap: a list of URLs, or XML in gzip, is then read too.
    pub is_manifest: bool,
}

impl<'a> FetchedDocument<'a> {
    /// Returns the document at a URL of which nothing else is known.
    pub const fn new(url: &'a Url) -> Self {
        Self {
            url,
            head: None,
            interim: &[],
            via: None,
            is_manifest: false,
        }
    }

    /// Returns the value of a header field, where it is text.
    fn field(&self, name: &'static str) -> Option<&'a [u8]> {
        self.head?.all_values(name).next()
    }
}

/// The limits of what is read of a document, and of what is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtractionLimits {
    /// The most links of one document (Heritrix' `maxOutlinks`). The others are counted.
    pub max_links: usize,
    /// The most links of one sitemap, instead: the protocol allows this many (sitemaps.org, "Sitemap file").
    pub max_manifest_links: usize,
    /// The most bytes that are read of a document, and of what its streams inflate to.
    pub bytes: u64,
    /// Whether links are left that the page asks not to follow.
    pub obeys_nofollow: bool,
    /// Whether `/favicon.ico` is a part of a page that names no icon, as it is for browsers.
    pub guesses_icon: bool,
    /// The most bytes that are held at once: a tag of HTML, a script, a style sheet, a file of JSON or PDF.
    pub memory: usize,
}

impl Default for ExtractionLimits {
    /// Returns 6000 links, 50 000 of a sitemap, 64 MiB, 8 MiB at once.
    fn default() -> Self {
        Self {
            max_links: 6000,
            max_manifest_links: 50_000,
            bytes: 64 << 20,
            obeys_nofollow: false,
            guesses_icon: false,
            memory: 8 << 20,
        }
    }
}

/// A link of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The URL, absolute and without a fragment; its scheme is `http`, `https` or `ftp`.
    pub url: Url,
    /// The hop by which the document leads to the URL.
    pub hop: Hop,
    /// The place where the link stands, as Heritrix writes it into `outlink` fields: `a/@href`, `=JS_MISC`,
    /// `Location:`.
    pub context: &'static str,
}

impl Link {
    /// Returns whether the link is where the head of a response redirects to, and no other kind of redirect.
    pub fn is_location(&self) -> bool {
        self.hop == Hop::Redirect && self.context == header::LOCATION
    }
}

/// The links of a document, and the notes about them for the crawl log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extraction {
    /// The links in the order in which they were found, each with the same hop once.
    pub links: Vec<Link>,
    /// The annotations for the crawl log, without commas and blanks: `usingCharsetInHeader:X`, `usingCharsetInHTML:X`
    /// (also `InXML`, `InCSS`), `inconsistentCharsetInHTML:X` (named and not used), `unsatisfiableCharsetInHeader:X`
    /// (not known; also of the others), `unsatisfiableContentEncoding:X`, `dol:N` (links beyond the limit),
    /// `extractTrunc:length|memory|body|syntax` (why the document was not read to its end).
    pub annotations: Vec<String>,
    /// The charset in which the document was read; `None` if it is no text.
    pub charset: Option<String>,
}

/// Finds the links of a document: those of its head, then those of its body, which is given with content encodings
/// undone.
///
/// Never fails: damage ends a document early, and an annotation says so.
pub fn extract_links(
    document: &FetchedDocument<'_>,
    body: impl BufRead,
    limits: &ExtractionLimits,
) -> Extraction {
    let max_links = if document.is_manifest {
        limits.max_manifest_links
    } else {
        limits.max_links
    };
    let mut outlinks = Outlinks::new(document.url, max_links);
    let status = document.head.and_then(Head::status);
    if limits.guesses_icon && matches!(status, Some(200..=299)) {
        outlinks.guess_icon();
    }
    if limits.obeys_nofollow {
        outlinks.obey_nofollow();
    }
    let mut annotations = Vec::new();
    let mut charset = None;
    for head in document.interim.iter().chain(document.head) {
        header::header_links(head, &mut outlinks);
    }
    if let Some(coding) = document.head.and_then(unknown_coding) {
        annotations.push(annotation("unsatisfiableContentEncoding", coding));
    } else {
        let ending = Cell::new(None);
        let mut body = SniffedBody::open(document, body, limits, &ending);
        let kind = body.kind;
        let result = if kind.is_text() {
            let mut detected = DocumentCharset::detect_charset(document, kind, &body.start);
            if detected.is_guess && body.start.is_ascii() {
                // The first letter that is not in ASCII tells more.
                body.read_beyond_ascii(limits.memory);
                detected = DocumentCharset::detect_charset(document, kind, &body.start);
            }
            let DocumentCharset {
                encoding,
                annotations: told,
                ..
            } = detected;
            annotations.extend(told);
            charset = Some(encoding.name().to_owned());
            if matches!(kind, DocumentKind::Html | DocumentKind::Xhtml) {
                outlinks.set_encoding(encoding);
            }
            let mut text = Utf8Reader::new(body.bytes(), encoding);
            text_links(document, kind, &mut text, &mut outlinks, limits.memory)
        } else if kind == DocumentKind::Pdf {
            pdf::pdf_links(&mut body.bytes(), &mut outlinks, limits)
        } else {
            Ok(())
        };
        if let Some(ending) = ending.get().or(result.err()) {
            annotations.push(format!("extractTrunc:{}", ending.label()));
        }
    }
    let too_long = outlinks.too_long();
    if too_long > 0 {
        annotations.push(format!("longUris:{too_long}"));
    }
    let (links, discarded) = outlinks.finish();
    if discarded > 0 {
        annotations.push(format!("dol:{discarded}"));
    }
    Extraction {
        links,
        annotations,
        charset,
    }
}

/// Adds the links of a document that is text, which is given in UTF-8.
fn text_links(
    document: &FetchedDocument<'_>,
    kind: DocumentKind,
    text: &mut impl BufRead,
    outlinks: &mut Outlinks<'_>,
    memory: usize,
) -> Result<(), ReadEnd> {
    match kind {
        DocumentKind::Html => html::html_links(text, outlinks, memory),
        DocumentKind::Xhtml => {
            html::html_links(&mut xhtml::HtmlReader::new(text), outlinks, memory)
        }
        DocumentKind::Xml => xml::xml_links(text, outlinks, memory),
        DocumentKind::UrlList => {
            url_list::listed_links(text, outlinks);
            Ok(())
        }
        DocumentKind::Playlist => {
            playlist::playlist_links(text, outlinks);
            Ok(())
        }
        DocumentKind::Css | DocumentKind::Script | DocumentKind::Json => {
            let (text, result) = source::read_text(text, memory);
            if kind == DocumentKind::Css {
                css::css_links(&text, outlinks);
            } else {
                if let Some(via) = document.via.filter(|_| kind == DocumentKind::Script) {
                    outlinks.set_base(via.clone());
                }
                script::script_links(&text, outlinks);
            }
            result
        }
        DocumentKind::Pdf | DocumentKind::Other => Ok(()),
    }
}

/// A body whose first bytes were read, to see what it is.
struct SniffedBody<'a> {
    kind: DocumentKind,
    start: Vec<u8>,
    rest: Box<dyn BufRead + 'a>,
}

impl<'a> SniffedBody<'a> {
    fn open(
        document: &FetchedDocument<'_>,
        body: impl BufRead + 'a,
        limits: &ExtractionLimits,
        ending: &'a Cell<Option<ReadEnd>>,
    ) -> Self {
        let mut rest: Box<dyn BufRead + 'a> =
            Box::new(BoundedReader::new(body, limits.bytes, ending));
        let mut start = source::read_start(&mut rest);
        if kind::is_packed_sitemap(document, &start) {
            let inflated = MultiGzDecoder::new(Cursor::new(start).chain(rest));
            rest = Box::new(BoundedReader::new(
                BufReader::new(inflated),
                limits.bytes,
                ending,
            ));
            start = source::read_start(&mut rest);
        }
        Self {
            kind: DocumentKind::detect_kind(document, &start),
            start,
            rest,
        }
    }

    /// Reads on until the first bytes are not all ASCII, or as many as may be held.
    fn read_beyond_ascii(&mut self, memory: usize) {
        let mut is_ascii = true;
        while is_ascii && self.start.len() < memory {
            let more = source::read_start(&mut self.rest);
            if more.is_empty() {
                return;
            }
            is_ascii = more.is_ascii();
            self.start.extend(more);
        }
    }

    /// Returns all bytes, the first ones again.
    fn bytes(self) -> impl BufRead + use<'a> {
        Cursor::new(self.start).chain(self.rest)
    }
}

/// Returns the first content encoding that cannot be undone.
fn unknown_coding(head: &Head) -> Option<&[u8]> {
    let is_plain =
        |name: &[u8]| name.eq_ignore_ascii_case(b"identity") || name.eq_ignore_ascii_case(b"none");
    head.list_values("content-encoding")
        .find(|name| !is_plain(name) && Coding::from_name(name).is_none())
}

/// Returns an annotation with a name that a document gave: at most 40 bytes, nothing that the crawl log could take for
/// its own.
fn annotation(name: &str, value: &[u8]) -> String {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._:+".contains(byte);
    let value = value.iter().copied().filter(is_plain).take(40);
    format!("{name}:{}", value.map(char::from).collect::<String>())
}

#[cfg(test)]
mod tests;
