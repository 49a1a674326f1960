//! Signed statements and proofs.

use std::ops::{ControlFlow, Range};
use std::sync::OnceLock;

use archive_model::{FileContent, GROUP_SIZE, NodeId, ReplicaId, ReplicaKind, Root, VolumeId};
use archive_proof::testing::{self, signing_key, trust_in};
use archive_proof::{
    Admission, CopyBytes, CustodyStatement, Envelope, OutboardState, ProofWriter, Receipt, Tree,
    TreeBuilder, TrustFile, decode_ranges, encode_ranges, outboard_size, record_proof, walk_tree,
};

/// A file of a few groups, and all that is known of it.
struct Example {
    bytes: Vec<u8>,
    tree: Tree<Vec<u8>>,
    admission: Admission,
    envelope: Envelope,
    trust: TrustFile,
}

fn example() -> &'static Example {
    static EXAMPLE: OnceLock<Example> = OnceLock::new();
    EXAMPLE.get_or_init(|| {
        let mut bytes = vec![0; 70_000];
        blake3::Hasher::new().finalize_xof().fill(&mut bytes);
        let mut builder = TreeBuilder::new(Vec::new());
        builder.update(&bytes).unwrap();
        let tree = builder.finish().unwrap();
        let admission = testing::admission("a.warc.gz", &bytes);
        Example {
            envelope: admission.sign(&signing_key()).unwrap(),
            trust: trust_in(&signing_key()),
            bytes,
            tree,
            admission,
        }
    })
}

/// Returns a signed admission.
pub(crate) fn admitted() -> (&'static Admission, &'static Envelope) {
    (&example().admission, &example().envelope)
}

/// Returns the keys that are trusted.
pub(crate) fn trust() -> &'static TrustFile {
    &example().trust
}

/// Returns the text of a payload, for a fuzzer that cannot sign.
fn payload(envelope: &Envelope, kind: &str) -> Vec<u8> {
    let verified = example().trust.verify_envelope(envelope, kind).unwrap();
    verified.payload.to_vec()
}

pub(super) fn envelope_seeds() -> Vec<Vec<u8>> {
    vec![admitted().1.as_str().as_bytes().to_vec()]
}

pub(super) fn envelope(input: &[u8]) {
    let Ok(envelope) = Envelope::parse(input) else {
        return;
    };
    assert_eq!(envelope.as_str().as_bytes(), input, "kept byte for byte");
    if let Ok(admission) = Admission::verify(&envelope, trust()) {
        assert_eq!(&admission, admitted().0, "nobody else can sign");
    }
}

pub(super) fn admission_seeds() -> Vec<Vec<u8>> {
    let kind = archive_proof::admission::PAYLOAD_TYPE;
    vec![payload(&example().envelope, kind)]
}

pub(super) fn admission(input: &[u8]) {
    let kind = archive_proof::admission::PAYLOAD_TYPE;
    let signed = Envelope::sign(kind, input, &signing_key());
    if let Ok(read) = Admission::verify(&signed, &example().trust) {
        let again = read.sign(&signing_key()).unwrap();
        assert_eq!(Admission::verify(&again, &example().trust).unwrap(), read);
    }
}

fn custody(replica: &str) -> CustodyStatement {
    CustodyStatement {
        replica: ReplicaId::new(replica).unwrap(),
        kind: ReplicaKind::Bitarchive,
        completed: "2026-01-02T03:04:05Z".parse().unwrap(),
        node: NodeId::new("n-1").unwrap(),
        volume: Some(VolumeId::new("v-1").unwrap()),
    }
}

pub(super) fn receipt_seeds() -> Vec<Vec<u8>> {
    let receipt = Receipt {
        admission: example().envelope.clone(),
        replicas: vec![custody("one"), custody("two")],
        issued: "2026-01-02T03:04:06Z".parse().unwrap(),
    };
    let signed = receipt.sign(&signing_key()).unwrap();
    vec![payload(&signed, archive_proof::receipt::PAYLOAD_TYPE)]
}

pub(super) fn receipt(input: &[u8]) {
    let signed = Envelope::sign(archive_proof::receipt::PAYLOAD_TYPE, input, &signing_key());
    if let Ok((read, admission)) = Receipt::verify(&signed, &example().trust) {
        assert!(!read.replicas.is_empty());
        let again = read.sign(&signing_key()).unwrap();
        let again = Receipt::verify(&again, &example().trust).unwrap();
        assert_eq!(again, (read, admission));
    }
}

pub(super) fn trust_file_seeds() -> Vec<Vec<u8>> {
    vec![example().trust.to_json().unwrap().into_bytes()]
}

pub(super) fn trust_file(input: &[u8]) {
    if let Ok(read) = TrustFile::parse(input) {
        let text = read.to_json().unwrap();
        assert_eq!(TrustFile::parse(text.as_bytes()).unwrap(), read);
    }
}

pub(super) fn record_proof_seeds() -> Vec<Vec<u8>> {
    let Example {
        bytes,
        tree,
        admission,
        envelope,
        ..
    } = example();
    [0..1, 20_000..50_000, 69_999..70_000]
        .into_iter()
        .map(|range: Range<u64>| {
            let mut writer = ProofWriter::new(Vec::new(), envelope, admission, &range).unwrap();
            let rest = writer.rest_range();
            let slice = slice(bytes, tree, &rest);
            writer.add_range(rest, slice.as_slice()).unwrap();
            writer.finish().unwrap()
        })
        .collect()
}

pub(super) fn record_proof(input: &[u8]) {
    let Example { bytes, trust, .. } = example();
    let mut proven = Vec::new();
    let said = record_proof::verify_record_proof(input, trust, |more| {
        proven.extend_from_slice(more);
        Ok(())
    });
    if let Ok(said) = said {
        assert_eq!(Some(proven.as_slice()), part(bytes, &said.range));
    }
}

fn slice(bytes: &[u8], tree: &Tree<Vec<u8>>, range: &Range<u64>) -> Vec<u8> {
    let mut out = Vec::new();
    let ranges = std::slice::from_ref(range);
    let copy = CopyBytes {
        data: &bytes,
        outboard: Some(&tree.sink),
    };
    encode_ranges(copy, tree.content(), ranges, &mut out).unwrap();
    out
}

fn part<'a>(bytes: &'a [u8], range: &Range<u64>) -> Option<&'a [u8]> {
    bytes.get(usize::try_from(range.start).ok()?..usize::try_from(range.end).ok()?)
}

/// Takes a number off the front; 0 at the end.
fn number(input: &mut &[u8]) -> u64 {
    let Some((bytes, rest)) = input.split_first_chunk() else {
        return 0;
    };
    *input = rest;
    u64::from_le_bytes(*bytes)
}

pub(super) fn ranges_seeds() -> Vec<Vec<u8>> {
    let Example { bytes, tree, .. } = example();
    [0..70_000, 16_384..32_768, 1_000..60_000, 69_999..70_000]
        .iter()
        .map(|range| {
            let mut input = Vec::new();
            for number in [tree.size, range.start, range.end] {
                input.extend_from_slice(&u64::to_le_bytes(number));
            }
            input.extend_from_slice(&slice(bytes, tree, range));
            input
        })
        .collect()
}

/// Takes a size, a first byte, the byte behind the last one, and the stream.
pub(super) fn ranges(mut input: &[u8]) {
    let Example { bytes, tree, .. } = example();
    let size = number(&mut input);
    let start = number(&mut input);
    let end = number(&mut input);
    let range = start..end;
    let mut past = start;
    let content = FileContent {
        root: tree.root,
        size,
    };
    let decoded = decode_ranges(input, content, std::slice::from_ref(&range), |at, got| {
        let stands = at..at + got.len() as u64;
        assert!(at >= past && stands.end <= end, "in the range, ascending");
        assert_eq!(Some(got), part(bytes, &stands), "only what is proven");
        past = stands.end;
        Ok(())
    });
    if decoded.is_ok() && size == tree.size && start < end.min(size) {
        assert_eq!(past, end.min(size), "all of it");
    }
}

pub(super) fn outboard_seeds() -> Vec<Vec<u8>> {
    let Example { bytes, tree, .. } = example();
    [0, 1]
        .iter()
        .map(|kind| [&[*kind], tree.sink.as_slice(), bytes].concat())
        .collect()
}

/// Takes an input whose first byte selects the root; behind it are an outboard of the example's size, and data.
pub(super) fn outboard(input: &[u8]) {
    let Example { tree, .. } = example();
    let Some((kind, rest)) = input.split_first() else {
        return;
    };
    let length = usize::try_from(outboard_size(tree.size))
        .unwrap()
        .min(rest.len());
    let (pairs, data) = rest.split_at(length);
    let size = data.len() as u64;
    let own = Root::from_bytes(*blake3::hash(data).as_bytes());
    let root = if kind & 1 == 0 { tree.root } else { own };
    let copy = CopyBytes {
        data: &data,
        outboard: Some(&pairs),
    };
    let found = walk_tree(copy, FileContent { root, size }, &mut |_| {
        ControlFlow::Continue(())
    });
    assert!(found.unreadable.is_empty(), "memory can be read");
    let groups = size.div_ceil(GROUP_SIZE).max(1);
    assert!(found.damaged.iter().all(|group| group < groups));
    if root == own {
        assert!(
            found.damaged.is_empty(),
            "a bad outboard never blames good data"
        );
    } else {
        assert!(!found.damaged.is_empty(), "bad data is never good");
    }
    if found.outboard == OutboardState::Good && root == own {
        assert_eq!(pairs.len() as u64, outboard_size(size));
    }
}
