//! Claims on names: who may act on the copies of a file at one time.
//!
//! Owns that a repair, a drain and the acts of people exclude each other, one name at a time. What is being stored is
//! not claimed: the coordinator decides about each file in one place, and those who claim act on copies that it has
//! completed.
//!
//! Claims are in memory only: each act can be repeated after a restart.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use archive_model::FileName;
use archive_rpc::{CallError, CallErrorKind};
use parking_lot::Mutex;

/// What is done with the copies of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameAct {
    /// A copy that showed damage is read again.
    Look,
    /// A copy is mended, or stored again.
    Repair,
    /// A copy leaves a volume or node that is drained.
    Move,
    /// A person has the right bytes stored in the place of a wrong copy.
    Replace,
    /// A person has a file counted that a replica has unexpectedly.
    Adopt,
    /// A person takes a copy out of an attic.
    Restore,
    /// What two persons have decided is carried out.
    Decision,
}

impl NameAct {
    /// The number of files with which this is done at once.
    const fn most(self) -> usize {
        match self {
            // The others are left to the next scrub or check.
            Self::Look => 16,
            Self::Repair => 64,
            Self::Move | Self::Replace | Self::Adopt | Self::Restore | Self::Decision => usize::MAX,
        }
    }
}

impl fmt::Display for NameAct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Look => "is being read",
            Self::Repair => "is being repaired",
            Self::Move => "is being moved by a drain",
            Self::Replace => "has a copy that is being replaced",
            Self::Adopt => "is being adopted",
            Self::Restore => "is being restored from an attic",
            Self::Decision => "has an act that is being carried out",
        })
    }
}

/// The names that are acted on; cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct NameClaims(Arc<Mutex<BTreeMap<FileName, NameAct>>>);

impl NameClaims {
    /// Claims a file.
    ///
    /// # Errors
    /// `Busy` while it is claimed, or the same is done with too many others.
    pub(crate) fn claim_name(&self, name: &FileName, act: NameAct) -> Result<NameClaim, CallError> {
        let mut names = self.0.lock();
        if let Some(other) = names.get(name) {
            return Err(CallErrorKind::Busy.to_error(format!("{name} {other}; try again later")));
        }
        let others = names.values().filter(|other| **other == act).count();
        if others >= act.most() {
            let said = format!("{others} other files are being worked on; try again later");
            return Err(CallErrorKind::Busy.to_error(said));
        }
        names.insert(name.clone(), act);
        Ok(NameClaim {
            names: self.clone(),
            name: name.clone(),
        })
    }
}

/// The claim on one file, until it is dropped.
#[derive(Debug)]
pub(crate) struct NameClaim {
    names: NameClaims,
    name: FileName,
}

impl Drop for NameClaim {
    fn drop(&mut self) {
        self.names.0.lock().remove(&self.name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if two act on a name at once, a name stays claimed, or one kind of work keeps another from being done.
    #[test]
    fn one_acts_on_a_name_at_a_time() {
        let claims = NameClaims::default();
        let name = |number: usize| FileName::new(&format!("f-{number}")).unwrap();
        let moving = claims.claim_name(&name(0), NameAct::Move).unwrap();
        let refused = claims.claim_name(&name(0), NameAct::Decision).unwrap_err();
        assert_eq!(refused.kind, CallErrorKind::Busy);
        assert!(
            refused.reason.contains("f-0 is being moved by a drain"),
            "{refused}"
        );
        drop(moving);
        let _decided = claims.claim_name(&name(0), NameAct::Decision).unwrap();
        let repairs: Vec<_> = (1..=NameAct::Repair.most())
            .map(|number| claims.claim_name(&name(number), NameAct::Repair).unwrap())
            .collect();
        let more = name(1000);
        assert!(claims.claim_name(&more, NameAct::Repair).is_err());
        assert!(claims.claim_name(&more, NameAct::Move).is_ok());
        drop(repairs);
        assert!(claims.claim_name(&more, NameAct::Repair).is_ok());
    }
}
