//! The index as people use it: captures are found seconds after a store, also where the index is killed in the middle.

use serde_json::Value;

use crate::archive::{Archive, wait};
use crate::batch::store;

/// Returns the lines of all captures, as the index gives them.
fn captures(archive: &Archive) -> Result<Vec<Value>, String> {
    let ran = archive.run(&["--json", "captures", "example", "--match", "domain"]);
    if ran.code != 0 {
        return Err(ran.err);
    }
    let lines = ran.out.lines();
    Ok(lines
        .map(|line| serde_json::from_str(line).expect("a document"))
        .collect())
}

/// Fails if a capture is lost, or shown twice, because the index was killed while it followed the archive.
#[test]
fn killed_index_loses_and_repeats_nothing() {
    let mut archive = Archive::processes(&[]);
    for round in 0..3 {
        // The first one, two, then three of the same files: what is there already is a success.
        drop(store(&archive, round + 1, 40, 2000));
        archive.kill("index");
        archive.restart("index");
    }
    let found = wait("all captures", || match captures(&archive) {
        Ok(found) if found.len() == 120 => Ok(found),
        other => Err(other.map(|found| found.len())),
    });
    let place = |capture: &Value| {
        let text = |field: &str| capture[field].as_str().expect("text").to_owned();
        (text("filename"), text("offset"))
    };
    let mut places: Vec<_> = found.iter().map(place).collect();
    places.sort();
    places.dedup();
    assert_eq!(places.len(), 120);
    let status = wait("nothing is behind", || {
        let ran = archive.run(&["--json", "index", "status"]);
        if ran.code == 0 && ran.json()["behind"] == 0 {
            return Ok(ran.json());
        }
        Err(ran)
    });
    assert_eq!(
        (&status["indexed"], &status["captures"]),
        (&3.into(), &120.into())
    );

    let all = archive.path("all.cdxj");
    let shown = all.to_str().expect("text");
    archive.run(&["index", "export", "-o", shown]).expect(0);
    let exported = std::fs::read_to_string(&all).expect("read");
    assert_eq!(exported.lines().count(), 120);
    let again = archive.run(&["index", "export", "-o", shown]);
    again.expect(5);
    archive
        .run(&["index", "import", shown, "--set", "copy"])
        .expect(0);
    let set = archive.run(&["index", "export", "--set", "copy", "-o", "-"]);
    assert_eq!(set.expect(0).out, exported);
    archive.run(&["index", "rebuild", "--yes"]).expect(0);
    archive.stop();
}
