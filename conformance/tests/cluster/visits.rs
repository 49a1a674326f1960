//! What a client does at the doors of a cluster: store, get, list; and what it brings.

use std::sync::Arc;

use archive_client::{
    Access, Announced, ClientError, ClientLimits, Completeness, Deposit, Ingest, ListEntry, Listed,
    Reader, Selection, StoreEvent, Stored, Wanted,
};
use archive_model::{FileName, Root};

use super::world::Cluster;

/// Patient enough for a machine that is busy; a wait that never ends still fails.
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

/// Bytes that are the same for the same seed.
pub(crate) fn noise(size: usize, seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; size];
    blake3::Hasher::new()
        .update(&seed.to_le_bytes())
        .finalize_xof()
        .fill(&mut bytes);
    bytes
}

pub(crate) fn root(bytes: &[u8]) -> Root {
    Root::from_bytes(*blake3::hash(bytes).as_bytes())
}

pub(crate) fn deposit(name: &FileName, bytes: &[u8]) -> Deposit {
    Deposit {
        name: name.clone(),
        size: bytes.len() as u64,
        source: Arc::new(bytes.to_vec()),
        announced: Announced {
            blake3: Some(root(bytes)),
            ..Announced::default()
        },
        no_digest: false,
    }
}

pub(crate) async fn store(
    cluster: &Cluster,
    name: &FileName,
    bytes: &[u8],
) -> Result<Stored, ClientError> {
    let ignore = |_: StoreEvent<'_>| {};
    cluster
        .depositor()
        .store(&deposit(name, bytes), &ignore)
        .await
}

/// The bytes that came, and whether there was an error after them.
pub(crate) async fn get(cluster: &Cluster, wanted: &Wanted) -> (Vec<u8>, Result<(), ClientError>) {
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
    reader: &Reader,
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
            Some(Listed::Entry(entry)) => entries.push(*entry),
            Some(Listed::End(end)) => return Ok((entries, end)),
            None => return Err(ClientError::Bug("a listing ended without saying so".into())),
        }
    }
}
