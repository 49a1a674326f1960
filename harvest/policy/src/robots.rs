//! Which paths of a host a robots.txt leaves to a crawler (RFC 9309).
//!
//! Owns the reading of the file and the matching of paths. What a missing or unreachable file means is decided by
//! [`RobotsAnswer`]. Takes what hosts write: any line ends, a byte order mark, blanks, comments, groups in pieces,
//! escapes in any case. Reads the first [`MAX_BYTES`]; a pattern is matched in time linear in the length of the path.
//!
//! ```
//! use harvest_policy::robots::RobotsRules;
//!
//! let file = b"User-agent: *\nDisallow: /search\nAllow: /search/about\n\nUser-agent: other\nDisallow: /\n";
//! let rules = RobotsRules::parse(file, "holdfast");
//! assert!(rules.allows_path("/search/about.html"));
//! assert!(!rules.allows_path("/search?q=x"));
//! ```

use std::time::Duration;

/// The most bytes of a file that are read: RFC 9309 §2.5 asks for at least 500 KiB.
pub const MAX_BYTES: usize = 512 * 1024;

/// The longest pause between two requests that a file may ask for; a longer one counts as this.
const MAX_DELAY: Duration = Duration::from_hours(24);

/// The answer of a host to the request for its robots.txt, after redirects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RobotsAnswer {
    /// The host has the file: its rules hold (RFC 9309 §2.3.1.1).
    File,
    /// The host has no file (400 to 499, or a sixth redirect): everything may be fetched (§2.3.1.3, §2.3.1.2).
    Absent,
    /// The host cannot say (500 to 599, 429, no answer): nothing may be fetched for now (§2.3.1.4).
    Unreachable,
}

impl RobotsAnswer {
    /// Returns the meaning of a status, or of no answer at all. Redirects are followed before it is asked.
    ///
    /// 429 says "later" and not "there is no file", which is how large crawlers read it as well.
    pub fn from_status(status: Option<u16>) -> Self {
        match status {
            Some(200..=299) => Self::File,
            Some(429) | None => Self::Unreachable,
            Some(300..=499) => Self::Absent,
            Some(_) => Self::Unreachable,
        }
    }
}

/// The rules of one file for one crawler.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RobotsRules {
    /// The longest pattern first, and of two equal ones the one that allows: the first that matches decides.
    rules: Vec<RobotsRule>,
    crawl_delay: Option<Duration>,
    sitemaps: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct RobotsRule {
    allows: bool,
    pattern: PathPattern,
}

/// A path with `*` for any bytes, and `$` at its end for the end of the path.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PathPattern {
    /// The texts between the stars, in the form of [`normal_path`].
    pieces: Vec<Vec<u8>>,
    is_anchored: bool,
    /// The number of bytes of the pattern as it was written, which says how specific it is.
    length: usize,
}

/// The groups of a file that a crawler may have to obey.
#[derive(Debug, Default)]
struct RobotsGroup {
    is_present: bool,
    rules: Vec<RobotsRule>,
    crawl_delay: Option<Duration>,
}

impl RobotsRules {
    /// Returns the rules for the crawler whose product token is `product`: those of all groups that name it in any
    /// case, or else those of all groups for `*` (RFC 9309 §2.2.1).
    pub fn parse(file: &[u8], product: &str) -> Self {
        let (file, cut) = match file.get(..MAX_BYTES) {
            Some(start) => (start, file.len() > MAX_BYTES),
            None => (file, false),
        };
        let file = file.strip_prefix(b"\xef\xbb\xbf").unwrap_or(file);
        let mut lines: Vec<&[u8]> = file.split(|byte| matches!(byte, b'\r' | b'\n')).collect();
        if cut {
            // A rule that is cut would say more than its author did.
            lines.pop();
        }
        let mut named = RobotsGroup::default();
        let mut any = RobotsGroup::default();
        let mut sitemaps = Vec::new();
        let mut is_for_us = false;
        let mut is_for_any = false;
        let mut in_agents = false;
        for (field, value) in lines.into_iter().filter_map(field) {
            if field.eq_ignore_ascii_case(b"user-agent") || field.eq_ignore_ascii_case(b"useragent")
            {
                if !in_agents {
                    (is_for_us, is_for_any, in_agents) = (false, false, true);
                }
                let token = product_token(value);
                is_for_us |= !token.is_empty() && token.eq_ignore_ascii_case(product.as_bytes());
                is_for_any |= value.first() == Some(&b'*');
                named.is_present |= is_for_us;
                continue;
            }
            if field.eq_ignore_ascii_case(b"sitemap") {
                sitemaps.extend(str::from_utf8(value).ok().map(str::to_owned));
                continue;
            }
            let allows = field.eq_ignore_ascii_case(b"allow");
            let is_rule = allows || field.eq_ignore_ascii_case(b"disallow");
            let is_delay = field.eq_ignore_ascii_case(b"crawl-delay");
            if !is_rule && !is_delay {
                // Fields that nobody knows neither begin nor end a group.
                continue;
            }
            in_agents = false;
            let groups = [(is_for_us, &mut named), (is_for_any, &mut any)];
            for (_, group) in groups.into_iter().filter(|(holds, _)| *holds) {
                if is_delay {
                    group.crawl_delay = delay(value).or(group.crawl_delay);
                } else if let Some(pattern) = PathPattern::parse(value) {
                    group.rules.push(RobotsRule { allows, pattern });
                }
            }
        }
        let mut group = if named.is_present { named } else { any };
        group
            .rules
            .sort_by_key(|rule| (std::cmp::Reverse(rule.pattern.length), !rule.allows));
        Self {
            rules: group.rules,
            crawl_delay: group.crawl_delay,
            sitemaps,
        }
    }

    /// Returns the rules that forbid everything: those of a host that cannot say.
    pub fn forbid_all() -> Self {
        let pattern = PathPattern::parse(b"/");
        let rule = |pattern| RobotsRule {
            allows: false,
            pattern,
        };
        Self {
            rules: pattern.into_iter().map(rule).collect(),
            ..Self::default()
        }
    }

    /// Returns whether a path with its query may be fetched. The rule with the longest pattern decides; the one that
    /// allows, of two of the same length; what no rule matches may be fetched (RFC 9309 §2.2.2).
    pub fn allows_path(&self, path_and_query: &str) -> bool {
        let path = normal_path(path_and_query.as_bytes());
        if path == b"/robots.txt" {
            return true;
        }
        let deciding = self.rules.iter().find(|rule| rule.pattern.matches(&path));
        deciding.is_none_or(|rule| rule.allows)
    }

    /// Returns the pause between two requests that the file asks for: no part of RFC 9309, but widely written. At most
    /// a day.
    pub fn crawl_delay(&self) -> Option<Duration> {
        self.crawl_delay
    }

    /// Returns the sitemaps that the file names for all crawlers, as they stand there.
    pub fn sitemaps(&self) -> &[String] {
        &self.sitemaps
    }
}

impl PathPattern {
    /// Reads the value of a rule. `None` if it is empty, which matches nothing.
    fn parse(value: &[u8]) -> Option<Self> {
        if value.is_empty() {
            return None;
        }
        let (text, is_anchored) = match value.strip_suffix(b"$") {
            Some(text) => (text, true),
            None => (value, false),
        };
        let pieces = text.split(|byte| *byte == b'*');
        let last = pieces.clone().count().saturating_sub(1);
        let pieces = (0..).zip(pieces);
        // Many marks in a row mean no more than one.
        let pieces = pieces.filter(|(at, piece)| *at == 0 || *at == last || !piece.is_empty());
        Some(Self {
            pieces: pieces.map(|(_, piece)| normal_path(piece)).collect(),
            is_anchored,
            length: value.len(),
        })
    }

    /// Returns whether the pattern matches a path in the form of [`normal_path`]. Each piece is taken where it first
    /// occurs, which leaves the most bytes to the others; so no place is looked at twice.
    fn matches(&self, path: &[u8]) -> bool {
        let Some((first, others)) = self.pieces.split_first() else {
            return false;
        };
        let Some(mut rest) = path.strip_prefix(first.as_slice()) else {
            return false;
        };
        let Some((last, middle)) = others.split_last() else {
            return !self.is_anchored || rest.is_empty();
        };
        for piece in middle {
            let Some(at) = memchr::memmem::find(rest, piece) else {
                return false;
            };
            rest = rest.get(at + piece.len()..).unwrap_or_default();
        }
        if self.is_anchored {
            rest.ends_with(last)
        } else {
            memchr::memmem::find(rest, last).is_some()
        }
    }
}

/// Returns the name and the value of a line, without its comment; `None` of a line that has none.
fn field(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let line = line.split(|byte| *byte == b'#').next().unwrap_or_default();
    let colon = memchr::memchr(b':', line)?;
    let (name, value) = line.split_at(colon);
    let value = value.strip_prefix(b":").unwrap_or(value);
    Some((name.trim_ascii(), value.trim_ascii()))
}

/// Returns the product token at the beginning of a `User-agent` value: letters, `_` and `-` (RFC 9309 §2.2.1). Versions
/// are left out.
fn product_token(value: &[u8]) -> &[u8] {
    let is_token = |byte: &u8| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'-');
    let length = value.iter().take_while(|byte| is_token(byte)).count();
    value.get(..length).unwrap_or_default()
}

/// Returns a number of seconds, with a fraction or without.
fn delay(value: &[u8]) -> Option<Duration> {
    let seconds: f64 = str::from_utf8(value).ok()?.parse().ok()?;
    (seconds >= 0.0)
        .then(|| Duration::try_from_secs_f64(seconds.min(MAX_DELAY.as_secs_f64())).ok())
        .flatten()
}

/// Returns a path in the form in which paths are compared (RFC 9309 §2.2.2): an escape of an unreserved character is
/// undone, other escapes are in capital letters, and `*`, `$` and bytes beyond printable ASCII are escaped.
fn normal_path(path: &[u8]) -> Vec<u8> {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let mut normal = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((byte, behind)) = rest.split_first() {
        rest = behind;
        let escaped = match (byte, behind) {
            (b'%', [high, low, ..]) => hex_digit(*high).zip(hex_digit(*low)),
            _ => None,
        };
        let value = match escaped {
            Some((high, low)) => {
                rest = behind.get(2..).unwrap_or_default();
                high << 4 | low
            }
            None => *byte,
        };
        let is_unreserved =
            value.is_ascii_alphanumeric() || matches!(value, b'-' | b'.' | b'_' | b'~');
        // What has a meaning in a pattern can be written escaped there alone (§2.2.3).
        let is_mark = matches!(value, b'*' | b'$');
        if is_unreserved || (escaped.is_none() && value.is_ascii_graphic() && !is_mark) {
            normal.push(value);
        } else {
            let digit = |index: u8| HEX.get(usize::from(index)).copied().unwrap_or(b'0');
            normal.extend_from_slice(&[b'%', digit(value >> 4), digit(value & 15)]);
        }
    }
    normal
}

fn hex_digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16)?.try_into().ok()
}

#[cfg(test)]
mod tests;
