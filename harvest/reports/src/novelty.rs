//! The novelty of a payload, as a line of a crawl log tells it.

use archive_formats::crawl_log::CrawlLogLine;

/// The payload of a line, compared with earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineNovelty {
    Novel,
    Duplicate,
    NotModified,
}

impl LineNovelty {
    /// Reads the annotations of a line: `duplicate:…` with the origin or a reason, `warcRevisit:…` with a reason.
    pub(crate) fn from_line(line: &CrawlLogLine) -> Self {
        let mut novelty = Self::Novel;
        for annotation in &line.annotations {
            let Some((name, value)) = annotation.split_once(':') else {
                continue;
            };
            match (name, value) {
                ("duplicate", "server-not-modified") | ("warcRevisit", "notModified") => {
                    return Self::NotModified;
                }
                ("duplicate" | "deduplicate" | "warcRevisit", _) => novelty = Self::Duplicate,
                _ => {}
            }
        }
        novelty
    }
}
