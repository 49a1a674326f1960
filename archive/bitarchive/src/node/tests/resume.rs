//! Uploads that were cut, and senders that can resume at some points only.

use archive_model::GROUP_SIZE;

use super::*;

fn root(bytes: &[u8]) -> Root {
    Root::from_bytes(*blake3::hash(bytes).as_bytes())
}

/// Fails if a resumed upload begins at another point than the last that it has reached.
#[test]
fn cut_upload_resumes_at_its_last_point() {
    let machine = NodeMachine::new();
    let (node, _) = machine.start();
    let content = bytes(200_000);
    let groups = |count: u64| count * GROUP_SIZE;
    for (number, cut, points, expected) in [
        (
            0,
            70_000,
            vec![groups(1), groups(3), groups(4), groups(5)],
            groups(4),
        ),
        (1, 65_536, vec![groups(4)], groups(4)),
        (2, 65_535, vec![groups(4)], 0),
        (3, 70_000, vec![groups(5), u64::MAX], 0),
        (4, 0, vec![groups(1)], 0),
        // Points that are not sorted and no whole groups: never more than is there, and never part of a group.
        (5, 70_000, vec![u64::MAX, groups(3) + 5, 7], groups(3)),
    ] {
        let file = format!("f-{number}");
        let upload = format!("u-{number}");
        let id = UploadId::new(&upload).unwrap();
        let size = content.len() as u64;
        let mut receiving = node
            .files
            .begin_upload_at(&id, &name(&file), size, &points)
            .unwrap();
        assert_eq!(receiving.received(), 0);
        receiving.write_all(&content[..cut]).unwrap();
        drop(receiving);
        let mut receiving = node
            .files
            .begin_upload_at(&id, &name(&file), size, &points)
            .unwrap();
        let here = usize::try_from(receiving.received()).unwrap();
        assert_eq!(here as u64, expected, "{points:?} of {cut}");
        assert_eq!(receiving.root_so_far(), root(&content[..here]));
        receiving.write_all(&content[here..]).unwrap();
        let signed = sign(&admission(&file, &content, &upload));
        let entry = receiving.commit_upload(&signed, now()).unwrap();
        assert_eq!(entry.row.root, Some(root(&content)));
        assert_eq!(std::fs::read(machine.target(&file).file).unwrap(), content);
        assert_eq!(machine.incoming(), 0);
    }
}

/// Fails if a resumed upload reports the root of the bytes that were sent before, not of those on the disk now, or
/// cannot begin anew after rot.
#[test]
fn rotten_upload_resumes_with_another_root() {
    let machine = NodeMachine::new();
    let (node, _) = machine.start();
    let content = bytes(100_000);
    let id = UploadId::new("u").unwrap();
    let mut receiving = node.files.begin_upload(&id, &name("a"), 100_000).unwrap();
    receiving.write_all(&content).unwrap();
    drop(receiving);
    let path = machine.path("disk/incoming/u");
    let mut rotten = std::fs::read(&path).unwrap();
    rotten[20_000] ^= 1;
    std::fs::write(&path, rotten).unwrap();
    let receiving = node
        .files
        .begin_upload_at(&id, &name("a"), 100_000, &[4 * GROUP_SIZE]);
    let receiving = receiving.unwrap();
    assert_eq!(receiving.received(), 4 * GROUP_SIZE);
    assert_ne!(receiving.root_so_far(), root(&content[..65_536]));
    let mut receiving = receiving.keep_prefix(0).unwrap();
    receiving.write_all(&content).unwrap();
    let signed = sign(&admission("a", &content, "u"));
    receiving.commit_upload(&signed, now()).unwrap();
}

fn blocks(path: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    path.metadata().unwrap().blocks() * 512
}

/// Fails if an upload that was cut keeps its announced size reserved, dropped or left by a process that died.
#[test]
fn cut_upload_reserves_nothing() {
    const SIZE: u64 = 16 << 20;
    let machine = NodeMachine::new();
    let (node, _) = machine.start();
    let path = machine.path("disk/incoming/u");
    let id = UploadId::new("u").unwrap();
    let mut receiving = node.files.begin_upload(&id, &name("a"), SIZE).unwrap();
    receiving.write_all(&bytes(100_000)).unwrap();
    assert!(blocks(&path) >= SIZE, "it is reserved while it comes");
    drop(receiving);
    assert!(blocks(&path) < SIZE / 16, "{}", blocks(&path));
    let receiving = node.files.begin_upload(&id, &name("a"), SIZE).unwrap();
    assert_eq!(receiving.received(), 6 * GROUP_SIZE, "its bytes stay");
    assert!(blocks(&path) >= SIZE, "it is reserved again");
    drop(receiving);
    drop(node);

    let file = std::fs::File::options().write(true).open(&path).unwrap();
    let keep = rustix::fs::FallocateFlags::KEEP_SIZE;
    rustix::fs::fallocate(&file, keep, 0, SIZE).unwrap();
    drop(file);
    let before = path.metadata().unwrap().len();
    let (node, _) = machine.start();
    assert!(blocks(&path) < SIZE / 16, "{}", blocks(&path));
    assert_eq!(path.metadata().unwrap().len(), before);
    drop(node);
}
