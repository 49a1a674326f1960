//! A node that is taken out of service and put back: what the verb has said holds at once.

use crate::archive::Archive;

fn mode(archive: &Archive) -> String {
    let status = archive.run(&["--json", "status"]).json();
    let replicas = status["replicas"].as_array().expect("replicas");
    let one = replicas.iter().find(|replica| replica["replica"] == "one");
    let mode = &one.expect("one")["nodes"][0]["mode"];
    mode.as_str().expect("a mode").to_owned()
}

/// Fails if `node read-write` returns before the repository knows that it may store on the node again. Heartbeats are a
/// minute apart, so that none comes to help soon.
#[test]
fn node_takes_files_once_verb_has_returned() {
    let archive = Archive::start(&["monitor.heartbeat=1 min", "monitor.silent_after=1 h"]);
    for round in 0..3 {
        archive.run(&["node", "read-only", "one-1"]).expect(0);
        assert_eq!(mode(&archive), "read-only");
        archive.store_into_some(&format!("early-{round}.warc"), 20_000);
        archive.run(&["node", "read-write", "one-1"]).expect(0);
        assert_eq!(mode(&archive), "read-write");
        archive.store(&format!("late-{round}.warc"), 20_000);
    }
    archive.stop();
}
