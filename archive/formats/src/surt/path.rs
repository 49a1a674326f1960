//! The path of a key: no empty segments, no dots, no session, no slash at the end, small.

use super::escape;

/// Returns the canonical path; `/` for an empty one.
pub(super) fn canonical_path(raw: &[u8]) -> String {
    let text = escape::unescape_bytes(raw);
    let mut kept: Vec<&[u8]> = Vec::new();
    // The text before the first slash is not a segment that `..` could take away.
    for segment in text
        .strip_prefix(b"/")
        .unwrap_or(&text)
        .split(|b| *b == b'/')
    {
        match segment {
            b"." => {}
            b".." => {
                kept.pop();
            }
            other => kept.push(other),
        }
    }
    let mut joined: Vec<u8> = Vec::with_capacity(text.len() + 1);
    for segment in kept.iter().filter(|segment| !segment.is_empty()) {
        joined.push(b'/');
        joined.extend_from_slice(segment);
    }
    if joined.is_empty() {
        return "/".to_owned();
    }
    let mut path = escape::escape_bytes(&joined);
    path.make_ascii_lowercase();
    without_session(&mut path);
    path
}

/// Cuts the session out of `/(S(…24 letters and digits…))/page.aspx`, once in its wrapping and once bare.
fn without_session(path: &mut String) {
    if memchr::memmem::find(path.as_bytes(), b".aspx").is_none() {
        return;
    }
    for wrapped in [true, false] {
        if let Some((start, end)) = session(path, wrapped) {
            path.replace_range(start..end, "");
        }
    }
}

/// Returns the place of the last session in front of a page: from its `(` to the slash behind it.
fn session(path: &str, wrapped: bool) -> Option<(usize, usize)> {
    let pages: Vec<usize> = path.match_indices(".aspx").map(|(at, _)| at).collect();
    let queries: Vec<usize> = path.match_indices('?').map(|(at, _)| at).collect();
    let from =
        |places: &[usize], at: usize| places.get(places.partition_point(|p| *p < at)).copied();
    path.rmatch_indices("/(").find_map(|(at, _)| {
        let start = at + 1;
        let inner = path.as_bytes().get(start + 1..)?;
        let length = if wrapped { wrapped_ids(inner) } else { 24 };
        let valid = length > 0
            && inner.get(length..)?.starts_with(b")/")
            && (wrapped || is_id(inner.get(..length)?));
        let end = start + 1 + length + 2;
        // The page is a name, then `.aspx`, and no `?` that was escaped before them.
        let page = from(&pages, end + 1)?;
        let named = from(&queries, end).is_none_or(|query| page < query);
        (valid && named).then_some((start, end))
    })
}

/// Returns the length of a row of `s(…)`.
fn wrapped_ids(text: &[u8]) -> usize {
    let is_wrapped = |part: &&[u8]| match part {
        [letter, b'(', id @ .., b')'] => letter.is_ascii_alphabetic() && is_id(id),
        _ => false,
    };
    text.chunks(27).take_while(is_wrapped).count() * 27
}

fn is_id(text: &[u8]) -> bool {
    text.len() == 24 && text.iter().all(u8::is_ascii_alphanumeric)
}
