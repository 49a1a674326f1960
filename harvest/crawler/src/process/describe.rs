//! The description of a fetch: its status, the lines of its `metadata` record, its line in the crawl log, and a
//! robots.txt.

use std::io::{self, BufReader, Read as _, Seek as _, SeekFrom};
use std::time::Duration;

use archive_formats::crawl_log::CrawlLogLine;
use archive_formats::date::Stamp;
use archive_formats::http::{Body, DecodeLimits as BodyLimits, MediaType, ResponseEnding};
use harvest_extraction::Extraction;
use harvest_policy::hops::Hop;
use harvest_policy::robots::MAX_BYTES;
use harvest_policy::status::FetchStatus;
use jiff::Timestamp;

use super::{FetchedUri, RobotsFile};
use crate::exchange::HttpProtocol;
use crate::exchange::receive::{HttpResponse, Truncation};
use crate::exchange::tls::CertificateVerdict;

/// Returns the status of a response. Without a status line all of it is a page (HTTP/0.9), unless its head is cut.
pub(super) fn status_of(response: &HttpResponse) -> FetchStatus {
    match (&response.head, response.ending) {
        (Some(head), _) => {
            // Smaller numbers are not of HTTP, and have another meaning in a crawl log.
            let status = head.status().filter(|status| *status >= 100);
            FetchStatus::from_http(status.unwrap_or(200))
        }
        (None, ResponseEnding::Complete | ResponseEnding::Unframed) => FetchStatus::from_http(200),
        (None, _) if response.truncation == Some(Truncation::Time) => FetchStatus::TIMEOUT,
        (None, _) => FetchStatus::CONNECT_LOST,
    }
}

/// Returns the time that a host asks for: seconds, or a date (RFC 9110 §10.2.3).
pub(super) fn retry_after(response: &HttpResponse, now: Timestamp) -> Option<Duration> {
    let value = response.head.as_ref()?.get("retry-after")?;
    let text = std::str::from_utf8(value).ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = jiff::fmt::rfc2822::parse(text).ok()?.timestamp();
    // A time that has passed is now.
    Some(Duration::try_from(date.duration_since(now)).unwrap_or_default())
}

/// Returns the lines of the `metadata` record, as Heritrix has them.
pub(super) fn describe_metadata(
    fetched: &FetchedUri,
    extraction: &Extraction,
) -> Vec<(String, String)> {
    let mut lines = Vec::new();
    let mut add = |name: &str, value: &str| lines.push((name.to_owned(), value.to_owned()));
    let uri = &fetched.uri;
    if uri.hops == "-" {
        add("seed", "");
    } else {
        if let Some(via) = &uri.via {
            add("via", via);
        }
        add("hopsFromSeed", &uri.hops);
    }
    if let Some(source) = &uri.source {
        add("sourceTag", source);
    }
    let milliseconds = fetched.fetched.exchange.duration.as_millis();
    add("fetchTimeMs", &milliseconds.to_string());
    if let Some(charset) = &extraction.charset {
        add("charsetForLinkExtraction", charset);
    }
    for head in &fetched.fetched.exchange.response.interim {
        // Interim heads (103 Early Hints) are no part of the response record.
        for (line, name) in String::from_utf8_lossy(head).lines().zip(interim_names()) {
            if !line.is_empty() {
                add(name, line);
            }
        }
    }
    let left_out = fetched.fetched.request.omitted_parts();
    if !left_out.is_empty() {
        add("requestLeftOut", &left_out.join(", "));
    }
    if let Some(proxy) = &fetched.fetched.proxy {
        add("proxy", &proxy.to_string());
    }
    if let Some(tls) = &fetched.fetched.tls {
        add("tlsVersion", &tls.version);
        add("tlsCipher", &tls.cipher);
        add("tlsCertificateSha256", &tls.fingerprint);
        add(
            "tlsCertificateVerdict",
            tls.verdict.annotation().unwrap_or("tls:good"),
        );
        if let CertificateVerdict::Invalid(words) = &tls.verdict {
            add("tlsCertificateError", &words.replace(char::is_control, " "));
        }
    }
    lines
}

/// The names of the lines of an interim head.
fn interim_names() -> impl Iterator<Item = &'static str> {
    std::iter::once("interimStatus").chain(std::iter::repeat("interimField"))
}

/// Returns the line of a fetch in the crawl log.
pub(super) fn log_line(
    fetched: &FetchedUri,
    status: FetchStatus,
    tries: u32,
    extraction: &Extraction,
) -> CrawlLogLine {
    let exchange = &fetched.fetched.exchange;
    let response = &exchange.response;
    let head = response.head.as_ref();
    let head_length = head.map_or(0, |head| head.raw().len() as u64);
    let media_type = head.and_then(|head| MediaType::read_media(head.get("content-type")?));
    let mut annotations = Vec::new();
    if tries > 1 {
        annotations.push(format!("{tries}t"));
    }
    annotations.extend(response.truncation.map(|truncation| {
        let text = match truncation {
            Truncation::Time => "timeTrunc",
            Truncation::Length if response.ending == ResponseEnding::HeadTooLong => "headerTrunc",
            Truncation::Length => "lenTrunc",
            Truncation::Disconnect => "disconnectTrunc",
        };
        text.to_owned()
    }));
    if head.is_some_and(|head| head.status().is_none_or(|status| status < 100)) {
        annotations.push("noStatus".to_owned());
    }
    if exchange.protocol == HttpProtocol::Http2 {
        annotations.push("h2".to_owned());
    }
    if let Some(tls) = &fetched.fetched.tls {
        annotations.extend(tls.verdict.annotation().map(str::to_owned));
    }
    annotations.extend(extraction.annotations.iter().cloned());
    annotations.push(format!("content-size:{}", response.block_length));
    CrawlLogLine {
        time: exchange.began,
        status: status.number(),
        size: Some(response.block_length.saturating_sub(head_length)),
        uri: fetched.uri.uri.clone(),
        hops: fetched.uri.hops.clone(),
        via: fetched.uri.via.clone(),
        media_type: media_type.map(|media_type| media_type.essence),
        thread: fetched.connection,
        begun: Some(Stamp::from_time_millis(exchange.began)),
        milliseconds: u64::try_from(exchange.duration.as_millis()).unwrap_or(u64::MAX),
        digest: Some(response.payload_digest.to_string()),
        source: fetched.uri.source.clone(),
        annotations,
    }
}

/// Returns the answer to the question for robots.txt, as far as it is read. `None`: the host has not answered, or has
/// broken off: what is missing may be the rule that matters, and the half of one says more than its author did.
pub(super) fn robots_file(
    fetched: &mut FetchedUri,
    extraction: &Extraction,
) -> io::Result<Option<RobotsFile>> {
    let response = &mut fetched.fetched.exchange.response;
    let Ok(status) = u16::try_from(status_of(response).number()) else {
        return Ok(None);
    };
    if matches!(
        response.truncation,
        Some(Truncation::Disconnect | Truncation::Time)
    ) {
        return Ok(None);
    }
    let mut file = Vec::new();
    let head = response.head.as_ref();
    let begin = head.map_or(0, |head| head.raw().len() as u64);
    response.block.seek(SeekFrom::Start(begin))?;
    let input = BufReader::new(&mut response.block);
    let limit = MAX_BYTES as u64;
    // A body whose coding is damaged says as much as it says.
    drop(match head {
        Some(head) => {
            let body = Body::decoded_body(head, input, BodyLimits::default());
            body.take(limit).read_to_end(&mut file)
        }
        None => input.take(limit).read_to_end(&mut file),
    });
    let mut links = extraction.links.iter();
    let redirect = links.find(|link| link.hop == Hop::Redirect);
    Ok(Some(RobotsFile {
        status,
        file,
        location: redirect.map(|link| link.url.clone()),
    }))
}
