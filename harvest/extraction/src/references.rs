//! References within the values of attributes and header fields: `srcset`, `Refresh`, link relations.

use harvest_policy::hops::Hop;

/// Returns the URLs of a `srcset` without their descriptors (HTML Standard, "parse a srcset attribute").
pub(crate) fn srcset_candidates(set: &str) -> impl Iterator<Item = &str> {
    let mut rest = set;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == ',');
        let end = rest.find(|c: char| c.is_ascii_whitespace());
        let (url, behind) = rest.split_at(end.unwrap_or(rest.len()));
        if url.is_empty() {
            return None;
        }
        let bare = url.trim_end_matches(',');
        // A comma at the end of the URL ends the candidate; otherwise its descriptors go on to the next comma.
        rest = if bare.len() < url.len() {
            behind
        } else {
            after_descriptors(behind)
        };
        Some(bare)
    })
}

/// Returns the text behind the comma that ends descriptors; commas in parentheses do not.
fn after_descriptors(text: &str) -> &str {
    let mut is_inside = false;
    for (at, c) in text.char_indices() {
        match c {
            '(' => is_inside = true,
            ')' => is_inside = false,
            ',' if !is_inside => return text.get(at + 1..).unwrap_or_default(),
            _ => {}
        }
    }
    ""
}

/// Returns the target of `5; url=…` (HTML Standard, "shared declarative refresh steps").
pub(crate) fn refresh_target(value: &str) -> Option<&str> {
    let is_time = |c: char| c.is_ascii_digit() || c == '.';
    let rest = value.trim_start().trim_start_matches(is_time);
    let rest = rest.trim_start();
    let rest = rest.strip_prefix([';', ',']).unwrap_or(rest).trim_start();
    let target = match rest.get(..3) {
        Some(word) if word.eq_ignore_ascii_case("url") => {
            let named = rest.get(3..).unwrap_or_default().trim_start();
            named.strip_prefix('=').map_or(rest, str::trim_start)
        }
        _ => rest,
    };
    let target = match target.strip_prefix(['"', '\'']) {
        Some(quoted) => quoted.split(['"', '\'']).next().unwrap_or_default(),
        None => target,
    };
    Some(target.trim()).filter(|target| !target.is_empty())
}

/// Returns the hop of a link relation; `None` if it names a host and no document.
pub(crate) fn relation_hop(relations: &str) -> Option<Hop> {
    const EMBEDS: [&str; 12] = [
        "stylesheet",
        "icon",
        "apple-touch-icon",
        "apple-touch-icon-precomposed",
        "apple-touch-startup-image",
        "mask-icon",
        "fluid-icon",
        "image_src",
        "manifest",
        "modulepreload",
        "preload",
        "prefetch",
    ];
    const HOSTS: [&str; 2] = ["dns-prefetch", "preconnect"];
    let has = |names: &[&str]| {
        let mut words = relations.split_ascii_whitespace();
        words.any(|word| names.iter().any(|name| word.eq_ignore_ascii_case(name)))
    };
    if has(&EMBEDS) {
        Some(Hop::Embed)
    } else if has(&HOSTS) {
        None
    } else {
        Some(Hop::Link)
    }
}
