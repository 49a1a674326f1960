//! The promises of the feed.
//!
//! # Errors
//!
//! A promise fails if it is broken, or if the archive cannot be asked.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use archive_client::{ArchiveSteps, ClientError, FeedStep};
use archive_model::{ChangeKind, FeedChange, FeedFile, FeedPosition, FileName, Root};

use super::Doors;
use crate::contract::{Outcome, name, root, store};

/// Holds one archive to every promise.
pub async fn all(doors: Doors<'_>, outcome: &mut Outcome) {
    outcome
        .check(a_feed_without_a_position_lists_every_file(doors))
        .await;
    outcome.check(stored_file_is_reported_live(doors)).await;
    outcome
        .check(feed_continues_after_its_position(doors))
        .await;
    outcome
        .check(an_unknown_position_is_answered_by_a_listing(doors))
        .await;
}

/// The feed, and what has come of it.
struct FollowedFeed {
    steps: ArchiveSteps<FeedStep>,
    /// The last position that was handed out.
    position: Option<FeedPosition>,
    /// The listing, if one came.
    listed: Option<Vec<FeedFile>>,
    changes: Vec<FeedChange>,
}

impl FollowedFeed {
    async fn begin(doors: Doors<'_>, after: Option<&FeedPosition>) -> Result<Self, ClientError> {
        Ok(Self {
            steps: doors.follower.changes(after).await?,
            position: after.copied(),
            listed: None,
            changes: Vec::new(),
        })
    }

    /// Follows until nothing is newer, and holds each step against the one before.
    async fn catch_up(&mut self) -> Result<FeedPosition> {
        let mut listing: Option<Vec<FeedFile>> = None;
        loop {
            match self.steps.next().await?.context("the feed has ended")? {
                FeedStep::Listing => {
                    ensure!(
                        self.listed.is_none() && self.changes.is_empty(),
                        "a listing late"
                    );
                    listing = Some(Vec::new());
                }
                FeedStep::File(file) => {
                    let files = listing.as_mut().context("a file outside a listing")?;
                    let last = files.last();
                    ensure!(last.is_none_or(|last| last.name < file.name), "{file:?}");
                    files.push(file);
                }
                FeedStep::Listed(position) => {
                    self.listed = Some(listing.take().context("an end of no listing")?);
                    self.position = Some(position);
                }
                FeedStep::Change(change) => {
                    let last = self.position.context("a change before any position")?;
                    let number = change.position.number;
                    ensure!(number == last.number + 1, "{number} follows {last}");
                    self.position = Some(change.position);
                    self.changes.push(change);
                }
                FeedStep::CaughtUp(position) => {
                    ensure!(
                        self.position == Some(position),
                        "{position}: {:?}",
                        self.position
                    );
                    return Ok(position);
                }
            }
        }
    }

    /// Follows until `count` changes of these files have come; others may change beside them.
    async fn until(&mut self, names: &[&FileName], count: usize) -> Result<Vec<FeedChange>> {
        loop {
            let own = |change: &&FeedChange| names.contains(&&change.file.name);
            let own: Vec<_> = self.changes.iter().filter(own).cloned().collect();
            if own.len() >= count {
                return Ok(own);
            }
            self.catch_up().await?;
        }
    }
}

async fn put(doors: Doors<'_>, last: &str) -> Result<(FileName, Root)> {
    let name = name(&format!("access-feed-{last}"))?;
    store(doors.depositor, &name, last.as_bytes()).await?;
    Ok((name, root(last.as_bytes())))
}

/// Without a position the feed begins with a listing of every file, and says where it continues.
pub async fn a_feed_without_a_position_lists_every_file(doors: Doors<'_>) -> Result<()> {
    let mut stored = BTreeMap::new();
    for last in ["new-b", "new-a", "new-ø"] {
        let (name, root) = put(doors, last).await?;
        stored.insert(name, root);
    }
    let mut feed = FollowedFeed::begin(doors, None).await?;
    feed.catch_up().await?;
    let listed = feed.listed.context("no listing came")?;
    ensure!(feed.changes.is_empty(), "{:?}", feed.changes);
    for (name, root) in stored {
        let file = listed.iter().find(|file| file.name == name);
        let file = file.with_context(|| format!("{name} is not listed"))?;
        let size = name.as_str().len() - "access-feed-".len();
        ensure!(file.root == root && file.size == size as u64, "{file:?}");
    }
    Ok(())
}

/// A reader that has caught up gets each file once, as soon as its depositor has the receipt.
pub async fn stored_file_is_reported_live(doors: Doors<'_>) -> Result<()> {
    let mut feed = FollowedFeed::begin(doors, None).await?;
    feed.catch_up().await?;
    for last in ["live-1", "live-2"] {
        let (name, root) = put(doors, last).await?;
        let told = feed.until(&[&name], 1).await?;
        let [change] = told.as_slice() else {
            bail!("told {told:?}")
        };
        ensure!(change.kind == ChangeKind::Stored, "{change:?}");
        ensure!(change.file.root == root, "{change:?}");
        store(doors.depositor, &name, last.as_bytes()).await?;
    }
    let (last, _) = put(doors, "live-3").await?;
    feed.until(&[&last], 1).await?;
    let again = feed.changes.iter();
    let again = again.filter(|change| change.file.name.as_str() == "access-feed-live-1");
    ensure!(again.count() == 1, "what is stored again is no change");
    Ok(())
}

/// A reader that returns with a position gets every change after it, and nothing else.
pub async fn feed_continues_after_its_position(doors: Doors<'_>) -> Result<()> {
    let mut feed = FollowedFeed::begin(doors, None).await?;
    let begin = feed.catch_up().await?;
    let mut names = Vec::new();
    for last in ["on-1", "on-2", "on-3"] {
        names.push(put(doors, last).await?.0);
    }
    let names: Vec<_> = names.iter().collect();
    feed.until(&names, 3).await?;
    let all = feed.changes;
    let positions = all.iter().map(|change| change.position);
    for (rest, position) in [begin].into_iter().chain(positions).enumerate() {
        let mut again = FollowedFeed::begin(doors, Some(&position)).await?;
        again.catch_up().await?;
        ensure!(again.listed.is_none(), "after {position} a listing came");
        let expected = &all[rest..];
        let come = again.changes.get(..expected.len());
        ensure!(
            come == Some(expected),
            "after {position}: {:?}",
            again.changes
        );
    }
    Ok(())
}

/// A position of the future, or of another archive, is answered by a listing, and by no error.
pub async fn an_unknown_position_is_answered_by_a_listing(doors: Doors<'_>) -> Result<()> {
    let (name, _) = put(doors, "unknown").await?;
    let end = FollowedFeed::begin(doors, None).await?.catch_up().await?;
    let unknown = [
        FeedPosition {
            number: end.number + 1000,
            ..end
        },
        FeedPosition {
            lineage: !end.lineage,
            ..end
        },
        FeedPosition {
            number: u64::MAX,
            lineage: 0,
        },
        FeedPosition {
            number: 0,
            lineage: 0,
        },
    ];
    for position in unknown {
        let mut feed = FollowedFeed::begin(doors, Some(&position)).await?;
        feed.catch_up().await?;
        let listed = feed.listed.unwrap_or_default();
        let is_listed = listed.iter().any(|file| file.name == name);
        ensure!(is_listed, "{position}: {listed:?}");
    }
    Ok(())
}
