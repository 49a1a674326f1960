//! The judgement of other programs on what we write.

use std::io::{Read as _, Write as _};
use std::process::Command;

use archive_formats::warc::Header;
use sha2::{Digest as _, Sha256};

use crate::files::{crawl, gzip, plain};

/// Fails if another implementation, the crate `warc`, reads other records than those that were written.
#[test]
fn the_warc_crate_reads_the_same_records() {
    let records = crawl();
    let unzipped = |file: &[u8]| {
        let mut bytes = Vec::new();
        let mut decoder = flate2::bufread::MultiGzDecoder::new(file);
        decoder.read_to_end(&mut bytes).unwrap();
        bytes
    };
    for file in [plain(&records), unzipped(&gzip(&records))] {
        let found: Vec<_> = warc::WarcReader::new(file.as_slice())
            .iter_records()
            .map(Result::unwrap)
            .collect();
        assert_eq!(found.len(), records.len());
        for (found, (head, block)) in found.iter().zip(&records) {
            assert!(found.body() == block.as_slice(), "{}", found.warc_id());
            let head = Header::parse(head);
            assert_eq!(found.warc_version(), "1.1");
            for name in ["WARC-Record-ID", "WARC-Type", "WARC-Target-URI"] {
                let theirs = found.header(name.into());
                assert_eq!(theirs.as_deref(), head.text_of(name).as_deref(), "{name}");
            }
        }
    }
}

/// Fails if `warcio check` finds a fault or a wrong digest in a file that this crate writes.
#[test]
fn warcio_finds_no_fault_in_what_is_written() {
    if Command::new("warcio").arg("--version").output().is_err() {
        tools_testing::skipped("warcio is not on PATH (pip install warcio)");
        return;
    }
    let records: Vec<_> = crawl()
        .into_iter()
        .map(|(head, block)| {
            let digest = Sha256::digest(&block);
            let digest = digest
                .iter()
                .fold(String::new(), |text, byte| format!("{text}{byte:02x}"));
            let head = String::from_utf8(head).unwrap();
            let head = head.replace(
                "WARC-Record-ID",
                &format!("WARC-Block-Digest: sha256:{digest}\r\nWARC-Record-ID"),
            );
            (head.into_bytes(), block)
        })
        .collect();
    for (file, suffix) in [(plain(&records), ".warc"), (gzip(&records), ".warc.gz")] {
        let mut path = tempfile::Builder::new().suffix(suffix).tempfile().unwrap();
        path.write_all(&file).unwrap();
        let output = Command::new("warcio")
            .args(["check", "-v"])
            .arg(path.path())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{suffix}: {said}{errors}");
        assert_eq!(said.matches("digest pass").count(), 6, "{said}");
        assert_eq!(said.matches("not checked (revisit)").count(), 2, "{said}");
        assert!(!said.contains("fail"), "{said}");
    }
}
