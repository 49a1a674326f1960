//! The layout of an index file: its first line, its last lines, and the beginnings of the lines between them.
//!
//! Owns what `FORMAT.md` says. Reads and writes no file.

use std::fmt;
use std::ops::Range;

use archive_formats::digest::{Algorithm, Digest, DigestValue};
use blake3::Hash;

/// The first line.
pub(crate) const HEADER: &str = "!holdfast-dedup/1\n";

/// The beginning of the first line in every version.
pub(crate) const MAGIC: &str = "!holdfast-dedup/";

/// The longest line of an index, and of the logs and indexes it is built from, without the line end.
pub const MAX_LINE: usize = 64 * 1024;

/// The number of bytes of the last five lines.
pub(crate) const FOOTER_LENGTH: usize = 253;

/// The number of bytes of the last line.
pub(crate) const SEAL_LENGTH: usize = 73;

/// The last lines of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Footer {
    /// The range of the section by URL.
    pub(crate) by_url: Range<u64>,
    /// The lines of the section by URL.
    pub(crate) urls: u64,
    /// The range of the section by digest.
    pub(crate) by_digest: Range<u64>,
    /// The lines of the section by digest.
    pub(crate) digests: u64,
    /// The range of the section of jobs.
    pub(crate) jobs: Range<u64>,
    /// The lines of the section of jobs.
    pub(crate) job_count: u64,
    /// BLAKE3 of all bytes before the last line.
    pub(crate) seal: Hash,
}

impl Footer {
    /// Reads the last [`FOOTER_LENGTH`] bytes of a file of `length` bytes. `None` unless they are written exactly so.
    pub(crate) fn parse(bytes: &[u8], length: u64) -> Option<Self> {
        let text = str::from_utf8(bytes).ok()?;
        let mut words = text
            .split_ascii_whitespace()
            .filter(|word| !word.starts_with('!'));
        let mut number = || words.next()?.parse::<u64>().ok();
        let start = number()?;
        let urls = number()?;
        let middle = number()?;
        let digests = number()?;
        let last = number()?;
        let job_count = number()?;
        let _ = number()?;
        let seal = words.next()?;
        let end = length.checked_sub(u64::try_from(FOOTER_LENGTH).ok()?)?;
        let footer = Self {
            by_url: start..middle,
            urls,
            by_digest: middle..last,
            digests,
            jobs: last..end,
            job_count,
            seal: Hash::from_hex(seal).ok()?,
        };
        let header = u64::try_from(HEADER.len()).ok()?;
        let is_sound = start == header && start <= middle && middle <= last && last <= end;
        (is_sound && footer.to_string() == text).then_some(footer)
    }

    /// Returns the lines of the footer but for the last one, which the seal covers.
    pub(crate) fn sealed_line(&self) -> String {
        let length = self.jobs.end.saturating_add(FOOTER_LENGTH as u64);
        format!(
            "!by-url {:020} {:020}\n!by-digest {:020} {:020}\n!of-jobs {:020} {:020}\n!end {length:020}\n",
            self.by_url.start,
            self.urls,
            self.by_digest.start,
            self.digests,
            self.jobs.start,
            self.job_count
        )
    }
}

impl fmt::Display for Footer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}!blake3 {}", self.sealed_line(), self.seal)
    }
}

/// Returns the text with everything escaped that would end a key: ASCII control characters, blanks and DEL.
pub(crate) fn escape_key(text: &str) -> String {
    let ends_key = |letter: char| letter == ' ' || letter.is_ascii_control();
    let mut key = String::with_capacity(text.len());
    for letter in text.chars() {
        if ends_key(letter) {
            let escape = format!("%{:02X}", u32::from(letter));
            key.push_str(&escape);
        } else {
            key.push(letter);
        }
    }
    key
}

/// Returns the beginning of the line of a digest under a URL, in the section by digest.
pub(crate) fn digest_prefix(digest: &str, key: &str) -> String {
    let hash = blake3::hash(key.as_bytes()).to_hex();
    let hash_start = &hash[..16];
    format!("{digest} {hash_start} ")
}

/// Reads the digest of a payload: labelled, or SHA-1 as old logs and indexes have it. `None` for one that cannot be
/// compared.
pub(crate) fn parse_digest(text: &str) -> Option<DigestValue> {
    let digest = if text.contains(':') {
        text.parse()
    } else {
        Digest::parse_unlabelled(text, Algorithm::Sha1)
    };
    digest.ok()?.value().cloned()
}
