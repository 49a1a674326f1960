//! Parts that are killed while the archive grows, and an index that is deleted: no capture is lost, and none is shown
//! twice.

use std::collections::BTreeSet;

use crate::support::chain::{Chain, text};
use crate::support::made::{Response, warc};

/// The captures of each file.
const CAPTURES: usize = 50;

fn file(number: usize) -> Vec<u8> {
    let urls: Vec<String> = (0..CAPTURES)
        .map(|page| format!("http://site-{number}.example/{page}"))
        .collect();
    let responses: Vec<Response<'_>> = urls
        .iter()
        .map(|url| Response {
            url,
            date: "2020-02-01T00:00:00Z",
            fields: "Content-Type: text/html\r\n",
            body: url.as_bytes(),
        })
        .collect();
    warc(&responses)
}

/// Fails if a part that is killed while files are stored and indexed takes a capture with it, or if what is reported
/// again counts twice.
#[test]
fn killed_parts_lose_and_repeat_nothing() {
    let mut chain = Chain::processes();
    let parts = [
        "index",
        "repository",
        "bitarchive-one",
        "bitarchive-two",
        "viewer",
    ];
    for (number, part) in parts.into_iter().enumerate() {
        let path = chain.archive.path(&format!("killed-{number}.warc.gz"));
        std::fs::write(&path, file(number)).unwrap();
        // The part is killed while the index reads the stored file; or before, and the file is stored without the part.
        if number % 2 == 0 {
            chain.archive.run(&["store", text(&path)]).expect(0);
            chain.archive.kill(part);
            chain.archive.restart(part);
        } else {
            chain.archive.kill(part);
            chain.archive.restart(part);
            chain.archive.until(&["store", text(&path)], 0);
        }
        chain.archive.wait_until_alive();
    }
    chain.wait_for_index();
    chain.wait_for_replay();
    let mut places = BTreeSet::new();
    for number in 0..parts.len() {
        let query = format!("/all/cdx?url=site-{number}.example&matchType=host&output=json");
        let answer = chain.get(&query).expect(200).text();
        assert_eq!(answer.lines().count(), CAPTURES, "{number}: {answer}");
        for line in answer.lines() {
            let row: serde_json::Value = serde_json::from_str(line).unwrap();
            let place = format!("{} {}", row["filename"], row["offset"]);
            assert!(places.insert(place), "twice: {row}");
        }
        for page in [0, CAPTURES - 1] {
            let url = format!("http://site-{number}.example/{page}");
            let shown = chain.get(&format!("/all/2020id_/{url}")).expect(200);
            assert_eq!(shown.text(), url);
        }
    }
    let exported = chain.export();
    assert_eq!(exported.lines().count(), parts.len() * CAPTURES);
    chain.archive.stop();
}

/// Fails if an index whose database is lost does not come back from the archive as it was.
#[test]
fn deleted_index_is_rebuilt_byte_for_byte() {
    let mut chain = Chain::processes();
    let paths: Vec<_> = (0..4)
        .map(|number| {
            let path = chain.archive.path(&format!("kept-{number}.warc.gz"));
            std::fs::write(&path, file(number)).unwrap();
            path
        })
        .collect();
    chain.store(&paths);
    let before = chain.export();
    assert_eq!(before.lines().count(), 4 * CAPTURES);
    chain.archive.kill("index");
    std::fs::remove_dir_all(chain.archive.data().join("index/captures")).unwrap();
    chain.archive.restart("index");
    chain.wait_for_index();
    assert!(chain.export() == before, "another export");
    let shown = chain
        .get("/all/2020id_/http://site-3.example/7")
        .expect(200);
    assert_eq!(shown.text(), "http://site-3.example/7");
    chain.archive.stop();
}
