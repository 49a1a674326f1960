//! A preserver for tests, of two replicas that do not exist.

use std::path::Path;
use std::sync::Arc;

use archive_daemon::clock::ManualClock;
use archive_daemon::{ByteSize, DaemonSettings, Metrics, NotifySettings, Period};
use archive_ledger::admin::Admin;
use archive_model::{ReplicaId, ReplicaKind};
use archive_rpc::RpcSettings;
use archive_stores::assemble::{Assembler, DonorLoad};
use archive_stores::coordinator::{Parts, undriven};

use super::Preserver;
use crate::archive::Archive;
use crate::claims::NameClaims;
use crate::metrics::Instruments;
use crate::settings::{ReplicaSettings, RepositorySettings, Settings};

/// Creates a preserver with the clock of `hand`, inside a runtime.
pub(crate) fn preserver(admin: &Admin, hand: &ManualClock) -> Preserver {
    let Parts {
        anomalies,
        transfers,
        chance,
        standing,
        ..
    } = undriven(admin, hand);
    let settings = settings(Path::new("data"), Path::new("trust.json"));
    let assembler = Assembler {
        calls: transfers.calls.clone(),
        load: DonorLoad::default(),
    };
    let archive = Archive {
        admin: admin.clone(),
        anomalies,
        standing,
        specs: Arc::new(settings.replicas),
        calls: transfers.calls,
        assembler,
        mail: transfers.mail,
        claims: NameClaims::default(),
        tasks: transfers.tasks,
        chance,
    };
    Preserver {
        archive,
        instruments: Instruments::new(&Metrics::new()).unwrap(),
        policy: Arc::new(settings.repair.repair_policy()),
        who: "repository/kb".into(),
        suspected: NameClaims::default(),
    }
}

/// Returns settings of two bitarchive replicas whose monitors cannot be reached.
pub(crate) fn settings(data: &Path, trust: &Path) -> Settings {
    let replica = |id: &str| ReplicaSettings {
        id: ReplicaId::new(id).unwrap(),
        kind: ReplicaKind::Bitarchive,
        required: true,
        monitor: "127.0.0.1:1".to_owned(),
        site: None,
        media: None,
    };
    Settings {
        repair: crate::settings::RepairSettings::default(),
        checks: crate::settings::CheckSettings::default(),
        drain: crate::settings::DrainSettings::default(),
        batch: crate::settings::BatchSettings::default(),
        daemon: DaemonSettings::default(),
        rpc: RpcSettings::new("127.0.0.1:0", "none", "none", "none"),
        repository: RepositorySettings {
            archive: "kb".to_owned(),
            data: data.to_owned(),
            signing_key: "none".into(),
            trust: trust.to_owned(),
            stall: Period::from_secs(30),
            least_rate: ByteSize::from_bytes(100),
            reserve: ByteSize::from_bytes(0),
            md5: false,
            allow_single: false,
            export: Period::from_secs(0),
        },
        notify: NotifySettings::default(),
        replicas: vec![replica("one"), replica("two")],
    }
}
