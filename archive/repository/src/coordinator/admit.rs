//! A file that replicas have with a signed admission, and that the admin data do not know: taken in as it is.
//!
//! After admin data were restored from an older export, what was stored since lies in every replica, signed, and nobody
//! knows it. Taking it in says nothing new: the signature has said it.

use jiff::Timestamp;
use tokio::sync::oneshot;

use super::act::Decided;
use super::{Active, Coordinator, Letter, Mail, Step};
use crate::admin::{AdminError, AdminRow, AuditLine};

impl Mail {
    /// Takes a file in, and waits until that is remembered. `false`: somebody has that name by now; none: the repository
    /// is stopping.
    pub(crate) async fn admit(&self, row: AdminRow, who: String) -> Option<bool> {
        let (done, is_done) = oneshot::channel();
        let row = Box::new(row);
        self.0.send(Letter::Admit { row, who, done }).await.ok()?;
        is_done.await.ok()
    }
}

impl Coordinator {
    /// Remembers the file, if nobody has its name, and goes on with it where a replica lacks it.
    pub(super) fn admit(
        &mut self,
        row: AdminRow,
        who: String,
        now: Timestamp,
        all: &mut Vec<Decided>,
    ) -> Step<bool> {
        let name = row.record.name.clone();
        let known = self.admin.file(&name).map_err(AdminError::from)?;
        if known.is_some() || self.files.contains_key(&name) {
            return Ok(false);
        }
        let copies = row.record.replicas.iter();
        let copies = copies.map(|(id, copy)| format!("{id}: {}", copy.state));
        let mut changes = self.admin.change();
        self.admin
            .put(&mut changes, &row)
            .map_err(AdminError::from)?;
        changes.note(AuditLine {
            at: now,
            who,
            file: Some(name.clone()),
            what: format!(
                "taken in with the admission of {}: {}",
                row.depositor,
                copies.collect::<Vec<_>>().join("; ")
            ),
        });
        self.admin.commit(changes).map_err(AdminError::from)?;
        if !row.record.is_final() {
            let (active, first) = Active::restore(row, now, &self.limits);
            self.files.insert(name.clone(), active);
            all.push(Decided::by_itself(name, first));
        }
        Ok(true)
    }
}
