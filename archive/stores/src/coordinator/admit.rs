//! A file that replicas have with a signed admission, and that the admin data do not know: recorded as it is.
//!
//! After admin data were restored from an older export, what was stored since lies in every replica, signed, and nobody
//! knows it. Taking it in says nothing new: the signature has said it.

use archive_ledger::admin::{AdminError, AuditLine};
use jiff::Timestamp;

use super::act::FileDecision;
use super::{Active, Coordinator, Step};
use crate::mail::Admittance;

impl Coordinator {
    /// Remembers the file, if nobody has its name, and has it copied into replicas that lack it.
    pub(super) fn admit_file(
        &mut self,
        Admittance { row, who, done }: Admittance,
        now: Timestamp,
        all: &mut Vec<FileDecision>,
    ) -> Step<()> {
        let row = *row;
        let name = row.record.name.clone();
        let known = self.parts.admin.file(&name).map_err(AdminError::from)?;
        if known.is_some() || self.files.contains_key(&name) {
            // The caller may have gone away.
            _ = done.send(false);
            return Ok(());
        }
        let copies = row.record.replicas.iter();
        let copies = copies.map(|(id, copy)| format!("{id}: {}", copy.state));
        let mut changes = self.parts.admin.begin_changes();
        self.parts
            .admin
            .put_row(&mut changes, &row)
            .map_err(AdminError::from)?;
        changes.note_line(AuditLine {
            at: now,
            who,
            file: Some(name.clone()),
            what: format!(
                "taken in with the admission of {}: {}",
                row.depositor,
                copies.collect::<Vec<_>>().join("; ")
            ),
        });
        self.parts
            .admin
            .commit_changes(changes)
            .map_err(AdminError::from)?;
        self.followers.tell_followers(&row.record);
        if !row.record.is_final() {
            let (active, first) = Active::restore(row, now, &self.parts.limits);
            self.files.insert(name.clone(), active);
            all.push(FileDecision::by_itself(name, first));
        }
        _ = done.send(true);
        Ok(())
    }
}
