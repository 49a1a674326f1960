//! Acts that destroy, and the second person that each of them needs: the roles that may ask and approve, and the time
//! limit.
//!
//! Owns the rule of destroying acts: a request is bound to its act and its reason, is approved only by another *name*
//! (another role of the same name is the same person), lives for seven days and is done once.
//!
//! Not promised: that the world is still as it was when somebody asked. The part that does the act compares, and
//! reports what came of it: a changed world makes it fail.
//!
//! # Errors
//!
//! A step fails with [`RequestRefusal`], which says who may do it, or what to do instead.

mod act;
pub mod table;
#[cfg(test)]
mod tests;

use archive_model::limits::LONGEST_REASON;
use archive_model::{ActKind, RequestState, Role, time_after};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

pub use act::{AcceptedAnomaly, ActSubject, PurgedItem, RequestedAct};

/// The time within which a request may be approved.
pub const LIFE: SignedDuration = SignedDuration::from_hours(7 * 24);

/// A request, from the time when it was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PersonRequest {
    /// The number of the request, which people write as `r12`.
    pub number: u64,
    /// The act that is asked for.
    pub act: RequestedAct,
    /// The reason of the request.
    pub reason: String,
    /// The person who asked, as `role/name`.
    pub asked_by: String,
    /// The time of the request.
    pub asked: Timestamp,
    /// The time until which the request may be approved.
    pub expires: Timestamp,
    /// The state of the request.
    pub state: RequestStatus,
}

/// The states of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RequestStatus {
    /// Nobody has approved the request yet.
    Open,
    /// The request is approved, and not done yet.
    Approved {
        /// The person who approved, as `role/name`.
        by: String,
        /// The time of the approval.
        at: Timestamp,
    },
    /// The request was approved, and its act was done or failed.
    Ended {
        /// The person who approved, as `role/name`.
        by: String,
        /// The time when the act ended.
        at: Timestamp,
        /// Whether the act was done.
        done: bool,
        /// The result of the act.
        outcome: String,
    },
    /// The request was taken back.
    Withdrawn {
        /// The person who took it back, as `role/name`.
        by: String,
        /// The time at which the request was taken back.
        at: Timestamp,
    },
    /// Nobody approved the request in time.
    Expired {
        /// The time at which the expiry was noticed.
        at: Timestamp,
    },
}

/// A caller: one name, and every role that it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Person {
    name: String,
    roles: Vec<Role>,
}

/// The reason why somebody may not do a step.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestRefusal {
    /// The caller is a part of the archive, not a person.
    #[error("this needs the certificate of a person")]
    Nobody,
    /// The person lacks a role.
    #[error("{doing} `{act}` needs a certificate with the role {}", words(.roles))]
    Role {
        /// The step.
        doing: &'static str,
        /// The act.
        act: ActKind,
        /// The roles that may do the step.
        roles: &'static [Role],
    },
    /// The reason is empty or too long.
    #[error("say why, in 1 to {LONGEST_REASON} characters of plain text")]
    Reason,
    /// The person who asked cannot approve as well.
    #[error("{0} asked for it; a second person must approve it")]
    SamePerson(String),
    /// Only the person who asked may withdraw the request.
    #[error("{0} asked for it; nobody else can withdraw it")]
    NotTheirs(String),
    /// The request is not open any more.
    #[error("the request is {0} and cannot be changed any more; ask again")]
    NotOpen(RequestState),
}

impl Person {
    /// Creates a person with a name and roles.
    pub fn new(name: &str, roles: &[Role]) -> Self {
        Self {
            name: name.to_owned(),
            roles: roles.to_vec(),
        }
    }

    /// Returns the person as `role/name`, with the first of `roles` that it has; `None` if it has none of them.
    pub fn acting_name(&self, roles: &[Role]) -> Option<String> {
        let role = roles
            .iter()
            .find(|role| self.roles.iter().any(|own| own.includes(**role)))?;
        Some(format!("{role}/{}", self.name))
    }
}

impl PersonRequest {
    /// Creates a request by `person`, if a role of theirs may ask for the act.
    pub fn ask_request(
        number: u64,
        act: RequestedAct,
        reason: &str,
        person: &Person,
        now: Timestamp,
    ) -> Result<Self, RequestRefusal> {
        let roles = act.askers();
        let asked_by = person.acting_name(roles).ok_or(RequestRefusal::Role {
            doing: "asking for",
            act: act.act.kind(),
            roles,
        })?;
        Ok(Self {
            number,
            act,
            reason: plain_reason(reason)?.to_owned(),
            asked_by,
            asked: now,
            expires: time_after(now, LIFE),
            state: RequestStatus::Open,
        })
    }

    /// Returns the name of the request for people, as `r12`.
    pub fn id(&self) -> String {
        format!("r{}", self.number)
    }

    /// Approves the request in the name of a second person: the act is to be done now.
    pub fn approve_request(
        &mut self,
        person: &Person,
        now: Timestamp,
    ) -> Result<(), RequestRefusal> {
        let roles = self.act.approvers();
        let by = person.acting_name(roles).ok_or(RequestRefusal::Role {
            doing: "approving",
            act: self.act.act.kind(),
            roles,
        })?;
        if self.is_by(person) {
            return Err(RequestRefusal::SamePerson(self.asked_by.clone()));
        }
        self.tick_request(now);
        self.must_be_open()?;
        self.state = RequestStatus::Approved { by, at: now };
        Ok(())
    }

    /// Withdraws the request; only the person who asked may.
    pub fn withdraw_request(
        &mut self,
        person: &Person,
        now: Timestamp,
    ) -> Result<(), RequestRefusal> {
        if !self.is_by(person) {
            return Err(RequestRefusal::NotTheirs(self.asked_by.clone()));
        }
        self.tick_request(now);
        self.must_be_open()?;
        self.state = RequestStatus::Withdrawn {
            by: self.asked_by.clone(),
            at: now,
        };
        Ok(())
    }

    /// Lets the request expire if its time is over. Returns whether it did.
    pub fn tick_request(&mut self, now: Timestamp) -> bool {
        let expires = self.state == RequestStatus::Open && self.expires <= now;
        if expires {
            self.state = RequestStatus::Expired { at: now };
        }
        expires
    }

    /// Ends the request with the result of the act. Returns `false` if the request is not approved, or has ended
    /// already.
    pub fn end_request(&mut self, result: Result<String, String>, now: Timestamp) -> bool {
        let RequestStatus::Approved { by, .. } = &self.state else {
            return false;
        };
        let done = result.is_ok();
        self.state = RequestStatus::Ended {
            by: by.clone(),
            at: now,
            done,
            outcome: result.unwrap_or_else(|why| why),
        };
        true
    }

    /// Whether the request is approved and waits to be done.
    pub const fn is_due(&self) -> bool {
        matches!(self.state, RequestStatus::Approved { .. })
    }

    /// Whether nothing can come of the request any more.
    pub const fn is_over(&self) -> bool {
        !matches!(
            self.state,
            RequestStatus::Open | RequestStatus::Approved { .. }
        )
    }

    fn is_by(&self, person: &Person) -> bool {
        let name = self.asked_by.split_once('/').map(|(_, name)| name);
        name == Some(person.name.as_str())
    }

    fn must_be_open(&self) -> Result<(), RequestRefusal> {
        match &self.state {
            RequestStatus::Open => Ok(()),
            RequestStatus::Approved { .. }
            | RequestStatus::Ended { .. }
            | RequestStatus::Withdrawn { .. }
            | RequestStatus::Expired { .. } => Err(RequestRefusal::NotOpen(self.state.stage())),
        }
    }
}

impl RequestStatus {
    /// Returns the stage of the request, without persons, times and outcome.
    pub const fn stage(&self) -> RequestState {
        match self {
            Self::Open => RequestState::Open,
            Self::Approved { .. } => RequestState::Approved,
            Self::Ended { done: true, .. } => RequestState::Done,
            Self::Ended { done: false, .. } => RequestState::Failed,
            Self::Withdrawn { .. } => RequestState::Withdrawn,
            Self::Expired { .. } => RequestState::Expired,
        }
    }
}

/// Returns the reason as it is kept. Refuses a reason that is empty, too long or no plain text.
pub fn plain_reason(text: &str) -> Result<&str, RequestRefusal> {
    let text = text.trim();
    let is_odd = |c: char| c.is_control() && c != '\n';
    if text.is_empty() || text.chars().count() > LONGEST_REASON || text.contains(is_odd) {
        return Err(RequestRefusal::Reason);
    }
    Ok(text)
}

fn words(roles: &[Role]) -> String {
    let words = roles.iter().map(|role| role.as_str());
    words.collect::<Vec<_>>().join(" or ")
}
