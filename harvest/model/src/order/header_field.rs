//! A field of every request, as an order has it.

use std::fmt;
use std::str::FromStr;

/// The fields that the crawler writes itself, because a request, its record or its answer would be another one.
const OWN: [&str; 17] = [
    "authorization",
    "connection",
    "content-length",
    "content-type",
    "cookie",
    "expect",
    "from",
    "host",
    "if-modified-since",
    "if-none-match",
    "keep-alive",
    "range",
    "referer",
    "te",
    "transfer-encoding",
    "upgrade",
    "user-agent",
];

/// A field of every request: `Name: value`.
///
/// ```
/// use harvest_model::order::HeaderFieldText;
///
/// let field: HeaderFieldText = "Accept-Language: da".parse()?;
/// assert_eq!(field.parts(), ("Accept-Language".to_owned(), "da".to_owned()));
/// assert!("Host: example.org".parse::<HeaderFieldText>().is_err());
/// # Ok::<(), harvest_model::order::InvalidHeaderText>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderFieldText {
    name: String,
    value: String,
}

/// A text that is no field of a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidHeaderText {
    /// The text has not the form of a field.
    #[error(
        "`{0}` is no field of a request; write a name of letters, digits and `-`, a colon and a value of visible ASCII, such as \
         `Accept-Language: da`"
    )]
    Form(String),
    /// The crawler writes the field itself.
    #[error(
        "`{0}` is written by the crawler itself; the order has keys of its own for what can be set of it"
    )]
    Own(String),
}

impl HeaderFieldText {
    /// Returns the name and the value.
    pub fn parts(&self) -> (String, String) {
        (self.name.clone(), self.value.clone())
    }
}

impl FromStr for HeaderFieldText {
    type Err = InvalidHeaderText;

    fn from_str(text: &str) -> Result<Self, InvalidHeaderText> {
        let invalid = || InvalidHeaderText::Form(text.to_owned());
        let (name, value) = text.split_once(':').ok_or_else(invalid)?;
        let value = value.trim();
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-_!#$%&'*+.^`|~".contains(c);
        let is_value = |c: char| c.is_ascii_graphic() || matches!(c, ' ' | '\t');
        if name.is_empty()
            || !name.chars().all(is_name)
            || value.is_empty()
            || !value.chars().all(is_value)
        {
            return Err(invalid());
        }
        if OWN.contains(&name.to_ascii_lowercase().as_str()) {
            return Err(InvalidHeaderText::Own(name.to_owned()));
        }
        Ok(Self {
            name: name.to_owned(),
            value: value.to_owned(),
        })
    }
}

impl fmt::Display for HeaderFieldText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a field breaks the message into other lines, or contradicts what the crawler writes.
    #[test]
    fn field_cannot_change_the_request() {
        for text in [
            "a",
            ": b",
            "a b: c",
            "A: b\r\nC: d",
            "A:",
            "X: bl\u{e5}",
            "host: a",
            "Content-Length: 3",
        ] {
            assert!(text.parse::<HeaderFieldText>().is_err(), "{text:?}");
        }
        let field: HeaderFieldText = "X-Crawl:  1, \"2\" ".parse().unwrap();
        assert_eq!(field.to_string(), "X-Crawl: 1, \"2\"");
    }
}
