//! `holdfast batch check`: whether a file is a job, before anything is submitted.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use archive_batch::StopControl;
use archive_component::{CompileError, Component, Components};
use archive_model::limits::LARGEST_COMPONENT;
use clap::Args;
use serde::Serialize;
use tools_terminal::context::CommandContext;
use tools_terminal::exit::{Exit, Failure};

/// Say what a component is, or why it would be refused
///
/// Compiles the component and asks it what it does, on this machine and without an archive. The exit code is 5 if it is
/// refused. `archive/component/wit/batch.wit` says what a component may be, and has examples beside it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  holdfast batch check titles.wasm
  holdfast batch check --json titles.wasm")]
pub(crate) struct Check {
    /// The component
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

/// The description of a component, for programs.
#[derive(Serialize)]
struct ComponentDescription<'a> {
    file: String,
    blake3: String,
    size: usize,
    shown: &'static str,
    reduces: bool,
    about: &'a str,
}

impl Check {
    pub(super) fn run(self, context: &CommandContext) -> Result<Exit, Failure> {
        let file = self.file.display().to_string();
        let (bytes, component) = read_component(&self.file)?;
        let about = component.about();
        let known = ComponentDescription {
            file,
            blake3: component.digest().to_string(),
            size: bytes.len(),
            shown: component.job_input(),
            reduces: about.reduces,
            about: &about.text,
        };
        if context.output.is_json() {
            context.output.write_document(&known)?;
        } else {
            context.output.write_line(&known.for_people())?;
        }
        Ok(Exit::Done)
    }
}

impl ComponentDescription<'_> {
    fn for_people(&self) -> String {
        let reduce = if self.reduces {
            "its own"
        } else {
            "none: the outputs of all files, one after the other"
        };
        // The description of a component must not move the cursor.
        let about = self.about.escape_debug();
        format!(
            "{}: a job\n  does    {about}\n  shown   {}\n  reduce  {reduce}\n  blake3  {}\n  size    {} bytes",
            self.file, self.shown, self.blake3, self.size
        )
    }
}

/// Reads a component in binary form, and checks it as a node does. Reads no more than a component can have.
pub(super) fn read_component(path: &Path) -> Result<(Vec<u8>, Arc<Component>), Failure> {
    let unreadable = |error| Failure::unreadable_file(path, &error);
    let file = File::open(path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    file.take(LARGEST_COMPONENT + 1)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    let shown = path.display();
    let refused = |error: CompileError| Failure::new(Exit::Refused, format!("{shown}: {error}"));
    let components =
        Components::new(None).map_err(|error| Failure::because_failed(error.to_string()))?;
    let compiled = components.compile_component(&bytes, &StopControl::default());
    let component = compiled.map_err(refused)?;
    Ok((bytes, component))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if what no node would take is sent to one.
    #[test]
    fn refused_component_is_not_sent() {
        let check = |bytes: &[u8], why: &str| {
            let mut file = tempfile::NamedTempFile::new().unwrap();
            std::io::Write::write_all(&mut file, bytes).unwrap();
            let failure = read_component(file.path()).unwrap_err();
            assert_eq!(failure.exit, Exit::Refused);
            assert!(failure.message.contains(why), "{failure}");
        };
        check(b"", "it is empty");
        check(b"#!/bin/sh\n", "it is no WebAssembly component");
        check(b"(component)", "make text (`.wat`) binary");
        check(b"\0asm\x0d\0\x01\0", "it exports neither");
        let huge = tempfile::NamedTempFile::new().unwrap();
        huge.as_file().set_len(LARGEST_COMPONENT + 1).unwrap();
        let failure = read_component(huge.path()).unwrap_err();
        assert!(failure.message.contains("at most 67108864"), "{failure}");
    }
}
