//! The rules of the standard for each field: its clause, its form, and the types that must and must not have it.
//!
//! Owns the tables of ISO 28500, clause 5. Judges nothing.

use super::syntax::Form;
use crate::warc::record::{Kind, Version};

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
    pub(super) mandatory: &'static [Kind],
    pub(super) forbidden: &'static [Kind],
}

const ALL: &[Kind] = &[
    Kind::Warcinfo,
    Kind::Response,
    Kind::Resource,
    Kind::Request,
    Kind::Metadata,
    Kind::Revisit,
    Kind::Conversion,
    Kind::Continuation,
    Kind::Unknown,
];
const WITH_TARGET: &[Kind] = &[
    Kind::Response,
    Kind::Resource,
    Kind::Request,
    Kind::Revisit,
    Kind::Conversion,
    Kind::Continuation,
];
const NOT_CAPTURED: &[Kind] = &[Kind::Warcinfo, Kind::Conversion, Kind::Continuation];
const REFER_TO_NOTHING: &[Kind] = &[
    Kind::Warcinfo,
    Kind::Response,
    Kind::Resource,
    Kind::Request,
    Kind::Continuation,
];
const NO_REVISIT: &[Kind] = &[
    Kind::Warcinfo,
    Kind::Response,
    Kind::Resource,
    Kind::Request,
    Kind::Metadata,
    Kind::Conversion,
    Kind::Continuation,
];
const NO_WARCINFO: &[Kind] = &[
    Kind::Response,
    Kind::Resource,
    Kind::Request,
    Kind::Metadata,
    Kind::Revisit,
    Kind::Conversion,
    Kind::Continuation,
];
const NO_CONTINUATION: &[Kind] = &[
    Kind::Warcinfo,
    Kind::Response,
    Kind::Resource,
    Kind::Request,
    Kind::Metadata,
    Kind::Revisit,
    Kind::Conversion,
];
const NO_PAYLOAD: &[Kind] = &[Kind::Warcinfo, Kind::Metadata];
const NONE: &[Kind] = &[];

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
        &[Kind::Warcinfo],
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
        &[Kind::Warcinfo],
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
        &[Kind::Revisit],
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
        &[Kind::Continuation],
        NONE,
    ),
    rules(
        "WARC-Segment-Origin-ID",
        (Some("5.19"), "5.21"),
        Form::Id,
        &[Kind::Continuation],
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
    mandatory: &'static [Kind],
    forbidden: &'static [Kind],
) -> Rules {
    Rules {
        name,
        clauses,
        form,
        mandatory,
        forbidden,
    }
}
