//! Trust files, and the envelopes that they accept.

use super::*;
use crate::key::SigningKey;

const TYPE: &str = "text/plain";

fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn trusted(seed: u8, until: Option<&str>) -> TrustedKey {
    let public_key = SigningKey::from_seed([seed; 32]).public_key();
    TrustedKey {
        archive: "kb".to_owned(),
        public_key,
        from: time("2026-01-01T00:00:00Z"),
        until: until.map(time),
    }
}

fn file() -> TrustFile {
    TrustFile::new(vec![
        trusted(1, Some("2027-01-01T00:00:00Z")),
        trusted(2, None),
    ])
    .unwrap()
}

fn signed(seed: u8) -> Envelope {
    Envelope::sign(TYPE, b"hello", &SigningKey::from_seed([seed; 32]))
}

/// Fails if a key or its term changes when a trust file is written and read.
#[test]
fn the_file_reads_what_it_writes() {
    let json = file().to_json().unwrap();
    assert_eq!(TrustFile::parse(json.as_bytes()).unwrap(), file());
    assert_eq!(file().keys().count(), 2);
}

/// Fails if a mistyped field, a wrong key id or an empty term passes, so that a key counts longer than people meant.
#[test]
fn the_file_is_read_strictly() {
    let json = file().to_json().unwrap();
    let id = SigningKey::from_seed([1; 32]).key_id();
    let cases = [
        (json.replace("trust/1", "trust/2"), "build that knows"),
        (
            json.replace("holdfast-trust", "holdfast-thrust"),
            "build that knows",
        ),
        (json.replace("\"version\"", "\"verzion\""), "version"),
        (json.replacen("\"until\"", "\"untill\"", 1), "untill"),
        (json.replacen("\"from\"", "\"since\"", 1), "since"),
        (json.replace("2027", "2025"), "ends before"),
        (json.replace(&id, &"0".repeat(32)), "correct one of the two"),
        (json.replacen("MCow", "MCox", 1), "public Ed25519 key"),
        (json.replacen("T00:00:00Z", "", 1), "cannot be read"),
        (format!("{json}{json}"), "trailing"),
    ];
    for (bad, reason) in cases {
        let error = TrustFile::parse(bad.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(reason), "{reason}: {error}");
    }
    let twice = TrustFile::new(vec![trusted(1, None), trusted(1, None)]);
    assert!(matches!(twice, Err(InvalidTrustFile::Twice { .. })));
}

/// Fails if a payload is given out whose signature is missing, forged, of an unknown key or for another type.
#[test]
fn only_a_trusted_signature_yields_a_payload() {
    let trust = file();
    let envelope = signed(2);
    assert_eq!(
        trust.verify_envelope(&envelope, TYPE).unwrap().payload,
        b"hello"
    );
    let error = trust.verify_envelope(&envelope, "text/html").unwrap_err();
    assert!(matches!(error, VerifyError::OtherType { found, .. } if found == TYPE));
    let stranger = trust.verify_envelope(&signed(3), TYPE).unwrap_err();
    assert_eq!(
        stranger,
        VerifyError::UnknownKey {
            key_ids: vec![SigningKey::from_seed([3; 32]).key_id()]
        }
    );
    let one = SigningKey::from_seed([1; 32]).key_id();
    let two = SigningKey::from_seed([2; 32]).key_id();
    for forged in [
        envelope.as_str().replace(&two, &one),
        envelope.as_str().replace("aGVsbG8=", "aGVsbGg="),
    ] {
        let forged = Envelope::parse(forged.as_bytes()).unwrap();
        assert!(matches!(
            trust.verify_envelope(&forged, TYPE),
            Err(VerifyError::BadSignature { .. })
        ));
    }
    let unsigned =
        Envelope::parse(br#"{"payload":"","payloadType":"text/plain","signatures":[]}"#).unwrap();
    assert!(
        trust
            .verify_envelope(&unsigned, TYPE)
            .unwrap_err()
            .to_string()
            .contains("nobody")
    );
}

/// Fails if the additional signature of a stranger makes that of a trusted key invalid.
#[test]
fn additional_signature_of_stranger_does_no_harm() {
    let mine = signed(1);
    let other = signed(9);
    let theirs = other
        .as_str()
        .split("\"signatures\":[")
        .nth(1)
        .unwrap()
        .trim_end_matches("]}");
    let both = mine
        .as_str()
        .replace("\"signatures\":[", &format!("\"signatures\":[{theirs},"));
    let both = Envelope::parse(both.as_bytes()).unwrap();
    assert_eq!(both.key_ids().count(), 2);
    assert_eq!(
        file().verify_envelope(&both, TYPE).unwrap().payload,
        b"hello"
    );
}

/// Fails if a key counts before its term, at the end of it, or for another archive.
#[test]
fn key_counts_for_its_archive_and_term() {
    let trust = file();
    let envelope = signed(1);
    let verified = trust.verify_envelope(&envelope, TYPE).unwrap();
    for (when, good) in [
        ("2025-12-31T23:59:59Z", false),
        ("2026-01-01T00:00:00Z", true),
        ("2026-12-31T23:59:59.999Z", true),
        ("2027-01-01T00:00:00Z", false),
    ] {
        let result = verified.accept_for("kb", time(when));
        assert_eq!(result.is_ok(), good, "{when}");
        assert!(good || matches!(result, Err(VerifyError::OutsideTerm { .. })));
    }
    let error = verified
        .accept_for("sb", time("2026-06-01T00:00:00Z"))
        .unwrap_err();
    assert!(matches!(error, VerifyError::OtherArchive { .. }));
}
