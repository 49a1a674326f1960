//! The data directory of `holdfast up`: certificates, settings files, volumes, the client file.
//!
//! Made once; the settings files and the client file are the operator's from then on and are never written again.
//! Certificates are issued anew at every start. A directory that holds something else is refused.
//!
//! It is over 450 lines because all of it is one directory: what is made first names what comes next.

use std::path::{Path, PathBuf};
use std::time::Duration;

use archive_bitarchive::Volumes;
use archive_bitarchive::checksum::ChecksumTable;
use archive_daemon::Chance;
use archive_durable::{DiskError, directory, read_secret, read_state, replace, replace_secret};
use archive_model::{NodeId, ReplicaId, VolumeId};
use archive_proof::{SigningKey, TrustFile, TrustedKey};
use archive_rpc::{Authority, Grant, Validity};
use jiff::Timestamp;
use tools_terminal::exit::{Exit, Failure};

use super::client_file::keep_client_file;
use super::ports::{Ports, free_addresses};

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

/// The environment: the trust domain of every certificate.
const ENVIRONMENT: &str = "holdfast.local";

/// The name of the archive.
const ARCHIVE: &str = "local";

/// The validity of certificates that are issued at every start.
const DAYS: u64 = 90;

/// The validity of the authority.
const AUTHORITY_DAYS: u64 = 20 * 365;

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
    pub(crate) fn settings(&self, part: &str) -> PathBuf {
        self.data.join("settings").join(format!("{part}.toml"))
    }

    /// Returns the directory of the process ids of the parts, when each is a process.
    pub(crate) fn run(&self) -> PathBuf {
        self.data.join("run")
    }

    /// Returns the client file.
    pub(crate) fn client_file(&self) -> PathBuf {
        self.data.join("client.toml")
    }

    /// Returns the directory of the volume of a replica.
    pub(crate) fn volume(&self, replica: &str) -> PathBuf {
        self.data.join(replica).join("volume")
    }

    /// Returns the page that shows the latest capture of a URL; without pages for people, the capture itself.
    pub(crate) fn shown(&self, url: &str) -> String {
        match &self.web {
            Some(web) => format!("{web}/replay/all/{url}"),
            None => format!("{}/all/{url}", self.replay),
        }
    }

    /// Returns the first words to a person.
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
            "repository  {}\nindex       {}\n{pages}replay      {}/all/\n{proxy}replicas    {}; {CHECKSUM_REPLICA} (checksums only)\ndata        {}\nclient file {}\nStore with `holdfast store FILE...`; stop with Ctrl-C.",
            self.repository,
            self.index,
            self.replay,
            REPLICAS.join(", "),
            self.data.display(),
            self.client_file().display()
        )
    }
}

/// Makes what is missing in the data directory. The parts of a new archive listen on free ports from `first_port` on,
/// if it is given.
pub(crate) fn prepare(
    data: &Path,
    first_port: Option<u16>,
    now: Timestamp,
) -> Result<PreparedArchive, Failure> {
    let marker = data.join("up.json");
    make(data)?;
    let data = &data
        .canonicalize()
        .map_err(|error| Failure::unreadable(data, &error))?;
    let is_new = state(&marker)?.is_none();
    let ports = first_port.map_or_else(|| Ports::for_directory(data), Ports::starting_at);
    if is_new {
        refuse_strangers(data)?;
    } else if first_port.is_some() {
        return Err(has_ports(data));
    }
    let checksums = data.join("settings").join(format!("{CHECKSUM_PART}.toml"));
    if !is_new && state(&checksums)?.is_none() {
        return Err(too_old(data));
    }
    for name in DIRECTORIES {
        make(&data.join(name))?;
    }
    let key = signing_key(data)?;
    trust_file(data, &key)?;
    certificates(data, now)?;
    if is_new {
        settings_files(data, &ports)?;
        for replica in REPLICAS {
            volume(data, replica)?;
        }
        checksum_replica(data)?;
        crate::commands::parts::init_admin(&data.join("repository"))?;
        replace(&marker, b"{\"format\":\"holdfast-up/1\"}\n").map_err(|error| disk(&error))?;
    }
    let repository: archive_repository::Settings =
        crate::commands::parts::load(&data.join("settings/repository.toml"), &[])?;
    // A directory of before there was an index gets one.
    if state(&data.join("settings").join("index.toml"))?.is_none() {
        index_settings(data, &ports, &repository.rpc.listen)?;
    }
    let index: index_server::Settings =
        crate::commands::parts::load(&data.join("settings/index.toml"), &[])?;
    if state(&data.join("settings").join("viewer.toml"))?.is_none() {
        viewer_settings(data, &ports, [&repository.rpc.listen, &index.rpc.listen])?;
    }
    add_listeners(data, &ports)?;
    let viewer: viewer_web::Settings =
        crate::commands::parts::load(&data.join("settings/viewer.toml"), &[])?;
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
    for entry in directory::list(data).map_err(|error| disk(&error))? {
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

/// Returns the refusal of a directory without a checksum replica: files that were stored into two replicas would not be
/// in the third, and settings are not ours to change.
fn too_old(data: &Path) -> Failure {
    Failure::new(
        Exit::Settings,
        format!(
            "{} was made before archives had a checksum replica: it has no settings/{CHECKSUM_PART}.toml; name an \
             empty directory with --data, or start its parts one by one",
            data.display()
        ),
    )
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

fn signing_key(data: &Path) -> Result<SigningKey, Failure> {
    let path = data.join("signing.key");
    if let Some(pem) = secret_state(&path)? {
        let key = SigningKey::from_pem(&String::from_utf8_lossy(&pem));
        return key
            .map_err(|error| Failure::new(Exit::Settings, format!("{}: {error}", path.display())));
    }
    let key = SigningKey::from_seed(
        Chance::system()
            .bytes()
            .map_err(|error| Failure::failed(error.to_string()))?,
    );
    let pem = key
        .to_pem()
        .map_err(|error| Failure::failed(error.to_string()))?;
    replace_secret(&path, pem.as_bytes()).map_err(|error| disk(&error))?;
    Ok(key)
}

fn trust_file(data: &Path, key: &SigningKey) -> Result<(), Failure> {
    let path = data.join("trust.json");
    if state(&path)?.is_some() {
        return Ok(());
    }
    let trusted = TrustedKey {
        archive: ARCHIVE.to_owned(),
        public_key: key.public_key(),
        from: Timestamp::UNIX_EPOCH,
        until: None,
    };
    let text = TrustFile::new(vec![trusted]).and_then(|trust| trust.to_json());
    let text = text.map_err(|error| Failure::failed(error.to_string()))?;
    replace(&path, text.as_bytes()).map_err(|error| disk(&error))
}

/// Issues a certificate for every part and every person of the default set-up.
fn certificates(data: &Path, now: Timestamp) -> Result<(), Failure> {
    let pki = data.join("pki");
    let failed = |error: archive_rpc::PkiError| Failure::new(Exit::Settings, error.to_string());
    let validity = |days: u64| Validity {
        // A clock that was set back a little must not make a fresh certificate invalid.
        not_before: std::time::SystemTime::from(now) - Duration::from_hours(1),
        not_after: std::time::SystemTime::from(now) + Duration::from_hours(24 * days),
    };
    let (certificate, secret) = (pki.join("authority.pem"), pki.join("authority.key"));
    let authority = if let (Some(certificate), Some(key)) =
        (state(&certificate)?, secret_state(&secret)?)
    {
        Authority::from_pem(
            &String::from_utf8_lossy(&certificate),
            &String::from_utf8_lossy(&key),
        )
        .map_err(failed)?
    } else {
        let authority = Authority::create(ENVIRONMENT, validity(AUTHORITY_DAYS)).map_err(failed)?;
        replace_secret(&secret, authority.key().as_bytes()).map_err(|error| disk(&error))?;
        replace(&certificate, authority.certificate().as_bytes()).map_err(|error| disk(&error))?;
        authority
    };
    let revoked = pki.join("revoked.pem");
    if state(&revoked)?.is_none() {
        let days = validity(AUTHORITY_DAYS);
        let none = authority.revoke(None, &[], now.into(), days.not_after);
        let none = none.map_err(failed)?;
        replace(&revoked, none.as_bytes()).map_err(|error| disk(&error))?;
    }
    let mut identities: Vec<(String, Vec<String>)> = vec![
        (
            "repository".to_owned(),
            vec![format!("repository/{ARCHIVE}")],
        ),
        (INDEX.to_owned(), vec![format!("index/{ARCHIVE}")]),
        (VIEWER.to_owned(), vec![format!("viewer/{ARCHIVE}")]),
        (
            "default".to_owned(),
            ["harvester", "researcher", "officer", "operator"]
                .iter()
                .map(|role| format!("{role}/local"))
                .collect(),
        ),
        (
            "custodian-1".to_owned(),
            vec!["custodian/custodian-1".to_owned()],
        ),
        (
            "custodian-2".to_owned(),
            vec!["custodian/custodian-2".to_owned()],
        ),
    ];
    for replica in REPLICAS {
        identities.push((
            format!("monitor-{replica}"),
            vec![format!("monitor/{replica}")],
        ));
        identities.push((
            format!("bitarchive-{replica}"),
            vec![format!("node/{replica}-1")],
        ));
    }
    identities.push((
        CHECKSUM_PART.to_owned(),
        vec![
            format!("monitor/{CHECKSUM_REPLICA}"),
            format!("node/{CHECKSUM_REPLICA}-1"),
        ],
    ));
    for (file, grants) in identities {
        let grants: Vec<Grant> = grants
            .iter()
            .map(|grant| {
                grant
                    .parse()
                    .map_err(|error: archive_rpc::InvalidGrant| Failure::failed(error.to_string()))
            })
            .collect::<Result<_, _>>()?;
        let issued = authority
            .issue(&grants, &["127.0.0.1", "localhost"], validity(DAYS))
            .map_err(failed)?;
        replace_secret(&pki.join(format!("{file}.key")), issued.key.as_bytes())
            .map_err(|error| disk(&error))?;
        replace(
            &pki.join(format!("{file}.pem")),
            issued.certificate.as_bytes(),
        )
        .map_err(|error| disk(&error))?;
    }
    Ok(())
}

/// Returns the section `[rpc]` of a part.
fn rpc_section(data: &Path, part: &str, address: &str) -> String {
    let shown = data.display();
    format!(
        "[rpc]\nlisten = \"{address}\"\ncertificate = \"{shown}/pki/{part}.pem\"\nkey = \"{shown}/pki/{part}.key\"\n\
         authorities = \"{shown}/pki/authority.pem\"\nrevoked = \"{shown}/pki/revoked.pem\"\n\n"
    )
}

/// Chooses addresses for a part that this directory did not have before: free ones that no other part of it has.
fn later_addresses<const N: usize>(data: &Path, ports: &Ports) -> Result<[String; N], Failure> {
    let mut taken = String::new();
    let settings = data.join("settings");
    for entry in directory::list(&settings).map_err(|error| disk(&error))? {
        let text = state(&settings.join(&entry.name))?.unwrap_or_default();
        taken.push_str(&String::from_utf8_lossy(&text));
    }
    let candidates: [String; 16] = free_addresses(ports)?;
    let is_free = |address: &String| !taken.contains(&format!("\"{address}\""));
    let found: Vec<String> = candidates.into_iter().filter(is_free).take(N).collect();
    found.try_into().map_err(|found: Vec<_>| {
        Failure::failed(format!(
            "there are {} free ports on 127.0.0.1, and {N} are needed",
            found.len()
        ))
    })
}

/// Writes the settings file of the index.
fn index_settings(data: &Path, ports: &Ports, repository: &str) -> Result<(), Failure> {
    let [address] = later_addresses(data, ports)?;
    let shown = data.display();
    let text = format!(
        "{}[index]\ndata = \"{shown}/{INDEX}/captures\"\nrepository = \"{repository}\"\ntrust = \"{shown}/trust.json\"\n",
        rpc_section(data, INDEX, &address)
    );
    write_settings(data, INDEX, &text)
}

/// Writes the settings file of the viewer.
fn viewer_settings(data: &Path, ports: &Ports, peers: [&str; 2]) -> Result<(), Failure> {
    let [address, replay, web, proxy] = later_addresses(data, ports)?;
    let text = viewer_file(data, peers, [&address, &replay]);
    let (web, proxy) = (pages_section(&web), proxy_section(data, &proxy));
    write_settings(data, VIEWER, &format!("{text}{web}{proxy}"))
}

/// Returns the settings of a viewer without pages and proxy, as earlier builds have written them.
fn viewer_file(data: &Path, [repository, index]: [&str; 2], listen: [&str; 2]) -> String {
    let shown = data.display();
    let [address, replay] = listen;
    format!(
        "{}[viewer]\nrepository = \"{repository}\"\nindex = \"{index}\"\ntrust = \"{shown}/trust.json\"\n\n\
         [replay]\nlisten = \"{replay}\"\n",
        rpc_section(data, VIEWER, address)
    )
}

/// Returns the section of the pages. They are on another host than replay: ports do not part cookies.
fn pages_section(address: &str) -> String {
    let url = address.replace("127.0.0.1", "localhost");
    format!("\n[web]\nlisten = \"{address}\"\nurl = \"http://{url}\"\n")
}

/// Returns the section `[proxy]` of the viewer.
fn proxy_section(data: &Path, address: &str) -> String {
    let shown = data.display();
    format!("\n[proxy]\nlisten = \"{address}\"\ndata = \"{shown}/proxy\"\n")
}

/// Adds the pages and the proxy to settings of before there were any, if the file is as it was written.
fn add_listeners(data: &Path, ports: &Ports) -> Result<(), Failure> {
    let path = data.join("settings").join(format!("{VIEWER}.toml"));
    let viewer: viewer_web::Settings = crate::commands::parts::load(&path, &[])?;
    if viewer.web.is_some() && viewer.proxy.is_some() {
        return Ok(());
    }
    let (peers, replay) = (&viewer.viewer, viewer.replay.listen.to_string());
    let peers = [peers.repository.as_str(), peers.index.as_str()];
    let first = viewer_file(data, peers, [viewer.rpc.listen.as_str(), replay.as_str()]);
    let web = viewer.web.map(|web| web.listen.to_string());
    let section = web.as_deref().map(pages_section).unwrap_or_default();
    let written = settings_text(&format!("{first}{section}"));
    if state(&path)?.unwrap_or_default() != written.as_bytes() {
        return Ok(());
    }
    let [new_web, proxy] = later_addresses(data, ports)?;
    let pages = pages_section(&web.unwrap_or(new_web));
    let proxy = proxy_section(data, &proxy);
    write_settings(data, VIEWER, &format!("{first}{pages}{proxy}"))
}

/// Writes a settings file for each part, on ports that are free now.
fn settings_files(data: &Path, ports: &Ports) -> Result<(), Failure> {
    let shown = data.display();
    let rpc = |part: &str, address: &str| rpc_section(data, part, address);
    let [
        repository,
        monitor_one,
        node_one,
        monitor_two,
        node_two,
        checksums,
    ] = free_addresses(ports)?;
    let mut replicas = Vec::new();
    for (replica, monitor, node) in [
        ("one", &monitor_one, &node_one),
        ("two", &monitor_two, &node_two),
    ] {
        let part = format!("monitor-{replica}");
        let text = format!(
            "{}[monitor]\nreplica = \"{replica}\"\n",
            rpc(&part, monitor)
        );
        write_settings(data, &part, &text)?;
        let part = format!("bitarchive-{replica}");
        let text = format!(
            "{}[bitarchive]\nnode = \"{replica}-1\"\nreplica = \"{replica}\"\ndata = \"{shown}/{replica}/node\"\n\
             volumes = [\"{shown}/{replica}/volume\"]\nreserve = \"500 MB\"\ntrust = \"{shown}/trust.json\"\n\
             monitor = \"{monitor}\"\n",
            rpc(&part, node)
        );
        write_settings(data, &part, &text)?;
        replicas.push(format!(
            "\n[[replica]]\nid = \"{replica}\"\nkind = \"bitarchive\"\nrequired = true\nmonitor = \"{monitor}\"\n"
        ));
    }
    let text = format!(
        "{}[checksum_replica]\nnode = \"{CHECKSUM_REPLICA}-1\"\nreplica = \"{CHECKSUM_REPLICA}\"\n\
         data = \"{shown}/{CHECKSUM_REPLICA}\"\ntrust = \"{shown}/trust.json\"\n",
        rpc(CHECKSUM_PART, &checksums)
    );
    write_settings(data, CHECKSUM_PART, &text)?;
    replicas.push(format!(
        "\n[[replica]]\nid = \"{CHECKSUM_REPLICA}\"\nkind = \"checksum\"\nrequired = true\nmonitor = \"{checksums}\"\n"
    ));
    let text = format!(
        "{}[repository]\narchive = \"{ARCHIVE}\"\ndata = \"{shown}/repository\"\nsigning_key = \"{shown}/signing.key\"\n\
         trust = \"{shown}/trust.json\"\n{}",
        rpc("repository", &repository),
        replicas.concat()
    );
    write_settings(data, "repository", &text)
}

fn settings_text(text: &str) -> String {
    format!(
        "# The settings of this part. Written once by `holdfast up`; yours from then on.\n\n{text}"
    )
}

fn write_settings(data: &Path, part: &str, text: &str) -> Result<(), Failure> {
    let text = settings_text(text);
    replace(
        &data.join("settings").join(format!("{part}.toml")),
        text.as_bytes(),
    )
    .map_err(|error| disk(&error))
}

fn volume(data: &Path, replica: &str) -> Result<(), Failure> {
    let path = data.join(replica).join("volume");
    make(&path)?;
    let invalid = |error: archive_model::InvalidId| Failure::failed(error.to_string());
    let node = NodeId::new(&format!("{replica}-1")).map_err(invalid)?;
    let id = ReplicaId::new(replica).map_err(invalid)?;
    let own = data.join(replica).join("node");
    let paths = [path.clone()];
    let failed = |error: archive_bitarchive::VolumesError| Failure::failed(error.to_string());
    let volumes = Volumes::open(&node, &id, &own, &paths).map_err(failed)?;
    if volumes.all().iter().all(|volume| volume.id.is_none()) {
        let random: [u8; 16] = Chance::system()
            .bytes()
            .map_err(|error| Failure::failed(error.to_string()))?;
        volumes
            .init(
                &path,
                &VolumeId::new(&hex::encode(random)).map_err(invalid)?,
            )
            .map_err(failed)?;
    }
    Ok(())
}

fn checksum_replica(data: &Path) -> Result<(), Failure> {
    let invalid = |error: archive_model::InvalidId| Failure::failed(error.to_string());
    let node = NodeId::new(&format!("{CHECKSUM_REPLICA}-1")).map_err(invalid)?;
    let id = ReplicaId::new(CHECKSUM_REPLICA).map_err(invalid)?;
    ChecksumTable::init(&data.join(CHECKSUM_REPLICA), &node, &id)
        .map_err(|error| Failure::failed(error.to_string()))
}

fn make(path: &Path) -> Result<(), Failure> {
    directory::make(path).map_err(|error| disk(&error))
}

fn state(path: &Path) -> Result<Option<Vec<u8>>, Failure> {
    read_state(path).map_err(|error| disk(&error))
}

fn secret_state(path: &Path) -> Result<Option<Vec<u8>>, Failure> {
    read_secret(path).map_err(|error| disk(&error))
}

fn disk(error: &DiskError) -> Failure {
    Failure::failed(error.to_string())
}

#[cfg(test)]
mod tests {
    use archive_daemon::Clock;
    use testing::PortBlock;

    use super::*;

    /// Fails if a new archive takes other ports than those it is given, or an old one is said to have moved.
    #[test]
    fn first_port_is_for_new_archives() {
        let directory = tempfile::tempdir().unwrap();
        let (block, now) = (PortBlock::claim(), Clock::system().now());
        let prepared = prepare(directory.path(), Some(block.first()), now).unwrap();
        let repository = format!("127.0.0.1:{}", block.first());
        assert_eq!(prepared.repository, repository);
        let settings = directory::list(&directory.path().join("settings")).unwrap();
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

        let refused = prepare(directory.path(), Some(12_000), now).unwrap_err();
        assert!(refused.to_string().contains("keeps its ports"), "{refused}");
        let again = prepare(directory.path(), None, now).unwrap();
        assert_eq!(again.repository, repository);
    }
}
