//! Record proofs: how they are written, and every way in which one is refused.

use archive_model::{FileName, Root};

use super::*;
use crate::admission::tests::{admission, key, trust};
use crate::ranges::encode_ranges;
use crate::read_at::CopyBytes;
use crate::testing::EDGES;
use crate::tree::{Tree, TreeBuilder};
use tools_testing::noise;

const G: u64 = GROUP_SIZE;

fn tree(data: &[u8]) -> Tree<Vec<u8>> {
    let mut builder = TreeBuilder::new(Vec::new());
    builder.update(data).unwrap();
    builder.finish().unwrap()
}

fn admit(data: &[u8]) -> (Admission, Envelope) {
    let admission = Admission {
        size: data.len() as u64,
        root: Root::from_bytes(*blake3::hash(data).as_bytes()),
        ..admission()
    };
    let envelope = admission.sign(&key()).unwrap();
    (admission, envelope)
}

/// The proof of `range`, from slices of at most `step` groups.
fn proof(data: &[u8], range: Range<u64>, step: u64) -> Vec<u8> {
    let (admission, envelope) = admit(data);
    let tree = tree(data);
    let mut writer = ProofWriter::new(Vec::new(), &envelope, &admission, &range).unwrap();
    while !writer.rest_range().is_empty() {
        let rest = writer.rest_range();
        let next = rest.start..rest.end.min(rest.start + step * G);
        let mut slice = Vec::new();
        let copy = CopyBytes {
            data: &data,
            outboard: Some(&tree.sink),
        };
        let ranges = std::slice::from_ref(&next);
        encode_ranges(copy, tree.content(), ranges, &mut slice).unwrap();
        writer.add_range(next, slice.as_slice()).unwrap();
    }
    writer.finish().unwrap()
}

fn check(proof: &[u8]) -> (Vec<u8>, Result<ProvenRecord, RecordProofError>) {
    let mut bytes = Vec::new();
    let result = verify_record_proof(proof, &trust(), |more| {
        assert!(!more.is_empty() && more.len() as u64 <= G);
        bytes.extend_from_slice(more);
        Ok(())
    });
    (bytes, result)
}

fn refused(proof: &[u8]) -> RecordProofError {
    check(proof).1.unwrap_err()
}

/// Fails if the proof of some range lacks bytes of it, or depends on the slices from which it was made.
#[test]
fn every_range_of_every_shape_is_proven() {
    for size in EDGES.into_iter().filter(|size| *size > 0) {
        let data = noise(size, 1);
        let size = size as u64;
        let edges = [0, 1, G - 1, G, G + 1, 3 * G, size / 2, size - 1, size];
        for start in edges {
            for end in edges {
                if start >= end || end > size {
                    continue;
                }
                let one = proof(&data, start..end, 1000);
                let (bytes, proven) = check(&one);
                let proven = proven.unwrap();
                assert_eq!((proven.range, proven.admission.size), (start..end, size));
                let expected = usize::try_from(start).unwrap()..usize::try_from(end).unwrap();
                assert!(bytes == data[expected], "{start}..{end} of {size}");
                assert!(one == proof(&data, start..end, 1), "the same from pieces");
            }
        }
    }
}

/// Fails if the bytes of a proof differ from their documentation, by which other programs read them.
#[test]
fn the_file_is_what_is_documented() {
    let data = noise(40_000, 2);
    let file = proof(&data, 20_000..20_010, 1);
    let (admission, envelope) = admit(&data);
    let line = format!(
        "{{\"version\":\"holdfast-record-proof/1\",\"admission\":{},\"start\":20000,\"end\":20010}}\n",
        serde_json::to_string(envelope.as_str()).unwrap()
    );
    let slice = file.strip_prefix(line.as_bytes()).unwrap();
    // The slice has three parts: the pair over all groups, the pair over the first two, the second group.
    assert_eq!(slice.len(), 64 + 64 + 16384);
    assert_eq!(slice[128..], data[16384..32768]);
    assert_eq!(check(&file).1.unwrap().admission, admission);
}

/// Fails if a cut proof, or one with bytes behind its end, verifies, a flipped bit outside of the numbers of the range
/// is believed, or any of these gives out a byte that is not at its place in the file.
#[test]
fn cut_or_flipped_proof_gives_out_true_bytes() {
    let data = noise(60_000, 3);
    let file = proof(&data, 30_000..40_000, 2);
    for cut in (0..file.len()).step_by(7).chain([file.len() - 1]) {
        let (bytes, result) = check(&file[..cut]);
        assert!(result.is_err(), "cut at {cut}");
        assert!(data[30_000..40_000].starts_with(&bytes), "cut at {cut}");
    }
    let header = file.iter().position(|byte| *byte == b'\n').unwrap();
    let numbers = b"\"start\":30000,\"end\":40000}";
    let numbers_at = header - numbers.len();
    assert_eq!(&file[numbers_at..header], numbers);
    for at in (0..file.len()).filter(|at| *at <= header + 200 || at % 11 == 0) {
        let mut flipped = file.clone();
        flipped[at] ^= 1;
        match check(&flipped) {
            // Another number asks for another range, which the same groups may prove as well.
            (bytes, Ok(proven)) => {
                assert!(
                    (numbers_at..header).contains(&at) && file[at].is_ascii_digit(),
                    "flip at {at}"
                );
                assert_ne!(proven.range, 30_000..40_000);
                let [start, end] = [proven.range.start, proven.range.end]
                    .map(|position| usize::try_from(position).unwrap());
                assert_eq!(bytes, data[start..end], "flip at {at}");
            }
            (bytes, Err(_)) if at > header => {
                assert!(data[30_000..40_000].starts_with(&bytes), "flip at {at}");
            }
            (bytes, Err(_)) => {
                assert!(data.windows(bytes.len().max(1)).any(|w| w == bytes) || bytes.is_empty());
            }
        }
    }
    let mut longer = file;
    longer.push(0);
    assert!(matches!(
        refused(&longer),
        RecordProofError::Slice(DecodeError::Trailing)
    ));
}

/// Fails if a proof of an empty range, of one beyond the file, or of other groups than its slice has, is believed.
#[test]
fn ranges_that_the_file_has_not_are_refused() {
    let data = noise(60_000, 4);
    let file = proof(&data, 30_000..40_000, 2);
    let text = |from: &str, to: &str| {
        let at = file.windows(from.len()).position(|w| w == from.as_bytes());
        let at = at.unwrap();
        [&file[..at], to.as_bytes(), &file[at + from.len()..]].concat()
    };
    let numbers = |start: &str, end: &str| {
        refused(&text(
            "\"start\":30000,\"end\":40000",
            &format!("\"start\":{start},\"end\":{end}"),
        ))
    };
    for (start, end) in [
        ("40000", "40000"),
        ("40001", "40000"),
        ("0", "60001"),
        ("60000", "60001"),
        ("18446744073709551614", "18446744073709551615"),
        ("0", "18446744073709551615"),
    ] {
        let error = numbers(start, end);
        assert!(
            matches!(error, RecordProofError::Range { .. }),
            "{start}..{end}: {error}"
        );
        assert!(error.to_string().contains("60000 bytes"), "{error}");
    }
    for (start, end) in [
        ("-1", "5"),
        ("0", "18446744073709551616"),
        ("1.5", "2"),
        ("null", "2"),
        ("\"1\"", "2"),
    ] {
        assert!(matches!(numbers(start, end), RecordProofError::Json(_)));
    }
    // The ranges are of other groups than the slice has.
    for (start, end) in [("0", "10"), ("30000", "60000"), ("16000", "40000")] {
        assert!(matches!(numbers(start, end), RecordProofError::Slice(_)));
    }
}

/// Fails if a proof verifies with the admission of another file, or with one that no trusted key has signed.
#[test]
fn foreign_or_untrusted_admission_proves_nothing() {
    let data = noise(60_000, 5);
    let other = noise(60_000, 6);
    let range = 30_000..40_000;
    let file = proof(&data, range.clone(), 1);
    let foreign = proof(&other, range, 1);
    let split = |file: &[u8]| file.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    let mixed = [&foreign[..split(&foreign)], &file[split(&file)..]].concat();
    assert!(matches!(
        refused(&mixed),
        RecordProofError::Slice(DecodeError::WrongProof)
    ));
    let nobody = TrustFile::default();
    let error = verify_record_proof(file.as_slice(), &nobody, |_| Ok(())).unwrap_err();
    assert!(matches!(error, RecordProofError::Admission(_)), "{error}");
    let renamed = Admission {
        name: FileName::new("other").unwrap(),
        ..admit(&data).0
    };
    let forged = renamed
        .sign(&crate::SigningKey::from_seed([9; 32]))
        .unwrap();
    let mut writer = ProofWriter::new(Vec::new(), &forged, &renamed, &(0..1)).unwrap();
    assert!(writer.add_range(0..G, [0; 100].as_slice()).is_err());
    assert!(matches!(
        refused(&writer.out),
        RecordProofError::Admission(_)
    ));
}

/// Fails if a proof of another version is read as if it were known, or a file without a line end is read without a
/// limit.
#[test]
fn other_versions_fail_and_newer_fields_pass() {
    let data = noise(60_000, 7);
    let file = proof(&data, 1..2, 1);
    let with = |to: &str| {
        let from = b"holdfast-record-proof/1\"";
        let at = file.windows(from.len()).position(|w| w == from).unwrap();
        [&file[..at], to.as_bytes(), &file[at + from.len()..]].concat()
    };
    assert!(
        check(&with("holdfast-record-proof/1.3\",\"more\":[1]"))
            .1
            .is_ok()
    );
    for other in ["holdfast-record-proof/2\"", "holdfast-receipt/1\"", "\""] {
        assert!(matches!(
            refused(&with(other)),
            RecordProofError::Version(_)
        ));
    }
    for (bytes, is_header) in [
        (b"".as_slice(), false),
        (b"{}", false),
        (b"{}\n", true),
        (b"WARC/1.0\r\n", true),
        (b"\n", true),
    ] {
        let error = refused(bytes);
        assert_eq!(
            matches!(error, RecordProofError::Json(_)),
            is_header,
            "{error}"
        );
    }
    let endless = io::BufReader::new(io::repeat(b'['));
    let error = verify_record_proof(endless, &trust(), |_| Ok(())).unwrap_err();
    assert!(matches!(error, RecordProofError::NoHeader), "{error}");
}

/// Fails if a slice that leaves a gap, is empty or ends within a group is accepted, or a proof is finished without its
/// end.
#[test]
fn a_writer_takes_what_follows_and_is_complete() {
    let data = noise(100_000, 8);
    let (admission, envelope) = admit(&data);
    let begin = |range: Range<u64>| ProofWriter::new(Vec::new(), &envelope, &admission, &range);
    assert!(matches!(
        begin(5..100_001),
        Err(RecordProofError::Range { .. })
    ));
    let mut writer = begin(0..100_000).unwrap();
    for wrong in [G..2 * G, 0..0, 0..100, 0..200_000] {
        let error = writer.add_range(wrong, [].as_slice()).unwrap_err();
        assert!(matches!(error, RecordProofError::Order { .. }), "{error}");
    }
    assert!(matches!(
        writer.finish(),
        Err(RecordProofError::Slice(DecodeError::Cut))
    ));
}
