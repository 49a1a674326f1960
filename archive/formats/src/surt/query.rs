//! The query of a key: without session ids, sorted, in small letters; left out if it is empty.

use super::escape;

/// Appends `?` and the canonical query, if there is one.
pub(super) fn append_query(key: &mut String, raw: Option<&[u8]>) {
    if let Some(raw) = raw {
        append_canonical(key, escape::canonical_escapes(raw));
    }
}

/// Appends a query whose escapes are canonical, in small letters, if anything is left of it.
pub(super) fn append_canonical(key: &mut String, mut query: String) {
    without_sessions(&mut query);
    if query.is_empty() {
        return;
    }
    key.push('?');
    if memchr::memchr(b'&', query.as_bytes()).is_none() {
        key.push_str(&query);
        return;
    }
    let mut arguments: Vec<&str> = query.split('&').collect();
    // Arguments are sorted by name, then by value; a name alone comes before the same name with a value.
    arguments.sort_by_key(|argument| match argument.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (*argument, None),
    });
    for (n, argument) in arguments.into_iter().enumerate() {
        if n > 0 {
            key.push('&');
        }
        key.push_str(argument);
    }
}

fn without_sessions(query: &mut String) {
    // All kinds of session ids have this in their name.
    if memchr::memmem::find(query.as_bytes(), b"id").is_none() {
        return;
    }
    for (name, length) in SESSIONS {
        if let Some((start, end)) = last(query, name, *length) {
            query.replace_range(start..end, "");
        }
    }
    if let Some((start, end)) = cold_fusion(query) {
        query.replace_range(start..end, "");
    }
}

/// A function that returns the length of the session id at the beginning of a text.
type Session = fn(&str) -> Option<usize>;

/// The kinds of session ids, in the order in which they are removed: the last one of each.
const SESSIONS: &[(&str, Session)] = &[
    ("jsessionid=", |text| {
        exactly(text, 32, u8::is_ascii_alphanumeric)
    }),
    ("phpsessid=", |text| {
        exactly(text, 32, u8::is_ascii_alphanumeric)
    }),
    ("sid=", |text| exactly(text, 32, u8::is_ascii_alphanumeric)),
    ("aspsessionid", |text| {
        let name = exactly(text, 8, u8::is_ascii_alphabetic)?;
        let value = text.get(name..)?.strip_prefix('=')?;
        Some(name + 1 + exactly(value, 24, u8::is_ascii_alphabetic)?)
    }),
];

fn exactly(text: &str, n: usize, good: fn(&u8) -> bool) -> Option<usize> {
    text.as_bytes()
        .get(..n)
        .filter(|bytes| bytes.iter().all(good))
        .map(|_| n)
}

/// Returns the last place of a session id that ends with the query or before a `&`, which goes with it.
fn last(query: &str, name: &str, length: Session) -> Option<(usize, usize)> {
    query.rmatch_indices(name).find_map(|(at, _)| {
        let end = at + name.len();
        let end = end + length(query.get(end..)?)?;
        match query.as_bytes().get(end) {
            None => Some((at, end)),
            Some(b'&') => Some((at, end + 1)),
            Some(_) => None,
        }
    })
}

/// Returns the place of the last `cfid=…&cftoken=…`, with the `&` behind it.
fn cold_fusion(query: &str) -> Option<(usize, usize)> {
    const TOKEN: &str = "&cftoken=";
    query.rmatch_indices(TOKEN).find_map(|(at, _)| {
        let before = query.get(..at)?;
        let argument = before.rfind('&').map_or(0, |and| and + 1);
        // The value begins behind the last name that leaves something for it.
        let named = before
            .get(argument..)?
            .rmatch_indices("cfid=")
            .map(|(n, _)| argument + n);
        let start = named.into_iter().find(|start| start + "cfid=".len() < at)?;
        let token = query.get(at + TOKEN.len()..)?;
        let length = token.find('&').unwrap_or(token.len());
        let end = at + TOKEN.len() + length;
        (length > 0).then(|| (start, if end < query.len() { end + 1 } else { end }))
    })
}
