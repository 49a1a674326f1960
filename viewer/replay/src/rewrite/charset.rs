//! The charset of a page: byte order mark, HTTP, `meta`, and then a guess.

use std::borrow::Cow;

use archive_formats::http::MediaType;
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252, X_USER_DEFINED};

/// The number of bytes at the beginning of a page that are looked at.
pub const START_OF_PAGE: usize = 1024;

/// Returns the charset of a page, from its `Content-Type` and its first bytes; a guess if neither names one.
///
/// References of a page depend on it where they have characters beyond ASCII; the bytes of the page are not changed by
/// it.
pub fn page_encoding(content_type: Option<&[u8]>, start: &[u8]) -> &'static Encoding {
    if let Some((encoding, _)) = Encoding::for_bom(start) {
        return encoding;
    }
    let start = start.get(..START_OF_PAGE).unwrap_or(start);
    let header = content_type
        .and_then(MediaType::read_media)
        .and_then(|media| media.charset);
    let header =
        header.and_then(|label| Encoding::for_label_no_replacement(label.trim().as_bytes()));
    header
        .or_else(|| declared(start))
        .unwrap_or_else(|| match str::from_utf8(start) {
            Ok(_) => UTF_8,
            // The bytes may be cut within a character.
            Err(error) if error.error_len().is_none() => UTF_8,
            Err(_) => WINDOWS_1252,
        })
}

/// Returns the text of a style sheet: its charset is that of the byte order mark, of HTTP, or of its `@charset` (CSS
/// Syntax Level 3).
pub fn sheet_text<'a>(content_type: Option<&[u8]>, bytes: &'a [u8]) -> Cow<'a, str> {
    const RULE: &[u8] = b"@charset \"";
    let header = content_type
        .and_then(MediaType::read_media)
        .and_then(|media| media.charset)
        .and_then(|label| Encoding::for_label_no_replacement(label.trim().as_bytes()));
    let own = || {
        let label = bytes.strip_prefix(RULE)?.split(|b| *b == b'"').next()?;
        let found = Encoding::for_label_no_replacement(label)?;
        // A declaration that can be read as ASCII is not UTF-16.
        Some(if found == UTF_16BE || found == UTF_16LE {
            UTF_8
        } else {
            found
        })
    };
    let encoding = header.or_else(own).unwrap_or(match str::from_utf8(bytes) {
        Ok(_) => UTF_8,
        Err(_) => WINDOWS_1252,
    });
    encoding.decode(bytes).0
}

/// Returns the charset that a `meta` element names. One that can be read in ASCII is not UTF-16.
fn declared(start: &[u8]) -> Option<&'static Encoding> {
    const NAME: &[u8] = b"charset";
    let mut rest = start;
    while let Some(at) = rest
        .windows(NAME.len())
        .position(|window| window.eq_ignore_ascii_case(NAME))
    {
        rest = rest.get(at + NAME.len()..)?;
        let value = rest.trim_ascii_start();
        let Some(value) = value.strip_prefix(b"=") else {
            continue;
        };
        let value = value.trim_ascii_start();
        let is_quote = |byte: &u8| matches!(byte, b'"' | b'\'');
        let value = value.get(value.iter().take_while(|byte| is_quote(byte)).count()..)?;
        let is_end = |byte: &u8| {
            is_quote(byte) || matches!(byte, b';' | b'/' | b'>') || byte.is_ascii_whitespace()
        };
        let label = value.split(is_end).next()?;
        if let Some(found) = Encoding::for_label_no_replacement(label) {
            return Some(if found == UTF_16BE || found == UTF_16LE {
                UTF_8
            } else if found == X_USER_DEFINED {
                WINDOWS_1252
            } else {
                found
            });
        }
    }
    None
}
