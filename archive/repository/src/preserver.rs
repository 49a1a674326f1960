//! The common ground of checks, repairs and automatic repairs: looking at one copy, and filing the result.
//!
//! Owns the step from "a listing seems to lack it" to "it is missing": before anything is filed, the admin data and
//! every node of the replica are asked a second time about that one name. Silence of a node, a volume or a monitor
//! never makes a file missing.

mod look;
mod one_name;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
pub(crate) mod tests;

use std::sync::Arc;

use archive_decisions::repair::policy::RepairPolicy;
use archive_decisions::store::FileRecord;
use archive_ledger::anomalies::{
    AnomalyRecord, AnomalyRow, Filing, Look, LookQuality, LookResult, is_damage, needs_repair,
};
use archive_model::{
    CopySelector, FileContent, FileCopy, FileName, Finder, Groups, NodeId, ReplicaId,
};
use archive_rpc::CallError;
use archive_stores::limits;

use crate::archive::Archive;
use crate::claims::{NameAct, NameClaims};
use crate::metrics::Instruments;
use crate::tables::with_tables;

use one_name::damage_kinds;
pub(crate) use one_name::{expected_entry, is_compared};

/// The state that looking, checking and repairing share; cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Preserver {
    pub(crate) archive: Archive,
    pub(crate) instruments: Instruments,
    pub(crate) policy: Arc<RepairPolicy>,
    /// The name under which the repository acts by itself: `repository/<archive>`.
    pub(crate) who: Arc<str>,
    /// The files of which a copy is read again because it showed damage.
    pub(crate) suspected: NameClaims,
}

/// The person or part that looks, and the reason.
#[derive(Clone, Debug)]
pub(crate) struct LookContext {
    /// The person or part, as `role/name`.
    pub(crate) who: Arc<str>,
    pub(crate) finder: Finder,
    /// Whether an anomaly that is found again counts as confirmed.
    pub(crate) is_second: bool,
}

impl Preserver {
    /// Has a copy read again, whole, past the cache; `progress` receives the number of bytes that were read so far.
    /// While another caller reads or mends the copy, tries again for a while.
    pub(crate) async fn verify_file(
        &self,
        selector: CopySelector<'_>,
        name: &FileName,
        size: u64,
        mut progress: impl FnMut(u64) + Send,
    ) -> Result<FileCopy, CallError> {
        let calls = &self.archive.calls;
        let until = calls.busy_until();
        loop {
            let limit = limits::read_limit(size);
            match calls
                .verify_copy(selector, name, limit, &mut progress)
                .await
            {
                Ok(verified) => return Ok(verified.copy),
                Err(error) => calls.while_busy(until, error).await?,
            }
        }
    }

    /// Has a copy read again, whole, and files the outcome. Returns the copy as it was read, and what was filed; the
    /// inner error is that of the node, which did not read it: then nothing is filed.
    pub(crate) async fn verify_and_file(
        &self,
        selector: CopySelector<'_>,
        name: &FileName,
        size: u64,
        look_context: &LookContext,
        progress: impl FnMut(u64) + Send,
    ) -> Result<Result<(FileCopy, LookResult), CallError>, CallError> {
        let copy = match self.verify_file(selector, name, size, progress).await {
            Ok(copy) => copy,
            Err(error) => return Ok(Err(error)),
        };
        let filing = Box::pin(self.file_verified(selector.replica, name, &copy, look_context));
        let found = filing.await?;
        Ok(Ok((copy, found)))
    }

    /// Has a copy on which an act relies read again, whole. Returns whether it is present with this content; if it is
    /// not, files that.
    pub(crate) async fn verify_or_file(
        &self,
        selector: CopySelector<'_>,
        name: &FileName,
        FileContent { root, size }: FileContent,
        look_context: &LookContext,
    ) -> Result<bool, CallError> {
        let copy = self.verify_file(selector, name, size, |_| {}).await?;
        if copy.is_present() && copy.root == Some(root) {
            return Ok(true);
        }
        let filing = Box::pin(self.file_verified(selector.replica, name, &copy, look_context));
        filing.await.map(|_| false)
    }

    /// Files the result of a second read of a copy.
    pub(crate) async fn file_verified(
        &self,
        replica: &ReplicaId,
        name: &FileName,
        copy: &FileCopy,
        look_context: &LookContext,
    ) -> Result<LookResult, CallError> {
        let record = self.file_record(name).await?;
        let content = record.as_ref().and_then(|record| record.content.as_ref());
        let is_admitted = content.is_some_and(|content| Some(content.root) == copy.root);
        let of = record
            .as_ref()
            .and_then(|record| record.replicas.get(replica));
        let is_withdrawn = of.is_some_and(|copy| copy.state.is_withdrawn());
        if !is_admitted || is_withdrawn || !copy.is_readable() {
            // Other content, no admission, withdrawn, or gone again: a listing tells which.
            return Ok(Box::pin(self.look_and_file(replica, name, look_context))
                .await?
                .1);
        }
        let size = content.map_or(copy.size, |content| content.size);
        let look = Look {
            found: damage_kinds(copy, size),
            quality: LookQuality::Bytes,
            by: look_context.finder,
            is_second: look_context.is_second,
            size,
            place: Some(copy.place.clone()),
        };
        let good = Groups::all(size).difference(&copy.damaged_groups(size));
        let found = self.file_look(replica, name, look, look_context).await?;
        let anomalies = Arc::clone(&self.archive.anomalies);
        let file = name.clone();
        let who = Arc::clone(&look_context.who);
        with_tables(move || anomalies.found_again(&file, &good, &who)).await?;
        let elsewhere = self.filed_damage(replica, name).await?;
        let is_here = |filed: &AnomalyRecord| filed.is_at(&copy.place);
        if !elsewhere.iter().all(is_here) {
            // The donor's copy may be gone: a listing tells.
            drop(Box::pin(self.look_and_file(replica, name, look_context)).await?);
        }
        self.with_losses(name, found, look_context).await
    }

    /// Returns the filed damage of the copies of a file in a replica.
    pub(crate) async fn filed_damage(
        &self,
        replica: &ReplicaId,
        name: &FileName,
    ) -> Result<Vec<AnomalyRecord>, CallError> {
        let anomalies = Arc::clone(&self.archive.anomalies);
        let file = name.clone();
        let rows = with_tables(move || anomalies.rows_of(&file))
            .await?
            .into_iter();
        let is_of_replica =
            |row: &AnomalyRow| row.replica == *replica && is_damage(&row.filed.kind);
        Ok(rows.filter(is_of_replica).map(|row| row.filed).collect())
    }

    /// Adds the bytes of a file that are lost, after this finding.
    pub(crate) async fn with_losses(
        &self,
        name: &FileName,
        mut found: LookResult,
        look_context: &LookContext,
    ) -> Result<LookResult, CallError> {
        if found.open.iter().any(|row| needs_repair(&row.filed.kind)) {
            let filing = Box::pin(self.file_losses(name, look_context));
            found.open.extend(filing.await?);
        }
        Ok(found)
    }

    /// Files the result of a look.
    pub(crate) async fn file_look(
        &self,
        replica: &ReplicaId,
        name: &FileName,
        look: Look,
        look_context: &LookContext,
    ) -> Result<LookResult, CallError> {
        let who = &look_context.who;
        self.archive.file_look(replica, name, look, who).await
    }

    /// Files the result of a look, if `is_so` holds of the file's record and its anomalies at that moment. Returns
    /// `None` if the file has changed: look again.
    pub(crate) async fn file_while(
        &self,
        replica: &ReplicaId,
        name: &FileName,
        look: Look,
        look_context: &LookContext,
        is_so: impl FnOnce(Option<&FileRecord>, &[AnomalyRow]) -> bool + Send + 'static,
    ) -> Result<Option<LookResult>, CallError> {
        let anomalies = Arc::clone(&self.archive.anomalies);
        let who = Arc::clone(&look_context.who);
        let replica = replica.clone();
        let name = name.clone();
        with_tables(move || {
            let filing = Filing {
                file: &name,
                replica: &replica,
                who: &who,
            };
            anomalies.look_while(filing, &look, is_so)
        })
        .await
    }

    /// Returns the anomalies of a file.
    pub(crate) async fn filed_anomalies(
        &self,
        name: &FileName,
    ) -> Result<Vec<AnomalyRow>, CallError> {
        let anomalies = Arc::clone(&self.archive.anomalies);
        let name = name.clone();
        with_tables(move || anomalies.rows_of(&name)).await
    }

    /// Returns the current record of a file.
    pub(crate) async fn file_record(
        &self,
        name: &FileName,
    ) -> Result<Option<FileRecord>, CallError> {
        let row = self.archive.admin_row(name).await?;
        Ok(row.map(|row| row.record))
    }

    /// Has a copy read whole, after a read of it showed damage, and files the result. Returns at once.
    pub(crate) fn suspect_copy(&self, name: &FileName, replica: &ReplicaId, node: Option<&NodeId>) {
        let Some(node) = node.cloned() else {
            return;
        };
        let own = self.clone();
        let name = name.clone();
        let replica = replica.clone();
        let look_context = LookContext {
            who: Arc::clone(&self.who),
            finder: Finder::Read,
            is_second: false,
        };
        // One read at a time for each name: many readers meet the same damage.
        let Ok(claim) = self.suspected.claim_name(&name, NameAct::Look) else {
            return;
        };
        self.archive.tasks.spawn_once("suspect", async move {
            let _claim = claim;
            let selector = CopySelector {
                replica: &replica,
                node: &node,
                volume: None,
            };
            let reading = own.verify_and_file(selector, &name, 0, &look_context, |_| {});
            if let Err(error) | Ok(Err(error)) = reading.await {
                tracing::warn!(file = %name, %replica, %node, %error, "cannot look at a copy that showed damage; the next scrub or check will");
            }
        });
    }
}
