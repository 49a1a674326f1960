//! Facts of a record that are known once its heads are read.

use std::borrow::Cow;

use archive_formats::date::{DateReading, Stamp, WarcDate};
use archive_formats::http::Head;
use archive_formats::warc::{Header, WarcType};

/// The facts of a record that decide how it is resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordFacts {
    /// The type of the record.
    pub kind: WarcType,
    /// The status of the HTTP message in it.
    pub status: Option<u16>,
    /// The `Location` of the HTTP message in it.
    pub location: Option<String>,
    /// The digest of the payload.
    pub digest: Option<String>,
    /// The reference of a revisit to another record.
    pub revisit: Option<RevisitFacts>,
}

impl RecordFacts {
    /// Returns a record of a type of which nothing else is known.
    pub const fn new(kind: WarcType) -> Self {
        Self {
            kind,
            status: None,
            location: None,
            digest: None,
            revisit: None,
        }
    }

    /// Returns the facts in the header of a record and in the HTTP head of its block, if it has one.
    pub fn read_facts(kind: WarcType, header: &Header, head: Option<&Head>) -> Self {
        let digest = header.text_of("WARC-Payload-Digest");
        Self {
            kind,
            status: head.and_then(Head::status),
            location: head.and_then(|head| head.get("location")).map(text),
            digest: digest.map(|digest| digest.trim().to_owned()),
            revisit: (kind == WarcType::Revisit).then(|| RevisitFacts::read_revisit(header)),
        }
    }
}

/// The reference of a revisit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RevisitFacts {
    /// The reason why there is no payload.
    pub profile: RevisitProfile,
    /// The URL of the original.
    pub target_uri: Option<String>,
    /// The time of the original.
    pub date: Option<Stamp>,
}

impl RevisitFacts {
    /// Returns the reference in the header of a revisit.
    pub fn read_revisit(header: &Header) -> Self {
        let profile = header.read_uri("WARC-Profile").unwrap_or_default();
        let date = header.text_of("WARC-Refers-To-Date");
        let date =
            date.and_then(|date| WarcDate::read_date(date.trim(), DateReading::Lenient).ok());
        Self {
            profile: RevisitProfile::read_profile(&profile),
            target_uri: header
                .read_uri("WARC-Refers-To-Target-URI")
                .map(Cow::into_owned)
                .filter(|uri| !uri.is_empty()),
            date: date.map(|date| date.stamp()),
        }
    }
}

/// The profile of a revisit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RevisitProfile {
    /// The payload was the same: `…/revisit/identical-payload-digest` of any version, and profiles that are not known.
    IdenticalPayload,
    /// The server said that the payload was the same: `…/revisit/server-not-modified` of any version.
    NotModified,
}

impl RevisitProfile {
    /// Reads the URI of a profile.
    pub fn read_profile(uri: &str) -> Self {
        let name = uri.trim().rsplit('/').next().unwrap_or_default();
        if name.eq_ignore_ascii_case("server-not-modified") {
            Self::NotModified
        } else {
            Self::IdenticalPayload
        }
    }
}

/// Returns a header value as text; bytes that are not UTF-8 are Latin-1, so that different values stay different.
fn text(value: &[u8]) -> String {
    match str::from_utf8(value) {
        Ok(text) => text.to_owned(),
        Err(_) => value.iter().copied().map(char::from).collect(),
    }
}
