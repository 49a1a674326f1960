//! Published files, which are never touched again by an upload that comes back or by a file written beside them.

use super::*;

/// Fails if an archived file is overwritten by a manifest that is being replaced.
#[test]
fn file_may_be_named_like_unfinished_manifest() {
    let machine = NodeMachine::new();
    let (node, _) = machine.start();
    let file = "manifest-blake3.txt.new";
    let upload = UploadId::new("u1").unwrap();
    let mut receiving = node.files.begin_upload(&upload, &name(file), 7).unwrap();
    receiving.write_all(b"content").unwrap();
    let signed = sign(&admission(file, b"content", "u1"));
    receiving.commit_upload(&signed, now()).unwrap();
    drop(node);
    let layout = Layout::new(&machine.path("disk"));
    std::fs::remove_file(layout.manifest(crate::FileDirectory::for_name(&name(file)))).unwrap();
    let (_, found) = machine.start();
    assert_eq!((found.unchanged, found.manifests), (1, 1));
    assert_eq!(
        std::fs::read(machine.target(file).file).unwrap(),
        b"content"
    );
}

/// Fails if an upload that resumes writes into the file that it has published.
#[test]
fn returning_upload_spares_its_published_file() {
    let machine = NodeMachine::new();
    let (node, _) = machine.start();
    let upload = UploadId::new("u-a").unwrap();
    machine.store(&node, "a", &bytes(20_000)).unwrap();
    // As after a failure between the final name and the end of the upload.
    std::fs::hard_link(machine.target("a").file, machine.path("disk/incoming/u-a")).unwrap();
    let receiving = node
        .files
        .begin_upload(&upload, &name("b"), 20_000)
        .unwrap();
    assert_eq!(receiving.received(), 0);
    drop(receiving);
    assert_eq!(
        std::fs::read(machine.target("a").file).unwrap(),
        bytes(20_000)
    );
    let row = node.files.find_copies(&name("a")).unwrap().remove(0).row;
    node.catalog
        .remove_entry(&name("a"), &VolumeId::new("v1").unwrap())
        .unwrap();
    let Err(NodeError::Taken { root, .. }) = machine.store(&node, "a", &bytes(20_000)) else {
        panic!("not refused")
    };
    assert_eq!(root, row.root, "the disk was looked at");
}
