//! Public suffixes: the names below which everyone may have a domain, such as `dk`, `co.uk` and `github.io`.
//!
//! Owns what the domain of a host is: the label under a public suffix, by Mozilla's list. That list is compiled in; a
//! file in its format may stand in its place. An address is kept whole, and a host of one label (`localhost`) is its own
//! domain.
//!
//! ```
//! use harvest_policy::suffixes::SuffixList;
//!
//! let list = SuffixList::parse(b"// VERSION: 7\ndk\nco.uk\n*.ck\n!www.ck\n")?;
//! assert_eq!(list.registered_domain("www.example.co.uk"), "example.co.uk");
//! assert_eq!(list.registered_domain("www.example.de"), "example.de");
//! assert!(list.version().starts_with("7, sha256:"));
//! # Ok::<(), harvest_policy::suffixes::InvalidSuffixList>(())
//! ```

use publicsuffix::{List, Psl};
use sha2::{Digest as _, Sha256};
use url::Host;

/// The list that is compiled in, for documentation: the crate, and its version, which is published anew whenever the
/// list changes.
pub const COMPILED_LIST: &str = "psl 2.1.247";

/// The line of a list from which on its rules count.
const BEGIN: &str = "// ===BEGIN ICANN DOMAINS===";

/// The word before the version in the comments of a list.
const VERSION: &str = "VERSION:";

/// The reason why a file is no list of public suffixes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSuffixList {
    /// The file is no text in UTF-8.
    #[error(
        "it is not UTF-8; take the file of https://publicsuffix.org/list/public_suffix_list.dat"
    )]
    NoText,
    /// A line of the file is no rule.
    #[error(
        "line {line}: `{rule}` is no rule; write a name such as `co.uk`, `*.ck`, or `!www.ck` for an exception"
    )]
    Rule {
        /// The number of the line, from 1.
        line: usize,
        /// The text of the line.
        rule: String,
    },
    /// The file has no rule.
    #[error(
        "there is no rule in it; take the file of https://publicsuffix.org/list/public_suffix_list.dat"
    )]
    Empty,
}

/// A list of public suffixes.
#[derive(Clone, Debug)]
pub struct SuffixList {
    /// `None`: the one that is compiled in.
    list: Option<List>,
    version: String,
}

impl Default for SuffixList {
    /// Returns the list that is compiled in.
    fn default() -> Self {
        Self {
            list: None,
            version: COMPILED_LIST.to_owned(),
        }
    }
}

impl SuffixList {
    /// Reads a list in the format of <https://publicsuffix.org/list/>: a rule a line, and comments behind `//`.
    ///
    /// # Errors
    ///
    /// [`InvalidSuffixList`] names the first line that is no rule. Nothing is taken of such a list.
    pub fn parse(bytes: &[u8]) -> Result<Self, InvalidSuffixList> {
        let text = std::str::from_utf8(bytes).ok();
        let text = text.ok_or(InvalidSuffixList::NoText)?;
        // Hosts are asked for in ASCII; the list has international names as they are written.
        let mut rules = format!("{BEGIN}\n");
        let mut version = "without a version";
        for (text, line) in text.lines().zip(1..) {
            if let Some(comment) = text.trim_start().strip_prefix("//") {
                let named = comment.trim_start().strip_prefix(VERSION);
                version = named.map_or(version, str::trim);
                continue;
            }
            let Some(rule) = text.split_whitespace().next() else {
                continue;
            };
            let ascii = ascii_rule(rule).ok_or_else(|| InvalidSuffixList::Rule {
                line,
                rule: rule.to_owned(),
            })?;
            rules.extend([&ascii, "\n"]);
        }
        // Each rule was looked at before, so that only their number is left to be refused.
        let list: List = rules.parse().ok().ok_or(InvalidSuffixList::Empty)?;
        let digest = hex::encode(Sha256::digest(bytes));
        Ok(Self {
            list: Some(list),
            version: format!("{version}, sha256:{digest}"),
        })
    }

    /// Returns the version, for the documentation of a crawl.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Returns the domain of a host: `example.co.uk` of `www.example.co.uk`. A suffix that the list does not know is one
    /// label, as the list's own algorithm has it ("if no rules match"): new ones come every year. The host itself if it is
    /// an address or a public suffix.
    pub fn registered_domain<'h>(&self, host: &'h str) -> &'h str {
        let is_address = host.starts_with('[') || host.parse::<std::net::Ipv4Addr>().is_ok();
        if is_address {
            return host;
        }
        let domain = match &self.list {
            None => psl::List.domain(host.as_bytes()),
            Some(list) => list.domain(host.as_bytes()),
        };
        let domain = domain.and_then(|domain| std::str::from_utf8(domain.trim().as_bytes()).ok());
        domain.unwrap_or(host)
    }

    /// Returns whether a host is a public suffix itself: everything below it belongs to others.
    pub fn is_suffix(&self, host: &str) -> bool {
        let suffix = match &self.list {
            None => psl::List.suffix(host.as_bytes()),
            Some(list) => list.suffix(host.as_bytes()),
        };
        let suffix = suffix.filter(psl::Suffix::is_known);
        suffix.is_some_and(|suffix| suffix.as_bytes() == host.as_bytes())
    }
}

/// Returns a rule with its name in ASCII; `None` for a line without a rule.
fn ascii_rule(rule: &str) -> Option<String> {
    let marks = ["!", "*."];
    let mark = marks.into_iter().find(|mark| rule.starts_with(mark));
    let mark = mark.unwrap_or_default();
    let name = rule.strip_prefix(mark)?;
    let has_place = !mark.starts_with('!') || name.contains('.');
    match Host::parse(name).ok()? {
        Host::Domain(name) if has_place && !name.split('.').any(str::is_empty) => {
            Some(format!("{mark}{name}"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if two domains are taken for one, or one for two.
    #[test]
    fn domain_is_one_label_under_its_suffix() {
        let file =
            "com\ndk // Denmark\nuk\nco.uk\ngithub.io\nio\n中国\n公司.cn\ncn\n*.ck\n!www.ck\n";
        for list in [
            SuffixList::default(),
            SuffixList::parse(file.as_bytes()).unwrap(),
        ] {
            for (host, expected) in [
                ("www.example.dk", "example.dk"),
                ("example.dk", "example.dk"),
                ("a.b.c.example.co.uk", "example.co.uk"),
                ("dk", "dk"),
                ("co.uk", "co.uk"),
                ("user.github.io", "user.github.io"),
                ("localhost", "localhost"),
                ("www.intranet", "www.intranet"),
                ("a.www.intranet", "www.intranet"),
                ("127.0.0.1", "127.0.0.1"),
                ("8.8.8.8", "8.8.8.8"),
                ("[2001:db8::1]", "[2001:db8::1]"),
                ("www.xn--blbr-roah.dk", "xn--blbr-roah.dk"),
                ("www.xn--85x722f.xn--55qx5d.cn", "xn--85x722f.xn--55qx5d.cn"),
                ("www.ck", "www.ck"),
                ("a.b.ck", "a.b.ck"),
                ("x.a.b.ck", "a.b.ck"),
                ("", ""),
                (".", "."),
                ("..dk", ".dk"),
            ] {
                assert_eq!(
                    list.registered_domain(host),
                    expected,
                    "{} {host}",
                    list.version()
                );
            }
        }
    }

    /// Fails if a domain passes for a suffix, or a suffix for a domain.
    #[test]
    fn suffix_is_distinguished_from_domain() {
        for list in [
            SuffixList::default(),
            SuffixList::parse(b"dk\ngithub.io\nco.uk").unwrap(),
        ] {
            for (host, expected) in [
                ("dk", true),
                ("co.uk", true),
                ("github.io", true),
                ("example.dk", false),
                ("localhost", false),
                ("intranet", false),
                ("127.0.0.1", false),
                ("", false),
            ] {
                assert_eq!(list.is_suffix(host), expected, "{} {host}", list.version());
            }
        }
    }

    /// Fails if the list of a file does not replace the one that is compiled in.
    #[test]
    fn list_of_file_stands_alone() {
        let list = SuffixList::parse(b"// VERSION: 2026-11-01\n// other\nexample.dk\n").unwrap();
        assert_eq!(list.registered_domain("a.b.example.dk"), "b.example.dk");
        assert_eq!(list.registered_domain("www.example.com"), "example.com");
        let (version, digest) = list.version().split_once(", sha256:").unwrap();
        assert_eq!((version, digest.len()), ("2026-11-01", 64));
    }

    /// Fails if a file is taken that is no list, or the line of its mistake is another one.
    #[test]
    fn file_without_rules_is_refused() {
        for (text, line) in [
            ("dk\n\n<html>", 3),
            ("a..b", 1),
            ("!dk", 1),
            ("dk\n*.", 2),
            ("10.0.0.1", 1),
        ] {
            let error = SuffixList::parse(text.as_bytes()).unwrap_err();
            let InvalidSuffixList::Rule { line: found, .. } = error else {
                panic!("{error}");
            };
            assert_eq!(found, line, "{text}");
        }
        for text in ["", "// comment\n\n"] {
            let error = SuffixList::parse(text.as_bytes()).unwrap_err();
            assert_eq!(error, InvalidSuffixList::Empty);
        }
        assert_eq!(
            SuffixList::parse(b"\xff").unwrap_err(),
            InvalidSuffixList::NoText
        );
    }

    /// Fails if the list is updated, and the version that is documented is not.
    #[test]
    fn version_of_compiled_list_is_locked_one() {
        let lock = include_str!("../../../Cargo.lock");
        let (_, behind) = lock.split_once("name = \"psl\"\nversion = \"").unwrap();
        let (version, _) = behind.split_once('"').unwrap();
        assert_eq!(COMPILED_LIST, format!("psl {version}"));
    }
}
