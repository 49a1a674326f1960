//! Whether a URI belongs to a crawl (the decide rules of Heritrix, as NetarchiveSuite's templates order them).
//!
//! Owns the rules and their order. Each rule that has an opinion overrides those before it: the last one decides, and
//! says so by its name in the log.
//!
//! ```
//! use harvest_policy::hops::HopPath;
//! use harvest_policy::scope::{Scope, ScopeRule};
//! use url::Url;
//!
//! let mut scope = Scope::default();
//! scope.accepted.add_host(&Url::parse("http://example.dk/")?);
//! let decision = scope.decide_scope(&Url::parse("https://example.dk/a")?, &"L".parse()?);
//! assert!(decision.is_accepted());
//! let decision = scope.decide_scope(&Url::parse("https://example.dk/a/x/x/x/")?, &"L".parse()?);
//! assert_eq!(decision.rule, ScopeRule::RepeatedSegment);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use url::Url;

use crate::hops::{Hop, HopPath};
use crate::surt::{SurtPrefix, SurtPrefixes, url_surt};
use crate::traps::TrapList;

/// The schemes that are crawled at all.
const SCHEMES: [&str; 6] = ["http", "https", "ftp", "sftp", "dns", "whois"];

/// A rule of the scope. They are listed in their order: the last one with an opinion decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ScopeRule {
    /// Nothing else has an opinion: rejects.
    Outside,
    /// An accepted prefix covers the URI: accepts.
    AcceptedPrefix,
    /// Too many hops from the seed: rejects.
    TooManyHops,
    /// A part of a page that is crawled, wherever it lies: accepts.
    PartOfPage,
    /// A rejected prefix covers the URI: rejects.
    RejectedPrefix,
    /// A crawler trap: rejects.
    Trap,
    /// The same segments of the path again and again: rejects.
    RepeatedSegment,
    /// Too many segments in the path: rejects.
    DeepPath,
    /// Something that another URI needs first: accepts.
    Prerequisite,
    /// A scheme that is not crawled: rejects.
    Scheme,
}

/// The opinion of the scope about a URI, and the rule that decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScopeDecision {
    /// The last rule with an opinion.
    pub rule: ScopeRule,
}

impl ScopeDecision {
    /// Returns whether the URI belongs to the crawl.
    pub const fn is_accepted(self) -> bool {
        matches!(
            self.rule,
            ScopeRule::AcceptedPrefix | ScopeRule::PartOfPage | ScopeRule::Prerequisite
        )
    }
}

/// The scope of a crawl.
#[derive(Clone, Debug)]
pub struct Scope {
    /// The prefixes of what is crawled: those of the seeds.
    pub accepted: SurtPrefixes,
    /// Expressions; a URI that matches one as a whole is accepted, too.
    pub accepted_expressions: TrapList,
    /// The prefixes of what is left out.
    pub rejected: SurtPrefixes,
    /// The crawler traps.
    pub traps: TrapList,
    /// The most hops from a seed.
    pub max_hops: usize,
    /// The most hops from a page to its parts, redirects not counted.
    pub max_hops_in_page: usize,
    /// The most of these that may be guesses from scripts.
    pub max_speculative_hops: usize,
    /// The most segments of a path.
    pub max_segments: usize,
    /// The most times that the same segments may stand behind each other.
    pub max_repeats: usize,
    /// Other limits and further traps for parts of the web. Of several that cover a URI all apply, and the last one
    /// that has a limit decides about it.
    pub overlays: Vec<ScopeOverlay>,
}

/// Other limits of the scope for what a prefix covers. `None`: as below it.
#[derive(Clone, Debug)]
pub struct ScopeOverlay {
    /// The prefix of the URIs that the limits hold for.
    pub prefix: SurtPrefix,
    /// Further crawler traps.
    pub traps: TrapList,
    /// As [`Scope::max_hops`].
    pub max_hops: Option<usize>,
    /// As [`Scope::max_hops_in_page`].
    pub max_hops_in_page: Option<usize>,
    /// As [`Scope::max_speculative_hops`].
    pub max_speculative_hops: Option<usize>,
    /// As [`Scope::max_segments`].
    pub max_segments: Option<usize>,
    /// As [`Scope::max_repeats`].
    pub max_repeats: Option<usize>,
}

impl Default for Scope {
    /// Returns a scope without prefixes, with the limits of Heritrix.
    fn default() -> Self {
        Self {
            accepted: SurtPrefixes::default(),
            accepted_expressions: TrapList::default(),
            rejected: SurtPrefixes::default(),
            traps: TrapList::default(),
            max_hops: 20,
            max_hops_in_page: 2,
            max_speculative_hops: 1,
            max_segments: 20,
            max_repeats: 2,
            overlays: Vec::new(),
        }
    }
}

impl Scope {
    /// Decides about a URI that was reached by `hops`.
    pub fn decide_scope(&self, url: &Url, hops: &HopPath) -> ScopeDecision {
        let overlays = self.overlays_for(url);
        let limit = |of: fn(&ScopeOverlay) -> Option<usize>, below| {
            let own = overlays.iter().rev().find_map(|overlay| of(overlay));
            own.unwrap_or(below)
        };
        let traps = || {
            let own = overlays.iter().map(|overlay| &overlay.traps);
            let mut all = own.chain([&self.traps]);
            all.any(|traps| traps.catches_uri(url.as_str()))
        };
        let max_hops = limit(|overlay| overlay.max_hops, self.max_hops);
        let max_hops_in_page = limit(|overlay| overlay.max_hops_in_page, self.max_hops_in_page);
        let max_speculative_hops = limit(
            |overlay| overlay.max_speculative_hops,
            self.max_speculative_hops,
        );
        let max_repeats = limit(|overlay| overlay.max_repeats, self.max_repeats);
        let max_segments = limit(|overlay| overlay.max_segments, self.max_segments);
        // The last rule with an opinion decides, so that they are asked backwards: what a deep path costs to look at is
        // not paid for one that is too deep.
        let rule = if !SCHEMES.contains(&url.scheme()) {
            ScopeRule::Scheme
        } else if hops.last() == Some(Hop::Prerequisite) {
            ScopeRule::Prerequisite
        } else if segments(url.path()).count() > max_segments {
            ScopeRule::DeepPath
        } else if repeat_count(url.path()) > max_repeats {
            ScopeRule::RepeatedSegment
        } else if traps() {
            ScopeRule::Trap
        } else if self.rejected.covers(url) {
            ScopeRule::RejectedPrefix
        } else if is_part_of_page(hops, max_hops_in_page, max_speculative_hops) {
            ScopeRule::PartOfPage
        } else if hops.len() > max_hops {
            ScopeRule::TooManyHops
        } else if self.accepted.covers(url) || self.accepted_expressions.catches_uri(url.as_str()) {
            ScopeRule::AcceptedPrefix
        } else {
            ScopeRule::Outside
        };
        ScopeDecision { rule }
    }

    /// Returns the overlays that cover a URI, in their order.
    fn overlays_for(&self, url: &Url) -> Vec<&ScopeOverlay> {
        if self.overlays.is_empty() {
            return Vec::new();
        }
        let surt = url_surt(url);
        let covers = |overlay: &&ScopeOverlay| {
            surt.as_ref()
                .is_some_and(|surt| overlay.prefix.covers(surt))
        };
        self.overlays.iter().filter(covers).collect()
    }
}

/// Returns whether the hops behind the last page are few enough for a URI to be a part of it.
fn is_part_of_page(hops: &HopPath, most: usize, most_speculative: usize) -> bool {
    let within = hops.within_page();
    let count = |counts: fn(&Hop) -> bool| within.iter().filter(|hop| counts(hop)).count();
    !within.is_empty()
        && count(|hop| *hop != Hop::Redirect) <= most
        && count(|hop| *hop == Hop::Speculative) <= most_speculative
}

/// Returns the segments of a path that say something: empty ones at its ends are left out.
fn segments(path: &str) -> impl Iterator<Item = &str> {
    path.trim_matches('/').split('/')
}

/// Returns how often the same segments stand behind each other at most: 3 in `/a/x/y/x/y/x/y`. The last segment is a
/// file and does not count, as in Heritrix' `.*?/(.*?/)\1{2,}.*`.
fn repeat_count(path: &str) -> usize {
    let Some((directories, _)) = path.rsplit_once('/') else {
        return 0;
    };
    let parts: Vec<&str> = directories.split('/').skip(1).collect();
    let mut most = usize::from(!parts.is_empty());
    for period in 1..=parts.len() / 2 {
        // A run of n equal neighbours at a distance of one period is n / period more of the same.
        let mut run = 0;
        for (first, second) in parts.iter().zip(parts.iter().skip(period)) {
            run = if first == second { run + 1 } else { 0 };
            most = most.max(run / period + 1);
        }
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decide(scope: &Scope, url: &str, hops: &str) -> ScopeRule {
        scope
            .decide_scope(&Url::parse(url).unwrap(), &hops.parse().unwrap())
            .rule
    }

    fn example() -> Scope {
        let mut scope = Scope {
            traps: TrapList::parse(".*trap.*").unwrap(),
            ..Scope::default()
        };
        scope
            .accepted
            .add_host(&Url::parse("http://a.dk/").unwrap());
        scope.rejected.add("http://(dk,a,)/private");
        scope
    }

    /// Fails if a rule has lost its opinion, or one before it decides.
    #[test]
    fn last_rule_with_an_opinion_decides() {
        let scope = example();
        for (url, hops, rule) in [
            ("http://a.dk/x", "-", ScopeRule::AcceptedPrefix),
            ("http://b.dk/x", "L", ScopeRule::Outside),
            ("http://b.dk/x", "LE", ScopeRule::PartOfPage),
            (
                "http://a.dk/x",
                "LLLLLLLLLLLLLLLLLLLL",
                ScopeRule::AcceptedPrefix,
            ),
            (
                "http://a.dk/x",
                "LLLLLLLLLLLLLLLLLLLLL",
                ScopeRule::TooManyHops,
            ),
            (
                "http://a.dk/x",
                "LLLLLLLLLLLLLLLLLLLLLE",
                ScopeRule::PartOfPage,
            ),
            ("http://a.dk/private/x", "E", ScopeRule::RejectedPrefix),
            ("http://a.dk/trap", "L", ScopeRule::Trap),
            ("http://a.dk/x/x/x/y", "L", ScopeRule::RepeatedSegment),
            ("http://a.dk/trap/x/x/x/y", "P", ScopeRule::Prerequisite),
            ("mailto:a@a.dk", "P", ScopeRule::Scheme),
            ("javascript:void(0)", "L", ScopeRule::Scheme),
        ] {
            assert_eq!(decide(&scope, url, hops), rule, "{url} by {hops}");
        }
        let numbers: Vec<String> = (0..21).map(|n| n.to_string()).collect();
        let deep = format!("http://a.dk/{}", numbers.join("/"));
        assert_eq!(decide(&scope, &deep, "L"), ScopeRule::DeepPath);
        assert_eq!(
            decide(&scope, deep.trim_end_matches("/20"), "L"),
            ScopeRule::AcceptedPrefix
        );
    }

    /// Fails if one of the ordered rules decides where a later one has an opinion, or is asked at another place.
    #[test]
    fn rules_are_asked_in_heritrix_order() {
        let deep = format!("http://a.dk/private/trap/{}x/x/x/y", "n/m/".repeat(10));
        let links = "L".repeat(21);
        // From the first rule to the last one: a URI about which it has the last opinion.
        for (url, hops, rule) in [
            ("http://b.dk/", "L", ScopeRule::Outside),
            ("https://a.dk/", "L", ScopeRule::AcceptedPrefix),
            ("http://a.dk/", links.as_str(), ScopeRule::TooManyHops),
            ("http://b.dk/", &format!("{links}E"), ScopeRule::PartOfPage),
            (
                "http://a.dk/private/",
                &format!("{links}E"),
                ScopeRule::RejectedPrefix,
            ),
            ("http://a.dk/private/trap", "LE", ScopeRule::Trap),
            (
                "http://a.dk/private/trap/x/x/x/y",
                "LE",
                ScopeRule::RepeatedSegment,
            ),
            (&deep, "LE", ScopeRule::DeepPath),
            (&deep, "LP", ScopeRule::Prerequisite),
            ("gopher://a.dk/trap", "LP", ScopeRule::Scheme),
        ] {
            assert_eq!(decide(&example(), url, hops), rule, "{url} by {hops}");
        }
    }

    /// Fails if an overlay reaches beyond its prefix, one of several is passed by, or the first one stands.
    #[test]
    fn overlays_change_limits_of_their_prefix() {
        let overlay = |prefix: &str| ScopeOverlay {
            prefix: prefix.parse().unwrap(),
            traps: TrapList::default(),
            max_hops: None,
            max_hops_in_page: None,
            max_speculative_hops: None,
            max_segments: None,
            max_repeats: None,
        };
        let mut scope = example();
        scope.overlays = vec![
            ScopeOverlay {
                max_hops: Some(1),
                max_segments: Some(1),
                max_repeats: Some(9),
                traps: TrapList::parse(".*pit.*").unwrap(),
                ..overlay("http://(dk,a,")
            },
            ScopeOverlay {
                max_hops: Some(2),
                max_hops_in_page: Some(0),
                ..overlay("http://(dk,a,)/d")
            },
            ScopeOverlay {
                max_hops_in_page: Some(3),
                max_speculative_hops: Some(2),
                ..overlay("http://(dk,c,")
            },
        ];
        for (url, hops, rule) in [
            ("http://a.dk/x", "L", ScopeRule::AcceptedPrefix),
            ("http://a.dk/x", "LL", ScopeRule::TooManyHops),
            ("http://a.dk/d", "LL", ScopeRule::AcceptedPrefix),
            ("http://a.dk/d", "LLL", ScopeRule::TooManyHops),
            ("http://a.dk/x", "LLE", ScopeRule::PartOfPage),
            ("http://a.dk/d", "LLE", ScopeRule::TooManyHops),
            ("http://a.dk/pit", "L", ScopeRule::Trap),
            ("http://a.dk/trap", "L", ScopeRule::Trap),
            ("http://b.dk/pit", "LE", ScopeRule::PartOfPage),
            ("http://a.dk/x/x/x/x/", "L", ScopeRule::DeepPath),
            ("http://c.dk/", "LEEE", ScopeRule::PartOfPage),
            ("http://b.dk/", "LEEE", ScopeRule::Outside),
            ("http://c.dk/", "LXX", ScopeRule::PartOfPage),
            ("http://b.dk/", "LXX", ScopeRule::Outside),
        ] {
            assert_eq!(decide(&scope, url, hops), rule, "{url} by {hops}");
        }
    }

    /// Fails if redirects lead a part of a page out of the scope, or guesses lead on from guess to guess.
    #[test]
    fn parts_of_a_page_are_few_hops_away() {
        let scope = example();
        for (hops, part) in [
            ("L", false),
            ("E", true),
            ("LEE", true),
            ("LEEE", false),
            ("LRERER", true),
            ("LX", true),
            ("LEX", true),
            ("LXX", false),
            ("LLR", true),
        ] {
            let expected = if part {
                ScopeRule::PartOfPage
            } else {
                ScopeRule::Outside
            };
            assert_eq!(decide(&scope, "http://b.dk/", hops), expected, "{hops}");
        }
    }

    /// Fails if the count differs from its definition on one of all short paths.
    #[test]
    fn repeats_are_counted_by_definition() {
        for (path, expected) in [
            ("/", 0),
            ("/a", 0),
            ("/a/", 1),
            ("/a/a/", 2),
            ("/a/a/a", 2),
            ("/x/a/b/a/b/a/b/", 3),
            ("/a/b/c/", 1),
        ] {
            assert_eq!(repeat_count(path), expected, "{path}");
        }
        for code in 0..3_usize.pow(7) {
            let letters: Vec<&str> = (0..7)
                .map(|place| ["a", "b", "c"][code / 3_usize.pow(place) % 3])
                .collect();
            let mut most = 1;
            for begin in 0..letters.len() {
                for period in 1..=letters.len() - begin {
                    let pattern = &letters[begin..begin + period];
                    let equal = letters[begin..]
                        .chunks(period)
                        .take_while(|chunk| *chunk == pattern)
                        .count();
                    most = most.max(equal);
                }
            }
            assert_eq!(
                repeat_count(&format!("/{}/", letters.join("/"))),
                most,
                "{letters:?}"
            );
        }
    }
}
