//! The spool: an export on the repository's disk until the archive has it.
//!
//! Owns that an export which the archive was asked to store can be stored again after a crash: it is durable, under the
//! name that it has in the archive, before the archive is asked, and is removed only when the archive has it.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use archive_durable::{AppendFile, directory};
use archive_model::{FileName, Root};
use flate2::{Compression, write::GzEncoder};
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use super::AdminExportError;
use archive_ledger::admin::Admin;
use archive_ledger::export::{ExportTablesError, TablesExport, file_prefix};

/// The number of bytes that are written at once.
const BUFFER: usize = 256 << 10;

/// An export on the disk, not archived yet.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SpooledExport {
    pub(super) name: FileName,
    pub(super) path: PathBuf,
    pub(super) size: u64,
    pub(super) root: Root,
    /// The hash of its content; empty if a crash left the export.
    pub(super) content: String,
}

/// An export that was written.
pub(super) struct WrittenExport {
    pub(super) spooled: SpooledExport,
    pub(super) files: u64,
    pub(super) audit: u64,
}

/// The folder of exports that are not archived yet.
pub(super) struct Spool {
    pub(super) admin: Admin,
    pub(super) archive: String,
    pub(super) data: PathBuf,
    pub(super) stop: CancellationToken,
}

impl Spool {
    fn folder(&self) -> PathBuf {
        self.data.join("export")
    }

    /// Returns the spooled export that the archive was asked to store and may not have. Removes other spooled files,
    /// which the archive was never asked to store.
    pub(super) fn pending_export(&self) -> Result<Option<SpooledExport>, AdminExportError> {
        let folder = self.folder();
        directory::make_directory(&folder)?;
        for entry in directory::list_names(&folder)? {
            let path = folder.join(&entry);
            let name = entry.to_str().and_then(|name| FileName::new(name).ok());
            let is_begun = match &name {
                Some(name) => self.admin.file(name)?.is_some(),
                None => false,
            };
            match name {
                Some(name) if is_begun => return Self::read(name, path).map(Some),
                _ => directory::remove_name(&path)?,
            }
        }
        Ok(None)
    }

    fn read(name: FileName, path: PathBuf) -> Result<SpooledExport, AdminExportError> {
        let mut hash = blake3::Hasher::new();
        let mut file = directory::open_directory(&path)?;
        let size = io::copy(&mut file, &mut hash).map_err(failed)?;
        Ok(SpooledExport {
            name,
            path,
            size,
            root: Root::from_bytes(hash.finalize().into()),
            content: String::new(),
        })
    }

    /// Writes an export of now, durably.
    pub(super) fn write_export(&self, now: Timestamp) -> Result<WrittenExport, AdminExportError> {
        let folder = self.folder();
        directory::make_directory(&folder)?;
        let time = now.strftime("%Y%m%dT%H%M%SZ");
        let name = FileName::new(&format!("{}{time}.jsonl.gz", file_prefix(&self.archive)))?;
        let path = folder.join(name.as_str());
        // An attempt of the same second may have left a file.
        directory::remove_name(&path)?;
        let file = HashedFile {
            file: AppendFile::open(&path)?,
            hash: blake3::Hasher::new(),
            size: 0,
        };
        let mut packed =
            GzEncoder::new(BufWriter::with_capacity(BUFFER, file), Compression::new(6));
        let log = self.data.join("audit");
        let export = TablesExport {
            admin: &self.admin,
            log: &log,
            archive: &self.archive,
            time: now,
            is_stopping: &|| self.stop.is_cancelled(),
        };
        let exported = export.write_export(&mut packed)?;
        let written = packed
            .finish()
            .and_then(|rest| rest.into_inner().map_err(io::IntoInnerError::into_error))
            .map_err(failed)?;
        written.file.sync()?;
        directory::sync_directory(&folder)?;
        Ok(WrittenExport {
            spooled: SpooledExport {
                name,
                path,
                size: written.size,
                root: Root::from_bytes(written.hash.finalize().into()),
                content: exported.content,
            },
            files: exported.end.files,
            audit: exported.end.audit,
        })
    }
}

fn failed(error: io::Error) -> AdminExportError {
    ExportTablesError::Write(error).into()
}

/// A file that is hashed while it is written.
struct HashedFile {
    file: AppendFile,
    hash: blake3::Hasher,
    size: u64,
}

impl Write for HashedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.append(bytes).map_err(|error| error.source)?;
        self.hash.update(bytes);
        self.size += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
