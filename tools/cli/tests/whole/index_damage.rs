//! The database of the index damaged on its disk: it is begun anew and that is said, and no list is short without a
//! word.

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::archive::{Archive, wait};
use crate::batch::store;

const CAPTURES: usize = 600;

type Damage = fn(&Path);

fn tables(data: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(data).expect("list");
    entries
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|kind| kind == "sst"))
        .collect()
}

/// Flips bits all over the tables of captures: in every block of them.
fn flip(data: &Path) {
    for table in tables(data) {
        // The end of a table says where everything is: it stays, so that the table can be opened.
        flip_table(&table, length(&table).saturating_sub(2000));
    }
}

fn length(table: &Path) -> u64 {
    table.metadata().expect("it is there").len()
}

fn flip_table(table: &Path, end: u64) {
    let file = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(table)
        .expect("open");
    for at in (0..end).step_by(300) {
        let mut byte = [0];
        file.read_exact_at(&mut byte, at).expect("read");
        file.write_all_at(&[byte[0] ^ 0x40], at).expect("write");
    }
}

fn captures(archive: &Archive) -> Result<usize, String> {
    let ran = archive.run(&["captures", "example", "--match", "domain"]);
    if ran.code == 0 {
        Ok(ran.out.lines().count())
    } else {
        Err(ran.err)
    }
}

fn until_whole(archive: &Archive) -> Value {
    wait("all captures", || match captures(archive) {
        Ok(CAPTURES) => {
            let status = archive.run(&["--json", "index", "status"]);
            let is_whole = matches!(status.code, 0 | 1) && status.json()["behind"] == 0;
            is_whole.then(|| status.json()).ok_or(Err(status.err))
        }
        other => Err(other),
    })
}

/// Fails if the index answers from what is left of its database, panics, does not start any more, begins anew without a
/// word, or forgets the imported set that went with it.
#[test]
fn damaged_database_is_rebuilt_and_reported() {
    let mut archive = Archive::processes(&[]);
    store(&archive, 3, 200, 1000);
    until_whole(&archive);
    let old = archive.path("old.cdxj");
    std::fs::write(
        &old,
        "org,old)/ 20010101000000 {\"url\": \"http://old.org/\", \"filename\": \"o.arc\", \"offset\": \"7\"}\n",
    )
    .expect("write");
    let import = [
        "index",
        "import",
        old.to_str().expect("text"),
        "--set",
        "old",
    ];
    archive.run(&import).expect(0);
    let data = archive.data().join("index/captures");

    let cases: [(&str, Damage); 3] = [
        ("its tables have flipped bits", flip),
        ("CURRENT is gone", |data| {
            std::fs::remove_file(data.join("CURRENT")).expect("remove");
        }),
        ("it is gone", |data| {
            std::fs::remove_dir_all(data).expect("remove");
        }),
    ];
    for (what, damage) in cases {
        // Once more without damage: what the log has is in tables then.
        archive.kill("index");
        archive.restart("index");
        until_whole(&archive);
        archive.kill("index");
        damage(&data);
        archive.restart("index");
        let status = wait("the index answers, and says what happened", || {
            assert!(
                archive.is_running("index"),
                "{what}: damage ends no process"
            );
            if let Ok(found) = captures(&archive) {
                // More than there were, or a part of a file, is never shown.
                assert!(found % 200 == 0 && found <= CAPTURES, "{what}: {found}");
            }
            let status = archive.run(&["--json", "index", "status"]);
            let is_said = status.code == 1 && status.json()["rebuilt"].is_string();
            is_said.then(|| status.json()).ok_or(status)
        });
        println!("{what}: {}", status["rebuilt"]);
        assert_eq!(
            status["lost_sets"],
            serde_json::json!(["old"]),
            "{status:#}"
        );
        let said = archive.run(&["index", "status"]).expect(1).err;
        assert!(
            said.contains("begun anew") && said.contains("--set old"),
            "{what}: {said}"
        );
        until_whole(&archive);
        archive.run(&import).expect(0);
        let status = archive.run(&["--json", "index", "status"]).json();
        assert_eq!(status["lost_sets"], serde_json::json!([]), "{status:#}");
        assert_eq!(status["captures"], CAPTURES + 1, "{status:#}");
        let log = archive.log();
        assert!(!log.contains("panicked"), "{what}: {log}");
        // The note is that of one start.
        archive.kill("index");
        archive.restart("index");
        until_whole(&archive);
        archive.until(&["index", "status"], 0);
    }
    archive.stop();
}

/// Fails if damage that the index meets while it runs ends the process that all parts share, a list is short without a
/// word, or the index is begun anew without a word.
#[test]
fn damage_in_one_process_ends_no_part() {
    let mut archive = Archive::start(&[]);
    store(&archive, 3, 200, 1000);
    until_whole(&archive);
    // What the log has is in tables after the next start.
    archive.down();
    archive.up(&[]);
    until_whole(&archive);
    archive.down();
    // The other tables are read at the start, and of this one what stands behind the rows.
    let data = archive.data().join("index/captures");
    let largest = tables(&data).into_iter().max_by_key(|table| length(table));
    let largest = largest.expect("a table");
    flip_table(&largest, length(&largest) / 2);
    archive.up(&[]);
    let status = wait("the index says what happened", || {
        assert!(archive.is_up(), "the process continues");
        if let Ok(found) = captures(&archive) {
            assert!(found % 200 == 0 && found <= CAPTURES, "{found}");
        }
        let status = archive.run(&["--json", "index", "status"]);
        let is_said = status.code == 1 && status.json()["rebuilt"].is_string();
        is_said.then(|| status.json()).ok_or(status)
    });
    println!("{}", status["rebuilt"]);
    until_whole(&archive);
    archive.store("later.bin", 20_000);
    let log = archive.log();
    assert!(log.contains("it is rebuilt"), "{log}");
    assert!(!log.contains("panicked"), "{log}");
    assert!(archive.is_up(), "the process continues");
    archive.stop();
}
