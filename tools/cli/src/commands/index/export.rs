//! `holdfast index export`: captures as sorted lines, in one file or in several of a size.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use archive_daemon::ByteSize;
use bytes::{Buf, Bytes};
use clap::Args;
use index_client::ExportFormat;
use serde::Serialize;
use tools_terminal::context::CommandContext;
use tools_terminal::exit::{Exit, Failure};
use tools_terminal::save::{Partial, is_stdout};
use tools_terminal::session::Session;

use super::{named_set, without_settings};

/// Export captures as an index file
///
/// Writes sorted lines, each of them once. Needs the role operator. The exit code is 0 only if the export is whole.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  holdfast index export -o captures.cdxj
  holdfast index export --format cdx11 --set old -o - | gzip > old.cdx.gz
  holdfast index export --format 'N b a m s k r V g' --max-size '1 GB' -o captures.cdx")]
pub(super) struct Export {
    /// The format of the lines: cdxj, cdx9, cdx11, cdx14, or the letters of a CDX legend
    #[arg(long, value_name = "FORMAT", default_value = "cdxj")]
    format: ExportFormat,
    /// Only the captures of this imported set [default: all captures]; with this verb, --set does not override a
    /// setting
    #[arg(long, value_name = "NAME")]
    set: Option<String>,
    /// Largest size of one file; the next one is begun before it: PATH.0001, PATH.0002 and so on, each with a header
    #[arg(long, value_name = "SIZE")]
    max_size: Option<ByteSize>,
    /// Output file; `-` is stdout
    #[arg(short, long, value_name = "PATH")]
    output: PathBuf,
    /// Replace the output files if they exist
    #[arg(long)]
    force: bool,
}

/// The document about an export.
#[derive(Serialize)]
struct ExportDocument {
    lines: u64,
    bytes: u64,
    files: Vec<PathBuf>,
}

impl Export {
    pub(super) async fn run(self, context: &CommandContext) -> Result<Exit, Failure> {
        let is_stdout = is_stdout(&self.output, &context.output)?;
        if is_stdout && self.max_size.is_some() {
            return Err(Failure::wrong_usage(
                "--max-size makes several files; name them with -o PATH",
            ));
        }
        if self.max_size.is_some_and(ByteSize::is_zero) {
            return Err(Failure::wrong_usage("--max-size must be more than 0"));
        }
        let (set, global) = match &self.set {
            Some(text) => {
                let (set, global) = named_set(text, context)?;
                (Some(set), global)
            }
            None => (None, without_settings(context)),
        };
        let mut parts = PartFiles {
            output: &self.output,
            limit: self.max_size.map(ByteSize::bytes),
            force: self.force,
            header: Bytes::new(),
            open: None,
            whole: Vec::new(),
            bytes: 0,
            is_stdout,
        };
        // A name that is taken is refused before anything is asked.
        parts.begin()?;
        let session = Session::open(&global)?;
        let mut exported = session
            .index()?
            .export_lines(&self.format, set.as_ref())
            .await?;
        while let Some(lines) = exported.next().await? {
            parts.write(lines)?;
        }
        let bytes = parts.bytes;
        let files = parts.finish()?;
        let lines = exported.line_count().unwrap_or(0);
        if context.output.is_json() {
            context.output.write_document(&ExportDocument {
                lines,
                bytes,
                files,
            })?;
        } else if !is_stdout {
            let count = files.len();
            context
                .output
                .write_line(&format!("{lines} lines in {count} file(s)"))?;
        }
        Ok(Exit::Done)
    }
}

/// The files of an export. None bears its name before all are whole.
struct PartFiles<'a> {
    output: &'a Path,
    limit: Option<u64>,
    force: bool,
    /// The header line, which each file begins with.
    header: Bytes,
    open: Option<OpenPart>,
    whole: Vec<(PathBuf, Partial)>,
    bytes: u64,
    is_stdout: bool,
}

struct OpenPart {
    path: PathBuf,
    file: Option<Partial>,
    size: u64,
}

impl PartFiles<'_> {
    fn begin(&mut self) -> Result<(), Failure> {
        let number = self.whole.len() + 1;
        let mut name = OsString::from(self.output);
        if self.limit.is_some() {
            name.push(format!(".{number:04}"));
        }
        let path = PathBuf::from(name);
        let file = if self.is_stdout {
            None
        } else {
            Some(Partial::create(&path, self.force)?)
        };
        self.open = Some(OpenPart {
            path,
            file,
            size: 0,
        });
        let header = self.header.clone();
        self.put(&header)
    }

    /// Takes whole lines.
    fn write(&mut self, mut lines: Bytes) -> Result<(), Failure> {
        let is_first = self.bytes == 0;
        if is_first && lines.starts_with(b" CDX ") {
            let end = lines.iter().position(|byte| *byte == b'\n');
            let end = end.map_or(lines.len(), |at| at + 1);
            self.header = lines.split_to(end);
            let header = self.header.clone();
            self.put(&header)?;
        }
        let Some(limit) = self.limit else {
            return self.put(&lines);
        };
        while !lines.is_empty() {
            let size = self.open.as_ref().map_or(0, |part| part.size);
            let room = usize::try_from(limit.saturating_sub(size)).unwrap_or(usize::MAX);
            let is_empty = size <= self.header.len() as u64;
            match end_within(&lines, room, is_empty) {
                0 => {
                    self.close();
                    self.begin()?;
                }
                end => {
                    let some = lines.slice(..end);
                    self.put(&some)?;
                    lines.advance(end);
                }
            }
        }
        Ok(())
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let Some(part) = &mut self.open else {
            return Ok(());
        };
        part.size += bytes.len() as u64;
        self.bytes += bytes.len() as u64;
        if let Some(file) = &mut part.file {
            return file.write(bytes);
        }
        let written = std::io::stdout().write_all(bytes);
        written.map_err(|error| Failure::output_failed(&error))
    }

    fn close(&mut self) {
        if let Some(OpenPart {
            path,
            file: Some(file),
            ..
        }) = self.open.take()
        {
            self.whole.push((path, file));
        }
    }

    /// Gives all files their names.
    fn finish(mut self) -> Result<Vec<PathBuf>, Failure> {
        self.close();
        let mut files = Vec::new();
        for (path, file) in self.whole {
            file.keep()?;
            files.push(path);
        }
        Ok(files)
    }
}

/// Returns the length of the whole lines that fit; a line that is longer than an empty file may be fits all the same.
fn end_within(lines: &[u8], room: usize, is_empty: bool) -> usize {
    if lines.len() <= room {
        return lines.len();
    }
    let fits = &lines[..room];
    match fits.iter().rposition(|byte| *byte == b'\n') {
        Some(at) => at + 1,
        None if is_empty => {
            let end = lines.iter().position(|byte| *byte == b'\n');
            end.map_or(lines.len(), |at| at + 1)
        }
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a line is cut, or a file is larger than it may be although its lines are shorter.
    #[test]
    fn whole_lines_fit_or_stand_alone() {
        let check = |lines: &str, room, is_empty, expected| {
            assert_eq!(end_within(lines.as_bytes(), room, is_empty), expected);
        };
        check("ab\ncd\n", 6, true, 6);
        check("ab\ncd\n", 5, true, 3);
        check("ab\ncd\n", 3, false, 3);
        check("ab\ncd\n", 2, false, 0);
        check("ab\ncd\n", 2, true, 3);
        check("ab", 1, true, 2);
        check("", 0, false, 0);
    }

    /// Fails if a part lacks the header, or lines are lost between parts.
    #[test]
    fn parts_begin_with_the_header() {
        let directory = tempfile::tempdir().unwrap();
        let output = directory.path().join("all.cdx");
        let mut parts = PartFiles {
            output: &output,
            limit: Some(16),
            force: false,
            header: Bytes::new(),
            open: None,
            whole: Vec::new(),
            bytes: 0,
            is_stdout: false,
        };
        parts.begin().unwrap();
        let lines = b" CDX N b\na 1\nb 2\nc 3\na-very-long-line\n";
        parts.write(Bytes::from_static(lines)).unwrap();
        let files = parts.finish().unwrap();
        let texts = files
            .iter()
            .map(|path| std::fs::read_to_string(path).unwrap());
        let texts: Vec<_> = texts.collect();
        let header = " CDX N b\n";
        let expected = ["a 1\n", "b 2\n", "c 3\n", "a-very-long-line\n"];
        assert_eq!(texts, expected.map(|line| format!("{header}{line}")));
        assert!(files[0].ends_with("all.cdx.0001"), "{files:?}");
    }
}
