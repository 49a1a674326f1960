//! Playlists of audio and video: M3U, and HLS (RFC 8216), whose segments, keys and further playlists stand in them.

use std::io::BufRead;

use harvest_policy::hops::Hop;

use crate::outlinks::Outlinks;
use crate::url_list::each_line;

const CONTEXT: &str = "=EMBED_MISC";

/// Adds the lines that are no comments, and the URIs of those tags that have one (`#EXT-X-KEY`, `-MAP`, `-MEDIA`). A line
/// that is too long is skipped.
pub(crate) fn playlist_links(input: &mut impl BufRead, outlinks: &mut Outlinks<'_>) {
    each_line(input, |text| {
        let reference = match text.strip_prefix('#') {
            None => Some(text),
            Some(tag) => uri_of(tag),
        };
        if let Some(reference) = reference {
            outlinks.add_reference(reference, Hop::Embed, CONTEXT);
        }
    });
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
