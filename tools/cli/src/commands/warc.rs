//! `holdfast warc`: archive files on this machine, without an archive.

mod cat;
mod check;
mod list;
mod recompress;

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use archive_formats::defect::Defect;
use archive_formats::warc::{ReadRecordError, WarcReader};
use clap::Subcommand;
use tools_terminal::context::CommandContext;
use tools_terminal::exit::{Exit, Failure};
use tools_terminal::output::tell_user;

/// Look into WARC and ARC files on this machine
///
/// The files may be plain, gzip or zstd, which is known from their first bytes and not from their names; `-` is stdin.
/// Damage is reported with its offset, and reading continues after it.
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  holdfast warc list crawl.warc.gz
  holdfast warc check *.warc.gz")]
pub(crate) enum Warc {
    List(list::List),
    Check(check::Check),
    Cat(cat::Cat),
    Recompress(recompress::Recompress),
}

impl Warc {
    pub(crate) fn run(self, context: &CommandContext) -> Result<Exit, Failure> {
        match self {
            Self::List(list) => list.run(context),
            Self::Check(check) => check.run(context),
            Self::Cat(cat) => cat.run(context),
            Self::Recompress(recompress) => recompress.run(context),
        }
    }
}

/// Opens an archive file.
pub(crate) fn open_input(path: &Path) -> Result<Box<dyn Read>, Failure> {
    if path == Path::new("-") {
        return Ok(Box::new(io::stdin().lock()));
    }
    Ok(Box::new(file(path)?))
}

fn file(path: &Path) -> Result<File, Failure> {
    let file = File::open(path).map_err(|error| Failure::unreadable_file(path, &error))?;
    let kind = file
        .metadata()
        .map_err(|error| Failure::unreadable_file(path, &error))?;
    if kind.is_dir() {
        let path = path.display();
        return Err(Failure::wrong_usage(format!(
            "{path}: is a directory; name the files in it"
        )));
    }
    Ok(file)
}

/// Returns the result of reading, or the reason why this file cannot be read any further.
pub(crate) fn read_step<T>(path: &Path, step: Result<T, ReadRecordError>) -> Result<T, Failure> {
    step.map_err(|error| Failure::because_failed(format!("{}: {error}", path.display())))
}

/// The report about one file while it is read.
#[derive(Debug)]
pub(crate) struct FileReport {
    path: PathBuf,
    is_whole: bool,
}

impl FileReport {
    pub(crate) fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            is_whole: true,
        }
    }

    /// Prints what is wrong; the command ends with 1.
    pub(crate) fn say_line(&mut self, what: &str) {
        self.is_whole = false;
        tell_user(&format!("{}: {what}", self.path.display()));
    }

    /// Prints what is wrong; the command ends with 1 if that costs content, and not for what is only written oddly.
    pub(crate) fn say_defects(&mut self, defects: &[Defect]) {
        for defect in defects {
            self.is_whole &= !defect.class.costs_content();
            tell_user(&format!("{}: {defect}", self.path.display()));
        }
    }

    /// Reports the problems behind the last record.
    pub(crate) fn skip_rest<R: Read>(&mut self, reader: &mut WarcReader<R>) {
        self.say_defects(&reader.take_defects());
        if reader.omitted_defects() > 0 {
            self.say_line(&format!("{} more defects", reader.omitted_defects()));
        }
    }

    pub(crate) const fn exit_code(&self) -> Exit {
        if self.is_whole {
            Exit::Done
        } else {
            Exit::Failed
        }
    }
}

/// Does a piece of work with each file. Reports a file that cannot be read, and continues with the others.
fn each(
    files: &[PathBuf],
    mut work: impl FnMut(&Path) -> Result<Exit, Failure>,
) -> Result<Exit, Failure> {
    let mut exits = Vec::new();
    for path in files {
        exits.push(match work(path) {
            Ok(exit) => exit,
            // The reader of the output has gone.
            Err(failure) if failure.message.is_empty() => return Err(failure),
            Err(failure) => {
                tell_user(&failure.message);
                failure.exit
            }
        });
    }
    Ok(Exit::of_all(exits))
}
