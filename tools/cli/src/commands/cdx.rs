//! `holdfast cdx`: a sorted index of archive files on this machine.

use std::io::{self, Write};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::thread;

use archive_daemon::ByteSize;
use archive_formats::cdx::{Capture, Exchanges, Format, SortError, Sorter, extract_capture};
use archive_formats::warc::WarcReader;
use clap::{Args, ValueEnum};
use parking_lot::Mutex;
use serde::Serialize;
use tools_terminal::context::CommandContext;
use tools_terminal::exit::{Exit, Failure};
use tools_terminal::output::tell_user;
use tools_terminal::save::{Partial, is_stdout};

use super::warc::{FileReport, open_input, read_step};

/// The number of bytes that a thread gathers before it hands its lines over.
const HANDED_OVER: usize = 256 * 1024;

/// Make a sorted index of WARC and ARC files
///
/// Writes one line for each response and revisit, and for each resource and metadata record that has a URL of its own.
/// Several files are read at once, and lines are sorted bytewise in bounded memory. Damage in a file is reported with
/// its offset, and reading continues after it; the exit code is then 1, because the index may lack what is damaged.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  holdfast cdx *.warc.gz > index.cdxj
  holdfast cdx --format cdx11 -o index.cdx crawl/*.warc.gz
  holdfast cdx --post-append crawl/*.warc.gz > index.cdxj
  holdfast get a.warc.gz -o - | holdfast cdx -")]
pub(crate) struct Cdx {
    /// Archive files: WARC or ARC, plain, gzip or zstd; `-` is stdin
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// The format of the lines
    #[arg(long, value_enum, default_value_t = Form::Cdxj)]
    format: Form,
    /// Include posted data in the keys of answers to POST and PUT
    ///
    /// The request has to stand next to its answer in the file, and one of them has to name the other in
    /// WARC-Concurrent-To.
    #[arg(short, long)]
    post_append: bool,
    /// Output file; `-` is stdout
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    output: PathBuf,
    /// Replace the output file if it exists
    #[arg(long)]
    force: bool,
    /// Number of files to read at once [default: one for each core]
    #[arg(long, value_name = "COUNT")]
    jobs: Option<NonZero<usize>>,
    /// Approximate memory for sorting; lines beyond it go to temporary files
    #[arg(long, value_name = "SIZE", default_value = "256 MB")]
    memory: ByteSize,
    /// Directory of temporary files [default: that of the system]
    #[arg(long, value_name = "DIR")]
    temporary: Option<PathBuf>,
}

/// The formats of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// Key, timestamp and a JSON object
    Cdxj,
    /// Eleven fields, with a header line
    Cdx11,
    /// Nine fields, with a header line
    Cdx9,
}

impl Form {
    fn format(self) -> Format {
        match self {
            Self::Cdxj => Format::Cdxj,
            Self::Cdx11 => Format::cdx11(),
            Self::Cdx9 => Format::cdx9(),
        }
    }
}

/// The result of writing an index, for programs.
#[derive(Serialize)]
struct CdxReport<'a> {
    index: &'a Path,
    /// The number of files that were named.
    files: usize,
    /// `done`, or what came in between: then the index may lack something.
    exit: Exit,
}

impl Cdx {
    pub(crate) fn run(self, context: &CommandContext) -> Result<Exit, Failure> {
        if context.output.is_json() && self.output == Path::new("-") {
            return Err(Failure::wrong_usage(
                "an index is lines, and no JSON document; name a file for it with -o, or leave --json out (--format cdxj \
                 has JSON in its lines)",
            ));
        }
        let format = self.format.format();
        let temporary = self.temporary.clone().unwrap_or_else(std::env::temp_dir);
        let memory = usize::try_from(self.memory.bytes()).unwrap_or(usize::MAX);
        // Before anything is read: a name that is taken is said at once.
        let file = if is_stdout(&self.output, &context.output)? {
            None
        } else {
            Some(Partial::create(&self.output, self.force)?)
        };
        let sorter = Mutex::new(Sorter::new(&temporary, memory));
        let exit = Exit::of_all(self.index(&format, &sorter)?);
        let sorter = sorter.into_inner();
        match file {
            None => write(sorter, &format, &mut context.output.writer())?,
            Some(file) => {
                write(sorter, &format, &mut io::BufWriter::new(file.writer()?))?;
                file.keep()?;
            }
        }
        if context.output.is_json() {
            context.output.write_document(&CdxReport {
                index: &self.output,
                files: self.files.len(),
                exit,
            })?;
        }
        Ok(exit)
    }

    /// Reads all files, and says how each ended.
    fn index(&self, format: &Format, sorter: &Mutex<Sorter>) -> Result<Vec<Exit>, Failure> {
        let cores = || thread::available_parallelism().map_or(1, NonZero::get);
        let jobs = self
            .jobs
            .map_or_else(cores, NonZero::get)
            .min(self.files.len());
        let left = Mutex::new(self.files.iter());
        let next = || left.lock().next();
        let work = || -> Result<Vec<Exit>, Failure> {
            let mut exits = Vec::new();
            while let Some(path) = next() {
                exits.push(match self.one(path, format, sorter) {
                    Ok(exit) => exit,
                    Err(Stop::File(failure)) => {
                        tell_user(&failure.message);
                        failure.exit
                    }
                    Err(Stop::Sort(error)) => {
                        while next().is_some() {}
                        return Err(Failure::because_failed(format!(
                            "{error}; choose another place with --temporary"
                        )));
                    }
                });
            }
            Ok(exits)
        };
        let ends: Vec<_> = thread::scope(|scope| {
            let threads: Vec<_> = (0..jobs).map(|_| scope.spawn(work)).collect();
            let ends = threads.into_iter().map(thread::ScopedJoinHandle::join);
            ends.map(|end| end.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect()
        });
        let exits: Result<Vec<_>, _> = ends.into_iter().collect();
        Ok(exits?.concat())
    }

    /// Reads one file, and hands over its lines.
    fn one(&self, path: &Path, format: &Format, sorter: &Mutex<Sorter>) -> Result<Exit, Stop> {
        let file = open_input(path).map_err(Stop::File)?;
        let name = path.file_name().map_or_else(
            || path.display().to_string(),
            |name| name.to_string_lossy().into_owned(),
        );
        let mut report = FileReport::new(path);
        let mut lines = String::new();
        let mut exchanges = self.post_append.then(|| Exchanges::new(name.as_str()));
        let mut reader = WarcReader::new(file);
        loop {
            let step = reader.next_record().and_then(|record| {
                record
                    .map(|record| match &mut exchanges {
                        Some(exchanges) => exchanges.read_record(record),
                        None => extract_capture(record, &name),
                    })
                    .transpose()
            });
            let Some(extracted) = read_step(path, step).map_err(Stop::File)? else {
                break;
            };
            report.say_defects(&extracted.end.defects);
            if let Some(why) = extracted.omitted {
                report.say_line(&format!(
                    "offset {}: not in the index: {why}",
                    extracted.end.offset
                ));
            }
            if let Some(capture) = extracted.capture {
                push(&mut lines, format, &capture);
            }
            if lines.len() >= HANDED_OVER {
                hand_over(&mut lines, sorter).map_err(Stop::Sort)?;
            }
        }
        if let Some(capture) = exchanges.and_then(|mut exchanges| exchanges.finish_exchange()) {
            push(&mut lines, format, &capture);
        }
        report.skip_rest(&mut reader);
        hand_over(&mut lines, sorter).map_err(Stop::Sort)?;
        Ok(report.exit_code())
    }
}

/// The reason why the reading of a file ends.
enum Stop {
    /// The file cannot be read. The other files are read all the same.
    File(Failure),
    /// Nothing can be sorted any more.
    Sort(SortError),
}

fn push(lines: &mut String, format: &Format, capture: &Capture) {
    lines.push_str(&format.write_line(capture));
    lines.push('\n');
}

fn hand_over(lines: &mut String, sorter: &Mutex<Sorter>) -> Result<(), SortError> {
    let mut sorter = sorter.lock();
    for line in lines.lines() {
        sorter.push(line.as_bytes())?;
    }
    lines.clear();
    Ok(())
}

fn write(sorter: Sorter, format: &Format, out: &mut impl Write) -> Result<(), Failure> {
    if let Some(header) = format.header() {
        writeln!(out, "{header}").map_err(|error| Failure::output_failed(&error))?;
    }
    sorter.finish(out).map_err(|error| match error {
        SortError::Output(error) => Failure::output_failed(&error),
        error @ (SortError::Temporary { .. } | SortError::LineEnd { .. }) => {
            Failure::because_failed(format!("{error}; choose another place with --temporary"))
        }
    })?;
    out.flush().map_err(|error| Failure::output_failed(&error))
}
