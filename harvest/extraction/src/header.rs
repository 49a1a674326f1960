//! Links in the head of a response: redirects, and the `Link` field (RFC 8288).

use std::borrow::Cow;

use archive_formats::http::Head;
use encoding_rs::WINDOWS_1252;
use harvest_policy::hops::Hop;

use crate::outlinks::Outlinks;
use crate::references;

/// The context of a redirect by the field of this name.
pub(crate) const LOCATION: &str = "Location:";

/// The directives of `X-Robots-Tag` that have a value behind a colon.
const WITH_VALUE: [&str; 4] = [
    "unavailable_after",
    "max-snippet",
    "max-image-preview",
    "max-video-preview",
];

/// Returns whether the directives of an `X-Robots-Tag` are for all robots: one that is named before a colon is another one.
fn is_for_all(value: &str) -> bool {
    let Some((first, _)) = value.split_once(':') else {
        return true;
    };
    let first = first.trim();
    first.contains([',', ' '])
        || WITH_VALUE
            .iter()
            .any(|name| name.eq_ignore_ascii_case(first))
}

/// Adds the links of a head. A `Content-Location` is inferred: nobody was sent there.
pub(crate) fn header_links(head: &Head, outlinks: &mut Outlinks<'_>) {
    for field in head.fields() {
        let value = text(&field.value);
        match field.name.to_ascii_lowercase().as_slice() {
            b"location" => outlinks.add_reference(&value, Hop::Redirect, LOCATION),
            b"content-location" => {
                outlinks.add_reference(&value, Hop::Inferred, "Content-Location:");
            }
            b"x-robots-tag" if is_for_all(&value) => outlinks.note_robots(&value),
            b"refresh" => {
                if let Some(target) = references::refresh_target(&value) {
                    outlinks.add_reference(target, Hop::Redirect, "Refresh:");
                }
            }
            b"link" => {
                for (target, relation) in web_links(&value) {
                    if let Some(hop) = references::relation_hop(&relation) {
                        outlinks.add_reference(target, hop, "Link:");
                    }
                }
            }
            _ => {}
        }
    }
}

/// Returns the text of a value: UTF-8, or else the Latin letters that old servers send.
fn text(value: &[u8]) -> Cow<'_, str> {
    match str::from_utf8(value) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => WINDOWS_1252.decode_without_bom_handling(value).0,
    }
}

/// Returns the targets of a `Link` field with their relations: `<x>; rel="a b", <y>`.
fn web_links(value: &str) -> impl Iterator<Item = (&str, String)> {
    let mut rest = value;
    std::iter::from_fn(move || {
        let (_, behind) = rest.split_once('<')?;
        let (target, behind) = behind.split_once('>')?;
        let (parameters, next) = behind.split_at(end_of_parameters(behind));
        rest = next;
        Some((target, relation(parameters)))
    })
}

/// Returns the place of the comma that ends the parameters, or of the end: commas in quotation marks do not.
fn end_of_parameters(text: &str) -> usize {
    let mut is_quoted = false;
    let mut is_escaped = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'"' => is_quoted = !is_quoted,
            b'\\' => is_escaped = is_quoted,
            b',' if !is_quoted => return at,
            _ => {}
        }
    }
    text.len()
}

/// Returns the relations of a link; of several `rel` parameters, the first (RFC 8288 §3.3).
fn relation(parameters: &str) -> String {
    let mut named = parameters.split(';').filter_map(|it| it.split_once('='));
    let rel = named.find(|(name, _)| name.trim().eq_ignore_ascii_case("rel"));
    let value = rel.map_or("", |(_, value)| value);
    value.trim().trim_matches('"').to_owned()
}
