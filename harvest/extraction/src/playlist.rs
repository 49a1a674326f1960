//! Playlists of audio and video: M3U, and HLS (RFC 8216), whose segments, keys and further playlists stand in them.

use std::io::{BufRead, Read as _};

use harvest_policy::hops::Hop;

use crate::outlinks::{MAX_REFERENCE, Outlinks};

const CONTEXT: &str = "=EMBED_MISC";

/// Adds the lines that are no comments, and the URIs of those tags that have one (`#EXT-X-KEY`, `-MAP`, `-MEDIA`). A line
/// that is too long is skipped.
pub(crate) fn playlist_links(input: &mut impl BufRead, outlinks: &mut Outlinks<'_>) {
    let most = MAX_REFERENCE as u64;
    let mut line = Vec::new();
    let mut is_rest = false;
    loop {
        line.clear();
        match input.by_ref().take(most).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let is_whole = line.ends_with(b"\n") || line.len() < MAX_REFERENCE;
        if is_whole
            && !is_rest
            && let Ok(text) = str::from_utf8(&line)
        {
            let text = text.trim();
            let reference = match text.strip_prefix('#') {
                None => Some(text),
                Some(tag) => uri_of(tag),
            };
            if let Some(reference) = reference {
                outlinks.add_reference(reference, Hop::Embed, CONTEXT);
            }
        }
        is_rest = !is_whole;
    }
}

/// Returns the value of the attribute `URI` of a tag.
fn uri_of(tag: &str) -> Option<&str> {
    let (name, attributes) = tag.split_once(':')?;
    let value = match attributes.strip_prefix("URI=\"") {
        Some(value) => value,
        None => attributes.split_once(",URI=\"")?.1,
    };
    let (value, _) = value.split_once('"')?;
    name.starts_with("EXT").then_some(value)
}
