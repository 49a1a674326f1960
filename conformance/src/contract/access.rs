//! The promises to every user of an [`Access`].
//!
//! # Errors
//!
//! A promise fails if it is broken, or if the archive cannot be asked.

pub mod feed;
pub mod listing;

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use anyhow::{Context, Result, ensure};
use archive_client::{
    Access, ArchiveStatus, ClientError, Completeness, FileRange, Ingest, ListEntry, ListItem,
    SalvagedPart, Selection, StoredFile, fetch_record, prove_record,
};
use archive_model::{FileName, GROUP_SIZE, ReplicaId, ReplicaKind};
use archive_proof::{Admission, Envelope, Receipt, TrustFile, decode_ranges, record_proof};

use super::{Outcome, deposit, name, noise, refusal, store};

/// Some groups and a part of one: more than one piece of a stream.
const SIZE: u64 = 40 * GROUP_SIZE + 7;

/// An archive from both sides, and whose signatures count.
#[derive(Clone, Copy)]
pub struct Doors<'a> {
    /// The depositor of the files that are read.
    pub depositor: &'a dyn Ingest,
    /// The reader under test.
    pub reader: &'a dyn Access,
    /// The follower of the feed: the part `index`.
    pub follower: &'a dyn Access,
    /// The keys whose signatures count.
    pub trust: &'a TrustFile,
}

impl fmt::Debug for Doors<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Doors").finish_non_exhaustive()
    }
}

/// Holds one archive to every promise.
pub async fn all(doors: Doors<'_>) -> Outcome {
    let mut outcome = Outcome::default();
    outcome.check(a_stored_file_comes_out_whole(doors)).await;
    outcome.check(a_range_is_just_its_bytes(doors)).await;
    outcome.check(a_range_is_cut_at_the_end(doors)).await;
    outcome.check(an_empty_range_is_refused(doors)).await;
    outcome.check(an_unknown_name_is_not_found(doors)).await;
    outcome.check(a_replica_is_read_alone(doors)).await;
    outcome
        .check(slices_prove_themselves_to_a_stranger(doors))
        .await;
    outcome
        .check(a_record_comes_out_and_proves_itself(doors))
        .await;
    outcome
        .check(nothing_is_missing_from_an_intact_salvage(doors))
        .await;
    outcome
        .check(listing::a_listing_is_sorted_counted_and_ended(doors))
        .await;
    outcome
        .check(listing::listing_continues_after_a_name(doors))
        .await;
    outcome.check(listing::names_match_as_a_whole(doors)).await;
    outcome
        .check(listing::a_replica_lists_what_it_has(doors))
        .await;
    feed::all(doors, &mut outcome).await;
    outcome.check(a_receipt_is_given_again(doors)).await;
    outcome
        .check(the_status_counts_every_file_once(doors))
        .await;
    outcome
}

/// A stored file comes out whole, byte for byte, under the admission that was signed when it came in.
pub async fn a_stored_file_comes_out_whole(doors: Doors<'_>) -> Result<()> {
    let group = GROUP_SIZE;
    let odd = 300 * GROUP_SIZE + 1;
    for (size, seed) in [0, 1, group - 1, group, group + 1, SIZE, odd]
        .into_iter()
        .zip(1..)
    {
        let (name, bytes, stored) = doors
            .put(&format!("access-whole-{size}.warc"), size, seed)
            .await?;
        let mut reading = doors.reader.get(&FileRange::whole_file(name)).await?;
        ensure!(reading.range == (0..size), "{size}: {:?}", reading.range);
        ensure!(
            reading.admission == stored.admission,
            "{:?}",
            reading.admission
        );
        let signed = Admission::verify(&reading.envelope, doors.trust)?;
        ensure!(signed == stored.admission, "{signed:?}");
        let mut read = Vec::new();
        while let Some(part) = reading.next().await? {
            ensure!(!part.is_empty(), "{size}: nothing comes");
            read.extend_from_slice(&part);
        }
        ensure!(read == bytes, "{size}: {} other bytes", read.len());
    }
    Ok(())
}

/// Of a range come its bytes, and none beside it, wherever it begins and ends.
pub async fn a_range_is_just_its_bytes(doors: Doors<'_>) -> Result<()> {
    let (name, bytes, _) = doors.put("access-ranges.warc", SIZE, 11).await?;
    let group = GROUP_SIZE;
    for (start, end) in [
        (0, Some(1)),
        (1, Some(2)),
        (group - 1, Some(group + 1)),
        (group, Some(2 * group)),
        (3 * group + 5, Some(30 * group + 6)),
        (SIZE - 1, Some(SIZE)),
        (SIZE - 8, None),
    ] {
        let (range, read) = doors.read(&name, start, end).await?;
        let meant = start..end.unwrap_or(SIZE);
        ensure!(range == meant, "{range:?} comes for {meant:?}");
        ensure!(
            Some(read.as_slice()) == within(&bytes, &meant),
            "{meant:?} differs"
        );
    }
    Ok(())
}

/// The part of a range past the end of the file is left out; a range that begins there is refused.
pub async fn a_range_is_cut_at_the_end(doors: Doors<'_>) -> Result<()> {
    let (name, bytes, _) = doors.put("access-end.warc", SIZE, 12).await?;
    for (start, end) in [
        (0, SIZE + 1),
        (GROUP_SIZE + 1, u64::MAX),
        (SIZE - 1, SIZE + GROUP_SIZE),
    ] {
        let (range, read) = doors
            .read(&name, start, Some(end))
            .await
            .with_context(|| format!("{start}..{end}"))?;
        ensure!(range == (start..SIZE), "{range:?} comes for {start}..{end}");
        ensure!(
            Some(read.as_slice()) == within(&bytes, &range),
            "{start}..{end} differs"
        );
    }
    for (start, end) in [
        (SIZE, None),
        (SIZE, Some(SIZE + 1)),
        (SIZE + 1, None),
        (u64::MAX, None),
    ] {
        let error = refusal(doors.read(&name, start, end).await)?;
        ensure!(
            matches!(error, ClientError::Invalid(_)),
            "{start}..{end:?}: {error:?}"
        );
    }
    let (empty, _, _) = doors.put("access-end-of-nothing.warc", 0, 0).await?;
    let (range, read) = doors.read(&empty, 0, Some(5)).await?;
    ensure!(range == (0..0) && read.is_empty(), "{range:?} of nothing");
    let error = refusal(doors.read(&empty, 1, None).await)?;
    ensure!(matches!(error, ClientError::Invalid(_)), "{error:?}");
    Ok(())
}

/// A range that is empty, or ends before it begins, is refused.
pub async fn an_empty_range_is_refused(doors: Doors<'_>) -> Result<()> {
    let (name, _, _) = doors.put("access-empty-range.warc", 100, 13).await?;
    for (start, end) in [(0, 0), (7, 7), (8, 7), (u64::MAX, 0)] {
        let error = refusal(doors.read(&name, start, Some(end)).await)?;
        ensure!(
            matches!(error, ClientError::Invalid(_)),
            "{start}..{end}: {error:?}"
        );
    }
    Ok(())
}

/// A name that nobody stored is not found, whatever is asked of it.
pub async fn an_unknown_name_is_not_found(doors: Doors<'_>) -> Result<()> {
    let name = name("access-never.warc")?;
    let whole = FileRange::whole_file(name.clone());
    let Doors { reader, .. } = doors;
    for (call, error) in [
        ("get", refusal(reader.get(&whole).await)?),
        ("slices", refusal(reader.slices(&whole).await)?),
        ("salvage", refusal(reader.salvage(&whole).await)?),
        ("receipt", refusal(reader.receipt(&name).await)?),
    ] {
        ensure!(
            matches!(error, ClientError::NotFound(_)),
            "{call}: {error:?}"
        );
    }
    Ok(())
}

/// Each replica that has bytes gives them alone; one that has none, or that there is not, is not replaced by another.
pub async fn a_replica_is_read_alone(doors: Doors<'_>) -> Result<()> {
    let (name, bytes, _) = doors.put("access-replicas.warc", SIZE, 14).await?;
    for (replica, kind) in doors.replicas().await? {
        let wanted = FileRange {
            replica: Some(replica.clone()),
            ..FileRange::whole_file(name.clone())
        };
        let read = doors.read_all(&wanted).await;
        match kind {
            ReplicaKind::Bitarchive => ensure!(read?.1 == bytes, "{replica} differs"),
            ReplicaKind::Checksum => {
                let error = refusal(read)?;
                ensure!(
                    matches!(error, ClientError::Invalid(_)),
                    "{replica}: {error:?}"
                );
            }
        }
    }
    let nowhere = FileRange {
        replica: Some(ReplicaId::new("nowhere")?),
        ..FileRange::whole_file(name)
    };
    refusal(doors.read_all(&nowhere).await)?;
    let selection = Selection {
        replica: nowhere.replica,
        ..Selection::default()
    };
    refusal(doors.list(&selection).await)?;
    Ok(())
}

/// Slices are whole groups that cover the range without a gap, and prove themselves to anyone who has the admission.
pub async fn slices_prove_themselves_to_a_stranger(doors: Doors<'_>) -> Result<()> {
    let (name, bytes, stored) = doors.put("access-slices.warc", SIZE, 15).await?;
    let start = GROUP_SIZE + 3;
    let end = 39 * GROUP_SIZE + 1;
    for (start, end, first, last) in [
        (start, Some(end), GROUP_SIZE, 40 * GROUP_SIZE),
        (0, None, 0, SIZE),
        (SIZE - 1, None, 40 * GROUP_SIZE, SIZE),
    ] {
        let wanted = FileRange {
            start,
            end,
            ..FileRange::whole_file(name.clone())
        };
        let mut slices = doors.reader.slices(&wanted).await?;
        let signed = Admission::verify(&slices.envelope, doors.trust)?;
        ensure!(signed == stored.admission, "{signed:?}");
        let mut at = first;
        while let Some(slice) = slices.next().await? {
            let Range { start, end } = slice.range;
            ensure!(start == at, "{start} comes after {at}");
            let mut proven = Vec::new();
            let range = start..end;
            let encoded = slice.encoded.as_ref();
            let ranges = std::slice::from_ref(&range);
            decode_ranges(encoded, signed.content(), ranges, |_, bytes| {
                proven.extend_from_slice(bytes);
                Ok(())
            })?;
            ensure!(
                Some(proven.as_slice()) == within(&bytes, &(start..end)),
                "{start}..{end} differs"
            );
            at = end;
        }
        ensure!(at == last, "ends at {at}, not at {last}");
    }
    Ok(())
}

/// A record is read by its offset alone, however small the file, and its proof is verified offline.
pub async fn a_record_comes_out_and_proves_itself(doors: Doors<'_>) -> Result<()> {
    let warc = |block: &[u8]| {
        let head = format!("WARC/1.1\r\nContent-Length: {}\r\n\r\n", block.len());
        [head.as_bytes(), block, b"\r\n\r\n"].concat()
    };
    let records = [warc(b"one"), warc(&noise(100_000, 16)), warc(b"three")];
    let name = name("access-records.warc")?;
    let file = records.concat();
    store(doors.depositor, &name, &file).await?;
    let mut start = 0;
    for expected in &records {
        let mut record = fetch_record(doors.reader, &name, start, None).await?;
        let mut read = Vec::new();
        while let Some(part) = record.next().await? {
            read.extend_from_slice(&part);
        }
        let end = start + expected.len() as u64;
        ensure!(record.range() == (start..end), "{:?}", record.range());
        ensure!(read == *expected, "the record at {start} differs");
        let proof = prove_record(doors.reader, &name, start..end, Vec::new()).await?;
        let mut proven = Vec::new();
        let said =
            record_proof::verify_record_proof(proof.as_slice(), doors.trust, |bytes: &[u8]| {
                proven.extend_from_slice(bytes);
                Ok(())
            })?;
        ensure!(said.range == (start..end), "{:?}", said.range);
        ensure!(proven == *expected, "what is proven at {start} differs");
        start = end;
    }
    Ok(())
}

/// The salvage of an intact file is all of it.
pub async fn nothing_is_missing_from_an_intact_salvage(doors: Doors<'_>) -> Result<()> {
    let (name, bytes, stored) = doors.put("access-salvage.warc", SIZE, 17).await?;
    for (start, end) in [
        (0, None),
        (GROUP_SIZE + 1, Some(3 * GROUP_SIZE)),
        (5, Some(SIZE + 9)),
    ] {
        let wanted = FileRange {
            start,
            end,
            ..FileRange::whole_file(name.clone())
        };
        let mut salvage = doors.reader.salvage(&wanted).await?;
        let signed = Admission::verify(&salvage.envelope, doors.trust)?;
        ensure!(signed == stored.admission, "{signed:?}");
        let meant = start..end.unwrap_or(SIZE).min(SIZE);
        ensure!(salvage.range == meant, "{:?} for {meant:?}", salvage.range);
        let mut read = Vec::new();
        while let Some(part) = salvage.next().await? {
            match part {
                SalvagedPart::Bytes(part) => read.extend_from_slice(&part),
                SalvagedPart::Hole(hole) => anyhow::bail!("{hole:?} in an intact file"),
            }
        }
        ensure!(
            Some(read.as_slice()) == within(&bytes, &meant),
            "{meant:?} differs"
        );
    }
    Ok(())
}

/// The receipt of a file is given again: signed, of the same admission and the same replicas.
pub async fn a_receipt_is_given_again(doors: Doors<'_>) -> Result<()> {
    let (name, _, stored) = doors.put("access-receipt.warc", 1000, 19).await?;
    let held = doors.reader.receipt(&name).await?;
    let envelope = Envelope::parse(held.envelope.as_bytes())?;
    let (receipt, admission) = Receipt::verify(&envelope, doors.trust)?;
    ensure!(receipt == held.receipt, "{receipt:?}");
    ensure!(admission == held.admission, "{admission:?}");
    ensure!(admission == stored.admission, "{admission:?}");
    ensure!(receipt.replicas == stored.receipt.replicas, "{receipt:?}");
    Ok(())
}

/// The status counts every file and byte once, whatever is stored again, and names every replica.
pub async fn the_status_counts_every_file_once(doors: Doors<'_>) -> Result<()> {
    let counts = |status: &ArchiveStatus| (status.files, status.bytes);
    let before = doors.reader.status().await?;
    let (name, bytes, stored) = doors.put("access-status.warc", 1000, 20).await?;
    store(doors.depositor, &name, &bytes).await?;
    let after = doors.reader.status().await?;
    let (files, size) = counts(&before);
    ensure!(
        counts(&after) == (files + 1, size + 1000),
        "{:?} after {:?}",
        counts(&after),
        counts(&before)
    );
    for replica in &after.replicas {
        ensure!(replica.problem.is_none(), "{replica:?}");
        let live = replica.nodes.iter().filter(|node| node.alive).count();
        ensure!(live > 0, "{replica:?}");
    }
    let named = after.replicas.len();
    ensure!(named == stored.replicas.len(), "{named} replicas");
    Ok(())
}

impl Doors<'_> {
    /// Stores bytes of this size.
    async fn put(
        &self,
        text: &str,
        size: u64,
        seed: u64,
    ) -> Result<(FileName, Vec<u8>, StoredFile)> {
        let name = name(text)?;
        let bytes = noise(usize::try_from(size)?, seed);
        let stored = super::store_deposit(self.depositor, &deposit(&name, &bytes)).await?;
        Ok((name, bytes, stored))
    }

    async fn read(
        &self,
        name: &FileName,
        start: u64,
        end: Option<u64>,
    ) -> Result<(Range<u64>, Vec<u8>), ClientError> {
        let wanted = FileRange {
            start,
            end,
            ..FileRange::whole_file(name.clone())
        };
        self.read_all(&wanted).await
    }

    /// Reads a range. Returns the range that comes, and its bytes.
    async fn read_all(&self, wanted: &FileRange) -> Result<(Range<u64>, Vec<u8>), ClientError> {
        let mut reading = self.reader.get(wanted).await?;
        let mut bytes = Vec::new();
        while let Some(part) = reading.next().await? {
            bytes.extend_from_slice(&part);
        }
        Ok((reading.range, bytes))
    }

    /// A whole listing: it has one end, and nothing after it.
    async fn list(
        &self,
        selection: &Selection,
    ) -> Result<(Vec<ListEntry>, Completeness), ClientError> {
        let mut listing = self.reader.list(selection).await?;
        let mut entries = Vec::new();
        let end = loop {
            match listing.next().await? {
                Some(ListItem::Entry(entry)) => entries.push(*entry),
                Some(ListItem::End(end)) => break end,
                None => return Err(ClientError::Bug("a listing without an end".to_owned())),
            }
        };
        match listing.next().await? {
            None => Ok((entries, end)),
            Some(more) => Err(ClientError::Bug(format!("after the end comes {more:?}"))),
        }
    }

    /// Returns every replica with its kind.
    async fn replicas(&self) -> Result<BTreeMap<ReplicaId, ReplicaKind>> {
        let status = self.reader.status().await?;
        let replicas = status.replicas.into_iter();
        Ok(replicas.map(|one| (one.replica, one.kind)).collect())
    }
}

/// The bytes of a range.
fn within<'a>(bytes: &'a [u8], range: &Range<u64>) -> Option<&'a [u8]> {
    bytes.get(usize::try_from(range.start).ok()?..usize::try_from(range.end).ok()?)
}
