//! The crawl log of Heritrix: one line of 12 fields for each URI that a crawl has finished.
//!
//! Owns how a line is written, byte for byte as Heritrix writes it, and how it is read back, from its logs and from
//! those of NetarchiveSuite's jobs since 2005: fewer fields, runs of blanks, both spellings of a duplicate's origin.
//! Does not know the meaning of a status.
//!
//! ```
//! use archive_formats::crawl_log::CrawlLogLine;
//!
//! let text = "2021-07-05T15:20:39.378Z   200       1234 http://a.dk/x LE http://a.dk/ text/html #007 \
//!     20210705152039301+52 sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ http://a.dk/ content-size:1500,3t";
//! let line: CrawlLogLine = text.parse()?;
//! assert_eq!((line.status, line.size, line.content_size()), (200, Some(1234), Some(1500)));
//! assert_eq!(line.to_string(), text);
//! # Ok::<(), archive_formats::crawl_log::InvalidCrawlLogLine>(())
//! ```

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use thiserror::Error;

use crate::date::Stamp;

/// A line of a crawl log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrawlLogLine {
    /// Field 1: the time when the line was written, to the millisecond.
    pub time: Timestamp,
    /// Field 2: the fetch status.
    pub status: i32,
    /// Field 3: the length of the body, or of the record for other protocols than HTTP.
    pub size: Option<u64>,
    /// Field 4: the URI. Blanks in it are escaped where it is written.
    pub uri: String,
    /// Field 5: the hops from the seed; `-` for a seed.
    pub hops: String,
    /// Field 6: the URI that led to this one.
    pub via: Option<String>,
    /// Field 7: the media type without parameters.
    pub media_type: Option<String>,
    /// Field 8: the number of the thread or connection.
    pub thread: u32,
    /// Field 9: the time when the fetch began, with 17 digits.
    pub begun: Option<Stamp>,
    /// Field 9: the duration of the fetch, in milliseconds.
    pub milliseconds: u64,
    /// Field 10: the labelled digest of the payload.
    pub digest: Option<String>,
    /// Field 11: the seed from which the URI was reached.
    pub source: Option<String>,
    /// Field 12: annotations, in their order. None of them has a comma outside of quotation marks.
    pub annotations: Vec<String>,
}

/// The first capture of which a capture is a duplicate, as the annotation `duplicate:"…"` names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DuplicateOrigin {
    /// The name of the archive file.
    pub file: String,
    /// The offset of the record in that file.
    pub offset: u64,
    /// The time of the first capture: 14 or 17 digits.
    pub time: Stamp,
}

/// The reason why a text is not a line of a crawl log.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InvalidCrawlLogLine {
    /// The line has fewer fields than any crawler has written.
    #[error("{0} fields, where a line of a crawl log has at least 10")]
    Fields(usize),
    /// A field does not have its form.
    #[error("field {number} (`{text}`) is no {expected}")]
    Field {
        /// The number of the field, from 1.
        number: usize,
        /// The text of the field.
        text: String,
        /// The form that the field has to have.
        expected: &'static str,
    },
}

impl CrawlLogLine {
    /// Returns the size of the record with the head of the response: the annotation `content-size:N`.
    pub fn content_size(&self) -> Option<u64> {
        let mut annotations = self.annotations.iter();
        annotations.find_map(|text| text.strip_prefix("content-size:")?.parse().ok())
    }

    /// Returns the capture of which this one is a duplicate, where an annotation names it:
    /// `duplicate:"file,offset,time"`, or the same without quotation marks as old crawlers wrote it.
    pub fn duplicate_origin(&self) -> Option<DuplicateOrigin> {
        let begins =
            |text: &String| text.starts_with("duplicate:") || text.starts_with("deduplicate:");
        let first = self.annotations.iter().position(begins)?;
        // Without quotation marks the parts of the origin look like three annotations.
        let parts = self.annotations.get(first..)?.iter().take(3);
        let joined = parts.map(String::as_str).collect::<Vec<_>>().join(",");
        let (_, origin) = joined.split_once(':')?;
        let origin = match origin.strip_prefix('"') {
            Some(quoted) => quoted.split('"').next()?,
            None => origin,
        };
        let mut parts = origin.split(',');
        Some(DuplicateOrigin {
            file: parts.next().filter(|file| !file.is_empty())?.to_owned(),
            offset: parts.next()?.parse().ok()?,
            time: parts.next()?.parse().ok()?,
        })
    }
}

impl fmt::Display for DuplicateOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = Stamp::from_time_millis(self.time.time());
        write!(f, "duplicate:\"{},{},{time}\"", self.file, self.offset)
    }
}

impl fmt::Display for CrawlLogLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = self
            .size
            .map_or_else(|| "-".to_owned(), |size| size.to_string());
        write!(f, "{:.3} {:>5} {size:>10} ", self.time, self.status)?;
        write!(
            f,
            "{} {} ",
            escape_blanks(&self.uri),
            escape_blanks(&self.hops)
        )?;
        write!(f, "{} ", field(self.via.as_deref(), "-"))?;
        write!(
            f,
            "{} #{:03} ",
            field(self.media_type.as_deref(), "unknown"),
            self.thread
        )?;
        match self.begun {
            Some(begun) => {
                let begun = Stamp::from_time_millis(begun.time());
                write!(f, "{begun}+{} ", self.milliseconds)?;
            }
            None => f.write_str("- ")?,
        }
        write!(f, "{} ", field(self.digest.as_deref(), "-"))?;
        write!(f, "{} ", field(self.source.as_deref(), "-"))?;
        let annotations = self.annotations.join(",");
        f.write_str(&field(Some(&annotations), "-"))
    }
}

/// Returns a field as it is written; `absent` if there is no value, or an empty one.
fn field(value: Option<&str>, absent: &str) -> String {
    match value {
        Some(value) if !value.is_empty() => escape_blanks(value),
        _ => absent.to_owned(),
    }
}

/// Escapes blanks and control characters as `%XX` of their UTF-8, so that a value is one field of one line.
pub fn escape_blanks(value: &str) -> String {
    let separates = |letter: char| letter.is_whitespace() || letter.is_control();
    if !value.contains(separates) {
        return value.to_owned();
    }
    let mut escaped = String::with_capacity(value.len() + 2);
    let mut bytes = [0; 4];
    for letter in value.chars() {
        if separates(letter) {
            for byte in letter.encode_utf8(&mut bytes).bytes() {
                escaped.extend(['%', hex_digit(byte >> 4), hex_digit(byte & 15)]);
            }
        } else {
            escaped.push(letter);
        }
    }
    escaped
}

fn hex_digit(nibble: u8) -> char {
    char::from_digit(u32::from(nibble), 16).map_or('0', |digit| digit.to_ascii_uppercase())
}

impl FromStr for CrawlLogLine {
    type Err = InvalidCrawlLogLine;

    /// Reads a line. Runs of blanks separate fields, a field 13 is left out, and fields 11 and 12 may be missing.
    fn from_str(text: &str) -> Result<Self, InvalidCrawlLogLine> {
        let fields: Vec<&str> = text.split_ascii_whitespace().take(12).collect();
        let [
            time,
            status,
            size,
            uri,
            hops,
            via,
            media_type,
            thread,
            begun,
            digest,
            rest @ ..,
        ] = fields.as_slice()
        else {
            return Err(InvalidCrawlLogLine::Fields(fields.len()));
        };
        let given = |text: &str| (text != "-").then(|| text.to_owned());
        let invalid = |number, text: &str, expected| InvalidCrawlLogLine::Field {
            number,
            text: text.to_owned(),
            expected,
        };
        let (begun, milliseconds) = match begun.split_once('+') {
            _ if *begun == "-" => (None, 0),
            Some((first, took)) => {
                let start = first.parse().ok();
                let duration = took.parse().ok();
                start.zip(duration).map(|(start, took)| (Some(start), took))
            }
            .ok_or_else(|| invalid(9, begun, "time and duration"))?,
            None => return Err(invalid(9, begun, "time and duration")),
        };
        Ok(Self {
            time: time.parse().ok().ok_or_else(|| invalid(1, time, "time"))?,
            status: status
                .parse()
                .ok()
                .ok_or_else(|| invalid(2, status, "status"))?,
            size: match *size {
                "-" => None,
                size => Some(size.parse().ok().ok_or_else(|| invalid(3, size, "size"))?),
            },
            uri: (*uri).to_owned(),
            hops: (*hops).to_owned(),
            via: given(via),
            media_type: Some((*media_type).to_owned())
                .filter(|text| text != "unknown" && text != "-"),
            thread: thread
                .strip_prefix('#')
                .and_then(|number| number.parse().ok())
                .ok_or_else(|| invalid(8, thread, "thread"))?,
            begun,
            milliseconds,
            digest: given(digest),
            source: rest.first().and_then(|source| given(source)),
            annotations: rest.get(1).map_or_else(Vec::new, |text| annotations(text)),
        })
    }
}

/// Splits a field into annotations: at commas that are not between quotation marks.
fn annotations(text: &str) -> Vec<String> {
    if text == "-" {
        return Vec::new();
    }
    let mut quoted = false;
    let separates = |letter: char| {
        quoted ^= letter == '"';
        letter == ',' && !quoted
    };
    let parts = text.split(separates).filter(|part| !part.is_empty());
    parts.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(annotations: &str) -> CrawlLogLine {
        format!(
            "2021-07-05T15:20:39.378Z   200       1234 http://a.dk/x - - text/html #007 20210705152039301+52 \
             sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ - {annotations}"
        )
        .parse()
        .unwrap()
    }

    /// Fails if a field can begin another one, or an absent one leaves the line a field short.
    #[test]
    fn written_line_has_twelve_fields() {
        let full = line("3t,content-size:9");
        let odd = CrawlLogLine {
            uri: "http://a.dk/a b\nc\u{2003}".to_owned(),
            hops: "-".to_owned(),
            via: Some("x y".to_owned()),
            media_type: None,
            size: None,
            begun: None,
            digest: None,
            status: -9998,
            thread: 1234,
            annotations: Vec::new(),
            ..full.clone()
        };
        assert_eq!(
            odd.to_string(),
            "2021-07-05T15:20:39.378Z -9998          - http://a.dk/a%20b%0Ac%E2%80%83 - x%20y unknown #1234 - - - -"
        );
        for line in [full, odd] {
            let text = line.to_string();
            assert_eq!(text.split_whitespace().count(), 12, "{text}");
            assert_eq!(text.parse::<CrawlLogLine>().unwrap().to_string(), text);
        }
    }

    /// Fails if a time without milliseconds is written with fewer digits than Heritrix writes.
    #[test]
    fn times_have_their_digits() {
        let mut whole = line("-");
        whole.time = "2021-07-05T15:20:39Z".parse().unwrap();
        whole.begun = Some("20210705152039".parse().unwrap());
        let text = whole.to_string();
        assert!(text.starts_with("2021-07-05T15:20:39.000Z "), "{text}");
        assert!(text.contains(" 20210705152039000+52 "), "{text}");
    }

    /// Fails if the origin of a duplicate is lost in one of its spellings.
    #[test]
    fn origin_is_read_in_every_spelling() {
        let origin = |annotations: &str| {
            line(annotations)
                .duplicate_origin()
                .map(|origin| origin.to_string())
        };
        let expected = Some("duplicate:\"1-2-x.arc.gz,123,20210705152039378\"".to_owned());
        for annotations in [
            "duplicate:\"1-2-x.arc.gz,123,20210705152039378\",content-size:9",
            "3t,deduplicate:1-2-x.arc.gz,123,20210705152039378",
            "duplicate:1-2-x.arc.gz,123,20210705152039378,2t",
        ] {
            assert_eq!(origin(annotations), expected, "{annotations}");
        }
        for annotations in [
            "-",
            "duplicate:digest",
            "duplicate:\"x,y,z\"",
            "duplicate:\"",
            "duplicate:,1,2",
            "duplicate:a,5",
        ] {
            assert_eq!(origin(annotations), None, "{annotations}");
        }
        assert_eq!(
            line("duplicate:\"a,1,20210705152039\",content-size:9").content_size(),
            Some(9)
        );
    }

    /// Fails if an old line is refused, or a bad one is taken.
    #[test]
    fn short_lines_are_read_and_bad_ones_named() {
        let text = line("2t").to_string();
        let fields: Vec<&str> = text.split_whitespace().collect();
        assert!(fields[..10].join("  ").parse::<CrawlLogLine>().is_ok());
        assert_eq!(
            fields[..9].join(" ").parse::<CrawlLogLine>(),
            Err(InvalidCrawlLogLine::Fields(9))
        );
        for (index, bad) in [
            (0, "now"),
            (1, "ok"),
            (2, "big"),
            (7, "7"),
            (8, "2021+x"),
            (8, "2021"),
        ] {
            let mut fields = fields.clone();
            fields[index] = bad;
            let error = fields.join(" ").parse::<CrawlLogLine>().unwrap_err();
            assert!(
                matches!(error, InvalidCrawlLogLine::Field { number, .. } if number == index + 1),
                "{error}"
            );
        }
    }
}
