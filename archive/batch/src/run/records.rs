//! The records of a file, one after the other, and how reading continues behind damage.
//!
//! A record is shown only as far as its bytes are proven: where they are not, reading it ends with an error, and
//! nothing of it is put together with what lies behind. There, a new reader looks for the next beginning of a record.

use std::cell::RefCell;
use std::io::Read;
use std::ops::Range;

use archive_formats::defect::{Class, Defect};
use archive_formats::warc::{
    Compression, Dictionary, KnownFormat, ReadRecordError, ReaderOptions, WarcReader,
};
use archive_model::FailureKind;

use super::input::{self, Barrier, Input};
use super::{FileInput, FileResult, FileRun};
use crate::control::{Stop, StopControl};
use crate::job::{self, BatchJobError, File, FileSource};

impl FileRun<'_> {
    /// Shows the records; returns whether the job can be shown the end of the file.
    pub(super) fn show_records(&mut self, shown: &mut FileInput<'_>) -> Result<bool, Stop> {
        let file = shown.file;
        let control = self.control;
        let mut known = None;
        let mut damage: Option<DamagedRange> = None;
        loop {
            let from = damage.as_ref().map_or(0, |damage| damage.range.end);
            let barrier = RefCell::new(None);
            if from > 0 && known.is_none() {
                known = guess(shown, from, control)?;
            }
            let dictionary = if from > 0
                && known.is_some_and(|known| known.compression() == Compression::Zstd)
            {
                // If the dictionary cannot be read, frames that want it cannot either.
                let beginning = RefCell::new(None);
                Dictionary::read_dictionary(Input::new(shown, control, &beginning, 0))
                    .unwrap_or(None)
            } else {
                None
            };
            let mut input = Input::new(shown, control, &barrier, from);
            let input: &mut dyn Read = &mut input;
            let options = ReaderOptions {
                offset: from,
                ..ReaderOptions::default()
            };
            let reader = if from == 0 {
                Ok(WarcReader::with_options(input, options))
            } else {
                let known = known.unwrap_or_else(|| KnownFormat::known_compressed(hint(file)));
                WarcReader::resume_at(input, options, known, dictionary)
            };
            let mut reader = match reader {
                Ok(reader) => reader,
                Err(error) => {
                    self.done
                        .fail(FailureKind::Damaged, Some(from), error.to_string());
                    return Ok(true);
                }
            };
            let ended = self.show_stretch(&mut reader, &mut damage)?;
            if self.done.records > 0 {
                self.done.more_failures += reader.omitted_defects();
            }
            // The format that a stretch without a record seems to have is no knowledge.
            if damage.is_none() {
                known = reader.known_format().or(known);
            }
            drop(reader);
            let (unreadable, open) = match ended {
                StretchEnd::Whole | StretchEnd::JobBroken => {
                    if let Some(damage) = damage {
                        damage.report(&mut self.done, "no record was found behind them");
                    }
                    return Ok(ended == StretchEnd::Whole);
                }
                StretchEnd::Unreadable { words, record } => (words, record),
            };
            match barrier.into_inner() {
                Some(Barrier::Damaged { range, reason }) => {
                    if let Some(damage) = damage.take() {
                        damage.report(
                            &mut self.done,
                            &format!(
                                "no record was found up to the next damage at {}",
                                range.start
                            ),
                        );
                    }
                    let range = widen(range, shown.source, control)?;
                    let next = DamagedRange {
                        range,
                        reason,
                        record: open,
                    };
                    if next.range.end >= file.size {
                        next.report(&mut self.done, "they are the end of the file");
                        return Ok(true);
                    }
                    damage = Some(next);
                }
                Some(Barrier::Gone { at, reason }) => {
                    if let Some(damage) = damage {
                        damage.report(&mut self.done, "no record was found behind them");
                    }
                    self.done.fail(FailureKind::Damaged, Some(at), reason);
                    return Ok(true);
                }
                None => {
                    self.done.fail(FailureKind::Format, None, unreadable);
                    return Ok(true);
                }
            }
        }
    }

    /// Shows what can be read without damage in it.
    fn show_stretch(
        &mut self,
        reader: &mut WarcReader<&mut dyn Read>,
        damage: &mut Option<DamagedRange>,
    ) -> Result<StretchEnd, Stop> {
        let done = &mut self.done;
        let mut open = None;
        loop {
            self.control.check_stop()?;
            let record = match reader.next_record() {
                Ok(Some(record)) => record,
                Ok(None) => {
                    defects(&reader.take_defects(), done);
                    return Ok(StretchEnd::Whole);
                }
                Err(ReadRecordError::Refused(defect)) => {
                    defects(&[*defect], done);
                    continue;
                }
                Err(error) => {
                    self.control.check_stop()?;
                    defects(&reader.take_defects(), done);
                    return Ok(StretchEnd::Unreadable {
                        words: error.to_string(),
                        record: open,
                    });
                }
            };
            let offset = record.offset();
            if let Some(damage) = damage.take() {
                damage.report(done, &format!("the next record begins at {offset}"));
            }
            done.records += 1;
            let before = record.defects().to_vec();
            let error = match self.job.record(record, self.out) {
                Ok(end) => {
                    defects(&end.defects, done);
                    continue;
                }
                Err(error) => error,
            };
            self.control.check_stop()?;
            // The defects of the record, unless the job has taken them: then the record is reported as failed, and only
            // the defects before it are reported here.
            let rest = reader.take_defects();
            defects(if rest.is_empty() { &before } else { &rest }, done);
            if let BatchJobError::Read(error) = &error
                && input::is_barrier(error)
            {
                // The next record is asked of the same bytes, and says what stands in the way.
                open = Some(offset);
                continue;
            }
            let is_broken = matches!(error, BatchJobError::Broken(_));
            done.note(Some(offset), error)?;
            if is_broken {
                return Ok(StretchEnd::JobBroken);
            }
        }
    }
}

/// Damaged bytes, before it is known where reading continues.
struct DamagedRange {
    range: Range<u64>,
    reason: String,
    /// The record that was being read.
    record: Option<u64>,
}

impl DamagedRange {
    /// Adds the failure to the result of the file, with a remark on what follows the damage.
    fn report(self, done: &mut FileResult, what_follows: &str) {
        let mut words = input::damage_message(&self.range, &self.reason);
        if let Some(record) = self.record {
            words =
                format!("{words}; the record that begins at {record} cannot be read to its end");
        }
        done.fail(
            FailureKind::Damaged,
            Some(self.range.start),
            format!("{words}; {what_follows}"),
        );
    }
}

/// The end of a stretch without damage.
#[derive(Debug, PartialEq, Eq)]
enum StretchEnd {
    /// The stretch ended with the file.
    Whole,
    /// The job is broken.
    JobBroken,
    /// Reading cannot continue, for this reason; `record` is the offset of the record that was being read.
    Unreadable { words: String, record: Option<u64> },
}

/// Notes what the defects of a file cost.
fn defects(defects: &[Defect], done: &mut FileResult) {
    for defect in defects.iter().filter(|defect| defect.class.costs_content()) {
        if matches!(defect.class, Class::Empty | Class::NoRecord) {
            // All earlier failures are about bytes that are no records: one failure reports it.
            let first = done.failures.first().map(|first| first.reason.clone());
            *done = FileResult::default();
            let why = first.map_or_else(String::new, |first| format!(" ({first})"));
            let words = format!(
                "no archive file: {}{why}; `files` chooses which files a job reads",
                defect.words
            );
            done.fail(FailureKind::Format, None, words);
            continue;
        }
        let mut words = format!("{}: {}", defect.class, defect.words);
        if let Some(record) = &defect.record {
            words = format!("{words} (record {record})");
        }
        done.fail(FailureKind::Format, Some(defect.offset), words);
    }
}

/// Widens a damaged range by the damage that follows at once.
fn widen(
    mut range: Range<u64>,
    source: &mut dyn FileSource,
    control: &StopControl,
) -> Result<Range<u64>, Stop> {
    loop {
        control.check_stop()?;
        match source.read_at(range.end, &mut [0]) {
            Err(job::ReadBytesError::Damaged { range: next, .. }) if next.end > range.end => {
                range.end = next.end;
            }
            _ => return Ok(range),
        }
    }
}

/// Returns the compression of a file, by its name.
fn hint(file: &File) -> Compression {
    let name = file.name.as_str().to_ascii_lowercase();
    let ends = |end: &str| name.ends_with(end);
    if ends(".gz") {
        Compression::Gzip
    } else if ends(".zst") {
        Compression::Zstd
    } else {
        Compression::Plain
    }
}

/// Finds out how a file is whose beginning cannot be read; nothing when no guess finds a record before the next damage.
fn guess(
    shown: &mut FileInput<'_>,
    from: u64,
    control: &StopControl,
) -> Result<Option<KnownFormat>, Stop> {
    let hinted = hint(shown.file);
    let all = [Compression::Plain, Compression::Gzip, Compression::Zstd];
    let others = all.into_iter().filter(|other| *other != hinted);
    for compression in std::iter::once(hinted).chain(others) {
        let barrier = RefCell::new(None);
        let input = Input::new(shown, control, &barrier, from);
        let options = ReaderOptions {
            offset: from,
            ..ReaderOptions::default()
        };
        let known = KnownFormat::known_compressed(compression);
        if let Ok(mut reader) = WarcReader::resume_at(input, options, known, None)
            && matches!(reader.next_record(), Ok(Some(_)))
        {
            return Ok(reader.known_format());
        }
        control.check_stop()?;
    }
    Ok(None)
}
