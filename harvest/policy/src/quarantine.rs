//! Patterns of URIs that only make more of themselves: calendars, session ids, growing paths.
//!
//! Owns when a pattern is put under quarantine: its URIs are rejected by its name until a person frees it. Bounded in
//! memory: what it forgets counts as never seen, which only keeps a trap open for longer. Holds no queue: the caller
//! asks [`Quarantine::holding_pattern`] when it takes a URI in and before it fetches one.
//!
//! # The signal
//!
//! A large pattern is no trap: `/article/123` may have a million pages. A trap shows itself by what its pages link to.
//!
//! - *Fruit*: a link that was never seen, of another pattern that has something to give. Pages of an archive have
//!   images, authors, other sections; a list links to articles. A pattern of which nearly every response repeats an
//!   older one, or fails, has nothing to give: otherwise the days of an empty calendar would be the fruit of its
//!   months, and the pages under one session id the fruit of those under another.
//! - *Content*: the set of words, by [`word_sketch`]. A calendar differs in numbers and in twelve names of months, and soon
//!   repeats itself. Digests of payloads tell nothing: in a trap they are all different.
//! - *Vouchers*: a page of another pattern with new content that links to a URI vouches for it. So do sitemaps. The
//!   pages of a script-driven site have the same words, all of them; they are real, and known from elsewhere.
//!
//! Each page without fruit and voucher makes its pattern more suspect: one that repeats content by [`REPEATED`] points,
//! one that has new content and brings URIs of its own pattern only by 1 point, as a chain of real pages may well do
//! for a while. A page with new content and no new links is a leaf and costs nothing. Fruit takes [`FRUIT`] points
//! away. A pattern that repeats itself is caught after `after_pages` pages, and one that makes up new text after
//! [`REPEATED`] times as many: below that a chain of real pages is kept whole.
//!
//! Not caught: two patterns that lead to each other and always have new words. The budgets of the queue end them.

mod pattern;
mod recent;
mod words;

use std::collections::BTreeSet;

use url::Url;

use self::recent::RecentMap;
use self::words::hash_value;

pub use self::pattern::{LONGEST, url_pattern};
pub use self::words::{MAX_BYTES, word_sketch};

/// The points of a page that repeats content and has no new links.
pub const REPEATED: u32 = 20;

/// The points that a page with fruit takes away.
pub const FRUIT: u32 = 200;

/// The balance of repeated responses from which on a pattern has nothing to give.
const DULL: u8 = 20;

/// The responses with repeated content that one with new content makes up for.
const NEW_CONTENT: u8 = 5;

/// The most patterns under quarantine. When there are more, no further one is put there.
const MOST: usize = 10_000;

/// The patterns that are counted, and the contents that are known, since the last turn of their memory.
const PATTERNS: usize = 1 << 16;
const CONTENTS: usize = 1 << 19;

/// The counts of one pattern.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct PatternCounts {
    /// The points against the pattern.
    suspicion: u32,
    /// The number of URIs of the pattern that were vouched for and not fetched yet.
    vouchers: u32,
    /// The number of responses that repeated content or failed, less those with new content.
    repeats: u8,
}

impl PatternCounts {
    fn is_dull(self) -> bool {
        self.repeats >= DULL
    }

    fn take_response(&mut self, is_new: bool) {
        self.repeats = if is_new {
            self.repeats.saturating_sub(NEW_CONTENT)
        } else {
            self.repeats.saturating_add(1).min(2 * DULL)
        };
    }
}

/// The patterns of a crawl, and which of them are under quarantine.
#[derive(Clone, Debug)]
pub struct Quarantine {
    after_pages: u32,
    patterns: RecentMap<PatternCounts>,
    contents: RecentMap<()>,
    held: BTreeSet<String>,
    freed: BTreeSet<String>,
}

/// The content of a response, as far as it says whether it is new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseContent {
    /// A text, by its [`word_sketch`].
    Words(u64),
    /// Anything else, by a part of its digest.
    Digest(u64),
    /// A list that is made for crawlers (a sitemap, a feed): always new, so that it vouches for all its links.
    Manifest,
}

impl Quarantine {
    /// Makes a quarantine without patterns. `after_pages`: the pages that repeat themselves until a pattern is put
    /// under quarantine, 0 for never.
    pub fn new(after_pages: u32) -> Self {
        Self {
            after_pages,
            patterns: RecentMap::new(PATTERNS),
            contents: RecentMap::new(CONTENTS),
            held: BTreeSet::new(),
            freed: BTreeSet::new(),
        }
    }

    /// Returns the name of the pattern under quarantine that holds a URI back.
    pub fn holding_pattern(&self, url: &Url) -> Option<&str> {
        if self.held.is_empty() {
            return None;
        }
        self.held.get(&url_pattern(url)).map(String::as_str)
    }

    /// Takes note of a response with status 200: its content, and the URIs it led to that belong to the crawl and were
    /// never seen before. Returns the name of its pattern if that is put under quarantine now.
    pub fn note_response<'u>(
        &mut self,
        url: &Url,
        content: ResponseContent,
        new_links: impl IntoIterator<Item = &'u Url>,
    ) -> Option<&str> {
        let name = url_pattern(url);
        let key = hash_value(&name);
        let is_new = match content {
            ResponseContent::Words(number) | ResponseContent::Digest(number) => {
                self.contents.insert(hash_value(&(key, number)))
            }
            ResponseContent::Manifest => true,
        };
        let mut has_fruit = false;
        let mut has_own = false;
        for link in new_links {
            let name = url_pattern(link);
            let target = hash_value(&name);
            if target == key {
                has_own = true;
            } else if !self.held.contains(&name) {
                let counts = self.patterns.entry(target);
                has_fruit |= !counts.is_dull();
                counts.vouchers = counts.vouchers.saturating_add(u32::from(is_new));
            }
        }
        let counts = self.patterns.entry(key);
        counts.take_response(is_new);
        let has_voucher = counts.vouchers > 0;
        counts.vouchers = counts.vouchers.saturating_sub(1);
        let points = match (is_new, has_own) {
            (false, _) => REPEATED,
            (true, own) => u32::from(own),
        };
        if has_fruit {
            counts.suspicion = counts.suspicion.saturating_sub(FRUIT);
        } else if !has_voucher {
            counts.suspicion = counts.suspicion.saturating_add(points);
        }
        let limit = self.after_pages.saturating_mul(REPEATED);
        let is_trap = limit > 0 && counts.suspicion >= limit;
        if !is_trap || self.held.len() >= MOST || self.freed.contains(&name) {
            return None;
        }
        self.held.insert(name.clone());
        self.held.get(&name).map(String::as_str)
    }

    /// Takes note of a URI that came to nothing: robots.txt excludes it, its host says 404, or does not answer. Links
    /// to URIs of a pattern that mostly does so are no fruit.
    pub fn note_failure(&mut self, url: &Url) {
        self.patterns
            .entry(hash_value(&url_pattern(url)))
            .take_response(false);
    }

    /// Frees a pattern, and never holds it again. Returns whether it was under quarantine.
    pub fn free_pattern(&mut self, name: &str) -> bool {
        self.freed.insert(name.to_owned());
        self.held.remove(name)
    }

    /// Puts a pattern under quarantine: what an interrupted crawl had found, or what a person says.
    pub fn hold_pattern(&mut self, name: &str) {
        self.held.insert(name.to_owned());
    }

    /// Returns the patterns under quarantine, sorted.
    pub fn held_patterns(&self) -> impl Iterator<Item = &str> {
        self.held.iter().map(String::as_str)
    }

    /// Returns the patterns that were freed, sorted.
    pub fn freed_patterns(&self) -> impl Iterator<Item = &str> {
        self.freed.iter().map(String::as_str)
    }
}

#[cfg(test)]
mod tests;
