//! Listings of a checksum replica at its door.

use std::sync::Arc;
use std::time::Duration;

use archive_daemon::{Clock, Tasks};
use archive_rpc::CallErrorKind;
use proto_archive::wire;
use proto_archive::wire::replica_server::Replica;
use tokio_stream::StreamExt;
use tonic::Request;
use tools_testing::in_time;

use super::Door;
use crate::checksum::tests::{damage_admissions, fill, replica};

/// Fails if a listing that is asked to look at the disk does not read the admissions.
#[tokio::test]
async fn listing_on_disk_finds_damaged_admissions() {
    let directory = crate::testing::directory();
    fill(directory.path());
    drop(replica(directory.path()));
    damage_admissions(directory.path());
    let door = Door {
        replica: Arc::new(replica(directory.path())),
        clock: Clock::system_clock(),
        tasks: Tasks::new(),
        idle: Duration::from_mins(1),
        endpoint: String::new(),
    };
    for on_disk in [false, true] {
        let request = wire::FilesRequest {
            on_disk,
            ..wire::FilesRequest::default()
        };
        let answers = door.listing(Request::new(request)).await.unwrap();
        let answers: Vec<_> = in_time(answers.into_inner().collect()).await;
        let refused = answers.last().unwrap().as_ref().err();
        assert_eq!(
            refused.map(CallErrorKind::from_status),
            on_disk.then_some(CallErrorKind::Storage),
            "{on_disk}"
        );
    }
}
