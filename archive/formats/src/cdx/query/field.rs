//! The fields of a capture, by the names that CDX servers have for them.

use std::borrow::Cow;

use crate::cdx::{Capture, Format};

/// A field of a capture that a query names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum CaptureField {
    /// The key.
    Key,
    /// The timestamp.
    Timestamp,
    /// The URL as it was requested.
    Original,
    /// The media type.
    Mime,
    /// The status.
    Status,
    /// The digest. A filter sees it with and without `sha1:`.
    Digest,
    /// The target of a redirect.
    Redirect,
    /// Robot flags.
    Robots,
    /// The length of the record.
    Length,
    /// The offset of the record.
    Offset,
    /// The name of the file.
    File,
    /// The length of the record that a resolved revisit refers to.
    OriginalLength,
    /// The offset of the record that a resolved revisit refers to.
    OriginalOffset,
    /// The file of the record that a resolved revisit refers to.
    OriginalFile,
    /// A field without a place of its own, by its name: `method`, `requestBody`, …
    Extra(String),
    /// The whole line, as CDX with 11 fields has it.
    Line,
}

/// The fields of CDX with 11 fields, in their order.
const CDX11: [CaptureField; 11] = [
    CaptureField::Key,
    CaptureField::Timestamp,
    CaptureField::Original,
    CaptureField::Mime,
    CaptureField::Status,
    CaptureField::Digest,
    CaptureField::Redirect,
    CaptureField::Robots,
    CaptureField::Length,
    CaptureField::Offset,
    CaptureField::File,
];

impl CaptureField {
    /// Returns the field of a name: pywb's (`url`, `mime`, `status`), the Internet Archive's (`original`, `mimetype`,
    /// `statuscode`), OutbackCDX's (`redirecturl`, `originalLength`), or the letter of a CDX legend.
    pub fn of_name(name: &str) -> Option<Self> {
        Some(match name {
            "urlkey" | "N" => Self::Key,
            "timestamp" | "b" => Self::Timestamp,
            "original" | "url" | "a" => Self::Original,
            "mimetype" | "mime" | "m" => Self::Mime,
            "statuscode" | "status" | "s" => Self::Status,
            "digest" | "k" => Self::Digest,
            "redirect" | "redirecturl" | "r" => Self::Redirect,
            "robotflags" | "M" => Self::Robots,
            "length" | "S" => Self::Length,
            "offset" | "V" => Self::Offset,
            "filename" | "file" | "g" => Self::File,
            "orig.length" | "originalLength" => Self::OriginalLength,
            "orig.offset" | "originalOffset" => Self::OriginalOffset,
            "orig.filename" | "originalFilename" => Self::OriginalFile,
            _ => return None,
        })
    }

    /// Returns the fields of CDX with 11 fields, in their order.
    pub fn cdx11() -> &'static [Self; 11] {
        &CDX11
    }

    /// Returns the value of the field, if the capture has one.
    pub fn value<'a>(&self, capture: &'a Capture) -> Option<Cow<'a, str>> {
        fn text(value: Option<&String>) -> Option<Cow<'_, str>> {
            value.map(|value| Cow::Borrowed(value.as_str()))
        }
        fn number<'a>(value: Option<u64>) -> Option<Cow<'a, str>> {
            value.map(|value| Cow::Owned(value.to_string()))
        }
        let original = capture.original_record.as_ref();
        match self {
            Self::Key => Some(Cow::Borrowed(&capture.key)),
            Self::Timestamp => Some(Cow::Owned(capture.timestamp.to_string())),
            Self::Original => text(capture.original.as_ref()),
            Self::Mime => text(capture.mime.as_ref()),
            Self::Status => number(capture.status.map(u64::from)),
            Self::Digest => text(capture.digest.as_ref()),
            Self::Redirect => text(capture.redirect.as_ref()),
            Self::Robots => text(capture.robots.as_ref()),
            Self::Length => number(capture.length),
            Self::Offset => number(capture.offset),
            Self::File => text(capture.file.as_ref()),
            Self::OriginalLength => number(original.and_then(|o| o.length)),
            Self::OriginalOffset => number(original.and_then(|o| o.offset)),
            Self::OriginalFile => text(original.and_then(|o| o.file.as_ref())),
            Self::Extra(name) => capture.extra(name).map(Cow::Borrowed),
            Self::Line => Some(Cow::Owned(Format::cdx11().write_line(capture))),
        }
    }
}
