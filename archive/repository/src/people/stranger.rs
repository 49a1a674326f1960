//! Unexpected files: a file that a replica has and the admin data do not know is added with its own admission, if a
//! trusted key signed it.
//!
//! Every replica is asked, so that contradicting admissions are noticed. The admissions are combined as in a restore
//! ([`AdmissionRule::combine_admissions`]).

use std::collections::BTreeSet;

use archive_model::{FileName, NodeId, ReplicaId};
use archive_proof::TrustFile;
use archive_rpc::{CallError, CallErrorKind};

use super::People;
use super::refusal::changed_meanwhile;
use archive_ledger::restore::combine::{AdmissionRule, NameVerdict, Sighting};

impl People {
    /// Adds a file to the admin data that replicas have with a valid admission.
    pub(crate) async fn adopt_unexpected(
        &self,
        name: &FileName,
        archive: &str,
        trust: &TrustFile,
        who: &str,
    ) -> Result<(), CallError> {
        let specs = self.archive.standing.in_service(&self.specs);
        let mut sightings = Vec::new();
        for spec in &specs {
            let copies = self.existing_copies(&spec.id, name).await?;
            let nodes: BTreeSet<&NodeId> = copies.iter().map(|copy| &copy.place.node).collect();
            for node in nodes {
                sightings.extend(self.sightings(&spec.id, node, name).await?);
            }
        }
        if sightings.is_empty() {
            let said = format!(
                "cannot adopt {name}: it is not in the archive, and no replica has a file of that name"
            );
            return Err(CallErrorKind::NotFound.to_error(said));
        }
        let rule = AdmissionRule {
            archive,
            trust,
            specs: &specs,
            now: self.archive.now(),
        };
        let row = match rule.combine_admissions(name, &sightings, &[]) {
            NameVerdict::File(row) => *row,
            NameVerdict::Contradicting(which) => {
                return Err(changed_meanwhile(format!(
                    "cannot adopt {name}: it was admitted with different contents: {which}; remove the wrong copies by their own checksums"
                )));
            }
            NameVerdict::Unsigned(why) => {
                return Err(changed_meanwhile(format!(
                    "cannot adopt {name}: no trusted key has signed its admission: {why}; remove it by its own checksum"
                )));
            }
        };
        match self.archive.mail.admit_row(row, who.to_owned()).await {
            Some(true) => Ok(()),
            Some(false) => Err(CallErrorKind::Busy
                .to_error(format!("{name} is being stored now; try again later"))),
            None => Err(CallErrorKind::Unavailable.to_error("the repository is stopping")),
        }
    }

    /// Reads the admissions of a name on one node.
    async fn sightings(
        &self,
        replica: &ReplicaId,
        node: &NodeId,
        name: &FileName,
    ) -> Result<Vec<Sighting>, CallError> {
        let calls = &self.archive.calls;
        let opening = calls.replicas.admissions_near(replica, node, name);
        let mut pages = calls.answered_call(opening).await?;
        let mut sightings = Vec::new();
        loop {
            let page = calls.answered_call(pages.next()).await?;
            let ended = || {
                CallErrorKind::Unavailable
                    .to_error(format!("the listing of node {node} ended early"))
            };
            let page = page.ok_or_else(ended)?;
            let mut is_past = page.end.is_some();
            // Problems of other names are ignored here.
            for (found, sighting) in page.items.into_iter().flatten() {
                is_past |= found > *name;
                if found == *name {
                    sightings.push(sighting);
                }
            }
            if is_past {
                return Ok(sightings);
            }
        }
    }
}
