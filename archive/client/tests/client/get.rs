//! Reading from an archive that lies: nothing unproven is ever handed out, and a short answer is an error.

use std::sync::Arc;

use archive_client::{Access, ArchiveReader, ClientError, ErrorClass, FileRange};
use archive_model::FileName;
use archive_proof::testing::admission;
use archive_rpc::CallErrorKind;
use proto_archive::wire::get_response::{Head, Step};
use proto_archive::wire::{GetResponse, Segment};
use tonic::Status;
use tools_testing::noise;

use crate::archive::GetFault;
use crate::serving::honest;
use crate::world::{ServedArchive, key};

/// Thirteen groups, five segments.
const SIZE: usize = 200_000;

const NAME: &str = "a.warc.gz";

fn wanted(start: u64, end: Option<u64>) -> FileRange {
    FileRange {
        start,
        end,
        ..FileRange::whole_file(FileName::new(NAME).unwrap())
    }
}

/// Reads a file, and returns the bytes that came and how it ended.
async fn read(reader: &ArchiveReader, wanted: &FileRange) -> (Vec<u8>, Result<(), ClientError>) {
    let mut came = Vec::new();
    let mut reading = match reader.get(wanted).await {
        Ok(reading) => reading,
        Err(error) => return (came, Err(error)),
    };
    loop {
        match reading.next().await {
            Ok(Some(bytes)) => came.extend_from_slice(&bytes),
            Ok(None) => return (came, Ok(())),
            Err(error) => {
                assert!(
                    matches!(reading.next().await, Ok(None)),
                    "nothing comes after an error"
                );
                return (came, Err(error));
            }
        }
    }
}

/// Fails if a range that begins or ends at the edge of a group or segment has a byte too many or too few.
#[tokio::test]
async fn every_range_is_what_was_asked_for() {
    let world = ServedArchive::new().await;
    let bytes = noise(SIZE, 1);
    world.archive.put(NAME, &bytes);
    let reader = world.reader();
    let edges = [0, 1, 16383, 16384, 16385, 49152, 100_000, 199_999, 200_000];
    for start in edges {
        for end in edges {
            if start >= end {
                continue;
            }
            let (came, outcome) = read(&reader, &wanted(start as u64, Some(end as u64))).await;
            outcome.unwrap();
            assert_eq!(came, bytes[start..end], "{start}..{end}");
        }
    }
    let (came, outcome) = read(&reader, &wanted(199_990, Some(u64::MAX))).await;
    outcome.unwrap();
    assert_eq!(came, bytes[199_990..]);
    let (came, outcome) = read(&reader, &wanted(0, None)).await;
    outcome.unwrap();
    assert_eq!(came, bytes);
}

/// Fails if a file that is empty, or that ends at the edge of a group, cannot be read.
#[tokio::test]
async fn small_and_empty_files_are_read_too() {
    let world = ServedArchive::new().await;
    for size in [0, 1, 16384, 16385] {
        let bytes = noise(size, 2);
        world.archive.put(NAME, &bytes);
        let (came, outcome) = read(&world.reader(), &wanted(0, None)).await;
        outcome.unwrap();
        assert_eq!(came, bytes);
    }
}

/// Fails if a range that is empty, reversed or behind the end of the file is reported as a failure of the archive.
#[tokio::test]
async fn range_beyond_file_is_callers_mistake() {
    let world = ServedArchive::new().await;
    world.archive.put(NAME, &noise(10, 3));
    for (start, end) in [
        (5, Some(5)),
        (5, Some(4)),
        (0, Some(0)),
        (10, None),
        (11, Some(12)),
    ] {
        let (_, outcome) = read(&world.reader(), &wanted(start, end)).await;
        let error = outcome.unwrap_err();
        assert_eq!(error.class(), ErrorClass::Usage, "{start} {end:?}: {error}");
    }
    let absent = FileRange::whole_file(FileName::new("absent").unwrap());
    let (_, outcome) = read(&world.reader(), &absent).await;
    assert!(
        matches!(outcome, Err(ClientError::NotFound(_))),
        "{outcome:?}"
    );
}

/// Fails if slices lack a group of the range, of which one byte may be wanted, or if an empty file has a slice of no
/// bytes.
#[tokio::test]
async fn slices_have_every_group_of_the_range() {
    let world = ServedArchive::new().await;
    let reader = world.reader();
    for (size, start, end, expected) in [
        (SIZE, 16383, Some(16385), 0..32768),
        (SIZE, 131_071, Some(131_073), 114_688..147_456),
        (SIZE, 199_999, None, 196_608..200_000),
        (SIZE, 0, None, 0..200_000),
        (0, 0, None, 0..0),
    ] {
        world.archive.put(NAME, &noise(size, 6));
        if size == 0 {
            // A peer may send a segment of no bytes.
            let fault: GetFault = Arc::new(|mut messages| {
                let step = Some(Step::Segment(Segment::default()));
                messages.push(GetResponse { step });
                messages.into_iter().map(Ok).collect()
            });
            world.archive.state().get_fault = Some(fault);
        }
        let mut slices = reader.slices(&wanted(start, end)).await.unwrap();
        let mut covered = expected.start..expected.start;
        while let Some(slice) = slices.next().await.unwrap() {
            assert_eq!(slice.range.start, covered.end, "{start}");
            assert!(!slice.range.is_empty(), "{start}");
            covered.end = slice.range.end;
        }
        assert_eq!(covered, expected, "{start}");
    }
}

type Change = Box<dyn Fn(&mut Vec<GetResponse>) + Send + Sync>;

fn segment(message: &mut GetResponse) -> &mut Segment {
    match &mut message.step {
        Some(Step::Segment(segment)) => segment,
        other => panic!("{other:?} is no segment"),
    }
}

fn head(message: &mut GetResponse) -> &mut Head {
    match &mut message.step {
        Some(Step::Head(head)) => head,
        other => panic!("{other:?} is no head"),
    }
}

fn flip(index: usize, place: impl Fn(usize) -> usize + Send + Sync + 'static) -> Change {
    Box::new(move |messages| {
        let segment = segment(&mut messages[index]);
        let mut encoded = segment.encoded.to_vec();
        let at = place(encoded.len());
        encoded[at] ^= 0x10;
        segment.encoded = encoded.into();
    })
}

/// Runs every change, and looks at what came: a prefix of the truth, and an error.
async fn check(changes: Vec<(String, Change)>, class: ErrorClass) {
    let world = ServedArchive::new().await;
    let bytes = noise(SIZE, 4);
    world.archive.put(NAME, &bytes);
    let reader = world.reader();
    for (what, change) in changes {
        let fault: GetFault = Arc::new(move |mut messages| {
            change(&mut messages);
            messages.into_iter().map(Ok).collect()
        });
        world.archive.state().get_fault = Some(fault);
        for (start, end) in [(0, SIZE), (20_000, SIZE)] {
            let (came, outcome) = read(&reader, &wanted(start as u64, Some(end as u64))).await;
            assert!(
                bytes[start..end].starts_with(&came),
                "{what}: unproven bytes"
            );
            match outcome {
                Err(error) => assert_eq!(error.class(), class, "{what}: {error}"),
                Ok(()) => panic!("{what}: believed"),
            }
        }
    }
}

/// Fails if a stream that ends between two messages counts as the whole range, or the cut as a lie of the archive.
#[tokio::test]
async fn a_stream_that_ends_early_anywhere_is_cut() {
    let cut = |keep: usize| -> (String, Change) {
        (
            format!("{keep} messages"),
            Box::new(move |messages| messages.truncate(keep)),
        )
    };
    check((0..5).map(cut).collect(), ErrorClass::Unreachable).await;
}

/// Fails if bytes of a segment with a flipped bit are handed out before they are proven.
#[tokio::test]
async fn a_flipped_bit_anywhere_is_found() {
    let mut changes = Vec::new();
    for index in 1..=4 {
        changes.push((format!("first byte of {index}"), flip(index, |_| 0)));
        changes.push((
            format!("middle of {index}"),
            flip(index, |length| length / 2),
        ));
        changes.push((
            format!("last byte of {index}"),
            flip(index, |length| length - 1),
        ));
    }
    check(changes, ErrorClass::Failed).await;
}

/// Fails if a segment that is missing, repeated, late or empty is accepted, or a second head between segments.
#[tokio::test]
async fn missing_repeated_or_reordered_segments_are_found() {
    let mut changes: Vec<(String, Change)> = Vec::new();
    for index in 1..=3 {
        changes.push((
            format!("without {index}"),
            Box::new(move |m| drop(m.remove(index))),
        ));
        changes.push((
            format!("{index} twice"),
            Box::new(move |m| m.insert(index, m[index].clone())),
        ));
        changes.push((
            format!("{index} late"),
            Box::new(move |m| m.swap(index, index + 1)),
        ));
        changes.push((
            format!("{index} at the end again"),
            Box::new(move |m| m.push(m[index].clone())),
        ));
        changes.push((
            format!("head again before {index}"),
            Box::new(move |m| m.insert(index, m[0].clone())),
        ));
        changes.push((
            format!("nothing before {index}"),
            Box::new(move |m| m.insert(index, GetResponse::default())),
        ));
        changes.push((
            format!("{index} empty"),
            Box::new(move |m| {
                let offset = segment(&mut m[index]).offset;
                let empty = Segment {
                    offset,
                    ..Segment::default()
                };
                m.insert(
                    index,
                    GetResponse {
                        step: Some(Step::Segment(empty)),
                    },
                );
            }),
        ));
    }
    check(changes, ErrorClass::Failed).await;
}

/// Fails if the offset or length that a segment states is believed, or bytes behind its end are ignored.
#[tokio::test]
async fn segments_that_lie_about_their_place_are_found() {
    let change = |what: &str, change: fn(&mut Segment)| -> (String, Change) {
        (
            what.to_owned(),
            Box::new(move |m| change(segment(&mut m[2]))),
        )
    };
    let changes = vec![
        change("a group further", |s| s.offset += 16384),
        change("a byte less", |s| s.length -= 1),
        change("a group less", |s| s.length -= 16384),
        change("a group more", |s| s.length += 16384),
        change("far too long", |s| s.length = u64::MAX - 16383),
        change("at the end of everything", |s| s.offset = u64::MAX),
        change("cut", |s| {
            s.encoded = s.encoded.slice(..s.encoded.len() - 1);
        }),
        change("trailing", |s| {
            s.encoded = [&s.encoded[..], b"x"].concat().into();
        }),
        change("no bytes", |s| s.encoded = bytes::Bytes::new()),
    ];
    check(changes, ErrorClass::Failed).await;
}

/// Fails if a file is read with an admission of another key, file or size, or under a head that states another range
/// than was asked for.
#[tokio::test]
async fn admission_of_other_file_is_untrusted() {
    let bytes = noise(SIZE, 4);
    let sign = |admission: &archive_proof::Admission, seed| {
        admission.sign(&key(seed)).unwrap().as_str().to_owned()
    };
    let own = admission(NAME, &bytes);
    let texts = [
        ("of a stranger", sign(&own, 2)),
        ("of another file", sign(&admission("b.warc.gz", &bytes), 1)),
        ("of other bytes", sign(&admission(NAME, &noise(SIZE, 5)), 1)),
        (
            "of another size",
            sign(
                &archive_proof::Admission {
                    size: own.size + 1,
                    ..own.clone()
                },
                1,
            ),
        ),
        (
            "changed",
            sign(&own, 1).replacen("\"payload\":\"e", "\"payload\":\"f", 1),
        ),
        ("none", String::new()),
    ];
    let mut changes: Vec<(String, Change)> = Vec::new();
    for (what, text) in texts {
        changes.push((
            what.to_owned(),
            Box::new(move |m| head(&mut m[0]).admission.clone_from(&text)),
        ));
    }
    changes.push((
        "other start".into(),
        Box::new(|m| head(&mut m[0]).start += 1),
    ));
    changes.push(("other end".into(), Box::new(|m| head(&mut m[0]).end -= 1)));
    changes.push(("no head".into(), Box::new(|m| drop(m.remove(0)))));
    check(changes, ErrorClass::Failed).await;
}

/// Fails if segments that prove themselves are accepted although their root is not the one in the admission.
#[tokio::test]
async fn other_file_in_its_place_is_untrusted() {
    let other = honest(NAME, &noise(SIZE, 99), 0..SIZE as u64);
    let swap: Change = Box::new(move |messages| {
        let own = messages[0].clone();
        *messages = other.clone();
        messages[0] = own;
    });
    check(
        vec![("other bytes under a good admission".to_owned(), swap)],
        ErrorClass::Failed,
    )
    .await;
}

/// Fails if good bytes before an error are lost, the error changes its kind, or an error behind the last byte is
/// ignored.
#[tokio::test]
async fn an_error_after_good_bytes_keeps_its_kind() {
    let world = ServedArchive::new().await;
    let bytes = noise(SIZE, 6);
    world.archive.put(NAME, &bytes);
    for (kind, class) in [
        (CallErrorKind::Damaged, ErrorClass::Failed),
        (CallErrorKind::Unavailable, ErrorClass::Unreachable),
    ] {
        let fault: GetFault = Arc::new(move |messages| {
            let good = messages.into_iter().take(3).map(Ok);
            good.chain([Err(
                kind.to_status("bytes 98304-98310 are intact in no replica")
            )])
            .collect()
        });
        world.archive.state().get_fault = Some(fault);
        let (came, outcome) = read(&world.reader(), &wanted(0, None)).await;
        assert_eq!(came, bytes[..98304]);
        let error = outcome.unwrap_err();
        assert_eq!(error.class(), class);
        assert!(error.to_string().contains("98304"), "{error}");
    }
    // An error after the last byte: the range is there, and still the answer is not complete.
    let fault: GetFault = Arc::new(|messages| {
        let all = messages.into_iter().map(Ok);
        all.chain([Err(Status::internal("late"))]).collect()
    });
    world.archive.state().get_fault = Some(fault);
    assert!(read(&world.reader(), &wanted(0, None)).await.1.is_err());
}

/// Fails if a read from an archive whose server has ended is not reported as unreachable.
#[tokio::test]
async fn read_from_closed_port_is_unreachable() {
    let mut world = ServedArchive::new().await;
    world.archive.put(NAME, &noise(SIZE, 7));
    world.kill().await;
    let (_, outcome) = read(&world.reader(), &wanted(0, None)).await;
    assert_eq!(outcome.unwrap_err().class(), ErrorClass::Unreachable);
}
