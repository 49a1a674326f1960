//! Lines of an index for content that was not stored again: the annotations of a deduplicator in crawl logs.
//!
//! Each annotation says where the record lies that has the content: `duplicate:"file,offset[,timestamp]"`, or without
//! quotes as older logs have it. An annotation that names no file, such as `duplicate:digest`, is a revisit record of
//! its own and no line here.

use std::io::Read;

use archive_formats::cdx::{Capture, Format};
use archive_formats::date::{DateReading, Stamp, WarcDate};
use archive_formats::surt::UrlKey;
use archive_formats::warc::{Record, RecordSummary};

use super::arguments::{Arguments, wrong_argument};
use super::crawl_log::{each_line, is_crawl_log};
use super::extract_cdx::Form;
use super::{Argument, InvalidJob, JobInfo, Plan, Reduce};
use crate::control::StopControl;
use crate::job::{BatchJobError, File, Job, Reads, Sink};

pub(super) const INFO: JobInfo = JobInfo {
    name: "dedup-cdx",
    about: "Makes index lines from the crawl logs of files with the metadata of crawls: one for each duplicate that was not \
            stored again, at the time of its capture, for the record that has its content.",
    output: "a CDX line",
    arguments: &[
        Argument {
            name: "format",
            about: "cdxj, cdx11 or cdx9",
            default: Some("cdxj"),
        },
        Argument {
            name: "log",
            about: "true: each line names in its field `log` the file whose crawl log it is from; with cdxj only",
            default: Some("false"),
        },
    ],
    reduce: Reduce::Sort,
};

/// The field of a line for the file whose crawl log it is from.
const LOG: &str = "log";

#[derive(Debug)]
struct DedupCdx {
    form: Form,
    names_log: bool,
}

pub(super) fn plan_dedup_cdx(arguments: &Arguments) -> Result<Box<dyn Plan>, InvalidJob> {
    let form = arguments.choice(
        "format",
        &[
            ("cdxj", Form::usual_form(Format::Cdxj)),
            ("cdx11", Form::usual_form(Format::cdx11())),
            ("cdx9", Form::usual_form(Format::cdx9())),
        ],
    )?;
    let names_log = arguments.choice("log", &[("false", false), ("true", true)])?;
    if names_log && !form.has_names() {
        let why = "lines of this form have no field that it could be in";
        return Err(wrong_argument("log", why.to_owned()));
    }
    Ok(Box::new(DedupCdx { form, names_log }))
}

impl Plan for DedupCdx {
    fn reduce(&self) -> Reduce {
        self.form.reduce_rule()
    }

    fn start(&self, _control: &StopControl) -> Result<Box<dyn Job + '_>, BatchJobError> {
        Ok(Box::new(DedupCdxJob {
            plan: self,
            log: None,
        }))
    }
}

struct DedupCdxJob<'a> {
    plan: &'a DedupCdx,
    /// The file that is read, if lines name it.
    log: Option<String>,
}

impl Job for DedupCdxJob<'_> {
    fn reads(&self) -> Reads {
        Reads::Records
    }

    fn begin(&mut self, file: &File, out: &mut dyn Sink) -> Result<(), BatchJobError> {
        self.log = self.plan.names_log.then(|| file.name.to_string());
        self.plan.form.begin_output(out)
    }

    fn record(
        &mut self,
        mut record: Record<'_, &mut dyn Read>,
        out: &mut dyn Sink,
    ) -> Result<RecordSummary, BatchJobError> {
        if !is_crawl_log(&record) {
            return Ok(record.read_end()?);
        }
        let mut unread = 0_u64;
        let mut first = None;
        each_line(&mut record, |line| {
            match capture(&String::from_utf8_lossy(line)) {
                Ok(Some(mut capture)) => {
                    let log = self.log.iter();
                    capture
                        .extra
                        .extend(log.map(|log| (LOG.to_owned(), log.clone())));
                    self.plan.form.write_capture(&capture, out)
                }
                Ok(None) => Ok(()),
                Err(why) => {
                    unread += 1;
                    first.get_or_insert(why);
                    Ok(())
                }
            }
        })?;
        match first {
            None => Ok(record.read_end()?),
            Some(why) => Err(BatchJobError::Failed(format!(
                "{unread} lines name a duplicate and cannot be read, the first: {why}"
            ))),
        }
    }
}

/// Returns the capture that a line of a crawl log names as the original; `None` if it names none, or why it cannot be
/// read.
fn capture(line: &str) -> Result<Option<Capture>, String> {
    let columns: Vec<&str> = line.split_ascii_whitespace().collect();
    let Some(origin) = columns
        .get(11..)
        .into_iter()
        .flatten()
        .find_map(|column| origin(column))
    else {
        return Ok(None);
    };
    let shown = || line.chars().take(200).collect::<String>();
    let (file, offset) = origin.map_err(|why| format!("{why} in {:?}", shown()))?;
    let column = |number: usize| columns.get(number).copied().unwrap_or("-");
    let value = |number: usize| Some(column(number)).filter(|value| *value != "-");
    let began = column(8).get(..14).and_then(|digits| digits.parse().ok());
    let logged = || {
        Some(
            WarcDate::read_date(column(0), DateReading::Lenient)
                .ok()?
                .stamp(),
        )
    };
    let time: Stamp = began
        .or_else(logged)
        .ok_or_else(|| format!("no time in {:?}", shown()))?;
    let url = column(3);
    let mut capture = Capture::new(UrlKey::parse(url).as_str(), time);
    capture.original = Some(url.to_owned());
    capture.mime = value(6).map(str::to_owned);
    capture.status = value(1).and_then(|status| status.parse().ok());
    capture.digest = value(9).map(str::to_owned);
    capture.offset = Some(offset);
    capture.file = Some(file);
    Ok(Some(capture))
}

/// Returns the file and the offset that an annotation names: `None` without such an annotation, an error if it cannot
/// be read.
fn origin(annotations: &str) -> Option<Result<(String, u64), &'static str>> {
    const UNREADABLE: &str = "no file and offset";
    if let Some((_, rest)) = annotations.split_once("duplicate:\"") {
        let named = rest.split_once('"').map(|(named, _)| named);
        return Some(named.and_then(file_and_offset).ok_or(UNREADABLE));
    }
    let (_, named) = annotations.split_once("duplicate:")?;
    // A word such as `digest` names no file.
    file_and_offset(named).map(Ok)
}

fn file_and_offset(named: &str) -> Option<(String, u64)> {
    let mut parts = named.split(',');
    let file = parts.next().filter(|file| !file.is_empty())?;
    let offset = parts.next()?.parse().ok()?;
    Some((file.to_owned(), offset))
}
