//! Checks: compare replicas with the admin data, file new anomalies, and close those that no longer exist.
//!
//! Owns the order of a check of one replica: its listing is compared while it is received; suspected names are looked
//! at a second time, one by one, and only then filed; copies are read again if requested; finally anomalies that were
//! filed before and not found again are looked at, and closed if they no longer exist. A silent part is a gap of the
//! report.
//!
//! The caller receives each step; the check ends when the caller goes away.

mod bounded_set;
mod bytes;
mod listing;

use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use archive_decisions::check::ExpectedCopy;
use archive_ledger::anomalies::{AnomalyRow, LookResult};
use archive_model::{
    AnomalyClass, AnomalyKind, CheckKind, CheckProgress, CheckStep, CopyPlace, FileName, Gap,
    NamePattern, ReplicaId, ReplicaKind, ReplicaReport, SilentPart, VolumeName,
};
use archive_replicas::LocatedCopies;
use archive_rpc::answers::{UNREAD, WorkProgress};
use archive_rpc::{CallError, CallErrorKind};
use futures_util::future::try_join_all;
use jiff::Timestamp;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::mpsc;

use crate::preserver::{LookContext, Preserver, expected_entry};
use crate::tables::feed_rows;
use bounded_set::BoundedSet;

/// The time between two reports of progress.
const PROGRESS: Duration = Duration::from_secs(1);

/// The most anomalies that a check keeps to report them at its end.
const MOST_REMEMBERED: usize = 10_000;

/// The number of names on their way between two threads.
const WINDOW: usize = 256;

/// A part of a check that runs beside others.
type CheckFuture<'a, T = ()> = Pin<Box<dyn Future<Output = Result<T, CallError>> + Send + 'a>>;

/// The replica and files that a check covers, its depth, and who looks.
#[derive(Clone, Debug)]
pub(crate) struct CheckScope {
    /// The depth of the check.
    pub(crate) kind: CheckKind,
    /// Whether every copy is asked for random groups with their proofs.
    pub(crate) challenges: bool,
    pub(crate) selection: CheckSelection,
    /// The only replica to check; `None` for all.
    pub(crate) replica: Option<ReplicaId>,
    pub(crate) look_context: LookContext,
}

/// The files to check.
#[derive(Clone, Debug, Default)]
pub(crate) struct CheckSelection {
    /// The only files to check; empty for all.
    pub(crate) names: BTreeSet<FileName>,
    /// The pattern that names must match as a whole.
    pub(crate) matching: NamePattern,
}

impl CheckScope {
    /// Returns whether every copy is read again.
    fn reads_bytes(&self) -> bool {
        self.kind == CheckKind::Checksums
    }
}

impl CheckSelection {
    fn is_all(&self) -> bool {
        self.names.is_empty() && self.matching.is_empty()
    }

    fn has(&self, name: &FileName) -> bool {
        (self.names.is_empty() || self.names.contains(name)) && self.matching.matches(name.as_str())
    }
}

/// The lost files, of every replica: the pass that finds the last copy bad files the loss for all. Losses are reported
/// at the end, if the files are still lost; losses beyond [`MOST_REMEMBERED`] are reported at once.
type Losses = Arc<Mutex<BTreeMap<u64, AnomalyRow>>>;

/// The check of one replica.
struct Pass<'a> {
    own: &'a Preserver,
    scope: &'a CheckScope,
    replica: ReplicaId,
    steps: &'a mpsc::Sender<CheckStep<AnomalyRow>>,
    started: Timestamp,
    compared: Arc<AtomicU64>,
    read: AtomicU64,
    tally: Mutex<Tally>,
    losses: Losses,
}

#[derive(Debug, Default)]
struct Tally {
    withdrawn: u64,
    not_stored: u64,
    anomalies: BTreeMap<AnomalyClass, u64>,
    told: BoundedSet<u64>,
    /// Files of the admin data that are not intact, or unknown.
    not_intact: BoundedSet<FileName>,
    gaps: BTreeSet<Gap>,
    /// The number of copies of which nothing is known, beyond those that were filed.
    unverified: u64,
    /// Damage that a catalog remembers; reported after the copy was read again, if it is still damaged. Rows beyond
    /// [`MOST_REMEMBERED`] are reported at once.
    remembered: Vec<AnomalyRow>,
    /// The number of times that a volume could not be asked for a copy.
    refusals: BTreeMap<CopyPlace, u32>,
}

impl Preserver {
    /// Checks all replicas at the same time.
    ///
    /// # Errors
    /// The caller has gone away, or the admin data cannot be read.
    pub(crate) async fn check_replica(
        &self,
        scope: &CheckScope,
        steps: &mpsc::Sender<CheckStep<AnomalyRow>>,
    ) -> Result<(), CallError> {
        let in_service = self.archive.in_service();
        let known = |id: &ReplicaId| in_service.iter().any(|spec| spec.id == *id);
        if let Some(unknown) = scope.replica.as_ref().filter(|id| !known(id)) {
            let said =
                format!("cannot check replica {unknown}: it is not in the settings, or retired");
            return Err(CallErrorKind::NotFound.to_error(said));
        }
        let chosen = in_service
            .iter()
            .filter(|spec| scope.replica.as_ref().is_none_or(|id| *id == spec.id));
        let losses = Losses::default();
        let passes: Vec<Pass<'_>> = chosen
            .map(|spec| Pass {
                own: self,
                scope,
                replica: spec.id.clone(),
                steps,
                started: self.archive.calls.clock.now(),
                compared: Arc::default(),
                read: AtomicU64::new(0),
                tally: Mutex::default(),
                losses: Arc::clone(&losses),
            })
            .collect();
        let mut runs: Vec<CheckFuture<'_, ReplicaReport>> = Vec::new();
        for pass in &passes {
            let keeps_bytes = self
                .archive
                .specs
                .iter()
                .any(|spec| spec.id == pass.replica && spec.kind == ReplicaKind::Bitarchive);
            runs.push(Box::pin(pass.run(keeps_bytes)));
        }
        let mut reports = try_join_all(runs).await?;
        let lost = std::mem::take(&mut *losses.lock());
        for row in lost.into_values() {
            if self.is_open(&row).await? {
                let of = reports.iter_mut().find(|of| of.replica == row.replica);
                if let Some(of) = of {
                    *of.anomalies.entry(row.filed.kind.class()).or_default() += 1;
                }
                self.step(steps, CheckStep::Anomaly(Box::new(row))).await?;
            }
        }
        for report in reports {
            self.step(steps, CheckStep::Report(report)).await?;
        }
        for name in &scope.selection.names {
            if self.file_record(name).await?.is_none()
                && self.filed_anomalies(name).await?.is_empty()
            {
                return Err(
                    CallErrorKind::NotFound.to_error(format!("{name} is not in the archive"))
                );
            }
        }
        Ok(())
    }
}

impl Preserver {
    /// Sends a step to the caller.
    async fn step(
        &self,
        steps: &mpsc::Sender<CheckStep<AnomalyRow>>,
        step: CheckStep<AnomalyRow>,
    ) -> Result<(), CallError> {
        let clock = &self.archive.calls.clock;
        match clock.run_with_timeout(UNREAD, steps.send(step)).await {
            Ok(sent) => sent
                .map_err(|_gone| CallErrorKind::Unavailable.to_error("the caller has gone away")),
            Err(_late) => Err(CallErrorKind::TimedOut
                .to_error("the caller does not receive the steps of the check")),
        }
    }
}

impl Pass<'_> {
    async fn run(&self, keeps_bytes: bool) -> Result<ReplicaReport, CallError> {
        let is_heard = if self.scope.selection.names.is_empty() {
            self.while_telling(self.compare_all()).await?
        } else {
            self.compare_names().await?;
            true
        };
        if keeps_bytes && (self.scope.reads_bytes() || self.scope.challenges) {
            self.while_telling(self.read_all()).await?;
            let remembered = std::mem::take(&mut self.tally().remembered);
            for row in remembered {
                if self.own.is_open(&row).await? {
                    let open = vec![row];
                    self.tell(LookResult {
                        open,
                        new: 0,
                        closed: 0,
                    })
                    .await?;
                }
            }
        }
        if is_heard {
            self.while_telling(self.close_vanished_anomalies()).await?;
        }
        let tally = self.tally();
        let files = self.compared.load(Ordering::Relaxed);
        Ok(ReplicaReport {
            replica: self.replica.clone(),
            files,
            intact: files
                .saturating_sub(tally.not_intact.count())
                .saturating_sub(tally.unverified)
                .saturating_sub(tally.withdrawn),
            withdrawn: tally.withdrawn,
            not_stored: tally.not_stored,
            anomalies: tally.anomalies.clone(),
            gaps: tally.gaps.iter().cloned().collect(),
        })
    }

    /// Compares each selected name by itself.
    async fn compare_names(&self) -> Result<(), CallError> {
        for name in &self.scope.selection.names {
            if self.scope.selection.has(name) {
                let record = self.own.file_record(name).await?;
                let expected = record.and_then(|record| expected_entry(&record, &self.replica));
                match expected.map(|entry| entry.expected) {
                    None => self.tally().not_stored += 1,
                    Some(copy) => {
                        self.compared.fetch_add(1, Ordering::Relaxed);
                        self.tally().withdrawn += u64::from(copy == ExpectedCopy::Withdrawn);
                    }
                }
                drop(self.look(name).await?);
            }
        }
        self.step(CheckStep::Progress(self.progress())).await
    }

    /// Looks at one name, files and reports the result, and returns where the file is.
    async fn look(&self, name: &FileName) -> Result<LocatedCopies, CallError> {
        let looking = self
            .own
            .look_and_file(&self.replica, name, &self.scope.look_context);
        let (seen, found) = looking.await?;
        let is_known = seen.located.silent.is_none() || !seen.located.copies.is_empty();
        if !is_known {
            for part in &seen.located.gaps {
                let reason = seen.located.silent.clone().unwrap_or_default();
                self.gap(Some(part.clone()), reason);
            }
            if let (true, Some(reason)) = (seen.located.gaps.is_empty(), &seen.located.silent) {
                self.gap(None, reason.clone());
            }
            self.tally().not_intact.insert(name.clone());
        }
        if seen.found.contains(&AnomalyKind::Transient) {
            let mut tally = self.tally();
            *tally.anomalies.entry(AnomalyClass::Transient).or_default() += 1;
            tally.not_intact.insert(name.clone());
        }
        let mut found = found;
        if self.scope.reads_bytes() {
            let (damage, rest) = found.open.into_iter().partition(|row| {
                matches!(
                    row.filed.kind,
                    AnomalyKind::Corrupt(_) | AnomalyKind::Unreadable(_)
                )
            });
            found.open = rest;
            let damage: Vec<AnomalyRow> = damage;
            let mut tally = self.tally();
            if tally.remembered.len() < MOST_REMEMBERED {
                tally.remembered.extend(damage);
            } else {
                found.open.extend(damage);
            }
        }
        self.tell(found).await?;
        Ok(seen.located)
    }

    /// Closes anomalies that were filed before this check, were not found again, and no longer exist.
    async fn close_vanished_anomalies(&self) -> Result<(), CallError> {
        let (rows, mut old) = mpsc::channel(WINDOW);
        let own = self.own.clone();
        let replica = self.replica.clone();
        let started = self.started;
        let selection = self.scope.selection.clone();
        let read = async move {
            let mut last = None;
            feed_rows(&rows, move |outlet| {
                let after = last.take();
                for row in own.archive.anomalies.rows_after(after.as_ref())? {
                    let row = row?;
                    let is_old = row.replica == replica && row.filed.seen < started;
                    if is_old && selection.has(&row.file) && !outlet.send_message(row.file.clone())
                    {
                        last = Some(row);
                        return Ok(WorkProgress::Paused);
                    }
                }
                Ok(WorkProgress::Done)
            })
            .await
        };
        let look = async {
            let mut last = None;
            while let Some(file) = old.recv().await {
                if last.as_ref() != Some(&file) {
                    drop(self.look(&file).await?);
                    last = Some(file);
                }
            }
            drop(old);
            Ok(())
        };
        tokio::try_join!(read, look).map(|_| ())
    }

    /// Reports the anomalies that are filed now, each once.
    async fn tell(&self, found: LookResult) -> Result<(), CallError> {
        for row in found.open {
            if matches!(row.filed.kind, AnomalyKind::Lost(_)) {
                let mut losses = self.losses.lock();
                if losses.len() < MOST_REMEMBERED {
                    losses.insert(row.filed.id, row);
                    continue;
                }
            }
            let is_new = row.replica == self.replica && self.count(&row);
            if is_new {
                self.step(CheckStep::Anomaly(Box::new(row))).await?;
            }
        }
        Ok(())
    }

    /// Runs `work` and reports progress at intervals, which also detects that the caller has gone away.
    async fn while_telling<T>(
        &self,
        work: impl Future<Output = Result<T, CallError>>,
    ) -> Result<T, CallError> {
        let clock = &self.own.archive.calls.clock;
        let mut work = Box::pin(work);
        loop {
            match clock.run_with_timeout(PROGRESS, &mut work).await {
                Ok(done) => return done,
                Err(_not_yet) => self.step(CheckStep::Progress(self.progress())).await?,
            }
        }
    }

    /// Counts an anomaly of this replica. Returns `false` if it was counted already.
    fn count(&self, row: &AnomalyRow) -> bool {
        let mut tally = self.tally();
        let is_new = tally.told.insert(row.filed.id);
        if is_new {
            *tally.anomalies.entry(row.filed.kind.class()).or_default() += 1;
        }
        if row.filed.kind != AnomalyKind::Unexpected {
            tally.not_intact.insert(row.file.clone());
        }
        is_new
    }

    async fn step(&self, step: CheckStep<AnomalyRow>) -> Result<(), CallError> {
        self.own.step(self.steps, step).await
    }

    fn progress(&self) -> CheckProgress {
        let counts = self
            .own
            .archive
            .admin
            .counts()
            .filter(|_| self.scope.selection.is_all());
        let (files_total, bytes_total) = counts.map_or((None, None), |counts| {
            let bytes = self.scope.reads_bytes().then_some(counts.bytes);
            (Some(counts.files), bytes)
        });
        CheckProgress {
            replica: self.replica.clone(),
            files: self.compared.load(Ordering::Relaxed),
            bytes: self.read.load(Ordering::Relaxed),
            files_total,
            bytes_total,
        }
    }

    /// Notes a part that did not answer; `None` stands for the whole replica.
    fn gap(&self, part: Option<SilentPart>, reason: String) {
        let mut tally = self.tally();
        let (node, volume) = part.map(|part| (part.node, part.volume)).unzip();
        let volume = volume.flatten().map(VolumeName::Id);
        let is_known = |gap: &Gap| gap.node == node && gap.volume == volume && node.is_some();
        if !tally.gaps.iter().any(is_known) {
            tally.gaps.insert(Gap {
                replica: self.replica.clone(),
                node,
                volume,
                reason,
            });
        }
    }

    fn tally(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock()
    }
}
