//! The archive files of one job, on the disk of the crawler.
//!
//! Owns their names (`PREFIX-TIMESTAMP17-SERIAL-HOST.warc.gz`, as NetarchiveSuite has them, or `.warc`), when one is
//! full, and that a file under its final name is whole and durable: until then it ends in `.open`. One file is open at
//! a time. Groups of records are appended as they are; whether they are whole was decided where they were made. Does
//! not upload and does not delete.

use std::fs::File;
use std::io::{self, Cursor, Read, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use archive_daemon::clock::{Chance, NoChance};
use archive_durable::{AppendFile, DiskError, directory};
use archive_formats::date::{Precision, Stamp, WarcDate};
use archive_formats::digest::{Algorithm, digest_bytes};
use archive_formats::warc::{
    Builder, HeaderBuildError, WarcReader, WarcType, WarcWriter, WriteError,
};
use jiff::Timestamp;

use crate::capture::{LEVEL, RecordGroup, record_id};
use crate::frontier::RecordedPlace;

/// The ending of a file that is being written.
pub const OPEN: &str = ".open";

/// The bytes of a group that are copied at a time.
const PIECE: usize = 256 << 10;

/// The reason why an archive file cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveFileError {
    /// The disk refuses.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// A group cannot be read back from its temporary file.
    #[error("cannot read records from their temporary file: {0}; see to the disk of this machine")]
    Spool(io::Error),
    /// The `warcinfo` record cannot be made.
    #[error("cannot make the warcinfo record of {file}: {source}")]
    Warcinfo {
        /// The name of the file.
        file: String,
        /// The fault of the record.
        source: HeaderBuildError,
    },
    /// The `warcinfo` record cannot be deflated.
    #[error("cannot write the warcinfo record of a file: {0}")]
    Write(#[from] WriteError),
    /// No randomness for the id of its record.
    #[error(transparent)]
    Chance(#[from] NoChance),
}

/// The settings of the archive files of a job.
#[derive(Clone, Debug)]
pub struct ArchiveFileSettings {
    /// The directory of the archive files.
    pub directory: PathBuf,
    /// The begin of each name: `12-34` for the 12th job of the 34th harvest.
    pub prefix: String,
    /// The name of this machine, which ends each name.
    pub host: String,
    /// A file of this length or more gets no further group.
    pub max_size: u64,
    /// Whether each record is a gzip member.
    pub compresses: bool,
    /// The lines of `warcinfo`, as `application/warc-fields`.
    pub warcinfo: String,
}

/// An archive file that is closed: whole, durable, under its final name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClosedFile {
    /// The name of the file.
    pub name: String,
    /// The path of the file.
    pub path: PathBuf,
    /// The length of the file in bytes.
    pub size: u64,
    /// The time at which the file was closed.
    pub closed: Timestamp,
}

#[derive(Debug)]
struct OpenFile {
    file: AppendFile,
    name: String,
    length: u64,
}

/// The archive files of one job.
///
/// ```
/// use archive_daemon::clock::Chance;
/// use harvest_crawler::archive_files::{ArchiveFileSettings, ArchiveFiles};
/// use harvest_crawler::capture::{RecordWriterPool, ResourceBlock, record_id};
/// use harvest_crawler::frontier::RecordedPlace;
///
/// let directory = tempfile::tempdir()?;
/// let settings = ArchiveFileSettings {
///     directory: directory.path().to_owned(),
///     prefix: "12-34".to_owned(),
///     host: "crawler-1".to_owned(),
///     max_size: 1_000_000_000,
///     compresses: true,
///     warcinfo: "software: Holdfast\r\n".to_owned(),
/// };
/// let now = "2026-11-26T12:00:00Z".parse()?;
/// let block = ResourceBlock {
///     uri: "dns:example.org",
///     time: now,
///     address: None,
///     media_type: "text/dns",
///     record_id: &record_id([7; 16]),
///     block: b"example.org. 300 IN A 192.0.2.1\n",
/// };
/// let mut group = block.into_records(&RecordWriterPool::new(std::env::temp_dir(), true))?;
///
/// let mut files = ArchiveFiles::open(settings, &RecordedPlace::default(), Chance::system_chance())?;
/// files.append_records(&mut group, now)?;
/// let closed = files.close_file(now)?.ok_or("a file was open")?;
/// assert!(closed.name.starts_with("12-34-"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ArchiveFiles {
    settings: ArchiveFileSettings,
    open: Option<OpenFile>,
    serial: u32,
    chance: Chance,
}

impl ArchiveFiles {
    /// Opens the files behind a place: what lies behind it in its file is cut off, and an open file that has nothing
    /// recorded is taken away.
    ///
    /// # Errors
    ///
    /// [`ArchiveFileError::Disk`].
    pub fn open(
        settings: ArchiveFileSettings,
        place: &RecordedPlace,
        chance: Chance,
    ) -> Result<Self, ArchiveFileError> {
        directory::make_directory(&settings.directory)?;
        let unfinished = format!("{}{OPEN}", place.file);
        let mut open = None;
        for name in directory::list_names(&settings.directory)? {
            let path = settings.directory.join(&name);
            if name == *unfinished && !place.file.is_empty() {
                let mut file = AppendFile::open(&path)?;
                file.cut(place.file_length)?;
                open = Some(OpenFile {
                    file,
                    name: place.file.clone(),
                    length: place.file_length,
                });
            } else if name.to_string_lossy().ends_with(OPEN) {
                directory::remove_name(&path)?;
            }
        }
        Ok(Self {
            settings,
            open,
            serial: place.serial,
            chance,
        })
    }

    /// Returns whether the next group belongs into another file than the last one.
    pub fn is_full(&self) -> bool {
        let length = self.open.as_ref().map_or(0, |file| file.length);
        length >= self.settings.max_size
    }

    /// Returns the place behind the last group, with this length of the crawl log.
    pub fn place_at(&self, log_length: u64) -> RecordedPlace {
        let open = self.open.as_ref();
        RecordedPlace {
            serial: self.serial,
            file: open.map(|file| file.name.clone()).unwrap_or_default(),
            file_length: open.map_or(0, |file| file.length),
            log_length,
        }
    }

    /// Appends a group; where it begins in the file. Begins a file if none is open.
    ///
    /// # Errors
    ///
    /// [`ArchiveFileError`]: the file is to be opened again from the last place.
    pub fn append_records(
        &mut self,
        group: &mut RecordGroup,
        now: Timestamp,
    ) -> Result<u64, ArchiveFileError> {
        if self.open.is_none() {
            self.open = Some(self.begin(now)?);
        }
        let Some(open) = &mut self.open else {
            return Ok(0);
        };
        let begin = open.length;
        let mut piece = vec![0; PIECE.min(usize::try_from(group.length).unwrap_or(PIECE))];
        let mut left = group.length;
        while left > 0 {
            let count = piece.len().min(usize::try_from(left).unwrap_or(PIECE));
            let bytes = piece.get_mut(..count).unwrap_or_default();
            group
                .bytes
                .read_exact(bytes)
                .map_err(ArchiveFileError::Spool)?;
            open.file.append(bytes)?;
            left -= u64::try_from(count).unwrap_or(left);
        }
        open.length += group.length;
        Ok(begin)
    }

    /// Begins a file with its `warcinfo` record.
    fn begin(&mut self, now: Timestamp) -> Result<OpenFile, ArchiveFileError> {
        let id = record_id(self.chance.random_bytes()?);
        self.serial = self.serial.saturating_add(1);
        let ArchiveFileSettings {
            directory,
            prefix,
            host,
            warcinfo,
            compresses,
            ..
        } = &self.settings;
        let (ending, mut writer) = if *compresses {
            ("warc.gz", WarcWriter::gzip_writer(Vec::new(), LEVEL))
        } else {
            ("warc", WarcWriter::plain_writer(Vec::new()))
        };
        let time = Stamp::from_time_millis(now);
        let name = format!("{prefix}-{time}-{:05}-{host}.{ending}", self.serial);
        let date = WarcDate::from_time(now, Precision::Second);
        let builder = Builder::new(WarcType::Warcinfo, &id, date.as_str())
            .with_field("WARC-Filename", &name)
            .with_field(
                "WARC-Block-Digest",
                &digest_bytes(Algorithm::Sha1, warcinfo.as_bytes()).to_string(),
            )
            .content_type("application/warc-fields");
        let length = warcinfo.len() as u64;
        let head = builder.render_head(length);
        let head = head.map_err(|source| ArchiveFileError::Warcinfo {
            file: name.clone(),
            source,
        })?;
        writer.write_record(&head, length, &mut Cursor::new(warcinfo.as_bytes()))?;
        let bytes = writer.into_inner();
        let mut file = AppendFile::open(&directory.join(format!("{name}{OPEN}")))?;
        file.append(&bytes)?;
        directory::sync_directory(directory)?;
        Ok(OpenFile {
            file,
            name,
            length: bytes.len() as u64,
        })
    }

    /// Makes durable what was appended.
    ///
    /// # Errors
    ///
    /// [`DiskError`]: nothing is known of what was appended since the last sync.
    pub fn sync_files(&self) -> Result<(), DiskError> {
        self.open.as_ref().map_or(Ok(()), |open| open.file.sync())
    }

    /// Returns the file that is open its final name; `None`: none is open. The caller has made it durable, by
    /// [`ArchiveFiles::sync_files`].
    ///
    /// # Errors
    ///
    /// [`DiskError`] if it cannot get its final name.
    pub fn close_file(&mut self, now: Timestamp) -> Result<Option<ClosedFile>, DiskError> {
        let Some(open) = self.open.take() else {
            return Ok(None);
        };
        let path = self.settings.directory.join(&open.name);
        let unfinished = self.settings.directory.join(format!("{}{OPEN}", open.name));
        directory::move_new(&unfinished, &path)?;
        Ok(Some(ClosedFile {
            name: open.name,
            path,
            size: open.length,
            closed: now,
        }))
    }
}

/// Returns whether an archive file has all records between two places, from the first byte of the first one to the last
/// byte of the last one.
pub fn has_records(directory: &Path, from: &RecordedPlace, to: &RecordedPlace) -> bool {
    if from.file == to.file && from.file_length == to.file_length {
        return true;
    }
    let begin = if from.file == to.file {
        from.file_length
    } else {
        0
    };
    let open = directory.join(format!("{}{OPEN}", to.file));
    let Ok(file) = File::open(open).or_else(|_| File::open(directory.join(&to.file))) else {
        return false;
    };
    has_whole_records(file, begin, to.file_length).unwrap_or(false)
}

fn has_whole_records(mut file: File, begin: u64, end: u64) -> io::Result<bool> {
    if file.metadata()?.len() < end {
        return Ok(false);
    }
    // What is read is believed to be durable.
    file.sync_all()?;
    file.seek(SeekFrom::Start(begin))?;
    let mut reader = WarcReader::new(file.take(end.saturating_sub(begin)));
    let mut records = 0;
    let mut next = 0;
    while let Some(record) = reader.next_record().map_err(io::Error::other)? {
        let end = record.read_end().map_err(io::Error::other)?;
        if !end.complete || !end.defects.is_empty() {
            return Ok(false);
        }
        records += 1;
        next = end.offset + end.length.unwrap_or(0);
    }
    Ok(records > 0 && next == end.saturating_sub(begin))
}

#[cfg(test)]
mod tests;
