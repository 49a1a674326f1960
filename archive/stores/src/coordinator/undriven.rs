//! A coordinator for tests, that nobody runs.

#![expect(
    clippy::missing_panics_doc,
    clippy::unwrap_used,
    reason = "helpers of tests"
)]

use std::sync::Arc;
use std::time::Duration;

use archive_daemon::clock::ManualClock;
use archive_daemon::{Chance, Metrics, Tasks};
use archive_ledger::admin::Admin;
use archive_ledger::anomalies::Anomalies;
use archive_ledger::standing::{Standing, StandingView};
use archive_proof::SigningKey;
use archive_replicas::{Dialer, Replicas};
use archive_rpc::RpcLimits;
use archive_rpc::testing::TestAuthority;

#[cfg(test)]
use super::Coordinator;
use super::{Parts, Retries};
use crate::assemble::{Assembler, DonorLoad};
use crate::calls::ReplicaCalls;
use crate::copier::Copier;
use crate::mail::Mail;
use crate::metrics::Stores;
use crate::transfer::{ResumePoints, Transfers};

/// Returns a coordinator that nobody runs: what it wants done is not done.
#[cfg(test)]
pub(super) fn coordinator(admin: &Admin, hand: &ManualClock) -> Coordinator {
    Coordinator::new(parts(admin, hand))
}

/// Returns the parts of a coordinator, over an archive without replicas.
pub fn parts(admin: &Admin, hand: &ManualClock) -> Parts {
    let clock = hand.clock();
    let (mail, messages) = Mail::new();
    let credentials = TestAuthority::new().credentials(&["repository/kb"]);
    let dialer = Dialer::new(credentials, RpcLimits::default());
    let replicas = Replicas::new(&[], dialer, StandingView::default(), clock.clone());
    let calls = ReplicaCalls {
        replicas: Arc::new(replicas.unwrap()),
        clock: clock.clone(),
        stall: Duration::from_secs(30),
    };
    let transfers = Transfers {
        calls: calls.clone(),
        mail,
        tasks: Tasks::new(),
        md5: false,
        resume_points: ResumePoints::default(),
        stores: Stores::new(&Metrics::new()).unwrap(),
    };
    let anomalies = Arc::new(Anomalies::open(admin, clock.clone()).unwrap());
    let assembler = Assembler {
        calls,
        load: DonorLoad::default(),
    };
    Parts {
        archive: "kb".to_owned(),
        key: SigningKey::from_seed([1; 32]),
        specs: Vec::new(),
        standing: Arc::new(Standing::open(admin.clone()).unwrap()),
        limits: archive_decisions::store::StoreLimits::default(),
        admin: admin.clone(),
        copier: Copier::new(transfers.clone(), assembler),
        transfers,
        clock,
        chance: Chance::system_chance(),
        messages,
        anomalies,
        retries: Retries::default(),
    }
}
