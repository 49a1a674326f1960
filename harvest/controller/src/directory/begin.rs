//! The begin of a job's directory, and the end of its frontier.
//!
//! Owns that a directory has the name of a job only once everything is in it.

use std::path::Path;

use archive_durable::{SmallFile, directory, replace_all, replace_secret};
use harvest_model::HarvestJob;
use harvest_model::order::Password;
use jiff::Timestamp;

use super::{JobDirectory, JobDirectoryError, RUN_SETTINGS, RunSettings};

impl JobDirectory {
    /// Makes the directory of a new job in `base`, which is made as well.
    ///
    /// # Errors
    ///
    /// [`JobDirectoryError::Disk`], [`JobDirectoryError::Print`].
    pub fn create_directory(
        base: &Path,
        job: HarvestJob,
        now: Timestamp,
    ) -> Result<Self, JobDirectoryError> {
        Self::begin_job(base, job, &RunSettings::default(), now)
    }

    /// Makes the directory of a new job as [`JobDirectory::create_directory`] does, with the choices of the person who begins it.
    /// It has its name once it is whole: one that was not finished begins with a dot, and counts as no job.
    ///
    /// # Errors
    ///
    /// [`JobDirectoryError::Disk`], [`JobDirectoryError::Print`].
    pub fn begin_job(
        base: &Path,
        job: HarvestJob,
        run: &RunSettings,
        now: Timestamp,
    ) -> Result<Self, JobDirectoryError> {
        directory::make_directory(base)?;
        let name = format!("{}_{}", job.id, now.as_millisecond());
        let unfinished = base.join(format!(".{name}.new"));
        directory::make_new(&unfinished)?;
        let created = Self {
            path: unfinished,
            job,
        };
        for name in [
            "logs", "warcs", "index", "reports", "metadata", "receipts", "action", "done",
        ] {
            directory::make_unsynced(&created.path_of(name))?;
        }
        let job = &created.job;
        let mut seeds = String::new();
        for seed in &job.seeds {
            seeds.push_str(seed.as_str());
            seeds.push('\n');
        }
        let order = job.order.to_toml()?;
        let info = job.harvest_info_xml();
        let run = created.to_json(RUN_SETTINGS, run)?;
        let whole = job.to_toml()?;
        let files = [
            SmallFile::new(RUN_SETTINGS, &run),
            SmallFile::new("order.toml", order.as_bytes()),
            SmallFile::new("seeds.txt", seeds.as_bytes()),
            SmallFile::new("harvestInfo.xml", info.as_bytes()),
            // With passwords.
            SmallFile {
                is_secret: true,
                ..SmallFile::new("job.toml", whole.as_bytes())
            },
        ];
        // The directories become durable with them.
        replace_all(&created.path, &files)?;
        let path = base.join(name);
        directory::move_new(&created.path, &path)?;
        Ok(Self { path, ..created })
    }

    /// Takes the passwords out of the file of the job: nobody is asked with them any more.
    ///
    /// # Errors
    ///
    /// [`JobDirectoryError::Disk`], [`JobDirectoryError::Print`].
    pub(crate) fn forget_passwords(&self) -> Result<(), JobDirectoryError> {
        if self.job.order.credentials.is_empty() {
            return Ok(());
        }
        let mut job = self.job.clone();
        for credential in &mut job.order.credentials {
            credential.password = Password::forgotten();
        }
        Ok(replace_secret(
            &self.path_of("job.toml"),
            job.to_toml()?.as_bytes(),
        )?)
    }

    /// Gives up the frontier of the crawl: its directory gets another name, and the job ends with what it has recorded
    /// when it is resumed. Returns whether there was one.
    ///
    /// # Errors
    ///
    /// [`JobDirectoryError::Disk`].
    pub fn give_up_frontier(&self, now: Timestamp) -> Result<bool, JobDirectoryError> {
        let state = self.path_of("state");
        if self.read_outcome()?.is_some() || directory::entry_kind(&state)?.is_none() {
            return Ok(false);
        }
        let given_up = self.path_of(&format!("state.{}.damaged", now.as_millisecond()));
        directory::move_new(&state, &given_up)?;
        Ok(true)
    }
}
