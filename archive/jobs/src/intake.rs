//! What a run brings, held against what a run may bring. A monitor may lie.
//!
//! Pure: counts and compares, and keeps nothing but the last name.

#[cfg(test)]
mod tests;

use archive_model::batch::MOST_FAILURES;
use archive_model::limits::LONGEST_REASON;
use archive_model::{FailureKind, FileName, FileOutcome, FileSelection};

/// Watches one run.
#[derive(Debug)]
pub(crate) struct Intake {
    after: Option<FileName>,
    selection: FileSelection,
    /// The most output of the whole job, and how much there is.
    most: u64,
    output: u64,
    /// Bytes since the last file was done.
    pending: u64,
    /// Files of this run.
    files: u64,
    ended: bool,
}

/// Why a run cannot be believed, or not go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Lie {
    #[error("the run is not in order: {name} came after {after}")]
    Order { name: FileName, after: FileName },
    #[error("the run brought {0}, which its expression does not match, or which it does not name")]
    Unasked(FileName),
    #[error("the run announced {said} bytes of output for {name} and brought {came}")]
    Length {
        name: FileName,
        said: u64,
        came: u64,
    },
    #[error("the run named more failures of {0}, or longer ones, than it may")]
    Failures(FileName),
    #[error("the run ended with {said} files and brought {came}")]
    Count { said: u64, came: u64 },
    #[error("the run ended in the middle of the output of a file")]
    Cut,
    #[error("the run went on after its end")]
    AfterEnd,
    #[error("it has written more than the {0} bytes of output that it may")]
    TooMuch(u64),
}

/// Whether no node has read the file, and that is all that is known of it.
pub(crate) fn is_unread(outcome: &FileOutcome) -> bool {
    let mut kinds = outcome.failures.iter().map(|failure| failure.kind);
    !outcome.failures.is_empty() && kinds.all(|kind| kind == FailureKind::Unread)
}

impl Intake {
    /// A run that goes on after a file, where there are `output` bytes already.
    pub(crate) const fn new(
        after: Option<FileName>,
        selection: FileSelection,
        output: u64,
        most: u64,
    ) -> Self {
        Self {
            after,
            selection,
            most,
            output,
            pending: 0,
            files: 0,
            ended: false,
        }
    }

    /// Bytes of output come.
    pub(crate) fn output(&mut self, bytes: u64) -> Result<(), Lie> {
        self.open()?;
        self.pending = self.pending.saturating_add(bytes);
        self.output = self.output.saturating_add(bytes);
        if self.output > self.most {
            return Err(Lie::TooMuch(self.most));
        }
        Ok(())
    }

    /// A file is done.
    pub(crate) fn done(&mut self, outcome: &FileOutcome) -> Result<(), Lie> {
        self.open()?;
        let name = &outcome.name;
        if let Some(after) = self.after.as_ref().filter(|after| *after >= name) {
            return Err(Lie::Order {
                name: name.clone(),
                after: after.clone(),
            });
        }
        if !self.selection.matches(name) {
            return Err(Lie::Unasked(name.clone()));
        }
        if outcome.output != self.pending {
            return Err(Lie::Length {
                name: name.clone(),
                said: outcome.output,
                came: self.pending,
            });
        }
        let is_long = |reason: &str| reason.chars().nth(LONGEST_REASON).is_some();
        if outcome.failures.len() > MOST_FAILURES
            || outcome.failures.iter().any(|one| is_long(&one.reason))
            || (outcome.failures.is_empty() && outcome.more_failures > 0)
        {
            return Err(Lie::Failures(name.clone()));
        }
        if is_unread(outcome) {
            // What came of it is not kept.
            self.output = self.output.saturating_sub(self.pending);
        }
        self.after = Some(name.clone());
        self.pending = 0;
        self.files = self.files.saturating_add(1);
        Ok(())
    }

    /// That was all.
    pub(crate) fn end(&mut self, files: u64) -> Result<(), Lie> {
        self.open()?;
        if self.pending > 0 {
            return Err(Lie::Cut);
        }
        if files != self.files {
            return Err(Lie::Count {
                said: files,
                came: self.files,
            });
        }
        self.ended = true;
        Ok(())
    }

    const fn open(&self) -> Result<(), Lie> {
        if self.ended {
            Err(Lie::AfterEnd)
        } else {
            Ok(())
        }
    }
}
