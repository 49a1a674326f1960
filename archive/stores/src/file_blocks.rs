//! The blocks of a file on a disk of the repository, on their way to a receiver that may be slow.
//!
//! Owns the place in the file between two runs on a thread that may block, as [`archive_rpc::answers::feed_messages`] makes
//! them.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

use archive_durable::directory;
use archive_rpc::answers::{Outlet, WorkProgress};
use bytes::Bytes;

/// The number of bytes that are handed on at once.
const BLOCK: usize = 256 << 10;

/// The blocks of one file, from its beginning on.
#[derive(Debug)]
pub struct FileBlocks {
    path: PathBuf,
    file: Option<File>,
}

impl FileBlocks {
    /// Makes the blocks of the file at `path`, which is opened when the first one is sent.
    pub const fn new(path: PathBuf) -> Self {
        Self { path, file: None }
    }

    /// Sends the next blocks for as long as they are taken, each in the message that `wrap` makes of it.
    ///
    /// # Errors
    ///
    /// [`io::Error`] if the file cannot be opened or read.
    pub fn send_blocks<M>(
        &mut self,
        outlet: &mut Outlet<M>,
        wrap: impl Fn(Bytes) -> M,
    ) -> io::Result<WorkProgress> {
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                none.insert(directory::open_directory(&self.path).map_err(|error| error.source)?)
            }
        };
        loop {
            let mut block = Vec::with_capacity(BLOCK);
            file.take(BLOCK as u64).read_to_end(&mut block)?;
            if block.is_empty() {
                return Ok(WorkProgress::Done);
            }
            if !outlet.send_message(wrap(Bytes::from(block))) {
                return Ok(WorkProgress::Paused);
            }
        }
    }
}
