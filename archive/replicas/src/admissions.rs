//! What lies in the sidecars of a node: the admissions beside its files.

use archive_ledger::restore::combine::Sighting;
use archive_model::{FileName, Gap, NodeId, ReplicaId};
use archive_rpc::{CallError, InvalidMessage};
use jiff::Timestamp;
use proto_archive::{convert as fields, wire};
use tonic::Streaming;

use super::{Replicas, gaps_within};

/// A node's answer, page by page.
#[derive(Debug)]
pub struct Admissions {
    replica: ReplicaId,
    stream: Streaming<wire::AdmissionsResponse>,
}

/// One page.
#[derive(Debug)]
pub struct Page {
    /// What was found, or what is wrong with an entry.
    pub found: Vec<Result<(FileName, Sighting), String>>,
    /// In the last page: how many there were, and what could not be looked at.
    pub end: Option<(u64, Vec<String>)>,
}

impl Replicas {
    /// Asks a node for every admission that it has, sorted by name.
    pub async fn admissions(
        &self,
        replica: &ReplicaId,
        node: &NodeId,
    ) -> Result<Admissions, CallError> {
        self.admissions_after(replica, node, String::new()).await
    }

    /// The same from shortly before a name on.
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
        let mut client = self.live_node_client(replica, node).await?;
        let request = wire::FilesRequest {
            after,
            only_findings: false,
            on_disk: false,
        };
        Ok(Admissions {
            replica: replica.clone(),
            stream: client.admissions(request).await?.into_inner(),
        })
    }
}

/// The longest name that `name` begins with; empty: there is none. Few names lie between the two.
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
    /// The next page; none: the stream has ended.
    pub async fn next(&mut self) -> Result<Option<Page>, CallError> {
        let Some(message) = self.stream.message().await? else {
            return Ok(None);
        };
        let found = message.admissions.into_iter().map(|one| self.read(one));
        let found = found.collect();
        let read = |end: wire::files_response::End| {
            let gaps = gaps_within(&self.replica, &end.gaps)?;
            Ok((end.count, gaps.iter().map(Gap::to_string).collect()))
        };
        let end = message.end.map(read).transpose();
        let end = end.map_err(|error: InvalidMessage| CallError::from(error))?;
        Ok(Some(Page { found, end }))
    }

    fn read(&self, one: wire::admissions_response::One) -> Result<(FileName, Sighting), String> {
        let entry = one.entry.ok_or("an admission without its entry")?;
        let wrong = |error: InvalidMessage| format!("{:?}: {error}", entry.name);
        let name = fields::file_name("name", &entry.name).map_err(wrong)?;
        let sighting = Sighting {
            replica: self.replica.clone(),
            node: fields::node_id(&entry.node).map_err(wrong)?,
            volume: fields::volume_id(&entry.volume).map_err(wrong)?,
            stored: fields::optional_time("stored", &entry.stored)
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

    #[test]
    fn a_listing_begins_before_the_name_with_a_name() {
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
