//! HTML as jobs read it: its characters, and its tokens.
//!
//! Owns which encoding a page is in. Builds no tree: tokens are enough for links and text.

use std::borrow::Cow;

use archive_formats::http::MediaType;
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252, X_USER_DEFINED};
use html5gum::{DefaultEmitter, StartTag, Token, Tokenizer};

/// How far into a page it may say its encoding.
const PRESCAN: usize = 1024;

/// Whether it is a page of HTML.
pub(super) fn is_html(media: &MediaType) -> bool {
    matches!(
        media.essence.as_str(),
        "text/html" | "application/xhtml+xml"
    )
}

/// The characters of a page, and the encoding they were in: by its mark, what the server says, what the page says; else
/// UTF-8 if it can be that, and Windows-1252 if not, as browsers do.
pub(super) fn decode<'a>(bytes: &'a [u8], media: &MediaType) -> (Cow<'a, str>, &'static Encoding) {
    let named = |label: &str| Encoding::for_label_no_replacement(label.trim().as_bytes());
    let said = media.charset.as_deref().and_then(named);
    let encoding = said
        .or_else(|| declared(bytes).filter(|_| is_html(media)))
        .unwrap_or_else(|| {
            let is_utf8 = match std::str::from_utf8(bytes) {
                Ok(_) => true,
                // Cut within a character at the end.
                Err(error) => error.error_len().is_none(),
            };
            if is_utf8 { UTF_8 } else { WINDOWS_1252 }
        });
    let (text, encoding, _) = encoding.decode(bytes);
    (text, encoding)
}

/// What a page says of its encoding within itself.
fn declared(bytes: &[u8]) -> Option<&'static Encoding> {
    let start = bytes.get(..PRESCAN).unwrap_or(bytes);
    let start = String::from_utf8_lossy(start);
    let named = |label: &str| Encoding::for_label_no_replacement(label.trim().as_bytes());
    let mut found = None;
    if let Some(declaration) = start.strip_prefix("<?xml") {
        let declaration = declaration.split("?>").next().unwrap_or_default();
        let value = declaration.split_once("encoding").map(|(_, rest)| rest);
        let value = value.and_then(|rest| rest.split(['"', '\'']).nth(1));
        found = value.and_then(named);
    }
    let found = found.or_else(|| {
        tokens(&start).find_map(|token| {
            let Token::StartTag(tag) = token else {
                return None;
            };
            if tag.name.as_slice() != b"meta" {
                return None;
            }
            if let Some(charset) = attribute(&tag, "charset") {
                return named(&charset);
            }
            let is_type = attribute(&tag, "http-equiv")
                .is_some_and(|name| name.trim().eq_ignore_ascii_case("content-type"));
            let content = attribute(&tag, "content").filter(|_| is_type)?;
            named(&MediaType::read(content.as_bytes())?.charset?)
        })
    })?;
    // Who could read this in ASCII does not see UTF-16.
    Some(if found == UTF_16BE || found == UTF_16LE {
        UTF_8
    } else if found == X_USER_DEFINED {
        WINDOWS_1252
    } else {
        found
    })
}

/// The tokens of a page. What is in scripts and the like is one string.
pub(super) fn tokens(text: &str) -> impl Iterator<Item = Token> {
    let mut emitter = DefaultEmitter::default();
    emitter.naively_switch_states(true);
    Tokenizer::new_with_emitter(text, emitter).map(|token| {
        let Ok(token) = token;
        token
    })
}

/// The value of an attribute.
pub(super) fn attribute<'a>(tag: &'a StartTag<()>, name: &str) -> Option<Cow<'a, str>> {
    let value = tag.attributes.get(name.as_bytes())?;
    Some(String::from_utf8_lossy(&value.value))
}
