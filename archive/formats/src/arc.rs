//! ARC, the format before WARC: read only, as a dialect of it.
//!
//! Owns the line before each record and the view of it as a WARC header. Fields are taken from the right, because URLs
//! in old files have spaces in them. Does not write ARC.

use crate::warc::header::read_number;

/// The longest line that is read.
pub(crate) const LONGEST_LINE: usize = 16 * 1024;

/// The line before a record of an ARC file.
///
/// ```
/// use archive_formats::arc::ArcLine;
///
/// let line = ArcLine::parse(b"http://example.org/a b 192.0.2.1 20080430204825 text/html 120").unwrap();
/// assert_eq!((line.url.as_slice(), line.length), (&b"http://example.org/a b"[..], Some(120)));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArcLine {
    /// The address that was fetched, spaces included; `filedesc:` before the version block.
    pub url: Vec<u8>,
    /// The IP address of the server.
    pub ip: Vec<u8>,
    /// The time of the capture: 14 digits, in good files.
    pub date: Vec<u8>,
    /// The media type that the server gave.
    pub content_type: Vec<u8>,
    /// The fields that only version 2 has.
    pub two: Option<Two>,
    /// The number of bytes of the record behind the line, if the line has it.
    pub length: Option<u64>,
}

/// The fields of version 2 that version 1 does not have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Two {
    /// The status of the response.
    pub result_code: Vec<u8>,
    /// The checksum, of an algorithm that no line names.
    pub checksum: Vec<u8>,
    /// The target of a redirect.
    pub location: Vec<u8>,
    /// The offset at which the record begins.
    pub offset: Vec<u8>,
    /// The name of the file that the record is in.
    pub filename: Vec<u8>,
}

/// The strictness with which a line is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rigour {
    /// The line stands where a record of an ARC file has to begin.
    Expected,
    /// The line stands anywhere.
    Anywhere,
}

impl ArcLine {
    /// Reads a line, without its end. Returns `None` if it is no line before a record.
    pub fn parse(line: &[u8]) -> Option<Self> {
        Self::parse_as(line, Rigour::Expected)
    }

    pub(crate) fn parse_as(line: &[u8], rigour: Rigour) -> Option<Self> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if !has_scheme(line) || line.len() > LONGEST_LINE {
            return None;
        }
        let words: Vec<&[u8]> = line.split(|&byte| byte == b' ').collect();
        let is_filedesc = line.starts_with(b"filedesc:");
        // Fields are read from the right: the length, then the type, then the date with an address before it.
        let last = words.len().checked_sub(1)?;
        let word = |at: usize| words.get(at).copied().unwrap_or_default();
        let date = (1..last)
            .rev()
            .find(|&at| is_date(word(at)) && is_address(word(at - 1)));
        let Some(date) = date.filter(|&at| at >= 2) else {
            if is_filedesc || (rigour == Rigour::Expected && words.len() >= 3) {
                return Some(Self::odd(&words));
            }
            return None;
        };
        let join = |from: usize, to: usize| words.get(from..to).unwrap_or_default().join(&b' ');
        let length = read_number(word(last));
        let after = last - date;
        let (content_type, two) = if after >= 7 && read_number(word(last - 2)).is_some() {
            let two = Two {
                result_code: word(last - 5).to_vec(),
                checksum: word(last - 4).to_vec(),
                location: word(last - 3).to_vec(),
                offset: word(last - 2).to_vec(),
                filename: word(last - 1).to_vec(),
            };
            (join(date + 1, last - 5), Some(two))
        } else {
            (join(date + 1, last), None)
        };
        Some(Self {
            url: join(0, date - 1),
            ip: word(date - 1).to_vec(),
            date: word(date).to_vec(),
            content_type,
            two,
            length,
        })
    }

    /// Reads as many fields as possible of a line with too few fields, or with impossible ones.
    fn odd(words: &[&[u8]]) -> Self {
        let mut rest = words.iter();
        let url = rest.next().copied().unwrap_or_default().to_vec();
        let length = rest.next_back().and_then(|word| read_number(word));
        let find = |test: fn(&[u8]) -> bool| {
            let found = words.iter().skip(1).find(|word| test(word));
            found.map(|word| word.to_vec()).unwrap_or_default()
        };
        Self {
            url,
            ip: find(|word| word.contains(&b'.') && is_address(word)),
            date: find(is_date),
            content_type: find(|word| word.contains(&b'/')),
            two: None,
            length,
        }
    }

    /// Returns whether the line has every field that its version has.
    pub fn is_complete(&self) -> bool {
        !self.ip.is_empty() && self.date.len() == 14 && !self.content_type.is_empty()
    }

    /// Returns whether the version block follows the line.
    pub fn is_filedesc(&self) -> bool {
        self.url.starts_with(b"filedesc:")
    }

    /// Returns the line as the header of a WARC record.
    pub(crate) fn view_as_warc(&self) -> Vec<u8> {
        let mut view = b"ARC\r\n".to_vec();
        let mut field = |name: &str, value: &[u8]| {
            if !value.is_empty() {
                view.extend_from_slice(name.as_bytes());
                view.extend_from_slice(b": ");
                view.extend_from_slice(value);
                view.extend_from_slice(b"\r\n");
            }
        };
        let is_http = [&b"http:"[..], b"https:"].iter().any(|scheme| {
            self.url
                .get(..scheme.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(scheme))
        });
        let kind: &[u8] = if self.is_filedesc() {
            b"warcinfo"
        } else {
            b"response"
        };
        field("WARC-Type", kind);
        field("WARC-Target-URI", &self.url);
        field("WARC-Date", &w3c_date(&self.date));
        field("WARC-IP-Address", &self.ip);
        let content_type: &[u8] = if is_http {
            b"application/http; msgtype=response"
        } else {
            &self.content_type
        };
        field("Content-Type", content_type);
        if let Some(length) = self.length {
            field("Content-Length", length.to_string().as_bytes());
        }
        view.extend_from_slice(b"\r\n");
        view
    }
}

/// Returns `20080430204825` as `2008-04-30T20:48:25Z`, and digits behind that as parts of a second; any other date as
/// it is.
fn w3c_date(date: &[u8]) -> Vec<u8> {
    match (date.len(), std::str::from_utf8(date)) {
        (14..=18, Ok(text)) if text.bytes().all(|byte| byte.is_ascii_digit()) => {
            let part = |from: usize, to: usize| text.get(from..to).unwrap_or_default();
            let fraction = part(14, text.len());
            let point = if fraction.is_empty() { "" } else { "." };
            format!(
                "{}-{}-{}T{}:{}:{}{point}{fraction}Z",
                part(0, 4),
                part(4, 6),
                part(6, 8),
                part(8, 10),
                part(10, 12),
                part(12, 14)
            )
            .into_bytes()
        }
        _ => date.to_vec(),
    }
}

fn has_scheme(line: &[u8]) -> bool {
    let Some(colon) = memchr::memchr(b':', line.get(..32).unwrap_or(line)) else {
        return false;
    };
    let scheme = line.get(..colon).unwrap_or_default();
    scheme.first().is_some_and(u8::is_ascii_alphabetic)
        && scheme
            .iter()
            .all(|&byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
}

/// Returns whether a line begins with a scheme that is common in ARC files, in any case. The end of a scheme does not
/// count, so that reading may begin within a line.
pub fn has_usual_scheme(line: &[u8]) -> bool {
    [
        &b"http://"[..],
        b"https://",
        b"ftp://",
        b"rtsp://",
        b"mms://",
        b"gopher://",
        b"dns:",
        b"whois:",
        b"metadata:",
        b"filedesc:",
    ]
    .iter()
    .any(|scheme| {
        let start = line.get(..scheme.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    })
}

fn is_date(word: &[u8]) -> bool {
    (12..=18).contains(&word.len()) && word.iter().all(u8::is_ascii_digit)
}

fn is_address(word: &[u8]) -> bool {
    word == b"-"
        || (word.len() >= 3
            && word
                .iter()
                .all(|&byte| byte.is_ascii_hexdigit() || matches!(byte, b'.' | b':')))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a blank within the URL or the media type of an ARC line shifts the other fields.
    #[test]
    fn fields_are_taken_from_the_right() {
        for (line, url, kind, length) in [
            (
                "http://a/ 1.2.3.4 20080430204825 text/html 12",
                "http://a/",
                "text/html",
                Some(12),
            ),
            (
                "http://a/b c 1.2.3.4 20080430204825 text/html 12\r",
                "http://a/b c",
                "text/html",
                Some(12),
            ),
            (
                "http://a/ 20080430204825 x 1.2.3.4 20080430204825 text/html 12",
                "http://a/ 20080430204825 x",
                "text/html",
                Some(12),
            ),
            (
                "http://a/ 1.2.3.4 20080430204825 text/html; charset=x 12",
                "http://a/",
                "text/html; charset=x",
                Some(12),
            ),
            (
                "http://a/ ::1 20080430204825 text/html abc",
                "http://a/",
                "text/html",
                None,
            ),
            (
                "dns:a 1.2.3.4 20080430204825 text/dns 0",
                "dns:a",
                "text/dns",
                Some(0),
            ),
        ] {
            let parsed = ArcLine::parse_as(line.as_bytes(), Rigour::Anywhere).unwrap();
            assert_eq!(parsed.url, url.as_bytes(), "{line}");
            assert_eq!(parsed.content_type, kind.as_bytes(), "{line}");
            assert_eq!(parsed.length, length, "{line}");
            assert!(parsed.is_complete() && parsed.two.is_none(), "{line}");
        }
    }

    /// Fails if the additional fields of an ARC 2 line are taken for parts of the URL, or for one another.
    #[test]
    fn version_two_has_ten_fields() {
        let line = b"http://a/x y 1.2.3.4 20080430204825 text/html 200 ABC - 77 f.arc 12";
        let line = ArcLine::parse(line).unwrap();
        let two = line.two.as_ref().unwrap();
        assert_eq!(line.url, b"http://a/x y");
        assert_eq!(line.content_type, b"text/html");
        assert_eq!(two.result_code, b"200");
        assert_eq!(two.checksum, b"ABC");
        assert_eq!(two.location, b"-");
        assert_eq!(two.offset, b"77");
        assert_eq!(two.filename, b"f.arc");
        assert_eq!(line.length, Some(12));
    }

    /// Fails if a line of text or an HTTP field passes for an ARC line, or a line that lacks fields loses its date or
    /// length.
    #[test]
    fn lines_with_too_few_fields() {
        let line = ArcLine::parse(b"http://a/ 20080430204825 12").unwrap();
        assert!(!line.is_complete());
        assert_eq!(line.date, b"20080430204825");
        assert_eq!(line.length, Some(12));
        for none in [
            &b"http://a/"[..],
            b"",
            b" ",
            b"no url 1 2 3",
            b"<p>a: b</p>",
            b"a b: c d e f",
        ] {
            assert_eq!(ArcLine::parse(none), None, "{none:?}");
        }
        for anywhere in [
            &b"http://a/ b c"[..],
            b"Content-Type: text/html; a=b",
            b"Date: Sun, 16 Feb 2014 05:02:20 GMT",
        ] {
            assert_eq!(ArcLine::parse_as(anywhere, Rigour::Anywhere), None);
        }
    }

    /// Fails if the header view of an ARC record keeps the ARC form of the date, or has the media type of the page for
    /// that of the record.
    #[test]
    fn seen_as_a_header() {
        let line = ArcLine::parse(b"http://a/ 1.2.3.4 20080430204825 text/html 12").unwrap();
        let view = String::from_utf8(line.view_as_warc()).unwrap();
        assert!(
            view.contains("WARC-Date: 2008-04-30T20:48:25Z\r\n"),
            "{view}"
        );
        assert!(
            view.contains("Content-Type: application/http; msgtype=response\r\n"),
            "{view}"
        );
    }
}
