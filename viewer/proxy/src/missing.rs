//! The list of URLs that a client asked for and the archive does not have.
//!
//! Owns its order and its limits: sorted, each URL once, and a count of those that found no room.

use std::collections::BTreeSet;
use std::sync::Arc;

/// The memory that a URL takes beside its own bytes, roughly.
const OVERHEAD: usize = 48;

/// URLs that were missing.
#[derive(Clone, Debug, Default)]
pub(crate) struct MissingUrls {
    urls: BTreeSet<Arc<str>>,
    bytes: usize,
    omitted: u64,
}

impl MissingUrls {
    /// Adds a URL, if there are fewer than `most` and it fits into `room` bytes. Returns whether it is in the list.
    pub(crate) fn add_url(&mut self, url: &str, most: usize, room: usize) -> bool {
        if self.urls.contains(url) {
            return true;
        }
        let bytes = url.len() + OVERHEAD;
        if self.urls.len() >= most || bytes > room {
            self.omitted = self.omitted.saturating_add(1);
            return false;
        }
        self.bytes += bytes;
        self.urls.insert(url.into());
        true
    }

    /// Returns the URLs, sorted.
    pub(crate) fn urls(&self) -> impl ExactSizeIterator<Item = &Arc<str>> {
        self.urls.iter()
    }

    /// Returns roughly the memory that it takes.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns how often a URL was missing and found no room.
    pub(crate) const fn omitted(&self) -> u64 {
        self.omitted
    }
}

/// Returns URLs as text, one in a line.
pub(crate) fn url_lines(urls: &[Arc<str>]) -> String {
    let mut text = String::new();
    for url in urls {
        text.push_str(url);
        text.push('\n');
    }
    text
}

/// Returns URLs as a list of seeds: those that can be harvested, one in a line, below a line that says what they are.
/// Lines that begin with `#` are no seeds.
pub(crate) fn seed_lines(urls: &[Arc<str>], label: &str) -> String {
    let label: String = label.chars().filter(|c| !c.is_control()).collect();
    let mut text = format!("# Missing in the archive: {label}\n");
    let web = |url: &&Arc<str>| url.starts_with("http://") || url.starts_with("https://");
    for url in urls.iter().filter(web) {
        text.push_str(url);
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a list of seeds has a line that no harvester takes, or one that comes from a label.
    #[test]
    fn seeds_are_urls_of_the_web() {
        let urls: Vec<Arc<str>> = ["ftp://f/", "http://a/", "https://b/"]
            .map(Arc::from)
            .to_vec();
        assert_eq!(
            seed_lines(&urls, "all\nhttp://evil/"),
            "# Missing in the archive: allhttp://evil/\nhttp://a/\nhttps://b/\n"
        );
        assert_eq!(url_lines(&urls), "ftp://f/\nhttp://a/\nhttps://b/\n");
    }
}
