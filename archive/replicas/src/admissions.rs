//! The admissions in the sidecars of a node, beside its files.
//!
//! # Errors
//! All functions fail with a [`CallError`] if the node cannot be reached or its answer is invalid.

use archive_ledger::restore::combine::Sighting;
use archive_model::{FileName, NodeId, ReplicaId};
use archive_rpc::{CallError, InvalidMessage};
use jiff::Timestamp;
use proto_archive::{convert as fields, wire};
use tonic::Streaming;

use super::{AnswerPage, Replicas, gaps_within};

/// The admissions of a node, page by page.
#[derive(Debug)]
pub struct Admissions {
    replica: ReplicaId,
    stream: Streaming<wire::AdmissionsResponse>,
    count: Option<u64>,
}

/// An admission that was found, or the error of an entry.
type FoundAdmission = Result<(FileName, Sighting), String>;

impl Replicas {
    /// Asks a node for every admission that it has, sorted by name.
    pub async fn read_admissions(
        &self,
        replica: &ReplicaId,
        node: &NodeId,
    ) -> Result<Admissions, CallError> {
        self.admissions_after(replica, node, String::new()).await
    }

    /// Asks a node for its admissions from shortly before a name on.
    pub async fn admissions_near(
        &self,
        replica: &ReplicaId,
        node: &NodeId,
        name: &FileName,
    ) -> Result<Admissions, CallError> {
        self.admissions_after(replica, node, before(name)).await
    }

    async fn admissions_after(
        &self,
        replica: &ReplicaId,
        node: &NodeId,
        after: String,
    ) -> Result<Admissions, CallError> {
        let request = wire::FilesRequest {
            after,
            only_findings: false,
            on_disk: false,
        };
        let listed = self.call_live(replica, node, request, |mut client, request| async move {
            client.admissions(request).await
        });
        Ok(Admissions {
            replica: replica.clone(),
            stream: listed.await?,
            count: None,
        })
    }
}

/// Returns the longest name that is a prefix of `name`, or an empty text. Few names lie between the two.
fn before(name: &FileName) -> String {
    let text = name.as_str();
    let shorter = text
        .char_indices()
        .rev()
        .filter_map(|(end, _)| text.get(..end));
    let names = shorter.filter_map(|text| FileName::new(text).ok());
    names.map(String::from).next().unwrap_or_default()
}

impl Admissions {
    /// Returns the next page, or `None` at the end.
    pub async fn next(&mut self) -> Result<Option<AnswerPage<FoundAdmission>>, CallError> {
        let Some(message) = self.stream.message().await? else {
            return Ok(None);
        };
        let items = message.admissions.into_iter().map(|one| self.read(one));
        let items = items.collect();
        self.count = message.end.as_ref().map(|end| end.count);
        let end = message.end.map(|end| gaps_within(&self.replica, &end.gaps));
        let end = end.transpose()?;
        Ok(Some(AnswerPage { items, end }))
    }

    /// Returns the number of admissions that the node says it has sent. Known after the last page.
    pub const fn expected_count(&self) -> Option<u64> {
        self.count
    }

    fn read(&self, one: wire::admissions_response::One) -> FoundAdmission {
        let entry = one.entry.ok_or("an admission without its entry")?;
        let wrong = |error: InvalidMessage| format!("{:?}: {error}", entry.name);
        let name = fields::file_name("name", &entry.name).map_err(wrong)?;
        let sighting = Sighting {
            replica: self.replica.clone(),
            node: fields::node_id(&entry.node).map_err(wrong)?,
            volume: fields::volume_id(&entry.volume).map_err(wrong)?,
            stored: fields::optional_timestamp("stored", entry.stored)
                .map_err(wrong)?
                .unwrap_or(Timestamp::UNIX_EPOCH),
            is_there: entry.condition() != wire::CopyCondition::Missing,
            admission: one.admission,
        };
        Ok((name, sighting))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a listing begins behind the name, or far before it, or with a text that is no name.
    #[test]
    fn listing_begins_shortly_before_the_name() {
        for (name, expected) in [
            ("a", ""),
            ("ab", "a"),
            ("a.warc.gz", "a.warc.g"),
            ("a b", "a"),
            ("a. b", "a"),
            ("ü", ""),
            ("aü", "a"),
        ] {
            let name = FileName::new(name).unwrap();
            let before = before(&name);
            assert_eq!(before, expected);
            assert!(before.as_str() < name.as_str());
        }
    }
}
