//! The door for people who watch a job that runs: a socket in its directory.
//!
//! Owns the conversation: a line of JSON with a [`ViewQuestion`], then one with a [`CrawlView`], and the end. The owner of
//! the directory is answered and nobody else. A question that is late or too long is not answered.

use std::convert::Infallible;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use archive_daemon::clock::Clock;
use archive_durable::{DiskError, directory};
use harvest_crawler::crawl::ViewRequest;
use harvest_crawler::crawl::view::{CrawlView, ViewQuestion};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixListener;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;

use crate::directory::JobDirectory;

/// The name of the socket.
const SOCKET: &str = "view.socket";

/// The longest question.
const LONGEST_QUESTION: u64 = 64 << 10;

/// The longest wait for a question, and for an answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// A door at which questions are answered.
pub(crate) struct ViewDoor {
    listener: UnixListener,
    path: PathBuf,
}

impl ViewDoor {
    /// Opens the door of a job, whose lock is held.
    pub(crate) fn open_door(job: &JobDirectory) -> Result<Self, DiskError> {
        let path = job.path_of(SOCKET);
        if directory::entry_kind(&path)?.is_some() {
            // Of a process that has ended.
            directory::remove_name(&path)?;
        }
        let failed = |error| DiskError::new("bind", &path, error);
        let folder = File::open(job.root()).map_err(failed)?;
        let listener = UnixListener::bind(short_path(&folder)).map_err(failed)?;
        let own = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(&path, own).map_err(failed)?;
        Ok(Self { listener, path })
    }

    /// Answers questions, one after the other.
    #[expect(clippy::infinite_loop, reason = "who polls it drops it")]
    pub(crate) async fn serve(
        self,
        clock: &Clock,
        views: UnboundedSender<ViewRequest>,
    ) -> Infallible {
        loop {
            let Ok((stream, _)) = self.listener.accept().await else {
                // For want of files: others may be closed.
                clock.sleep(Duration::from_secs(1)).await;
                continue;
            };
            // Who asks may go away.
            _ = clock
                .run_with_timeout(PATIENCE, answer(stream, &views))
                .await;
        }
    }
}

impl Drop for ViewDoor {
    fn drop(&mut self) {
        // A socket that stays is told from a living one by nobody answering.
        _ = directory::remove_name(&self.path);
    }
}

async fn answer(
    mut stream: tokio::net::UnixStream,
    views: &UnboundedSender<ViewRequest>,
) -> io::Result<()> {
    let (read, mut write) = stream.split();
    let mut line = String::new();
    let mut read = tokio::io::BufReader::new(read.take(LONGEST_QUESTION));
    read.read_line(&mut line).await?;
    let question: ViewQuestion = serde_json::from_str(&line)?;
    let (answer, answered) = oneshot::channel();
    // A crawl that has ended drops both ends.
    _ = views.send(ViewRequest { question, answer });
    let view = answered.await.map_err(io::Error::other)?;
    let mut text = serde_json::to_vec(&view)?;
    text.push(b'\n');
    write.write_all(&text).await
}

/// The path of the socket by the number of the open directory: the path of a socket has 107 bytes at most.
fn short_path(folder: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}/{SOCKET}", folder.as_raw_fd()))
}

/// Asks a job that runs for its view; `None` if its crawl does not run.
///
/// # Errors
///
/// If the socket fails, or what answers is no crawl of this version.
pub fn ask_view(job: &JobDirectory, question: &ViewQuestion) -> io::Result<Option<CrawlView>> {
    let folder = File::open(job.root())?;
    let mut stream = match UnixStream::connect(short_path(&folder)) {
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
            ) =>
        {
            return Ok(None);
        }
        stream => stream?,
    };
    stream.set_read_timeout(Some(PATIENCE * 2))?;
    let mut text = serde_json::to_vec(question)?;
    text.push(b'\n');
    stream.write_all(&text)?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line)?;
    if line.is_empty() {
        // The crawl has ended meanwhile.
        return Ok(None);
    }
    Ok(Some(serde_json::from_str(&line)?))
}
