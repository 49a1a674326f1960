//! CDX lines: a legend of letters, and fields in its order.

use std::fmt::Write as _;

use thiserror::Error;

use super::{Capture, InvalidLine, OriginalRecord};
use crate::date::Stamp;
use crate::surt::UrlKey;

/// The meaning of a field of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CdxField {
    /// `N`: the key.
    Key,
    /// `b`: the timestamp.
    Timestamp,
    /// `a`, or `A` in NetarchiveSuite's legend: the URL.
    Original,
    /// `m`: the media type.
    Mime,
    /// `s`: the status.
    Status,
    /// `k`: the digest, SHA-1 in Base32 when nothing else is said.
    Digest,
    /// `c`: the digest, MD5 in hex.
    Md5,
    /// `r`: the target of a redirect.
    Redirect,
    /// `M`: robot flags.
    Robots,
    /// `S` or `n`: the length of the record.
    Length,
    /// `V` or `v`: the offset of the record.
    Offset,
    /// `g`: the name of the file.
    File,
    /// The length of the record that a revisit refers to. Has no letter.
    OriginalLength,
    /// The offset of the record that a revisit refers to. Has no letter.
    OriginalOffset,
    /// The file of the record that a revisit refers to. Has no letter.
    OriginalFile,
    /// Any other letter; its field is kept under that name.
    Other(char),
}

/// The order of the fields of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Legend {
    fields: Vec<(CdxField, char)>,
    delimiter: char,
    header: bool,
}

/// The reason why a line is not a header.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InvalidLegend {
    /// A letter of the legend is not a single character.
    #[error("{0:?} in the CDX header is no single letter")]
    NoLetter(String),
    /// The legend lacks a field without which no capture can be made.
    #[error("the CDX header names no {0}")]
    Missing(&'static str),
    /// The delimiter could be a part of a field.
    #[error("{0:?} cannot delimit the fields of a CDX line")]
    Delimiter(char),
    /// The legend has too many letters.
    #[error("{0} letters in the CDX header; 64 are enough for anyone")]
    TooMany(usize),
}

impl Legend {
    pub(super) fn cdx9() -> Self {
        Self::of_letters("NbamskrVg", true)
    }

    pub(super) fn cdx11() -> Self {
        Self::of_letters("NbamskrMSVg", true)
    }

    pub(super) fn cdx14() -> Self {
        let mut legend = Self::of_letters("NbamskrMSVg", false);
        legend.fields.extend([
            (CdxField::OriginalLength, '-'),
            (CdxField::OriginalOffset, '-'),
            (CdxField::OriginalFile, '-'),
        ]);
        legend
    }

    pub(super) fn netarchive_suite(checksum: bool) -> Self {
        Self::of_letters(if checksum { "AebmngvC" } else { "Aebmngv" }, false)
    }

    fn of_letters(letters: &str, header: bool) -> Self {
        Self {
            // `C` is not in use in CDX: here it stands for NetarchiveSuite's `c`, which is always MD5.
            fields: letters
                .chars()
                .map(|c| {
                    if c == 'C' {
                        (CdxField::Md5, 'c')
                    } else {
                        (field(c), c)
                    }
                })
                .collect(),
            delimiter: ' ',
            header,
        }
    }

    /// Returns the legend of lines without a header, by the number of their fields.
    pub(super) fn of_count(fields: usize) -> Option<Self> {
        match fields {
            7 => Some(Self::netarchive_suite(false)),
            8 => Some(Self::netarchive_suite(true)),
            9 => Some(Self {
                header: false,
                ..Self::cdx9()
            }),
            10 => Some(Self::of_letters("NbamskrMVg", false)),
            11 => Some(Self {
                header: false,
                ..Self::cdx11()
            }),
            14 => Some(Self::cdx14()),
            _ => None,
        }
    }

    /// Returns the legend of a header line; `None` if the line is no header. The first character is the delimiter.
    pub(super) fn of_header(line: &str) -> Option<Result<Self, InvalidLegend>> {
        let delimiter = line.chars().next()?;
        let rest = line.get(delimiter.len_utf8()..)?;
        let letters = rest.strip_prefix("CDX")?.strip_prefix(delimiter)?;
        if delimiter.is_ascii_alphanumeric() || matches!(delimiter, '-' | '\r' | '\n') {
            return Some(Err(InvalidLegend::Delimiter(delimiter)));
        }
        Some(Self::parse(letters.trim_end_matches(delimiter), delimiter))
    }

    fn parse(letters: &str, delimiter: char) -> Result<Self, InvalidLegend> {
        let mut fields = Vec::new();
        let count = letters.split(delimiter).count();
        if count > 64 {
            return Err(InvalidLegend::TooMany(count));
        }
        for letter in letters.split(delimiter) {
            let mut chars = letter.chars();
            match (chars.next(), chars.next()) {
                (Some(c), None) => fields.push((field(c), c)),
                _ => return Err(InvalidLegend::NoLetter(letter.to_owned())),
            }
        }
        let has = |wanted| fields.iter().any(|(f, _)| *f == wanted);
        if !has(CdxField::Timestamp) {
            return Err(InvalidLegend::Missing("date (b)"));
        }
        if !has(CdxField::Key) && !has(CdxField::Original) {
            return Err(InvalidLegend::Missing("key (N) and no URL (a)"));
        }
        Ok(Self {
            fields,
            delimiter,
            header: true,
        })
    }

    /// Returns the fields in their order.
    pub fn fields(&self) -> impl Iterator<Item = CdxField> + '_ {
        self.fields.iter().map(|(field, _)| *field)
    }

    pub(super) fn header(&self) -> Option<String> {
        if !self.header {
            return None;
        }
        let mut header = format!("{}CDX", self.delimiter);
        for (_, letter) in &self.fields {
            header.push(self.delimiter);
            header.push(*letter);
        }
        Some(header)
    }

    pub(super) fn read_line(&self, line: &str) -> Result<Capture, InvalidLine> {
        let found = line.split(self.delimiter).count();
        if found != self.fields.len() {
            return Err(InvalidLine::Fields {
                expected: self.fields.len(),
                found,
            });
        }
        let mut key = None;
        let mut timestamp = None;
        let mut capture = Capture::new("", Stamp::from_time(jiff::Timestamp::UNIX_EPOCH));
        for ((field, letter), text) in self.fields.iter().zip(line.split(self.delimiter)) {
            let value = (text != "-" && !text.is_empty()).then_some(text);
            let owned = || value.map(str::to_owned);
            match field {
                CdxField::Key => key = owned(),
                CdxField::Timestamp => timestamp = value,
                CdxField::Original => capture.original = owned(),
                CdxField::Mime => capture.mime = owned(),
                CdxField::Status => capture.status = read_number("status", value)?,
                CdxField::Digest => capture.digest = owned(),
                CdxField::Md5 => capture.digest = value.map(|v| format!("md5:{v}")),
                CdxField::Redirect => capture.redirect = owned(),
                CdxField::Robots => capture.robots = owned(),
                CdxField::Length => capture.length = read_number("length", value)?,
                CdxField::Offset => capture.offset = read_number("offset", value)?,
                CdxField::File => capture.file = owned(),
                CdxField::OriginalLength => {
                    let length = read_number("original length", value)?;
                    set_original(&mut capture, value, |o| o.length = length);
                }
                CdxField::OriginalOffset => {
                    let offset = read_number("original offset", value)?;
                    set_original(&mut capture, value, |o| o.offset = offset);
                }
                CdxField::OriginalFile => set_original(&mut capture, value, |o| o.file = owned()),
                CdxField::Other(_) => capture
                    .extra
                    .extend(owned().map(|v| (letter.to_string(), v))),
            }
        }
        capture.timestamp = timestamp
            .unwrap_or_default()
            .parse()
            .map_err(InvalidLine::Timestamp)?;
        capture.key = match (key, &capture.original) {
            (Some(key), _) => key,
            (None, Some(url)) => UrlKey::parse(url).to_string(),
            (None, None) => return Err(InvalidLine::NoKey),
        };
        Ok(capture)
    }

    pub(super) fn write_line(&self, capture: &Capture) -> String {
        let mut line = String::new();
        for (n, (field, letter)) in self.fields.iter().enumerate() {
            if n > 0 {
                line.push(self.delimiter);
            }
            let original = capture.original_record.as_ref();
            match field {
                CdxField::Key => self.push(&mut line, Some(&capture.key)),
                CdxField::Timestamp => self.push(&mut line, Some(&capture.timestamp.to_string())),
                CdxField::Original => self.push(&mut line, capture.original.as_deref()),
                CdxField::Mime => self.push(&mut line, capture.mime.as_deref()),
                CdxField::Status => {
                    self.push(&mut line, capture.status.map(|s| s.to_string()).as_deref());
                }
                CdxField::Digest => {
                    let digest = capture.digest.as_deref();
                    self.push(
                        &mut line,
                        digest.map(|d| d.strip_prefix("sha1:").unwrap_or(d)),
                    );
                }
                CdxField::Md5 => {
                    let digest = capture.digest.as_deref();
                    self.push(&mut line, digest.and_then(|d| d.strip_prefix("md5:")));
                }
                CdxField::Redirect => self.push(&mut line, capture.redirect.as_deref()),
                CdxField::Robots => self.push(&mut line, capture.robots.as_deref()),
                CdxField::Length => self.push_number(&mut line, capture.length),
                CdxField::Offset => self.push_number(&mut line, capture.offset),
                CdxField::File => self.push(&mut line, capture.file.as_deref()),
                CdxField::OriginalLength => {
                    self.push_number(&mut line, original.and_then(|o| o.length));
                }
                CdxField::OriginalOffset => {
                    self.push_number(&mut line, original.and_then(|o| o.offset));
                }
                CdxField::OriginalFile => {
                    self.push(&mut line, original.and_then(|o| o.file.as_deref()));
                }
                CdxField::Other(_) => {
                    self.push(&mut line, capture.extra(letter.encode_utf8(&mut [0; 4])));
                }
            }
        }
        line
    }

    /// Appends a value, with each character escaped that would end the field or the line.
    fn push(&self, line: &mut String, value: Option<&str>) {
        let Some(value) = value.filter(|v| !v.is_empty()) else {
            line.push('-');
            return;
        };
        for c in value.chars() {
            if c.is_ascii_whitespace() || c.is_ascii_control() || c == self.delimiter {
                for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                    // Writing to a string cannot fail.
                    let _ok = write!(line, "%{byte:02X}").is_ok();
                }
            } else {
                line.push(c);
            }
        }
    }

    fn push_number(&self, line: &mut String, value: Option<u64>) {
        self.push(line, value.map(|n| n.to_string()).as_deref());
    }
}

fn field(letter: char) -> CdxField {
    match letter {
        'N' => CdxField::Key,
        'b' => CdxField::Timestamp,
        'a' | 'A' => CdxField::Original,
        'm' => CdxField::Mime,
        's' => CdxField::Status,
        'k' => CdxField::Digest,
        'r' => CdxField::Redirect,
        'M' => CdxField::Robots,
        'S' | 'n' => CdxField::Length,
        'V' | 'v' => CdxField::Offset,
        'g' => CdxField::File,
        other => CdxField::Other(other),
    }
}

pub(super) fn read_number<N: std::str::FromStr>(
    field: &'static str,
    value: Option<&str>,
) -> Result<Option<N>, InvalidLine> {
    let Some(text) = value else { return Ok(None) };
    let digits = text.bytes().all(|b| b.is_ascii_digit());
    match text.parse() {
        Ok(number) if digits => Ok(Some(number)),
        _ => Err(InvalidLine::Number {
            field,
            value: text.to_owned(),
        }),
    }
}

pub(super) fn set_original(
    capture: &mut Capture,
    value: Option<&str>,
    set: impl FnOnce(&mut OriginalRecord),
) {
    if value.is_some() {
        set(capture.original_record.get_or_insert_default());
    }
}
