//! Cache busters: parameters that only make a URL new, such as `_=1577836800000`, and the captures that were made with
//! another value of them.
//!
//! Owns one rule. A parameter is a buster if its name is one that pages use for the purpose and its value is a number
//! (of at least eight digits, or a fraction, or any number behind `_`); if its value is the name of a callback that a
//! library has made up (`jQuery1102…_1577…`); or if the whole query is a number of at least eight digits. Two URLs are
//! the same but for their busters if their keys are equal once the busters are removed. A buster never changes which
//! exact capture is found: it is asked about only where there is no capture of the URL itself.
//!
//! ```
//! use viewer_replay::busters::BustedUrl;
//!
//! let busted = BustedUrl::read_url("http://a.dk/x?b=2&_=1577836800000").expect("it has a buster");
//! assert_eq!(busted.key().as_str(), "dk,a)/x?b=2");
//! assert!(busted.is_same("http://a.dk/x?_=9&b=2"));
//! assert!(!busted.is_same("http://a.dk/x?_=9&b=3"));
//! ```

use archive_formats::cdx::query::{KeyMatch, KeyRange};
use archive_formats::surt::UrlKey;

/// The names of parameters whose value is a moment or a throw of dice, in small letters.
const NAMES: [&str; 24] = [
    "_",
    "__",
    "_t",
    "_ts",
    "cachebuster",
    "cache_buster",
    "cachebust",
    "cache",
    "cacheid",
    "cb",
    "dc",
    "_dc",
    "nocache",
    "no_cache",
    "now",
    "ord",
    "r",
    "rand",
    "random",
    "rnd",
    "t",
    "time",
    "timestamp",
    "ts",
];

/// The names of parameters whose value is a callback, in small letters.
const CALLBACKS: [&str; 6] = [
    "callback",
    "cb",
    "jsonp",
    "jsoncallback",
    "jsonpcallback",
    "_callback",
];

/// The beginnings of callbacks that libraries make up; digits follow.
const MADE_UP: [&str; 7] = [
    "jquery",
    "jsonp",
    "jsonpcallback",
    "jsonp_callback_",
    "__jp",
    "_jqjsp",
    "json_callback_",
];

/// The least number of digits of a moment: seconds since 1970 have nine since 1973, and a date without a time has
/// eight.
const MOMENT: usize = 8;

/// A URL with at least one buster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BustedUrl {
    key: UrlKey,
    range: KeyRange,
}

impl BustedUrl {
    /// Looks for busters in a URL; `None` if it has none.
    pub fn read_url(url: &str) -> Option<Self> {
        let (path, query) = split(url)?;
        let left: Vec<&str> = query.split('&').filter(|own| !is_buster(own)).collect();
        let left = if is_moment(query) { Vec::new() } else { left };
        let whole = UrlKey::parse(url);
        let key = UrlKey::parse(join(path, &left));
        if key == whole {
            return None;
        }
        // Parameters are sorted in keys: all that have the same ones but for busters begin alike.
        let shared = shared_beginning(key.as_str(), whole.as_str());
        Some(Self {
            range: KeyRange::of_prefix(shared),
            key,
        })
    }

    /// Returns the key of the URL without its busters, which may have been captured as well.
    pub fn key(&self) -> &UrlKey {
        &self.key
    }

    /// Returns the keys among which captures with other busters are.
    pub fn keys(&self) -> KeyMatch {
        KeyMatch::Within(self.range.clone())
    }

    /// Returns whether another URL is the same but for busters.
    pub fn is_same(&self, url: &str) -> bool {
        let key = match Self::read_url(url) {
            Some(other) => other.key,
            None => UrlKey::parse(url),
        };
        key == self.key
    }
}

/// Returns the URL in front of its query, and the query.
fn split(url: &str) -> Option<(&str, &str)> {
    let url = url.split('#').next().unwrap_or_default();
    url.split_once('?').filter(|(_, query)| !query.is_empty())
}

fn join(path: &str, parameters: &[&str]) -> String {
    if parameters.is_empty() {
        path.to_owned()
    } else {
        format!("{path}?{}", parameters.join("&"))
    }
}

/// Returns the beginning of keys that have the path of `key`, and the parameters that it shares with `whole` before any
/// buster.
fn shared_beginning(key: &str, whole: &str) -> String {
    let path = key.split('?').next().unwrap_or_default();
    let parameters = |text: &str| -> Vec<String> {
        let query = text.split_once('?').map_or("", |(_, query)| query);
        query.split('&').map(str::to_owned).collect()
    };
    let left = parameters(key);
    let all = parameters(whole);
    let mut beginning = format!("{path}?");
    for parameter in &all {
        // A buster may be sorted before any other parameter in another capture, so that only equal ones before the
        // first count.
        if is_buster(parameter) || !left.contains(parameter) {
            break;
        }
        beginning.push_str(parameter);
        beginning.push('&');
    }
    beginning
}

/// Returns whether a parameter is a buster.
fn is_buster(parameter: &str) -> bool {
    let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
    let name = name.to_ascii_lowercase();
    if CALLBACKS.contains(&name.as_str()) && is_made_up(value) {
        return true;
    }
    let is_number = !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit());
    NAMES.contains(&name.as_str())
        && (is_moment(value) || is_fraction(value) || (name == "_" && is_number))
}

fn is_moment(value: &str) -> bool {
    value.len() >= MOMENT && value.bytes().all(|b| b.is_ascii_digit())
}

/// Returns whether a value is what `Math.random()` returns.
fn is_fraction(value: &str) -> bool {
    let digits = value.strip_prefix("0.").unwrap_or_default();
    digits.len() >= MOMENT && digits.bytes().all(|b| b.is_ascii_digit())
}

/// Returns whether a value is a callback that a library has made up: a known beginning, then digits and underscores.
fn is_made_up(value: &str) -> bool {
    let value = value.to_ascii_lowercase();
    MADE_UP.iter().any(|beginning| {
        value.strip_prefix(beginning).is_some_and(|rest| {
            rest.bytes().any(|b| b.is_ascii_digit())
                && rest.bytes().all(|b| b.is_ascii_digit() || b == b'_')
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a parameter that says something is taken for a buster, or a buster is not seen.
    #[test]
    fn busters_are_distinguished_from_parameters() {
        for (query, expected) in [
            ("_=1577836800000", Some("dk,a)/x")),
            ("_=7", Some("dk,a)/x")),
            ("1577836800000", Some("dk,a)/x")),
            ("a=1&CB=15778368", Some("dk,a)/x?a=1")),
            ("cb=0.8457126340", Some("dk,a)/x")),
            ("callback=jQuery1102_1577836800&q=s", Some("dk,a)/x?q=s")),
            ("jsonp=jsonp1577836800", Some("dk,a)/x")),
            ("callback=show&q=s", None),
            ("callback=jQuery", None),
            ("t=42", None),
            ("t=2020", None),
            ("id=1577836800000", None),
            ("cb=x1577836800", None),
            ("2020", None),
            ("_=", None),
            ("", None),
        ] {
            let found = BustedUrl::read_url(&format!("http://a.dk/x?{query}"));
            let key = found.as_ref().map(|found| found.key().as_str());
            assert_eq!(key, expected, "{query}");
        }
        assert_eq!(BustedUrl::read_url("http://a.dk/x"), None);
        assert_eq!(BustedUrl::read_url("http://a.dk/x#?_=1577836800000"), None);
    }

    /// Fails if the range of keys misses a capture that is the same but for busters.
    #[test]
    fn range_holds_captures_with_other_busters() {
        let busted = BustedUrl::read_url("http://a.dk/x?a=1&t=1577836800000&z=2").unwrap();
        let KeyMatch::Within(range) = busted.keys() else {
            panic!("a range");
        };
        for (url, expected) in [
            ("http://a.dk/x?a=1&t=1600000000000&z=2", true),
            ("http://www.a.dk/x?z=2&a=1&t=99999999", true),
            ("http://a.dk/x?a=1&t=1600000000000&z=3", false),
            ("http://a.dk/x?a=1&t=x&z=2", false),
            ("http://a.dk/x?a=2&t=1600000000000&z=2", false),
            ("http://a.dk/y?a=1&t=1600000000000&z=2", false),
        ] {
            assert_eq!(busted.is_same(url), expected, "{url}");
            if expected {
                assert!(
                    range.contains(UrlKey::parse(url).as_str()),
                    "{url}: {range:?}"
                );
            }
        }
        assert!(busted.is_same("http://a.dk/x?a=1&z=2"));
    }
}
