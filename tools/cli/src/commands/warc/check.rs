//! `holdfast warc check`: archive files held against the standard.

use std::io::Write;
use std::path::{Path, PathBuf};

use archive_formats::warc::validate::of_defect;
use archive_formats::warc::{RuleSeverity, Validator, Violation, WarcReader};
use clap::Args;
use serde::Serialize;
use tools_terminal::context::CommandContext;
use tools_terminal::exit::{Exit, Failure};
use tools_terminal::output::tell_user;

use super::{each, open_input, read_step};

/// Check WARC files against the standard (ISO 28500:2009 and 2017)
///
/// Prints each rule that is broken, with file, offset, record and clause. What the standard only advises against is a
/// warning. Digests of known algorithms are compared with the bytes. ARC files are checked for damage and wrong lengths
/// only. With --json, prints one JSON object for each violation, and one for each file that was read, with `records`,
/// `errors` and `warnings`, each on a line of its own. The exit code is 1 if a file does not follow the standard.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  holdfast warc check *.warc.gz
  holdfast warc check --json crawl.warc.gz | jq -r 'select(.clause).clause' | sort | uniq -c")]
pub(crate) struct Check {
    /// Archive files; `-` is stdin
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
}

#[derive(Serialize)]
struct Line<'a> {
    file: &'a str,
    offset: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    record: Option<&'a str>,
    severity: &'static str,
    rule: &'static str,
    clause: &'a str,
    found: &'a str,
}

/// The verdict on a file.
#[derive(Serialize)]
struct Total<'a> {
    file: &'a str,
    records: u64,
    errors: u64,
    warnings: u64,
    /// Defects that are not listed, because there are too many.
    omitted: u64,
}

impl Check {
    pub(super) fn run(self, context: &CommandContext) -> Result<Exit, Failure> {
        let is_json = context.output.is_json();
        let mut out = context.output.writer();
        let exit = each(&self.files, |path| {
            let mut report = Report {
                path,
                is_json,
                out: &mut out,
                errors: 0,
                warnings: 0,
            };
            report.check()
        })?;
        out.flush()
            .map_err(|error| Failure::output_failed(&error))?;
        Ok(exit)
    }
}

/// The report about one file.
struct Report<'a, W> {
    path: &'a Path,
    is_json: bool,
    out: &'a mut W,
    errors: u64,
    warnings: u64,
}

impl<W: Write> Report<'_, W> {
    fn check(&mut self) -> Result<Exit, Failure> {
        let path = self.path;
        let mut reader = WarcReader::new(open_input(path)?);
        let mut validator = Validator::default();
        let mut records = 0_u64;
        while let Some(record) = read_step(path, reader.next_record())? {
            records += 1;
            for violation in read_step(path, validator.check_record(record))? {
                self.say(&violation)?;
            }
        }
        for violation in reader.take_defects().iter().filter_map(of_defect) {
            self.say(&violation)?;
        }
        for violation in validator.finish_file() {
            self.say(&violation)?;
        }
        let more = match reader.omitted_defects() {
            0 => String::new(),
            omitted => format!(", and {omitted} defects that are not listed"),
        };
        if validator.omitted_violations() > 0 {
            tell_user(&format!(
                "{}: {} record IDs and segments were not compared with others: there are too many",
                path.display(),
                validator.omitted_violations()
            ));
        }
        tell_user(&format!(
            "{}: {records} records, {} errors, {} warnings{more}",
            path.display(),
            self.errors,
            self.warnings
        ));
        if self.is_json {
            let total = Total {
                file: &path.display().to_string(),
                records,
                errors: self.errors,
                warnings: self.warnings,
                omitted: reader.omitted_defects(),
            };
            self.line(&total)?;
        }
        Ok(if self.errors == 0 && more.is_empty() {
            Exit::Done
        } else {
            Exit::Failed
        })
    }

    fn say(&mut self, violation: &Violation) -> Result<(), Failure> {
        let severity = match violation.severity {
            RuleSeverity::Error => {
                self.errors += 1;
                "error"
            }
            RuleSeverity::Warning => {
                self.warnings += 1;
                "warning"
            }
        };
        let file = self.path.display().to_string();
        let line = Line {
            file: &file,
            offset: violation.offset,
            record: violation.record.as_deref(),
            severity,
            rule: violation.rule.name(),
            clause: &violation.clause,
            found: &violation.words,
        };
        if self.is_json {
            return self.line(&line);
        }
        let record = line
            .record
            .map_or_else(String::new, |record| format!(" {record}"));
        let written = writeln!(
            self.out,
            "{file}: offset {}{record}: {severity}: {} ({}): {}",
            line.offset, line.rule, line.clause, line.found
        );
        written.map_err(|error| Failure::output_failed(&error))
    }

    fn line(&mut self, line: &impl Serialize) -> Result<(), Failure> {
        serde_json::to_writer(&mut *self.out, line)
            .map_err(std::io::Error::from)
            .and_then(|()| self.out.write_all(b"\n"))
            .map_err(|error| Failure::output_failed(&error))
    }
}
