//! Requests as they are remembered: each step and its line in the audit trail, in one synced batch.
//!
//! # Errors
//!
//! All functions fail with [`PersonRequestError`] if the step is not allowed or there is no such request, or if the database
//! fails.

use std::sync::Arc;

use archive_db::{DbError, Table, TableValue};
use jiff::Timestamp;
use parking_lot::Mutex;

use super::{Person, PersonRequest, RequestRefusal, RequestStatus, RequestedAct};
use crate::admin::schema::{LAST_REQUEST, NUMBERS};
use crate::admin::{Admin, AuditLine};

impl TableValue for PersonRequest {
    const VERSION: u8 = 4;
}

/// The requests of the archive.
#[derive(Clone, Debug)]
pub struct Requests {
    admin: Admin,
    table: Table<u64, PersonRequest>,
    numbers: Table<String, u64>,
    /// The lock that is held from the reading of a request until its next state is written.
    changing: Arc<Mutex<()>>,
}

/// The reason why a step was not done.
#[derive(Debug, thiserror::Error)]
pub enum PersonRequestError {
    /// The caller may not, or not now.
    #[error(transparent)]
    NotAllowed(#[from] RequestRefusal),
    /// No request has this id.
    #[error("there is no request `{0}`; list them")]
    Unknown(String),
    /// The admin data.
    #[error(transparent)]
    Admin(#[from] DbError),
}

impl Requests {
    /// Opens the table of the requests.
    pub fn new(admin: Admin) -> Result<Self, DbError> {
        Ok(Self {
            table: admin.open_table("requests")?,
            numbers: admin.open_table(NUMBERS)?,
            admin,
            changing: Arc::default(),
        })
    }

    /// Creates a request, and writes it with a line of the trail.
    pub fn ask_request(
        &self,
        act: RequestedAct,
        reason: &str,
        person: &Person,
        now: Timestamp,
    ) -> Result<PersonRequest, PersonRequestError> {
        let _changing = self.changing.lock();
        let last = self.table.last()?.map_or(0, |(number, _)| number);
        // A restored archive does not know all of its earlier requests.
        let before = self.numbers.get(&LAST_REQUEST.to_owned())?;
        let last = last.max(before.unwrap_or_default());
        let request = PersonRequest::ask_request(last.saturating_add(1), act, reason, person, now)?;
        self.write(&request, &request.asked_by, "asked", now)?;
        Ok(request)
    }

    /// Approves a request in the name of a second person. An approved request must be done: see [`Requests::due_requests`].
    pub fn approve_request(
        &self,
        id: &str,
        person: &Person,
        now: Timestamp,
    ) -> Result<PersonRequest, PersonRequestError> {
        self.change(id, now, |request| request.approve_request(person, now))
    }

    /// Withdraws a request; only the person who asked may.
    pub fn withdraw_request(
        &self,
        id: &str,
        person: &Person,
        now: Timestamp,
    ) -> Result<PersonRequest, PersonRequestError> {
        self.change(id, now, |request| request.withdraw_request(person, now))
    }

    /// Ends an approved request with the result of its act.
    pub fn end_request(
        &self,
        number: u64,
        result: Result<String, String>,
        now: Timestamp,
    ) -> Result<PersonRequest, PersonRequestError> {
        self.change(&format!("r{number}"), now, |request| {
            request.end_request(result, now);
            Ok(())
        })
    }

    /// Returns every request, oldest first. Requests that nobody approved in time are expired before.
    pub fn all_requests(&self, now: Timestamp) -> Result<Vec<PersonRequest>, PersonRequestError> {
        let _changing = self.changing.lock();
        let mut all = Vec::new();
        for row in self.table.scan()? {
            let (_, mut request) = row?;
            if request.tick_request(now) {
                self.write(&request, "repository", "expired", now)?;
            }
            all.push(request);
        }
        Ok(all)
    }

    /// Returns the requests that are approved and not done yet, because a restart came between.
    pub fn due_requests(&self) -> Result<Vec<PersonRequest>, DbError> {
        let rows = self
            .table
            .scan()?
            .map(|row| row.map(|(_, request)| request));
        rows.filter(|row| row.as_ref().map_or(true, PersonRequest::is_due))
            .collect()
    }

    fn change(
        &self,
        id: &str,
        now: Timestamp,
        step: impl FnOnce(&mut PersonRequest) -> Result<(), RequestRefusal>,
    ) -> Result<PersonRequest, PersonRequestError> {
        let unknown = || PersonRequestError::Unknown(id.to_owned());
        let number = id.strip_prefix('r').and_then(|digits| digits.parse().ok());
        let _changing = self.changing.lock();
        let found = self.table.get(&number.ok_or_else(unknown)?)?;
        let before = found.ok_or_else(unknown)?;
        let mut request = before.clone();
        let result = step(&mut request);
        if request.state != before.state {
            let (who, what) = match &request.state {
                RequestStatus::Approved { by, .. } => (by.as_str(), "approved"),
                RequestStatus::Withdrawn { by, .. } => (by.as_str(), "withdrawn"),
                RequestStatus::Ended { by, done: true, .. } => (by.as_str(), "done"),
                RequestStatus::Ended { by, .. } => (by.as_str(), "failed"),
                RequestStatus::Open | RequestStatus::Expired { .. } => ("repository", "expired"),
            };
            self.write(&request, who, what, now)?;
        }
        Ok(result.map(|()| request)?)
    }

    fn write(
        &self,
        request: &PersonRequest,
        who: &str,
        step: &str,
        now: Timestamp,
    ) -> Result<(), DbError> {
        let outcome = match &request.state {
            RequestStatus::Ended { outcome, .. } => format!(" ({outcome})"),
            RequestStatus::Open
            | RequestStatus::Approved { .. }
            | RequestStatus::Withdrawn { .. }
            | RequestStatus::Expired { .. } => String::new(),
        };
        let what = format!(
            "{} {step}: {}: {}{outcome}",
            request.id(),
            request.act,
            request.reason
        );
        let mut changes = self.admin.begin_changes();
        changes.batch().put(&self.table, &request.number, request)?;
        changes.note_line(AuditLine {
            at: now,
            who: who.to_owned(),
            file: request.act.file().cloned(),
            what,
        });
        self.admin.commit_changes(changes)
    }
}

#[cfg(test)]
mod tests {
    use archive_model::{Act, Role, VolumeId, VolumeSelector};
    use jiff::SignedDuration;

    use super::*;

    /// Fails if a step is without its line in the trail or a line without its step, a restart forgets an approval, or a
    /// number is used twice.
    #[test]
    fn every_step_survives_restart_with_its_line() {
        let directory = tempfile::tempdir().unwrap();
        let open = || Admin::init(directory.path()).unwrap();
        let anna = Person::new("anna", &[Role::Operator]);
        let olga = Person::new("olga", &[Role::Officer]);
        let now = Timestamp::UNIX_EPOCH;
        let act = RequestedAct::from(Act::RetireVolume {
            volume: VolumeSelector {
                replica: None,
                node: Some("n".parse().unwrap()),
                volume: VolumeId::new("v").unwrap(),
            },
            last_copies: false,
        });
        let requests = Requests::new(open()).unwrap();
        for _ in 0..4 {
            requests
                .ask_request(act.clone(), "dead", &anna, now)
                .unwrap();
        }
        assert!(requests.approve_request("r1", &anna, now).is_err());
        requests.approve_request("r1", &olga, now).unwrap();
        requests.withdraw_request("r2", &anna, now).unwrap();
        requests.approve_request("r3", &olga, now).unwrap();
        drop(requests);

        let admin = open();
        let requests = Requests::new(admin.clone()).unwrap();
        let due: Vec<_> = requests
            .due_requests()
            .unwrap()
            .iter()
            .map(PersonRequest::id)
            .collect();
        assert_eq!(due, ["r1", "r3"]);
        requests.end_request(1, Ok("done".to_owned()), now).unwrap();
        requests
            .end_request(3, Err("gone".to_owned()), now)
            .unwrap();
        requests
            .end_request(3, Ok("again".to_owned()), now)
            .unwrap();
        let later = now.checked_add(SignedDuration::from_hours(170)).unwrap();
        let states: Vec<_> = requests.all_requests(later).unwrap();
        let states: Vec<_> = states
            .iter()
            .map(|request| request.state.stage().as_str())
            .collect();
        assert_eq!(states, ["done", "withdrawn", "failed", "expired"]);
        assert!(requests.due_requests().unwrap().is_empty());
        for unknown in [
            "",
            "r",
            "r0",
            "r5",
            "5",
            "rx",
            "r-1",
            "r99999999999999999999",
        ] {
            let error = requests.approve_request(unknown, &olga, now).unwrap_err();
            assert!(
                matches!(error, PersonRequestError::Unknown(_)),
                "{unknown}: {error}"
            );
        }
        let trail: Vec<_> = admin
            .audit_rows(0)
            .unwrap()
            .map(|row| row.unwrap().1.what)
            .collect();
        let asked = |n| format!("r{n} asked: retire volume v of node n: dead");
        let expected = [
            asked(1),
            asked(2),
            asked(3),
            asked(4),
            "r1 approved: retire volume v of node n: dead".to_owned(),
            "r2 withdrawn: retire volume v of node n: dead".to_owned(),
            "r3 approved: retire volume v of node n: dead".to_owned(),
            "r1 done: retire volume v of node n: dead (done)".to_owned(),
            "r3 failed: retire volume v of node n: dead (gone)".to_owned(),
            "r4 expired: retire volume v of node n: dead".to_owned(),
        ];
        assert_eq!(trail, expected);
        assert_eq!(
            requests
                .ask_request(act, "dead", &anna, now)
                .unwrap()
                .number,
            5
        );
    }
}
