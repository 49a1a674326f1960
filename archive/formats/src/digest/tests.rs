//! Digests in every spelling.

use super::*;

const EMPTY: [(Algorithm, &str); 5] = [
    (Algorithm::Sha1, "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"),
    (
        Algorithm::Sha256,
        "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    ),
    (
        Algorithm::Sha512,
        "sha512:cf83e1357eefb8bdf1542850d66d8007d620e4050b5715dc83f4a921d36ce9ce47d0d13c5d85f2b0ff8318d2877eec2f63b931bd47417a81a538327af927da3e",
    ),
    (Algorithm::Md5, "md5:d41d8cd98f00b204e9800998ecf8427e"),
    (
        Algorithm::Blake3,
        "blake3:af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262",
    ),
];

/// Fails if a digest is written in another base than other tools write: SHA-1 in Base32, all others in hex.
#[test]
fn every_algorithm_in_the_spelling_of_the_field() {
    for (algorithm, text) in EMPTY {
        assert_eq!(digest_bytes(algorithm, b"").to_string(), text);
        assert_eq!(
            text.parse::<Digest>().unwrap().value(),
            Some(&digest_bytes(algorithm, b""))
        );
    }
    let computed = Hashers::new(Algorithm::ALL).finish();
    assert_eq!(computed, EMPTY.map(|(a, _)| digest_bytes(a, b"")));
}

/// Fails if two spellings of one digest are called different: hex, Base32, Base64, capitals, padding, a hyphen in the
/// label.
#[test]
fn every_spelling_of_the_same_bytes_is_equal() {
    for algorithm in Algorithm::ALL {
        let value = digest_bytes(algorithm, b"holdfast");
        let bytes = value.as_bytes();
        let standard = base64::engine::general_purpose::STANDARD.encode(bytes);
        let url = base64::engine::general_purpose::URL_SAFE.encode(bytes);
        let spellings = [
            value.hex_text(),
            value.hex_text().to_uppercase(),
            BASE32.encode(bytes),
            BASE32.encode(bytes).to_lowercase(),
            BASE32.encode(bytes).trim_end_matches('=').to_owned(),
            standard.trim_end_matches('=').to_owned(),
            standard,
            url.trim_end_matches('=').to_owned(),
            url,
        ];
        let label = algorithm.label();
        let with_hyphen = label.replacen("sha", "SHA-", 1);
        for spelling in &spellings {
            for label in [label, &label.to_uppercase(), &with_hyphen] {
                let text = format!("{label}:{spelling}");
                let read: Digest = text.parse().unwrap();
                assert_eq!(read.value(), Some(&value), "{text}");
                assert_eq!(read.as_str(), text);
                assert_eq!(read.label(), label);
                assert_eq!(read, Digest::from(value.clone()));
            }
            assert_eq!(
                Digest::parse_unlabelled(spelling, algorithm)
                    .unwrap()
                    .value(),
                Some(&value)
            );
        }
    }
}

/// Fails if an algorithm is added whose digests have one length in two bases, so that one text could mean two digests.
#[test]
fn no_length_can_be_read_in_two_ways() {
    for algorithm in Algorithm::ALL {
        let n = algorithm.byte_length();
        let hex = n * 2;
        let base32 = (n * 8).div_ceil(5);
        let base64 = (n * 4).div_ceil(3);
        assert!(hex != base32 && base32 != base64 && hex != base64);
    }
}

/// Fails if a digest of an unknown algorithm is refused, changed, or equal to another digest.
#[test]
fn digest_of_unknown_algorithm_is_kept_unchecked() {
    let read: Digest = "Whirlpool:ABC".parse().unwrap();
    assert_eq!(
        (read.label(), read.value(), read.as_str()),
        ("Whirlpool", None, "Whirlpool:ABC")
    );
    assert_eq!(read, "Whirlpool:ABC".parse().unwrap());
    assert_ne!(read, "Whirlpool:ABD".parse().unwrap());
    assert_ne!(read, EMPTY[0].1.parse().unwrap());
}

/// Fails if a digest without an algorithm, or of the wrong length for its algorithm, is accepted.
#[test]
fn invalid_digest_says_why() {
    let check = |text: &str, why| assert_eq!(text.parse::<Digest>().unwrap_err(), why, "{text}");
    check("", InvalidDigest::NoAlgorithm);
    check(
        "3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ",
        InvalidDigest::NoAlgorithm,
    );
    check(":3I42", InvalidDigest::NoAlgorithm);
    check("sha1:", InvalidDigest::NoValue);
    check("sha1: ", InvalidDigest::NoValue);
    check(
        "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBY1",
        InvalidDigest::Value(Algorithm::Sha1),
    );
    check(
        "sha1:d41d8cd98f00b204e9800998ecf8427e",
        InvalidDigest::Value(Algorithm::Sha1),
    );
    assert_eq!(
        InvalidDigest::Value(Algorithm::Md5).to_string(),
        "the value is not the hex, Base32 or Base64 of a md5 digest (16 bytes)"
    );
}

/// Fails if a cut digest passes for a whole one, a changed one is equal to the digest that it was, or one that differs
/// in the case of a letter is not.
#[test]
fn cut_or_changed_digest_is_never_equal() {
    for (algorithm, text) in EMPTY {
        let whole: Digest = text.parse().unwrap();
        for cut in 0..text.len() {
            assert!(
                !text[..cut]
                    .parse::<Digest>()
                    .is_ok_and(|d| d.algorithm() == Some(algorithm))
            );
            for byte in 0..=127_u8 {
                let mut changed = text.as_bytes().to_vec();
                changed[cut] = byte;
                let changed = String::from_utf8(changed).unwrap();
                let read = changed.parse::<Digest>();
                let is_equal = read.as_ref().is_ok_and(|read| *read == whole);
                assert_eq!(is_equal, changed.eq_ignore_ascii_case(text), "{changed}");
                // Another digit is the digest of other bytes: the same ones when it is written and read again.
                if let Some(value) = read.as_ref().ok().and_then(Digest::value) {
                    assert_eq!(value.to_string().parse::<Digest>(), read);
                }
            }
        }
    }
}

/// Fails if the pieces in which the bytes arrive change a digest, or the counted length.
#[test]
fn pieces_hash_like_the_whole() {
    let bytes: Vec<u8> = (0..1000_u32).map(|n| n.to_le_bytes()[0]).collect();
    for step in [1, 7, 64, 999, 1000] {
        let mut hashers = Hashers::new(Algorithm::ALL);
        for piece in bytes.chunks(step) {
            hashers.write_all(piece).unwrap();
        }
        assert_eq!(hashers.length(), 1000);
        assert_eq!(
            hashers.finish(),
            Algorithm::ALL.map(|a| digest_bytes(a, &bytes))
        );
    }
}
