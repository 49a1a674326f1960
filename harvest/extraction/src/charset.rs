//! Charsets of documents: which one a document is in, and its bytes as UTF-8.
//!
//! Owns the order in which witnesses are asked: the byte order mark, the head of the response, the document itself
//! within [`PRESCAN`] bytes, and a guess last, by the first bytes that are not in ASCII. Decodes for the sake of links only.

use std::io::{self, BufRead, Read};

use archive_formats::http::MediaType;
use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Decoder, Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252, X_USER_DEFINED};
use url::{Host, Url};

use crate::kind::DocumentKind;
use crate::source::read_buffered;
use crate::{FetchedDocument, annotation};

/// The bytes of a document within which its own declaration may stand (HTML Standard, "prescan a byte stream").
const PRESCAN: usize = 1024;

/// The size of a piece of decoded text.
const PIECE: usize = 32 << 10;

/// The charset of a document, and what the crawl log says of it.
#[derive(Debug)]
pub(crate) struct DocumentCharset {
    pub(crate) encoding: &'static Encoding,
    pub(crate) annotations: Vec<String>,
    /// Whether nothing says which charset it is.
    pub(crate) is_guess: bool,
}

impl DocumentCharset {
    pub(crate) fn detect_charset(
        document: &FetchedDocument<'_>,
        kind: DocumentKind,
        start: &[u8],
    ) -> Self {
        let mut annotations = Vec::new();
        let head = document
            .field("content-type")
            .and_then(MediaType::read_media);
        let label = head.and_then(|media| media.charset);
        let head = label.as_deref().and_then(encoding_for_label);
        if let (Some(label), None) = (&label, head) {
            annotations.push(annotation("unsatisfiableCharsetInHeader", label.as_bytes()));
        }
        let place = match kind {
            DocumentKind::Html | DocumentKind::Xhtml => "HTML",
            DocumentKind::Css => "CSS",
            DocumentKind::Xml => "XML",
            _ => "",
        };
        let start_text = String::from_utf8_lossy(start.get(..PRESCAN).unwrap_or(start));
        let label = declared_label(kind, &start_text);
        let own = label.and_then(own_encoding);
        if let (Some(label), None) = (label, own) {
            let name = format!("unsatisfiableCharsetIn{place}");
            annotations.push(annotation(&name, label.as_bytes()));
        }
        let mark = Encoding::for_bom(start).map(|(encoding, _)| encoding);
        let mut note = |name: &str, encoding: &'static Encoding| {
            annotations.push(annotation(name, encoding.name().as_bytes()));
        };
        let is_guess = mark.or(head).or(own).is_none();
        let encoding = match (mark, head, own) {
            (Some(mark), _, _) => mark,
            (None, Some(head), _) => {
                note("usingCharsetInHeader", head);
                head
            }
            (None, None, Some(own)) => {
                note(&format!("usingCharsetIn{place}"), own);
                own
            }
            (None, None, None) => guess(document.url, start),
        };
        if let Some(own) = own.filter(|own| *own != encoding) {
            note(&format!("inconsistentCharsetIn{place}"), own);
        }
        Self {
            encoding,
            annotations,
            is_guess,
        }
    }
}

/// Returns the encoding of a label; of those that are dangerous to decode, none.
fn encoding_for_label(label: &str) -> Option<&'static Encoding> {
    Encoding::for_label_no_replacement(label.trim().as_bytes())
}

/// Returns the label of the charset that a document says it is in.
fn declared_label(kind: DocumentKind, start: &str) -> Option<&str> {
    match kind {
        DocumentKind::Css => {
            let rest = start.strip_prefix("@charset \"")?;
            rest.split_once("\";").map(|(label, _)| label)
        }
        DocumentKind::Html | DocumentKind::Xhtml => xml_label(start).or_else(|| meta_label(start)),
        DocumentKind::Xml => xml_label(start),
        _ => None,
    }
}

/// Returns the encoding of a label within a document. One whose label can be read in ASCII is not in UTF-16.
fn own_encoding(label: &str) -> Option<&'static Encoding> {
    let found = encoding_for_label(label)?;
    Some(if found == UTF_16BE || found == UTF_16LE {
        UTF_8
    } else if found == X_USER_DEFINED {
        WINDOWS_1252
    } else {
        found
    })
}

/// Returns the label in `<?xml version="1.0" encoding="…"?>`.
fn xml_label(start: &str) -> Option<&str> {
    let (declaration, _) = start.trim_start().strip_prefix("<?xml")?.split_once("?>")?;
    let (_, value) = declaration.split_once("encoding")?;
    let value = value.trim_start().strip_prefix('=')?.trim_start();
    let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    value.get(1..)?.split(quote).next()
}

/// Returns the label of the first `meta` element that has one, outside of comments.
fn meta_label(start: &str) -> Option<&str> {
    let mut rest = start;
    loop {
        (_, rest) = rest.split_once('<')?;
        if let Some(comment) = rest.strip_prefix("!--") {
            (_, rest) = comment.split_once("-->")?;
            continue;
        }
        let is_meta = rest
            .get(..4)
            .is_some_and(|name| name.eq_ignore_ascii_case("meta"));
        if is_meta {
            let (tag, behind) = rest.split_once('>')?;
            rest = behind;
            if let Some(label) = charset_in(tag) {
                return Some(label);
            }
        }
    }
}

/// Returns the label behind `charset=` in a tag.
fn charset_in(tag: &str) -> Option<&str> {
    const NAME: &str = "charset";
    let at = tag
        .as_bytes()
        .windows(NAME.len())
        .position(|window| window.eq_ignore_ascii_case(NAME.as_bytes()))?;
    let value = tag.get(at + NAME.len()..)?.trim_start();
    let value = value.strip_prefix('=')?.trim_start();
    let value = value.trim_start_matches(['"', '\'']);
    let is_end = |c: char| matches!(c, '"' | '\'' | ';' | '/') || c.is_ascii_whitespace();
    value.split(is_end).next().filter(|label| !label.is_empty())
}

/// Returns the charset that fits the bytes: UTF-8 if they can be that, or else what a detector makes of them and of the
/// country.
fn guess(url: &Url, start: &[u8]) -> &'static Encoding {
    match str::from_utf8(start) {
        Ok(_) => return UTF_8,
        // The bytes may be cut within a character.
        Err(error) if error.error_len().is_none() => return UTF_8,
        Err(_) => {}
    }
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(start, true);
    // The detector accepts the label of a country in small letters and nothing else.
    let country = match url.host() {
        Some(Host::Domain(name)) => name.trim_end_matches('.').rsplit('.').next(),
        _ => None,
    };
    let is_label = |label: &&str| label.bytes().all(|b| b.is_ascii_lowercase() || b == b'-');
    detector.guess(
        country.filter(is_label).map(str::as_bytes),
        Utf8Detection::Deny,
    )
}

/// A reader of the bytes of a charset as UTF-8, without their byte order mark. What cannot be decoded is read as
/// U+FFFD.
pub(crate) struct Utf8Reader<R> {
    inner: R,
    decoder: Decoder,
    text: Box<[u8]>,
    /// The part of the text that was not read yet.
    from: usize,
    to: usize,
    is_done: bool,
}

impl<R: BufRead> Utf8Reader<R> {
    pub(crate) fn new(inner: R, encoding: &'static Encoding) -> Self {
        Self {
            inner,
            decoder: encoding.new_decoder_with_bom_removal(),
            text: vec![0; PIECE].into(),
            from: 0,
            to: 0,
            is_done: false,
        }
    }
}

impl<R: BufRead> Read for Utf8Reader<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        read_buffered(self, out)
    }
}

impl<R: BufRead> BufRead for Utf8Reader<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        while self.from == self.to && !self.is_done {
            let bytes = self.inner.fill_buf()?;
            let is_last = bytes.is_empty();
            let (result, read, written, _) =
                self.decoder.decode_to_utf8(bytes, &mut self.text, is_last);
            self.inner.consume(read);
            (self.from, self.to) = (0, written);
            self.is_done = is_last && result == encoding_rs::CoderResult::InputEmpty;
        }
        Ok(self.text.get(self.from..self.to).unwrap_or_default())
    }

    fn consume(&mut self, amount: usize) {
        self.from = self.from.saturating_add(amount).min(self.to);
    }
}
