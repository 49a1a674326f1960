//! The words of a text, and its numbers, as two hashes: pages that differ in order and markup only have the same ones.
//!
//! Owns what counts as a word and as a number. Reads the first [`MAX_BYTES`] in time linear in their number, up to sorting the words.

use std::hash::{DefaultHasher, Hash, Hasher as _};

use url::{Position, Url};

/// The most bytes of a text that are read.
pub const MAX_BYTES: usize = 256 << 10;

/// The numbers of a URI that are left out of its text.
const MOST_PLACES: usize = 16;

/// What a text says, as numbers that are the same for the same set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextSketch {
    /// The set of its words. `None` if there are none: a frameset, a page with an image.
    pub words: Option<u64>,
    /// The set of its numbers, but for those that the URI of the page has, and their neighbours: a page that counts up
    /// shows where it stands. `None` if there are none.
    pub numbers: Option<u64>,
}

/// Returns the sketch of the text at a URI, markup and scripts left out.
///
/// A word is a run of letters, of any script. Runs of letters and digits (counters, session ids) are left out.
///
/// ```
/// use harvest_policy::quarantine::text_sketch;
/// use url::Url;
///
/// let url = Url::parse("http://example.dk/rates/17")?;
/// let sketch = |text: &[u8]| text_sketch(text, &url);
/// assert_eq!(sketch(b"<td>May<td>745"), sketch(b"<b>17</b> May 745, 18"));
/// assert_eq!(sketch(b"May 745").words, sketch(b"May 752").words);
/// assert_ne!(sketch(b"May 745").numbers, sketch(b"May 752").numbers);
/// assert_ne!(sketch(b"May").words, sketch(b"June").words);
/// # Ok::<(), url::ParseError>(())
/// ```
pub fn text_sketch(text: &[u8], url: &Url) -> TextSketch {
    let text = text.get(..MAX_BYTES).unwrap_or(text);
    let mut found = FoundRuns::default();
    let mut rest = text;
    while !rest.is_empty() {
        let end = memchr::memchr(b'<', rest).unwrap_or(rest.len());
        let (shown, behind) = rest.split_at(end);
        found.add_runs(shown);
        rest = behind_markup(behind);
    }
    let mut of_uri = FoundRuns::default();
    of_uri.add_runs(url[Position::BeforePath..].as_bytes());
    of_uri.numbers.truncate(MOST_PLACES);
    let is_place = |number: &u64| of_uri.numbers.iter().any(|own| own.abs_diff(*number) <= 1);
    found.numbers.sort_unstable();
    found.numbers.dedup();
    found.numbers.retain(|number| !is_place(number));
    found.words.sort_unstable();
    found.words.dedup();
    TextSketch {
        words: (!found.words.is_empty()).then(|| hash_value(&found.words)),
        numbers: (!found.numbers.is_empty()).then(|| hash_value(&found.numbers)),
    }
}

/// The meaning of a byte of text.
#[derive(Clone, Copy)]
enum ByteRole {
    Letter,
    Digit(u8),
    Separator,
}

const fn role(byte: u8) -> ByteRole {
    match byte {
        b'0'..=b'9' => ByteRole::Digit(byte - b'0'),
        b'a'..=b'z' | b'A'..=b'Z' | 128.. => ByteRole::Letter,
        _ => ByteRole::Separator,
    }
}

/// The runs of letters, and those of digits, of a text.
#[derive(Debug, Default)]
struct FoundRuns {
    /// The hash of each run of letters, by FNV-1a: most words are too short for a stronger function to pay.
    words: Vec<u64>,
    /// The value of each run of digits, the last 64 bits of a long one.
    numbers: Vec<u64>,
}

impl FoundRuns {
    fn add_runs(&mut self, text: &[u8]) {
        const BEGIN: u64 = 0xcbf2_9ce4_8422_2325;
        let (mut word, mut number) = (BEGIN, None);
        // The separator behind the text ends its last run.
        for &byte in text.iter().chain(b" ") {
            match role(byte) {
                ByteRole::Letter => {
                    word = (word ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
                }
                ByteRole::Digit(digit) => {
                    let before: u64 = number.unwrap_or(0);
                    number = Some(before.wrapping_mul(10).wrapping_add(u64::from(digit)));
                }
                ByteRole::Separator => {
                    match number {
                        None if word != BEGIN => self.words.push(word),
                        Some(number) if word == BEGIN => self.numbers.push(number),
                        None | Some(_) => {}
                    }
                    (word, number) = (BEGIN, None);
                }
            }
        }
    }
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

    fn sketch(text: &[u8]) -> TextSketch {
        text_sketch(text, &Url::parse("http://a.dk/day/17?y=2031").unwrap())
    }

    /// Fails if order, markup or scripts tell two pages apart, or words do not.
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
            let shown = String::from_utf8_lossy(other);
            assert_eq!(sketch(page).words, sketch(other).words, "{shown}");
        }
        for other in [
            b"Calendar May".as_slice(),
            b"Calendar next June",
            "Calendar next May å".as_bytes(),
            b"",
        ] {
            let shown = String::from_utf8_lossy(other);
            assert_ne!(sketch(page).words, sketch(other).words, "{shown}");
        }
    }

    /// Fails if the place of a page in its row tells it apart, or the numbers that it is made for do not.
    #[test]
    fn numbers_besides_the_place_tell_pages_apart() {
        let page = sketch(b"<td>745.12<td>13");
        for same in [
            "13 745 12",
            "page 17, 16 18: 745.12 of 2031, 13 745",
            "13 a745 745 12",
        ] {
            assert_eq!(
                sketch(same.as_bytes()),
                TextSketch {
                    words: sketch(same.as_bytes()).words,
                    ..page
                },
                "{same}"
            );
        }
        for other in ["745 12", "13 745 12 14", "13 745 0"] {
            assert_ne!(sketch(other.as_bytes()).numbers, page.numbers, "{other}");
        }
        assert_eq!(sketch(b"17 a 2030 b2").numbers, None);
        // Not a panic.
        sketch(b"99999999999999999999999999999999 18446744073709551615 0");
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
                sketch(text.as_bytes()),
                sketch(&text.as_bytes()[..MAX_BYTES]),
                "{piece}"
            );
        }
    }
}
