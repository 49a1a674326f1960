//! Lists of URLs, one in each line: the sitemaps that are plain text (sitemaps.org, "Text file").

use std::io::{BufRead, Read as _};

use harvest_policy::hops::Hop;

use crate::outlinks::{MAX_REFERENCE, Outlinks};

/// Adds the lines that are absolute URLs.
pub(crate) fn listed_links(input: &mut impl BufRead, outlinks: &mut Outlinks<'_>) {
    each_line(input, |text| {
        if text.starts_with("http://") || text.starts_with("https://") {
            outlinks.add_reference(text, Hop::Link, "=NAVLINK_MISC");
        }
    });
}

/// Hands on each line without the blanks around it. One that is too long for a reference, or no text, is skipped.
pub(crate) fn each_line(input: &mut impl BufRead, mut take: impl FnMut(&str)) {
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
            take(text.trim());
        }
        is_rest = !is_whole;
    }
}
