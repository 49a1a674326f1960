//! A preserver for tests, of two replicas that nobody plays.

use std::path::Path;
use std::sync::Arc;

use archive_daemon::Metrics;
use archive_daemon::clock::ManualClock;

use super::{Names, Preserver};
use crate::admin::Admin;
use crate::assemble::{Assembler, DonorLoad};
use crate::coordinator::{Coordinator, undriven};
use crate::metrics::Instruments;
use crate::restore::testing::settings;

/// Looks, checks and files by the clock of `hand`. Inside a runtime only.
pub(crate) fn preserver(admin: &Admin, hand: &ManualClock) -> Preserver {
    let Coordinator {
        anomalies,
        transfers,
        chance,
        standing,
        ..
    } = undriven(admin, hand);
    let settings = settings(Path::new("data"), Path::new("trust.json"));
    let assembler = Assembler {
        replicas: Arc::clone(&transfers.replicas),
        clock: hand.clock(),
        stall: transfers.stall,
        load: DonorLoad::default(),
    };
    Preserver {
        admin: admin.clone(),
        anomalies,
        replicas: transfers.replicas,
        assembler,
        specs: Arc::new(settings.replicas),
        standing: standing.view(),
        mail: transfers.mail,
        tasks: transfers.tasks,
        clock: hand.clock(),
        chance,
        instruments: Instruments::new(&Metrics::new()).unwrap(),
        policy: Arc::new(settings.repair.policy()),
        stall: transfers.stall,
        own: "repository/kb".into(),
        repairing: Names::default(),
        suspected: Names::default(),
    }
}
