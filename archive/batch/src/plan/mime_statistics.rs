//! Counts of the responses and resources of each media type, and their sizes.

use std::collections::BTreeMap;
use std::io::Read;

use archive_formats::warc::{Record, RecordSummary, WarcType};

use super::{JobInfo, Plan, Reduce, view};
use crate::control::StopControl;
use crate::job::{BatchJobError, Job, Reads, Sink};

pub(super) const INFO: JobInfo = JobInfo {
    name: "mime-statistics",
    about: "Counts responses and resources by media type, as servers name it, and adds up the bytes of their bodies as they \
            are stored.",
    output: "MIME TAB COUNT TAB BYTES; - where no type is named",
    arguments: &[],
    reduce: Reduce::Sum,
};

/// The most types that are held at once; more are written in between, and added up by the reduce step.
const MOST_TYPES: usize = 10_000;

/// The most bytes of a type that are looked at.
const LONGEST_TYPE: usize = 200;

#[derive(Debug)]
pub(super) struct MimeStatistics;

impl Plan for MimeStatistics {
    fn reduce(&self) -> Reduce {
        INFO.reduce
    }

    fn start(&self, _control: &StopControl) -> Result<Box<dyn Job + '_>, BatchJobError> {
        Ok(Box::new(MimeStatisticsJob::default()))
    }
}

#[derive(Default)]
struct MimeStatisticsJob {
    types: BTreeMap<String, (u64, u64)>,
}

impl MimeStatisticsJob {
    fn write(&mut self, out: &mut dyn Sink) -> Result<(), BatchJobError> {
        for (mime, (count, bytes)) in std::mem::take(&mut self.types) {
            out.write(format!("{mime}\t{count}\t{bytes}\n").as_bytes())?;
        }
        Ok(())
    }
}

impl Job for MimeStatisticsJob {
    fn reads(&self) -> Reads {
        Reads::Records
    }

    fn record(
        &mut self,
        mut record: Record<'_, &mut dyn Read>,
        out: &mut dyn Sink,
    ) -> Result<RecordSummary, BatchJobError> {
        if !matches!(record.kind(), WarcType::Response | WarcType::Resource) {
            return Ok(record.read_end()?);
        }
        let mut head_length = 0;
        let media = if view::is_answer(&record) {
            let head = view::read_head(&mut record)?;
            head_length = head.raw().len() as u64;
            view::media_of(&head)
        } else {
            view::record_media(&record)
        };
        let end = record.read_end()?;
        let mut mime = view::escape_field(&media.map(|media| media.essence).unwrap_or_default());
        mime.truncate(mime.floor_char_boundary(LONGEST_TYPE));
        let (count, bytes) = self.types.entry(mime).or_default();
        *count = count.saturating_add(1);
        *bytes = bytes.saturating_add(end.block_length.saturating_sub(head_length));
        if self.types.len() >= MOST_TYPES {
            self.write(out)?;
        }
        Ok(end)
    }

    fn end(&mut self, out: &mut dyn Sink) -> Result<(), BatchJobError> {
        self.write(out)
    }
}
