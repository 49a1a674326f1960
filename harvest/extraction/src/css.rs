//! Links of style sheets: `url(…)`, the strings of `@import` and of `image-set(…)` (CSS Syntax Level 3).

use std::borrow::Cow;

use harvest_policy::hops::Hop;

use crate::outlinks::{MAX_REFERENCE, Outlinks};

/// Adds the links of a style sheet, or of a `style` attribute. A URL without an end is left out: its text may be cut.
pub(crate) fn css_links(text: &str, outlinks: &mut Outlinks<'_>) {
    let mut scanner = CssScanner {
        rest: text,
        rule: CssRule::Other,
        depth: 0,
        image_set: None,
    };
    while let Some(reference) = scanner.next_reference() {
        outlinks.add_reference(&unescape(reference), Hop::Embed, "=EMBED_MISC");
    }
}

/// The rule that a token belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CssRule {
    /// An `@import`: its string is a URL.
    Import,
    /// An `@namespace`: its URL is a name, and nothing is there.
    Namespace,
    Other,
}

impl CssRule {
    /// Returns the rule that begins behind an `@`.
    fn at_rule(text: &str) -> Self {
        let is = |name: &str| starts_with(text, name);
        if is("import") {
            Self::Import
        } else if is("namespace") {
            Self::Namespace
        } else {
            Self::Other
        }
    }
}

struct CssScanner<'a> {
    rest: &'a str,
    rule: CssRule,
    depth: usize,
    /// The depth of the parentheses of an `image-set`, where strings are URLs.
    image_set: Option<usize>,
}

impl<'a> CssScanner<'a> {
    /// Moves on to the next token of interest, and returns its URL, still with its escapes, or an empty text. `None` at
    /// the end.
    fn next_reference(&mut self) -> Option<&'a str> {
        let stops = |byte: u8| {
            matches!(
                byte,
                b'/' | b'"' | b'\'' | b'(' | b')' | b'@' | b';' | b'{' | b'}' | b'\\'
            )
        };
        let at = self.rest.bytes().position(stops)?;
        let (before, token) = self.rest.split_at(at);
        let byte = *token.as_bytes().first()?;
        self.rest = token.get(1..)?;
        match byte {
            b'/' => {
                if let Some(comment) = self.rest.strip_prefix('*') {
                    let end = memchr::memmem::find(comment.as_bytes(), b"*/")?;
                    self.rest = comment.get(end + 2..)?;
                }
            }
            b'\\' => {
                let mut rest = self.rest.chars();
                rest.next()?;
                self.rest = rest.as_str();
            }
            b'"' | b'\'' => {
                let is_url = self.rule == CssRule::Import || self.image_set == Some(self.depth);
                let string = self.string(byte)?;
                self.rule = CssRule::Other;
                return Some(if is_url { string } else { "" });
            }
            b'(' if ends_with_name(before, "url") => {
                let url = self.url()?;
                let is_name = self.rule == CssRule::Namespace;
                self.rule = CssRule::Other;
                return Some(if is_name { "" } else { url });
            }
            b'(' => {
                self.depth += 1;
                if ends_with_name(before, "image-set") {
                    self.image_set = Some(self.depth);
                }
            }
            b')' => {
                self.image_set = self.image_set.filter(|depth| *depth != self.depth);
                self.depth = self.depth.saturating_sub(1);
            }
            b'@' => self.rule = CssRule::at_rule(self.rest),
            _ => {
                self.rule = CssRule::Other;
                self.depth = 0;
                self.image_set = None;
            }
        }
        Some("")
    }

    /// Returns the string that ends with this quote; empty if a line ends it, `None` if nothing does.
    fn string(&mut self, quote: u8) -> Option<&'a str> {
        let text = self.rest;
        let mut is_escaped = false;
        for (at, byte) in text.bytes().enumerate() {
            match byte {
                _ if is_escaped => is_escaped = false,
                b'\\' => is_escaped = true,
                b'\n' => {
                    self.rest = text.get(at..)?;
                    return Some("");
                }
                _ if byte == quote => {
                    self.rest = text.get(at + 1..)?;
                    return text.get(..at);
                }
                _ => {}
            }
        }
        None
    }

    /// Returns the URL behind `url(`, with quotation marks or without; empty if it is bad, `None` if nothing ends it.
    fn url(&mut self) -> Option<&'a str> {
        self.rest = self.rest.trim_ascii_start();
        let url = if let quote @ (b'"' | b'\'') = self.rest.as_bytes().first()? {
            self.rest = self.rest.get(1..)?;
            self.string(*quote)?
        } else {
            let end = find_unescaped(self.rest, |byte| byte == b')')?;
            let (url, rest) = self.rest.split_at(end);
            self.rest = rest;
            let url = url.trim_ascii_end();
            if is_bad(url) { "" } else { url }
        };
        let end = memchr::memchr(b')', self.rest.as_bytes())?;
        self.rest = self.rest.get(end + 1..)?;
        Some(url)
    }
}

/// Returns the place of the first byte that is wanted and not escaped.
fn find_unescaped(text: &str, is_wanted: impl Fn(u8) -> bool) -> Option<usize> {
    let mut is_escaped = false;
    text.bytes().position(|byte| {
        let is_found = !is_escaped && is_wanted(byte);
        is_escaped = !is_escaped && byte == b'\\';
        is_found
    })
}

/// Returns whether a URL without quotation marks has a character in it that it must not have. The blank that ends the
/// digits of an escape may be there.
fn is_bad(url: &str) -> bool {
    let mut rest = url;
    while let Some((before, behind)) = rest.split_once('\\') {
        if before.contains(is_bad_character) {
            return true;
        }
        let (_, behind) = unescape_one(behind);
        rest = behind;
    }
    rest.contains(is_bad_character)
}

const fn is_bad_character(c: char) -> bool {
    c.is_ascii_whitespace() || matches!(c, '"' | '\'' | '(')
}

fn starts_with(text: &str, name: &str) -> bool {
    text.get(..name.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(name))
}

/// Returns whether a text ends with the name of a function, in any case; a vendor's prefix may stand before it.
fn ends_with_name(text: &str, name: &str) -> bool {
    let Some(start) = text.len().checked_sub(name.len()) else {
        return false;
    };
    let is_it = text
        .get(start..)
        .is_some_and(|end| end.eq_ignore_ascii_case(name));
    let before = text.get(..start).and_then(|text| text.chars().next_back());
    is_it && before.is_none_or(|c| !c.is_alphanumeric() && c != '_')
}

/// Returns the character that is escaped at the start of a text, if one is, and what follows it.
fn unescape_one(text: &str) -> (Option<char>, &str) {
    let digits = text.bytes().take(6).take_while(u8::is_ascii_hexdigit);
    let (number, next) = text.split_at(digits.count());
    if let Ok(number) = u32::from_str_radix(number, 16) {
        let escaped = char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER);
        (
            Some(escaped),
            next.strip_prefix([' ', '\t', '\n']).unwrap_or(next),
        )
    } else {
        let mut next = next.chars();
        (
            next.next().filter(|escaped| *escaped != '\n'),
            next.as_str(),
        )
    }
}

/// Returns the text without its escapes: `\` with up to six hexadecimal digits, with a line end, or with any character.
fn unescape(text: &str) -> Cow<'_, str> {
    if text.len() > MAX_REFERENCE || !text.contains('\\') {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('\\') {
        plain.push_str(before);
        let (escaped, next) = unescape_one(behind);
        plain.extend(escaped);
        rest = next;
    }
    plain.push_str(rest);
    Cow::Owned(plain)
}
