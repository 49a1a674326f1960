//! `requests.log`: the requests that people have made to a job while it ran.
//!
//! Owns the text, which is made of the directory `done`: for each request its time, the name of its file, and whether
//! it was taken or refused; the reason for a refusal after a tab and `# `; then its lines, each after a tab. Users and
//! passwords in URIs are left out.

use std::path::Path;

use archive_durable::{DiskError, directory, read_small};
use jiff::Timestamp;

use crate::directory::{JobDirectory, MAX_REQUEST};

/// The name of the log.
pub(crate) const FILE_NAME: &str = "requests.log";

/// Makes the text of the log; empty if nobody has asked for anything.
pub(crate) fn requests_log(job: &JobDirectory) -> Result<String, DiskError> {
    let mut requests = Vec::new();
    for name in directory::list_names(&job.path_of("done"))? {
        let name = name.to_string_lossy().into_owned();
        // Another name than `MILLISECONDS-NAME` is no request; `.reason` is the reason for a refusal.
        let parts = name.split_once('-');
        let parts = parts.filter(|(_, rest)| !rest.ends_with(".reason"));
        let time = parts.and_then(|(time, rest)| {
            let time = Timestamp::from_millisecond(time.parse().ok()?).ok()?;
            Some((time, rest.to_owned()))
        });
        requests.extend(time.map(|(time, rest)| (time, rest, name)));
    }
    requests.sort();
    let mut text = String::new();
    for (time, request, file) in requests {
        let (request, state) = match request.strip_suffix(".refused") {
            Some(request) => (request, "refused"),
            None => (request.as_str(), "taken"),
        };
        text.push_str(&format_line(time, request, state));
        let reason = job.path_of("done").join(&file).with_extension("reason");
        if state == "refused" {
            let reason = content(&reason)?;
            for line in String::from_utf8_lossy(&reason).lines() {
                text.push_str("\t# ");
                text.push_str(&without_users(line));
                text.push('\n');
            }
        }
        let bytes = content(&job.path_of("done").join(file))?;
        for line in String::from_utf8_lossy(&bytes).lines() {
            text.push('\t');
            text.push_str(&without_users(line));
            text.push('\n');
        }
    }
    Ok(text)
}

fn content(path: &Path) -> Result<Vec<u8>, DiskError> {
    Ok(read_small(path, MAX_REQUEST)?.unwrap_or_default())
}

fn format_line(time: Timestamp, request: &str, state: &str) -> String {
    let request = archive_formats::crawl_log::escape_blanks(request);
    format!("{time:.3} {request} {state}\n")
}

/// Returns a line without what stands between `//` and `@` in a URI.
fn without_users(line: &str) -> String {
    let mut text = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("//") {
        text.push_str(before);
        text.push_str("//");
        let ends_authority = |letter: char| letter.is_whitespace() || "/?#".contains(letter);
        let end = after.find(ends_authority).unwrap_or(after.len());
        let (authority, remainder) = after.split_at(end);
        text.push_str(authority.rsplit('@').next().unwrap_or_default());
        rest = remainder;
    }
    text.push_str(rest);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a password in a URI gets into the documentation, or anything else is taken out.
    #[test]
    fn users_of_uris_are_left_out() {
        for (line, expected) in [
            ("http://a.dk/x?y=b@c", "http://a.dk/x?y=b@c"),
            (
                "http://u:p@a.dk/ https://v@b.dk",
                "http://a.dk/ https://b.dk",
            ),
            (
                "line 1: `http://u:p@@a b` is no seed",
                "line 1: `http://a b` is no seed",
            ),
            ("//", "//"),
            ("no URI, mail@a.dk", "no URI, mail@a.dk"),
        ] {
            assert_eq!(without_users(line), expected);
        }
    }
}
