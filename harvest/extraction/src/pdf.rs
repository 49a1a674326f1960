//! Links of PDF files: the `/URI` strings of actions, in plain objects and in compressed object streams (ISO 32000-1
//! §12.6.4.7, §7.5.7).
//!
//! Reads no object tree: a string behind the name is enough. Encrypted files give strings that are no URLs, which are
//! left out.

use std::io::BufRead;

use encoding_rs::WINDOWS_1252;
use flate2::read::ZlibDecoder;
use harvest_policy::hops::Hop;
use memchr::memmem;

use crate::ExtractionLimits;
use crate::outlinks::{MAX_REFERENCE, Outlinks};
use crate::source::{ReadEnd, read_up_to};

/// The bytes before a stream in which its dictionary is looked for.
const DICTIONARY: usize = 2048;

/// Adds the links of a file: those of plain objects first.
pub(crate) fn pdf_links(
    input: &mut impl BufRead,
    outlinks: &mut Outlinks<'_>,
    limits: &ExtractionLimits,
) -> Result<(), ReadEnd> {
    let memory = limits.memory as u64;
    let bytes = read_up_to(input, memory);
    uris(&bytes, outlinks);
    let mut budget = limits.bytes;
    let mut at = 0;
    while let Some(found) = memmem::find(bytes.get(at..).unwrap_or_default(), b"stream") {
        let keyword = at + found;
        at = keyword + b"stream".len();
        let Some(data) = object_stream(&bytes, keyword) else {
            continue;
        };
        let mut inflater = ZlibDecoder::new(data);
        let objects = read_up_to(&mut inflater, memory.min(budget));
        uris(&objects, outlinks);
        budget = budget.saturating_sub(objects.len() as u64);
        // Bytes that were inflated are no place for another stream.
        at += usize::try_from(inflater.total_in()).unwrap_or(0);
        if budget == 0 {
            return Err(ReadEnd::Length);
        }
    }
    match input.fill_buf() {
        Ok([_, ..]) => Err(ReadEnd::Memory),
        Ok([]) | Err(_) => Ok(()),
    }
}

/// Returns the bytes behind the keyword `stream`, if they are a compressed object stream.
fn object_stream(bytes: &[u8], keyword: usize) -> Option<&[u8]> {
    let before = bytes.get(keyword.saturating_sub(DICTIONARY)..keyword)?;
    let begins = memmem::rfind(before, b"obj")?;
    let dictionary = before.get(begins..)?;
    let has = |name| memmem::find(dictionary, name).is_some();
    let is_objects = has(b"/ObjStm") && has(b"/FlateDecode");
    let data = bytes.get(keyword + b"stream".len()..)?;
    let data = data.strip_prefix(b"\r").unwrap_or(data);
    data.strip_prefix(b"\n").filter(|_| is_objects)
}

/// Adds the strings behind the name `/URI`.
fn uris(bytes: &[u8], outlinks: &mut Outlinks<'_>) {
    let mut rest = bytes;
    while let Some(at) = memmem::find(rest, b"/URI") {
        rest = rest.get(at + 4..).unwrap_or_default();
        let (value, behind) = rest.split_at(rest.len().min(MAX_REFERENCE));
        let (string, unread) = match value.trim_ascii_start() {
            [b'(', string @ ..] => literal(string),
            [b'<', digits @ ..] => hexadecimal(digits),
            _ => continue,
        };
        // What was read as a string is not read again, so that strings within strings take no longer.
        rest = rest
            .get(rest.len() - behind.len() - unread.len()..)
            .unwrap_or_default();
        let string = string.unwrap_or_default();
        let text = WINDOWS_1252.decode_without_bom_handling(&string).0;
        let text = text.trim();
        if text.chars().any(char::is_control) {
            continue;
        }
        let is_absolute = ["http://", "https://", "ftp://"].iter().any(|scheme| {
            let start = text.get(..scheme.len());
            start.is_some_and(|start| start.eq_ignore_ascii_case(scheme))
        });
        if is_absolute {
            outlinks.add_reference(text, Hop::Link, "=NAVLINK_MISC");
        } else if text.starts_with("www.") {
            outlinks.add_reference(&format!("http://{text}"), Hop::Link, "=NAVLINK_MISC");
        }
    }
}

/// Returns a string in parentheses, which may nest, with its escapes undone, and the bytes behind it; `None` if it is
/// cut.
fn literal(text: &[u8]) -> (Option<Vec<u8>>, &[u8]) {
    let mut string = Vec::new();
    let mut depth = 0_usize;
    let mut rest = text;
    while let Some((byte, behind)) = rest.split_first() {
        rest = behind;
        match byte {
            b')' if depth == 0 => return (Some(string), rest),
            b'\\' => {
                let digits = rest.iter().take(3).take_while(|b| matches!(b, b'0'..=b'7'));
                let (number, behind) = rest.split_at(digits.count());
                let octal = str::from_utf8(number).ok();
                if let Some(code) = octal.and_then(|it| u8::from_str_radix(it, 8).ok()) {
                    string.push(code);
                    rest = behind;
                } else if let Some((escaped, behind)) = rest.split_first() {
                    rest = behind;
                    match escaped {
                        // A line that continues.
                        b'\r' => rest = rest.strip_prefix(b"\n").unwrap_or(rest),
                        b'\n' => {}
                        other => string.push(*other),
                    }
                }
                continue;
            }
            b'(' => depth += 1,
            b')' => depth -= 1,
            _ => {}
        }
        string.push(*byte);
    }
    (None, rest)
}

/// Returns a string of hexadecimal digits, among blanks, and the bytes behind it; `None` if it is cut or has anything
/// else.
fn hexadecimal(text: &[u8]) -> (Option<Vec<u8>>, &[u8]) {
    let Some(end) = memchr::memchr(b'>', text) else {
        return (None, &[]);
    };
    let (text, behind) = text.split_at(end);
    let digits: Option<Vec<u32>> = text
        .iter()
        .filter(|byte| !byte.is_ascii_whitespace())
        .map(|byte| char::from(*byte).to_digit(16))
        .collect();
    let byte = |pair: &[u32]| {
        let high = pair.first()? << 4;
        u8::try_from(high | pair.get(1).unwrap_or(&0)).ok()
    };
    let bytes = digits.and_then(|digits| digits.chunks(2).map(byte).collect());
    (bytes, behind)
}
