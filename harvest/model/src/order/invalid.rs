//! A mistake in an order, with its place.
//!
//! Owns how the place is found: the parser knows a position, a check knows a key, and people want the line and the key.

use std::fmt;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::MAX_ORDER;

/// A mistake in an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidOrder {
    /// The line in the file, from 1, where it is known.
    pub line: Option<usize>,
    /// The key with its section, such as `scope.traps`, where it is known.
    pub key: Option<String>,
    /// The mistake, and what to write instead.
    pub message: String,
}

impl fmt::Display for InvalidOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        if let Some(key) = &self.key {
            write!(f, "`{key}`: ")?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for InvalidOrder {}

impl InvalidOrder {
    /// Returns a mistake at a key. Elements of a list of sections are counted from 0: `overlay.0.surt`.
    pub(crate) fn at_key(key: &str, message: impl Into<String>) -> Self {
        Self {
            line: None,
            key: Some(key.to_owned()),
            message: message.into(),
        }
    }

    pub(super) fn too_long() -> Self {
        Self {
            line: None,
            key: None,
            message: format!("an order has at most {} MiB", MAX_ORDER >> 20),
        }
    }

    /// Returns the mistake that the parser found.
    pub(crate) fn from_toml(error: &toml::de::Error, text: &str) -> Self {
        let span = error.span();
        let holds = |place: &Range<usize>| {
            let is_inside =
                |span: &Range<usize>| place.start <= span.start && span.end <= place.end;
            span.as_ref()
                .is_some_and(|span| !span.is_empty() && is_inside(span))
        };
        let key = keys(text).into_iter().rfind(|(_, place)| holds(place));
        let key = key.map(|(key, _)| key);
        Self {
            line: span.map(|span| line(text, span.start)),
            message: plain_message(error.message(), key.as_deref().unwrap_or_default()),
            key,
        }
    }

    /// Adds the line at which the key stands in a text. A key that is not given stands at no line.
    pub(super) fn with_line(self, text: &str) -> Self {
        let place = keys(text)
            .into_iter()
            .find(|(key, _)| Some(key) == self.key.as_ref());
        Self {
            line: place.map(|(_, place)| line(text, place.start)),
            ..self
        }
    }
}

/// The sections that may stand several times.
const LISTS: [&str; 2] = ["overlay", "credential"];

/// Returns a message of the parser in the words of people who write orders: it has the names of types in the end.
fn plain_message(message: &str, key: &str) -> String {
    let (section, rest) = key.split_once('.').unwrap_or((key, ""));
    let is_list = LISTS.contains(&section);
    let is_element = rest.starts_with(|c: char| c.is_ascii_digit());
    if is_element && !is_list {
        return format!("there is one such section; write `[{section}]`");
    }
    if message.starts_with("relative URL without a base") {
        return format!("{message}; write a whole URI, such as `https://www.example.dk/`");
    }
    let Some((mistake, expected)) = message.rsplit_once(", expected ") else {
        return message.to_owned();
    };
    let expected = match expected {
        "usize" | "u64" | "u32" => "a whole number from 0 on",
        "u8" => "a whole number from 0 to 255",
        "a nonzero u16" => "a whole number from 1 to 65535",
        "a nonzero u32" => "a whole number from 1 to 4294967295",
        "f64" => "a number such as 2.5",
        "a boolean" => "`true` or `false`",
        "a string" => "text between quotation marks",
        "a string representing an URL" => "a URI between quotation marks",
        "a sequence" if is_list && rest.is_empty() => {
            return format!("there may be several such sections; write `[[{section}]]`");
        }
        "a sequence" => "a list of texts: `[\"…\", \"…\"]`",
        _ if expected.starts_with("struct ") => {
            return format!("a section is meant; write `[{section}]`, and its keys below it");
        }
        _ => return message.to_owned(),
    };
    let mistake = mistake.replace(" as i128", "");
    format!("{mistake}, expected {expected}")
}

fn line(text: &str, at: usize) -> usize {
    1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count()
}

/// Returns all keys of a text with the places of the keys and of their values; what stands inside something comes after
/// it.
fn keys(text: &str) -> Vec<(String, Range<usize>)> {
    let (table, _) = DeTable::parse_recoverable(text);
    let mut found = Vec::new();
    let mut open = vec![(
        String::new(),
        Spanned::new(0..0, DeValue::Table(table.into_inner())),
    )];
    while let Some((path, value)) = open.pop() {
        let below = |name: &str| match path.as_str() {
            "" => name.to_owned(),
            path => format!("{path}.{name}"),
        };
        match value.into_inner() {
            DeValue::Table(table) => {
                for (key, value) in table {
                    let path = below(key.get_ref());
                    found.push((path.clone(), key.span()));
                    found.push((path.clone(), value.span()));
                    open.push((path, value));
                }
            }
            DeValue::Array(array) => {
                for (index, value) in array.into_iter().enumerate() {
                    let is_section = matches!(value.get_ref(), DeValue::Table(_));
                    // An element of a list goes by the name of the list.
                    let path = if is_section {
                        below(&index.to_string())
                    } else {
                        path.clone()
                    };
                    found.push((path.clone(), value.span()));
                    open.push((path, value));
                }
            }
            _ => {}
        }
    }
    found
}
