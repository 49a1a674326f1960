//! The restore from an export.

use std::path::{Path, PathBuf};

use archive_proof::TrustFile;
use jiff::Timestamp;

use super::lines::{ExportLines, RestoreLine};
use super::{
    PartialRestore, RestoreError, RestoreFindings, RestoreTarget, refuse_if_there, restored_line,
    trust_file,
};
use crate::admin::{AuditLine, NodeRow};
use crate::audit_log::LogWalk;
use crate::export::{ExportLine, Tables};

/// The result of restoring from an export.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FromExport {
    /// The time when the export was made; `None` if no header was read.
    pub time: Option<Timestamp>,
    /// The number of files that can be believed.
    pub files: u64,
    /// The number of nodes that can be believed.
    pub nodes: u64,
    /// The number of lines of the trail that can be believed.
    pub audit: u64,
    /// The number of rows of the other tables that can be believed: anomalies, requests, replicas, volumes, drains.
    pub rows: u64,
    /// The number of files that a depositor had begun to store and no replica had: they are stored again by their
    /// depositors.
    pub intents: u64,
    /// The lines that cannot be believed, by their number.
    pub damaged: RestoreFindings,
    /// Copies that were removed after the export, as the audit log says that is still there: they stay removed.
    pub removed: RestoreFindings,
    /// Whether admin data were written.
    pub written: bool,
}

/// Restores the admin data of a stopped repository. A damaged export is not restored, unless `skip_damaged` says that
/// what can be believed of it is better than nothing.
///
/// # Errors
/// [`RestoreError`] where there are admin data already, where the export or the log that is still there cannot be read,
/// and where the admin data cannot be written.
pub fn from_export(
    target: RestoreTarget<'_>,
    export: &Path,
    skip_damaged: bool,
    now: Timestamp,
) -> Result<FromExport, RestoreError> {
    let (mut report, begun) = begin_export(target, export, skip_damaged, now)?;
    if let Some(begun) = begun {
        begun.restoring.finish_restore(now)?;
        report.written = true;
    }
    Ok(report)
}

/// Reads an export against the audit log in `data`, restores nothing, and returns which of its lines can be believed.
/// For the fuzz targets.
///
/// # Errors
///
/// [`RestoreError`] if the export cannot be read, or is not one of this archive.
#[doc(hidden)]
pub fn judge_export(
    data: &Path,
    export: &Path,
    trust: &TrustFile,
    archive: &str,
) -> Result<FromExport, RestoreError> {
    let source = Source {
        data,
        archive,
        trust,
        export,
    };
    source.read(&mut |_| Ok(()))
}

/// Reads one line of an export and writes it again. For the fuzz targets.
///
/// # Errors
///
/// [`serde_json::Error`] if the line is not one of an export.
#[doc(hidden)]
pub fn rewritten(line: &[u8]) -> Result<Vec<u8>, serde_json::Error> {
    serde_json::to_vec(&serde_json::from_slice::<ExportLine>(line)?)
}

/// Restores all of an export without finishing the admin data, so that more can be added. Returns no restore if the
/// export is damaged: nothing was written.
///
/// # Errors
/// The errors of [`from_export`].
pub fn begin_export(
    target: RestoreTarget<'_>,
    export: &Path,
    skip_damaged: bool,
    now: Timestamp,
) -> Result<(FromExport, Option<PartialRestore>), RestoreError> {
    refuse_if_there(target.data)?;
    let trust = trust_file(target.trust)?;
    let source = Source {
        data: target.data,
        archive: target.archive,
        trust: &trust,
        export,
    };
    let mut report = source.read(&mut |_| Ok(()))?;
    if report.damaged.count > 0 && !skip_damaged {
        return Ok((report, None));
    }
    let is_whole = report.damaged.count == 0;
    let mut begun = PartialRestore::begin_restore(target.data)?;
    // The export is read again: a change since the first reading shows as damage.
    let loaded = source.load(&mut begun, now, is_whole).and_then(|again| {
        if again == report {
            return begun.withdraw_logged(target.archive, now, &mut report.removed);
        }
        Err(RestoreError::Export {
            path: export.to_owned(),
            why: "the export was changed while it was read; nothing was written".to_owned(),
        })
    });
    if let Err(error) = loaded {
        begun.restoring.abandon_restore(target.data)?;
        return Err(error);
    }
    Ok((report, Some(begun)))
}

struct Source<'a> {
    data: &'a Path,
    archive: &'a str,
    trust: &'a TrustFile,
    export: &'a Path,
}

impl Source<'_> {
    /// Reads the export once, and gives `take` the lines that can be believed.
    fn read(
        &self,
        take: &mut dyn FnMut(BelievedLine) -> Result<(), RestoreError>,
    ) -> Result<FromExport, RestoreError> {
        let mut lines = ExportLines::open(self.export, self.trust, self.archive)?;
        let mut report = FromExport::default();
        let mut trail = Trail {
            log: Some(LogWalk::open(&self.data.join("audit"))?),
            next: 0,
        };
        let foreign = || RestoreError::Export {
            path: PathBuf::from(self.export),
            why: "it does not begin as an export of this archive".to_owned(),
        };
        while let Some(read) = lines.next() {
            match read {
                RestoreLine::Header(header) => report.time = Some(header.time),
                RestoreLine::End => {}
                RestoreLine::Bad(why) => report
                    .damaged
                    .add_finding(format!("line {}", lines.number), why),
                _ if report.time.is_none() => return Err(foreign()),
                RestoreLine::File(row) => {
                    if row.admission.is_none() {
                        report.intents += 1;
                    }
                    report.files += 1;
                    take(BelievedLine::File(row))?;
                }
                RestoreLine::Node(node) => {
                    report.nodes += 1;
                    take(BelievedLine::Node(node))?;
                }
                RestoreLine::Row(row) => {
                    report.rows += 1;
                    take(BelievedLine::Row(row))?;
                }
                RestoreLine::Audit(number, line) => {
                    let lost = number.checked_sub(trail.next);
                    // Each line that is lost was found to be damaged, and there cannot be more of them.
                    match lost.filter(|lost| *lost <= report.damaged.count) {
                        None => report.damaged.add_finding(
                            format!("line {}", lines.number),
                            format!("line {number} of the trail is out of order"),
                        ),
                        Some(lost) => {
                            for gone in number - lost..number {
                                let line = AuditLine {
                                    what: "this line was damaged in the export".to_owned(),
                                    who: format!("repository/{}", self.archive),
                                    file: None,
                                    at: line.at,
                                };
                                trail.next = gone + 1;
                                take(BelievedLine::Line(gone, line))?;
                            }
                            trail.compare(number, &line)?;
                            report.audit += 1;
                            take(BelievedLine::Line(number, line))?;
                        }
                    }
                }
            }
        }
        if report.time.is_none() {
            return Err(foreign());
        }
        Ok(report)
    }

    /// Reads it again, and writes.
    fn load(
        &self,
        begun: &mut PartialRestore,
        now: Timestamp,
        is_whole: bool,
    ) -> Result<FromExport, RestoreError> {
        let PartialRestore {
            restoring, next, ..
        } = begun;
        let sure = *next;
        let tables = Tables::open(restoring.split_parts().0)?;
        let report = self.read(&mut |taken| {
            match taken {
                // If the export was changed, nothing vouches for a file without a signature.
                BelievedLine::File(row) if row.admission.is_none() && !is_whole => {}
                BelievedLine::File(row) => restoring.restore_file(&row)?,
                BelievedLine::Node(node) => {
                    let retired = node.retired;
                    restoring.restore_node(node.replica, node.id, &NodeRow { retired })?;
                }
                // Nor does anything vouch for a pending act, which somebody may have written into the export.
                BelievedLine::Row(row) if row.is_pending_act() && !is_whole => {}
                BelievedLine::Row(row) => {
                    let (_, load) = restoring.split_parts();
                    tables.load_row(load, *row)?;
                }
                BelievedLine::Line(number, line) if number >= sure => {
                    restoring.restore_line(number, &line)?;
                    *next = number + 1;
                }
                BelievedLine::Line(..) => {}
            }
            Ok(())
        })?;
        let what = format!(
            "admin data restored from an export of {}: {} files, {} damaged lines left out",
            report.time.map(|time| time.to_string()).unwrap_or_default(),
            report.files,
            report.damaged.count
        );
        begun.add_line(&restored_line(self.archive, now, what))?;
        Ok(report)
    }
}

/// The lines that can be believed.
enum BelievedLine {
    File(Box<crate::admin::AdminRow>),
    Node(crate::export::ExportNode),
    Row(Box<crate::export::TableRow>),
    Line(u64, AuditLine),
}

/// The log that is still there beside the trail of the export: where both have a line, it is the same.
struct Trail {
    log: Option<LogWalk>,
    next: u64,
}

impl Trail {
    fn compare(&mut self, number: u64, line: &AuditLine) -> Result<(), RestoreError> {
        self.next = number + 1;
        while let Some(log) = &mut self.log {
            let Some(entry) = log.next().transpose()? else {
                self.log = None;
                break;
            };
            if entry.number < number {
                continue;
            }
            if entry.line != *line {
                return Err(log
                    .log_changed("the export has another line of this number")
                    .into());
            }
            break;
        }
        Ok(())
    }
}
