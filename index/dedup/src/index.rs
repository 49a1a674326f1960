//! An index that is open: what was captured before, asked by URL and by digest.
//!
//! Owns what makes a file an index of this version, and the meaning of its lines. Loads nothing: a lookup reads about
//! as many small pieces of the file as a binary search has steps.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use archive_formats::cdx::{Capture, Format};
use archive_formats::date::Stamp;
use archive_formats::digest::DigestValue;
use thiserror::Error;

use crate::layout::{self, FOOTER_LENGTH, Footer, HEADER, MAGIC, SEAL_LENGTH};
use crate::search::{IndexLine, SearchedFile};

/// The reason why an index cannot be used.
#[derive(Debug, Error)]
pub enum DedupError {
    /// The file cannot be read.
    #[error("cannot read the dedup index {}: {source}", path.display())]
    Io {
        /// The file of the index.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The file is something else.
    #[error(
        "{} is not a dedup index: its first line is not `!holdfast-dedup/1`; make one with `holdfast index dedup`",
        path.display()
    )]
    Foreign {
        /// The file that should be an index.
        path: PathBuf,
    },
    /// The file has another version.
    #[error(
        "{} is a dedup index of version {version}, and this build reads version 1; build it again with `holdfast index dedup`",
        path.display()
    )]
    Version {
        /// The file of the index.
        path: PathBuf,
        /// The version that the first line of the file names.
        version: String,
    },
    /// The file is cut or changed.
    #[error("the dedup index {} is damaged: {problem}; build it again with `holdfast index dedup`", path.display())]
    Damaged {
        /// The file of the index.
        path: PathBuf,
        /// The damage, and where it is known its offset.
        problem: String,
    },
}

/// The first capture of some content: always a `response` record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EarlierCapture {
    /// The URI that was captured, which is not always the one that was looked up.
    pub uri: String,
    /// The time of the record, with 14 or 17 digits.
    pub time: Stamp,
    /// The digest of the payload.
    pub digest: DigestValue,
    /// The media type without parameters.
    pub mime: Option<String>,
    /// The status of the response.
    pub status: Option<u16>,
    /// The archive file.
    pub file: String,
    /// The offset of the record in the file.
    pub offset: u64,
    /// The id of the record, without angle brackets.
    pub record_id: Option<String>,
    /// The value of `ETag`, for a conditional request for the URL that was looked up.
    pub etag: Option<String>,
    /// The value of `Last-Modified`, likewise.
    pub last_modified: Option<String>,
}

/// An index that is open. It can be asked from many threads at once.
#[derive(Debug)]
pub struct DedupIndex {
    path: PathBuf,
    text: SearchedFile,
    footer: Footer,
}

impl DedupIndex {
    /// Opens a file, and looks at its first line, its last lines and its length.
    ///
    /// # Errors
    ///
    /// [`DedupError`], whose message says what is wrong and what to do.
    pub fn open(path: &Path) -> Result<Self, DedupError> {
        let failed = |source| DedupError::Io {
            path: path.to_owned(),
            source,
        };
        let damaged = |problem: &str| DedupError::Damaged {
            path: path.to_owned(),
            problem: problem.to_owned(),
        };
        let file = File::open(path).map_err(failed)?;
        let length = file.metadata().map_err(failed)?.len();
        let mut header = [0; HEADER.len()];
        let there = usize::try_from(length)
            .unwrap_or(usize::MAX)
            .min(header.len());
        let header = header.get_mut(..there).unwrap_or_default();
        file.read_exact_at(header, 0).map_err(failed)?;
        if header != HEADER.as_bytes() {
            return Err(refused_header(path, header));
        }
        let end = length.checked_sub(FOOTER_LENGTH as u64);
        let end = end.ok_or_else(|| damaged("it is cut"))?;
        let mut footer = [0; FOOTER_LENGTH];
        file.read_exact_at(&mut footer, end).map_err(failed)?;
        let footer = Footer::parse(&footer, length)
            .ok_or_else(|| damaged("it is cut, or its last five lines were changed"))?;
        Ok(Self {
            path: path.to_owned(),
            text: SearchedFile::new(file),
            footer,
        })
    }

    /// Reads the whole file and compares it with the hash in its last line. Worth it once before a crawl: a changed
    /// byte may otherwise give a wrong place.
    ///
    /// # Errors
    ///
    /// [`DedupError::Damaged`] if a byte was changed, [`DedupError::Io`] if the file cannot be read.
    pub fn verify_file(&self) -> Result<(), DedupError> {
        let failed = |source| DedupError::Io {
            path: self.path.clone(),
            source,
        };
        let sealed = self.footer.jobs.end + (FOOTER_LENGTH - SEAL_LENGTH) as u64;
        let mut hasher = blake3::Hasher::new();
        let mut buffer = vec![0; 256 * 1024];
        let mut at = 0;
        while at < sealed {
            let left = usize::try_from(sealed - at).unwrap_or(usize::MAX);
            let size = left.min(buffer.len());
            let part = buffer.get_mut(..size).unwrap_or_default();
            self.text.file().read_exact_at(part, at).map_err(failed)?;
            hasher.update(part);
            at += size as u64;
        }
        if hasher.finalize() != self.footer.seal {
            return Err(self.damage("its bytes do not have the BLAKE3 hash of its last line"));
        }
        Ok(())
    }

    /// Returns the number of captures: of lines in the section by URL.
    pub fn count_captures(&self) -> u64 {
        self.footer.urls
    }

    /// Returns the jobs whose metadata was read, in rising order, each once: those of other organisations, too.
    ///
    /// # Errors
    ///
    /// [`DedupError::Damaged`] and [`DedupError::Io`].
    pub fn list_jobs(&self) -> Result<Vec<u64>, DedupError> {
        let section = &self.footer.jobs;
        let length = usize::try_from(section.end - section.start).unwrap_or(usize::MAX);
        let mut bytes = vec![0; length];
        let read = self.text.file().read_exact_at(&mut bytes, section.start);
        read.map_err(|error| self.read_error(error))?;
        let text = str::from_utf8(&bytes).unwrap_or("?");
        let numbers = text.lines().map(|line| {
            let number = line.rsplit_once(' ').map(|(_, number)| number);
            number.and_then(|number| number.parse().ok())
        });
        let jobs = numbers.collect::<Option<BTreeSet<u64>>>();
        let jobs =
            jobs.ok_or_else(|| self.damage("a line of its section of jobs has no number"))?;
        Ok(jobs.into_iter().collect())
    }

    /// Returns the latest capture of exactly this URL, for a conditional request. It may have neither `etag` nor
    /// `last_modified`.
    ///
    /// # Errors
    ///
    /// [`DedupError::Damaged`] and [`DedupError::Io`].
    pub fn latest_by_url(&self, url: &str) -> Result<Option<EarlierCapture>, DedupError> {
        let key = layout::escape_key(url);
        // `!` is the byte after the blank that ends a key.
        let behind = format!("{key}!");
        let line = self
            .text
            .last_before(&self.footer.by_url, behind.as_bytes());
        let line = line.map_err(|error| self.read_error(error))?;
        let line = line.filter(|line| has_key(line, &key));
        line.map(|line| self.capture(&line)).transpose()
    }

    /// Returns the first capture of this content under exactly this URL.
    ///
    /// # Errors
    ///
    /// [`DedupError::Damaged`] and [`DedupError::Io`].
    pub fn by_url_and_digest(
        &self,
        url: &str,
        digest: &DigestValue,
    ) -> Result<Option<EarlierCapture>, DedupError> {
        let key = layout::escape_key(url);
        let prefix = layout::digest_prefix(&digest.to_string(), &key);
        self.first_of_digest(&prefix, |line| has_key(line, &key))
    }

    /// Returns a first capture of this content under any URL; always the same one.
    ///
    /// # Errors
    ///
    /// [`DedupError::Damaged`] and [`DedupError::Io`].
    pub fn by_digest(&self, digest: &DigestValue) -> Result<Option<EarlierCapture>, DedupError> {
        self.first_of_digest(&format!("{digest} "), |_| true)
    }

    /// Returns the first line of the section by digest that begins with `prefix`, and whose capture is `wanted`.
    fn first_of_digest(
        &self,
        prefix: &str,
        wanted: impl Fn(&IndexLine) -> bool,
    ) -> Result<Option<EarlierCapture>, DedupError> {
        let Footer {
            by_url, by_digest, ..
        } = &self.footer;
        let found = self.text.first_from(by_digest, prefix.as_bytes());
        let mut next = found.map_err(|error| self.read_error(error))?;
        while let Some(line) = next.filter(|line| line.text.starts_with(prefix.as_bytes())) {
            let target = self.target(&line, by_url)?;
            if wanted(&target) {
                let capture = self.capture(&target)?;
                let digest = prefix.split(' ').next().unwrap_or_default();
                if capture.digest.to_string() != digest {
                    return Err(
                        self.damaged_line(&line, "it leads to a capture with another digest")
                    );
                }
                return Ok(Some(capture));
            }
            let end = line.end();
            let behind = (end < by_digest.end).then(|| self.text.line_at(by_digest, end));
            next = behind.transpose().map_err(|error| self.read_error(error))?;
        }
        Ok(None)
    }

    /// Returns the line of the section by URL that a line of the section by digest leads to.
    fn target(&self, line: &IndexLine, by_url: &Range<u64>) -> Result<IndexLine, DedupError> {
        let offset = str::from_utf8(&line.text).ok();
        let offset = offset.and_then(|text| text.split(' ').nth(3)?.parse::<u64>().ok());
        let offset = offset.filter(|offset| by_url.contains(offset));
        let offset = offset.ok_or_else(|| self.damaged_line(line, "it leads to no capture"))?;
        let target = self.text.line_at(by_url, offset);
        let target = target.map_err(|error| self.read_error(error))?;
        if target.start != offset {
            return Err(self.damaged_line(line, "it leads into the middle of a line"));
        }
        Ok(target)
    }

    /// Reads a line of the section by URL.
    fn capture(&self, line: &IndexLine) -> Result<EarlierCapture, DedupError> {
        let text = str::from_utf8(&line.text).ok();
        let capture = text.and_then(|text| Format::Cdxj.read_line(text).ok());
        let earlier = capture.and_then(EarlierCapture::from_capture);
        earlier.ok_or_else(|| self.damaged_line(line, "it holds no capture"))
    }

    fn read_error(&self, source: io::Error) -> DedupError {
        if source.kind() == io::ErrorKind::InvalidData {
            return self.damage(&source.to_string());
        }
        DedupError::Io {
            path: self.path.clone(),
            source,
        }
    }

    fn damaged_line(&self, line: &IndexLine, problem: &str) -> DedupError {
        self.damage(&format!("the line at offset {}: {problem}", line.start))
    }

    fn damage(&self, problem: &str) -> DedupError {
        DedupError::Damaged {
            path: self.path.clone(),
            problem: problem.to_owned(),
        }
    }
}

impl EarlierCapture {
    /// Takes the fields of a line; `None` if it lacks what every line has.
    fn from_capture(capture: Capture) -> Option<Self> {
        let extra = |name| capture.extra(name).map(str::to_owned);
        Some(Self {
            digest: layout::parse_digest(capture.digest.as_deref()?)?,
            record_id: extra("record-id"),
            etag: extra("etag"),
            last_modified: extra("last-modified"),
            uri: capture.original?,
            time: capture.timestamp,
            mime: capture.mime,
            status: capture.status,
            file: capture.file?,
            offset: capture.offset?,
        })
    }
}

/// Returns whether a line of the section by URL has this key.
fn has_key(line: &IndexLine, key: &str) -> bool {
    let rest = line.text.strip_prefix(key.as_bytes());
    rest.is_some_and(|rest| rest.starts_with(b" "))
}

/// Returns why a file with this beginning is refused.
fn refused_header(path: &Path, header: &[u8]) -> DedupError {
    let path = path.to_owned();
    if HEADER.as_bytes().starts_with(header) {
        let problem = "it is cut".to_owned();
        return DedupError::Damaged { path, problem };
    }
    let version = header.strip_prefix(MAGIC.as_bytes());
    let version = version.map(<[u8]>::trim_ascii_end);
    match version.filter(|version| version.iter().all(u8::is_ascii_digit)) {
        Some(version) => DedupError::Version {
            path,
            version: String::from_utf8_lossy(version).into_owned(),
        },
        None => DedupError::Foreign { path },
    }
}
