//! Records out of an archive: found without their length, never a byte that is not proven, and proven to others.

use std::sync::Arc;

use archive_client::{ClientError, ErrorClass, fetch_record, prove_record, record_of_length};
use archive_formats::record_end::RecordKind;
use archive_model::FileName;
use flate2::Compression;
use flate2::write::GzEncoder;
use proto_archive::wire::get_response::Step;
use tools_testing::noise;

use crate::archive::GetFault;
use crate::world::{ServedArchive, trust};

const NAME: &str = "a.warc.gz";

fn name() -> FileName {
    FileName::new(NAME).unwrap()
}

fn warc(block: &[u8]) -> Vec<u8> {
    let length = block.len();
    let mut record =
        format!("WARC/1.1\r\nWARC-Type: resource\r\nContent-Length: {length}\r\n\r\n").into_bytes();
    record.extend_from_slice(block);
    record.extend_from_slice(b"\r\n\r\n");
    record
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Reads the record at `offset`, and returns the bytes that came and how it ended.
async fn read(
    world: &ServedArchive,
    offset: u64,
) -> (Vec<u8>, Result<Option<RecordKind>, ClientError>) {
    let reader = world.reader();
    let mut came = Vec::new();
    let mut record = match fetch_record(&reader, &name(), offset, None).await {
        Ok(record) => record,
        Err(error) => return (came, Err(error)),
    };
    loop {
        match record.next().await {
            Ok(Some(bytes)) => came.extend_from_slice(&bytes),
            Ok(None) => {
                assert_eq!(record.range(), offset..offset + came.len() as u64);
                return (came, Ok(record.kind()));
            }
            Err(error) => return (came, Err(error)),
        }
    }
}

async fn proof(world: &ServedArchive, range: std::ops::Range<u64>) -> Vec<u8> {
    prove_record(&world.reader(), &name(), range, Vec::new())
        .await
        .unwrap()
}

/// Fails if the end of a WARC, gzip or ARC record is found at a wrong byte, or its record proof is for other bytes.
#[tokio::test]
async fn records_of_every_kind_come_whole_and_proven() {
    let world = ServedArchive::new().await;
    // The sizes are smaller than a group, over several groups, and over several requests; the last record ends the
    // file.
    let sizes = [0, 100, 70_000, 16_000, 1_000_000, 5, 300_000];
    for kind in [RecordKind::Warc, RecordKind::Gzip, RecordKind::Arc] {
        let records: Vec<Vec<u8>> = sizes
            .iter()
            .map(|size| match kind {
                RecordKind::Warc => warc(&noise(*size, 1)),
                RecordKind::Gzip => gzip(&warc(&noise(*size, 1))),
                RecordKind::Arc => {
                    let line = format!("http://a/ 192.0.2.1 20080430204825 text/html {size}\n");
                    [line.as_bytes(), &noise(*size, 1), b"\n"].concat()
                }
            })
            .collect();
        world.archive.put(NAME, &records.concat());
        let mut offset = 0;
        for record in records {
            let (came, outcome) = read(&world, offset).await;
            assert_eq!(outcome.unwrap(), Some(kind));
            assert!(came == record, "the record at {offset}");
            let range = offset..offset + came.len() as u64;
            let proof = proof(&world, range.clone()).await;
            let mut proven = Vec::new();
            let said = archive_proof::record_proof::verify_record_proof(
                proof.as_slice(),
                &trust(),
                |bytes| {
                    proven.extend_from_slice(bytes);
                    Ok(())
                },
            );
            let said = said.unwrap();
            assert_eq!((said.range, said.admission.name), (range.clone(), name()));
            assert!(proven == came);
            offset = range.end;
        }
    }
}

/// Fails if a length that the caller gives, right or wrong, changes the record, or is believed.
#[tokio::test]
async fn announced_length_changes_no_record() {
    let world = ServedArchive::new().await;
    let records = [
        warc(&noise(70_000, 1)),
        gzip(&warc(&noise(16_000, 2))),
        gzip(&warc(&noise(2_000_000, 3))),
        warc(b"short"),
    ];
    world.archive.put(NAME, &records.concat());
    let reader = world.reader();
    let mut offset = 0;
    for expected in records {
        let length = expected.len() as u64;
        for told in [0, 1, length - 1, length, length + 1, 10 * length, u64::MAX] {
            let mut record = record_of_length(&reader, &name(), offset, told)
                .await
                .unwrap();
            let mut came = Vec::new();
            while let Some(bytes) = record.next().await.unwrap() {
                came.extend_from_slice(&bytes);
            }
            assert!(came == expected, "at {offset}, told {told}");
        }
        offset += length;
    }
}

/// Fails if bytes that begin no record are handed out as one, or the error does not show the bytes at the offset.
#[tokio::test]
async fn offset_without_record_is_refused_with_bytes_shown() {
    let world = ServedArchive::new().await;
    let one = gzip(&warc(b"one"));
    let two = gzip(&warc(&noise(100_000, 2)));
    let file = [one.as_slice(), &two[..two.len() - 9]].concat();
    world.archive.put(NAME, &file);
    for (offset, class, says) in [
        (3, ErrorClass::Usage, "there is \"\\x00"),
        (file.len() as u64, ErrorClass::Usage, "there is no byte"),
        (u64::MAX, ErrorClass::Usage, "there is no byte"),
        (one.len() as u64, ErrorClass::Failed, "the file ends before"),
    ] {
        let (_, outcome) = read(&world, offset).await;
        let error = outcome.unwrap_err();
        assert_eq!(error.class(), class, "{error}");
        let text = error.to_string();
        assert!(
            text.contains(NAME) && text.contains(says),
            "{offset}: {text}"
        );
    }
    world.archive.put(NAME, b"");
    let (_, outcome) = read(&world, 0).await;
    assert!(outcome.unwrap_err().to_string().contains("nothing"));
}

/// Fails if bytes that failed their proof come out as part of a record or in a record proof, or an answer that was cut
/// yields either.
#[tokio::test]
async fn false_bytes_are_neither_handed_out_nor_proven() {
    let world = ServedArchive::new().await;
    let record = warc(&noise(200_000, 3));
    world.archive.put(NAME, &record);
    let fault: GetFault = Arc::new(|mut messages| {
        if let Some(Step::Segment(segment)) =
            messages.last_mut().and_then(|last| last.step.as_mut())
        {
            let mut encoded = segment.encoded.to_vec();
            let last = encoded.len() - 1;
            encoded[last] ^= 1;
            segment.encoded = encoded.into();
        }
        messages.into_iter().map(Ok).collect()
    });
    world.archive.state().get_fault = Some(fault);
    let (came, outcome) = read(&world, 0).await;
    assert!(
        matches!(outcome, Err(ClientError::Untrusted(_))),
        "{outcome:?}"
    );
    assert!(record.starts_with(&came));
    let proven = prove_record(&world.reader(), &name(), 0..1, Vec::new()).await;
    assert!(
        matches!(proven, Err(ClientError::Untrusted(_))),
        "{proven:?}"
    );
    // The archive sends only the first message of its answer.
    world.archive.state().get_fault = Some(Arc::new(|messages| {
        messages.into_iter().take(1).map(Ok).collect()
    }));
    let (came, outcome) = read(&world, 0).await;
    assert!(
        matches!(outcome, Err(ClientError::Unavailable(_))),
        "{outcome:?}"
    );
    assert!(came.is_empty());
    let proven = prove_record(&world.reader(), &name(), 0..1, Vec::new()).await;
    assert!(
        matches!(proven, Err(ClientError::Unavailable(_))),
        "{proven:?}"
    );
}
