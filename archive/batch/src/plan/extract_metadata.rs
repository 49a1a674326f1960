//! The content of the metadata files of crawls: reports, logs, settings, as they were stored.

use std::io::Read;

use archive_formats::warc::{Record, RecordSummary};

use super::arguments::{Arguments, WholeMatch};
use super::{Argument, InvalidJob, JobInfo, Plan, Reduce, view};
use crate::control::StopControl;
use crate::job::{BatchJobError, Job, Reads, Sink};

pub(super) const INFO: JobInfo = JobInfo {
    name: "extract-metadata",
    about: "Gives the bodies of metadata and resource records, byte for byte and one after the other; of ARC files those \
            that are no answers over HTTP.",
    output: "the bytes of a record",
    arguments: &[
        Argument {
            name: "url",
            about: "a regular expression that the whole URL of a record must match",
            default: Some(".*"),
        },
        Argument {
            name: "mime",
            about: "a regular expression that its whole media type must match, such as text/plain",
            default: Some(".*"),
        },
    ],
    reduce: Reduce::Concatenate,
};

/// The number of bytes that are written at once.
const PIECE: usize = 64 * 1024;

#[derive(Debug)]
struct ExtractMetadata {
    url: WholeMatch,
    mime: WholeMatch,
}

pub(super) fn plan_extract_metadata(arguments: &Arguments) -> Result<Box<dyn Plan>, InvalidJob> {
    Ok(Box::new(ExtractMetadata {
        url: arguments.match_expression("url")?,
        mime: arguments.match_expression("mime")?,
    }))
}

impl Plan for ExtractMetadata {
    fn reduce(&self) -> Reduce {
        INFO.reduce
    }

    fn start(&self, _control: &StopControl) -> Result<Box<dyn Job + '_>, BatchJobError> {
        Ok(Box::new(ExtractMetadataJob(self)))
    }
}

struct ExtractMetadataJob<'a>(&'a ExtractMetadata);

impl Job for ExtractMetadataJob<'_> {
    fn reads(&self) -> Reads {
        Reads::Records
    }

    fn record(
        &mut self,
        mut record: Record<'_, &mut dyn Read>,
        out: &mut dyn Sink,
    ) -> Result<RecordSummary, BatchJobError> {
        let mime = view::record_media(&record).map(|media| media.essence);
        let is_wanted = view::is_document(&record)
            && self.0.url.is_match(view::record_url(&record))
            && self.0.mime.is_match(mime.unwrap_or_default());
        if is_wanted {
            let mut piece = vec![0; PIECE];
            loop {
                let count = record
                    .read(&mut piece)
                    .map_err(|error| BatchJobError::Read(error.into()))?;
                if count == 0 {
                    break;
                }
                out.write(&piece[..count])?;
            }
        }
        Ok(record.read_end()?)
    }
}
