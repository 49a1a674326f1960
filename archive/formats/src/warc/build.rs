//! The headers of new records: WARC 1.1.
//!
//! Owns the order of fields and the fields that each type must have. Times and identifiers are arguments: nothing here
//! reads a clock or makes random numbers.

use thiserror::Error;

use crate::warc::record::WarcType;

/// The profile of a revisit whose payload has the digest of an earlier one.
pub const IDENTICAL_PAYLOAD_DIGEST: &str =
    "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest";

/// The profile of a revisit that the server answered with "not modified".
pub const SERVER_NOT_MODIFIED: &str = "http://netpreserve.org/warc/1.1/revisit/server-not-modified";

/// The reason why a header cannot be written.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum HeaderBuildError {
    /// The record lacks a field that its type must have.
    #[error("a {kind} record needs {field}")]
    Missing {
        /// The type of the record.
        kind: WarcType,
        /// The name of the field.
        field: &'static str,
    },
    /// The record has a field that its type must not have.
    #[error("a {kind} record must not have {field}")]
    Forbidden {
        /// The type of the record.
        kind: WarcType,
        /// The name of the field.
        field: String,
    },
    /// The record has a field twice that may stand once.
    #[error("{field} may stand only once")]
    Repeated {
        /// The name of the field.
        field: String,
    },
    /// A field has an invalid name.
    #[error("{name:?} cannot be the name of a field")]
    Name {
        /// The invalid name.
        name: String,
    },
    /// A value has line ends or other control characters in it.
    #[error("the value of {field} has control characters in it: {value:?}")]
    Value {
        /// The name of the field.
        field: String,
        /// The invalid value.
        value: String,
    },
    /// Records of this type are not written.
    #[error("{0} records are read and not written")]
    WarcType(WarcType),
}

/// A builder, which collects the fields of a record.
///
/// ```
/// use archive_formats::warc::{HeaderBuildError, Builder, WarcType};
///
/// let id = "urn:uuid:6f6e9f5e-0d2b-4a0b-8f6c-7a1b2c3d4e5f";
/// let record = Builder::new(WarcType::Resource, id, "2026-11-21T19:14:09Z");
/// let missing = record.render_head(5);
/// assert!(matches!(missing, Err(HeaderBuildError::Missing { field: "WARC-Target-URI", .. })));
///
/// let head = record.target_uri("http://example.org/").render_head(5)?;
/// assert!(head.starts_with(b"WARC/1.1\r\nWARC-Type: resource\r\n"));
/// # Ok::<(), HeaderBuildError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Builder {
    kind: WarcType,
    id: String,
    date: String,
    target_uri: Option<String>,
    content_type: Option<String>,
    fields: Vec<(String, String)>,
}

impl Builder {
    /// Begins a record of a type, with its identifier (a URI such as `urn:uuid:…`, without brackets) and its date as
    /// WARC writes it.
    pub fn new(kind: WarcType, id: &str, date: &str) -> Self {
        Self {
            kind,
            id: bracketed(id),
            date: date.into(),
            target_uri: None,
            content_type: None,
            fields: Vec::new(),
        }
    }

    /// Begins a revisit whose payload is that of an earlier capture with this digest.
    pub fn identical_payload(id: &str, date: &str, payload_digest: &str) -> Self {
        Self::new(WarcType::Revisit, id, date)
            .with_field("WARC-Profile", IDENTICAL_PAYLOAD_DIGEST)
            .with_field("WARC-Payload-Digest", payload_digest)
            .with_field("WARC-Truncated", "length")
    }

    /// Begins a revisit for which the server answered that nothing has changed since an earlier capture.
    pub fn not_modified(id: &str, date: &str) -> Self {
        Self::new(WarcType::Revisit, id, date).with_field("WARC-Profile", SERVER_NOT_MODIFIED)
    }

    /// Sets the URI that the record is of.
    #[must_use]
    pub fn target_uri(mut self, uri: &str) -> Self {
        self.target_uri = Some(uri.into());
        self
    }

    /// Sets the media type of the block.
    #[must_use]
    pub fn content_type(mut self, content_type: &str) -> Self {
        self.content_type = Some(content_type.into());
        self
    }

    /// Adds the id of a further record of the same event. May be called more than once.
    #[must_use]
    pub fn concurrent_to(self, id: &str) -> Self {
        self.with_field("WARC-Concurrent-To", &bracketed(id))
    }

    /// Sets the id of the record that this one is about.
    #[must_use]
    pub fn refers_to(self, id: &str) -> Self {
        self.with_field("WARC-Refers-To", &bracketed(id))
    }

    /// Sets the URI and the date of the earlier capture to which a revisit refers.
    #[must_use]
    pub fn refers_to_capture(self, uri: &str, date: &str) -> Self {
        self.with_field("WARC-Refers-To-Target-URI", uri)
            .with_field("WARC-Refers-To-Date", date)
    }

    /// Sets the id of the warcinfo record that this one belongs to.
    #[must_use]
    pub fn warcinfo_id(self, id: &str) -> Self {
        self.with_field("WARC-Warcinfo-ID", &bracketed(id))
    }

    /// Adds any other field. These fields keep their order.
    #[must_use]
    pub fn with_field(mut self, name: &str, value: &str) -> Self {
        self.fields.push((name.into(), value.into()));
        self
    }

    /// Returns the header, up to and with its empty line, of a record with a block of this length.
    ///
    /// # Errors
    ///
    /// Fails if the record lacks a field, has one that its type must not have or one too often, or has a name or value
    /// that cannot be written.
    pub fn render_head(&self, length: u64) -> Result<Vec<u8>, HeaderBuildError> {
        self.check()?;
        let mut head = String::from("WARC/1.1\r\n");
        let mut line = |name: &str, value: &str| -> Result<(), HeaderBuildError> {
            check_field(name, value)?;
            head.push_str(name);
            head.push_str(": ");
            head.push_str(value);
            head.push_str("\r\n");
            Ok(())
        };
        line("WARC-Type", self.kind.name())?;
        if let Some(uri) = &self.target_uri {
            line("WARC-Target-URI", uri)?;
        }
        line("WARC-Date", &self.date)?;
        for (name, value) in &self.fields {
            line(name, value)?;
        }
        line("WARC-Record-ID", &self.id)?;
        if let Some(content_type) = &self.content_type {
            line("Content-Type", content_type)?;
        }
        line("Content-Length", &length.to_string())?;
        head.push_str("\r\n");
        Ok(head.into_bytes())
    }

    fn check(&self) -> Result<(), HeaderBuildError> {
        let kind = self.kind;
        let has = |name: &str| {
            self.fields
                .iter()
                .any(|(field, _)| field.eq_ignore_ascii_case(name))
        };
        match kind {
            WarcType::ArcHeader | WarcType::Unknown => {
                return Err(HeaderBuildError::WarcType(kind));
            }
            WarcType::Warcinfo => {
                if self.target_uri.is_some() {
                    let field = "WARC-Target-URI".into();
                    return Err(HeaderBuildError::Forbidden { kind, field });
                }
            }
            WarcType::Metadata => {}
            _ => {
                if self.target_uri.is_none() {
                    let field = "WARC-Target-URI";
                    return Err(HeaderBuildError::Missing { kind, field });
                }
            }
        }
        let needed: &[&'static str] = match kind {
            WarcType::Revisit => &["WARC-Profile"],
            WarcType::Continuation => &["WARC-Segment-Origin-ID", "WARC-Segment-Number"],
            _ => &[],
        };
        if let Some(&field) = needed.iter().find(|name| !has(name)) {
            return Err(HeaderBuildError::Missing { kind, field });
        }
        for (at, (name, _)) in self.fields.iter().enumerate() {
            let is = |other: &str| name.eq_ignore_ascii_case(other);
            let field = || name.clone();
            if OWN.iter().any(|own| is(own))
                || (!is("WARC-Concurrent-To")
                    && self.fields.iter().take(at).any(|(before, _)| is(before)))
            {
                return Err(HeaderBuildError::Repeated { field: field() });
            }
            let forbidden = match kind {
                WarcType::Warcinfo => {
                    ["WARC-IP-Address", "WARC-Concurrent-To", "WARC-Refers-To"].as_slice()
                }
                WarcType::Response | WarcType::Resource | WarcType::Request => &["WARC-Refers-To"],
                WarcType::Conversion => &["WARC-IP-Address", "WARC-Concurrent-To"],
                WarcType::Continuation => {
                    &["WARC-IP-Address", "WARC-Concurrent-To", "WARC-Refers-To"]
                }
                WarcType::Metadata
                | WarcType::Revisit
                | WarcType::ArcHeader
                | WarcType::Unknown => &[],
            };
            let only =
                |of: WarcType, names: &[&str]| kind != of && names.iter().any(|name| is(name));
            if forbidden.iter().any(|other| is(other))
                || only(WarcType::Warcinfo, &["WARC-Filename"])
                || only(
                    WarcType::Continuation,
                    &["WARC-Segment-Origin-ID", "WARC-Segment-Total-Length"],
                )
                || only(
                    WarcType::Revisit,
                    &[
                        "WARC-Profile",
                        "WARC-Refers-To-Target-URI",
                        "WARC-Refers-To-Date",
                    ],
                )
            {
                return Err(HeaderBuildError::Forbidden {
                    kind,
                    field: field(),
                });
            }
        }
        Ok(())
    }
}

/// Fields that the builder writes itself.
const OWN: [&str; 6] = [
    "WARC-Type",
    "WARC-Target-URI",
    "WARC-Date",
    "WARC-Record-ID",
    "Content-Type",
    "Content-Length",
];

fn check_field(name: &str, value: &str) -> Result<(), HeaderBuildError> {
    let is_token = |byte: u8| byte.is_ascii_graphic() && !b"()<>@,;:\\\"/[]?={}".contains(&byte);
    if name.is_empty() || !name.bytes().all(is_token) {
        return Err(HeaderBuildError::Name { name: name.into() });
    }
    if value.chars().any(char::is_control) || value.trim() != value {
        return Err(HeaderBuildError::Value {
            field: name.into(),
            value: value.into(),
        });
    }
    Ok(())
}

fn bracketed(id: &str) -> String {
    if id.starts_with('<') {
        id.into()
    } else {
        format!("<{id}>")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATE: &str = "2026-11-21T19:14:09Z";

    /// Fails if the fields of a built header follow the order of the calls, or the brackets of an id are left out or
    /// doubled.
    #[test]
    fn fields_stand_in_one_order() {
        let head = Builder::new(WarcType::Response, "urn:uuid:1", DATE)
            .content_type("application/http; msgtype=response")
            .with_field("WARC-IP-Address", "127.0.0.1")
            .concurrent_to("<urn:uuid:2>")
            .concurrent_to("urn:uuid:3")
            .target_uri("http://example.org/\u{e6}")
            .render_head(7)
            .unwrap();
        assert_eq!(
            String::from_utf8(head).unwrap(),
            "WARC/1.1\r\nWARC-Type: response\r\nWARC-Target-URI: http://example.org/\u{e6}\r\n\
             WARC-Date: 2026-11-21T19:14:09Z\r\nWARC-IP-Address: 127.0.0.1\r\n\
             WARC-Concurrent-To: <urn:uuid:2>\r\nWARC-Concurrent-To: <urn:uuid:3>\r\n\
             WARC-Record-ID: <urn:uuid:1>\r\nContent-Type: application/http; msgtype=response\r\n\
             Content-Length: 7\r\n\r\n"
        );
    }

    /// Fails if a header is built without a mandatory field, with a forbidden or repeated one, or with a line end in a
    /// value.
    #[test]
    fn header_with_missing_or_wrong_field_is_refused() {
        let new = |kind| Builder::new(kind, "urn:uuid:1", DATE);
        let with_uri = |kind| new(kind).target_uri("http://example.org/");
        for good in [
            new(WarcType::Warcinfo).with_field("WARC-Filename", "a.warc"),
            new(WarcType::Metadata).refers_to("urn:uuid:2"),
            with_uri(WarcType::Conversion).refers_to("urn:uuid:2"),
            Builder::identical_payload("urn:uuid:1", DATE, "sha1:A")
                .target_uri("http://a/")
                .refers_to_capture("http://b/", DATE),
            Builder::not_modified("urn:uuid:1", DATE).target_uri("http://a/"),
        ] {
            assert!(good.render_head(0).is_ok(), "{good:?}");
        }
        for bad in [
            new(WarcType::Response),
            new(WarcType::Unknown),
            with_uri(WarcType::Warcinfo),
            with_uri(WarcType::Revisit),
            with_uri(WarcType::Continuation),
            with_uri(WarcType::Response).with_field("WARC-Filename", "a"),
            with_uri(WarcType::Response).refers_to("urn:uuid:2"),
            with_uri(WarcType::Response).with_field("warc-type", "x"),
            with_uri(WarcType::Response)
                .with_field("A", "1")
                .with_field("a", "2"),
            with_uri(WarcType::Response).with_field("A B", "1"),
            with_uri(WarcType::Response).with_field("A", "1\r\nB: 2"),
            with_uri(WarcType::Response).with_field("", "1"),
            new(WarcType::Response).target_uri("http://a/\nb"),
        ] {
            assert!(bad.render_head(0).is_err(), "{bad:?}");
        }
    }
}
