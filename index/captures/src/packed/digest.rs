//! Digests: their bytes for the usual spellings, and text for all others.

use data_encoding::{BASE32, Encoding, HEXLOWER};

use super::take_byte;
use super::text::{put_text, take_text};

/// A spelling: the label, the letters, and how many bytes there are.
struct Spelling {
    label: &'static str,
    letters: Encoding,
    bytes: usize,
}

impl Spelling {
    const fn new(label: &'static str, letters: Encoding, bytes: usize) -> Self {
        Self {
            label,
            letters,
            bytes,
        }
    }
}

/// The usual spellings. A spelling is its place in this list, from 1: the list only grows at its end.
static USUAL: [Spelling; 8] = [
    Spelling::new("sha1:", BASE32, 20),
    Spelling::new("", BASE32, 20),
    Spelling::new("sha256:", HEXLOWER, 32),
    Spelling::new("md5:", HEXLOWER, 16),
    Spelling::new("", HEXLOWER, 16),
    Spelling::new("sha1:", HEXLOWER, 20),
    Spelling::new("blake3:", HEXLOWER, 32),
    Spelling::new("", HEXLOWER, 32),
];

/// The most bytes that a usual digest has.
const MOST_BYTES: usize = 32;

/// Writes a digest.
pub(super) fn put_digest(out: &mut Vec<u8>, digest: &str) {
    for (number, spelling) in (1..).zip(&USUAL) {
        let Some(value) = digest.strip_prefix(spelling.label) else {
            continue;
        };
        if value.len() != spelling.letters.encode_len(spelling.bytes) {
            continue;
        }
        // Both alphabets are strict: what decodes is spelled again as it was.
        let mut bytes = [0; MOST_BYTES];
        let Some(bytes) = bytes.get_mut(..spelling.bytes) else {
            continue;
        };
        let decoded = spelling.letters.decode_mut(value.as_bytes(), bytes);
        if decoded.is_ok_and(|length| length == spelling.bytes) {
            out.push(number);
            out.extend_from_slice(bytes);
            return;
        }
    }
    out.push(0);
    put_text(out, digest);
}

/// Reads a digest.
pub(super) fn take_digest(rest: &mut &[u8]) -> Option<String> {
    let Some(at) = take_byte(rest)?.checked_sub(1) else {
        return take_text(rest).map(str::to_owned);
    };
    let spelling = USUAL.get(usize::from(at))?;
    let (bytes, tail) = rest.split_at_checked(spelling.bytes)?;
    *rest = tail;
    let mut text = spelling.label.to_owned();
    spelling.letters.encode_append(bytes, &mut text);
    Some(text)
}
