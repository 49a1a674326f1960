//! The URIs that a fetched one leads to, as they go into the frontier.
//!
//! Owns which links belong to the crawl, which of them count as seeds, and how urgent each is. Links that were found
//! lately are left out: the frontier would only find that it has them.

use std::collections::HashSet;

use harvest_extraction::{Link, as_link};
use harvest_model::order::SeedRedirects;
use harvest_policy::hops::{Hop, HopPath};
use harvest_policy::robots::RobotsRules;
use harvest_policy::status::FetchStatus;
use url::Url;

use super::{FetchProcessor, FetchedUri, RobotsFile, queue_name};
use crate::frontier::{CandidateUri, FrontierUri, SeenKey, Urgency};

/// The most redirects from a seed whose target counts as a seed.
const MOST_SEED_REDIRECTS: usize = 5;

/// The most redirects in a row: browsers and RFC 9110 §15.4 expect an end long before. They count as parts of a page,
/// which no limit of hops ends.
const MOST_REDIRECTS: usize = 20;

impl FetchProcessor {
    /// Remembers URIs that the frontier has been given. Before that a fetch that was cut would take its links with it.
    pub(crate) fn remember_keys(&self, keys: impl Iterator<Item = SeenKey>) {
        let mut recent = self.recent.lock();
        keys.for_each(|key| recent.insert(key));
    }

    /// Forgets a URI that could not be had: another one of its canonical form is asked for.
    pub(crate) fn forget_key(&self, key: &SeenKey) {
        self.recent.lock().remove(key);
    }

    fn is_recent(&self, key: &SeenKey) -> bool {
        let recent = self.recent.lock();
        recent.contains(key)
    }

    /// Returns the links that belong to the crawl and were not found lately.
    pub(super) fn list_candidates(
        &self,
        from: &FrontierUri,
        hops: &HopPath,
        links: &[Link],
        status: FetchStatus,
    ) -> (Vec<CandidateUri>, Option<Url>) {
        let mut found = Vec::new();
        let mut own = HashSet::new();
        let mut seed = None;
        // What a browser would follow from a seed: the first of several.
        let mut moved = links.iter().filter(|link| match status.number() {
            300..=399 => link.is_location(),
            _ => link.hop == Hop::Redirect,
        });
        let moved = moved.next().map(|link| &link.url);
        let own_key = self.hasher.key_of_text(&from.uri);
        let scope = self.scope.read();
        for link in links {
            // What cannot be fetched costs no question to a name server, and no line.
            let is_fetchable = matches!(link.url.scheme(), "http" | "https");
            if !is_fetchable || (link.hop == Hop::Speculative && !self.reads_scripts) {
                continue;
            }
            let path = hops.followed_by(link.hop);
            let redirects = path.within_page().iter().rev();
            let redirects = redirects.take_while(|hop| **hop == Hop::Redirect);
            if redirects.count() > MOST_REDIRECTS {
                continue;
            }
            let mut key = self.hasher.key_of(&link.url);
            if link.hop == Hop::Redirect && key == own_key && link.url.as_str() != from.uri {
                key = self.hasher.key_of_exact(link.url.as_str());
            }
            // The page itself is captured, wherever it lies; the rest of its site where the order says so.
            let answers_seed = link.hop == Hop::Redirect
                && moved == Some(&link.url)
                && path.is_redirected_seed()
                && path.len() <= MOST_SEED_REDIRECTS;
            if answers_seed {
                if self.becomes_seed(from, &link.url) {
                    seed = Some(link.url.clone());
                }
            } else if self.is_recent(&key) || !scope.decide_scope(&link.url, &path).is_accepted() {
                // The same URI may be in the scope by another link: as a part of the page.
                continue;
            }
            if own.insert(link.url.as_str()) {
                found.push(self.candidate(from, &link.url, &path, key));
            }
        }
        (found, seed)
    }

    /// Returns whether the target of a redirect from a seed counts as a seed.
    fn becomes_seed(&self, from: &FrontierUri, target: &Url) -> bool {
        match self.seed_redirects {
            SeedRedirects::Off => false,
            SeedRedirects::Host => true,
            SeedRedirects::SameSite => {
                let seed = from.source.as_ref().unwrap_or(&from.uri);
                let seed = Url::parse(seed).ok();
                let site = |url: &Url| {
                    let host = url.host_str()?;
                    Some(self.queues.suffixes.registered_domain(host).to_owned())
                };
                seed.is_some_and(|seed| site(&seed) == site(target))
            }
        }
    }

    fn candidate(
        &self,
        from: &FrontierUri,
        url: &Url,
        path: &HopPath,
        key: SeenKey,
    ) -> CandidateUri {
        CandidateUri {
            queue: queue_name(&self.queues, url, from.source.as_deref()),
            key,
            cost: self.place_in_queue(url.as_str(), Some(&from.uri), path),
            uri: FrontierUri {
                uri: url.as_str().to_owned(),
                hops: path.to_string(),
                via: Some(from.uri.clone()),
                source: from.source.clone(),
                urgency: urgency(path),
                tries: 0,
            },
        }
    }

    /// Returns the sitemaps that a robots.txt names.
    pub(super) fn list_sitemaps(
        &self,
        fetched: &FetchedUri,
        robots: Option<&RobotsFile>,
        hops: &HopPath,
    ) -> Vec<CandidateUri> {
        let Some(file) = robots.filter(|file| file.status == 200) else {
            return Vec::new();
        };
        let rules = RobotsRules::parse(&file.file, "");
        let urls = rules.sitemaps().iter();
        let links = urls.filter_map(|text| {
            let url = as_link(fetched.url.join(text).ok()?)?;
            Some(Link {
                url,
                hop: Hop::Manifest,
                context: "robots.txt:Sitemap",
            })
        });
        let links: Vec<Link> = links.collect();
        self.list_candidates(&fetched.uri, hops, &links, FetchStatus::from_http(200))
            .0
    }
}

/// Returns the urgency of a URI (Heritrix' scheduling with `preferenceEmbedHops` 1): redirects, and what a page takes
/// itself, go before other pages.
fn urgency(path: &HopPath) -> Urgency {
    if path.last() == Some(Hop::Redirect) || path.within_page().len() == 1 {
        Urgency::Medium
    } else {
        Urgency::Normal
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if the parts of a page wait behind other pages, or the parts of its parts go before them.
    #[test]
    fn parts_of_page_are_urgent() {
        for (path, expected) in [
            ("L", Urgency::Normal),
            ("LE", Urgency::Medium),
            ("LX", Urgency::Medium),
            ("LEE", Urgency::Normal),
            ("LR", Urgency::Medium),
            ("LEER", Urgency::Medium),
            ("E", Urgency::Medium),
            ("R", Urgency::Medium),
            ("PM", Urgency::Normal),
            ("LS", Urgency::Normal),
        ] {
            assert_eq!(urgency(&path.parse().unwrap()), expected, "{path}");
        }
    }
}
