//! Tests of records: what is read at once, and what comes in pieces, is tested through the routes in `server::tests`.
//! Here: turns, and readers whose caller has left.

use archive_client::FakeArchive;

use super::*;

fn nowhere() -> RecordPlace {
    RecordPlace {
        file: FileName::new("none.warc").unwrap(),
        offset: 0,
        length: None,
    }
}

/// Fails if a record that cannot be opened keeps its turn: a few of them would stop the server.
#[tokio::test]
async fn failed_record_gives_its_turn_back() {
    let records = Records::new(Arc::new(FakeArchive::new()), 1, Duration::from_secs(1));
    for _ in 0..3 {
        let error = tools_testing::in_time(records.open_record(&nowhere()))
            .await
            .unwrap_err();
        assert!(
            matches!(error, RecordError::Archive(ClientError::NotFound(_))),
            "{error}"
        );
    }
    assert_eq!(records.permits.available_permits(), 1);
}
