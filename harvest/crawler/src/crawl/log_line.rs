//! Lines of the crawl log that tell of no response.

use archive_formats::crawl_log::CrawlLogLine;
use harvest_policy::status::FetchStatus;
use jiff::Timestamp;

use crate::frontier::FrontierUri;

/// Returns the line of a URI that no host was asked for.
pub(super) fn crawl_log_line(
    uri: &FrontierUri,
    status: FetchStatus,
    time: Timestamp,
) -> CrawlLogLine {
    CrawlLogLine {
        time,
        status: status.number(),
        size: None,
        uri: uri.uri.clone(),
        hops: uri.hops.clone(),
        via: uri.via.clone(),
        media_type: None,
        thread: 0,
        begun: None,
        milliseconds: 0,
        digest: None,
        source: uri.source.clone(),
        annotations: Vec::new(),
    }
}
