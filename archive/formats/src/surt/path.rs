//! The path of a key: no empty segments, no dots, no session, no slash at the end, small.

use super::escape;

/// The canonical path; `/` where there is none.
pub(super) fn canonical(raw: &[u8]) -> String {
    let text = escape::unescape(raw);
    let mut kept: Vec<&[u8]> = Vec::new();
    for segment in text.split(|b| *b == b'/') {
        match segment {
            b"" | b"." => {}
            b".." => {
                kept.pop();
            }
            other => kept.push(other),
        }
    }
    let mut path = String::with_capacity(text.len() + 1);
    for segment in &kept {
        path.push('/');
        path.push_str(&escape::escape(segment).to_ascii_lowercase());
    }
    if path.is_empty() {
        return "/".to_owned();
    }
    without_session(&mut path);
    path
}

/// Cuts the session out of `/(S(…24 letters and digits…))/page.aspx`, once bare and once in its wrapping.
fn without_session(path: &mut String) {
    for wrapped in [true, false] {
        if !path.contains(".aspx") {
            return;
        }
        let found = path.match_indices("/(").filter_map(|(at, _)| {
            let start = at + 1;
            let inner = path.get(start + 1..)?;
            let end = inner.find(")/").map(|n| start + 1 + n)?;
            let session = path.get(start + 1..end)?;
            let page = path.get(end + 2..)?;
            let valid = if wrapped { is_wrapped(session) } else { is_session(session) };
            // A name before `.aspx`, and before any `?` that was escaped.
            let name = page.split('?').next().unwrap_or_default();
            (valid && name.rfind(".aspx").is_some_and(|n| n > 0)).then_some((start, end + 2))
        });
        if let Some((start, end)) = found.last() {
            path.replace_range(start..end, "");
        }
    }
}

fn is_session(text: &str) -> bool {
    text.len() == 24 && text.bytes().all(|b| b.is_ascii_alphanumeric())
}

/// `s(…)`, one or several.
fn is_wrapped(text: &str) -> bool {
    let bytes = text.as_bytes();
    !bytes.is_empty()
        && bytes.chunks(27).all(|part| match part {
            [letter, b'(', session @ .., b')'] => {
                letter.is_ascii_alphabetic() && session.len() == 24 && session.iter().all(u8::is_ascii_alphanumeric)
            }
            _ => false,
        })
}
