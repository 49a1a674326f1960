//! Work on all cores, for what costs time by computing and not by waiting for the disk.

use std::num::NonZero;
use std::panic::resume_unwind;
use std::thread;

use parking_lot::Mutex;

/// Calls `each` with every item, on one thread for each core, and returns what each thread has gathered from its
/// `start`. After the first error no item is begun.
pub(crate) fn on_all_cores<I, G: Send, E: Send>(
    items: impl Iterator<Item = I> + Send,
    start: impl Fn() -> G + Sync,
    each: impl Fn(&mut G, I) -> Result<(), E> + Sync,
) -> Result<Vec<G>, E> {
    let items = Mutex::new(items.fuse());
    let next = || items.lock().next();
    let work = || {
        let mut gathered = start();
        while let Some(item) = next() {
            if let Err(error) = each(&mut gathered, item) {
                while next().is_some() {}
                return Err(error);
            }
        }
        Ok(gathered)
    };
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| {
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        let ends = threads.into_iter().map(thread::ScopedJoinHandle::join);
        ends.map(|end| end.unwrap_or_else(|panic| resume_unwind(panic)))
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if two threads take the same item, one is left over, or the results of a thread are lost.
    #[test]
    fn every_item_is_worked_on_once() {
        let gathered = on_all_cores(0..1000, Vec::new, |all, item| {
            all.push(item);
            Ok::<_, ()>(())
        });
        let mut all = gathered.unwrap().concat();
        all.sort_unstable();
        assert_eq!(all, (0..1000).collect::<Vec<_>>());
    }

    /// Fails if the error of one thread is lost, or the other threads work through all the remaining items.
    #[test]
    fn error_ends_the_work_and_is_returned() {
        let begun = Mutex::new(0);
        let ended = on_all_cores(
            0..1_000_000,
            || (),
            |(), item| {
                *begun.lock() += 1;
                if item == 3 { Err(item) } else { Ok(()) }
            },
        );
        assert_eq!(ended, Err(3));
        assert!(*begun.lock() < 1_000_000);
    }
}
