//! Multipart bodies: the names and values of their parts.

use crate::http::MediaType;

/// Returns the named parts; `None` if the body does not follow its boundary to the end. A part without a name has an
/// empty one.
pub(super) fn multipart_fields(boundary: &str, body: &[u8]) -> Option<Vec<(String, Vec<u8>)>> {
    let delimiter = [b"\n--", boundary.as_bytes()].concat();
    let mut fields = Vec::new();
    let mut rest = match body.strip_prefix(delimiter.get(1..)?) {
        Some(rest) => rest,
        None => body.get(memchr::memmem::find(body, &delimiter)? + delimiter.len()..)?,
    };
    loop {
        if rest.starts_with(b"--") {
            return Some(fields);
        }
        rest = line_end(blankless(rest))?;
        let next = memchr::memmem::find(rest, &delimiter)?;
        let part = rest.get(..next)?;
        let part = part.strip_suffix(b"\r").unwrap_or(part);
        fields.extend(field(part));
        rest = rest.get(next + delimiter.len()..)?;
    }
}

fn blankless(text: &[u8]) -> &[u8] {
    let blanks = text
        .iter()
        .take_while(|b| matches!(b, b' ' | b'\t'))
        .count();
    text.get(blanks..).unwrap_or_default()
}

fn line_end(text: &[u8]) -> Option<&[u8]> {
    text.strip_prefix(b"\r").unwrap_or(text).strip_prefix(b"\n")
}

fn field(part: &[u8]) -> Option<(String, Vec<u8>)> {
    let mut rest = part;
    let mut name = None;
    loop {
        let end = memchr::memchr(b'\n', rest);
        let line = end
            .and_then(|at| rest.get(..at))
            .unwrap_or(rest)
            .trim_ascii();
        rest = end.and_then(|at| rest.get(at + 1..)).unwrap_or_default();
        if line.is_empty() {
            break;
        }
        let colon = memchr::memchr(b':', line)?;
        let (header, value) = line.split_at(colon);
        if header.eq_ignore_ascii_case(b"content-disposition") {
            name = MediaType::read_parameter(value, "name");
        }
    }
    Some((name.unwrap_or_default(), rest.to_vec()))
}
