//! Listings, statuses and stats over the wire.

use archive_client::{Access, ClientError, Completeness, ErrorClass, Ingest, ListItem, Selection};
use archive_model::FileName;
use proto_archive::wire::list_response::End;
use proto_archive::wire::{CopyCondition, FileEntry, Gap, ListEntry, ListResponse, StatResponse};

use crate::world::ServedArchive;

fn entry(name: &str) -> ListEntry {
    ListEntry {
        name: name.into(),
        size: 3,
        root: vec![1; 32].into(),
        ..ListEntry::default()
    }
}

fn copy(name: &str) -> FileEntry {
    FileEntry {
        name: name.into(),
        node: "n-2".into(),
        volume: "v-1".into(),
        condition: CopyCondition::Present.into(),
        stored: "2026-01-01T00:00:01Z".parse().ok(),
        ..FileEntry::default()
    }
}

fn message(names: &[&str], end: Option<End>) -> ListResponse {
    ListResponse {
        entries: names.iter().map(|name| entry(name)).collect(),
        end,
        ..ListResponse::default()
    }
}

async fn read(
    world: &ServedArchive,
    selection: &Selection,
) -> (Vec<String>, Result<Completeness, ClientError>) {
    let mut names = Vec::new();
    let mut listing = world.reader().list(selection).await.expect("a stream");
    loop {
        match listing.next().await {
            Ok(Some(ListItem::Entry(entry))) => names.push(entry.name.as_str().to_owned()),
            Ok(Some(ListItem::End(end))) => return (names, Ok(end)),
            Ok(None) => panic!("ended without saying so"),
            Err(error) => return (names, Err(error)),
        }
    }
}

/// Fails if the gaps of a listing are lost on the way, or its replica, pattern and start are not sent.
#[tokio::test]
async fn a_listing_says_what_it_lacks() {
    let world = ServedArchive::new().await;
    let gap = Gap {
        replica: "two".into(),
        node: "n-2".into(),
        volume: String::new(),
        reason: "silent".into(),
    };
    let end = End {
        count: 3,
        gaps: vec![gap],
    };
    let copies = |names: &[&str], end| ListResponse {
        copies: names.iter().map(|name| copy(name)).collect(),
        end,
        ..ListResponse::default()
    };
    world.archive.state().list = vec![Ok(copies(&["a", "b"], None)), Ok(copies(&["c"], Some(end)))];
    let selection = Selection {
        replica: Some("two".parse().unwrap()),
        matching: Some(".*".into()),
        after: Some(FileName::new("0").unwrap()),
    };
    let (names, end) = read(&world, &selection).await;
    assert_eq!(names, ["a", "b", "c"]);
    let end = end.unwrap();
    assert_eq!((end.count, end.gaps[0].reason.as_str()), (3, "silent"));
    let asked = world.archive.state().list_asked.clone().unwrap();
    assert_eq!(
        (
            asked.replica.as_str(),
            asked.r#match.as_str(),
            asked.after.as_str()
        ),
        ("two", ".*", "0")
    );
}

/// Fails if a listing that was cut gets another exit code than an archive that cannot be reached.
#[tokio::test]
async fn cut_listing_counts_as_unreachable() {
    let world = ServedArchive::new().await;
    world.archive.state().list = vec![Ok(message(&["a"], None))];
    let (names, end) = read(&world, &Selection::default()).await;
    assert_eq!(names, ["a"]);
    let error = end.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Unreachable, "{error}");
}

/// Fails if the status of another file passes for that of the file that was asked for.
#[tokio::test]
async fn a_stat_of_another_file_is_not_believed() {
    let world = ServedArchive::new().await;
    world.archive.state().stat = StatResponse {
        name: "a".into(),
        root: vec![1; 32].into(),
        admitted: "2026-01-01T00:00:00Z".into(),
        ..StatResponse::default()
    };
    let name = FileName::new("a").unwrap();
    assert_eq!(world.depositor().stat(&name).await.unwrap().name, name);
    let error = world
        .depositor()
        .stat(&FileName::new("b").unwrap())
        .await
        .unwrap_err();
    assert!(matches!(error, ClientError::Untrusted(_)), "{error}");
}

/// Fails if a harvester may read the status of the archive, or a reader may not.
#[tokio::test]
async fn the_status_is_for_those_who_may_ask() {
    let world = ServedArchive::new().await;
    world.archive.put("a", b"a");
    assert_eq!(world.reader().status().await.unwrap().files, 1);
    let harvester = archive_client::ArchiveReader::new(
        world.channel("harvester/h-1"),
        crate::world::trust(),
        crate::world::limits(),
    );
    assert_eq!(
        harvester.status().await.unwrap_err().class(),
        ErrorClass::Refused
    );
}
