//! Media types: one byte for the usual ones.

use super::take_byte;
use super::text::{put_text, take_text};

/// The usual media types. A type is its place in this list, from 1: the list only grows at its end.
const USUAL: [&str; 62] = [
    "text/html",
    "warc/revisit",
    "image/jpeg",
    "image/png",
    "image/gif",
    "text/css",
    "application/javascript",
    "text/javascript",
    "application/x-javascript",
    "application/json",
    "text/plain",
    "application/pdf",
    "image/webp",
    "image/svg+xml",
    "text/xml",
    "application/xml",
    "application/rss+xml",
    "application/atom+xml",
    "application/xhtml+xml",
    "unk",
    "text/dns",
    "image/x-icon",
    "image/vnd.microsoft.icon",
    "font/woff2",
    "font/woff",
    "font/ttf",
    "application/font-woff",
    "application/font-woff2",
    "application/x-font-woff",
    "application/x-font-ttf",
    "application/vnd.ms-fontobject",
    "application/octet-stream",
    "application/x-shockwave-flash",
    "application/zip",
    "application/gzip",
    "application/x-gzip",
    "video/mp4",
    "video/webm",
    "video/mpeg",
    "video/quicktime",
    "video/x-flv",
    "video/mp2t",
    "audio/mpeg",
    "audio/mp4",
    "audio/ogg",
    "audio/x-wav",
    "application/vnd.apple.mpegurl",
    "application/x-mpegurl",
    "application/dash+xml",
    "application/msword",
    "application/vnd.ms-excel",
    "application/vnd.ms-powerpoint",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "application/postscript",
    "application/rtf",
    "application/manifest+json",
    "application/ld+json",
    "application/http",
    "message/rfc822",
    "image/avif",
    "no-type",
];

/// Writes a media type.
pub(super) fn put_media(out: &mut Vec<u8>, media: &str) {
    if let Some((number, _)) = (1..).zip(USUAL).find(|(_, usual)| *usual == media) {
        out.push(number);
    } else {
        out.push(0);
        put_text(out, media);
    }
}

/// Reads a media type.
pub(super) fn take_media(rest: &mut &[u8]) -> Option<String> {
    let number = take_byte(rest)?;
    let media = match number.checked_sub(1) {
        None => take_text(rest)?,
        Some(at) => USUAL.get(usize::from(at))?,
    };
    Some(media.to_owned())
}
