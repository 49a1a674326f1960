//! Mail: one mail over one connection, within one limit.
//!
//! The conversation is `lettre`'s; the bounds on the server are ours: it is read line by line and never more than
//! [`stream::MOST`] bytes, so that nothing said in the clear counts after `STARTTLS`, and a flood ends. One recipient
//! that is refused does not keep the mail from the others. Not promised: that a mail which was taken is read by
//! anybody, or came only once where the answer got lost.

mod mail;
mod stream;
mod talk;
#[cfg(test)]
mod tests;

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;

use archive_model::check_secret;
use parking_lot::Mutex;
use rustix::fs::OFlags;
use tokio::task::spawn_blocking;

use super::lock;
use super::message::{Message, plain_text};
use super::settings::SmtpSettings;

/// The longest password or list of authorities, in bytes.
const FILE: u64 = 1 << 20;

/// The most characters of an error that are repeated.
const SAID: usize = 500;

/// Sends a message; returns whether a recipient got it, and the reason why one did not.
pub(super) async fn send_mail(
    settings: &SmtpSettings,
    message: &Message,
    limit: Duration,
) -> (bool, Option<String>) {
    // The step under way, for the error when the time is up.
    let step = Mutex::new("looking up its address");
    let whole = async {
        let mail = mail::write_mail(settings, message)?;
        talk::talk_smtp(settings, &mail, &step).await
    };
    let (is_taken, failure) = match tokio::time::timeout(limit, whole).await {
        Ok(Ok(refused)) if refused.is_empty() => (true, None),
        Ok(Ok(refused)) => (true, Some(refused.join("; "))),
        Ok(Err(why)) => (false, Some(why)),
        Err(_late) => {
            let step = *lock(&step);
            let seconds = limit.as_secs();
            let why = format!("{step} had not come to an end after {seconds} s; it was left");
            (false, Some(why))
        }
    };
    let failure = failure.map(|why| {
        let why: String = plain_text(&why).chars().take(SAID).collect();
        format!("{}:{}: {why}", settings.server, settings.port())
    });
    (is_taken, failure)
}

/// Reads a small file, whole; one with a secret only if others on the machine cannot use it.
async fn read(setting: &'static str, path: &Path, is_secret: bool) -> Result<Vec<u8>, String> {
    let own = path.to_owned();
    let shown = path.display().to_string();
    let read = move || {
        // A pipe without a writer must not block the read.
        let flags = i32::try_from(OFlags::NONBLOCK.bits()).expect("O_NONBLOCK is a positive int");
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(flags)
            .open(&own)?;
        if is_secret {
            check_secret(&own, file.metadata()?.mode()).map_err(io::Error::other)?;
        }
        let mut bytes = Vec::new();
        file.take(FILE + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > FILE {
            return Err(io::Error::other("it is far too long"));
        }
        Ok(bytes)
    };
    let read = spawn_blocking(read).await.map_err(|bug| bug.to_string())?;
    read.map_err(|error| format!("{setting}: {shown}: {error}"))
}
