//! The URLs that a query asks for, as ranges of keys.

use archive_formats::surt::UrlKey;

use super::QueryError;

/// The URLs that a query asks for. A `*` in a URL is a character like others: its meaning is its caller's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    ranges: Vec<KeyRange>,
}

/// Keys that lie together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum KeyRange {
    /// One key.
    One(String),
    /// Keys from the first one on, up to but without the second one.
    Many(String, Option<String>),
}

impl Target {
    /// One URL.
    pub fn exact(url: &str) -> Self {
        Self::key(&UrlKey::of(url))
    }

    /// One key.
    pub fn key(key: &UrlKey) -> Self {
        Self {
            ranges: vec![KeyRange::One(key.as_str().to_owned())],
        }
    }

    /// All URLs that begin so. A last slash or question mark counts, though keys lose it.
    pub fn prefix(url: &str) -> Self {
        let mut start = UrlKey::of(url).as_str().to_owned();
        if let Some(last) = url.trim_end().chars().next_back()
            && matches!(last, '/' | '?')
            && !start.ends_with(last)
        {
            start.push(last);
        }
        Self::key_prefix(&start)
    }

    /// All keys that begin so.
    pub fn key_prefix(prefix: &str) -> Self {
        Self {
            ranges: vec![beginning_with(prefix.to_owned())],
        }
    }

    /// All URLs of a host; on any port, unless the URL names one.
    ///
    /// # Errors
    ///
    /// [`QueryError::NoHost`] if there is no host in it.
    pub fn host(url: &str) -> Result<Self, QueryError> {
        let host = host(url)?;
        let mut ranges = vec![beginning_with(format!("{host})"))];
        if !host.contains(':') {
            ranges.push(beginning_with(format!("{host}:")));
        }
        Ok(Self { ranges })
    }

    /// All URLs of a host and of the hosts below it; on any port. A URL that names a port asks for that port of that host.
    ///
    /// # Errors
    ///
    /// [`QueryError::NoHost`] if there is no host in it.
    pub fn domain(url: &str) -> Result<Self, QueryError> {
        let host = host(url)?;
        if host.contains(':') {
            return Self::host(url);
        }
        // In the order of their bytes.
        let marks = [")", ",", ":"];
        let ranges = marks.map(|mark| beginning_with(format!("{host}{mark}")));
        Ok(Self {
            ranges: ranges.into(),
        })
    }

    /// All URLs whose keys are between those of two URLs, the first one included; without a second one, all behind the first.
    pub fn range(from: &str, to: Option<&str>) -> Self {
        let key = |url: &str| UrlKey::of(url).as_str().to_owned();
        Self {
            ranges: vec![KeyRange::Many(key(from), to.map(key))],
        }
    }

    /// All keys from one on, up to but without the other; without the other, all behind the first.
    pub fn keys(start: String, end: Option<String>) -> Self {
        Self {
            ranges: vec![KeyRange::Many(start, end)],
        }
    }

    /// All URLs.
    pub fn all() -> Self {
        Self {
            ranges: vec![KeyRange::Many(String::new(), None)],
        }
    }

    /// The only key, if it is for one.
    pub(crate) fn one_key(&self) -> Option<&str> {
        match self.ranges.as_slice() {
            [KeyRange::One(key)] => Some(key),
            _ => None,
        }
    }

    /// The ranges, sorted and apart from each other.
    pub(crate) fn ranges(&self) -> &[KeyRange] {
        &self.ranges
    }
}

impl KeyRange {
    /// Whether a key lies in it.
    pub(crate) fn has(&self, key: &str) -> bool {
        match self {
            Self::One(one) => one == key,
            Self::Many(start, end) => {
                start.as_str() <= key && end.as_deref().is_none_or(|end| key < end)
            }
        }
    }
}

/// The host of a URL as keys have it.
fn host(url: &str) -> Result<String, QueryError> {
    let key = UrlKey::of(url);
    let host = key.host().filter(|host| !host.is_empty());
    host.map(str::to_owned)
        .ok_or_else(|| QueryError::NoHost(url.to_owned()))
}

fn beginning_with(prefix: String) -> KeyRange {
    // The first text that sorts after all that begin so: the last character that can grow grows, and the rest goes.
    let mut end = prefix.clone();
    while let Some(last) = end.pop() {
        if let Some(next) = (last..=char::MAX).nth(1) {
            end.push(next);
            return KeyRange::Many(prefix, Some(end));
        }
    }
    KeyRange::Many(prefix, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(target: &Target, inside: &[&str], outside: &[&str]) {
        let has = |url: &&&str| {
            let key = UrlKey::of(url);
            target.ranges().iter().any(|range| range.has(key.as_str()))
        };
        assert_eq!(inside.iter().filter(|url| !has(url)).next(), None, "out");
        assert_eq!(outside.iter().find(has), None, "in");
    }

    /// Fails if a match takes in URLs of others, or leaves out its own.
    #[test]
    fn targets_have_their_urls_and_no_others() {
        check(
            &Target::exact("http://www.a.dk/b/"),
            &["https://a.dk/b", "http://a.dk/B#c"],
            &["http://a.dk/b/c", "http://a.dk/bc", "http://b.a.dk/b"],
        );
        check(
            &Target::prefix("a.dk/b"),
            &["a.dk/b", "a.dk/bc", "a.dk/b/c", "a.dk/b?x", "a.dk/bø"],
            &["a.dk/a", "a.dk/c", "a.dk", "a.dk:81/b", "a.a.dk/b"],
        );
        check(
            &Target::prefix("a.dk/b/"),
            &["a.dk/b/c", "a.dk/b/c?x"],
            &["a.dk/b", "a.dk/bc", "a.dk/b/?x"],
        );
        check(
            &Target::prefix("a.dk/b?"),
            &["a.dk/b?c", "a.dk/b?c=1&d"],
            &["a.dk/b", "a.dk/bc"],
        );
        check(
            &Target::host("http://a.dk/x").unwrap(),
            &["a.dk", "a.dk/y?z", "www.a.dk", "a.dk:8080/"],
            &["b.a.dk", "aa.dk", "dk", "a-b.dk", "a.dk.com"],
        );
        check(
            &Target::host("a.dk:8080").unwrap(),
            &["a.dk:8080/"],
            &["a.dk", "a.dk:80800/"],
        );
        check(
            &Target::domain("a.dk").unwrap(),
            &["a.dk/x", "b.a.dk/", "c.b.a.dk:81", "a.dk:81/", "www2.a.dk"],
            &["aa.dk", "a-b.dk", "a0.dk", "dk", "b.dk"],
        );
        check(
            &Target::range("a.dk/b", Some("a.dk/d")),
            &["a.dk/b", "a.dk/c", "a.dk/bzzz"],
            &["a.dk/a", "a.dk/d", "a.dk/e"],
        );
        check(
            &Target::range("a.dk/b", None),
            &["a.dk/c", "b.dk"],
            &["a.dk/"],
        );
        check(&Target::all(), &["a.dk", "dns:a.dk", "", "urn:x"], &[]);
    }

    /// Fails if a star asks for more than a star.
    #[test]
    fn star_is_a_character() {
        check(
            &Target::exact("http://a.dk/*"),
            &["a.dk/*"],
            &["a.dk/", "a.dk/b"],
        );
        check(&Target::prefix("a.dk/*"), &["a.dk/*b"], &["a.dk/b"]);
    }

    #[test]
    fn host_of_no_host_is_refused() {
        for url in ["dns:a.dk", "", "urn:x", "file:///a"] {
            assert!(matches!(Target::host(url), Err(QueryError::NoHost(_))));
            assert!(matches!(Target::domain(url), Err(QueryError::NoHost(_))));
        }
    }
}
