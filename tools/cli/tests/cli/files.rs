//! `store` and `get`, with receipts, and what they leave on the disk.

use std::sync::Arc;

use archive_rpc::CallErrorKind;
use proto_archive::wire::get_response::Step;
use tools_testing::noise;

use crate::archive::{Fault, GetFault, Wrong};
use crate::holdfast::Place;

const AS_READER: [&str; 2] = ["--as", "reader"];

fn with<'a>(words: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    [words, more].concat()
}

/// Fails if a folder without files is stored in silence, or plain text is written under the name of a compressed file.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn store_of_nothing_is_reported() {
    let place = Place::new().await;
    std::fs::create_dir(place.path("empty")).unwrap();
    let ran = place.holdfast(&["store", "-r", "empty"]).expect(0);
    assert!(ran.err.contains("nothing was stored"), "{ran:?}");
    let words = ["admin", "export", "-o", "x.jsonl.gz", "--as", "operator"];
    let ran = place.holdfast(&words).expect(2);
    assert!(ran.err.contains("not compressed"), "{ran:?}");
}

/// Fails if a name that is no UTF-8 ends the whole command, and what was stored is not reported.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn non_utf8_name_fails_alone_in_json() {
    use std::os::unix::ffi::OsStrExt;
    let place = Place::new().await;
    std::fs::create_dir(place.path("odd")).unwrap();
    place.write("odd/good.warc", b"good");
    let bad = std::ffi::OsStr::from_bytes(b"bad\xff.warc");
    std::fs::File::create_new(place.path("odd").join(bad)).unwrap();
    let ran = place.holdfast(&["store", "-r", "odd", "--json"]);
    assert_ne!(ran.code, 70, "{ran:?}");
    let document = ran.json();
    assert_eq!(document["stored"], 1);
    assert_eq!(document["failed"], 1);
    let files = document["files"].as_array().unwrap();
    assert!(
        files
            .iter()
            .any(|file| file["path"] == "odd/bad\u{fffd}.warc"),
        "{document}"
    );
}

/// Fails if a file comes back with other bytes than it was stored with, if its receipt is not valid, or if `get`
/// replaces a file without `--force`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stored_files_have_receipts_and_read_back_identical() {
    let place = Place::new().await;
    let one = noise(300_000, 1);
    let two = noise(5, 2);
    std::fs::create_dir(place.path("crawl")).unwrap();
    place.write("crawl/one.warc.gz", &one);
    place.write("crawl/Två.warc", &two);
    let ran = place
        .holdfast(&["store", "-r", "crawl", "--receipts", "new/receipts"])
        .expect(0);
    assert!(
        ran.out
            .contains("one.warc.gz  stored, 300.0 kB in one, two"),
        "{ran:?}"
    );
    assert!(
        ran.out.contains("2 stored, 0 failed") && ran.err.is_empty(),
        "{ran:?}"
    );

    let receipts = [
        "new/receipts/one.warc.gz.receipt.json",
        "new/receipts/Två.warc.receipt.json",
    ];
    let ran = place
        .holdfast(&with(&["verify", "receipt"], &receipts))
        .expect(0);
    assert!(
        ran.out.contains("one.warc.gz.receipt.json: good"),
        "{ran:?}"
    );
    let ran = place
        .holdfast(&["verify", "receipt", receipts[0], "--json"])
        .expect(0);
    let said = &ran.json()["receipts"][0];
    assert_eq!(
        (&said["valid"], &said["name"]),
        (&true.into(), &"one.warc.gz".into())
    );
    assert_eq!(said["root"], blake3::hash(&one).to_string());

    let ran = place
        .holdfast(&with(&["get", "one.warc.gz"], &AS_READER))
        .expect(0);
    assert!(
        ran.out.starts_with("one.warc.gz  300.0 kB verified"),
        "{ran:?}"
    );
    assert_eq!(place.read("one.warc.gz"), one);
    assert!(!place.has("one.warc.gz.partial"));
    let ran = place
        .holdfast(&with(
            &["get", "Två.warc", "-o", "crawl", "--json"],
            &AS_READER,
        ))
        .expect(5);
    assert_eq!(ran.json()["error"]["class"], "refused");
    let ran = place
        .holdfast(&with(
            &["get", "Två.warc", "-o", "crawl", "--force", "--json"],
            &AS_READER,
        ))
        .expect(0);
    let said = ran.json();
    assert_eq!(
        (&said["start"], &said["end"], &said["path"]),
        (&0.into(), &5.into(), &"crawl/Två.warc".into())
    );
    assert_eq!(place.read("crawl/Två.warc"), two);
}

/// Fails if `get -o -` writes anything but the bytes of the range to stdout, or a byte too few or too many.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn range_is_all_that_stdout_gets() {
    let place = Place::new().await;
    place.world.archive.put("a", b"0123456789");
    for (range, expected) in [("0-0", "0"), ("3-5", "345"), ("8-", "89"), ("8-100", "89")] {
        let ran = place
            .holdfast(&with(
                &["get", "a", "-o", "-", "--range", range],
                &AS_READER,
            ))
            .expect(0);
        assert_eq!((ran.out.as_str(), ran.err.as_str()), (expected, ""));
    }
    place
        .holdfast(&with(
            &["get", "a", "-o", "-", "--range", "10-"],
            &AS_READER,
        ))
        .expect(2);
    place
        .holdfast(&with(&["get", "a", "-o", "-", "--json"], &AS_READER))
        .expect(2);
    place
        .holdfast(&with(&["get", "b", "-o", "-"], &AS_READER))
        .expect(1);
    place
        .holdfast(&with(&["get", "../b", "-o", "-"], &AS_READER))
        .expect(2);
    place
        .holdfast(&with(&["get", "a", "-o", "no/such/place"], &AS_READER))
        .expect(2);
}

/// Fails if a flipped byte on the way from the archive is written to the disk, or half a file is left there when the
/// answer is cut.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unproven_file_leaves_nothing_behind() {
    let place = Place::new().await;
    place.world.archive.put("a", &noise(200_000, 3));
    let fault: GetFault = Arc::new(|mut messages| {
        if let Some(Step::Segment(segment)) = &mut messages[3].step {
            let mut encoded = segment.encoded.to_vec();
            encoded[2000] ^= 1;
            segment.encoded = encoded.into();
        }
        messages.into_iter().map(Ok).collect()
    });
    place.world.archive.state().get_fault = Some(fault);
    let ran = place.holdfast(&with(&["get", "a"], &AS_READER)).expect(1);
    assert!(ran.err.contains("do not believe this answer"), "{ran:?}");
    assert!(!place.has("a") && !place.has("a.partial"));
    place.world.archive.state().get_fault = Some(Arc::new(|messages| {
        messages.into_iter().take(2).map(Ok).collect()
    }));
    place.holdfast(&with(&["get", "a"], &AS_READER)).expect(4);
    assert!(!place.has("a") && !place.has("a.partial"));
}

/// Fails if one file that cannot be stored keeps the others from being tried, or if the exit code does not tell one
/// kind of failure from several.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_files_are_tried_despite_failures() {
    let place = Place::new().await;
    place.write("good", b"good");
    place.write("bad ", b"bad");
    let ran = place
        .holdfast(&["store", "bad ", "good", "missing", "--json"])
        .expect(2);
    let said = ran.json();
    assert_eq!((&said["stored"], &said["failed"]), (&1.into(), &2.into()));
    let good = said["files"]
        .as_array()
        .unwrap()
        .iter()
        .find(|file| file["path"] == "good")
        .unwrap();
    assert_eq!(
        (&good["already"], &good["replicas"][1]),
        (&false.into(), &"two".into())
    );
    assert!(place.world.archive.state().files.contains_key("good"));

    place.write("other", b"other");
    place
        .world
        .archive
        .fault(&[Fault::FailAfter(1, CallErrorKind::Exists)]);
    let ran = place.holdfast(&["store", "other"]).expect(5);
    assert!(
        ran.err.contains("other:") && ran.err.contains("another name"),
        "{ran:?}"
    );
    place
        .world
        .archive
        .fault(&[Fault::FailAfter(1, CallErrorKind::Exists)]);
    place.holdfast(&["store", "other", "missing"]).expect(1);
}

/// Fails if a receipt without a trusted signature is saved, or if the store counts as done.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn receipt_without_trusted_signature_is_not_saved() {
    let place = Place::new().await;
    place.write("other", b"other");
    place.world.archive.fault(&[Fault::Receipt(Wrong::Key)]);
    let ran = place
        .holdfast(&["store", "other", "--receipts", "receipts"])
        .expect(1);
    assert!(ran.err.contains("no trusted key"), "{ran:?}");
    assert!(
        !place.has("receipts/other.receipt.json"),
        "no receipt without a signature that counts"
    );
}

/// Fails if a store that the archive cannot take just now is given up at once, or tried again in silence.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn passing_failure_of_store_is_tried_again() {
    let place = Place::new().await;
    place.write("other", b"other");
    place
        .world
        .archive
        .fault(&[Fault::FailAfter(1, CallErrorKind::Unavailable)]);
    let ran = place.holdfast(&["store", "other"]).expect(0);
    assert!(ran.err.contains("attempt 1 failed"), "{ran:?}");
}

/// Fails if a file whose checksum is not that of the list, or is not in the list, is sent to the archive all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn checksum_list_is_compared_with_files() {
    let place = Place::new().await;
    place.write("abc", b"abc");
    let check = |name: &str, line: &str, code: i32| {
        place.write(name, line.as_bytes());
        place
            .holdfast(&["store", "abc", "--checksums", name])
            .expect(code)
    };
    check(
        "b3",
        "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85  x/abc\n",
        0,
    );
    check(
        "sha",
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad *abc\n",
        0,
    );
    check("md5", "900150983cd24fb0d6963f7d28e17f72  abc\n", 0);
    let ran = check("wrong", "900150983cd24fb0d6963f7d28e17f73  abc\n", 5);
    assert!(
        ran.err
            .contains("abc: the list says 900150983cd24fb0d6963f7d28e17f73"),
        "{ran:?}"
    );
    let ran = check("short", "900150983cd24fb0d6963f7d28e17f72  abd\n", 2);
    assert!(ran.err.contains("not in the list"), "{ran:?}");
    check("none", "hello\n", 2);
    let seen = place.world.archive.state().seen.clone();
    assert_eq!(seen.len(), 3, "what does not match is not sent");
    assert_eq!(
        (seen[1].open.sha256.len(), seen[2].open.md5.len()),
        (32, 16)
    );
    assert!(seen.iter().all(|seen| seen.open.blake3.len() == 32));
    place.holdfast(&["store", "abc", "--no-digest"]).expect(0);
    let last = place.world.archive.state().seen.last().unwrap().clone();
    assert!(last.open.no_digest && last.open.blake3.is_empty());
}

/// Fails if a receipt that was altered passes, if a bad one hides that another is good, or if verifying needs a client
/// file.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_receipts_are_distinguished() {
    let place = Place::new().await;
    place.write("a", b"a");
    place.holdfast(&["store", "a", "--receipts", "."]).expect(0);
    let good = String::from_utf8(place.read("a.receipt.json")).unwrap();
    place.write(
        "flipped.json",
        good.replacen("\"payload\":\"e", "\"payload\":\"f", 1)
            .as_bytes(),
    );
    place.write("none.json", b"hello");
    for (file, code) in [
        ("flipped.json", 1),
        ("none.json", 1),
        ("missing.json", 2),
        ("a", 1),
    ] {
        let ran = place
            .holdfast(&["verify", "receipt", file, "a.receipt.json", "--json"])
            .expect(code);
        let said = ran.json();
        assert_eq!(
            (&said["receipts"][0]["valid"], &said["receipts"][1]["valid"]),
            (&false.into(), &true.into())
        );
    }
    place
        .holdfast(&["verify", "receipt", "flipped.json", "missing.json"])
        .expect(1);
    place
        .holdfast(&[
            "verify",
            "receipt",
            "a.receipt.json",
            "--trust",
            "missing.json",
        ])
        .expect(3);
    // Offline: no client file is needed.
    std::fs::remove_file(place.path("holdfast-data/client.toml")).unwrap();
    place
        .holdfast(&[
            "verify",
            "receipt",
            "a.receipt.json",
            "--trust",
            "holdfast-data/trust.json",
        ])
        .expect(0);
}

/// Fails if a script cannot tell by the exit code whether the role, the settings or the network was at fault.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn denied_and_unreachable_have_their_exit_codes() {
    let mut place = Place::new().await;
    place.write("a", b"a");
    let ran = place
        .holdfast(&["store", "a", "--as", "reader/ben"])
        .expect(5);
    assert!(ran.err.contains("reader/ben"), "{ran:?}");
    place
        .holdfast(&["store", "a", "--as", "researcher"])
        .expect(3);
    place
        .holdfast(&["store", "a", "--set", "limits.atempts=1"])
        .expect(3);
    place.world.kill().await;
    let ran = place.holdfast(&["store", "a"]).expect(4);
    assert!(ran.err.contains("cannot be reached"), "{ran:?}");
    place.holdfast(&["get", "b"]).expect(4);
    let ran = place.holdfast(&["list", "--json"]).expect(4);
    assert_eq!(ran.json()["error"]["class"], "unreachable");
}
