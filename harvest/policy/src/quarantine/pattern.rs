//! The pattern of a URI: what is left of it without the parts that count up, that name a session, or that repeat.
//!
//! Owns the name of a pattern, which people read in logs and write to free one. It has no blanks and at most
//! [`LONGEST`] bytes.

use std::collections::{BTreeSet, HashSet};

use url::Url;

/// The longest name of a pattern, in bytes; the rest is cut off.
pub const LONGEST: usize = 200;

/// The shortest run of letters and digits that may name a session.
const TOKEN: usize = 8;

/// Returns the name of the pattern of a URI, without its scheme.
///
/// - Digits become `#`: `/cal/2031/05` and `/cal/2032/11` are `/cal/#/#`.
/// - A token of letters and digits, as session ids are, becomes `*`.
/// - A path in which a segment stands twice is the set of its segments: all of `/a/b/a/`, `/a/b/b/a/` are `/a/b/...`.
/// - Of the query the names are left, sorted, each once: `?a&b`.
///
/// ```
/// use harvest_policy::quarantine::url_pattern;
/// use url::Url;
///
/// let url = Url::parse("https://example.dk/s/8f3ab2c1/day-17.html?year=2031&month=5")?;
/// assert_eq!(url_pattern(&url), "example.dk/s/*/day-#.html?month&year");
/// # Ok::<(), url::ParseError>(())
/// ```
pub fn url_pattern(url: &Url) -> String {
    let mut name = host_name(url);
    let mut known = HashSet::new();
    let has_letter = |segment: &str| segment.bytes().any(|byte| byte.is_ascii_alphabetic());
    let segments = || url.path().split('/').skip(1);
    let is_growing = segments().any(|segment| has_letter(segment) && !known.insert(segment));
    if is_growing {
        let shapes: BTreeSet<String> = segments().map(shape).collect();
        for shape in shapes.iter().filter(|shape| !shape.is_empty()) {
            name.extend(["/", shape]);
        }
        name.push_str("/...");
    } else {
        for segment in segments() {
            name.extend(["/", &shape(segment)]);
        }
    }
    if let Some(query) = url.query() {
        let names = query.split(['&', ';']).map(|pair| pair.split('=').next());
        let names: BTreeSet<String> = names.flatten().map(shape).collect();
        name.push('?');
        name.push_str(&Vec::from_iter(names).join("&"));
    }
    // All of it is ASCII: `url` escapes the rest.
    name.truncate(name.floor_char_boundary(LONGEST));
    name
}

/// Returns the host of a URI, with its port if that is an unusual one: what all names of its patterns begin with.
pub(super) fn host_name(url: &Url) -> String {
    let mut name = url.host_str().unwrap_or_default().to_owned();
    if let Some(port) = url.port() {
        name.extend([":", &port.to_string()]);
    }
    name
}

/// Returns a text without what counts up or names a session. Of parameters (`;name=value`) the names are left.
fn shape(text: &str) -> String {
    let mut shape = String::with_capacity(text.len());
    for (part, number) in text.split(';').zip(0..) {
        let part = if number == 0 {
            part
        } else {
            part.split('=').next().unwrap_or_default()
        };
        if number > 0 {
            shape.push(';');
        }
        add_shape(part, &mut shape);
    }
    shape
}

fn add_shape(text: &str, shape: &mut String) {
    let (stem, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    if stem.len() >= 2 * TOKEN && is_hexadecimal(&stem.replace('-', "")) {
        // A UUID: some of its pieces are too short to be tokens by themselves.
        shape.push('*');
        return add_runs(rest, shape);
    }
    add_runs(text, shape);
}

fn add_runs(text: &str, shape: &mut String) {
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        // An escape is a letter of another script, and neither a number nor a token.
        let length = match first {
            '%' => 3,
            c if c.is_ascii_alphanumeric() => {
                let end = rest.find(|c: char| !c.is_ascii_alphanumeric());
                end.unwrap_or(rest.len())
            }
            c => c.len_utf8(),
        };
        let (run, behind) = rest.split_at_checked(length).unwrap_or((rest, ""));
        if first == '%' || !first.is_ascii_alphanumeric() {
            shape.push_str(run);
        } else if is_token(run) {
            shape.push('*');
        } else {
            add_without_digits(run, shape);
        }
        rest = behind;
    }
}

fn add_without_digits(run: &str, shape: &mut String) {
    let mut is_number = false;
    for c in run.chars() {
        if !c.is_ascii_digit() {
            shape.push(c);
        } else if !is_number {
            shape.push('#');
        }
        is_number = c.is_ascii_digit();
    }
}

/// Returns whether a run of letters and digits looks as if nobody had written it: hexadecimal, or with letters and
/// digits in turn.
fn is_token(run: &str) -> bool {
    let kinds = run.bytes().map(|byte| byte.is_ascii_digit());
    let changes = kinds
        .clone()
        .zip(kinds.skip(1))
        .filter(|(one, next)| one != next);
    run.len() >= TOKEN && (is_hexadecimal(run) || changes.count() >= 3)
}

/// Returns whether there are hexadecimal digits only, some of them letters.
fn is_hexadecimal(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
        && text.bytes().any(|byte| byte.is_ascii_digit())
        && text.bytes().any(|byte| byte.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if two steps of a trap have different patterns, or two kinds of pages have the same one.
    #[test]
    fn pattern_keeps_what_people_wrote() {
        for (text, expected) in [
            ("http://a.dk/", "a.dk/"),
            ("https://a.dk:8443/x", "a.dk:8443/x"),
            ("http://a.dk/article/123", "a.dk/article/#"),
            ("http://a.dk/article2024.html", "a.dk/article#.html"),
            ("http://a.dk/2031/05/05/", "a.dk/#/#/#/"),
            ("http://a.dk/news/title-of-it", "a.dk/news/title-of-it"),
            ("http://a.dk/facade/decade", "a.dk/facade/decade"),
            ("http://a.dk/s/a1b2c3d4e5/x", "a.dk/s/*/x"),
            ("http://a.dk/(S(Zk3mQ9xTt))/x", "a.dk/(S(*))/x"),
            (
                "http://a.dk/550e8400-e29b-41d4-a716-446655440000.html",
                "a.dk/*.html",
            ),
            ("http://a.dk/x;jsessionid=AB12?b=1", "a.dk/x;jsessionid?b"),
            ("http://a.dk/?b=1&a=2&b=3", "a.dk/?a&b"),
            ("http://a.dk/?20310501", "a.dk/?#"),
            ("http://a.dk/?", "a.dk/?"),
            ("http://a.dk/bl%C3%A5b%C3%A6r", "a.dk/bl%C3%A5b%C3%A6r"),
            ("http://a.dk/x%4", "a.dk/x%4"),
            ("http://a.dk/a/b/a/b/", "a.dk/a/b/..."),
            ("http://a.dk/b/a/a/17/17", "a.dk/#/a/b/..."),
            ("http://a.dk/a/b/a/x?y=1", "a.dk/a/b/x/...?y"),
        ] {
            assert_eq!(url_pattern(&Url::parse(text).unwrap()), expected, "{text}");
        }
    }

    /// Fails if a long URI makes a long name, or one with a blank in it.
    #[test]
    fn name_is_short_and_without_blanks() {
        for piece in ["a b/", "1a/", "å%", ";x=1", "?a=b&", "%", "a-"] {
            let url = Url::parse(&format!("http://a.dk/{}", piece.repeat(30_000))).unwrap();
            let name = url_pattern(&url);
            assert!(
                name.len() <= LONGEST && name.chars().all(|c| c.is_ascii_graphic()),
                "{name}"
            );
        }
    }
}
