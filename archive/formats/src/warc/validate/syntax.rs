//! The grammar of the values of fields.
//!
//! Owns the grammar of ISO 28500, clause 4 and 5. Does not know which record may have which field.

use std::net::IpAddr;

use crate::date::{Precision, WarcDate};

/// The form of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// A URI between angle brackets.
    Id,
    /// A URI; the edition of 2009 puts it between brackets in its grammar and not in its examples.
    Uri,
    Number,
    Date,
    Token,
    Digest,
    Address,
    MediaType,
    Text,
}

impl Form {
    /// Checks a value; fails with what is wrong with it. The edition of 2017 is `second`.
    pub(super) fn check_value(self, value: &[u8], second: bool) -> Result<(), &'static str> {
        let is_right = match self {
            Self::Id => bare(value).is_some_and(is_uri),
            Self::Uri => is_uri(value) || (!second && bare(value).is_some_and(is_uri)),
            Self::Number => crate::warc::header::read_number(value).is_some(),
            Self::Date => is_date(value, second),
            Self::Token => is_token(value),
            Self::Digest => memchr::memchr(b':', value).is_some_and(|colon| {
                is_token(value.get(..colon).unwrap_or_default())
                    && is_token(value.get(colon + 1..).unwrap_or_default())
            }),
            Self::Address => {
                std::str::from_utf8(value).is_ok_and(|text| text.parse::<IpAddr>().is_ok())
            }
            Self::MediaType => is_media_type(value),
            Self::Text => true,
        };
        if is_right { Ok(()) } else { Err(self.wrong()) }
    }

    fn wrong(self) -> &'static str {
        match self {
            Self::Id => "shall be an URI between < and >",
            Self::Uri => "shall be an URI as RFC 3986 writes it",
            Self::Number => "shall be digits",
            Self::Date => "shall be a date as the standard writes it",
            Self::Token => "shall be one word",
            Self::Digest => "shall be the name of an algorithm, a colon and a word",
            Self::Address => "shall be a numeric address",
            Self::MediaType => "shall be a media type",
            Self::Text => "shall be text",
        }
    }
}

fn bare(value: &[u8]) -> Option<&[u8]> {
    value.strip_prefix(b"<")?.strip_suffix(b">")
}

/// Returns whether a value is a single word: no separators, no controls.
pub(super) fn is_token(value: &[u8]) -> bool {
    !value.is_empty()
        && value
            .iter()
            .all(|byte| byte.is_ascii_graphic() && !b"()<>@,;:\\\"/[]?={}".contains(byte))
}

/// Returns whether a value is UTF-8 without controls other than tabs.
pub(super) fn is_text(value: &[u8]) -> bool {
    std::str::from_utf8(value).is_ok_and(|text| {
        text.chars()
            .all(|character| character == '\t' || !character.is_ascii_control())
    })
}

fn is_uri(value: &[u8]) -> bool {
    let Some(colon) = memchr::memchr(b':', value) else {
        return false;
    };
    let scheme = value.get(..colon).unwrap_or_default();
    let is_scheme = scheme.first().is_some_and(u8::is_ascii_alphabetic)
        && scheme
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(byte));
    let is_written = value
        .iter()
        .all(|byte| byte.is_ascii_alphanumeric() || b"-._~:/?#[]@!$&'()*+,;=%".contains(byte));
    let rest = value.get(colon + 1..).unwrap_or_default();
    let is_named = !scheme.eq_ignore_ascii_case(b"urn") || !rest.is_empty();
    let mut percent = memchr::memchr_iter(b'%', value);
    is_scheme
        && is_written
        && is_named
        && memchr::memchr_iter(b'#', rest).nth(1).is_none()
        && has_brackets_in_place(rest)
        && percent.all(|at| {
            value
                .get(at + 1..at + 3)
                .is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit))
        })
}

/// Returns whether a value is a URI as browsers write it (URL Standard, "URL serializing"): with characters in its path
/// and query that RFC 3986 wants escaped, such as `[`, `|` and a `%` that begins no escape.
pub(super) fn is_browser_uri(value: &[u8]) -> bool {
    let is_web = ["http://", "https://"].iter().any(|scheme| {
        let begin = value.get(..scheme.len());
        begin.is_some_and(|begin| begin.eq_ignore_ascii_case(scheme.as_bytes()))
    });
    is_web
        && value
            .iter()
            .all(|byte| byte.is_ascii_graphic() && !b"\"<>".contains(byte))
}

/// Returns whether square brackets stand nowhere but around an address that is the host.
fn has_brackets_in_place(rest: &[u8]) -> bool {
    let is_bracket = |byte: &u8| b"[]".contains(byte);
    let (authority, behind) = match rest.strip_prefix(b"//") {
        Some(rest) => {
            let end = rest.iter().position(|byte| b"/?#".contains(byte));
            rest.split_at(end.unwrap_or(rest.len()))
        }
        None => (&b""[..], rest),
    };
    let host = match memchr::memrchr(b'@', authority) {
        Some(at) if authority.iter().take(at).any(is_bracket) => return false,
        Some(at) => authority.get(at + 1..).unwrap_or_default(),
        None => authority,
    };
    let around = match host.strip_prefix(b"[") {
        Some(address) => match memchr::memchr(b']', address) {
            Some(0) | None => return false,
            Some(end) => {
                let (address, port) = address.split_at(end);
                let port = port.get(1..).unwrap_or_default();
                if address.iter().any(is_bracket) || !(port.is_empty() || port.starts_with(b":")) {
                    return false;
                }
                port
            }
        },
        None => host,
    };
    !around.iter().chain(behind).any(is_bracket)
}

fn is_media_type(value: &[u8]) -> bool {
    let (kind, parameters) = match memchr::memchr(b';', value) {
        Some(end) => value.split_at(end),
        None => (value, &b""[..]),
    };
    let kind = kind.trim_ascii_end();
    let is_kind = memchr::memchr(b'/', kind).is_some_and(|slash| {
        is_token(kind.get(..slash).unwrap_or_default())
            && is_token(kind.get(slash + 1..).unwrap_or_default())
    });
    is_kind && are_parameters(parameters)
}

/// Returns whether the rest is any number of `; attribute=value`; the value a word, or a text in quotes.
fn are_parameters(mut rest: &[u8]) -> bool {
    while let Some(parameter) = rest.strip_prefix(b";") {
        let Some(equals) = memchr::memchr(b'=', parameter) else {
            return false;
        };
        let (name, value) = parameter.split_at(equals);
        let value = value.get(1..).unwrap_or_default().trim_ascii_start();
        let length = if let Some(text) = value.strip_prefix(b"\"") {
            quoted(text).map(|length| length + 1)
        } else {
            let end = memchr::memchr(b';', value).unwrap_or(value.len());
            let word = value.get(..end).unwrap_or_default().trim_ascii_end();
            is_token(word).then_some(word.len())
        };
        let Some(length) = length.filter(|_| is_token(name.trim_ascii())) else {
            return false;
        };
        rest = value.get(length..).unwrap_or_default().trim_ascii_start();
    }
    rest.is_empty()
}

/// Returns the length of a text up to and with the quote that ends it.
fn quoted(text: &[u8]) -> Option<usize> {
    let mut is_escaped = false;
    let end = text.iter().position(|&byte| {
        let ends = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        ends
    })?;
    Some(end + 1)
}

/// Returns whether a value is a time in UTC: to the second in the edition of 2009, of any precision in that of 2017.
fn is_date(value: &[u8], second: bool) -> bool {
    let text = std::str::from_utf8(value).ok();
    let date = text.and_then(|text| text.parse::<WarcDate>().ok());
    date.is_some_and(|date| second || date.precision() == Precision::Second)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a date that does not exist or a broken URI passes, or a rule of one edition of the standard is applied
    /// to the other.
    #[test]
    fn values_and_what_they_are() {
        for (form, value, first, second) in [
            (Form::Date, "2016", false, true),
            (Form::Date, "2016-02-29", false, true),
            (Form::Date, "2015-02-29", false, false),
            (Form::Date, "2016-02-29T10:11Z", false, true),
            (Form::Date, "2016-02-29T10:11", false, false),
            (Form::Date, "2016-02-29T10:11:12Z", true, true),
            (Form::Date, "2016-02-29T10:11:12", false, false),
            (Form::Date, "2016-02-29T24:11:12Z", false, false),
            (Form::Date, "2016-02-29T10:11:12.1Z", false, true),
            (Form::Date, "2016-02-29T10:11:12.0123456789Z", false, false),
            (Form::Date, "2016-02-29T10:11:12+01:00", false, false),
            (Form::Date, "20160229101112", false, false),
            (Form::Date, "2016-12-31T23:59:60Z", false, false),
            (Form::Date, "", false, false),
            (Form::Uri, "http://a/%41", true, true),
            (Form::Uri, "http://a/%4", false, false),
            (Form::Uri, "no-scheme", false, false),
            (Form::Uri, "<urn:a>", true, false),
            (Form::Id, "<urn:a>", true, true),
            (Form::Id, "<urn:a", false, false),
            (Form::MediaType, "text/html; charset=\"a b\"", true, true),
            (Form::MediaType, "text", false, false),
            (
                Form::MediaType,
                "application/http;msgtype=request",
                true,
                true,
            ),
            (
                Form::MediaType,
                r#"a/b ; c="d;\"e=" ;f = g ; h=i"#,
                true,
                true,
            ),
            (Form::MediaType, "text/html; =;;;\"a", false, false),
            (Form::MediaType, "text/html; charset", false, false),
            (Form::MediaType, "text/html; charset=", false, false),
            (Form::MediaType, "text/html; charset=\"a", false, false),
            (Form::MediaType, "text/html; charset=\"a\"b", false, false),
            (Form::MediaType, "text/html; charset=a b", false, false),
            (Form::Uri, "http://a/?b#c", true, true),
            (Form::Uri, "http://a/#b#c", false, false),
            (Form::Uri, "http://[::1]/", true, true),
            (Form::Uri, "http://u:p@[2001:db8::1]:80", true, true),
            (Form::Uri, "http://[::1", false, false),
            (Form::Uri, "http://[]/", false, false),
            (Form::Uri, "http://[::1]x/", false, false),
            (Form::Uri, "http://[u]@a/", false, false),
            (Form::Uri, "http://a/[x]", false, false),
            (Form::Uri, "http://a/?x[]=1", false, false),
            (Form::Uri, "dns:a", true, true),
            (Form::Id, "<urn:>", false, false),
            (Form::Uri, "about:", true, true),
            (Form::Digest, "sha256:00ff", true, true),
            (Form::Digest, "sha1:AB==", false, false),
            (Form::Number, "12a", false, false),
        ] {
            assert_eq!(
                form.check_value(value.as_bytes(), false).is_ok(),
                first,
                "{value}"
            );
            assert_eq!(
                form.check_value(value.as_bytes(), true).is_ok(),
                second,
                "{value}"
            );
        }
    }
}
