//! What a node keeps for itself beside files and sidecars.

use archive_bitarchive::{Volumes, manifest};
use archive_model::{FileName, NodeId, ReplicaId, Root};

use super::inputs::files::in_file;
use super::inputs::{Target, target};

/// The targets that a whole node, RocksDB too, is linked for.
pub const NODE: &[Target] = &[
    target("manifest", manifest_seeds, manifest),
    target("volumes", volumes_seeds, volumes),
];

fn listed() -> Vec<(FileName, Root)> {
    ["b.warc", "a x.warc", "Måned.warc"]
        .into_iter()
        .map(|name| {
            let root = Root::from_bytes(*blake3::hash(name.as_bytes()).as_bytes());
            (FileName::new(name).unwrap(), root)
        })
        .collect()
}

fn text() -> Vec<u8> {
    let lines = listed().into_iter();
    let lines: Vec<String> = lines
        .map(|(name, root)| format!("{root}  {name}\n"))
        .collect();
    lines.concat().into_bytes()
}

fn manifest_seeds() -> Vec<Vec<u8>> {
    vec![text(), Vec::new()]
}

/// Whatever is in the list, afterwards it says what it should, and it is written only where it did not.
fn manifest(input: &[u8]) {
    in_file("manifest-blake3.txt", input, |_, path| {
        let files = listed();
        let all = || files.iter().map(|(name, root)| (name, *root));
        let was_written = manifest::set(path, all()).unwrap();
        let sorted = |bytes: &[u8]| {
            let mut lines: Vec<Vec<u8>> = bytes
                .split_inclusive(|byte| *byte == b'\n')
                .map(<[u8]>::to_vec)
                .collect();
            lines.sort_unstable();
            lines
        };
        let was_right = sorted(input) == sorted(&text());
        assert_eq!(was_written, !was_right);
        let found = std::fs::read(path).unwrap();
        assert_eq!(sorted(&found), sorted(&text()));
    });
}

fn volumes_seeds() -> Vec<Vec<u8>> {
    vec![
        br#"{"format":"holdfast-volumes/1","volumes":{"v1":{"path":"/v/1","generation":1,"mode":"read-write","retired":false}}}"#
            .to_vec(),
        br#"{"format":"holdfast-volumes/1","volumes":{}}"#.to_vec(),
    ]
}

fn volumes(input: &[u8]) {
    in_file("volumes.json", input, |directory, _| {
        let (node, replica) = (NodeId::new("n1").unwrap(), ReplicaId::new("one").unwrap());
        if let Ok(volumes) = Volumes::open(&node, &replica, directory, &[], 0) {
            drop(volumes.all());
        }
    });
}
