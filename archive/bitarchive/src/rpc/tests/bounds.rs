//! Bounds: the size of every answer, for anything on the disks, and the length of every wait.

use archive_model::Groups;
use prost::Message;

use super::*;
use crate::catalog::{Condition, Row};

/// The most bytes that a client reads.
const LIMIT: usize = 4 * 1024 * 1024;

/// Makes the row of a large file of which every other group is damaged.
fn riddled(name: &str) -> CatalogEntry {
    let mut groups: Vec<(u64, u64)> = Vec::new();
    for group in 0..300_000_u64 {
        groups.push((group * 2, group * 2 + 1));
    }
    CatalogEntry {
        name: FileName::new(name).unwrap(),
        volume: VolumeId::new("v1").unwrap(),
        row: Row {
            size: 1 << 34,
            root: Some(root(b"x")),
            stored: Timestamp::UNIX_EPOCH,
            verified: None,
            condition: Condition::Damaged {
                since: Timestamp::UNIX_EPOCH,
                corrupt: Groups::try_from(groups).unwrap(),
                unreadable: Groups::none(),
            },
        },
    }
}

/// Fails if the ranges of a copy that is damaged all over make a message larger than the limit, or are shortened to
/// fewer groups than are damaged.
#[tokio::test]
async fn damage_all_over_fits_into_every_answer() {
    let test = TestDoor::with_two().await;
    let rows: Vec<CatalogEntry> = (0..120).map(|n| riddled(&format!("f{n:03}"))).collect();
    for row in &rows {
        test.door
            .node
            .catalog
            .put_entries(std::slice::from_ref(row))
            .unwrap();
    }
    let request = wire::FindRequest {
        name: "f000".to_owned(),
        on_disk: false,
    };
    let found = test.door.find(Request::new(request)).await.unwrap();
    let found = found.into_inner();
    assert!(found.encoded_len() < LIMIT);
    let corrupt = &found.entries[0].corrupt;
    assert!(!corrupt.is_empty() && corrupt.len() <= 1000);
    let said = fields::read_groups("corrupt", corrupt).unwrap();
    let Condition::Damaged { corrupt, .. } = &rows[0].row.condition else {
        panic!("it is damaged");
    };
    assert!(corrupt.difference(&said).is_empty(), "never less");
    for only_findings in [false, true] {
        let request = wire::FilesRequest {
            after: String::new(),
            only_findings,
            on_disk: false,
        };
        let answers = test.door.files(Request::new(request.clone())).await;
        let answers = answers.unwrap().into_inner();
        let answers: Vec<_> = answers.collect::<Result<_, _>>().await.unwrap();
        let count: usize = answers.iter().map(|answer| answer.entries.len()).sum();
        assert_eq!(count, rows.len());
        assert!(answers.iter().all(|answer| answer.encoded_len() < LIMIT));
        let answers = test.door.admissions(Request::new(request)).await;
        let answers = answers.unwrap().into_inner();
        let answers: Vec<_> = answers.collect::<Result<_, _>>().await.unwrap();
        assert!(answers.iter().all(|answer| answer.encoded_len() < LIMIT));
    }
}

/// Fails if a listing of the attic with long reasons is larger than a client reads.
#[tokio::test]
async fn long_reasons_fit_into_a_listing() {
    let test = TestDoor::with_two().await;
    for number in 0..12 {
        let place = test.path(&format!("one/attic/20260101T000000Z-n{number}"));
        std::fs::create_dir(&place).unwrap();
        let reason = serde_json::json!({
            "format": "holdfast-attic/1",
            "kind": "leftover",
            "name": "a",
            "at": "2026-01-01T00:00:00Z",
            "who": "officer/o",
            "why": "x".repeat(900_000),
        });
        std::fs::write(place.join("why.json"), reason.to_string()).unwrap();
    }
    let request = wire::AtticRequest::default();
    let answers = test.door.attic(Request::new(request)).await.unwrap();
    let answers: Vec<_> = answers
        .into_inner()
        .collect::<Result<_, _>>()
        .await
        .unwrap();
    let count: usize = answers.iter().map(|answer| answer.items.len()).sum();
    assert_eq!(count, 12);
    assert!(answers.iter().all(|answer| answer.encoded_len() < LIMIT));
}

/// Fails if a reader that does not read keeps a blocking thread: one that is slow, times the number of threads, and the
/// node stores nothing any more.
#[test]
fn unread_read_holds_no_blocking_thread() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .max_blocking_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let test = TestDoor::with_two().await;
        let bytes = vec![7; 8 << 20];
        test.store("large", &bytes);
        let request = || {
            Request::new(wire::ReadRequest {
                name: "large".to_owned(),
                root: fields::root_bytes(&root(&bytes)),
                start: 0,
                end: 0,
            })
        };
        let mut unread = Vec::new();
        for _ in 0..4 {
            unread.push(test.door.read(request()).await.unwrap().into_inner());
        }
        let read = async {
            let stream = test.door.read(request()).await.unwrap().into_inner();
            stream.collect::<Result<Vec<_>, _>>().await.unwrap().len()
        };
        let read = tokio::time::timeout(Duration::from_secs(30), read).await;
        assert_eq!(read.unwrap(), 8);
        for stream in unread {
            let all: Result<Vec<_>, _> = stream.collect().await;
            assert_eq!(all.unwrap().len(), 8, "it continues where it stopped");
        }
    });
}
