//! Decides by the report of a job whether a file counts as extracted. Pure.
//!
//! A file that no node has read waits for its nodes: that is no failure of the file. Damaged bytes may be whole in
//! another replica, or after a repair: that is a failure, and the file is tried again. What is wrong in the archived
//! bytes themselves stays wrong: the captures around it are in the index, and the rest is counted.

use archive_model::{FailureKind, Root};

use crate::decide::is_archive_name;

/// The part of a job's report that is about one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FileReport {
    /// The root of the bytes that were read; absent: no node has read the file.
    pub(crate) root: Option<Root>,
    /// The reason why no node has read the file whole.
    pub(crate) unread: Option<String>,
    /// The first damage in the bytes of the file.
    pub(crate) damaged: Option<String>,
    /// The reason why the file is not an archive file.
    pub(crate) foreign: Option<String>,
    /// The number of records, or parts of the file, that were left out.
    pub(crate) defects: u64,
}

/// The decision about one file of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Judgement {
    /// The file was read: its captures are those that came.
    Extracted {
        /// The number of records, or parts of the file, that were left out.
        defects: u64,
    },
    /// No node has read the file whole, for this reason. It has not failed.
    Unread(String),
    /// The bytes of the file are damaged, or the job that read it failed, for this reason; another replica may have it
    /// whole.
    Damaged(String),
    /// The file has a name of an archive file and cannot be read as one, for this reason.
    Failed(String),
}

impl FileReport {
    /// Adds a failure.
    pub(crate) fn add_failure(&mut self, kind: FailureKind, offset: Option<u64>, reason: String) {
        let place = match (kind, offset) {
            (FailureKind::Unread, _) => &mut self.unread,
            (FailureKind::Damaged, _) => &mut self.damaged,
            (FailureKind::Format, None) => &mut self.foreign,
            (FailureKind::Format, Some(_)) | (FailureKind::Job | FailureKind::Component, _) => {
                self.defects = self.defects.saturating_add(1);
                return;
            }
        };
        place.get_or_insert(reason);
    }

    /// Adds what a second job says of the logs in the file, or why that job has no result.
    pub(crate) fn add_log(&mut self, log: Self, problem: Option<&str>) {
        let of_logs = |reason: String| format!("its crawl logs: {reason}");
        if let Some(reason) = problem.map(str::to_owned).or(log.damaged) {
            self.damaged.get_or_insert(of_logs(reason));
        } else if log.unread.is_some() || log.root.is_none() {
            let reason = log.unread.unwrap_or_else(|| UNREAD.to_owned());
            self.unread.get_or_insert(of_logs(reason));
        }
        self.defects = self.defects.saturating_add(log.defects);
    }
}

/// The reason where no node names a file.
const UNREAD: &str = "no node has read the file";

/// Judges a file of which `captures` came, and whose bytes should have the root `expected`.
pub(crate) fn judge_reading(
    name: &str,
    expected: Option<Root>,
    report: &FileReport,
    captures: u64,
) -> Judgement {
    if let Some(reason) = &report.unread {
        return Judgement::Unread(reason.clone());
    }
    if let Some(reason) = &report.damaged {
        return Judgement::Damaged(reason.clone());
    }
    let Some(root) = report.root else {
        return Judgement::Unread(UNREAD.to_owned());
    };
    if expected.is_some_and(|expected| expected != root) {
        return Judgement::Damaged(format!(
            "the node read content with root {root}, and the archive has other content under this name"
        ));
    }
    match &report.foreign {
        // By its name it should have captures.
        Some(reason) if captures == 0 && is_archive_name(name) => Judgement::Failed(reason.clone()),
        _ => Judgement::Extracted {
            defects: report.defects,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(failures: &[(FailureKind, Option<u64>)]) -> FileReport {
        let mut report = FileReport {
            root: Some(Root::from_bytes([1; 32])),
            ..FileReport::default()
        };
        for (kind, offset) in failures {
            report.add_failure(*kind, *offset, format!("{kind} {offset:?}"));
        }
        report
    }

    /// Fails if a file is tried again although that cannot help, or is taken for whole although its bytes were not
    /// read.
    #[test]
    fn failures_that_may_pass_are_tried_again() {
        let root = Some(Root::from_bytes([1; 32]));
        let check = |name: &str, failures: &[_], captures, expected: Result<u64, &str>| {
            let judged = judge_reading(name, root, &report(failures), captures);
            let expected = match expected {
                Ok(defects) => Judgement::Extracted { defects },
                Err(reason) if reason.starts_with("format") => Judgement::Failed(reason.to_owned()),
                Err(reason) if reason.starts_with("damaged") => {
                    Judgement::Damaged(reason.to_owned())
                }
                Err(reason) => Judgement::Unread(reason.to_owned()),
            };
            assert_eq!(judged, expected, "{name} {failures:?}");
        };
        check("a.warc", &[], 7, Ok(0));
        check("a.warc", &[], 0, Ok(0));
        check(
            "a.warc",
            &[(FailureKind::Job, Some(5)), (FailureKind::Format, Some(9))],
            7,
            Ok(2),
        );
        check(
            "a.warc",
            &[(FailureKind::Damaged, Some(5))],
            7,
            Err("damaged Some(5)"),
        );
        check(
            "a.warc",
            &[(FailureKind::Unread, None)],
            0,
            Err("unread None"),
        );
        let both = [(FailureKind::Damaged, Some(5)), (FailureKind::Unread, None)];
        check("a.warc", &both, 7, Err("unread None"));
        check(
            "a.warc",
            &[(FailureKind::Format, None)],
            0,
            Err("format None"),
        );
        check("a.warc", &[(FailureKind::Format, None)], 3, Ok(0));
        check("notes.txt", &[(FailureKind::Format, None)], 0, Ok(0));
        let other = judge_reading("a.warc", Some(Root::from_bytes([2; 32])), &report(&[]), 7);
        assert!(matches!(other, Judgement::Damaged(reason) if reason.contains("other content")));
        let unknown = judge_reading("a.warc", None, &report(&[]), 7);
        assert_eq!(unknown, Judgement::Extracted { defects: 0 });
        let nobody = judge_reading("a.warc", root, &FileReport::default(), 0);
        assert_eq!(
            nobody,
            Judgement::Unread("no node has read the file".to_owned())
        );
    }

    /// Fails if duplicates that only a log names are left out of the index without a word.
    #[test]
    fn unread_log_is_a_failure_of_its_file() {
        let name = "1-metadata-1.arc";
        let judged = |log: FileReport, problem| {
            let mut report = report(&[]);
            report.add_log(log, problem);
            judge_reading(name, None, &report, 5)
        };
        let lines = report(&[(FailureKind::Job, Some(9))]);
        assert_eq!(
            judged(lines.clone(), None),
            Judgement::Extracted { defects: 1 }
        );
        let why = |reason: &str| format!("its crawl logs: {reason}");
        let cancelled = Judgement::Damaged(why("it was cancelled"));
        assert_eq!(judged(lines, Some("it was cancelled")), cancelled);
        let damaged = Judgement::Damaged(why("damaged None"));
        assert_eq!(
            judged(report(&[(FailureKind::Damaged, None)]), None),
            damaged
        );
        let unread = Judgement::Unread(why("no node has read the file"));
        assert_eq!(judged(FileReport::default(), None), unread);
    }
}
