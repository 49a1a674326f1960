//! A job that runs: what its steps share, and what becomes of each file that is whole.
//!
//! Owns that an archive file is indexed before it is handed on to be stored, that a damaged one is set aside, and that
//! people are told at once of one that cannot be handed on.

use harvest_crawler::archive_files::ClosedFile;
use harvest_crawler::crawl::CrawlOutcome;
use harvest_reports::warcinfo::Warcinfo;
use tokio::sync::mpsc;

use crate::directory::{IndexedFile, JobDirectory};
use crate::document::write_documents;
use crate::environment::JobEnvironment;
use crate::error::HarvestJobError;
use crate::notice::{JobNotice, NoticeHandler};
use crate::upload::WholeFile;

/// A job that runs.
#[derive(Clone, Copy)]
pub(crate) struct JobRun<'a> {
    pub(crate) directory: &'a JobDirectory,
    pub(crate) environment: &'a JobEnvironment,
    pub(crate) warcinfo: &'a Warcinfo,
    /// The way to the uploader, for each file that is whole.
    pub(crate) files: &'a mpsc::UnboundedSender<WholeFile>,
    pub(crate) notify: NoticeHandler<'a>,
}

impl JobRun<'_> {
    /// Closes archive files that an earlier process has left whole. One that cannot be indexed does not hold up the
    /// others; the first such error is given at the end.
    pub(crate) async fn close_all(&self, files: Vec<ClosedFile>) -> Result<(), HarvestJobError> {
        let mut first = Ok(());
        for file in files {
            first = first.and(self.close_or_notify(file).await);
        }
        first
    }

    /// Closes an archive file as [`JobRun::close`] does, and notifies people at once if it cannot: it is tried again
    /// when the job is resumed.
    pub(crate) async fn close_or_notify(&self, file: ClosedFile) -> Result<(), HarvestJobError> {
        let name = file.name.clone();
        let closed = self.close(file).await;
        if let Err(error) = &closed {
            let why = format!("{error}; it is stored once the job is resumed");
            (self.notify)(JobNotice::NotStored {
                name: &name,
                why: &why,
            });
        }
        closed
    }

    /// Indexes an archive file that was closed, and hands it on to be stored. A damaged one stays, as `NAME.invalid`.
    async fn close(&self, file: ClosedFile) -> Result<(), HarvestJobError> {
        if self.directory.has_receipt(&file.name)? {
            // What the archive has it looks after.
            _ = self.files.send(WholeFile { file, root: None });
            return Ok(());
        }
        let directory = self.directory.clone();
        let closed = file.clone();
        let indexed = run_blocking("index an archive file", move || {
            directory.index_file(&closed)
        });
        match indexed.await? {
            IndexedFile::Whole(root) => {
                let root = Some(root);
                // Uploads that were ended take nothing more.
                _ = self.files.send(WholeFile { file, root });
            }
            IndexedFile::Damaged(damage) => {
                self.directory.set_aside(&file.name)?;
                (self.notify)(JobNotice::NotStored {
                    name: &file.name,
                    why: &format!(
                        "it is damaged, and lies in `warcs` as {}.invalid: {damage}",
                        file.name
                    ),
                });
            }
        }
        Ok(())
    }

    /// Writes the reports and the metadata file, and hands it on to be stored.
    pub(crate) async fn document_crawl(
        &self,
        outcome: &CrawlOutcome,
    ) -> Result<(), HarvestJobError> {
        if self.directory.indexed_files()?.is_empty() {
            (self.notify)(JobNotice::NothingHarvested);
        }
        let directory = self.directory.clone();
        let environment = self.environment.clone();
        let warcinfo = self.warcinfo.clone();
        let outcome = outcome.clone();
        let written = run_blocking("write the metadata file", move || {
            write_documents(&directory, &environment, &warcinfo, &outcome)
        });
        if let Some((file, root)) = written.await? {
            let root = Some(root);
            _ = self.files.send(WholeFile { file, root });
        }
        Ok(())
    }
}

/// Runs work that blocks, on a thread for such work.
async fn run_blocking<T: Send + 'static, E: Send + 'static>(
    what: &'static str,
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, HarvestJobError>
where
    HarvestJobError: From<E>,
{
    let done = tokio::task::spawn_blocking(work).await;
    Ok(done.map_err(|source| HarvestJobError::Task { what, source })??)
}
