//! Links in scripts and in JSON: the string literals that look like URLs.
//!
//! Owns where literals begin and end, among comments, regular expressions and templates, and their escapes. JSON is
//! read by the same rules, because its strings are literals of scripts. Runs nothing.

use std::borrow::Cow;

use harvest_policy::hops::Hop;

use crate::outlinks::{MAX_REFERENCE, Outlinks};
use crate::speculation::looks_like_url;

/// The deepest nesting of templates within templates that is followed.
const MAX_TEMPLATES: usize = 32;

/// Adds the strings of a script or of JSON that look like URLs.
pub(crate) fn script_links(text: &str, outlinks: &mut Outlinks<'_>) {
    literals(text, |literal| {
        let literal = unescape(literal);
        let literal = literal.trim();
        if looks_like_url(literal) {
            outlinks.add_reference(literal, Hop::Speculative, "=JS_MISC");
        }
    });
}

/// Returns the string literals of a text with their escapes; those that are too long for a URL, that are templates with
/// expressions, or that the text cuts, are left out.
fn literals<'a>(text: &'a str, mut found: impl FnMut(&'a str)) {
    let bytes = text.as_bytes();
    // The number of open braces within each expression of a template.
    let mut templates: Vec<usize> = Vec::new();
    let mut slashes = SlashScanner {
        bytes,
        plain_until: 0,
    };
    let mut at = 0;
    while let Some(byte) = bytes.get(at).copied() {
        let end = match byte {
            b'"' | b'\'' => string_end(bytes, at + 1, byte),
            b'`' => template_end(bytes, at + 1),
            b'}' if templates.last() == Some(&0) => {
                templates.pop();
                // The rest of a template that has an expression.
                let end = template_end(bytes, at + 1);
                at = end.map_or(bytes.len(), |end| enter(bytes, end, &mut templates));
                continue;
            }
            b'/' => {
                at = slashes.end(at);
                continue;
            }
            b'{' | b'}' => {
                if let Some(open) = templates.last_mut() {
                    *open = if byte == b'{' {
                        open.saturating_add(1)
                    } else {
                        open.saturating_sub(1)
                    };
                }
                at += 1;
                continue;
            }
            _ => {
                at += 1;
                continue;
            }
        };
        let Some(end) = end else { return };
        if bytes.get(end) == Some(&byte) && end - at <= MAX_REFERENCE {
            found(text.get(at + 1..end).unwrap_or_default());
        }
        at = enter(bytes, end, &mut templates);
    }
}

/// Returns the position behind the end of a literal; an expression of a template is entered.
fn enter(bytes: &[u8], end: usize, templates: &mut Vec<usize>) -> usize {
    if bytes.get(end) != Some(&b'$') {
        return end + 1;
    }
    if templates.len() < MAX_TEMPLATES {
        templates.push(0);
    }
    end + 2
}

/// Returns the end of the string that began before `from`: at its quote, or at the line end that breaks it. `None` if
/// it is cut.
fn string_end(bytes: &[u8], from: usize, quote: u8) -> Option<usize> {
    let mut at = from;
    loop {
        at += memchr::memchr3(quote, b'\\', b'\n', bytes.get(at..)?)?;
        if bytes.get(at) != Some(&b'\\') {
            return Some(at);
        }
        at += 2;
    }
}

/// Returns the end of the template, or of the part of it before an expression: at its quote, or at `${`. `None` if it
/// is cut.
fn template_end(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        at += memchr::memchr3(b'`', b'\\', b'$', bytes.get(at..)?)?;
        match bytes.get(at)? {
            b'\\' => at += 2,
            b'$' if bytes.get(at + 1) != Some(&b'{') => at += 1,
            _ => return Some(at),
        }
    }
}

/// The slashes of a script.
struct SlashScanner<'a> {
    bytes: &'a [u8],
    /// The end of the line in which no regular expression was found to end: its slashes are not tried again.
    plain_until: usize,
}

impl SlashScanner<'_> {
    /// Returns the position behind a comment, a regular expression or a division that begins with the slash at a
    /// position.
    fn end(&mut self, slash: usize) -> usize {
        let bytes = self.bytes;
        let rest = bytes.get(slash + 1..).unwrap_or_default();
        match rest.first() {
            Some(b'/') => memchr::memchr(b'\n', rest).map_or(bytes.len(), |at| slash + 2 + at),
            Some(b'*') => {
                let inside = rest.get(1..).unwrap_or_default();
                memchr::memmem::find(inside, b"*/").map_or(bytes.len(), |at| slash + 4 + at)
            }
            _ if slash < self.plain_until
                || is_division(bytes.get(..slash).unwrap_or_default()) =>
            {
                slash + 1
            }
            _ => {
                let (length, is_ended) = expression(rest);
                if is_ended {
                    slash + 2 + length
                } else {
                    self.plain_until = slash + 1 + length;
                    slash + 1
                }
            }
        }
    }
}

/// Returns whether a slash behind these bytes divides: behind a value it does, behind an operator or `return` an
/// expression begins.
fn is_division(before: &[u8]) -> bool {
    const KEYWORDS: [&[u8]; 4] = [b"return", b"typeof", b"case", b"in"];
    /// The bytes that are looked back, so that many slashes behind many blanks take no longer than the text.
    const FAR: usize = 64;
    let near = before.get(before.len().saturating_sub(FAR)..);
    let near = near.unwrap_or_default().trim_ascii_end();
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$');
    match near.last() {
        Some(b')' | b']' | b'}' | b'"' | b'\'' | b'`') => true,
        Some(byte) if is_name(byte) => {
            let length = near.iter().rev().take_while(|byte| is_name(byte)).count();
            let word = near.get(near.len() - length..).unwrap_or_default();
            !KEYWORDS.contains(&word)
        }
        _ => false,
    }
}

/// Returns the length of a regular expression, and whether a slash ends it within its line.
fn expression(bytes: &[u8]) -> (usize, bool) {
    let mut is_escaped = false;
    let mut is_class = false;
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'\n' => return (at, false),
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'[' => is_class = true,
            b']' => is_class = false,
            b'/' if !is_class => return (at, true),
            _ => {}
        }
    }
    (bytes.len(), false)
}

/// Returns the literal without its escapes.
fn unescape(literal: &str) -> Cow<'_, str> {
    if !literal.contains('\\') {
        return Cow::Borrowed(literal);
    }
    let mut plain = String::with_capacity(literal.len());
    let mut rest = literal;
    while let Some((before, behind)) = rest.split_once('\\') {
        plain.push_str(before);
        let mut next = behind.chars();
        let escape = next.next();
        rest = next.as_str();
        match escape {
            Some('x') => rest = push_code(&mut plain, rest, 2),
            Some('u') => match rest.strip_prefix('{').and_then(|it| it.split_once('}')) {
                Some((digits, behind)) if digits.len() <= 6 => {
                    push_code(&mut plain, digits, digits.len());
                    rest = behind;
                }
                _ => rest = push_code(&mut plain, rest, 4),
            },
            // A line that continues.
            Some('\n') | None => {}
            Some('b' | 'f' | 'n' | 'r' | 't' | 'v' | '0') => plain.push(' '),
            Some(other) => plain.push(other),
        }
    }
    plain.push_str(rest);
    Cow::Owned(plain)
}

/// Appends the character of a number of hexadecimal digits, and returns the text behind them.
fn push_code<'a>(plain: &mut String, text: &'a str, digits: usize) -> &'a str {
    let Some((number, rest)) = text.split_at_checked(digits) else {
        plain.push(char::REPLACEMENT_CHARACTER);
        return text;
    };
    let code = u32::from_str_radix(number, 16)
        .ok()
        .and_then(char::from_u32);
    plain.push(code.unwrap_or(char::REPLACEMENT_CHARACTER));
    rest
}
