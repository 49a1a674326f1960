//! The kind of a captured document: page, style sheet, drawing, or anything else.
//!
//! Owns how the kind is known from the `Content-Type` and the first bytes, and which `Content-Type` an answer has then.
//! An archived field is never passed on where a browser could read it differently than this module did.

use archive_formats::http::MediaType;

/// The kind of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentKind {
    /// A page of HTML, or of XHTML, which is shown as HTML.
    Page,
    /// A style sheet.
    StyleSheet,
    /// A drawing in SVG, in which scripts and links can stand.
    Drawing,
    /// XML, and whatever a browser could take for a page: shown as text.
    Markup,
    /// Anything else.
    Other,
}

/// The media types of pages.
const PAGES: [&str; 2] = ["text/html", "application/xhtml+xml"];

/// The media types that say nothing.
const UNKNOWN: [&str; 4] = ["", "*/*", "unknown/unknown", "application/unknown"];

/// The beginnings of a page, in capitals (WHATWG MIME Sniffing, "rules for identifying an unknown MIME type").
const BEGINNINGS: [&[u8]; 17] = [
    b"<!DOCTYPE HTML",
    b"<HTML",
    b"<HEAD",
    b"<SCRIPT",
    b"<IFRAME",
    b"<H1",
    b"<DIV",
    b"<FONT",
    b"<TABLE",
    b"<A",
    b"<STYLE",
    b"<TITLE",
    b"<B",
    b"<BODY",
    b"<BR",
    b"<P",
    b"<!--",
];

impl ContentKind {
    /// Returns the kind of a document with this `Content-Type` that begins with these bytes.
    pub fn read_kind(content_type: Option<&[u8]>, start: &[u8]) -> Self {
        let essence = essence(content_type);
        if PAGES.contains(&essence.as_str()) {
            Self::Page
        } else if essence == "text/css" {
            Self::StyleSheet
        } else if essence == "image/svg+xml" {
            Self::Drawing
        } else if UNKNOWN.contains(&essence.as_str()) {
            if is_like_page(start) {
                Self::Page
            } else {
                Self::Other
            }
        } else if essence.ends_with("xml")
            || essence.starts_with("multipart/")
            || essence.starts_with("message/")
            || essence == "text/xsl"
            || !is_plain(&essence)
        {
            Self::Markup
        } else {
            Self::Other
        }
    }
}

/// Returns whether a page of this `Content-Type` is XML to browsers, and no HTML.
pub fn is_xml_page(content_type: Option<&[u8]>) -> bool {
    essence(content_type) == "application/xhtml+xml"
}

/// Returns whether a `Content-Type` names the kind of a document, so that its bytes need not be looked at.
pub fn names_kind(content_type: Option<&[u8]>) -> bool {
    !UNKNOWN.contains(&essence(content_type).as_str())
}

/// Returns the `Content-Type` with which a document that is no page of ours is shown: one that can be read in one way.
pub fn document_type(kind: ContentKind, content_type: Option<&[u8]>) -> String {
    let media = content_type.and_then(MediaType::read_media);
    let charset = media.and_then(|media| media.charset);
    let charset = charset.filter(|charset| is_token(charset));
    let charset = charset.map_or(String::new(), |charset| format!("; charset={charset}"));
    match kind {
        ContentKind::Page
        | ContentKind::Markup
        | ContentKind::Drawing
        | ContentKind::StyleSheet => format!("text/plain{charset}"),
        ContentKind::Other => match essence(content_type) {
            unknown if UNKNOWN.contains(&unknown.as_str()) => format!("text/plain{charset}"),
            essence => format!("{essence}{charset}"),
        },
    }
}

fn essence(content_type: Option<&[u8]>) -> String {
    let media = content_type.and_then(MediaType::read_media);
    media.map_or_else(String::new, |media| {
        media.essence.trim().to_ascii_lowercase()
    })
}

/// Returns whether a media type is two tokens with a slash between them.
fn is_plain(essence: &str) -> bool {
    essence
        .split_once('/')
        .is_some_and(|(kind, name)| is_token(kind) && is_token(name))
}

fn is_token(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"!#$&^_.+-:".contains(&b))
}

/// Returns whether bytes begin as pages do.
fn is_like_page(start: &[u8]) -> bool {
    let start = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start);
    let start = start.trim_ascii_start();
    BEGINNINGS.iter().any(|beginning| {
        let found = start.get(..beginning.len());
        let is_ended = || matches!(start.get(beginning.len()), Some(b' ' | b'>'));
        let is_comment = *beginning == b"<!--".as_slice();
        found.is_some_and(|found| found.eq_ignore_ascii_case(beginning))
            && (is_comment || is_ended())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a page passes for something else, or something else for a page.
    #[test]
    fn kinds_are_distinguished() {
        use ContentKind::{Drawing, Markup, Other, Page, StyleSheet};
        for (content_type, start, expected) in [
            (Some("text/html"), "x", Page),
            (Some(" Text/HTML ; charset=x"), "", Page),
            (Some("application/xhtml+xml"), "", Page),
            (None, " \n<!doctype html><p>", Page),
            (None, "<a href=x>", Page),
            (None, "<address>", Other),
            (None, "\u{feff}<!--x", Page),
            (Some("*/*"), "<html>", Page),
            (None, "plain", Other),
            (Some("text/plain"), "<html>", Other),
            (Some("text/css"), "", StyleSheet),
            (Some("image/svg+xml"), "", Drawing),
            (Some("application/rss+xml"), "", Markup),
            (Some("text/xml"), "", Markup),
            (Some("multipart/x-mixed-replace"), "", Markup),
            (Some("image/png, text/html"), "", Other),
            (Some("image/png<, text/html"), "", Markup),
            (Some("image/png"), "<html>", Other),
            (Some("application/pdf"), "", Other),
        ] {
            let found = ContentKind::read_kind(content_type.map(str::as_bytes), start.as_bytes());
            assert_eq!(found, expected, "{content_type:?} {start}");
        }
    }

    /// Fails if a browser could read the type of an answer as that of a page.
    #[test]
    fn document_types_are_read_in_one_way() {
        for (content_type, expected) in [
            (Some("image/png"), "image/png"),
            (Some("IMAGE/PNG; q=1"), "image/png"),
            (
                Some("text/plain; charset=iso-8859-1"),
                "text/plain; charset=iso-8859-1",
            ),
            (Some("image/png, text/html"), "image/png"),
            (Some("image/<png>"), "text/plain"),
            (Some("text/html"), "text/plain"),
            (Some("application/xml"), "text/plain"),
            (Some("image/svg+xml"), "text/plain"),
            (None, "text/plain"),
        ] {
            let content_type = content_type.map(str::as_bytes);
            let kind = ContentKind::read_kind(content_type, b"");
            assert_eq!(
                document_type(kind, content_type),
                expected,
                "{content_type:?}"
            );
        }
    }
}
