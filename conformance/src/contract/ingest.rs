//! The promises to every user of an [`Ingest`].
//!
//! # Errors
//!
//! A promise fails if it is broken, or if the archive cannot be asked.

pub mod digests;

use std::io;
use std::sync::Arc;

use anyhow::{Result, ensure};
use archive_client::{AnnouncedDigests, ClientError, Deposit, Ingest, ReplicaProgress, StoreEvent};
use archive_model::{FileName, Root};
use archive_proof::{Envelope, ReadAt, Receipt, TrustFile};
use parking_lot::Mutex;

use super::{Outcome, deposit, name, noise, refusal, root, store, store_deposit};

/// More than one piece of a stream, and no multiple of anything.
const SIZE: usize = 600_007;

/// Bytes whose digests are in every textbook.
const ABC: &[u8] = b"abc";

/// The SHA-256 (FIPS 180-2) and the MD5 (RFC 1321) of `ABC`.
const SHA256: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
const MD5: [u8; 16] = [
    0x90, 0x01, 0x50, 0x98, 0x3c, 0xd2, 0x4f, 0xb0, 0xd6, 0x96, 0x3f, 0x7d, 0x28, 0xe1, 0x7f, 0x72,
];

/// Holds one archive to every promise. `another` stands at a door of the same archive, under another name.
pub async fn all(archive: &dyn Ingest, another: &dyn Ingest, trust: &TrustFile) -> Outcome {
    let mut outcome = Outcome::default();
    outcome
        .check(a_receipt_proves_what_was_stored(archive, trust))
        .await;
    outcome
        .check(same_content_again_is_a_success(archive, trust))
        .await;
    outcome
        .check(same_name_other_bytes_is_refused(archive))
        .await;
    outcome
        .check(digests::every_announced_digest_is_compared(archive))
        .await;
    outcome
        .check(digests::every_strong_digest_proves(archive))
        .await;
    outcome
        .check(digests::md5_or_nothing_proves_no_sameness(archive))
        .await;
    outcome
        .check(digests::lack_of_digests_must_be_stated(archive))
        .await;
    outcome.check(a_short_source_stores_nothing(archive)).await;
    outcome.check(a_long_source_stores_nothing(archive)).await;
    outcome
        .check(failed_source_can_be_stored_again(archive))
        .await;
    outcome.check(an_empty_file_is_a_file(archive)).await;
    outcome.check(stat_says_what_was_admitted(archive)).await;
    outcome.check(an_unknown_name_is_not_found(archive)).await;
    outcome
        .check(stat_is_of_own_files_only(archive, another))
        .await;
    outcome
        .check(names_that_differ_in_case_are_two(archive))
        .await;
    outcome
        .check(progress_is_reported_to_the_end(archive))
        .await;
    outcome
        .check(two_with_one_content_both_succeed(archive, another))
        .await;
    outcome
        .check(two_with_other_contents_leave_one(archive, another))
        .await;
    outcome
}

/// A success bears a receipt, signed by a key that counts, for this name, size and content, of every replica.
pub async fn a_receipt_proves_what_was_stored(
    archive: &dyn Ingest,
    trust: &TrustFile,
) -> Result<()> {
    let name = name("ingest-receipt.warc.gz")?;
    let bytes = noise(SIZE, 1);
    let stored = store(archive, &name, &bytes).await?;
    let envelope = Envelope::parse(stored.envelope.as_bytes())?;
    let (receipt, admission) = Receipt::verify(&envelope, trust)?;
    ensure!(
        (&receipt, &admission) == (&stored.receipt, &stored.admission),
        "the receipt says {receipt:?}, the answer {:?}",
        stored.receipt
    );
    let said = (&admission.name, admission.size, admission.root);
    let meant = (&name, bytes.len() as u64, root(&bytes));
    ensure!(said == meant, "{said:?} was admitted, not {meant:?}");
    ensure!(!stored.already, "it is said to have been there");
    let done = stored.replicas.iter();
    let done = done.filter(|replica| replica.progress == ReplicaProgress::UploadCompleted);
    let mut done: Vec<_> = done.map(|replica| &replica.replica).collect();
    let mut receipted: Vec<_> = receipt.replicas.iter().map(|one| &one.replica).collect();
    done.sort();
    receipted.sort();
    ensure!(
        done == receipted,
        "{done:?} have it, and the receipt is for {receipted:?}"
    );
    Ok(())
}

/// Storing the same content again is a success, which says that it was there, and changes nothing.
pub async fn same_content_again_is_a_success(
    archive: &dyn Ingest,
    trust: &TrustFile,
) -> Result<()> {
    let name = name("ingest-again.warc")?;
    let bytes = noise(SIZE, 2);
    let first = store(archive, &name, &bytes).await?;
    let again = store(archive, &name, &bytes).await?;
    ensure!(again.already, "it is said not to have been there");
    ensure!(
        again.admission == first.admission,
        "admitted first as {:?}, then as {:?}",
        first.admission,
        again.admission
    );
    Receipt::verify(&Envelope::parse(again.envelope.as_bytes())?, trust)?;
    Ok(())
}

/// A name has one content, permanently: other bytes, more or fewer of them, are refused, and the first stay.
pub async fn same_name_other_bytes_is_refused(archive: &dyn Ingest) -> Result<()> {
    let name = name("ingest-other.warc")?;
    let bytes = noise(1000, 3);
    let first = store(archive, &name, &bytes).await?;
    let longer = [bytes.as_slice(), b"!"].concat();
    let shorter = noise(999, 3);
    for other in [&noise(1000, 4), &longer, &shorter, &Vec::new()] {
        let error = refusal(store(archive, &name, other).await)?;
        ensure!(
            matches!(error, ClientError::Exists(_)),
            "{} other bytes: {error:?}",
            other.len()
        );
    }
    // The right root with another size is no announcement of these bytes.
    let odd = Deposit {
        size: 1001,
        source: Arc::new(longer),
        ..deposit(&name, &bytes)
    };
    let error = refusal(store_deposit(archive, &odd).await)?;
    ensure!(matches!(error, ClientError::Exists(_)), "odd: {error:?}");
    let again = store(archive, &name, &bytes).await?;
    ensure!(again.admission == first.admission, "{:?}", again.admission);
    Ok(())
}

/// A source that has fewer bytes than were announced is the depositor's own error, and stores nothing.
pub async fn a_short_source_stores_nothing(archive: &dyn Ingest) -> Result<()> {
    for (which, size) in [("one", 4), ("many", 10_000_000)] {
        let name = name(&format!("ingest-short-by-{which}.warc"))?;
        let short = Deposit {
            size,
            ..deposit(&name, ABC)
        };
        let error = refusal(store_deposit(archive, &short).await)?;
        ensure!(
            matches!(error, ClientError::Source { .. }),
            "{size}: {error:?}"
        );
        is_unknown(archive, &name).await?;
    }
    Ok(())
}

/// A source that has more bytes than were announced is not what was announced, and stores nothing.
pub async fn a_long_source_stores_nothing(archive: &dyn Ingest) -> Result<()> {
    let name = name("ingest-long.warc")?;
    let long = Deposit {
        size: 2,
        ..deposit(&name, ABC)
    };
    let error = refusal(store_deposit(archive, &long).await)?;
    ensure!(matches!(error, ClientError::Mismatch(_)), "{error:?}");
    is_unknown(archive, &name).await?;
    let stored = store(archive, &name, ABC).await?;
    ensure!(stored.admission.root == root(ABC), "{stored:?}");
    Ok(())
}

/// A source that cannot be read to its end stores nothing; when it can, the whole of it is stored.
pub async fn failed_source_can_be_stored_again(archive: &dyn Ingest) -> Result<()> {
    let name = name("ingest-failed.warc")?;
    let bytes = noise(SIZE, 5);
    let (half, _) = bytes.split_at(SIZE / 2);
    let good = deposit(&name, &bytes);
    let bad = Deposit {
        source: Arc::new(CutSource(half.to_vec())),
        ..good.clone()
    };
    let error = refusal(store_deposit(archive, &bad).await)?;
    ensure!(matches!(error, ClientError::Source { .. }), "{error:?}");
    is_unknown(archive, &name).await?;
    let stored = store_deposit(archive, &good).await?;
    ensure!(
        stored.admission.root == root(&bytes),
        "{:?}",
        stored.admission
    );
    Ok(())
}

/// A file of no bytes is stored as any other.
pub async fn an_empty_file_is_a_file(archive: &dyn Ingest) -> Result<()> {
    let name = name("ingest-empty.warc")?;
    let stored = store(archive, &name, &[]).await?;
    let status = archive.stat(&name).await?;
    for (size, found) in [
        (stored.admission.size, stored.admission.root),
        (status.size, status.root),
    ] {
        ensure!((size, found) == (0, root(&[])), "{size} bytes, {found}");
    }
    ensure!(store(archive, &name, &[]).await?.already, "not there");
    Ok(())
}

/// The status of a file has what was admitted, for every replica.
pub async fn stat_says_what_was_admitted(archive: &dyn Ingest) -> Result<()> {
    let name = name("ingest-stat.warc")?;
    let stored = store_deposit(archive, &everything(&name)?).await?;
    let status = archive.stat(&name).await?;
    let admission = stored.admission;
    ensure!(
        (status.size, status.root, status.admitted)
            == (admission.size, admission.root, admission.admitted),
        "{status:?}, admitted as {admission:?}"
    );
    ensure!(
        (&status.name, &status.depositor) == (&name, &admission.depositor),
        "{status:?}, admitted as {admission:?}"
    );
    let digests = &status.digests;
    ensure!(
        digests.sha256 == Some(sha256()?) && digests.md5 == Some(MD5),
        "{digests:?}"
    );
    ensure!(*digests == admission.digests, "{:?}", admission.digests);
    // A store may leave the condition of a copy out of its answer: the copy was read back just now.
    let mut replicas = status.replicas;
    let mut stored = stored.replicas;
    for replica in replicas.iter_mut().chain(&mut stored) {
        replica.standing = None;
    }
    ensure!(replicas == stored, "{replicas:?}, stored as {stored:?}");
    Ok(())
}

/// A name that nobody stored is not found.
pub async fn an_unknown_name_is_not_found(archive: &dyn Ingest) -> Result<()> {
    is_unknown(archive, &name("ingest-never.warc")?).await
}

/// A depositor sees its own files only; that another has the same bytes is no secret to who brings them.
pub async fn stat_is_of_own_files_only(archive: &dyn Ingest, another: &dyn Ingest) -> Result<()> {
    let name = name("ingest-own.warc")?;
    store(archive, &name, ABC).await?;
    is_unknown(another, &name).await?;
    ensure!(store(another, &name, ABC).await?.already, "not there");
    is_unknown(another, &name).await?;
    archive.stat(&name).await?;
    Ok(())
}

/// Names that differ only in case are two files, and the depositor of the second is told.
pub async fn names_that_differ_in_case_are_two(archive: &dyn Ingest) -> Result<()> {
    let small = name("ingest-øl.warc")?;
    let large = name("ingest-ØL.warc")?;
    let first = store(archive, &small, ABC).await?;
    ensure!(
        first.similar_name.is_none(),
        "{:?} is there before it came",
        first.similar_name
    );
    let second = store(archive, &large, b"other").await?;
    ensure!(
        second.similar_name.as_deref() == Some(small.as_str()),
        "{:?}",
        second.similar_name
    );
    ensure!(
        archive.stat(&small).await?.root == root(ABC),
        "the first changed"
    );
    Ok(())
}

/// A progress watcher hears of every byte that was sent, and of no more than there are.
pub async fn progress_is_reported_to_the_end(archive: &dyn Ingest) -> Result<()> {
    let name = name("ingest-watched.warc")?;
    let bytes = noise(SIZE, 6);
    let heard = Mutex::new(Vec::new());
    let watch = |event: StoreEvent<'_>| {
        if let StoreEvent::Sent(bytes) = event {
            let mut heard = heard.lock();
            heard.push(bytes);
        }
    };
    archive.store(&deposit(&name, &bytes), &watch).await?;
    let heard = heard.into_inner();
    ensure!(heard.iter().max() == Some(&(SIZE as u64)), "{heard:?}");
    Ok(())
}

/// Two who store one content at once have both stored it.
pub async fn two_with_one_content_both_succeed(
    archive: &dyn Ingest,
    another: &dyn Ingest,
) -> Result<()> {
    let name = name("ingest-together.warc")?;
    let bytes = noise(SIZE, 7);
    let both = tokio::join!(store(archive, &name, &bytes), store(another, &name, &bytes));
    let first = both.0?.admission;
    let second = both.1?.admission;
    ensure!(first == second, "{first:?} and {second:?}");
    Ok(())
}

/// Of two who store other contents under one name at once, one has stored it, and the other is refused.
pub async fn two_with_other_contents_leave_one(
    archive: &dyn Ingest,
    another: &dyn Ingest,
) -> Result<()> {
    let name = name("ingest-apart.warc")?;
    let one = noise(SIZE, 8);
    let other = noise(SIZE, 9);
    let both = tokio::join!(store(archive, &name, &one), store(another, &name, &other));
    let (stored, refused, by) = match both {
        (Ok(stored), Err(refused)) => (stored, refused, archive),
        (Err(refused), Ok(stored)) => (stored, refused, another),
        both => anyhow::bail!("{both:?}"),
    };
    // Busy, where it gave up before the other was done.
    ensure!(
        matches!(refused, ClientError::Exists(_) | ClientError::Busy(_)),
        "{refused:?}"
    );
    let status = by.stat(&name).await?;
    ensure!(
        status.root == stored.admission.root,
        "{status:?}, admitted as {:?}",
        stored.admission
    );
    Ok(())
}

/// A source of which only these bytes can be read.
#[derive(Clone, Debug)]
pub struct CutSource(pub Vec<u8>);

impl ReadAt for CutSource {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.read_at(offset, buffer) {
            Ok(0) => Err(io::Error::other("bad sector")),
            other => other,
        }
    }
}

async fn is_unknown(archive: &dyn Ingest, name: &FileName) -> Result<()> {
    let error = refusal(archive.stat(name).await)?;
    ensure!(
        matches!(error, ClientError::NotFound(_)),
        "stat of {name}: {error:?}"
    );
    Ok(())
}

/// A deposit of [`ABC`] with all that is known of it.
fn everything(name: &FileName) -> Result<Deposit> {
    let announced = AnnouncedDigests {
        blake3: Some(root(ABC)),
        sha256: Some(sha256()?),
        md5: Some(MD5),
    };
    Ok(Deposit {
        announced,
        ..deposit(name, ABC)
    })
}

fn sha256() -> Result<[u8; 32]> {
    // Another hash in the same form.
    Ok(*SHA256.parse::<Root>()?.as_bytes())
}
