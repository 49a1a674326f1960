//! `record` with its proofs, and `get` of what is left of a damaged file.

use proto_archive::wire::salvage_response::Hole;
use tools_testing::noise;

use crate::holdfast::{Place, executable, run};

const AS_READER: [&str; 2] = ["--as", "reader"];

fn with<'a>(words: &[&'a str]) -> Vec<&'a str> {
    [words, &AS_READER].concat()
}

fn warc(block: &[u8]) -> Vec<u8> {
    let head = format!("WARC/1.1\r\nContent-Length: {}\r\n\r\n", block.len());
    [head.as_bytes(), block, b"\r\n\r\n"].concat()
}

/// Fails if the proof of a record cannot be verified with the trust file alone, or passes with a flipped bit and writes
/// the record.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn extracted_record_is_proven_without_the_archive() {
    let place = Place::new().await;
    let one = warc(&noise(50_000, 1));
    let two = warc(&noise(100_000, 2));
    let file = [one.as_slice(), &two].concat();
    place.world.archive.put("a.warc", &file);
    let offset = one.len().to_string();
    let ran = place
        .holdfast(&with(&[
            "record",
            "a.warc",
            &offset,
            "--proof",
            "two.proof",
        ]))
        .expect(0);
    assert!(ran.out.contains("warc record of 100.0 kB"), "{ran:?}");
    let own = format!("{offset}-a.warc");
    assert!(place.read(&own) == two);
    assert!(!place.has(format!("{own}.partial")) && !place.has("two.proof.partial"));
    place
        .holdfast(&with(&["record", "a.warc", &offset]))
        .expect(5);

    // On another machine: the proof and the trust file.
    let away = tempfile::tempdir().unwrap();
    let proof = place.path("two.proof");
    let trust = place.path("holdfast-data/trust.json");
    let verify = |words: &[&str]| {
        let mut command = executable();
        command.args(["verify", "proof"]).args(words);
        run(command.arg("--trust").arg(&trust).current_dir(away.path()))
    };
    let shown = proof.to_str().unwrap();
    let ran = verify(&[shown]).expect(0);
    assert!(
        ran.out.contains("good") && ran.out.contains("of a.warc"),
        "{ran:?}"
    );
    let said = verify(&[shown, "--json", "-o", "record"]).expect(0).json();
    let said = &said["proofs"][0];
    assert_eq!(
        (&said["start"], &said["end"], &said["valid"]),
        (&one.len().into(), &file.len().into(), &true.into())
    );
    assert_eq!(said["blake3"], blake3::hash(&two).to_string());
    assert!(std::fs::read(away.path().join("record")).unwrap() == two);

    let mut bytes = place.read("two.proof");
    let last = bytes.len() - 100;
    bytes[last] ^= 1;
    let bad = place.write("bad.proof", &bytes);
    let bad = bad.to_str().unwrap();
    let ran = verify(&[bad, "-o", "damaged"]).expect(1);
    assert!(ran.err.contains("does not hold"), "{ran:?}");
    assert!(!away.path().join("damaged").try_exists().unwrap());
    let said = verify(&[shown, bad, "--json"]).expect(1).json();
    assert_eq!(said["proofs"][1]["valid"], false);
    verify(&[shown, bad, "-o", "-"]).expect(2);
    verify(&["no.proof"]).expect(2);
}

/// Fails if an offset at which no record begins, or a record that is cut, leaves a file or a proof.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn offset_between_records_leaves_no_file() {
    let place = Place::new().await;
    place.world.archive.put("a.warc", &warc(&noise(50_000, 1)));
    let ran = place.holdfast(&with(&["record", "a.warc", "5"])).expect(2);
    assert!(
        ran.err.contains("there is \"1.1\\r\\nContent-Length"),
        "{ran:?}"
    );
    place
        .holdfast(&with(&["record", "a.warc", "99999999"]))
        .expect(2);
    place.holdfast(&with(&["record", "b.warc", "0"])).expect(1);
    let mut cut = warc(&noise(50_000, 1));
    cut.truncate(40_000);
    place.world.archive.put("cut.warc", &cut);
    let ran = place
        .holdfast(&with(&["record", "cut.warc", "0", "--proof", "p"]))
        .expect(1);
    assert!(ran.err.contains("bytes before the record does"), "{ran:?}");
    assert!(!place.has("0-cut.warc") && !place.has("0-cut.warc.partial"));
    assert!(!place.has("p") && !place.has("p.partial"));
    let ran = place
        .holdfast(&with(&["record", "a.warc", "0", "-o", "-", "--json"]))
        .expect(2);
    assert!(ran.out.contains("\"usage\""), "{ran:?}");
}

/// Fails if a salvage writes anything but zeros into a hole, or if its map lacks a hole or shifts one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn salvage_writes_good_bytes_and_a_map() {
    let place = Place::new().await;
    let data = noise(100_000, 4);
    place.world.archive.put("a", &data);
    let salvage = ["get", "a", "--salvage", "-o", "whole"];
    let ran = place.holdfast(&with(&salvage)).expect(0);
    assert!(ran.out.contains("100.0 kB verified"), "{ran:?}");
    assert!(place.read("whole") == data && !place.has("whole.holes.jsonl"));

    let hole = |start, end, unknown| Hole {
        start,
        end,
        unknown,
    };
    place.world.archive.state().holes = vec![hole(16384, 49152, false), hole(81920, 98304, true)];
    let ran = place
        .holdfast(&with(&["get", "a", "--salvage", "-o", "part"]))
        .expect(1);
    assert!(
        ran.out.contains("2 holes, 49.2 kB are zeros, 16.4 kB"),
        "{ran:?}"
    );
    let mut expected = data.clone();
    expected[16384..49152].fill(0);
    expected[81920..98304].fill(0);
    assert!(place.read("part") == expected);
    let map = String::from_utf8(place.read("part.holes.jsonl")).unwrap();
    assert_eq!(
        map,
        "{\"start\":16384,\"end\":49152,\"unknown\":false}\n{\"start\":81920,\"end\":98304,\"unknown\":true}\n"
    );
    let ran = place
        .holdfast(&with(&[
            "get",
            "a",
            "--salvage",
            "--map",
            "map",
            "-o",
            "json",
            "--json",
            "--range",
            "0-20000",
        ]))
        .expect(1);
    let said = ran.json();
    assert_eq!(
        (&said["lost"], &said["holes"], &said["map"]),
        (&(20_001 - 16_384).into(), &1.into(), &"map".into())
    );
    let ran = run(executable()
        .args(with(&[
            "get",
            "a",
            "--salvage",
            "-o",
            "-",
            "--range",
            "16384-16390",
        ]))
        .current_dir(place.directory.path()))
    .expect(1);
    assert_eq!(ran.out, "\0".repeat(7));
    assert!(ran.err.contains("bytes 16384-16390 are zeros"), "{ran:?}");
    let ran = place.holdfast(&with(&["get", "a", "--map", "m"]));
    assert_eq!(ran.code, 2, "{ran:?}");
}
