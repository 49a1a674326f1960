//! A whole archive in one process, over real TLS: its keys, its parts, and channels to its doors.
//!
//! Each part lives in a daemon of its own, so that a test can stop it and start it again where it was. Not promised:
//! what the end of a process does to a part; `crash` ends processes.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use archive_bitarchive::checksum::{self, ChecksumTable};
use archive_bitarchive::{Layout, Volumes};
use archive_client::{ArchiveReader, Depositor};
use archive_daemon::clock::ManualClock;
use archive_daemon::{Chance, Clock, Daemon};
use archive_durable::{directory, replace_file, replace_secret};
use archive_ledger::admin::Admin;
use archive_model::{FileName, VolumeId};
use archive_proof::TrustFile;
use archive_proof::testing::{signing_key, trust_in};
use archive_rpc::testing::TestAuthority;
use archive_rpc::{CredentialPem, Credentials, ExpectedIdentity, Role, RpcLimits, connect_lazy};
use jiff::Timestamp;
use tempfile::TempDir;
use tokio::runtime::Builder;
use tokio::time::timeout;
use tonic::transport::Channel;
pub(crate) use tools_testing::{PATIENCE as LONG, eventually};

pub(crate) use super::damage::flip;
use super::visits::limits;

pub(crate) const REPOSITORY: &str = "repository";
pub(crate) const MONITORS: [&str; 2] = ["monitor-one", "monitor-two"];
pub(crate) const NODES: [&str; 2] = ["bitarchive-one", "bitarchive-two"];

pub(crate) const CHECKSUMS: &str = "checksums-three";

/// No test may take longer. A limit against hanging, as all of these: none of them decides how fast something is.
const PATIENCE: Duration = Duration::from_mins(15);

/// After how long a monitor takes a node for silent: soon, or never within a test.
const IMPATIENT: &str = "3 s";
pub(super) const PATIENT: &str = "30 d";

/// The time that a part may take to end: more than its own drain.
const LAST_CALL: Duration = Duration::from_mins(1);

/// The number of threads that may block, unless a test says otherwise: as many as in a part that is a process.
const BLOCKING: usize = 512;

/// An archive that runs.
pub(crate) struct Cluster {
    directory: TempDir,
    authority: TestAuthority,
    trust: Arc<TrustFile>,
    /// The time of all parts: it goes on as that of the machine does, and a test can move it.
    hand: ManualClock,
    clock: Clock,
    /// The time after which monitors take a node for silent.
    pub(super) silent_after: &'static str,
    pub(crate) running: BTreeMap<String, Daemon>,
    addresses: BTreeMap<String, SocketAddr>,
    /// The replicas in the repository's settings.
    replicas: Vec<String>,
    /// The replicas in the repository's settings that no answer waits for.
    pub(crate) optional: Vec<String>,
    /// The addresses at which nodes say that they are reached, from their next start on; else where they listen.
    pub(crate) endpoints: BTreeMap<String, String>,
    /// The address at which a part finds another one, by their names, from its next start on; else where that one
    /// listens.
    pub(crate) detours: BTreeMap<(String, String), String>,
    /// More lines of the repository's own settings, from its next start on.
    pub(crate) extra: String,
    /// Further settings of nodes, from their next start on.
    pub(crate) node_settings: String,
    /// Further settings of the repository, from its next start on.
    pub(crate) repository_settings: String,
}

/// Runs `test` on a fresh archive whose nodes are known, and ends every part of it.
pub(crate) fn on_a_cluster(test: impl AsyncFnOnce(&mut Cluster)) {
    run(IMPATIENT, BLOCKING, test);
}

/// Runs `test` on an archive in which nodes are silent only when they do not answer, however far the time is moved.
pub(crate) fn on_a_patient_cluster(test: impl AsyncFnOnce(&mut Cluster)) {
    run(PATIENT, BLOCKING, test);
}

/// Runs `test` on an archive whose parts together have `blocking` threads that may block.
pub(crate) fn on_a_cluster_with_threads(blocking: usize, test: impl AsyncFnOnce(&mut Cluster)) {
    run(IMPATIENT, blocking, test);
}

fn run(silent_after: &'static str, blocking: usize, test: impl AsyncFnOnce(&mut Cluster)) {
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(blocking)
        .enable_all()
        .build()
        .unwrap();
    let whole = async {
        let mut cluster = Cluster::new(silent_after);
        for part in MONITORS
            .iter()
            .chain(&NODES)
            .chain([&CHECKSUMS, &REPOSITORY])
        {
            cluster.start(part).await;
        }
        cluster.until_all_nodes_live().await;
        test(&mut cluster).await;
        let parts: Vec<String> = cluster.running.keys().cloned().collect();
        for part in parts {
            cluster.stop(&part).await;
        }
    };
    let ended = runtime.block_on(async { timeout(PATIENCE, Box::pin(whole)).await });
    assert!(ended.is_ok(), "not done after {PATIENCE:?}");
}

impl Cluster {
    fn new(silent_after: &'static str) -> Self {
        let directory = TempDir::new().unwrap();
        let hand = ManualClock::running_from(Clock::system_clock().now());
        let clock = hand.clock();
        let authority = TestAuthority::new();
        let key = signing_key();
        let trust = trust_in(&key);
        let at = |name: &str| directory.path().join(name);
        replace_secret(&at("signing.key"), key.to_pem().unwrap().as_bytes()).unwrap();
        replace_file(&at("trust.json"), trust.to_json().unwrap().as_bytes()).unwrap();
        replace_file(&at("authority.pem"), authority.certificate().as_bytes()).unwrap();
        drop(Admin::init(&at("repository")).unwrap());
        let node = "three-1".parse().unwrap();
        let replica = "three".parse().unwrap();
        ChecksumTable::init(&at("three"), &node, &replica).unwrap();
        let mut cluster = Self {
            directory,
            authority,
            trust: Arc::new(trust),
            hand,
            clock,
            silent_after,
            running: BTreeMap::new(),
            addresses: BTreeMap::new(),
            replicas: Vec::new(),
            optional: Vec::new(),
            endpoints: BTreeMap::new(),
            detours: BTreeMap::new(),
            extra: String::new(),
            node_settings: String::new(),
            repository_settings: String::new(),
        };
        cluster.certify(REPOSITORY, &["repository/kb"]);
        cluster.certify(CHECKSUMS, &["monitor/three", "node/three-1"]);
        for replica in ["one", "two"] {
            cluster.add_replica(replica);
        }
        cluster
    }

    /// Sets up a replica with one node, and names it in the repository's settings from its next start on.
    pub(crate) fn add_replica(&mut self, replica: &str) {
        self.certify(
            &format!("monitor-{replica}"),
            &[&format!("monitor/{replica}")],
        );
        self.add_node(replica, "");
        self.replicas.push(replica.to_owned());
    }

    /// Sets up a node; the first of a replica has an empty `suffix`, the second `-2`. Its part is
    /// `bitarchive-{replica}{suffix}`, its name `{replica}{suffix}-1`.
    pub(crate) fn add_node(&self, replica: &str, suffix: &str) {
        let own = format!("{replica}{suffix}");
        self.certify(&format!("bitarchive-{own}"), &[&format!("node/{own}-1")]);
        directory::make_directory(&self.path(&own)).unwrap();
        init_volume(&self.path(&own), replica, &own);
    }

    /// Takes from a node everything that it has, as if its disks were new.
    pub(crate) fn wipe(&self, replica: &str) {
        std::fs::remove_dir_all(self.path(replica)).unwrap();
        directory::make_directory(&self.path(replica)).unwrap();
        init_volume(&self.path(replica), replica, replica);
    }

    /// Returns a daemon of this archive's time, for a part that the cluster does not know.
    pub(crate) fn daemon(&self, chance: Chance) -> Daemon {
        Daemon::new(self.clock.clone(), chance)
    }

    /// Takes a part that was started elsewhere: it is stopped with the others, and found by its name.
    pub(crate) fn add_running(&mut self, part: &str, daemon: Daemon, address: SocketAddr) {
        self.addresses.insert(part.to_owned(), address);
        self.running.insert(part.to_owned(), daemon);
    }

    pub(crate) fn certify(&self, part: &str, grants: &[&str]) {
        let pem = self.authority.pem(grants);
        let certificate = format!("{part}.pem");
        let key = format!("{part}.key");
        replace_file(&self.path(&certificate), pem.certificate.as_bytes()).unwrap();
        replace_secret(&self.path(&key), pem.key.as_bytes()).unwrap();
    }

    /// Starts a part, on the port and the data that it had before if it ran before.
    pub(crate) async fn start(&mut self, part: &str) {
        let daemon = Daemon::new(self.clock.clone(), Chance::system_chance());
        let settings = self.settings(part);
        let of = daemon.clone();
        let address = match part.split_once('-') {
            None => archive_repository::serve_repository(toml::from_str(&settings).unwrap(), of)
                .await
                .unwrap(),
            Some(("monitor", _)) => {
                archive_monitor::serve_monitor(toml::from_str(&settings).unwrap(), of)
                    .await
                    .unwrap()
            }
            Some(("checksums", _)) => {
                checksum::serve_checksum_replica(toml::from_str(&settings).unwrap(), of)
                    .await
                    .unwrap()
            }
            Some(_) => archive_bitarchive::serve_node(
                toml::from_str(&settings).unwrap(),
                of,
                archive_runs::start_runs,
            )
            .await
            .unwrap(),
        };
        self.addresses.insert(part.to_owned(), address);
        self.running.insert(part.to_owned(), daemon);
    }

    /// Stops a part; every task of it must have ended well.
    pub(crate) async fn stop(&mut self, part: &str) {
        let daemon = self.running.remove(part).unwrap();
        daemon.tasks.stop_all();
        let ended = daemon.tasks.join_tasks(LAST_CALL).await;
        assert!(ended.is_ok(), "{part}: {ended:?}");
    }

    /// Moves the time of all parts.
    pub(crate) fn advance(&self, duration: Duration) {
        self.hand.advance(duration);
    }

    pub(crate) fn address(&self, part: &str) -> String {
        let unbound = SocketAddr::from(([127, 0, 0, 1], 0));
        let address = self.addresses.get(part).unwrap_or(&unbound);
        address.to_string()
    }

    /// Returns the address at which one part finds another.
    fn way(&self, from: &str, to: &str) -> String {
        let detour = self.detours.get(&(from.to_owned(), to.to_owned()));
        detour.cloned().unwrap_or_else(|| self.address(to))
    }

    /// Returns the path of the copy of a file.
    pub(crate) fn copy(&self, replica: &str, name: &FileName) -> PathBuf {
        self.layout(replica).target_paths(name).file
    }

    /// Returns the directory in which uploads into a replica are received.
    pub(crate) fn incoming(&self, replica: &str) -> PathBuf {
        self.layout(replica).incoming()
    }

    pub(crate) fn authority(&self) -> &TestAuthority {
        &self.authority
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Returns a certificate that carries `grant`.
    pub(crate) fn pem(&self, grant: &str) -> CredentialPem {
        self.authority.pem(&[grant])
    }

    pub(crate) fn credentials(&self, grant: &str) -> Credentials {
        self.authority.credentials(&[grant])
    }

    /// Returns a channel to the repository, with a certificate that carries `grant`.
    pub(crate) fn channel(&self, grant: &str) -> Channel {
        connect_lazy(
            &self.address(REPOSITORY),
            &self.credentials(grant),
            &ExpectedIdentity::any_of_role(Role::Repository),
            &RpcLimits::default(),
        )
        .unwrap()
    }

    pub(crate) fn depositor(&self) -> Depositor {
        self.depositor_as("harvester/h-1")
    }

    pub(crate) fn depositor_as(&self, grant: &str) -> Depositor {
        let channel = self.channel(grant);
        Depositor::new(channel, Arc::clone(&self.trust), limits())
    }

    pub(crate) fn reader(&self) -> ArchiveReader {
        self.reader_as("reader/anna")
    }

    pub(crate) fn reader_as(&self, grant: &str) -> ArchiveReader {
        ArchiveReader::new(self.channel(grant), Arc::clone(&self.trust), limits())
    }

    pub(crate) fn trust(&self) -> &TrustFile {
        &self.trust
    }

    /// Returns a depositor that reaches the repository at this address.
    pub(crate) fn depositor_at(&self, address: &str, grant: &str) -> Depositor {
        let credentials = self.credentials(grant);
        let expected = ExpectedIdentity::any_of_role(Role::Repository);
        let channel = connect_lazy(address, &credentials, &expected, &RpcLimits::default());
        Depositor::new(channel.unwrap(), Arc::clone(&self.trust), limits())
    }

    /// Returns the metrics page of a part.
    pub(crate) fn page(&self, part: &str) -> String {
        self.running[part].metrics.render_page().unwrap()
    }

    /// Returns the number of turns that a background job of a part has had.
    pub(crate) fn steps(&self, part: &str, worker: &str) -> u64 {
        let mut all = self.running[part].workers.list_workers().into_iter();
        all.find(|status| *status.name == *worker).unwrap().steps
    }

    fn layout(&self, replica: &str) -> Layout {
        Layout::new(&self.path(replica).join("volume"))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Returns the settings file of a part.
    pub(crate) fn settings(&self, part: &str) -> String {
        let at = self.directory.path().display();
        let own = self.address(part);
        let rpc = format!(
            "[daemon]\ndrain = '4 s'\n[rpc]\nlisten = '{own}'\ncertificate = '{at}/{part}.pem'\n\
             key = '{at}/{part}.key'\nauthorities = '{at}/authority.pem'\n"
        );
        let own = match part.split_once('-') {
            Some(("monitor", replica)) => format!(
                "[monitor]\nreplica = '{replica}'\nheartbeat = '200 ms'\nsilent_after = '{}'\n",
                self.silent_after
            ),
            Some(("checksums", replica)) => format!(
                "[checksum_replica]\nnode = '{replica}-1'\nreplica = '{replica}'\ndata = '{at}/{replica}'\n\
                 reserve = '1 MB'\ntrust = '{at}/trust.json'\n"
            ),
            Some((_, own)) => {
                let replica = own.split('-').next().unwrap_or(own);
                let endpoint = self.endpoints.get(part);
                let endpoint = endpoint.map(|at| format!("endpoint = '{at}'\n"));
                format!(
                    "[bitarchive]\nnode = '{own}-1'\nreplica = '{replica}'\ndata = '{at}/{own}/node'\n\
                     volumes = ['{at}/{own}/volume']\nreserve = '1 MB'\ntrust = '{at}/trust.json'\nmonitor = '{}'\n{}{}",
                    self.way(part, &format!("monitor-{replica}")),
                    endpoint.unwrap_or_default(),
                    self.node_settings
                )
            }
            None => {
                let replica = |id: &str, kind: &str, monitor: &str| {
                    let required = !self.optional.iter().any(|optional| optional == id);
                    format!(
                        "[[replica]]\nid = '{id}'\nkind = '{kind}'\nrequired = {required}\nmonitor = '{}'\n",
                        self.way(part, monitor)
                    )
                };
                format!(
                    "[repository]\narchive = 'kb'\ndata = '{at}/repository'\nsigning_key = '{at}/signing.key'\n\
                     trust = '{at}/trust.json'\n{}\n{}\n{}{}",
                    self.extra,
                    self.repository_settings,
                    self.replicas
                        .iter()
                        .map(|id| replica(id, "bitarchive", &format!("monitor-{id}")))
                        .collect::<String>(),
                    replica("three", "checksum", CHECKSUMS)
                )
            }
        };
        rpc + &own
    }
}

fn init_volume(directory: &Path, replica: &str, own: &str) {
    let volume = directory.join("volume");
    directory::make_directory(&volume).unwrap();
    let volumes = Volumes::open(
        &format!("{own}-1").parse().unwrap(),
        &replica.parse().unwrap(),
        &directory.join("node"),
        std::slice::from_ref(&volume),
    )
    .unwrap();
    let id = VolumeId::new(&format!("volume-{own}")).unwrap();
    volumes.init_volume(&volume, &id).unwrap();
}
