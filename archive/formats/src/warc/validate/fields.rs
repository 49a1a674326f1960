//! The rules of the standard for each field: its clause, its form, and the types that must and must not have it.
//!
//! Owns the tables of ISO 28500, clause 5. Judges nothing.

use super::syntax::Form;
use crate::warc::record::{Version, WarcType};

/// The editions of the standard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Edition {
    /// ISO 28500:2009, and the drafts before it.
    First,
    /// ISO 28500:2017.
    Second,
}

impl Edition {
    /// Returns the edition that a record is checked against; `None` for ARC.
    pub(super) fn from_version(version: Version) -> Option<Self> {
        match version {
            Version::Arc1 | Version::Arc2 => None,
            Version::Warc0_17 | Version::Warc0_18 | Version::Warc1_0 => Some(Self::First),
            Version::Warc1_1 | Version::Unknown => Some(Self::Second),
        }
    }

    pub(super) fn year(self) -> u16 {
        match self {
            Self::First => 2009,
            Self::Second => 2017,
        }
    }
}

/// The rules of the standard for a field.
pub(super) struct Rules {
    pub(super) name: &'static str,
    /// The clause of the field in the edition of 2009, if it has one, and in that of 2017.
    pub(super) clauses: (Option<&'static str>, &'static str),
    pub(super) form: Form,
    pub(super) mandatory: &'static [WarcType],
    pub(super) forbidden: &'static [WarcType],
}

const ALL: &[WarcType] = &[
    WarcType::Warcinfo,
    WarcType::Response,
    WarcType::Resource,
    WarcType::Request,
    WarcType::Metadata,
    WarcType::Revisit,
    WarcType::Conversion,
    WarcType::Continuation,
    WarcType::Unknown,
];
const WITH_TARGET: &[WarcType] = &[
    WarcType::Response,
    WarcType::Resource,
    WarcType::Request,
    WarcType::Revisit,
    WarcType::Conversion,
    WarcType::Continuation,
];
const NOT_CAPTURED: &[WarcType] = &[
    WarcType::Warcinfo,
    WarcType::Conversion,
    WarcType::Continuation,
];
const REFER_TO_NOTHING: &[WarcType] = &[
    WarcType::Warcinfo,
    WarcType::Response,
    WarcType::Resource,
    WarcType::Request,
    WarcType::Continuation,
];
const NO_REVISIT: &[WarcType] = &[
    WarcType::Warcinfo,
    WarcType::Response,
    WarcType::Resource,
    WarcType::Request,
    WarcType::Metadata,
    WarcType::Conversion,
    WarcType::Continuation,
];
const NO_WARCINFO: &[WarcType] = &[
    WarcType::Response,
    WarcType::Resource,
    WarcType::Request,
    WarcType::Metadata,
    WarcType::Revisit,
    WarcType::Conversion,
    WarcType::Continuation,
];
const NO_CONTINUATION: &[WarcType] = &[
    WarcType::Warcinfo,
    WarcType::Response,
    WarcType::Resource,
    WarcType::Request,
    WarcType::Metadata,
    WarcType::Revisit,
    WarcType::Conversion,
];
const NO_PAYLOAD: &[WarcType] = &[WarcType::Warcinfo, WarcType::Metadata];
const NONE: &[WarcType] = &[];

pub(super) const FIELDS: &[Rules] = &[
    rules("WARC-Record-ID", (Some("5.2"), "5.2"), Form::Id, ALL, NONE),
    rules(
        "Content-Length",
        (Some("5.3"), "5.3"),
        Form::Number,
        ALL,
        NONE,
    ),
    rules("WARC-Date", (Some("5.4"), "5.4"), Form::Date, ALL, NONE),
    rules("WARC-Type", (Some("5.5"), "5.5"), Form::Token, ALL, NONE),
    rules(
        "Content-Type",
        (Some("5.6"), "5.6"),
        Form::MediaType,
        NONE,
        NONE,
    ),
    rules(
        "WARC-Concurrent-To",
        (Some("5.7"), "5.7"),
        Form::Id,
        NONE,
        NOT_CAPTURED,
    ),
    rules(
        "WARC-Block-Digest",
        (Some("5.8"), "5.8"),
        Form::Digest,
        NONE,
        NONE,
    ),
    rules(
        "WARC-Payload-Digest",
        (Some("5.9"), "5.9"),
        Form::Digest,
        NONE,
        NO_PAYLOAD,
    ),
    rules(
        "WARC-IP-Address",
        (Some("5.10"), "5.10"),
        Form::Address,
        NONE,
        NOT_CAPTURED,
    ),
    rules(
        "WARC-Refers-To",
        (Some("5.11"), "5.11"),
        Form::Id,
        NONE,
        REFER_TO_NOTHING,
    ),
    rules(
        "WARC-Refers-To-Target-URI",
        (None, "5.12"),
        Form::Uri,
        NONE,
        NO_REVISIT,
    ),
    rules(
        "WARC-Refers-To-Date",
        (None, "5.13"),
        Form::Date,
        NONE,
        NO_REVISIT,
    ),
    rules(
        "WARC-Target-URI",
        (Some("5.12"), "5.14"),
        Form::Uri,
        WITH_TARGET,
        &[WarcType::Warcinfo],
    ),
    rules(
        "WARC-Truncated",
        (Some("5.13"), "5.15"),
        Form::Token,
        NONE,
        NONE,
    ),
    rules(
        "WARC-Warcinfo-ID",
        (Some("5.14"), "5.16"),
        Form::Id,
        NONE,
        &[WarcType::Warcinfo],
    ),
    rules(
        "WARC-Filename",
        (Some("5.15"), "5.17"),
        Form::Text,
        NONE,
        NO_WARCINFO,
    ),
    rules(
        "WARC-Profile",
        (Some("5.16"), "5.18"),
        Form::Uri,
        &[WarcType::Revisit],
        NONE,
    ),
    rules(
        "WARC-Identified-Payload-Type",
        (Some("5.17"), "5.19"),
        Form::MediaType,
        NONE,
        NO_PAYLOAD,
    ),
    rules(
        "WARC-Segment-Number",
        (Some("5.18"), "5.20"),
        Form::Number,
        &[WarcType::Continuation],
        NONE,
    ),
    rules(
        "WARC-Segment-Origin-ID",
        (Some("5.19"), "5.21"),
        Form::Id,
        &[WarcType::Continuation],
        NO_CONTINUATION,
    ),
    rules(
        "WARC-Segment-Total-Length",
        (Some("5.20"), "5.22"),
        Form::Number,
        NONE,
        NO_CONTINUATION,
    ),
];

const fn rules(
    name: &'static str,
    clauses: (Option<&'static str>, &'static str),
    form: Form,
    mandatory: &'static [WarcType],
    forbidden: &'static [WarcType],
) -> Rules {
    Rules {
        name,
        clauses,
        form,
        mandatory,
        forbidden,
    }
}
