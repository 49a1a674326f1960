//! Uploads that succeed, are cut, or meet a name that is taken.

use super::*;

struct TestVolume {
    directory: tempfile::TempDir,
}

impl TestVolume {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        for name in ["incoming", "files", "meta"] {
            std::fs::create_dir(directory.path().join(name)).unwrap();
        }
        Self { directory }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn target(&self, name: &str) -> FinalPaths {
        FinalPaths {
            file: self.path("files").join(name),
            sidecar: self.path("meta").join(format!("{name}.json")),
            outboard: self.path("meta").join(format!("{name}.bao")),
        }
    }

    fn store(&self, id: &str, bytes: &[u8], target: &FinalPaths) -> Result<(), PublishError> {
        let mut stage = Stage::create(&self.path("incoming"), id).unwrap();
        stage.reserve_space(bytes.len() as u64).unwrap();
        stage.write_all(bytes).unwrap();
        let received = stage.finish().unwrap();
        assert_eq!(received.root().as_bytes(), blake3::hash(bytes).as_bytes());
        received
            .seal_file(b"{}")
            .unwrap()
            .verify_file()
            .unwrap()
            .publish_file(target)
    }
}

/// Fails if a published file can be written, lacks its outboard, or keeps its unfinished name in `incoming/`.
#[test]
fn published_file_is_whole_and_read_only() {
    use std::os::unix::fs::PermissionsExt;
    let place = TestVolume::new();
    for size in [0, 1, 16384, 16385, 3_000_001] {
        let bytes = vec![7; size];
        let target = place.target(&format!("f{size}"));
        place.store("u1", &bytes, &target).unwrap();
        assert_eq!(std::fs::read(&target.file).unwrap(), bytes);
        assert_eq!(target.outboard.try_exists().unwrap(), size > 16384);
        assert_eq!(
            std::fs::metadata(&target.file)
                .unwrap()
                .permissions()
                .mode()
                & 0o777,
            0o444
        );
        assert_eq!(
            std::fs::read_dir(place.path("incoming")).unwrap().count(),
            0
        );
    }
}

/// Fails if an upload replaces a file whose sidecar is lost.
#[test]
fn a_taken_name_is_never_replaced() {
    let place = TestVolume::new();
    let target = place.target("a");
    place.store("u1", b"first", &target).unwrap();
    std::fs::remove_file(&target.sidecar).unwrap();
    assert!(
        matches!(place.store("u2", b"second", &target), Err(PublishError::Taken(path)) if path == target.file)
    );
    assert_eq!(std::fs::read(&target.file).unwrap(), b"first");
}

/// Fails if a resumed upload keeps a part of a group that may be torn, or its hash misses the bytes that it has.
#[test]
fn cut_upload_resumes_at_a_whole_group() {
    let place = TestVolume::new();
    let bytes: Vec<u8> = (0..100_000u32).map(|n| n.to_le_bytes()[0]).collect();
    let mut stage = Stage::create(&place.path("incoming"), "u1").unwrap();
    stage.reserve_space(1_000_000).unwrap();
    stage.write_all(&bytes[..50_000]).unwrap();
    drop(stage);
    let stage = Stage::resume(&place.path("incoming"), "u1").unwrap();
    assert_eq!(stage.length(), 49_152);
    let mut stage = stage.keep_prefix(40_000).unwrap();
    assert_eq!(stage.length(), 32_768, "whole groups only");
    stage.write_all(&bytes[32_768..49_152]).unwrap();
    assert_eq!(
        stage.root_so_far().as_bytes(),
        blake3::hash(&bytes[..49_152]).as_bytes()
    );
    stage.write_all(&bytes[49_152..]).unwrap();
    let target = place.target("a");
    stage
        .finish()
        .unwrap()
        .seal_file(b"{}")
        .unwrap()
        .verify_file()
        .unwrap()
        .publish_file(&target)
        .unwrap();
    assert_eq!(std::fs::read(&target.file).unwrap(), bytes);
}

/// Fails if bytes that changed on the disk after they were hashed are published.
#[test]
fn bytes_changed_on_the_medium_are_not_published() {
    use std::os::unix::fs::FileExt;
    let place = TestVolume::new();
    let mut stage = Stage::create(&place.path("incoming"), "u1").unwrap();
    stage.write_all(&vec![1; 40_000]).unwrap();
    let sealed = stage.finish().unwrap().seal_file(b"{}").unwrap();
    let path = place.path("incoming/u1");
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    std::fs::OpenOptions::new()
        .write(true)
        .open(&path)
        .unwrap()
        .write_all_at(&[2], 39_999)
        .unwrap();
    assert!(matches!(sealed.verify_file(), Err(None)));
}

/// Fails if resuming an upload that a crash ended during its publication truncates the published file.
#[test]
fn published_file_is_not_truncated_through_other_name() {
    let place = TestVolume::new();
    let target = place.target("a");
    place.store("u1", &vec![3; 40_000], &target).unwrap();
    // The state that a crash leaves after the file got its final name and before the old one was removed.
    std::fs::hard_link(&target.file, place.path("incoming/u1")).unwrap();
    assert!(
        Stage::resume(&place.path("incoming"), "u1")
            .unwrap_err()
            .is_taken()
    );
    assert_eq!(std::fs::metadata(&target.file).unwrap().len(), 40_000);
}

/// Fails if an upload that is given up leaves a file in `incoming/`, at any step.
#[test]
fn discarded_upload_leaves_nothing() {
    let place = TestVolume::new();
    let incoming = place.path("incoming");
    for size in [0, 1, 16_384, 16_385, 100_000, 3_000_000] {
        let mut stage = Stage::create(&incoming, "u").unwrap();
        stage.write_all(&vec![7; size]).unwrap();
        stage.discard().unwrap();
        let left = std::fs::read_dir(&incoming).unwrap().count();
        assert_eq!(left, 0, "of {size} bytes");
    }
}
