//! The data directory of `holdfast up`: keys and certificates, settings files, volumes, the client file.
//!
//! Made once; the settings files and the client file are the operator's from then on and are never written again.
//! Certificates are issued anew at every start. A directory that holds something else is refused.

mod keys;
mod settings;

use std::path::{Path, PathBuf};

use archive_bitarchive::Volumes;
use archive_bitarchive::checksum::ChecksumTable;
use archive_daemon::Chance;
use archive_durable::{DiskError, directory, read_secret, read_state, replace_file};
use archive_model::{NodeId, ReplicaId, VolumeId};
use jiff::Timestamp;
use tools_terminal::exit::{Exit, Failure};

use self::keys::issue_certificates;
use self::settings::write_settings_files;
use super::client_file::keep_client_file;
use super::ports::Ports;
use crate::commands::archive_keys::{keep_signing_key, keep_trust_file};

/// The bitarchive replicas.
pub(crate) const REPLICAS: [&str; 2] = ["one", "two"];

/// The replica that keeps checksums only.
pub(crate) const CHECKSUM_REPLICA: &str = "three";

/// The checksum replica as a part of the archive, and the verb that runs it.
pub(crate) const CHECKSUM_PART: &str = "checksum-replica-three";
pub(crate) const CHECKSUM_VERB: &str = "checksum-replica";

/// Every directory below the data directory.
const DIRECTORIES: [&str; 7] = [
    "pki",
    "settings",
    "repository",
    "one",
    "two",
    "three",
    INDEX,
];

/// The index, as a part and as its directory.
pub(crate) const INDEX: &str = "index";

/// The name of the viewer among the parts.
pub(crate) const VIEWER: &str = "viewer";

/// The name of the archive.
const ARCHIVE: &str = "local";

/// A data directory that is ready.
#[derive(Clone, Debug)]
pub(crate) struct PreparedArchive {
    data: PathBuf,
    repository: String,
    index: String,
    replay: String,
    /// The pages for people, unless the operator has none.
    web: Option<String>,
    /// The proxy, unless the operator has none.
    proxy: Option<String>,
}

impl PreparedArchive {
    /// Returns the settings file of a part.
    pub(crate) fn settings_path(&self, part: &str) -> PathBuf {
        self.data.join("settings").join(format!("{part}.toml"))
    }

    /// Returns the directory of the logs of the parts.
    pub(crate) fn logs_path(&self) -> PathBuf {
        self.data.join("logs")
    }

    /// Returns the directory of the process ids of the parts, when each is a process.
    pub(crate) fn run_path(&self) -> PathBuf {
        self.data.join("run")
    }

    /// Returns the client file.
    pub(crate) fn client_file(&self) -> PathBuf {
        self.data.join("client.toml")
    }

    /// Returns the directory of the volume of a replica.
    pub(crate) fn volume_path(&self, replica: &str) -> PathBuf {
        self.data.join(replica).join("volume")
    }

    /// Returns the page that shows the latest capture of a URL; without pages for people, the capture itself.
    pub(crate) fn shown_address(&self, url: &str) -> String {
        match &self.web {
            Some(web) => format!("{web}/replay/all/{url}"),
            None => format!("{}/all/{url}", self.replay),
        }
    }

    /// Returns where a person finds everything.
    pub(crate) fn greeting(&self) -> String {
        let line = |name: &str, shown: Option<String>| {
            shown.map_or(String::new(), |shown| format!("{name:12}{shown}\n"))
        };
        let pages = line("pages", self.web.as_ref().map(|web| format!("{web}/")));
        let proxy = self.proxy.as_ref().map(|proxy| {
            format!("{proxy} (set it in a browser, then open http://viewerproxy.invalid/)")
        });
        let proxy = line("proxy", proxy);
        format!(
            "{pages}replay      {}/all/\n{proxy}repository  {}\nindex       {}\ndata        {}\nclient file {}\n\n\
             Store with `holdfast store FILE...`; stop with Ctrl-C.",
            self.replay,
            self.repository,
            self.index,
            self.data.display(),
            self.client_file().display()
        )
    }
}

/// Makes what is missing in the data directory. The parts of a new archive listen on free ports from `first_port` on,
/// if it is given.
pub(crate) fn prepare_archive(
    data: &Path,
    first_port: Option<u16>,
    now: Timestamp,
) -> Result<PreparedArchive, Failure> {
    let marker = data.join("up.json");
    make(data)?;
    let data = &data
        .canonicalize()
        .map_err(|error| Failure::unreadable_file(data, &error))?;
    let is_new = state(&marker)?.is_none();
    if is_new {
        refuse_strangers(data)?;
    } else if first_port.is_some() {
        return Err(has_ports(data));
    }
    for name in DIRECTORIES {
        make(&data.join(name))?;
    }
    let key = keep_signing_key(&data.join("signing.key"))?;
    keep_trust_file(&data.join("trust.json"), ARCHIVE, &key)?;
    issue_certificates(data, now)?;
    if is_new {
        let ports = first_port.map_or_else(|| Ports::for_directory(data), Ports::starting_at);
        write_settings_files(data, &ports)?;
        for replica in REPLICAS {
            init_volume(data, replica)?;
        }
        init_checksum_replica(data)?;
        crate::commands::parts::init_admin(&data.join("repository"))?;
        replace_file(&marker, b"{\"format\":\"holdfast-up/1\"}\n").map_err(|error| disk(&error))?;
    }
    let repository: archive_repository::Settings =
        crate::commands::parts::load_part_settings(&data.join("settings/repository.toml"), &[])?;
    let index: index_server::Settings =
        crate::commands::parts::load_part_settings(&data.join("settings/index.toml"), &[])?;
    let viewer: viewer_web::Settings =
        crate::commands::parts::load_part_settings(&data.join("settings/viewer.toml"), &[])?;
    let origin = |url: Option<String>, listen: std::net::SocketAddr, has_tls: bool| {
        let scheme = if has_tls { "https" } else { "http" };
        url.unwrap_or_else(|| format!("{scheme}://{listen}"))
    };
    let replay = viewer.replay;
    let replay = origin(replay.url, replay.listen, replay.certificate.is_some());
    let web = viewer
        .web
        .map(|web| origin(web.url, web.listen, web.certificate.is_some()));
    let proxy = viewer.proxy.map(|proxy| proxy.listen.to_string());
    let mut endpoints = vec![
        ("repository", repository.rpc.listen.as_str()),
        ("index", index.rpc.listen.as_str()),
    ];
    endpoints.extend(web.as_deref().map(|web| ("web", web)));
    endpoints.push(("replay", replay.as_str()));
    endpoints.extend(proxy.as_deref().map(|proxy| ("proxy", proxy)));
    keep_client_file(data, &endpoints)?;
    Ok(PreparedArchive {
        data: data.clone(),
        repository: repository.rpc.listen,
        index: index.rpc.listen,
        replay,
        web,
        proxy,
    })
}

/// Refuses a directory with anything in it that an interrupted first start did not leave: it is somebody else's.
fn refuse_strangers(data: &Path) -> Result<(), Failure> {
    let ours =
        |name: &str| DIRECTORIES.contains(&name) || ["trust.json", "signing.key"].contains(&name);
    let unfinished = |name: &str| {
        name.starts_with('.')
            && Path::new(name)
                .extension()
                .is_some_and(|kind| kind == "new")
    };
    for entry in directory::list_directory(data).map_err(|error| disk(&error))? {
        let name = entry.name.to_string_lossy();
        if !ours(&name) && !unfinished(&name) {
            return Err(Failure::new(
                Exit::Settings,
                format!(
                    "{} holds {}, which is not an archive's; name an empty directory with --data",
                    data.display(),
                    entry.name.display()
                ),
            ));
        }
    }
    Ok(())
}

/// Returns the refusal of ports for an archive whose settings name ports already.
fn has_ports(data: &Path) -> Failure {
    Failure::new(
        Exit::Settings,
        format!(
            "{0} has an archive, which keeps its ports; leave out --first-port, or change `listen` in {0}/settings",
            data.display()
        ),
    )
}

/// Creates the first volume of a replica, unless an interrupted first start has done it.
fn init_volume(data: &Path, replica: &str) -> Result<(), Failure> {
    let path = data.join(replica).join("volume");
    make(&path)?;
    let invalid = |error: archive_model::InvalidId| Failure::because_failed(error.to_string());
    let node = NodeId::new(&format!("{replica}-1")).map_err(invalid)?;
    let id = ReplicaId::new(replica).map_err(invalid)?;
    let own = data.join(replica).join("node");
    let paths = [path.clone()];
    let failed =
        |error: archive_bitarchive::VolumesError| Failure::because_failed(error.to_string());
    let volumes = Volumes::open(&node, &id, &own, &paths).map_err(failed)?;
    if volumes
        .list_volumes()
        .iter()
        .all(|volume| volume.id.is_none())
    {
        let random: [u8; 16] = Chance::system_chance()
            .random_bytes()
            .map_err(|error| Failure::because_failed(error.to_string()))?;
        volumes
            .init_volume(
                &path,
                &VolumeId::new(&hex::encode(random)).map_err(invalid)?,
            )
            .map_err(failed)?;
    }
    Ok(())
}

/// Creates the table of the checksum replica.
fn init_checksum_replica(data: &Path) -> Result<(), Failure> {
    let invalid = |error: archive_model::InvalidId| Failure::because_failed(error.to_string());
    let node = NodeId::new(&format!("{CHECKSUM_REPLICA}-1")).map_err(invalid)?;
    let id = ReplicaId::new(CHECKSUM_REPLICA).map_err(invalid)?;
    ChecksumTable::init(&data.join(CHECKSUM_REPLICA), &node, &id)
        .map_err(|error| Failure::because_failed(error.to_string()))
}

fn make(path: &Path) -> Result<(), Failure> {
    directory::make_directory(path).map_err(|error| disk(&error))
}

fn state(path: &Path) -> Result<Option<Vec<u8>>, Failure> {
    read_state(path).map_err(|error| disk(&error))
}

fn secret_state(path: &Path) -> Result<Option<Vec<u8>>, Failure> {
    read_secret(path).map_err(|error| disk(&error))
}

fn disk(error: &DiskError) -> Failure {
    Failure::because_failed(error.to_string())
}

#[cfg(test)]
mod tests {
    use archive_daemon::Clock;
    use tools_testing::PortBlock;

    use super::*;

    /// Fails if a new archive takes other ports than those it is given, or an old one is said to have moved.
    #[test]
    fn first_port_is_for_new_archives() {
        let directory = tempfile::tempdir().unwrap();
        let block = PortBlock::claim();
        let now = Clock::system_clock().now();
        let prepared = prepare_archive(directory.path(), Some(block.first()), now).unwrap();
        let repository = format!("127.0.0.1:{}", block.first());
        assert_eq!(prepared.repository, repository);
        let settings = directory::list_directory(&directory.path().join("settings")).unwrap();
        let text: String = settings
            .iter()
            .map(|entry| prepared.data.join("settings").join(&entry.name))
            .map(|path| String::from_utf8(state(&path).unwrap().unwrap()).unwrap())
            .collect();
        let ours: Vec<u16> = text
            .split("\nlisten = \"127.0.0.1:")
            .skip(1)
            .map(|rest| rest.split('"').next().unwrap().parse().unwrap())
            .collect();
        let block = block.first()..block.first() + 11;
        assert!(
            ours.len() == 11 && ours.iter().all(|port| block.contains(port)),
            "{ours:?}"
        );

        let refused = prepare_archive(directory.path(), Some(12_000), now).unwrap_err();
        assert!(refused.to_string().contains("keeps its ports"), "{refused}");
        let again = prepare_archive(directory.path(), None, now).unwrap();
        assert_eq!(again.repository, repository);
    }
}
