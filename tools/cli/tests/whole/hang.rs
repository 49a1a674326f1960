//! Processes that hang: stopped, not ended, with every connection open.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::archive::{Archive, executable, wait};

const SIZE: usize = 96 * 1024 * 1024;

/// Fails if a node that stops in the middle of a store, with its connections open, holds its depositor up without end
/// or never gets the file.
#[test]
fn hanging_process_is_dropped_and_later_repaired() {
    let archive = Archive::processes(&["repository.stall=10 s", "repair.automatic=off"]);
    let path = archive.make("big.warc", SIZE);
    let incoming = archive.volume("two").join("incoming");
    let received = || {
        let entries = std::fs::read_dir(&incoming).expect("list").flatten();
        let lengths = entries.filter_map(|entry| Some(entry.metadata().ok()?.len()));
        lengths.max().unwrap_or(0)
    };
    let mut storing = executable()
        .arg("--client")
        .arg(archive.data().join("client.toml"))
        .arg("store")
        .arg(&path)
        .spawn()
        .expect("store");
    wait("the middle of the store", || {
        let ended = storing.try_wait().expect("wait");
        assert!(ended.is_none(), "it was too fast to be stopped: {ended:?}");
        received() > 4 << 20
    });
    archive.signal("bitarchive-two", Signal::STOP);
    let begun = Instant::now();
    let code = storing.wait().expect("an end").code();
    assert!(matches!(code, Some(1 | 4)), "{code:?}");
    let took = begun.elapsed();
    assert!(took < Duration::from_mins(2), "{took:?}");

    // The others are unaffected, and what hangs is named.
    let back = archive.path("back");
    let words = ["get", "big.warc", "-o", back.to_str().expect("text")];
    archive.run(&words).expect(0);
    assert!(archive.is_whole("one", "big.warc", SIZE));
    archive.store_into_some("small.warc", 1000);
    assert!(archive.is_whole("one", "small.warc", 1000));
    let alive = |archive: &Archive| {
        let status = archive.run(&["--json", "status"]).json();
        let replicas = status["replicas"].as_array().expect("replicas").clone();
        let two = replicas.into_iter().find(|one| one["replica"] == "two");
        two.expect("two")["nodes"][0]["alive"] == true
    };
    wait("the node to be missed", || !alive(&archive));

    archive.signal("bitarchive-two", Signal::CONT);
    wait("the node to be back", || alive(&archive));
    wait("both files in both replicas", || {
        let names = ["big.warc", "small.warc"].map(|name| archive.path(name));
        let words = names.iter().map(|path| path.to_str().expect("text"));
        let words: Vec<&str> = std::iter::once("store").chain(words).collect();
        archive.run(&words).code == 0
    });
    for (name, size) in [("big.warc", SIZE), ("small.warc", 1000)] {
        for replica in ["one", "two"] {
            assert!(archive.is_whole(replica, name, size), "{name} in {replica}");
        }
    }
    archive.run(&["check", "checksums"]).expect(0);
}
