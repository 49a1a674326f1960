//! `holdfast batch check`: whether a file is a job, before anything is submitted.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use archive_batch::component::LARGEST;
use archive_batch::{Components, InvalidJob};
use clap::Args;
use serde::Serialize;

use super::Context;
use crate::exit::{Exit, Failure};

/// Say what a component is, or why it would be refused
///
/// Compiles it and asks what it does, on this machine and without an archive. The exit code is 5 if it is refused. What a
/// component may be stands in `archive/batch/wit/batch.wit`, with examples beside it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  holdfast batch check titles.wasm
  holdfast batch check --json titles.wasm")]
pub(crate) struct Check {
    /// The component, or its text (`.wat`)
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

/// What is known of a component.
#[derive(Serialize)]
struct Known<'a> {
    file: String,
    blake3: String,
    size: usize,
    shown: &'static str,
    reduces: bool,
    about: &'a str,
}

impl Check {
    pub(super) fn run(self, context: &Context) -> Result<Exit, Failure> {
        let bytes = read(&self.file)?;
        let file = self.file.display().to_string();
        let refused = |error: InvalidJob| Failure::new(Exit::Refused, format!("{file}: {error}"));
        let components =
            Components::new(None).map_err(|error| Failure::failed(error.to_string()))?;
        let component = components.compile(&bytes).map_err(refused)?;
        let about = component.about();
        let known = Known {
            file: file.clone(),
            blake3: component.digest().to_string(),
            size: bytes.len(),
            shown: component.shown(),
            reduces: about.reduces,
            about: &about.text,
        };
        if context.output.is_json() {
            context.output.document(&known)?;
        } else {
            context.output.line(&known.for_people())?;
        }
        Ok(Exit::Done)
    }
}

impl Known<'_> {
    fn for_people(&self) -> String {
        let reduce = if self.reduces {
            "its own"
        } else {
            "none: the outputs of all files, one after the other"
        };
        // What it says of itself is not to move the cursor.
        let about = self.about.escape_debug();
        format!(
            "{}: a job\n  does    {about}\n  shown   {}\n  reduce  {reduce}\n  blake3  {}\n  size    {} bytes",
            self.file, self.shown, self.blake3, self.size
        )
    }
}

/// Reads no more than a component can have.
fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let unreadable = |error| Failure::unreadable(path, &error);
    let file = File::open(path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    file.take(LARGEST + 1)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    Ok(bytes)
}
