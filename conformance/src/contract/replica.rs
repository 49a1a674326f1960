//! The promises to the repository of the part that answers for a replica: a monitor, or a checksum replica, which is
//! its own.
//!
//! # Errors
//!
//! A promise fails if it is broken, or if the replica cannot be asked.

use std::collections::BTreeSet;

use anyhow::{Context, Result, anyhow, bail, ensure};
use archive_model::ReplicaId;
use archive_proof::Admission;
use jiff::Timestamp;
use proto_archive::wire::files_response::End;
use proto_archive::wire::replica_client::ReplicaClient;
use proto_archive::wire::{
    CopyCondition, FileEntry, FilesRequest, FindRequest, HeartbeatRequest, Mode, NodeStatus,
    PlaceRequest, ReplicaStateRequest,
};
use tonic::transport::Channel;
use tonic::{Code, Status};

use super::Outcome;

/// The part that answers for a replica in which nothing is wrong.
#[derive(Clone, Debug)]
pub struct Foreman<'a> {
    /// The client at the door of the part, as the repository.
    pub repository: ReplicaClient<Channel>,
    /// The client at the door of the part, as a node of the replica.
    pub node: ReplicaClient<Channel>,
    /// The replica that the part answers for.
    pub replica: ReplicaId,
    /// Files that the replica has, among others.
    pub files: &'a [Admission],
}

/// Holds one implementation to every promise.
pub async fn all(foreman: &Foreman<'_>) -> Outcome {
    let mut outcome = Outcome::default();
    outcome.check(the_state_names_its_nodes(foreman)).await;
    outcome.check(a_node_speaks_for_itself_only(foreman)).await;
    outcome.check(a_file_is_placed_where_it_is(foreman)).await;
    outcome
        .check(upload_continues_on_the_same_node(foreman))
        .await;
    outcome.check(a_file_is_located_where_it_is(foreman)).await;
    outcome.check(an_unknown_file_is_nowhere(foreman)).await;
    outcome
        .check(a_listing_is_sorted_counted_and_ended(foreman))
        .await;
    outcome.check(listing_continues_after_a_name(foreman)).await;
    outcome
        .check(a_healthy_replica_lists_no_findings(foreman))
        .await;
    outcome
        .check(a_field_that_cannot_be_is_named(foreman))
        .await;
    outcome.check(a_known_unheard_node_is_silent(foreman)).await;
    outcome
}

/// The state is of this replica, and of its nodes: where they take calls, when they were heard, their disks.
pub async fn the_state_names_its_nodes(foreman: &Foreman<'_>) -> Result<()> {
    let nodes = foreman.state(&[]).await?;
    ensure!(!nodes.is_empty(), "it names none");
    for node in nodes {
        ensure!(node.alive && !node.endpoint.is_empty(), "{node:?}");
        node.seen.parse::<Timestamp>()?;
        ensure!(!node.volumes.is_empty(), "{node:?}");
        let is_well = node.volumes.iter().all(|volume| volume.problem.is_empty());
        ensure!(is_well, "{node:?}");
    }
    Ok(())
}

/// A certificate speaks for its own node only.
pub async fn a_node_speaks_for_itself_only(foreman: &Foreman<'_>) -> Result<()> {
    let status = NodeStatus {
        node: "stranger".to_owned(),
        endpoint: "127.0.0.1:9".to_owned(),
        mode: Mode::ReadWrite.into(),
        ..NodeStatus::default()
    };
    let request = HeartbeatRequest {
        status: Some(status),
    };
    let answer = foreman.node.clone().heartbeat(request).await;
    ensure!(answer.is_err(), "it is believed");
    let nodes = foreman.state(&[]).await?;
    let is_there = nodes.iter().any(|node| node.node == "stranger");
    ensure!(!is_there, "it is believed: {nodes:?}");
    Ok(())
}

/// A file that the replica has goes to the node that has it.
pub async fn a_file_is_placed_where_it_is(foreman: &Foreman<'_>) -> Result<()> {
    for file in foreman.files {
        let entry = foreman.only(file).await?;
        let (node, endpoint) = foreman.place(file.name.as_str(), "contract-has").await?;
        ensure!(node == entry.node, "{node}, and it is on {}", entry.node);
        let nodes = foreman.state(&[]).await?;
        let said = nodes.into_iter().find(|said| said.node == node);
        let said = said.context("the state does not name that node")?;
        ensure!(said.endpoint == endpoint, "{endpoint}: {said:?}");
    }
    Ok(())
}

/// An upload that is placed again goes to the node where it began: a living one, at the place where it takes calls.
pub async fn upload_continues_on_the_same_node(foreman: &Foreman<'_>) -> Result<()> {
    let file = "replica-to-come.warc";
    let upload = "contract-comes";
    let first = foreman.place(file, upload).await?;
    let again = foreman.place(file, upload).await?;
    ensure!(first == again, "first {first:?}, then {again:?}");
    let nodes = foreman.state(&[]).await?;
    let lives = nodes
        .iter()
        .any(|node| node.alive && (&node.node, &node.endpoint) == (&first.0, &first.1));
    ensure!(lives, "{first:?} is not one of {nodes:?}");
    Ok(())
}

/// A file that the replica has is located, present, with the root and size that were admitted.
pub async fn a_file_is_located_where_it_is(foreman: &Foreman<'_>) -> Result<()> {
    for file in foreman.files {
        is_as_admitted(&foreman.only(file).await?, file)?;
    }
    Ok(())
}

/// Only a complete answer without entries says that a file is nowhere.
pub async fn an_unknown_file_is_nowhere(foreman: &Foreman<'_>) -> Result<()> {
    let name = "replica-never.warc".to_owned();
    let mut client = foreman.repository.clone();
    let found = client
        .locate(FindRequest {
            name,
            on_disk: false,
        })
        .await?
        .into_inner();
    ensure!(
        found.entries.is_empty() && found.gaps.is_empty(),
        "{found:?}"
    );
    Ok(())
}

/// A listing is sorted by name, has every file, and ends with their count and what it lacks.
pub async fn a_listing_is_sorted_counted_and_ended(foreman: &Foreman<'_>) -> Result<()> {
    let (entries, end) = foreman.list("", false).await?;
    ensure!(end.count == entries.len() as u64, "{end:?}");
    ensure!(end.gaps.is_empty(), "{end:?}");
    let names = entries.iter().map(|entry| &entry.name);
    ensure!(names.is_sorted(), "{:?}", names_of(&entries));
    for file in foreman.files {
        let mut entries = entries.iter();
        let entry = entries.find(|entry| entry.name == file.name.as_str());
        let entry = entry.with_context(|| format!("{} is not listed", file.name))?;
        is_as_admitted(entry, file)?;
    }
    Ok(())
}

/// A listing continues after a name with the rest, whether the name is known or not.
pub async fn listing_continues_after_a_name(foreman: &Foreman<'_>) -> Result<()> {
    let (all, _) = foreman.list("", false).await?;
    for file in foreman.files {
        let name = file.name.as_str();
        for after in [name.to_owned(), format!("{name}.unknown")] {
            let (entries, end) = foreman.list(&after, false).await?;
            let listed = names_of(&entries);
            let mut rest = names_of(&all);
            rest.retain(|name| *name > after.as_str());
            ensure!(listed == rest, "after {after}: {listed:?}");
            ensure!(end.count == listed.len() as u64, "after {after}: {end:?}");
        }
    }
    Ok(())
}

/// A replica in which nothing is wrong lists no findings, and says that these are all.
pub async fn a_healthy_replica_lists_no_findings(foreman: &Foreman<'_>) -> Result<()> {
    let (entries, end) = foreman.list("", true).await?;
    ensure!(entries.is_empty() && end.count == 0, "{entries:?}, {end:?}");
    ensure!(end.gaps.is_empty(), "{end:?}");
    Ok(())
}

/// A field that breaks a rule is refused with its name.
pub async fn a_field_that_cannot_be_is_named(foreman: &Foreman<'_>) -> Result<()> {
    let mut client = foreman.repository.clone();
    let bad = "../x".to_owned();
    let place = |name: &str, upload: &str| PlaceRequest {
        name: name.to_owned(),
        upload: upload.to_owned(),
        ..PlaceRequest::default()
    };
    is_named("name", client.place(place(&bad, "u-1")).await)?;
    is_named("name", client.place(place("", "u-1")).await)?;
    is_named("upload", client.place(place("a", "U 1")).await)?;
    is_named("upload", client.place(place("a", "")).await)?;
    let avoid = PlaceRequest {
        avoid: vec!["N 1".to_owned()],
        ..place("a", "u-1")
    };
    is_named("avoid", client.place(avoid).await)?;
    let name = bad.clone();
    is_named(
        "name",
        client
            .locate(FindRequest {
                name,
                on_disk: false,
            })
            .await,
    )?;
    let after = FilesRequest {
        after: bad,
        only_findings: false,
        on_disk: false,
    };
    let listing = client.listing(after).await;
    let first = match listing {
        Ok(answer) => answer.into_inner().message().await,
        Err(status) => Err(status),
    };
    is_named("after", first)?;
    for (field, known, retired) in [("known", true, false), ("retired", false, true)] {
        let ids = |are: bool| are.then(|| "N 1".to_owned()).into_iter().collect();
        let request = ReplicaStateRequest {
            known: ids(known),
            retired: ids(retired),
            volumes: Vec::new(),
        };
        is_named(field, client.replica_state(request).await)?;
    }
    Ok(())
}

/// A node that the repository knows, and that was never heard of, is named as silent, and not left out.
pub async fn a_known_unheard_node_is_silent(foreman: &Foreman<'_>) -> Result<()> {
    let heard = foreman.state(&[]).await?;
    let mut known: Vec<_> = heard.iter().map(|node| node.node.as_str()).collect();
    known.push("unheard");
    let nodes = foreman.state(&known).await?;
    // What was said before is forgotten; else the replica would miss it from now on.
    let forgotten = foreman.state(&[]).await;
    let named: BTreeSet<_> = nodes.iter().map(|node| node.node.as_str()).collect();
    let meant: BTreeSet<_> = known.into_iter().collect();
    ensure!(named == meant, "{named:?}");
    let silent: Vec<_> = nodes.iter().filter(|node| !node.alive).collect();
    ensure!(silent.len() == 1, "{silent:?}");
    ensure!(silent.iter().all(|node| node.seen.is_empty()), "{silent:?}");
    let left = forgotten?;
    ensure!(left.len() == heard.len(), "{left:?}");
    Ok(())
}

impl Foreman<'_> {
    async fn state(&self, known: &[&str]) -> Result<Vec<NodeStatus>> {
        let request = ReplicaStateRequest {
            known: known.iter().map(|&node| node.to_owned()).collect(),
            ..ReplicaStateRequest::default()
        };
        let state = self.repository.clone().replica_state(request).await?;
        let state = state.into_inner();
        ensure!(state.replica == self.replica.as_str(), "{}", state.replica);
        Ok(state.nodes)
    }

    /// The node that is to take a file, and where it takes calls.
    async fn place(&self, name: &str, upload: &str) -> Result<(String, String)> {
        let request = PlaceRequest {
            name: name.to_owned(),
            upload: upload.to_owned(),
            size: 1000,
            avoid: Vec::new(),
        };
        let placed = self.repository.clone().place(request).await?.into_inner();
        Ok((placed.node, placed.endpoint))
    }

    /// The only place where a file is.
    async fn only(&self, file: &Admission) -> Result<FileEntry> {
        let name = file.name.to_string();
        let mut client = self.repository.clone();
        let mut found = client
            .locate(FindRequest {
                name,
                on_disk: false,
            })
            .await?
            .into_inner();
        ensure!(found.gaps.is_empty(), "{found:?}");
        let entry = found.entries.pop().context("it is nowhere")?;
        ensure!(found.entries.is_empty(), "it is also at {found:?}");
        Ok(entry)
    }

    /// A whole listing: it has one end, in its last message.
    async fn list(&self, after: &str, only_findings: bool) -> Result<(Vec<FileEntry>, End)> {
        let request = FilesRequest {
            after: after.to_owned(),
            only_findings,
            on_disk: false,
        };
        let answer = self.repository.clone().listing(request).await?;
        let mut messages = answer.into_inner();
        let mut entries = Vec::new();
        let end = loop {
            let message = messages.message().await?;
            let message = message.context("the listing ended before its end")?;
            entries.extend(message.entries);
            if let Some(end) = message.end {
                break end;
            }
        };
        ensure!(messages.message().await?.is_none(), "it goes on");
        Ok((entries, end))
    }
}

fn names_of(entries: &[FileEntry]) -> Vec<&str> {
    entries.iter().map(|entry| entry.name.as_str()).collect()
}

fn is_as_admitted(entry: &FileEntry, file: &Admission) -> Result<()> {
    ensure!(entry.name == file.name.as_str(), "{entry:?}");
    ensure!(entry.size == file.size, "{entry:?}");
    ensure!(entry.root == file.root.as_bytes().as_slice(), "{entry:?}");
    ensure!(entry.condition() == CopyCondition::Present, "{entry:?}");
    ensure!(
        !entry.node.is_empty() && !entry.volume.is_empty(),
        "{entry:?}"
    );
    ensure!(entry.stored.is_some(), "{entry:?}");
    Ok(())
}

fn is_named<T>(field: &str, answer: Result<T, Status>) -> Result<()> {
    match answer {
        Ok(_) => bail!("a bad `{field}` is taken"),
        Err(status) if status.code() != Code::InvalidArgument => {
            Err(anyhow!("a bad `{field}`: {status:?}"))
        }
        Err(status) => {
            let is_said = status.message().contains(&format!("`{field}`"));
            ensure!(is_said, "a bad `{field}`: {}", status.message());
            Ok(())
        }
    }
}
