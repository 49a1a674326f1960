//! Values that people, settings and the wire write as text, certificates, and the points of streams that were cut.

use std::collections::VecDeque;
use std::fmt::{Debug, Display};
use std::str::FromStr;
use std::time::{Duration, SystemTime};

use archive_client::IdentityName;
use archive_daemon::telemetry::LogFilter;
use archive_daemon::{ByteSize, Period};
use archive_model::{AtticPlace, NodeId, ReplicaId, Root, UploadId, VolumeId};
use archive_proof::points::{STRIDE, is_point, split_groups};
use archive_proof::{Points, ResumeStates};
use archive_rpc::{CallErrorKind, CertificateAuthority, Grant, Identity, Role, Serial, Validity};

/// Reads a text and writes it, which must read back the same.
pub(crate) fn same<T>(text: &str)
where
    T: FromStr<Err: Debug> + Display + PartialEq + Debug,
{
    if let Ok(read) = text.parse::<T>() {
        assert_eq!(read.to_string().parse::<T>().unwrap(), read);
    }
}

/// A function that takes a text, and a text that is good.
type Word = (fn(&str), &'static str);

const WORDS: [Word; 14] = [
    (
        same::<Root>,
        "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff",
    ),
    (same::<NodeId>, "n-1"),
    (same::<ReplicaId>, "one"),
    (same::<VolumeId>, "v1"),
    (same::<UploadId>, "u-1"),
    (same::<Role>, "custodian"),
    (same::<Grant>, "officer/anna"),
    (same::<Serial>, "0f01"),
    (same::<IdentityName>, "officer/anna"),
    (same::<AtticPlace>, "one/n-1/v1/20260101T000000Z-a"),
    (same::<ByteSize>, "1.5 GiB"),
    (same::<Period>, "15 min"),
    (same::<LogFilter>, "warn,archive_daemon=debug"),
    (same::<CallErrorKind>, "not-found"),
];

pub(super) fn words_seeds() -> Vec<Vec<u8>> {
    let seeds = (0..).zip(WORDS);
    seeds
        .map(|(kind, (_, text))| [&[kind], text.as_bytes()].concat())
        .collect()
}

/// Takes an input whose first byte selects the kind of word; behind it is the text.
pub(super) fn words(input: &[u8]) {
    if let Some((kind, text)) = input.split_first()
        && let Ok(text) = str::from_utf8(text)
    {
        WORDS[usize::from(*kind) % WORDS.len()].0(text);
    }
}

pub(super) fn certificate_seeds() -> Vec<Vec<u8>> {
    let from = SystemTime::UNIX_EPOCH + Duration::from_hours(56 * 365 * 24);
    let validity = Validity {
        not_before: from,
        not_after: from + Duration::from_hours(24),
    };
    let authority = CertificateAuthority::create_authority("lab", validity).unwrap();
    let issue = |grants: &[&str]| {
        let grants: Vec<Grant> = grants.iter().map(|text| text.parse().unwrap()).collect();
        let issued = authority
            .issue_certificate(&grants, &["localhost"], validity)
            .unwrap();
        der(&issued.certificate)
    };
    vec![
        issue(&["node/n-1"]),
        issue(&["officer/anna", "custodian/anna", "monitor/one"]),
    ]
}

/// Returns the bytes of a certificate in PEM.
fn der(pem: &str) -> Vec<u8> {
    let digit = |byte: u8| match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    };
    let lines = pem.lines().filter(|line| !line.starts_with('-'));
    let digits: Vec<u8> = lines.flat_map(str::bytes).filter_map(digit).collect();
    let packed = digits.chunks(4).flat_map(|four| {
        let bits = four
            .iter()
            .fold(0_u32, |bits, digit| (bits << 6) | u32::from(*digit));
        let bits = bits << (6 * (4 - four.len()));
        bits.to_be_bytes()[1..four.len()].to_vec()
    });
    packed.collect()
}

/// A certificate, as the other end of a connection shows it.
pub(super) fn certificate(input: &[u8]) {
    let Ok(identity) = Identity::from_certificate(input) else {
        return;
    };
    let grants = identity.grants();
    assert!(!grants.is_empty() && grants.is_sorted(), "somebody's");
    let person = identity.person_name();
    for grant in grants {
        assert_eq!(grant.to_string().parse::<Grant>().as_ref(), Ok(grant));
        assert!(identity.is_named(grant.role(), grant.name()));
        let is_other = grant.role().is_personal() && Some(grant.name()) != person;
        assert!(!is_other, "nobody is two persons");
    }
    assert!(!identity.environment().contains('/'));
    let cut = &input[..input.len() - 1];
    assert!(Identity::from_certificate(cut).is_err(), "a cut one");
}

pub(super) fn points_seeds() -> Vec<Vec<u8>> {
    vec![vec![9, 127, 200, 3], vec![0, 1, 2, 128, 255, 127, 127]]
}

/// Each byte goes on by some strides, or back to one of the points.
pub(super) fn points(input: &[u8]) {
    let mut points = Points::default();
    let mut at = 0;
    for byte in input.iter().take(200) {
        if *byte < 128 {
            for _ in 0..=*byte {
                at += STRIDE;
                points.keep_state(at, || at);
            }
            assert_eq!(points.iter().last(), Some((at, &at)), "the newest is kept");
        } else {
            let known: Vec<u64> = points.iter().map(|(size, _)| size).collect();
            let chosen = known.get(usize::from(byte - 128) % known.len().max(1));
            at = chosen.copied().unwrap_or(0);
            assert_eq!(points.back_to(at).copied(), chosen.copied());
        }
        assert!(points.len() <= 16 * 24, "{}", points.len());
        assert!(points.iter().is_sorted_by_key(|(size, _)| size));
        assert!(
            points
                .iter()
                .all(|(size, state)| size == *state && is_point(size))
        );
    }
    for size in [0, at, at.saturating_sub(3), u64::MAX - 1] {
        let (piece, rest) = split_groups(size, input);
        assert_eq!([piece, rest].concat(), input);
        let end = u128::from(size) + piece.len() as u128;
        assert!(rest.is_empty() || end.is_multiple_of(u128::from(STRIDE)));
    }
    resume_states(input);
}

/// Each two bytes put a state or take one.
fn resume_states(input: &[u8]) {
    const MOST: usize = 300;
    let mut states = ResumeStates::new(MOST);
    let mut model: VecDeque<(u8, usize, usize)> = VecDeque::new();
    for (number, pair) in input.chunks_exact(2).take(500).enumerate() {
        let id = pair[0] % 8;
        let weight = usize::from(pair[1]);
        let upload = UploadId::new(&format!("u{id}")).unwrap();
        let place = model.iter().position(|(other, _, _)| *other == id);
        let old = place.and_then(|place| model.remove(place));
        if pair[0] < 128 {
            states.put_states(upload, weight, number);
            model.push_back((id, weight, number));
            while model.iter().map(|(_, weight, _)| weight).sum::<usize>() > MOST {
                model.pop_front();
            }
        } else {
            assert_eq!(
                states.take_states(&upload),
                old.map(|(_, _, number)| number)
            );
        }
    }
}
