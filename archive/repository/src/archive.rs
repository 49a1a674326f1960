//! The handles that all actors of the repository share, and what every one of them does with these.
//!
//! Owns that there is one way to each: an actor holds the [`Archive`], and beside it only what no other one needs.

use std::sync::Arc;

use archive_daemon::{Chance, Tasks};
use archive_ledger::admin::{Admin, AdminRow, AuditLine};
use archive_ledger::anomalies::{Anomalies, Filing, Look, LookResult};
use archive_ledger::standing::Standing;
use archive_model::{FileName, ReplicaId};
use archive_rpc::CallError;
use archive_stores::assemble::Assembler;
use archive_stores::calls::ReplicaCalls;
use archive_stores::mail::Mail;
use jiff::Timestamp;

use crate::claims::{NameAct, NameClaim, NameClaims};
use crate::settings::ReplicaSettings;
use crate::tables::with_tables;

/// The shared handles; cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Archive {
    /// The admin data of the files, with the audit trail.
    pub(crate) admin: Admin,
    pub(crate) anomalies: Arc<Anomalies>,
    /// The parts out of service, which are neither asked nor missed.
    pub(crate) standing: Arc<Standing>,
    /// The settings of the replicas.
    pub(crate) specs: Arc<Vec<ReplicaSettings>>,
    /// The calls to the replicas, with the clock and the last answers of the monitors.
    pub(crate) calls: ReplicaCalls,
    /// The reader of files out of all replicas.
    pub(crate) assembler: Assembler,
    /// The messages to the coordinator.
    pub(crate) mail: Mail,
    /// Who acts on the copies of which file.
    pub(crate) claims: NameClaims,
    pub(crate) tasks: Tasks,
    pub(crate) chance: Chance,
}

impl Archive {
    /// Returns the time of day.
    pub(crate) fn now(&self) -> Timestamp {
        self.calls.clock.now()
    }

    /// Returns the replicas that are not retired.
    pub(crate) fn in_service(&self) -> Vec<ReplicaSettings> {
        let now = self.standing.current_snapshot();
        let specs = self.specs.iter().filter(|spec| !now.is_retired(&spec.id));
        specs.cloned().collect()
    }

    /// Reads the current row of a file.
    pub(crate) async fn admin_row(&self, name: &FileName) -> Result<Option<AdminRow>, CallError> {
        let admin = self.admin.clone();
        let name = name.clone();
        with_tables(move || admin.file(&name)).await
    }

    /// Claims a file, and waits for that while another one acts on it.
    ///
    /// # Errors
    /// `Busy` if that takes too long.
    pub(crate) async fn claim_in_turn(
        &self,
        name: &FileName,
        act: NameAct,
    ) -> Result<NameClaim, CallError> {
        let until = self.calls.busy_until();
        loop {
            match self.claims.claim_name(name, act) {
                Ok(claim) => return Ok(claim),
                Err(busy) => self.calls.while_busy(until, busy).await?,
            }
        }
    }

    /// Adds a line to the audit trail.
    pub(crate) async fn note_line(
        &self,
        who: String,
        file: Option<FileName>,
        what: String,
    ) -> Result<(), CallError> {
        let admin = self.admin.clone();
        let line = self.audit_line(who, file, what);
        with_tables(move || admin.note_line(line)).await
    }

    /// Returns a line for the audit trail, to be written together with its change.
    pub(crate) fn audit_line(
        &self,
        who: String,
        file: Option<FileName>,
        what: String,
    ) -> AuditLine {
        AuditLine {
            at: self.now(),
            who,
            file,
            what,
        }
    }

    /// Files the result of a look at a copy, in the name of `who`.
    pub(crate) async fn file_look(
        &self,
        replica: &ReplicaId,
        name: &FileName,
        look: Look,
        who: &str,
    ) -> Result<LookResult, CallError> {
        let anomalies = Arc::clone(&self.anomalies);
        let who = who.to_owned();
        let replica = replica.clone();
        let name = name.clone();
        with_tables(move || {
            let filing = Filing {
                file: &name,
                replica: &replica,
                who: &who,
            };
            anomalies.file_look(filing, &look)
        })
        .await
    }
}
