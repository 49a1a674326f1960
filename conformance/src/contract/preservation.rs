//! The promises to every user of a [`Preservation`] where nothing is damaged. The treatment of damage is shown in
//! `tests/cluster`, where there is some.
//!
//! # Errors
//!
//! A promise fails if it is broken, or if the archive cannot be asked.

use std::fmt;

use anyhow::{Context, Result, ensure};
use archive_client::preservation::{
    AnomalySelection, ArchiveSteps, AuditSelection, CheckKind, CheckOrder,
};
use archive_client::{ClientError, Ingest, Preservation, ReplicaProgress, StoredFile};
use archive_model::{Act, CheckStep, FileName, ReplicaKind, RequestState};

use super::{Outcome, name, noise, refusal, store};

/// People at the doors of one archive.
#[derive(Clone, Copy)]
pub struct People<'a> {
    /// The depositor of the files that are looked after.
    pub depositor: &'a dyn Ingest,
    /// The door of an officer.
    pub officer: &'a dyn Preservation,
    /// The door of a custodian.
    pub custodian: &'a dyn Preservation,
    /// The door of a second custodian, who is another person.
    pub second: &'a dyn Preservation,
}

impl fmt::Debug for People<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("People").finish_non_exhaustive()
    }
}

/// Holds one archive to every promise.
pub async fn all(people: People<'_>) -> Outcome {
    let mut outcome = Outcome::default();
    outcome
        .check(a_check_of_intact_copies_finds_nothing(people))
        .await;
    outcome
        .check(an_act_that_destroys_is_only_asked_for(people))
        .await;
    outcome
        .check(a_request_that_is_none_is_not_found(people))
        .await;
    outcome.check(the_trail_says_who_stored_what(people)).await;
    outcome
}

/// A check of intact copies finds nothing, and says of each replica that it looked.
pub async fn a_check_of_intact_copies_finds_nothing(people: People<'_>) -> Result<()> {
    let (name, stored) = people.put("keep-intact.warc", 1).await?;
    for kind in [CheckKind::Files, CheckKind::Checksums] {
        let order = CheckOrder {
            kind,
            names: vec![name.clone()],
            matching: None,
            replica: None,
            challenge: false,
        };
        let mut looked = Vec::new();
        for step in whole(people.officer.check(&order).await?).await? {
            match step {
                CheckStep::Progress(_) => {}
                CheckStep::Anomaly(anomaly) => anyhow::bail!("{kind:?}: {anomaly:?}"),
                CheckStep::Report(report) => {
                    let is_clean = report.anomalies.is_empty() && report.gaps.is_empty();
                    ensure!(report.files == 1 && is_clean, "{kind:?}: {report:?}");
                    looked.push(report.replica);
                }
            }
        }
        looked.sort();
        let receipted = stored.receipt.replicas.iter();
        let mut receipted: Vec<_> = receipted.map(|one| one.replica.clone()).collect();
        receipted.sort();
        ensure!(looked == receipted, "{kind:?}: only in {looked:?}");
    }
    let selection = AnomalySelection {
        all: true,
        file: Some(name),
    };
    let filed = whole(people.officer.anomalies(&selection).await?).await?;
    ensure!(filed.is_empty(), "{filed:?}");
    Ok(())
}

/// An act that destroys is only asked for: nobody approves their own, and what was withdrawn is not done.
pub async fn an_act_that_destroys_is_only_asked_for(people: People<'_>) -> Result<()> {
    let (name, stored) = people.put("keep-asked.warc", 2).await?;
    let mut copies = stored.receipt.replicas.into_iter();
    let copy = copies.find(|copy| copy.kind == ReplicaKind::Bitarchive);
    let act = Act::Remove {
        name: name.clone(),
        replica: copy.context("no replica has bytes")?.replica,
        checksum: stored.admission.root,
        last_copies: false,
    };
    let asked = people.custodian.ask(&act, "a test").await?;
    ensure!(asked.state == RequestState::Open, "{asked:?}");
    let open = people.second.requests(false).await?;
    ensure!(open.contains(&asked), "{open:?}");
    refusal(people.custodian.approve(&asked.id).await)?;
    let withdrawn = people.custodian.withdraw(&asked.id).await?;
    ensure!(withdrawn.state == RequestState::Withdrawn, "{withdrawn:?}");
    refusal(people.second.approve(&asked.id).await)?;
    let open = people.second.requests(false).await?;
    ensure!(!open.iter().any(|one| one.id == asked.id), "{open:?}");
    let ever = people.second.requests(true).await?;
    ensure!(ever.iter().any(|one| one.id == asked.id), "{ever:?}");
    for replica in people.depositor.stat(&name).await?.replicas {
        let is_there = replica.progress == ReplicaProgress::UploadCompleted;
        ensure!(is_there, "{replica:?}");
    }
    Ok(())
}

/// Nobody approves or withdraws a request that does not exist.
pub async fn a_request_that_is_none_is_not_found(people: People<'_>) -> Result<()> {
    for answer in [
        people.second.approve("nobody-asked").await,
        people.second.withdraw("nobody-asked").await,
    ] {
        let error = refusal(answer)?;
        ensure!(matches!(error, ClientError::NotFound(_)), "{error:?}");
    }
    Ok(())
}

/// The trail says who stored a file, in the order in which it happened.
pub async fn the_trail_says_who_stored_what(people: People<'_>) -> Result<()> {
    let (name, stored) = people.put("keep-trail.warc", 3).await?;
    let selection = AuditSelection {
        file: Some(name.clone()),
        since: None,
    };
    let lines = whole(people.officer.audit(&selection).await?).await?;
    ensure!(
        lines.iter().all(|line| line.file.as_ref() == Some(&name)),
        "{lines:?}"
    );
    ensure!(
        lines.iter().is_sorted_by_key(|line| line.number),
        "{lines:?}"
    );
    let depositor = &stored.admission.depositor;
    let is_named = lines.iter().any(|line| line.who == *depositor);
    ensure!(is_named, "{depositor} is not in {lines:?}");
    Ok(())
}

impl People<'_> {
    async fn put(&self, text: &str, seed: u64) -> Result<(FileName, StoredFile)> {
        let name = name(text)?;
        let stored = store(self.depositor, &name, &noise(100_000, seed)).await?;
        Ok((name, stored))
    }
}

/// Returns all steps, if they are whole.
async fn whole<T>(mut steps: ArchiveSteps<T>) -> Result<Vec<T>> {
    let mut all = Vec::new();
    while let Some(step) = steps.next().await? {
        all.push(step);
    }
    Ok(all)
}
