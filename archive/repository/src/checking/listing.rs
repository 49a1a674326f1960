//! Compares the listing of a replica with the admin data while both are read, in bounded memory.
//!
//! The comparison blocks: it lives on a thread of its own between two channels, one with the listing, one for suspected
//! names.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use archive_decisions::check::{AdminEntry, CheckReport, Finding, ListingItem, ReplicaCheck};
use archive_decisions::store::FileRecord;
use archive_ledger::admin::Admin;
use archive_ledger::anomalies::{Look, LookQuality, LookResult};
use archive_ledger::standing::StandingSnapshot;
use archive_model::{AnomalyClass, AnomalyKind, CopyPlace, FileName, SilentPart};
use archive_replicas::ListedCopies;
use archive_rpc::{CallError, CallErrorKind};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::SendTimeoutError;
use tokio::task::spawn_blocking;

use super::{CheckSelection, Pass, WINDOW};
use crate::preserver::{expected_entry, is_compared};

/// The number of files on silent nodes and volumes that are filed as unverified. The others are counted, and the gap
/// names their place.
const MOST_UNVERIFIED: u64 = 1000;

/// The time for which the comparison waits for its findings to be looked at: each look has limits of its own, and is
/// far shorter.
const SETTLED: Duration = Duration::from_hours(1);

/// An item of the listing, or the error that ended it.
type ListedItem = Result<ListingItem, String>;

impl Pass<'_> {
    /// Compares every selected name. Returns `false` if the replica could not be listed completely.
    pub(super) async fn compare_all(&self) -> Result<bool, CallError> {
        let opened = match self.open().await {
            Ok(opened) => opened,
            Err(error) => {
                self.gap(None, error.reason);
                return Ok(false);
            }
        };
        let (items, listing) = mpsc::channel(WINDOW);
        let (findings, found) = mpsc::channel(WINDOW);
        let unexpected = findings.clone();
        let side = ExpectedFiles {
            admin: self.own.archive.admin.clone(),
            selection: self.scope.selection.clone(),
            replica: self.replica.clone(),
            compared: Arc::clone(&self.compared),
            unfilled: Arc::default(),
            now: self.own.archive.standing.current_snapshot(),
        };
        let unfilled = Arc::clone(&side.unfilled);
        let comparing = async {
            let done = spawn_blocking(move || compare(&side, listing, &findings)).await;
            done.map_err(|error| CallErrorKind::Internal.to_error(error.to_string()))?
        };
        let sending = async {
            self.send_listing(opened, items, unexpected).await;
            Ok(())
        };
        let ((), report, ()) = tokio::try_join!(sending, comparing, self.settle(found))?;
        self.tally().withdrawn = report.withdrawn;
        self.tally().not_stored = unfilled.load(Ordering::Relaxed);
        for part in report.silent_parts() {
            let reason = "the replica could not be asked, or not completely".to_owned();
            self.gap(Some(part.clone()), reason);
        }
        for cut in &report.cuts {
            self.gap(None, cut.reason.clone());
        }
        Ok(report.cuts.is_empty())
    }

    /// Finds the silent nodes, and begins the listing. A replica that cannot be asked at all is one gap, not one for
    /// each file.
    async fn open(&self) -> Result<OpenListing, CallError> {
        let calls = &self.own.archive.calls;
        let asking = calls.replicas.nodes_in_service(&self.replica);
        let nodes = calls.answered_call(asking).await?;
        let mut offline = Vec::new();
        for node in nodes {
            if !node.alive {
                let part = SilentPart {
                    node: node.node,
                    volume: None,
                };
                self.gap(Some(part.clone()), "the node is silent".to_owned());
                offline.push(part);
                continue;
            }
            for volume in node.volumes {
                let Some(why) = volume.offline_reason() else {
                    continue;
                };
                let why = format!("offline: {why}");
                let part = SilentPart {
                    node: node.node.clone(),
                    volume: volume.volume,
                };
                self.gap(Some(part.clone()), why);
                offline.push(part);
            }
        }
        let pages = calls
            .answered_call(calls.replicas.list_copies(&self.replica))
            .await?;
        Ok(OpenListing { offline, pages })
    }

    /// Sends the listing to the comparison. Silent nodes are sent first, so that their files are not called missing.
    async fn send_listing(
        &self,
        opened: OpenListing,
        items: mpsc::Sender<ListedItem>,
        unexpected: mpsc::Sender<Finding>,
    ) {
        if let Err(error) = self.try_send_listing(opened, &items, &unexpected).await {
            // If the receiver is gone, the comparison has ended and says why.
            _ = items.send(Err(error.reason)).await;
        }
    }

    async fn try_send_listing(
        &self,
        opened: OpenListing,
        items: &mpsc::Sender<ListedItem>,
        unexpected: &mpsc::Sender<Finding>,
    ) -> Result<(), CallError> {
        let OpenListing { offline, mut pages } = opened;
        let gone = |_gone| CallErrorKind::Unavailable.to_error("the comparison has ended");
        for part in offline.clone() {
            items
                .send(Ok(ListingItem::Silent(part)))
                .await
                .map_err(gone)?;
        }
        loop {
            let page = self.own.archive.calls.answered_call(pages.next()).await?;
            for copy in page.items {
                let is_offline = offline.iter().any(|part| {
                    let volume = part.volume.as_ref();
                    part.node == copy.place.node && volume.is_none_or(|id| *id == copy.place.volume)
                });
                if is_offline || !self.scope.selection.has(&copy.name) {
                    continue;
                }
                if copy.is_unexpected() {
                    let finding = Finding::Anomaly {
                        file: copy.name,
                        kind: AnomalyKind::Unexpected,
                    };
                    let ended =
                        |_gone| CallErrorKind::Unavailable.to_error("the comparison has ended");
                    unexpected.send(finding).await.map_err(ended)?;
                } else if is_compared(&copy) {
                    items
                        .send(Ok(ListingItem::Entry(copy)))
                        .await
                        .map_err(gone)?;
                }
            }
            let Some(end) = page.end else {
                continue;
            };
            let mut unnamed = None;
            for gap in end {
                let Some(part) = gap.silent_part() else {
                    unnamed.get_or_insert(gap.reason);
                    continue;
                };
                self.gap(Some(part.clone()), gap.reason);
                items
                    .send(Ok(ListingItem::Silent(part)))
                    .await
                    .map_err(gone)?;
            }
            if let Some(reason) = unnamed {
                return Err(CallErrorKind::Unavailable.to_error(reason));
            }
            return items.send(Ok(ListingItem::End)).await.map_err(gone);
        }
    }

    /// Looks a second time at every suspected name.
    async fn settle(&self, mut findings: mpsc::Receiver<Finding>) -> Result<(), CallError> {
        let mut last: Option<FileName> = None;
        while let Some(finding) = findings.recv().await {
            match finding {
                Finding::Anomaly {
                    file,
                    kind: kind @ AnomalyKind::Unverified { .. },
                } => self.unverified(&file, kind).await?,
                Finding::Anomaly { file, .. } | Finding::Moved { file, .. } => {
                    if last.as_ref() != Some(&file) {
                        drop(self.look(&file).await?);
                        last = Some(file);
                    }
                }
            }
        }
        Ok(())
    }

    /// Files a name that nobody could look at, without a second look; beyond [`MOST_UNVERIFIED`] such names are only
    /// counted.
    async fn unverified(&self, name: &FileName, kind: AnomalyKind) -> Result<(), CallError> {
        let record = self.own.file_record(name).await?;
        let content = record.as_ref().and_then(|record| record.content.as_ref());
        let AnomalyKind::Unverified { node, volume } = &kind else {
            return Ok(());
        };
        let is_filed = {
            let mut tally = self.tally();
            let filed = tally
                .anomalies
                .get(&AnomalyClass::Unverified)
                .copied()
                .unwrap_or_default();
            if filed >= MOST_UNVERIFIED {
                tally.unverified += 1;
                tally.anomalies.insert(AnomalyClass::Unverified, filed + 1);
            }
            filed < MOST_UNVERIFIED
        };
        if !is_filed {
            return Ok(());
        }
        let place = volume.as_ref().map(|volume| CopyPlace {
            node: node.clone(),
            volume: volume.clone(),
        });
        let look = Look {
            quality: LookQuality::Nothing,
            by: self.scope.look_context.finder,
            is_second: false,
            size: content.map_or(0, |content| content.size),
            place,
            found: vec![kind],
        };
        let filing = self
            .own
            .file_look(&self.replica, name, look, &self.scope.look_context);
        let found: LookResult = filing.await?;
        self.tell(found).await
    }
}

/// The listing of a replica that answers.
struct OpenListing {
    /// Nodes, and volumes of them, that cannot be read.
    offline: Vec<SilentPart>,
    pages: ListedCopies,
}

/// The files that the admin data expect in the replica.
struct ExpectedFiles {
    admin: Admin,
    selection: CheckSelection,
    replica: archive_model::ReplicaId,
    compared: Arc<AtomicU64>,
    /// The files that the replica must have and was never given.
    unfilled: Arc<AtomicU64>,
    now: Arc<StandingSnapshot>,
}

impl ExpectedFiles {
    fn entry(&self, record: &FileRecord) -> Option<AdminEntry> {
        let entry = expected_entry(record, &self.replica);
        let mut unfilled = self.now.unfilled_replicas(record);
        if entry.is_none() && unfilled.any(|(id, _)| *id == self.replica) {
            self.unfilled.fetch_add(1, Ordering::Relaxed);
        }
        entry
    }
}

/// Compares the admin data with a listing until both sides end, and returns the report. Ends early if nobody receives
/// the findings.
fn compare(
    side: &ExpectedFiles,
    mut listing: mpsc::Receiver<ListedItem>,
    findings: &mpsc::Sender<Finding>,
) -> Result<CheckReport, CallError> {
    let rows = side.admin.list_files(None);
    let rows = rows.map_err(|error| CallErrorKind::Storage.to_error(error.to_string()))?;
    let entries = rows.filter_map(|row| {
        let entry: Result<AdminEntry, String> = match row {
            Err(error) => Err(error.to_string()),
            Ok(row) if !side.selection.has(&row.record.name) => return None,
            Ok(row) => Ok(side.entry(&row.record)?),
        };
        side.compared.fetch_add(1, Ordering::Relaxed);
        Some(entry)
    });
    let runtime = Handle::current();
    let mut check = ReplicaCheck::new(entries, std::iter::from_fn(move || listing.blocking_recv()));
    for finding in &mut check {
        match runtime.block_on(findings.send_timeout(finding, SETTLED)) {
            Ok(()) => {}
            Err(SendTimeoutError::Closed(_)) => break,
            Err(SendTimeoutError::Timeout(_)) => {
                return Err(CallErrorKind::TimedOut.to_error(format!(
                    "no finding was looked at for {SETTLED:?}; check again"
                )));
            }
        }
    }
    Ok(check.report().clone())
}
