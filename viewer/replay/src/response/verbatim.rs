//! Answers that stand for the archived server itself, to clients that take the archive for the web (proxy mode).
//!
//! Owns which archived fields such an answer leaves out: those of the connection, those that say how long the bytes may
//! be kept, and those that would act in the browser after the visit. All of them are kept under other names, as
//! elsewhere.

use archive_formats::http::{Head, HeaderField};

use super::fields::{is_token, value_of};
use super::{ReplyFields, ReplyHead, final_status};

/// The most bytes of passed fields: browsers refuse an answer with more.
const MOST_PASSED: usize = 96 * 1024;

/// Fields of the connection, of the framing, and of what is said anew.
const OF_MESSAGE: [&str; 14] = [
    "accept-ranges",
    "connection",
    "content-length",
    "content-range",
    "keep-alive",
    "memento-datetime",
    "proxy-authenticate",
    "proxy-authentication-info",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "via",
];

/// Fields by which a cache would show a capture for one of another date.
const OF_CACHES: [&str; 5] = [
    "age",
    "cache-control",
    "clear-site-data",
    "expires",
    "pragma",
];

/// Fields that a browser remembers of a site, and would hold the live site to.
const OF_SITE: [&str; 11] = [
    "accept-ch",
    "alt-svc",
    "expect-ct",
    "nel",
    "public-key-pins",
    "public-key-pins-report-only",
    "report-to",
    "reporting-endpoints",
    "set-cookie",
    "set-cookie2",
    "strict-transport-security",
];

impl ReplyHead {
    /// Returns the answer with a stored head as it was archived; `None` for a record without one, whose media type is
    /// `media`.
    ///
    /// The status and the fields are the archived ones, `Location` and policies included. What a connection, a cache or
    /// the memory of a browser would act on is only kept under another name (`X-Archive-Orig-…`).
    pub fn as_archived(head: Option<&Head>, media: Option<&[u8]>) -> Self {
        let mut reply = Self {
            status: head.and_then(Head::status).map_or(200, final_status),
            fields: Vec::new(),
        };
        let Some(head) = head else {
            let media = media.map(value_of).filter(|media| !media.is_empty());
            if let Some(media) = media {
                reply.add_field("Content-Type", media);
            }
            return reply;
        };
        let listed = connection_options(head.fields());
        let is_part = reply.status == 206;
        let mut renamed = ReplyFields::default();
        let mut room = MOST_PASSED;
        for field in head.fields() {
            let bytes = field.name.len() + field.value.len();
            let is_range = is_part && field.name.eq_ignore_ascii_case(b"content-range");
            let is_left_out = !is_range && is_left_out(&field.name, &listed);
            if is_left_out || !is_token(&field.name) || bytes > room {
                renamed.push(field);
            } else {
                room -= bytes;
                reply.pass(field);
            }
        }
        renamed.finish(&mut reply);
        reply
    }
}

/// Returns the fields that `Connection` names as those of the connection.
fn connection_options(fields: &[HeaderField]) -> Vec<Vec<u8>> {
    let named = fields
        .iter()
        .filter(|field| field.name.eq_ignore_ascii_case(b"connection"));
    let options = named.flat_map(|field| field.value.split(|byte| *byte == b','));
    options
        .map(|option| option.trim_ascii().to_ascii_lowercase())
        // A liar must not take away what says how the bytes are read.
        .filter(|option| !option.starts_with(b"content-"))
        .collect()
}

fn is_left_out(name: &[u8], listed: &[Vec<u8>]) -> bool {
    let name = name.to_ascii_lowercase();
    let known = OF_MESSAGE.iter().chain(&OF_CACHES).chain(&OF_SITE);
    let mut known = known.map(|known| known.as_bytes());
    known.any(|known| known == name) || listed.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(head: &str) -> ReplyHead {
        let head = Head::read_head(&mut head.as_bytes(), 1 << 20).unwrap();
        ReplyHead::as_archived(Some(&head), None)
    }

    /// Fails if an archived page loses its redirect, its policy or its encoding.
    #[test]
    fn archived_fields_stay() {
        let reply = reply(
            "HTTP/1.1 302 Found\r\nLocation: http://b.example/x\r\nContent-Encoding: gzip\r\nContent-Type: text/html\r\n\
             Content-Security-Policy: upgrade-insecure-requests\r\nX-Own: 1\r\nX-Own: 2\r\nETag: \"e\"\r\n\r\n",
        );
        assert_eq!(reply.status, 302);
        for (name, value) in [
            ("location", "http://b.example/x"),
            ("content-encoding", "gzip"),
            ("content-security-policy", "upgrade-insecure-requests"),
            ("etag", "\"e\""),
        ] {
            assert_eq!(reply.get(name), Some(value.as_bytes()), "{name}");
        }
        let own = reply.fields.iter().filter(|(name, _)| name == "X-Own");
        assert_eq!(own.count(), 2, "repeated fields stay repeated");
    }

    /// Fails if an archived answer breaks the framing, is kept for another date, or leaves something in the browser.
    #[test]
    fn lasting_fields_are_renamed_x_archive_orig() {
        let reply = reply(
            "HTTP/1.1 200 OK\r\nConnection: close, X-Hop, Content-Type\r\nX-Hop: 1\r\nTransfer-Encoding: chunked\r\n\
             Content-Length: 7\r\nContent-Type: text/html\r\nSet-Cookie: a=b\r\nStrict-Transport-Security: max-age=1\r\n\
             Cache-Control: max-age=9\r\nMemento-Datetime: x\r\nContent-Range: bytes 0-1/2\r\n\r\n",
        );
        for name in [
            "connection",
            "x-hop",
            "transfer-encoding",
            "content-length",
            "set-cookie",
            "strict-transport-security",
            "cache-control",
            "memento-datetime",
            "content-range",
        ] {
            assert_eq!(reply.get(name), None, "{name}");
            let told = format!("x-archive-orig-{name}");
            assert!(reply.get(&told).is_some(), "{name}");
        }
        assert_eq!(reply.get("content-type"), Some(&b"text/html"[..]));
    }

    /// Fails if a partial capture passes for a whole one.
    #[test]
    fn partial_capture_keeps_its_range() {
        let reply = reply("HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-1/9\r\n\r\n");
        assert_eq!(reply.status, 206);
        assert_eq!(reply.get("content-range"), Some(&b"bytes 0-1/9"[..]));
    }

    /// Fails if a head of a megabyte goes to a browser, or a value can begin a field of its own.
    #[test]
    fn hostile_heads_are_bounded() {
        let mut head = "HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nX-A: a\tb\r\n".to_owned();
        let many = (0..200).map(|number| format!("X-{number}: {}\r\n", "v".repeat(4000)));
        head.extend(many);
        head.push_str("\r\n");
        let reply = reply(&head);
        assert_eq!(reply.status, 200);
        assert_eq!(reply.get("upgrade"), None);
        let bytes: usize = reply.fields.iter().map(|(_, value)| value.len()).sum();
        assert!(bytes < 128 * 1024, "{bytes}");
        assert!(reply.get("x-archive-omitted-fields").is_some());
        let clean = |value: &[u8]| value.iter().all(|byte| !byte.is_ascii_control());
        assert!(reply.fields.iter().all(|(_, value)| clean(value)));
    }

    /// Fails if a record without a head has no media type, or an invented one.
    #[test]
    fn record_without_head_has_its_media_type() {
        let reply = ReplyHead::as_archived(None, Some(b"text/dns\r\nX: y"));
        assert_eq!(reply.get("content-type"), Some(&b"text/dns  X: y"[..]));
        assert_eq!(ReplyHead::as_archived(None, None).fields, []);
    }
}
