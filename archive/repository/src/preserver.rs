//! What checks, repairs and the automatic of both work with: looking at one copy, and filing what was seen.
//!
//! Owns the step from "a listing seems to lack it" to "it is missing": before anything is filed, the admin data and
//! every node of the replica are asked once more about that one name. Silence of a node, a volume or a monitor never
//! makes a file missing.

mod look;
mod one_name;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
pub(crate) mod tests;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use archive_daemon::{Chance, Clock, Tasks};
use archive_decisions::repair::policy::Policy;
use archive_decisions::store::FileRecord;
use archive_ledger::admin::Admin;
use archive_ledger::anomalies::{
    Anomalies, AnomalyRow, Filed, Filing, Look, LookQuality, LookResult, is_damage, needs_repair,
};
use archive_ledger::standing::View;
use archive_model::{FileCopy, FileName, Finder, Groups, NodeId, ReplicaId, VolumeId};
use archive_replicas::{Replicas, Verified};
use archive_rpc::{CallError, Kind};
use archive_stores::assemble::Assembler;
use archive_stores::limits;
use archive_stores::mail::Mail;

use crate::metrics::Instruments;
use crate::settings::ReplicaSettings;
use crate::tables::{file_look, file_row, with_tables};

use one_name::damage;
pub(crate) use one_name::{expected, is_compared};

/// The pause before a copy that somebody else works on is asked for again.
const BUSY: Duration = Duration::from_millis(500);

/// So many suspected copies are read at once; the others are left to the next scrub or check.
const MOST_SUSPECTS: usize = 16;

/// Everything that looking, checking and repairing needs; cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Preserver {
    pub(crate) admin: Admin,
    pub(crate) anomalies: Arc<Anomalies>,
    pub(crate) replicas: Arc<Replicas>,
    pub(crate) assembler: Assembler,
    pub(crate) specs: Arc<Vec<ReplicaSettings>>,
    /// What is out of service is neither asked nor missed.
    pub(crate) standing: View,
    pub(crate) mail: Mail,
    pub(crate) tasks: Tasks,
    pub(crate) clock: Clock,
    pub(crate) chance: Chance,
    pub(crate) instruments: Instruments,
    pub(crate) policy: Arc<Policy>,
    /// How long a part may be silent.
    pub(crate) stall: Duration,
    /// In whose name the repository acts by itself: `repository/<archive>`.
    pub(crate) own: Arc<str>,
    /// The files that are being repaired.
    pub(crate) repairing: Names,
    /// The files of which a copy is read again because it showed damage.
    pub(crate) suspected: Names,
}

/// In whose name something is looked at, and how it came to that.
#[derive(Clone, Debug)]
pub(crate) struct Errand {
    /// As `role/name`.
    pub(crate) who: Arc<str>,
    pub(crate) finder: Finder,
    /// Whether what is found again counts as confirmed.
    pub(crate) is_second: bool,
}

impl Preserver {
    /// The replicas that are not retired.
    pub(crate) fn in_service(&self) -> Vec<ReplicaSettings> {
        let now = self.standing.now();
        let specs = self.specs.iter().filter(|spec| !now.is_retired(&spec.id));
        specs.cloned().collect()
    }

    /// Has a copy read again, whole, past the cache; `told` hears how many bytes were read so far. A copy that somebody
    /// else reads or mends is asked for again for a while.
    pub(crate) async fn verify(
        &self,
        place: (&ReplicaId, &NodeId, Option<&VolumeId>),
        name: &FileName,
        size: u64,
        mut told: impl FnMut(u64) + Send,
    ) -> Result<FileCopy, CallError> {
        let until = self.clock.instant() + self.stall;
        loop {
            let verified = self.verify_once(place, name, size, &mut told).await;
            match verified {
                Err(error) if error.kind == Kind::Busy && self.clock.instant() < until => {
                    self.clock.sleep(BUSY).await;
                }
                other => return other,
            }
        }
    }

    async fn verify_once(
        &self,
        (replica, node, volume): (&ReplicaId, &NodeId, Option<&VolumeId>),
        name: &FileName,
        size: u64,
        told: &mut (impl FnMut(u64) + Send),
    ) -> Result<FileCopy, CallError> {
        let limit = limits::reading(size);
        let opening = self.replicas.verify(replica, node, name, volume);
        let opened = self.clock.timeout(self.stall, opening).await;
        let mut verifying = opened.map_err(|late| Kind::TimedOut.error(late.to_string()))??;
        loop {
            let said = self.clock.timeout(limit, verifying.next()).await;
            match said.map_err(|late| Kind::TimedOut.error(late.to_string()))?? {
                Verified::Progress(bytes) => told(bytes),
                Verified::Done(verified) => return Ok(verified.copy),
            }
        }
    }

    /// Files how a copy was found when it was read again.
    pub(crate) async fn file_verified(
        &self,
        replica: &ReplicaId,
        name: &FileName,
        copy: &FileCopy,
        errand: &Errand,
    ) -> Result<LookResult, CallError> {
        let record = self.record(name).await?;
        let content = record.as_ref().and_then(|record| record.content.as_ref());
        let is_admitted = content.is_some_and(|content| Some(content.root) == copy.root);
        let of = record
            .as_ref()
            .and_then(|record| record.replicas.get(replica));
        let is_withdrawn = of.is_some_and(|copy| copy.state.is_withdrawn());
        if !is_admitted || is_withdrawn || !copy.is_readable() {
            // Other content, no admission, taken out, or gone again: a listing says what it is.
            return Ok(Box::pin(self.look_and_file(replica, name, errand)).await?.1);
        }
        let size = content.map_or(copy.size, |content| content.size);
        let look = Look {
            found: damage(copy, size),
            quality: LookQuality::Bytes,
            by: errand.finder,
            is_second: errand.is_second,
            size,
            place: Some((copy.place.node.clone(), copy.place.volume.clone())),
        };
        let good = Groups::all(size).difference(&copy.damaged_groups(size));
        let found = self.file(replica, name, look, errand).await?;
        let (anomalies, file, who) = (
            Arc::clone(&self.anomalies),
            name.clone(),
            Arc::clone(&errand.who),
        );
        with_tables(move || anomalies.found_again(&file, &good, &who)).await?;
        let elsewhere = self.filed_damage(replica, name).await?;
        let is_here = |filed: &Filed| filed.is_at(&copy.place.node, &copy.place.volume);
        if !elsewhere.iter().all(is_here) {
            // That copy may have gone: a listing says so.
            drop(Box::pin(self.look_and_file(replica, name, errand)).await?);
        }
        self.with_losses(name, found, errand).await
    }

    /// The damage that is filed of the copies of a file in a replica.
    pub(crate) async fn filed_damage(
        &self,
        replica: &ReplicaId,
        name: &FileName,
    ) -> Result<Vec<Filed>, CallError> {
        let (anomalies, file) = (Arc::clone(&self.anomalies), name.clone());
        let rows = with_tables(move || anomalies.rows_of(&file))
            .await?
            .into_iter();
        let is_of_replica =
            |row: &AnomalyRow| row.replica == *replica && is_damage(&row.filed.kind);
        Ok(rows.filter(is_of_replica).map(|row| row.filed).collect())
    }

    /// Adds what is lost of a file, now that this was found of it.
    pub(crate) async fn with_losses(
        &self,
        name: &FileName,
        mut found: LookResult,
        errand: &Errand,
    ) -> Result<LookResult, CallError> {
        if found.open.iter().any(|row| needs_repair(&row.filed.kind)) {
            let filing = Box::pin(self.file_losses(name, errand));
            found.open.extend(filing.await?);
        }
        Ok(found)
    }

    /// Files a look as it stands.
    pub(crate) async fn file(
        &self,
        replica: &ReplicaId,
        name: &FileName,
        look: Look,
        errand: &Errand,
    ) -> Result<LookResult, CallError> {
        file_look(&self.anomalies, (replica, name), look, &errand.who).await
    }

    /// Files a look, if `is_so` of the file's record and of what is filed of the file while this is filed. `None`: it has
    /// changed since; look again.
    pub(crate) async fn file_while(
        &self,
        (replica, name): (&ReplicaId, &FileName),
        look: Look,
        errand: &Errand,
        is_so: impl FnOnce(Option<&FileRecord>, &[AnomalyRow]) -> bool + Send + 'static,
    ) -> Result<Option<LookResult>, CallError> {
        let (anomalies, who) = (Arc::clone(&self.anomalies), Arc::clone(&errand.who));
        let (replica, name) = (replica.clone(), name.clone());
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

    /// What is filed of a file.
    pub(crate) async fn filed(&self, name: &FileName) -> Result<Vec<AnomalyRow>, CallError> {
        let (anomalies, name) = (Arc::clone(&self.anomalies), name.clone());
        with_tables(move || anomalies.rows_of(&name)).await
    }

    /// The record of a file, as it is now.
    pub(crate) async fn record(&self, name: &FileName) -> Result<Option<FileRecord>, CallError> {
        let row = file_row(&self.admin, name).await?;
        Ok(row.map(|row| row.record))
    }

    /// A copy showed damage while it was read: it is read whole, and what is found is filed. Returns at once.
    pub(crate) fn suspect(&self, name: &FileName, replica: &ReplicaId, node: Option<&NodeId>) {
        let Some(node) = node.cloned() else {
            return;
        };
        let (own, name, replica) = (self.clone(), name.clone(), replica.clone());
        let errand = Errand {
            who: Arc::clone(&self.own),
            finder: Finder::Read,
            is_second: false,
        };
        // One at a time for each name: many readers meet the same damage.
        let Some(claim) = self.suspected.claim(&name, MOST_SUSPECTS) else {
            return;
        };
        self.tasks.spawn_once("suspect", async move {
            let _claim = claim;
            let place = (&replica, &node, None);
            let verified = own.verify(place, &name, 0, |_| {}).await;
            let filed = match verified {
                Ok(copy) => own.file_verified(&replica, &name, &copy, &errand).await,
                Err(error) => Err(error),
            };
            if let Err(error) = filed {
                tracing::warn!(file = %name, %replica, %node, %error, "a copy that showed damage cannot be looked at; the next scrub or check will");
            }
        });
    }
}

/// Names that somebody works on; cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names(Arc<Mutex<BTreeSet<FileName>>>);

impl Names {
    /// The right to work on a file; none while somebody else has it, or so many others are worked on.
    pub(crate) fn claim(&self, name: &FileName, most: usize) -> Option<Claimed> {
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_free = names.len() < most && names.insert(name.clone());
        is_free.then(|| Claimed {
            names: self.clone(),
            name: name.clone(),
        })
    }
}

/// The right to work on one file; given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Claimed {
    names: Names,
    name: FileName,
}

impl Drop for Claimed {
    fn drop(&mut self) {
        let mut names = self.names.0.lock().unwrap_or_else(PoisonError::into_inner);
        names.remove(&self.name);
    }
}
