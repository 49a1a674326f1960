//! The words of a text, as a number: two pages that differ in numbers, order and markup only have the same one.
//!
//! Owns what counts as a word. Reads the first [`MAX_BYTES`] in time linear in their number, up to sorting the words.

use std::hash::{DefaultHasher, Hash, Hasher as _};

/// The most bytes of a text that are read.
pub const MAX_BYTES: usize = 256 << 10;

/// Returns a number for the set of words in a text, markup and scripts left out.
///
/// A word is a run of letters, of any script. Runs with a digit in them (dates, counters, session ids) are left out.
///
/// ```
/// use harvest_policy::quarantine::word_sketch;
///
/// assert_eq!(word_sketch(b"<td>May 2031<td>1<td>2"), word_sketch(b"<b>May 1999</b>"));
/// assert_ne!(word_sketch(b"May"), word_sketch(b"June"));
/// ```
pub fn word_sketch(text: &[u8]) -> u64 {
    let text = text.get(..MAX_BYTES).unwrap_or(text);
    let mut words: Vec<u64> = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let end = memchr::memchr(b'<', rest).unwrap_or(rest.len());
        let (shown, behind) = rest.split_at(end);
        add_words(shown, &mut words);
        rest = behind_markup(behind);
    }
    words.sort_unstable();
    words.dedup();
    hash_value(&words)
}

/// The meaning of a byte of text.
#[derive(Clone, Copy)]
enum ByteRole {
    Letter,
    /// A run of letters with this byte in it is no word.
    Digit,
    Separator,
}

const fn role(byte: u8) -> ByteRole {
    match byte {
        b'0'..=b'9' => ByteRole::Digit,
        b'a'..=b'z' | b'A'..=b'Z' | 128.. => ByteRole::Letter,
        _ => ByteRole::Separator,
    }
}

/// Adds the number of each word, by FNV-1a: most words are too short for a stronger function to pay.
fn add_words(text: &[u8], words: &mut Vec<u64>) {
    const BEGIN: u64 = 0xcbf2_9ce4_8422_2325;
    // The separator behind the text ends its last word.
    let bytes = text.iter().chain(b" ");
    bytes.fold((BEGIN, false), |(number, has_digit), &byte| {
        match role(byte) {
            ByteRole::Letter => {
                let number = (number ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
                (number, has_digit)
            }
            ByteRole::Digit => (number, true),
            ByteRole::Separator => {
                if number != BEGIN && !has_digit {
                    words.push(number);
                }
                (BEGIN, false)
            }
        }
    });
}

/// Returns the text behind the tag, or behind the script or style sheet, that it begins with.
fn behind_markup(text: &[u8]) -> &[u8] {
    let begins = |name: &[u8]| {
        let own = text.get(1..=name.len());
        own.is_some_and(|own| own.eq_ignore_ascii_case(name))
    };
    let elements: [(&[u8], &[u8]); 3] = [
        (b"script", b"</script"),
        (b"style", b"</style"),
        (b"!--", b"--"),
    ];
    let element = elements.into_iter().find(|(open, _)| begins(open));
    let inside = match element {
        Some((open, close)) => {
            let inside = text.get(1 + open.len()..).unwrap_or_default();
            inside.get(position(inside, close)..).unwrap_or_default()
        }
        None => text,
    };
    let end = memchr::memchr(b'>', inside).map_or(inside.len(), |end| end + 1);
    inside.get(end..).unwrap_or_default()
}

/// Returns the place of `wanted` in a text, in whatever case; its length if it is not there.
fn position(text: &[u8], wanted: &[u8]) -> usize {
    let mut windows = text.windows(wanted.len());
    windows
        .position(|window| window.eq_ignore_ascii_case(wanted))
        .unwrap_or(text.len())
}

pub(super) fn hash_value<T: Hash + ?Sized>(value: &T) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if numbers, order, markup or scripts tell two pages apart, or words do not.
    #[test]
    fn only_words_tell_pages_apart() {
        let page = b"<h1 class=x17>Calendar</h1><p>May 2031<a href=/s/abc/2>next</a>".as_slice();
        let same: [&[u8]; 5] = [
            b"Calendar next May",
            b"<h1 class=yy>Calendar</h1>2 May <b>17</b> <a href=/s/xyz/3>next</a> a1b2",
            b"<SCRIPT>var token = 'abc'; if (a<b) {}</SCRIPT >Calendar May next",
            b"<style>p>b {}</style>May<!-- <b>17 now --> next <i>Calendar",
            b"next next Calendar May, Calendar <",
        ];
        for other in same {
            assert_eq!(
                word_sketch(page),
                word_sketch(other),
                "{}",
                String::from_utf8_lossy(other)
            );
        }
        for other in [
            b"Calendar May".as_slice(),
            b"Calendar next June",
            "Calendar next May å".as_bytes(),
            b"",
        ] {
            assert_ne!(
                word_sketch(page),
                word_sketch(other),
                "{}",
                String::from_utf8_lossy(other)
            );
        }
    }

    /// Fails if unfinished markup, or much of it, takes a long time or ends the process.
    #[test]
    fn hostile_markup_is_read_once() {
        for piece in [
            "<",
            "<script>",
            "</script",
            "<!--",
            "a<",
            "<style",
            "--",
            "> <script",
        ] {
            let text = piece.repeat(MAX_BYTES);
            assert_eq!(
                word_sketch(text.as_bytes()),
                word_sketch(&text.as_bytes()[..MAX_BYTES]),
                "{piece}"
            );
        }
    }
}
