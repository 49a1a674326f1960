//! `holdfast warc list`: the records of archive files.

use std::io::Write;
use std::path::{Path, PathBuf};

use archive_formats::warc::WarcReader;
use clap::Args;
use serde::Serialize;
use tools_terminal::context::CommandContext;
use tools_terminal::exit::{Exit, Failure};

use super::{FileReport, each, open_input, read_step};

/// List the records of WARC and ARC files
///
/// Offset and length are those in the file: in a compressed file, those of the gzip member. A record that is damaged,
/// or shares its member with others, has no length. With --json, prints one JSON object for each record, each on a line
/// of its own. The exit code is 1 if a file is damaged.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  holdfast warc list crawl.warc.gz
  holdfast warc list --json *.warc.gz | jq 'select(.type == \"revisit\").url'")]
pub(crate) struct List {
    /// Archive files; `-` is stdin
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
}

/// The line of a record.
#[derive(Serialize)]
struct Line<'a> {
    file: &'a str,
    offset: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    length: Option<u64>,
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    date: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    media_type: Option<String>,
    block: u64,
}

impl List {
    pub(super) fn run(self, context: &CommandContext) -> Result<Exit, Failure> {
        let is_json = context.output.is_json();
        let mut out = context.output.writer();
        if !is_json {
            let header = format!(
                "{:>12} {:>12} {:<12} {:<20} URL",
                "OFFSET", "LENGTH", "TYPE", "DATE"
            );
            writeln!(out, "{header}").map_err(|error| Failure::output_failed(&error))?;
        }
        let exit = each(&self.files, |path| one(path, is_json, &mut out))?;
        out.flush()
            .map_err(|error| Failure::output_failed(&error))?;
        Ok(exit)
    }
}

fn one(path: &Path, is_json: bool, out: &mut impl Write) -> Result<Exit, Failure> {
    let mut report = FileReport::new(path);
    let mut reader = WarcReader::new(open_input(path)?);
    let file = path.display().to_string();
    while let Some(record) = read_step(path, reader.next_record())? {
        let header = record.header();
        let text = |name| header.text_of(name).map(|text| text.trim().to_owned());
        let mut line = Line {
            file: &file,
            offset: 0,
            length: None,
            kind: record.kind().name(),
            id: text("WARC-Record-ID"),
            date: text("WARC-Date"),
            url: header.read_uri("WARC-Target-URI").map(String::from),
            media_type: text("Content-Type"),
            block: 0,
        };
        let end = read_step(path, record.read_end())?;
        (line.offset, line.length, line.block) = (end.offset, end.length, end.block_length);
        let written = if is_json {
            serde_json::to_writer(&mut *out, &line)
                .map_err(std::io::Error::from)
                .and_then(|()| out.write_all(b"\n"))
        } else {
            let dash = || "-".to_owned();
            writeln!(
                out,
                "{:>12} {:>12} {:<12} {:<20} {}",
                line.offset,
                line.length.map_or_else(dash, |length| length.to_string()),
                line.kind,
                line.date.unwrap_or_else(dash),
                line.url.unwrap_or_else(dash),
            )
        };
        written.map_err(|error| Failure::output_failed(&error))?;
        report.say_defects(&end.defects);
    }
    report.skip_rest(&mut reader);
    Ok(report.exit_code())
}
