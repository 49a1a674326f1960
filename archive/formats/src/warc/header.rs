//! The header of a record: its fields in their order and spelling, and the bytes as they stand in the file.
//!
//! Owns the syntax of named fields. Does not judge them: which fields a type needs is the validator's business.

use std::borrow::Cow;
use std::ops::Range;

/// A header as it was read. A reader uses one for all its records, so that reading allocates nothing.
///
/// ```
/// use archive_formats::warc::Header;
///
/// let header = Header::parse(b"WARC/1.1\r\nWARC-Type: response\r\nContent-Length: 5\r\n\r\n");
/// assert_eq!(header.text_of("warc-type").as_deref(), Some("response"));
/// assert_eq!(header.content_length(), Ok(Some(5)));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Header {
    raw: Vec<u8>,
    /// The text that the fields point into if they do not stand in the file: the view of an ARC line.
    view: Option<Vec<u8>>,
    first_line: Range<usize>,
    fields: Vec<Span>,
    irregular: Irregular,
}

/// The oddities of a header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Irregular {
    /// The number of lines that end with LF alone.
    pub(crate) bare_line_ends: usize,
    /// The number of lines that are no field.
    pub(crate) no_field: usize,
    /// The offset of the first line that is no field.
    pub(crate) first_no_field: usize,
}

#[derive(Clone, Copy, Debug)]
struct Span {
    start: usize,
    name_end: usize,
    value: usize,
    end: usize,
}

/// A named field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedField<'a> {
    /// The name as it is spelled.
    pub name: &'a [u8],
    /// The value without the white space around it, with the line ends of folded lines.
    pub raw: &'a [u8],
}

impl<'a> NamedField<'a> {
    /// Returns whether the field has this name, in any case.
    pub fn is_named(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name.as_bytes())
    }

    /// Returns the value, with folded lines joined with one space.
    pub fn value(&self) -> Cow<'a, [u8]> {
        if memchr::memchr(b'\n', self.raw).is_none() {
            return Cow::Borrowed(self.raw);
        }
        let lines: Vec<&[u8]> = self
            .raw
            .split(|&byte| byte == b'\n')
            .map(<[u8]>::trim_ascii)
            .collect();
        Cow::Owned(lines.join(&b' '))
    }
}

impl Header {
    /// Reads a header from its bytes, empty line included.
    pub fn parse(raw: &[u8]) -> Self {
        let mut header = Self::default();
        header.read_header(raw);
        header
    }

    /// Reads the header from these bytes.
    pub(crate) fn read_header(&mut self, raw: &[u8]) {
        self.raw.clear();
        self.raw.extend_from_slice(raw);
        self.view = None;
        self.index();
    }

    /// Reads a header whose fields stand in `view`, and not in the file.
    pub(crate) fn read_view(&mut self, raw: &[u8], view: Vec<u8>) {
        self.raw.clear();
        self.raw.extend_from_slice(raw);
        self.view = Some(view);
        self.index();
    }

    fn text(&self) -> &[u8] {
        self.view.as_deref().unwrap_or(&self.raw)
    }

    fn index(&mut self) {
        let mut fields = std::mem::take(&mut self.fields);
        fields.clear();
        let mut irregular = Irregular::default();
        let text = self.text();
        let mut at = 0;
        let mut first_line = 0..0;
        while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
            let (length, next) = match memchr::memchr(b'\n', rest) {
                Some(length) => (length, length + 1),
                None => (rest.len(), rest.len()),
            };
            let line = rest.get(..length).unwrap_or_default();
            let line = line.strip_suffix(b"\r").unwrap_or_else(|| {
                irregular.bare_line_ends += 1;
                line
            });
            let end = at + line.len();
            if at == 0 {
                first_line = 0..end;
            } else if let Some((first, _)) = line.split_first() {
                if matches!(first, b' ' | b'\t') {
                    match fields.last_mut() {
                        Some(span) if !line.trim_ascii().is_empty() => {
                            if span.value == span.end {
                                span.value = end - line.trim_ascii_start().len();
                            }
                            span.end = at + line.trim_ascii_end().len();
                        }
                        Some(_) => {}
                        None => irregular.note(at),
                    }
                } else {
                    match memchr::memchr(b':', line) {
                        Some(colon) if colon > 0 => {
                            let after = line.get(colon + 1..).unwrap_or_default();
                            let value = end - after.trim_ascii_start().len();
                            fields.push(Span {
                                start: at,
                                name_end: at + colon,
                                value,
                                end: value + after.trim_ascii().len(),
                            });
                        }
                        _ => irregular.note(at),
                    }
                }
            }
            at += next;
        }
        self.first_line = first_line;
        self.irregular = irregular;
        self.fields = fields;
    }

    /// Returns the bytes of the header as they stand in the file: of a WARC record up to and with its empty line, of an
    /// ARC record its line.
    pub fn raw(&self) -> &[u8] {
        &self.raw
    }

    /// Returns the line with the version.
    pub fn first_line(&self) -> &[u8] {
        self.text().get(self.first_line.clone()).unwrap_or_default()
    }

    pub(crate) fn irregular(&self) -> Irregular {
        self.irregular
    }

    /// Returns the fields in their order.
    pub fn fields(&self) -> impl DoubleEndedIterator<Item = NamedField<'_>> + ExactSizeIterator {
        let text = self.text();
        self.fields.iter().map(move |span| NamedField {
            name: text
                .get(span.start..span.name_end)
                .unwrap_or_default()
                .trim_ascii_end(),
            raw: text.get(span.value..span.end).unwrap_or_default(),
        })
    }

    /// Returns all values of the fields of this name, in any case.
    pub fn all_values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = Cow<'a, [u8]>> {
        self.fields()
            .filter(move |field| field.is_named(name))
            .map(|field| field.value())
    }

    /// Returns the value of the first field of this name, in any case.
    pub fn get(&self, name: &str) -> Option<Cow<'_, [u8]>> {
        self.fields()
            .find(|field| field.is_named(name))
            .map(|field| field.value())
    }

    /// Returns the first value as text; bytes that are not UTF-8 are replaced.
    pub fn text_of(&self, name: &str) -> Option<Cow<'_, str>> {
        self.get(name).map(lossy)
    }

    /// Returns the first value without the angle brackets that WARC 1.0 puts around it.
    pub fn read_uri(&self, name: &str) -> Option<Cow<'_, str>> {
        self.text_of(name).map(|text| match text {
            Cow::Borrowed(text) => Cow::Borrowed(bare(text)),
            Cow::Owned(text) => Cow::Owned(bare(&text).to_owned()),
        })
    }

    /// Returns the length of the block by the header; `None` if the header does not have it.
    ///
    /// # Errors
    ///
    /// Fails with the reason if the length is not a number, or if two lengths differ.
    pub fn content_length(&self) -> Result<Option<u64>, String> {
        let mut found: Option<u64> = None;
        for field in self
            .fields()
            .filter(|field| field.is_named("Content-Length"))
        {
            let Some(length) = read_number(field.raw) else {
                return Err(format!(
                    "Content-Length is no number: {:?}",
                    String::from_utf8_lossy(field.raw.get(..80).unwrap_or(field.raw))
                ));
            };
            match found {
                Some(before) if before != length => {
                    return Err(format!(
                        "Content-Length is there twice, with {before} and {length}"
                    ));
                }
                _ => found = Some(length),
            }
        }
        Ok(found)
    }
}

impl Irregular {
    fn note(&mut self, at: usize) {
        if self.no_field == 0 {
            self.first_no_field = at;
        }
        self.no_field += 1;
    }
}

fn lossy(bytes: Cow<'_, [u8]>) -> Cow<'_, str> {
    match bytes {
        Cow::Borrowed(bytes) => String::from_utf8_lossy(bytes),
        Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
    }
}

fn bare(text: &str) -> &str {
    text.strip_prefix('<')
        .and_then(|text| text.strip_suffix('>'))
        .unwrap_or(text)
}

/// Reads a number of digits and nothing else.
pub(crate) fn read_number(bytes: &[u8]) -> Option<u64> {
    if bytes.is_empty() {
        return None;
    }
    bytes.iter().try_fold(0_u64, |sum, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        sum.checked_mul(10)?.checked_add(digit)
    })
}

/// The beginning of the first line of a record; in any case, as all literals of the standard's grammar.
const NAME: &[u8] = b"WARC/";

/// Returns whether the first line of a record may begin with these bytes, as far as they go.
pub(crate) fn may_begin(bytes: &[u8]) -> bool {
    let known = bytes.len().min(NAME.len());
    let name = NAME.get(..known).unwrap_or_default();
    bytes
        .get(..known)
        .is_some_and(|bytes| bytes.eq_ignore_ascii_case(name))
}

/// The longest first line that is accepted where it is not in capitals.
const LONGEST_FIRST_LINE: usize = 64;

/// Returns whether more bytes are needed to tell whether a record begins with these.
pub(crate) fn is_undecided(bytes: &[u8]) -> bool {
    let is_short = bytes.len() <= LONGEST_FIRST_LINE && !bytes.contains(&b'\n');
    may_begin(bytes) && (bytes.len() < NAME.len() || is_short && !bytes.starts_with(NAME))
}

/// Returns whether a record begins with these bytes. In capitals `WARC/` is enough; else the whole line has to be a
/// version, because content such as the URI of a revisit profile has `warc/` in it.
pub(crate) fn begins_header(bytes: &[u8]) -> bool {
    let mut lines = bytes.split(|&byte| byte == b'\n');
    let first = lines.next().unwrap_or_default();
    bytes.starts_with(NAME) || first.len() <= LONGEST_FIRST_LINE && is_version_line(first)
}

/// Returns whether a line is `WARC/` and a possible version, known or not.
pub(crate) fn is_version_line(line: &[u8]) -> bool {
    line.split_at_checked(NAME.len())
        .is_some_and(|(name, version)| {
            let version = version.trim_ascii_end();
            name.eq_ignore_ascii_case(NAME)
                && version.first().is_some_and(u8::is_ascii_digit)
                && version
                    .iter()
                    .all(|&byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-'))
        })
}

/// The extent of a header.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// The header is complete, and has this length with its empty line.
    Complete(usize),
    /// The header is cut: after this number of bytes another record begins, without an empty line before it.
    Cut(usize),
    /// The header continues behind the bytes.
    Partial,
}

/// Looks for the end of a header, from the line at `from` on.
pub(crate) fn header_extent(bytes: &[u8], from: &mut usize) -> Extent {
    while let Some(rest) = bytes.get(*from..) {
        let Some(length) = memchr::memchr(b'\n', rest) else {
            return Extent::Partial;
        };
        let line = rest.get(..length).unwrap_or_default();
        if *from > 0 && is_version_line(line) {
            return Extent::Cut(*from);
        }
        *from += length + 1;
        if line.is_empty() || line == b"\r" {
            return Extent::Complete(*from);
        }
    }
    Extent::Partial
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &[u8] = b"WARC/1.0\r\nwarc-type: response\r\nWARC-Concurrent-To: <urn:a>\r\n\
        X-Folded: one\r\n  two\r\n\tthree \r\nwarc-concurrent-to:<urn:b>  \r\nno field\r\n\
        WARC-Target-URI: <http://example.org/\xc3\xa6>\r\nContent-Length : 12\r\nEmpty:\r\n\r\n";

    /// Fails if reading a header changes its bytes, loses a repeated or folded field, or finds a field in one case
    /// only.
    #[test]
    fn order_case_duplicates_and_folding_are_kept() {
        let header = Header::parse(HEADER);
        assert_eq!(header.raw(), HEADER);
        assert_eq!(header.first_line(), b"WARC/1.0");
        let names: Vec<_> = header
            .fields()
            .map(|field| String::from_utf8_lossy(field.name).into_owned())
            .collect();
        assert_eq!(
            names,
            [
                "warc-type",
                "WARC-Concurrent-To",
                "X-Folded",
                "warc-concurrent-to",
                "WARC-Target-URI",
                "Content-Length",
                "Empty"
            ]
        );
        assert_eq!(
            header.get("x-folded").as_deref(),
            Some(&b"one two three"[..])
        );
        let all: Vec<_> = header.all_values("WARC-Concurrent-To").collect();
        assert_eq!(all, [&b"<urn:a>"[..], b"<urn:b>"]);
        assert_eq!(
            header.read_uri("warc-target-uri").as_deref(),
            Some("http://example.org/\u{e6}")
        );
        assert_eq!(header.content_length(), Ok(Some(12)));
        assert_eq!(header.get("empty").as_deref(), Some(&b""[..]));
        assert_eq!(header.get("absent"), None);
        assert_eq!(header.irregular().no_field, 1);
        assert_eq!(header.irregular().bare_line_ends, 0);
    }

    /// Fails if a sign, a hexadecimal number or an overflow passes for a `Content-Length`, or one of two different ones
    /// is chosen.
    #[test]
    fn lengths_that_are_none() {
        let of = |lines: &str| {
            Header::parse(format!("WARC/1.1\r\n{lines}\r\n").as_bytes()).content_length()
        };
        assert_eq!(of(""), Ok(None));
        assert_eq!(
            of("Content-Length: 7\r\nContent-Length: 7\r\n"),
            Ok(Some(7))
        );
        for bad in ["-1", "+1", "", "0x10", "1 2", "99999999999999999999", "abc"] {
            assert!(of(&format!("Content-Length: {bad}\r\n")).is_err(), "{bad}");
        }
        assert!(of("Content-Length: 7\r\nContent-Length: 8\r\n").is_err());
    }

    /// Fails if the end of a header is missed at the edge of a read, or a torn header swallows the record behind it.
    #[test]
    fn end_of_header_is_found_in_pieces() {
        for whole in [HEADER, b"WARC/1.0\nA: b\n\n", b"WARC/1.0\r\n\r\n"] {
            let mut from = 0;
            for length in 0..whole.len() {
                assert_eq!(header_extent(&whole[..length], &mut from), Extent::Partial);
            }
            assert_eq!(
                header_extent(whole, &mut from),
                Extent::Complete(whole.len())
            );
        }
        let cut = b"WARC/1.0\r\nWARC-Ty\r\nWARC/1.1\r\n";
        assert_eq!(header_extent(cut, &mut 0), Extent::Cut(19));
    }

    /// Fails if a header that is cut anywhere makes the parser panic, or a line without a name becomes a field.
    #[test]
    fn odd_header_is_read() {
        for length in 0..HEADER.len() {
            let header = Header::parse(&HEADER[..length]);
            assert_eq!(header.raw().len(), length);
            assert!(header.fields().all(|field| field.value().len() < 100));
        }
        for odd in [
            &b"\n\n\n"[..],
            b":\r\n:\r\n",
            b" \r\n \r\n",
            b"WARC/1.0\r\n x\r\n",
        ] {
            assert_eq!(Header::parse(odd).fields().count(), 0, "{odd:?}");
        }
    }
}
