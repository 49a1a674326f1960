//! References within the values of attributes: `srcset` and refreshes.

use super::links::{LinkRewrite, Purpose};

/// Returns the value of a `srcset` with its URLs rewritten (HTML Standard, "parse a srcset attribute"); candidates that
/// are dropped leave it.
pub(super) fn rewrite_srcset(set: &str, rewrite: &dyn Fn(&str, Purpose) -> LinkRewrite) -> String {
    let mut candidates: Vec<String> = Vec::new();
    let mut rest = set;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == ',');
        let end = rest
            .find(|c: char| c.is_ascii_whitespace())
            .unwrap_or(rest.len());
        let (url, behind) = rest.split_at(end);
        if url.is_empty() {
            return candidates.join(", ");
        }
        let bare = url.trim_end_matches(',');
        // A comma at the end of the URL ends the candidate; otherwise its descriptors extend to the next comma.
        let descriptors = if bare.len() < url.len() {
            rest = behind;
            ""
        } else {
            let (descriptors, behind) = split_descriptors(behind);
            rest = behind;
            descriptors.trim()
        };
        let url = match rewrite(bare, Purpose::Image) {
            LinkRewrite::Same => bare.to_owned(),
            // A comma at its end would end the candidate.
            LinkRewrite::Address(address) => address.replace(',', "%2C"),
            LinkRewrite::Dropped => continue,
        };
        candidates.push(if descriptors.is_empty() {
            url
        } else {
            format!("{url} {descriptors}")
        });
    }
}

/// Returns the descriptors up to the comma that ends them, and what follows it; commas in parentheses do not end them.
fn split_descriptors(text: &str) -> (&str, &str) {
    let mut is_inside = false;
    for (at, c) in text.char_indices() {
        match c {
            '(' => is_inside = true,
            ')' => is_inside = false,
            ',' if !is_inside => {
                let behind = text.get(at + 1..).unwrap_or_default();
                return (text.get(..at).unwrap_or_default(), behind);
            }
            _ => {}
        }
    }
    (text, "")
}

/// Returns the value of a refresh (`5; url=…`) with its URL rewritten; `None` if that is dropped (HTML Standard,
/// "shared declarative refresh steps").
pub(super) fn rewrite_refresh(
    value: &str,
    rewrite: &dyn Fn(&str) -> LinkRewrite,
) -> Option<String> {
    let trimmed = value.trim_start();
    let is_time = |c: char| c.is_ascii_digit() || c == '.';
    let rest = trimmed.trim_start_matches(is_time);
    let time = trimmed
        .get(..trimmed.len() - rest.len())
        .unwrap_or_default();
    let target = target(rest);
    if target.is_empty() {
        return Some(value.to_owned());
    }
    let time = if time.is_empty() { "0" } else { time };
    match rewrite(target) {
        LinkRewrite::Same => Some(value.to_owned()),
        LinkRewrite::Address(address) => Some(format!("{time}; url={address}")),
        LinkRewrite::Dropped => None,
    }
}

/// Returns the URL behind the time of a refresh; empty if there is no URL.
fn target(rest: &str) -> &str {
    let rest = rest.trim_start();
    let rest = rest.strip_prefix([';', ',']).unwrap_or(rest).trim_start();
    let target = match rest.get(..3) {
        Some(word) if word.eq_ignore_ascii_case("url") => {
            let named = rest.get(3..).unwrap_or_default().trim_start();
            named.strip_prefix('=').map_or(rest, str::trim_start)
        }
        _ => rest,
    };
    let target = match target.chars().next().filter(|c| matches!(c, '"' | '\'')) {
        Some(quote) => target
            .get(1..)
            .unwrap_or_default()
            .split(quote)
            .next()
            .unwrap_or_default(),
        None => target,
    };
    target.trim()
}
