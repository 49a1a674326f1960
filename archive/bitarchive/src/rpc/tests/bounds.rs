//! Answers of a bounded size, whatever lies on the disks; and nobody who waits for ever.

use archive_model::Groups;
use prost::Message;

use super::*;
use crate::catalog::{Condition, Row};

/// What a client reads at most.
const LIMIT: usize = 4 * 1024 * 1024;

/// A row of which every other group of a large file is damaged.
fn riddled(name: &str) -> Entry {
    let mut groups: Vec<(u64, u64)> = Vec::new();
    for group in 0..300_000_u64 {
        groups.push((group * 2, group * 2 + 1));
    }
    Entry {
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

#[tokio::test]
async fn damage_all_over_fits_into_every_answer() {
    let world = World::with_two().await;
    let rows: Vec<Entry> = (0..120).map(|n| riddled(&format!("f{n:03}"))).collect();
    for row in &rows {
        world
            .door
            .node
            .catalog()
            .put(std::slice::from_ref(row))
            .unwrap();
    }
    let request = wire::FindRequest {
        name: "f000".to_owned(),
        on_disk: false,
    };
    let found = world.door.find(Request::new(request)).await.unwrap();
    let found = found.into_inner();
    assert!(found.encoded_len() < LIMIT);
    let corrupt = &found.entries[0].corrupt;
    assert!(!corrupt.is_empty() && corrupt.len() <= 1000);
    let said = fields::groups("corrupt", corrupt).unwrap();
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
        let answers = world.door.files(Request::new(request.clone())).await;
        let answers = answers.unwrap().into_inner();
        let answers: Vec<_> = answers.collect::<Result<_, _>>().await.unwrap();
        let count: usize = answers.iter().map(|answer| answer.entries.len()).sum();
        assert_eq!(count, rows.len());
        assert!(answers.iter().all(|answer| answer.encoded_len() < LIMIT));
        let answers = world.door.admissions(Request::new(request)).await;
        let answers = answers.unwrap().into_inner();
        let answers: Vec<_> = answers.collect::<Result<_, _>>().await.unwrap();
        assert!(answers.iter().all(|answer| answer.encoded_len() < LIMIT));
    }
}

#[tokio::test]
async fn long_reasons_in_the_attic_fit_into_its_listing() {
    let world = World::with_two().await;
    for number in 0..12 {
        let place = world.path(&format!("one/attic/20260101T000000Z-n{number}"));
        std::fs::create_dir(&place).unwrap();
        let reason = serde_json::json!({
            "format": "holdfast-attic/1",
            "name": "a",
            "at": "2026-01-01T00:00:00Z",
            "who": "officer/o",
            "why": "x".repeat(900_000),
        });
        std::fs::write(place.join("why.json"), reason.to_string()).unwrap();
    }
    let request = wire::AtticRequest::default();
    let answers = world.door.attic(Request::new(request)).await.unwrap();
    let answers: Vec<_> = answers
        .into_inner()
        .collect::<Result<_, _>>()
        .await
        .unwrap();
    let count: usize = answers.iter().map(|answer| answer.items.len()).sum();
    assert_eq!(count, 12);
    assert!(answers.iter().all(|answer| answer.encoded_len() < LIMIT));
}

#[tokio::test]
async fn an_answer_that_nobody_reads_is_given_up() {
    let (answers, _unread) = mpsc::channel::<Result<u8, Status>>(1);
    answers.try_send(Ok(1)).unwrap();
    let sending = tokio::task::spawn_blocking(move || {
        let last = Err(Status::internal("the last word"));
        deliver(&answers, last, Duration::from_millis(20))
    });
    assert!(sending.await.unwrap().is_err());
}
