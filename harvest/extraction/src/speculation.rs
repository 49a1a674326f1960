//! The judge of strings that may be URLs, in scripts, in JSON and in attributes of no standard.
//!
//! Owns the rule of thumb behind the hop X. It refuses what is doubtful: a string that is no URL costs a host a request
//! and the archive a page of error.

use std::net::Ipv4Addr;

use crate::outlinks::MAX_REFERENCE;

/// The extensions of files that pages and scripts name with relative paths.
const EXTENSIONS: [&str; 70] = [
    "aac", "asp", "aspx", "atom", "avi", "avif", "bmp", "cfm", "cgi", "css", "csv", "do", "doc",
    "docx", "eot", "epub", "flac", "flv", "gif", "gz", "htm", "html", "ico", "jpeg", "jpg", "js",
    "json", "jsp", "jspx", "m3u8", "m4a", "m4v", "mjs", "mov", "mp3", "mp4", "mpd", "mpeg", "mpg",
    "oga", "ogg", "ogv", "otf", "pdf", "php", "php3", "php5", "pl", "png", "ppt", "pptx", "rss",
    "rtf", "shtml", "srt", "svg", "swf", "tif", "tiff", "ttf", "txt", "vtt", "wasm", "wav", "webm",
    "webp", "woff", "woff2", "xhtml", "xls",
];

/// Names of vocabularies that are written as URLs and fetched by nobody.
const VOCABULARIES: [&str; 5] = [
    "www.w3.org/1998/",
    "www.w3.org/1999/",
    "www.w3.org/2000/",
    "www.w3.org/2001/",
    "schema.org",
];

/// Returns whether a string is most likely a URL: absolute, of a host (`//a.dk/x`), of a path (`/x/y`), or relative
/// with an extension of a file. Its escapes are undone.
pub(crate) fn looks_like_url(text: &str) -> bool {
    if !(4..=MAX_REFERENCE).contains(&text.len())
        || !text.chars().all(is_url_character)
        || !has_whole_escapes(text)
    {
        return false;
    }
    let scheme_end = text.find("://").unwrap_or(0);
    let (scheme, rest) = text.split_at(scheme_end);
    if ["http", "https"]
        .iter()
        .any(|it| it.eq_ignore_ascii_case(scheme))
    {
        let rest = rest.get(3..).unwrap_or_default();
        return begins_with_host(rest) && !VOCABULARIES.iter().any(|it| rest.starts_with(it));
    }
    if let Some(rest) = text.strip_prefix("//") {
        return begins_with_host(rest);
    }
    let path = text.split(['?', '#']).next().unwrap_or_default();
    if path.contains(':') || path.contains("//") {
        return false;
    }
    match path.strip_prefix('/') {
        Some(path) => is_absolute_path(path, text.contains('?')),
        None => is_relative_path(path),
    }
}

/// Returns whether a text may stand in a lazy attribute in place of a URL: such a value is one, unless it is a word, a
/// number or a template.
pub(crate) fn may_be_reference(text: &str) -> bool {
    let text = text.trim();
    text.contains(['.', '/'])
        && text
            .chars()
            .all(|c| !c.is_whitespace() && !matches!(c, '{' | '}' | '<' | '>' | '[' | ']' | '"'))
        && text.parse::<f64>().is_err()
}

fn is_url_character(c: char) -> bool {
    c.is_alphanumeric() || "-._~%/?#&=+:@,;!".contains(c)
}

/// Returns whether each `%` begins an escape: `%s` is a template.
fn has_whole_escapes(text: &str) -> bool {
    let is_whole = |escape: &str| {
        let digits = escape.as_bytes().get(..2);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    text.split('%').skip(1).all(is_whole)
}

/// Returns whether a text begins with the name of a host in some domain.
fn begins_with_host(text: &str) -> bool {
    let host = text.split(['/', '?', '#', ':']).next().unwrap_or_default();
    let is_label = |label: &str| {
        !label.is_empty()
            && label
                .chars()
                .all(|c| c.is_alphanumeric() || matches!(c, '-' | '_'))
    };
    let Some((_, last)) = host.rsplit_once('.') else {
        return false;
    };
    let is_name = last.len() > 1 && last.chars().any(char::is_alphabetic);
    host.split('.').all(is_label) && (is_name || host.parse::<Ipv4Addr>().is_ok())
}

/// Returns whether the text behind the first slash is a path: `news/` and `a/b` are, `g` without a query and `.+` are
/// not.
fn is_absolute_path(path: &str, has_query: bool) -> bool {
    let first = path.split('/').next().unwrap_or_default();
    let begins = path.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '~' | '%'));
    let word = first.chars().filter(|c| c.is_alphanumeric()).count();
    begins
        && (word > 2 || has_query || path.contains(['/', '.']))
        && !path.contains(['!', ',', ';'])
}

/// Returns whether a text is a path to a file of a known extension.
fn is_relative_path(path: &str) -> bool {
    let mut rest = path.strip_prefix("./").unwrap_or(path);
    while let Some(above) = rest.strip_prefix("../") {
        rest = above;
    }
    let Some((stem, extension)) = rest.rsplit_once('.') else {
        return false;
    };
    let is_plain =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '~' | '%' | '/');
    stem.chars().all(is_plain)
        && stem.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && !stem.ends_with(['/', '.'])
        && !stem.starts_with("www.")
        && !stem.contains("..")
        && EXTENSIONS
            .iter()
            .any(|it| it.eq_ignore_ascii_case(extension))
}
