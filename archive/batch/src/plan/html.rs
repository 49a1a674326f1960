//! HTML as jobs read it: its characters, and its pieces.
//!
//! Owns which encoding a page is in. Builds no tree: pieces are enough for links and text.

use std::borrow::Cow;

use archive_formats::http::MediaType;
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252, X_USER_DEFINED};
use html5gum::emitters::callback::{Callback, CallbackEmitter, CallbackEvent};
use html5gum::{Span, Tokenizer};

use super::view::LARGEST_PAGE;

/// The most bytes of a page within which it may name its encoding.
const PRESCAN: usize = 1024;

/// The most attributes of an element that are looked at.
const MOST_ATTRIBUTES: usize = 256;

/// Whether the media type is that of a page of HTML.
pub(super) fn is_html(media: &MediaType) -> bool {
    matches!(
        media.essence.as_str(),
        "text/html" | "application/xhtml+xml"
    )
}

/// Decodes a page, and returns its characters and their encoding: by the byte order mark, by the server's word, by the
/// page's word; otherwise UTF-8 if the bytes can be that, and Windows-1252 if not, as browsers do.
pub(super) fn decode_page<'a>(
    bytes: &'a [u8],
    media: &MediaType,
) -> (Cow<'a, str>, &'static Encoding) {
    let named = |label: &str| Encoding::for_label_no_replacement(label.trim().as_bytes());
    let said = media.charset.as_deref().and_then(named);
    let encoding = said
        .or_else(|| declared(bytes).filter(|_| is_html(media)))
        .unwrap_or_else(|| {
            let is_cut = bytes.len() as u64 >= LARGEST_PAGE;
            let is_utf8 = match std::str::from_utf8(bytes) {
                Ok(_) => true,
                // A page that was not read to its end may end within a character.
                Err(error) => is_cut && error.error_len().is_none(),
            };
            if is_utf8 { UTF_8 } else { WINDOWS_1252 }
        });
    let (text, encoding, _) = encoding.decode(bytes);
    (text, encoding)
}

/// Returns the encoding that a page names within itself.
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
        page_pieces(&start).find_map(|piece| {
            let Piece::Start(meta) = piece else {
                return None;
            };
            if meta.name != b"meta" {
                return None;
            }
            if let Some(charset) = meta.attribute("charset") {
                return named(&charset);
            }
            let is_type = meta
                .attribute("http-equiv")
                .is_some_and(|name| name.trim().eq_ignore_ascii_case("content-type"));
            let content = meta.attribute("content").filter(|_| is_type)?;
            named(&MediaType::read_media(content.as_bytes())?.charset?)
        })
    })?;
    // A declaration that could be read as ASCII is not in UTF-16.
    Some(if found == UTF_16BE || found == UTF_16LE {
        UTF_8
    } else if found == X_USER_DEFINED {
        WINDOWS_1252
    } else {
        found
    })
}

/// A piece of a page.
pub(super) enum Piece {
    /// An element begins.
    Start(Element),
    /// An element ends: its name.
    End(Vec<u8>),
    /// Characters, with no piece of another kind between them. The content of a script or the like is one text.
    Text(String),
}

/// An element as it begins; names are in small letters.
#[derive(Default)]
pub(super) struct Element {
    pub(super) name: Vec<u8>,
    attributes: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Element {
    /// Returns the value of an attribute; of several attributes of one name, that of the first.
    pub(super) fn attribute(&self, name: &str) -> Option<Cow<'_, str>> {
        let is_it = |(known, _): &&(Vec<u8>, Vec<u8>)| known == name.as_bytes();
        let (_, value) = self.attributes.iter().find(is_it)?;
        Some(String::from_utf8_lossy(value))
    }
}

/// Returns the pieces of a page without its comments. An element has its first few hundred attributes only.
pub(super) fn page_pieces(text: &str) -> impl Iterator<Item = Piece> {
    let mut emitter = CallbackEmitter::new(PieceBuilder::default());
    emitter.naively_switch_states(true);
    Tokenizer::new_with_emitter(text, emitter).map(|piece| {
        let Ok(piece) = piece;
        piece
    })
}

/// Puts together what the tokenizer says of an element.
#[derive(Default)]
struct PieceBuilder {
    element: Element,
    is_kept: bool,
}

impl Callback<Piece, ()> for PieceBuilder {
    fn handle_event(&mut self, event: CallbackEvent<'_>, _: Span<()>) -> Option<Piece> {
        let attributes = &mut self.element.attributes;
        match event {
            CallbackEvent::OpenStartTag { name } => {
                attributes.clear();
                self.element.name = name.to_vec();
                None
            }
            CallbackEvent::AttributeName { name } => {
                self.is_kept = attributes.len() < MOST_ATTRIBUTES;
                if self.is_kept {
                    attributes.push((name.to_vec(), Vec::new()));
                }
                None
            }
            CallbackEvent::AttributeValue { value } => {
                if let Some((_, last)) = attributes.last_mut().filter(|_| self.is_kept) {
                    last.extend_from_slice(value);
                }
                None
            }
            CallbackEvent::CloseStartTag { .. } => {
                Some(Piece::Start(std::mem::take(&mut self.element)))
            }
            CallbackEvent::EndTag { name } => {
                attributes.clear();
                Some(Piece::End(name.to_vec()))
            }
            CallbackEvent::String { value } => {
                Some(Piece::Text(String::from_utf8_lossy(value).into_owned()))
            }
            _ => None,
        }
    }
}
