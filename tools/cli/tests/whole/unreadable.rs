//! A disk on which half of a file cannot be read any more: a real file system that answers EIO.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use crate::archive::{Archive, content};
use crate::mounts::{has_own_mounts, run};

const SIZE: usize = 16 << 20;
const BLOCK: u64 = 4096;

/// Fails if a file of which the disk cannot read one half is not filed as unreadable, is served short, or cannot be
/// repaired. The second half of the file lies where the disk ends from now on. Everything else that is there is full,
/// so that no write meets the hole: half a dead disk is another story, and told by the power cuts.
#[test]
fn half_unreadable_file_is_repaired_from_other_replica() {
    if !has_own_mounts("unreadable::half_unreadable_file_is_repaired_from_other_replica") {
        return;
    }
    let archive = Archive::start(&[
        "repair.automatic=off",
        "scrub.enabled=false",
        "bitarchive.reserve=0 B",
    ]);
    let image = archive.path("image");
    let disk = archive.path("disk");
    std::fs::create_dir(&disk).expect("mkdir");
    run("truncate", &["-s", "120M", text(&image)]);
    // One group of blocks: all that is not a file's bytes lies in front.
    let options = ["-q", "-F", "-b", "4096", "-m", "0", "-O", "^has_journal"];
    run("mkfs.ext4", &[&options[..], &[text(&image)]].concat());
    run("mount", &["-o", "loop", text(&image), text(&disk)]);
    let mut low = File::create(disk.join("low")).expect("create");
    low.write_all(&content("low", 48 << 20)).expect("write");
    low.sync_all().expect("sync");
    drop(low);

    // The server lives in these mounts too: it was started after they were made its own.
    let volume = disk.join("volume");
    std::fs::create_dir(&volume).expect("mkdir");
    let status = archive.json(&["status"], 0);
    let old = status["replicas"][0]["nodes"][0]["volumes"][0]["volume"].clone();
    archive
        .run(&["volume", "init", text(&volume), "--node", "one-1"])
        .expect(0);
    archive
        .run(&["volume", "read-only", old.as_str().expect("an id")])
        .expect(0);
    let words = archive.make("half.warc", SIZE);
    archive.until(&["store", text(&words)], 0);
    let prefix = &blake3::hash(b"half.warc").to_hex()[..2];
    let copy = volume.join("files").join(prefix).join("half.warc");
    assert!(std::fs::read(&copy).expect("it is on this disk") == content("half.warc", SIZE));
    let mut high = File::create(disk.join("high")).expect("create");
    while high.write_all(&[7; 4096]).is_ok() {}
    drop(high);
    run("sync", &["-f", text(&disk)]);
    std::fs::remove_file(disk.join("low")).expect("remove");
    run("sync", &["-f", text(&disk)]);
    let end = middle_of(&copy) * BLOCK;
    run("truncate", &["-s", &end.to_string(), text(&image)]);

    let said = archive.run(&["check", "checksums"]).expect(1).out;
    assert!(
        said.contains("unreadable") && said.contains("half.warc"),
        "{said}"
    );
    let back = archive.path("back");
    archive
        .run(&["get", "half.warc", "-o", text(&back)])
        .expect(0);
    assert!(std::fs::read(&back).expect("read") == content("half.warc", SIZE));
    let repaired = archive.json(&["repair", "--all", "--reason", "a test"], 0);
    let moved = repaired["bytes_moved"].as_u64().expect("a number");
    println!("{moved} bytes of {SIZE} moved: {repaired}");
    archive.run(&["check", "checksums"]).expect(0);
    let copies = [volume, archive.volume("one")]
        .map(|volume| volume.join("files").join(prefix).join("half.warc"));
    let whole = copies
        .iter()
        .filter(|copy| std::fs::read(copy).is_ok_and(|read| read == content("half.warc", SIZE)));
    assert_eq!(whole.count(), 1, "{copies:?}");
    archive.stop();
    run("umount", &[text(&disk)]);
}

/// Returns the block of the disk at which the middle of a file lies.
fn middle_of(path: &Path) -> u64 {
    let output = Command::new("filefrag")
        .args(["-v", "-e", text(path)])
        .output()
        .expect("filefrag");
    let said = String::from_utf8(output.stdout).expect("text");
    let wanted = u64::try_from(SIZE).expect("small") / BLOCK / 2;
    // `   0:        0..    4095:      34816..     38911:   4096:             last,eof`
    let mut extents = said.lines().filter_map(|line| {
        let numbers: Vec<u64> = line
            .split([':', '.', ' '])
            .filter(|word| !word.is_empty())
            .map_while(|word| word.parse().ok())
            .collect();
        match numbers[..] {
            [_, first, last, start, ..] if (first..=last).contains(&wanted) => {
                Some(start + wanted - first)
            }
            _ => None,
        }
    });
    extents.next_back().unwrap_or_else(|| panic!("{said}"))
}

fn text(path: &Path) -> &str {
    path.to_str().expect("text")
}
