//! `pki`: certificates that are made, issued and revoked; nothing is overwritten.

use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, SystemTime};

use archive_rpc::{CredentialFiles, Credentials, Serial};

use crate::holdfast::{executable, run};

fn mode(path: &std::path::Path) -> u32 {
    std::fs::metadata(path).expect("stat").permissions().mode() & 0o777
}

/// Returns a time after the certificate was issued, which the test does not know to the second.
fn soon() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(jiff_now() + 60)
}

fn jiff_now() -> u64 {
    u64::try_from(jiff::Timestamp::now().as_second()).expect("after 1970")
}

/// Fails if a key is written over or can be read by others, if an unknown role gets a certificate, or if a damaged list
/// of revocations is begun anew.
#[test]
fn authority_issues_working_certificates_and_revokes_them() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let holdfast = |words: &[&str]| run(executable().args(words).current_dir(directory.path()));
    let ran = holdfast(&["pki", "init", "pki", "--environment", "archive.example"]).expect(0);
    assert!(
        ran.out.contains("goes to no machine") && ran.out.contains("pki issue"),
        "{ran:?}"
    );
    assert_eq!(mode(&at("pki/authority.key")), 0o600);
    let key = std::fs::read(at("pki/authority.key")).unwrap();
    holdfast(&["pki", "init", "pki"]).expect(5);
    assert_eq!(std::fs::read(at("pki/authority.key")).unwrap(), key);
    holdfast(&["pki", "init", "other", "--environment", "No Name"]).expect(2);
    holdfast(&["pki", "init", "other", "--days", "9999999"]).expect(2);
    assert!(!at("other").try_exists().unwrap());

    let issue = |grants: &[&str], out: &str| {
        holdfast(&[&["pki", "issue", "--dir", "pki", "-o", out], grants].concat())
    };
    let ran = issue(
        &[
            "node/kb-3",
            "--dns",
            "kb-3.example.org",
            "--dns",
            "192.0.2.1",
        ],
        "kb-3",
    )
    .expect(0);
    assert!(
        ran.out.contains("[rpc]") && ran.out.contains("node-kb-3.pem"),
        "{ran:?}"
    );
    assert_eq!(mode(&at("kb-3/node-kb-3.key")), 0o600);
    let said = holdfast(&[
        "pki",
        "issue",
        "--dir",
        "pki",
        "-o",
        "anna",
        "officer/anna",
        "operator/anna",
        "--json",
    ])
    .expect(0)
    .json();
    let serial = said["serial"].as_str().unwrap().to_owned();
    let pem = std::fs::read_to_string(at("anna/officer-anna.pem")).unwrap();
    assert_eq!(Serial::of_certificate(&pem).unwrap().to_string(), serial);
    let files = |revoked: Option<&str>| CredentialFiles {
        certificate: at("anna/officer-anna.pem"),
        key: at("anna/officer-anna.key"),
        authorities: at("anna/authority.pem"),
        revoked: revoked.map(at),
    };
    Credentials::from_files(files(Some("pki/revoked.pem")), soon()).unwrap();
    issue(&["officer/anna"], "anna").expect(5);
    let ran = issue(&["king/anna"], "x");
    assert!(ran.code == 2 && ran.err.contains("is no role"), "{ran:?}");
    issue(&["officer/anna", "--days", "99999"], "x").expect(2);
    issue(&["officer/anna", "--dns", "not a host"], "x").expect(2);
    assert!(!at("x").try_exists().unwrap());

    let revoke = |what: &str| holdfast(&["pki", "revoke", "--dir", "pki", what]);
    let ran = revoke("anna").expect(0);
    assert!(
        ran.out.contains(&serial) && ran.out.contains("now of 1"),
        "{ran:?}"
    );
    let ran = revoke(&serial).expect(0);
    assert!(
        ran.out.contains("as it was already") && ran.out.contains("now of 1"),
        "{ran:?}"
    );
    let ran = revoke("node/kb-3").expect(0);
    assert!(ran.out.contains("now of 2"), "{ran:?}");
    let ran = revoke("0123456789abcdef0123").expect(0);
    assert!(ran.out.contains("not issued in this directory"), "{ran:?}");
    let ran = revoke("bert").expect(2);
    assert!(ran.err.contains("correct it"), "{ran:?}");
    holdfast(&["pki", "revoke", "--dir", "kb-3", "anna"]).expect(2);
    // A list that is damaged is not begun anew.
    std::fs::remove_file(at("pki/revoked.pem")).unwrap();
    std::fs::copy(at("kb-3/authority.pem"), at("pki/revoked.pem")).unwrap();
    revoke("node/kb-3").expect(3);
}
