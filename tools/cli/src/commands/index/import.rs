//! `holdfast index import`: lines of an index that was made elsewhere.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use clap::Args;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use tools_terminal::context::CommandContext;
use tools_terminal::exit::{Exit, Failure};
use tools_terminal::output::tell_user;
use tools_terminal::session::Session;

use super::named_set;

/// The number of bytes of a file read at once.
const CHUNK: usize = 256 << 10;

/// Import index files as a set of captures
///
/// Reads CDX with any legend in its header, CDX of 9, 11 or 14 fields, and CDXJ. The files become one set, which
/// replaces the set of that name; a rebuild of the index leaves it as it is. Lines that cannot be read are reported and
/// left out, and the exit code is then 1. Needs the role operator.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  holdfast index import old-1.cdx old-2.cdx --set old
  zcat old.cdxj.gz | holdfast index import - --set old
  holdfast index import /dev/null --set old                    empties the set")]
pub(super) struct Import {
    /// Index files, plain; `-` is stdin
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// The name of the set: lower-case letters, digits, `.`, `_` and `-`; with this verb, --set does not override a
    /// setting
    #[arg(long, value_name = "NAME")]
    set: String,
}

impl Import {
    pub(super) async fn run(self, context: &CommandContext) -> Result<Exit, Failure> {
        let (set, global) = named_set(&self.set, context)?;
        let session = Session::open(&global)?;
        let index = session.index()?;
        // All of them are there before anything is sent.
        let mut inputs = Vec::new();
        for path in &self.files {
            inputs.push((path.display().to_string(), open(path)?));
        }
        let inputs = tokio_stream::iter(inputs).map(|(name, source)| (name, pieces(source)));
        let imported = index.import_lines(&set, inputs).await?;
        if context.output.is_json() {
            context.output.write_document(&imported)?;
        } else {
            let replaced = imported
                .replaced
                .map(|before| format!(", in the place of {before}"));
            context.output.write_line(&format!(
                "{} captures in set {}{}",
                imported.captures,
                set,
                replaced.unwrap_or_default()
            ))?;
        }
        for fault in &imported.bad {
            let input = Path::new(&fault.input).display();
            let number = fault.number;
            tell_user(&format!(
                "{input}: line {number} (byte {}): {}",
                fault.offset, fault.reason
            ));
        }
        let unnamed = imported.bad_lines.saturating_sub(imported.bad.len() as u64);
        if unnamed > 0 {
            tell_user(&format!("{unnamed} more lines cannot be read"));
        }
        Ok(if imported.bad_lines > 0 {
            Exit::Failed
        } else {
            Exit::Done
        })
    }
}

fn open(path: &Path) -> Result<Box<dyn Read + Send>, Failure> {
    if path == Path::new("-") {
        return Ok(Box::new(io::stdin()));
    }
    let file = File::open(path).map_err(|error| Failure::unreadable_file(path, &error))?;
    Ok(Box::new(file))
}

/// Reads a file in pieces, on a thread that may block.
fn pieces(mut source: impl Read + Send + 'static) -> ReceiverStream<io::Result<Bytes>> {
    let (sender, receiver) = mpsc::channel(2);
    drop(tokio::task::spawn_blocking(move || {
        loop {
            let mut piece = Vec::with_capacity(CHUNK);
            let read = source.by_ref().take(CHUNK as u64).read_to_end(&mut piece);
            let step = match read {
                Ok(0) => return,
                Ok(_) => Ok(Bytes::from(piece)),
                Err(error) => Err(error),
            };
            let is_last = step.is_err();
            // The other end has its own limit, and has ended when that has passed.
            let sent = Handle::current().block_on(sender.send(step));
            if sent.is_err() || is_last {
                return;
            }
        }
    }));
    ReceiverStream::new(receiver)
}
