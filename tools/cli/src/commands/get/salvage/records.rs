//! The records in the holes of a file that was salvaged: it is read again, from where it was written to.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;

use archive_client::losses::{DamageMap, records_in};
use archive_client::{Hole, Losses, SalvagedPart};
use archive_model::FileName;
use tokio::task::spawn_blocking;
use tools_terminal::exit::Failure;

use super::{MOST_HOLES, Map};

/// The number of bytes read at a time.
const PIECE: u64 = 64 * 1024;

/// A file that was written, as the parts it was written from.
struct Parts {
    file: File,
    at: u64,
    end: u64,
    holes: std::vec::IntoIter<Hole>,
    next: Option<Hole>,
}

impl Iterator for Parts {
    type Item = io::Result<SalvagedPart>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(hole) = self.next.take_if(|hole| hole.start <= self.at) {
            self.at = hole.end;
            self.next = self.holes.next();
            return Some(
                self.skip(hole.end - hole.start)
                    .map(|()| SalvagedPart::Hole(hole)),
            );
        }
        let until = self.next.as_ref().map_or(self.end, |hole| hole.start);
        let count = PIECE.min(until.saturating_sub(self.at));
        if count == 0 {
            return None;
        }
        let mut bytes = Vec::new();
        let read = self.file.by_ref().take(count).read_to_end(&mut bytes);
        self.at += count;
        Some(match read {
            Ok(read) if read as u64 == count => Ok(SalvagedPart::Bytes(bytes.into())),
            Ok(_) => Err(io::ErrorKind::UnexpectedEof.into()),
            Err(error) => Err(error),
        })
    }
}

impl Parts {
    /// Passes over the zeros of a hole.
    fn skip(&mut self, count: u64) -> io::Result<()> {
        let skipped = io::copy(&mut self.file.by_ref().take(count), &mut io::sink())?;
        if skipped == count {
            Ok(())
        } else {
            Err(io::ErrorKind::UnexpectedEof.into())
        }
    }
}

/// Returns the records in the holes of `map`, in the file that was written to `path`.
pub(super) async fn find_records(
    path: &Path,
    name: &FileName,
    range: Range<u64>,
    map: &Map<'_>,
) -> Result<Losses, Failure> {
    if map.holes > map.kept.len() as u64 {
        return Err(Failure::because_failed(format!(
            "{}: there are more than {MOST_HOLES} holes: the records in them are not looked for; see the map",
            path.display()
        )));
    }
    let mut holes = map.kept.clone().into_iter();
    let damaged = map.kept.iter().map(|hole| hole.start..hole.end);
    let map = DamageMap::new(name, range.clone(), damaged.collect());
    let parts = Parts {
        file: File::open(path).map_err(|error| Failure::unreadable_file(path, &error))?,
        at: range.start,
        end: range.end,
        next: holes.next(),
        holes,
    };
    let looked = spawn_blocking(move || records_in(parts, &map)).await;
    let failed = |error: &dyn std::fmt::Display| {
        Failure::because_failed(format!(
            "{}: the records in the holes are not known: {error}; the file is complete",
            path.display()
        ))
    };
    match looked {
        Ok(Ok(losses)) => Ok(losses),
        Ok(Err(error)) => Err(failed(&error)),
        Err(error) => Err(failed(&error)),
    }
}
