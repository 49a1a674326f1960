//! Visits of a client to a cluster: store, get, list; and the files it stores.

use archive_client::{
    Access, ArchiveReader, ClientError, ClientLimits, Completeness, FileRange, Ingest, ListEntry,
    ListItem, Selection, StoreEvent, StoredFile,
};
use archive_model::FileName;
pub(crate) use conformance::contract::{deposit, root};
pub(crate) use tools_testing::noise;

use super::world::Cluster;

/// Returns limits that are patient enough for a machine that is busy; a wait that never ends still fails.
pub(crate) fn limits() -> ClientLimits {
    ClientLimits {
        answer_seconds: 20,
        stall_seconds: 40,
        verify_seconds: 60,
        attempts: 8,
        first_pause_ms: 100,
        longest_pause_ms: 1000,
        ..ClientLimits::default()
    }
}

pub(crate) fn name(text: &str) -> FileName {
    FileName::new(text).unwrap()
}

pub(crate) async fn store(
    cluster: &Cluster,
    name: &FileName,
    bytes: &[u8],
) -> Result<StoredFile, ClientError> {
    let ignore = |_: StoreEvent<'_>| {};
    cluster
        .depositor()
        .store(&deposit(name, bytes), &ignore)
        .await
}

/// Returns the bytes that came, and whether there was an error after them.
pub(crate) async fn get(
    cluster: &Cluster,
    wanted: &FileRange,
) -> (Vec<u8>, Result<(), ClientError>) {
    let mut bytes = Vec::new();
    let mut reading = match cluster.reader().get(wanted).await {
        Ok(reading) => reading,
        Err(error) => return (bytes, Err(error)),
    };
    loop {
        match reading.next().await {
            Ok(Some(part)) => bytes.extend_from_slice(&part),
            Ok(None) => return (bytes, Ok(())),
            Err(error) => return (bytes, Err(error)),
        }
    }
}

/// Lists a replica, or what was decided where none is named.
pub(crate) async fn list(
    reader: &ArchiveReader,
    replica: Option<&str>,
) -> Result<(Vec<ListEntry>, Completeness), ClientError> {
    let selection = Selection {
        replica: replica.map(|id| id.parse().unwrap()),
        ..Selection::default()
    };
    let mut listing = reader.list(&selection).await?;
    let mut entries = Vec::new();
    loop {
        match listing.next().await? {
            Some(ListItem::Entry(entry)) => entries.push(*entry),
            Some(ListItem::End(end)) => return Ok((entries, end)),
            None => return Err(ClientError::Bug("a listing ended without saying so".into())),
        }
    }
}
