//! The promises about listings.
//!
//! # Errors
//!
//! A promise fails if it is broken, or if the archive cannot be asked.

use anyhow::{Context, Result, ensure};
use archive_client::{ClientError, ListEntry, ReplicaProgress, Selection};
use archive_model::NamePattern;

use super::Doors;
use crate::contract::{name, refusal, root, store};

/// A listing is sorted by name as bytes are, names every file once, and ends with their count and what it lacks.
pub async fn a_listing_is_sorted_counted_and_ended(doors: Doors<'_>) -> Result<()> {
    let mut names = Vec::new();
    for (last, seed) in ["b", "A", "ø", "a", "a.b", "Ø", "~", "0"]
        .into_iter()
        .zip(1_u8..)
    {
        let name = name(&format!("access-list-{last}"))?;
        store(doors.depositor, &name, &[seed]).await?;
        names.push((name, root(&[seed])));
    }
    names.sort();
    let (entries, end) = doors.list(&matching("access-list-.*")).await?;
    let listed: Vec<_> = entries
        .into_iter()
        .map(|entry| (entry.name, entry.root))
        .collect();
    let meant: Vec<_> = names
        .into_iter()
        .map(|(name, root)| (name, Some(root)))
        .collect();
    ensure!(listed == meant, "{listed:?}");
    ensure!(end.count == listed.len() as u64, "{end:?}");
    ensure!(end.gaps.is_empty(), "{end:?}");
    Ok(())
}

/// A listing continues after a name, known or not, with the rest; after the last with nothing.
pub async fn listing_continues_after_a_name(doors: Doors<'_>) -> Result<()> {
    let mut names = Vec::new();
    for last in ["1", "2", "3"] {
        let name = name(&format!("access-page-{last}"))?;
        store(doors.depositor, &name, last.as_bytes()).await?;
        names.push(name);
    }
    let kinds = doors.replicas().await?.into_keys().map(Some);
    for replica in kinds.chain([None]) {
        for (after, rest) in [
            ("access-page-", 0),
            ("access-page-1", 1),
            ("access-page-1x", 1),
            ("access-page-2", 2),
            ("access-page-3", 3),
        ] {
            let selection = Selection {
                after: Some(name(after)?),
                replica: replica.clone(),
                ..matching("access-page-.*")
            };
            let (entries, end) = doors.list(&selection).await?;
            let listed: Vec<_> = entries.iter().map(|entry| &entry.name).collect();
            let meant: Vec<_> = names.iter().skip(rest).collect();
            ensure!(listed == meant, "after {after}, in {replica:?}: {listed:?}");
            ensure!(end.count == listed.len() as u64, "after {after}: {end:?}");
        }
    }
    Ok(())
}

/// An expression selects names that it matches as a whole; an invalid one is refused.
pub async fn names_match_as_a_whole(doors: Doors<'_>) -> Result<()> {
    let mut names = Vec::new();
    for last in ["a", "ab", "b.a"] {
        let name = name(&format!("access-match-{last}"))?;
        store(doors.depositor, &name, last.as_bytes()).await?;
        names.push(name);
    }
    for (pattern, meant) in [
        ("access-match-a", vec!["a"]),
        ("access-match-a|access-match-b.a", vec!["a", "b.a"]),
        ("access-match-[ab]+", vec!["a", "ab"]),
        ("access-match-A", vec![]),
        ("ccess-match-a", vec![]),
    ] {
        let (entries, end) = doors.list(&matching(pattern)).await?;
        let listed: Vec<_> = entries.iter().map(|entry| entry.name.as_str()).collect();
        let meant: Vec<_> = meant
            .iter()
            .map(|last| format!("access-match-{last}"))
            .collect();
        ensure!(listed == meant, "{pattern}: {listed:?}");
        ensure!(end.count == listed.len() as u64, "{pattern}: {end:?}");
    }
    let long = "a".repeat(NamePattern::LONGEST + 1);
    for bad in ["access-(", "access-match-a)|(access-match-b", &long] {
        let error = refusal(doors.list(&matching(bad)).await)?;
        let line = |text: &str| text.replace('\n', " ");
        let why = NamePattern::parse(bad).err().context("it is a pattern")?;
        let why = line(&why.to_string());
        ensure!(
            matches!(&error, ClientError::Invalid(said) if line(said).contains(&why)),
            "{error:?}"
        );
    }
    Ok(())
}

/// A replica lists where and how it has a file; the archive as a whole, how the file stands in each of them.
pub async fn a_replica_lists_what_it_has(doors: Doors<'_>) -> Result<()> {
    let (name, _, stored) = doors.put("access-listed.warc", 1000, 18).await?;
    for (replica, _) in doors.replicas().await? {
        let selection = Selection {
            replica: Some(replica.clone()),
            ..matching("access-listed.warc")
        };
        let entry = only(doors, &selection).await?;
        ensure!(entry.name == name && entry.size == 1000, "{entry:?}");
        ensure!(entry.root == Some(stored.admission.root), "{entry:?}");
        ensure!(entry.replicas.is_empty(), "{entry:?}");
        let found = entry.found.context("it does not say where")?;
        let custody = stored.receipt.replicas.iter();
        let custody = custody.clone().find(|one| one.replica == replica);
        let custody = custody.context("the receipt does not name it")?;
        ensure!(found.is_present(), "{found:?}");
        ensure!(
            (&found.place.node, Some(&found.place.volume))
                == (&custody.node, custody.volume.as_ref()),
            "{found:?}, receipted as {custody:?}"
        );
    }
    let entry = only(doors, &matching("access-listed.warc")).await?;
    ensure!(entry.found.is_none(), "{entry:?}");
    ensure!(entry.root == Some(stored.admission.root), "{entry:?}");
    let is_done = |progress| progress == ReplicaProgress::UploadCompleted;
    ensure!(
        entry
            .replicas
            .iter()
            .all(|replica| is_done(replica.progress)),
        "{entry:?}"
    );
    ensure!(entry.replicas == stored.replicas, "{entry:?}");
    Ok(())
}

/// The only entry of a listing.
async fn only(doors: Doors<'_>, selection: &Selection) -> Result<ListEntry> {
    let (mut entries, end) = doors.list(selection).await?;
    ensure!(end.count == 1, "{selection:?}: {entries:?}, {end:?}");
    entries.pop().context("nothing is listed")
}

fn matching(pattern: &str) -> Selection {
    Selection {
        matching: Some(pattern.to_owned()),
        ..Selection::default()
    }
}
