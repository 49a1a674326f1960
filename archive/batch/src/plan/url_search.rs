//! The places of captures of URLs.

use std::io::Read;

use archive_formats::cdx::{Format, extract_capture};
use archive_formats::warc::{Record, RecordSummary};

use super::arguments::{Arguments, WholeMatch, wrong_argument};
use super::{Argument, InvalidJob, JobInfo, Plan, Reduce, view};
use crate::control::StopControl;
use crate::job::{BatchJobError, File, Job, Reads, Sink};

pub(super) const INFO: JobInfo = JobInfo {
    name: "url-search",
    about: "Finds the captures of URLs that match an expression.",
    output: "TIMESTAMP URL STATUS MIME FILE OFFSET, with blanks between; what is not known is -",
    arguments: &[Argument {
        name: "url",
        about: "a regular expression that the whole URL must match",
        default: None,
    }],
    reduce: Reduce::Concatenate,
};

/// The letters of such a line.
const LEGEND: &str = " CDX b a s m g V";

#[derive(Debug)]
struct UrlSearch {
    url: WholeMatch,
    format: Format,
}

pub(super) fn plan_url_search(arguments: &Arguments) -> Result<Box<dyn Plan>, InvalidJob> {
    let format =
        Format::sniff_line(LEGEND).map_err(|error| wrong_argument("url", error.to_string()))?;
    Ok(Box::new(UrlSearch {
        url: arguments.match_expression("url")?,
        format,
    }))
}

impl Plan for UrlSearch {
    fn reduce(&self) -> Reduce {
        INFO.reduce
    }

    fn start(&self, _control: &StopControl) -> Result<Box<dyn Job + '_>, BatchJobError> {
        Ok(Box::new(UrlSearchJob {
            plan: self,
            file: String::new(),
        }))
    }
}

struct UrlSearchJob<'a> {
    plan: &'a UrlSearch,
    file: String,
}

impl Job for UrlSearchJob<'_> {
    fn reads(&self) -> Reads {
        Reads::Records
    }

    fn begin(&mut self, file: &File, _out: &mut dyn Sink) -> Result<(), BatchJobError> {
        file.name.as_str().clone_into(&mut self.file);
        Ok(())
    }

    fn record(
        &mut self,
        record: Record<'_, &mut dyn Read>,
        out: &mut dyn Sink,
    ) -> Result<RecordSummary, BatchJobError> {
        if !self.plan.url.is_match(view::record_url(&record)) {
            return Ok(record.read_end()?);
        }
        let extracted = extract_capture(record, &self.file)?;
        if let Some(capture) = &extracted.capture {
            out.write(self.plan.format.write_line(capture).as_bytes())?;
            out.write(b"\n")?;
        }
        match extracted.omitted {
            Some(why) => Err(BatchJobError::Failed(why)),
            None => Ok(extracted.end),
        }
    }
}
