//! A component as a job like any other.

use std::io::Read;
use std::sync::Arc;

use archive_batch::{BatchJobError, File, Job, Plan, Reads, Reduce, Sink, StopControl};
use archive_formats::warc::{Record, RecordSummary};
use archive_model::JobLimits;

use super::Component;
use super::block::Block;
use super::compile::JobInput;
use super::guest::{Call, Guest};
use super::wit::{self, Arguments};

/// A component with its arguments and limits.
#[derive(Debug)]
pub(super) struct Files {
    component: Arc<Component>,
    arguments: Arguments,
    limits: JobLimits,
}

impl Files {
    pub(super) fn new(component: Arc<Component>, arguments: Arguments, limits: JobLimits) -> Self {
        Self {
            component,
            arguments,
            limits,
        }
    }
}

impl Plan for Files {
    fn reduce(&self) -> Reduce {
        if self.component.about.reduces {
            Reduce::Component
        } else {
            Reduce::Concatenate
        }
    }

    fn start(&self, control: &StopControl) -> Result<Box<dyn Job + '_>, BatchJobError> {
        Ok(Box::new(OneFile {
            shows: self.component.program.job_input(),
            arguments: &self.arguments,
            guest: Guest::start_guest(&self.component.program, self.limits, control)?,
        }))
    }
}

/// A component and one file.
struct OneFile<'a> {
    shows: JobInput,
    arguments: &'a Arguments,
    guest: Guest,
}

impl OneFile<'_> {
    fn call(&mut self, call: Call, out: &mut dyn Sink) -> Result<(), BatchJobError> {
        self.guest
            .call_guest(call, &mut Block::no_block(), out)
            .map(|_text| ())
    }
}

impl Job for OneFile<'_> {
    fn reads(&self) -> Reads {
        match self.shows {
            JobInput::Records => Reads::Records,
            JobInput::Bytes => Reads::Bytes,
        }
    }

    fn begin(&mut self, file: &File, out: &mut dyn Sink) -> Result<(), BatchJobError> {
        let call = Call::Begin(wit::File::from(file), self.arguments.clone());
        self.call(call, out)
    }

    fn bytes(&mut self, bytes: &[u8], out: &mut dyn Sink) -> Result<(), BatchJobError> {
        self.call(Call::More(bytes.to_vec()), out)
    }

    fn record(
        &mut self,
        mut record: Record<'_, &mut dyn Read>,
        out: &mut dyn Sink,
    ) -> Result<RecordSummary, BatchJobError> {
        let call = Call::Record(
            wit::ArchiveRecord::from_record(&record),
            record.header().clone(),
        );
        let mut block = Block::from_record(&mut record);
        let said = self.guest.call_guest(call, &mut block, out);
        let damage = block.read_damage();
        match said {
            // Damage comes first: whatever it made of it, it was not shown the record as it was admitted.
            Ok(_) | Err(BatchJobError::Failed(_)) => damage?,
            Err(BatchJobError::Stopped(_) | BatchJobError::Read(_) | BatchJobError::Broken(_)) => {}
        }
        said?;
        Ok(record.read_end()?)
    }

    fn end(&mut self, out: &mut dyn Sink) -> Result<(), BatchJobError> {
        self.call(Call::End, out)
    }
}
