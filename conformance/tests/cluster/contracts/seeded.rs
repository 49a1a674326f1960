//! Archives that break a promise each, so that a suite is seen to fail, by the name of what is broken.

mod preservation;
mod read_at;
mod replica;

use archive_client::{
    Access, AnnouncedDigests, ArchiveStatus, ArchiveSteps, CallFuture, ClientError, Deposit,
    FakeArchive, FeedStep, FileRange, FileStatus, FileStream, HeldReceipt, Ingest, Listing,
    Salvage, Selection, Slices, StoreEvent, StoredFile,
};
use archive_model::{FeedPosition, FileName};
use conformance::contract::access::{self, Doors};
use conformance::contract::ingest;
use tokio_stream::StreamExt;

/// A seeded bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bug {
    /// Other content under a name is a success.
    Overwrites,
    /// The announcement is not compared.
    Believes,
    /// Everybody sees everything.
    Tells,
    /// A range past the end is refused.
    Strict,
    /// Whatever replica is asked for, another may answer.
    AnyReplica,
    /// The first entry of a listing is missing, and the end says nothing of it.
    Short,
    /// A follower is not told of the first change.
    Forgets,
    /// The last bit of every piece is another.
    Flips,
}

struct SeededArchive {
    archive: FakeArchive,
    bug: Bug,
}

impl Ingest for SeededArchive {
    fn store<'a>(
        &'a self,
        deposit: &'a Deposit,
        watch: &'a (dyn Fn(StoreEvent<'_>) + Send + Sync),
    ) -> CallFuture<'a, StoredFile> {
        Box::pin(async move {
            let credulous = Deposit {
                announced: AnnouncedDigests::default(),
                no_digest: true,
                ..deposit.clone()
            };
            match (self.bug, self.archive.store(deposit, watch).await) {
                (Bug::Overwrites, Err(ClientError::Exists(_))) => {
                    FakeArchive::new().store(deposit, watch).await
                }
                (Bug::Believes, Err(ClientError::Mismatch(_))) => {
                    self.archive.store(&credulous, watch).await
                }
                (_, answer) => answer,
            }
        })
    }

    fn stat<'a>(&'a self, name: &'a FileName) -> CallFuture<'a, FileStatus> {
        Box::pin(async move {
            let answer = self.archive.stat(name).await;
            if self.bug == Bug::Tells && answer.is_err() {
                let owner = self.archive.depositing_as("harvester/fake");
                return owner.stat(name).await;
            }
            answer
        })
    }
}

impl Access for SeededArchive {
    fn get<'a>(&'a self, wanted: &'a FileRange) -> CallFuture<'a, FileStream> {
        Box::pin(async move {
            let mut wanted = wanted.clone();
            if self.bug == Bug::AnyReplica {
                wanted.replica = None;
            }
            let reading = self.archive.get(&wanted).await?;
            let size = reading.admission.size;
            if self.bug == Bug::Strict && wanted.end.is_some_and(|end| end > size) {
                return Err(ClientError::Invalid("past the end".to_owned()));
            }
            if self.bug == Bug::Flips {
                let admission = reading.admission.clone();
                let envelope = reading.envelope.clone();
                let range = reading.range.clone();
                let flipped = reading.map(|part| part.map(|part| flip(&part).into()));
                return Ok(FileStream::new(admission, envelope, range, flipped));
            }
            Ok(reading)
        })
    }

    fn slices<'a>(&'a self, wanted: &'a FileRange) -> CallFuture<'a, Slices> {
        self.archive.slices(wanted)
    }

    fn salvage<'a>(&'a self, wanted: &'a FileRange) -> CallFuture<'a, Salvage> {
        self.archive.salvage(wanted)
    }

    fn list<'a>(&'a self, selection: &'a Selection) -> CallFuture<'a, Listing> {
        Box::pin(async move {
            let listing = self.archive.list(selection).await?;
            let left_out = usize::from(self.bug == Bug::Short);
            Ok(Listing::new(listing.skip(left_out)))
        })
    }

    fn receipt<'a>(&'a self, name: &'a FileName) -> CallFuture<'a, HeldReceipt> {
        self.archive.receipt(name)
    }

    fn changes<'a>(
        &'a self,
        after: Option<&'a FeedPosition>,
    ) -> CallFuture<'a, ArchiveSteps<FeedStep>> {
        Box::pin(async move {
            let steps = self.archive.changes(after).await?;
            if self.bug == Bug::Forgets {
                let mut is_first = true;
                return Ok(ArchiveSteps::new(steps.filter(move |step| {
                    let is_change = matches!(step, Ok(FeedStep::Change(_)));
                    !(is_change && std::mem::take(&mut is_first))
                })));
            }
            Ok(steps)
        })
    }

    fn status(&self) -> CallFuture<'_, ArchiveStatus> {
        self.archive.status()
    }
}

fn flip(part: &[u8]) -> Vec<u8> {
    let mut flipped = part.to_vec();
    if let Some(last) = flipped.last_mut() {
        *last ^= 1;
    }
    flipped
}

/// Fails if the suite of `Ingest` or `Access` passes an archive that breaks one of its promises, by storing over a file
/// for example, or does not name that promise.
#[tokio::test]
async fn a_broken_promise_is_found_and_named() {
    for (bug, expected) in [
        (Bug::Overwrites, "same_name_other_bytes_is_refused"),
        (Bug::Believes, "every_announced_digest_is_compared"),
        (Bug::Tells, "stat_is_of_own_files_only"),
        (Bug::Strict, "a_range_is_cut_at_the_end"),
        (Bug::AnyReplica, "a_replica_is_read_alone"),
        (Bug::Short, "a_listing_is_sorted_counted_and_ended"),
        (Bug::Forgets, "feed_continues_after_its_position"),
        (Bug::Flips, "a_stored_file_comes_out_whole"),
    ] {
        let archive = FakeArchive::new();
        let of = |who: &str| SeededArchive {
            archive: archive.depositing_as(who),
            bug,
        };
        let own = of("harvester/fake");
        let another = of("harvester/another");
        let mut broken = Vec::new();
        let outcome = ingest::all(&own, &another, archive.trust()).await;
        broken.extend_from_slice(outcome.broken());
        let doors = Doors {
            depositor: &own,
            reader: &own,
            follower: &own,
            trust: archive.trust(),
        };
        broken.extend_from_slice(access::all(doors).await.broken());
        assert_named(&bug, &broken, expected);
    }
}

/// Asserts that the promise that a bug breaks is among those that the suites found to be broken.
fn assert_named(bug: &dyn std::fmt::Debug, broken: &[String], expected: &str) {
    let is_named = broken.iter().any(|promise| {
        let name = promise.split_once(':').map(|(name, _)| name);
        name == Some(expected)
    });
    assert!(is_named, "{bug:?}: {broken:#?}");
}
