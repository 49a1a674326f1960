//! The room on the disk of the admin data.
//!
//! Owns that a full disk stops new stores, and nothing else: below `repository.reserve` a store is refused before its
//! bytes are sent, while reads, checks, repairs and acts of people, which write little, go on in the reserve.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use archive_daemon::{Notifier, Worker, WorkerStep, WorkerStepError};
use archive_durable::Space;
use archive_model::ByteSize;
use archive_rpc::{CallError, CallErrorKind, run_blocking};
use parking_lot::Mutex;

/// The time between two looks at the disk.
const PAUSE: Duration = Duration::from_secs(2);

/// The incident of a disk without room.
const INCIDENT: &str = "repository-room";

/// Whether there is room for new files; clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Room(Arc<Mutex<Option<String>>>);

impl Room {
    /// Returns why nothing new is stored, or `None` if there is room.
    pub(crate) fn shortage(&self) -> Option<String> {
        self.0.lock().clone()
    }

    /// Refuses while there is no room.
    ///
    /// # Errors
    /// `NoSpace` with the reason, and what to do.
    pub(crate) fn refuse_without_room(&self) -> Result<(), CallError> {
        let shortage = self.shortage();
        shortage.map_or(Ok(()), |why| Err(CallErrorKind::NoSpace.to_error(why)))
    }

    /// Notes what was measured.
    fn note(&self, data: &std::path::Path, free: u64, reserve: u64) -> Option<String> {
        let shortage = (free < reserve).then(|| {
            format!(
                "the disk of the repository has {} left, and repository.reserve is {}: nothing new is stored until there \
                 is room again for {}",
                ByteSize::from_bytes(free),
                ByteSize::from_bytes(reserve),
                data.display()
            )
        });
        self.0.lock().clone_from(&shortage);
        shortage
    }
}

/// The worker that measures the room.
#[derive(Debug)]
pub(crate) struct RoomWorker {
    room: Room,
    data: PathBuf,
    reserve: u64,
    notifier: Notifier,
    is_short: bool,
}

impl RoomWorker {
    pub(crate) const fn new(room: Room, data: PathBuf, reserve: u64, notifier: Notifier) -> Self {
        Self {
            room,
            data,
            reserve,
            notifier,
            is_short: false,
        }
    }
}

impl Worker for RoomWorker {
    const NAME: &'static str = "room";

    async fn step(&mut self) -> Result<WorkerStep, WorkerStepError> {
        let data = self.data.clone();
        let measured = run_blocking(move || Space::measure_space(&data)).await?;
        let shortage = self.room.note(&self.data, measured?.free, self.reserve);
        match shortage {
            Some(why) if !self.is_short => {
                tracing::error!("{why}");
                self.notifier.raise_incident(INCIDENT, why);
                self.is_short = true;
            }
            None if self.is_short => {
                tracing::warn!("there is room again on the disk of the repository; stores go on");
                self.notifier.resolve_incident(INCIDENT);
                self.is_short = false;
            }
            Some(_) | None => {}
        }
        Ok(WorkerStep::Idle(PAUSE))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// Fails if the last bytes above the reserve are refused, or the reserve is given away.
    #[test]
    fn reserve_is_for_what_goes_on() {
        let room = Room::default();
        let data = Path::new("/admin");
        assert_eq!(room.note(data, 10, 10), None);
        assert!(room.refuse_without_room().is_ok());
        assert!(room.note(data, 9, 10).is_some());
        let refused = room.refuse_without_room().unwrap_err();
        assert_eq!(refused.kind, CallErrorKind::NoSpace);
        assert!(refused.reason.contains("/admin"), "{refused}");
        room.note(data, 10, 10);
        assert!(room.refuse_without_room().is_ok());
        assert_eq!(room.note(data, 0, 0), None, "0 turns it off");
    }
}
