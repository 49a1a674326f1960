//! Patterns of URIs that only make more of themselves: calendars, session ids, growing paths.
//!
//! Owns when a pattern is put under quarantine: its URIs are held back by its name until a person frees it, but for
//! those of a *trial*. Bounded in memory: what it forgets counts as never seen, which only keeps a trap open for longer.
//! Holds no queue: the caller asks [`Quarantine::holding_pattern`] when it takes a URI in and before it fetches one, and
//! [`Quarantine::trial_pages_left`] when it has nothing better to fetch.
//!
//! # The signal
//!
//! A large pattern is no trap: `/article/123` may have a million pages. A trap shows itself by what its pages link to.
//!
//! - *Fruit*: a link that was never seen, of another pattern that has something to give. Pages of an archive have
//!   images, authors, other sections; a list links to articles. A pattern of which nearly every response repeats an
//!   older one, or fails, has nothing to give: otherwise the days of an empty calendar would be the fruit of its
//!   months, and the pages under one session id the fruit of those under another.
//! - *Content*: the set of words, by [`text_sketch`]. A calendar differs in twelve names of months, and soon repeats
//!   itself. Numbers count for half: those of a calendar are the same few, those of a table of rates are all that it
//!   has, and those of a clock are always new. Digests of payloads tell nothing: in a trap they are all different.
//! - *Vouchers*: a page of another pattern with new content that links to a URI vouches for it. So do sitemaps. The
//!   pages of a script-driven site have the same words, all of them; they are real, and known from elsewhere.
//!
//! Each page without fruit and voucher makes its pattern more suspect: one that repeats content by [`REPEATED`] points,
//! or by half of them if it has new numbers, one that has new content and brings URIs of its own pattern only by 1
//! point, as a chain of real pages may well do for a while. A page with new content and no new links is a leaf and costs nothing. Fruit takes [`FRUIT`] points
//! away. A pattern that repeats itself is caught after `after_pages` pages, and one that makes up new text after
//! [`REPEATED`] times as many: below that a chain of real pages is kept whole.
//!
//! A search by facets has a pattern for each set of its keys. One with more keys is no fruit of one with fewer, nor the
//! other way round; and what is said against a page is said against each of its keys. A pattern is as suspect as the best
//! of its keys, so that all of a search is caught together.
//!
//! A host may answer any path with one page, whose relative links make a path of each other one. What it says under
//! many patterns ([`COMMON`]) is never new, and what is first found behind it is held back under the name of these words.
//!
//! Real pages may look like a trap. So a host has a trial: `trial_pages` of what is held back of it that bring nothing
//! new. What brings something costs nothing, or less; a leaf with new content pays for the page that led to it, too: an
//! album has the same words on all its pages, and an image behind each.
//!
//! Not caught: two patterns that lead to each other and always have new words. The budgets of the queue end them.

mod pattern;
mod recent;
mod words;

use std::collections::{BTreeMap, BTreeSet, HashSet};

use url::Url;

use self::pattern::host_name;
use self::recent::RecentMap;
use self::words::hash_value;

pub use self::pattern::{LONGEST, url_pattern};
pub use self::words::{MAX_BYTES, TextSketch, text_sketch};

/// The points of a page that repeats content and has no new links.
pub const REPEATED: u32 = 20;

/// The points that a page with fruit takes away.
pub const FRUIT: u32 = 200;

/// The balance of repeated responses from which on a pattern has nothing to give.
const DULL: u8 = 20;

/// The responses with repeated content that one with new content makes up for.
const NEW_CONTENT: u8 = 5;

/// The patterns of one host with the same words from which on these are common: what the host says of anything.
pub const COMMON: u32 = 50;

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
    settings: QuarantineRules,
    patterns: RecentMap<PatternCounts>,
    /// The points against each key of a query, by its path.
    keys: RecentMap<u32>,
    contents: RecentMap<()>,
    /// The number of patterns of one host that have the same words.
    spread: RecentMap<u32>,
    held: BTreeSet<String>,
    freed: BTreeSet<String>,
    /// The points that the trials of hosts have cost.
    spent: BTreeMap<String, u32>,
}

/// The patience with patterns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuarantineRules {
    /// The pages that repeat themselves until a pattern is put under quarantine, 0 for never.
    pub after_pages: u32,
    /// The pages of patterns under quarantine that are fetched of each host all the same, and bring nothing new.
    pub trial_pages: u32,
}

/// What a response has put under quarantine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QuarantineFinding {
    /// The name of its pattern.
    pub pattern: Option<String>,
    /// The name of its words: its host has answered with them under [`COMMON`] patterns.
    pub words: Option<String>,
}

/// The content of a response, as far as it says whether it is new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseContent {
    /// A text, by its [`text_sketch`].
    Text(TextSketch),
    /// Anything else, by a hash of its digest.
    Digest(u64),
    /// A list that is made for crawlers (a sitemap, a feed): always new, so that it vouches for all its links.
    Manifest,
}

impl ResponseContent {
    /// Returns the content of a payload that is no text.
    pub fn of_digest(digest: &str) -> Self {
        Self::Digest(hash_value(digest))
    }

    /// Returns the words of a text that has any.
    const fn words(self) -> Option<u64> {
        match self {
            Self::Text(sketch) => sketch.words,
            Self::Digest(_) | Self::Manifest => None,
        }
    }
}

/// The news of a response for its pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum News {
    Content,
    Numbers,
    Nothing,
}

impl Quarantine {
    /// Makes a quarantine without patterns.
    pub fn new(settings: QuarantineRules) -> Self {
        Self {
            settings,
            patterns: RecentMap::new(PATTERNS),
            keys: RecentMap::new(PATTERNS),
            contents: RecentMap::new(CONTENTS),
            spread: RecentMap::new(CONTENTS),
            held: BTreeSet::new(),
            freed: BTreeSet::new(),
            spent: BTreeMap::new(),
        }
    }

    /// Returns the name of the pattern under quarantine that holds a URI back.
    pub fn holding_pattern(&self, url: &Url) -> Option<&str> {
        if self.held.is_empty() {
            return None;
        }
        self.held.get(&url_pattern(url)).map(String::as_str)
    }

    /// Returns the name under which those links are held back that are first found on a page with this content.
    pub fn holding_words(&self, page: &Url, content: ResponseContent) -> Option<&str> {
        if self.held.is_empty() {
            return None;
        }
        let name = words_name(&host_name(page), content.words()?);
        self.held.get(&name).map(String::as_str)
    }

    /// Returns the names of words under which links to a host are held back.
    pub fn held_words(&self, host_of: &Url) -> impl Iterator<Item = &str> {
        let begin = format!("{} ", host_name(host_of));
        let from = self.held.range(begin.clone()..);
        from.take_while(move |name| name.starts_with(&begin))
            .map(String::as_str)
    }

    /// Takes note of a response with status 200: its content, and the URIs it led to that belong to the crawl and were
    /// never seen before. `is_trial`: it was charged by [`Self::charge_trial`].
    pub fn note_response<'u>(
        &mut self,
        url: &Url,
        content: ResponseContent,
        new_links: impl IntoIterator<Item = &'u Url>,
        is_trial: bool,
    ) -> QuarantineFinding {
        let name = url_pattern(url);
        let key = hash_value(&name);
        let is_common = self.holding_words(url, content).is_some();
        let mut finding = QuarantineFinding::default();
        let news = match self.take_content(&name, key, content, &mut finding) {
            News::Content if is_common => News::Nothing,
            news => news,
        };
        let is_new = news == News::Content;
        let mut has_fruit = false;
        let mut has_own = false;
        for link in new_links {
            let linked = url_pattern(link);
            let target = hash_value(&linked);
            if target == key || are_siblings(&name, &linked) {
                has_own = true;
            } else if !is_common && !self.held.contains(&linked) {
                let counts = self.patterns.entry(target);
                has_fruit |= !counts.is_dull();
                counts.vouchers = counts.vouchers.saturating_add(u32::from(is_new));
            }
        }
        let counts = self.patterns.entry(key);
        counts.take_response(is_new);
        let has_voucher = counts.vouchers > 0;
        counts.vouchers = counts.vouchers.saturating_sub(1);
        let points = match news {
            _ if has_fruit || has_voucher => 0,
            News::Content => u32::from(has_own),
            News::Numbers => REPEATED / 2,
            News::Nothing => REPEATED,
        };
        if has_fruit {
            counts.suspicion = counts.suspicion.saturating_sub(FRUIT);
        }
        counts.suspicion = counts.suspicion.saturating_add(points);
        let suspicion = counts.suspicion;
        let of_keys = self.suspect_keys(&name, points, has_fruit);
        if let Some(spent) = self.spent.get_mut(pattern_host(&name)) {
            let own = if is_trial { REPEATED - points } else { 0 };
            let of_parent = if is_new && points == 0 { REPEATED } else { 0 };
            *spent = spent.saturating_sub(own + of_parent);
        }
        let limit = self.settings.after_pages.saturating_mul(REPEATED);
        if points > 0 && limit > 0 && suspicion.max(of_keys) >= limit {
            finding.pattern = self.hold_new(name);
        }
        finding
    }

    /// Puts a name under quarantine, unless it is there, or a person has freed it. Returns it if it is there now.
    fn hold_new(&mut self, name: String) -> Option<String> {
        let may = !self.freed.contains(&name) && self.held.len() < MOST;
        let is_new = may && self.held.insert(name.clone());
        is_new.then_some(name)
    }

    /// Returns what is new in a response: its words, its numbers, or nothing.
    fn take_content(
        &mut self,
        name: &str,
        key: u64,
        content: ResponseContent,
        finding: &mut QuarantineFinding,
    ) -> News {
        let (number, numbers) = match content {
            ResponseContent::Manifest => return News::Content,
            ResponseContent::Digest(number) => (number, None),
            ResponseContent::Text(sketch) => (sketch.words.unwrap_or_default(), sketch.numbers),
        };
        // Those of the first page are known, too.
        let has_numbers = numbers
            .is_some_and(|numbers| self.contents.insert(hash_value(&(key, "numbers", numbers))));
        let otherwise = if has_numbers {
            News::Numbers
        } else {
            News::Nothing
        };
        if !self.contents.insert(hash_value(&(key, number))) {
            return otherwise;
        }
        let patterns = self.spread.entry(hash_value(&(pattern_host(name), number)));
        *patterns = patterns.saturating_add(1);
        let (patterns, words) = (*patterns, content.words());
        if patterns == COMMON && self.settings.after_pages > 0 {
            finding.words =
                words.and_then(|words| self.hold_new(words_name(pattern_host(name), words)));
        }
        let is_wordless = matches!(content, ResponseContent::Text(_)) && words.is_none();
        if patterns < COMMON || is_wordless {
            News::Content
        } else {
            otherwise
        }
    }

    /// Notes what a page with a query says against each of its keys. Returns the least that there is against one of them.
    fn suspect_keys(&mut self, name: &str, points: u32, has_fruit: bool) -> u32 {
        let Some((path, keys)) = name.split_once('?') else {
            return 0;
        };
        let suspicions = keys.split('&').map(|key| {
            let suspicion = self.keys.entry(hash_value(&(path, key)));
            *suspicion = suspicion
                .saturating_sub(if has_fruit { FRUIT } else { 0 })
                .saturating_add(points);
            *suspicion
        });
        suspicions.min().unwrap_or(0)
    }

    /// Returns the pages that the host of a pattern under quarantine has left for its trial.
    pub fn trial_pages_left(&self, pattern: &str) -> u32 {
        let budget = self.settings.trial_pages.saturating_mul(REPEATED);
        let spent = self.spent.get(pattern_host(pattern)).copied();
        budget.saturating_sub(spent.unwrap_or(0)) / REPEATED
    }

    /// Takes note of URIs of a pattern under quarantine that are fetched all the same. Those that bring something are
    /// given back to the trial by [`Self::note_response`].
    pub fn charge_trial(&mut self, pattern: &str, pages: u32) {
        let spent = self
            .spent
            .entry(pattern_host(pattern).to_owned())
            .or_insert(0);
        *spent = spent.saturating_add(pages.saturating_mul(REPEATED));
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

/// Returns whether two patterns are one search with more keys and with fewer.
fn are_siblings(one: &str, other: &str) -> bool {
    let (Some((path, keys)), Some((other_path, other_keys))) =
        (one.split_once('?'), other.split_once('?'))
    else {
        return false;
    };
    let keys: HashSet<&str> = keys.split('&').collect();
    let other_keys: HashSet<&str> = other_keys.split('&').collect();
    path == other_path && (keys.is_subset(&other_keys) || other_keys.is_subset(&keys))
}

/// Returns the host of a name, with its port.
fn pattern_host(name: &str) -> &str {
    name.split_once(['/', ' ']).map_or(name, |(host, _)| host)
}

/// Returns the name of the words that a host answers with. No pattern has a space.
fn words_name(host: &str, words: u64) -> String {
    format!("{host} same-words-{words:016x}")
}

#[cfg(test)]
mod tests;
