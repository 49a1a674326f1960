//! What every part starts with: its settings, its certificate, its trust file, and its door.
//!
//! A part is a library with a type of settings and a function `serve`. The type implements [`PartSettings`]; `serve`
//! begins with [`Part::open`], opens its data, and ends with [`Part::listen`]. `holdfast settings check` calls
//! [`list_faults`], which finds what would prevent that start. So both say the same.
//!
//! Owner of: the order in which a start looks at its settings, and the words for a certificate or trust file that cannot
//! be used. Not promised: that data can be opened, or that an address is free.
//!
//! It is a crate, since clients use [`archive_rpc`] without anything of [`archive_daemon`].

#![warn(missing_docs)]

use std::io;
use std::net::SocketAddr;
use std::path::Path;

use archive_daemon::settings::{InvalidSettings, SettingsForm};
use archive_daemon::{Daemon, DaemonSettings, ReloadWorker, StartError, Tasks};
use archive_durable::read_state;
use archive_proof::TrustFile;
use archive_rpc::{
    CredentialFile, Credentials, CredentialsError, ExpectedIdentity, Identity, InvalidIdentity,
    Role, RpcLimits, RpcSettings, Services, connect_lazy,
};
use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::TcpListener;
use tonic::transport::Channel;

/// The settings of a part: everything in its settings file.
pub trait PartSettings: DeserializeOwned + Serialize + Send + Sync + 'static {
    /// The verb of `holdfast` that runs the part, which is its name in logs, too.
    const PART: &'static str;

    /// The form of the settings file.
    const FORM: SettingsForm;

    /// Returns the section `[daemon]`.
    fn daemon(&self) -> &DaemonSettings;

    /// Returns the section `[rpc]`.
    fn rpc(&self) -> &RpcSettings;

    /// Returns whom the certificate of the part has to name: each of these roles, with this name or, where there is
    /// none, with any.
    fn holders(&self) -> Vec<(Role, Option<&str>)>;

    /// Checks whether the values can work, alone and together.
    ///
    /// # Errors
    ///
    /// Fails with the first that cannot, and says what would.
    fn check_values(&self) -> Result<(), InvalidSettings>;

    /// Reads the files that the settings name beside the certificate, as the start does.
    ///
    /// # Errors
    ///
    /// Fails with the first file that cannot be used.
    fn check_files(&self, now: Timestamp) -> Result<(), StartError>;

    /// Returns what does not prevent a start, and yet is hardly meant.
    fn list_doubts(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Returns what prevents a part from starting with these settings: values, then the certificate, then other files.
/// `now` decides whether the certificate is still valid.
pub fn list_faults<S: PartSettings>(settings: &S, now: Timestamp) -> Vec<StartError> {
    let values = settings.check_values().map_err(StartError::from);
    let certificate = read_credentials(settings, now).map(drop);
    // Files are read as the values say, and only if these can work.
    let files = match &values {
        Ok(()) => settings.check_files(now),
        Err(_) => Ok(()),
    };
    let checked = [values, certificate, files];
    checked.into_iter().filter_map(Result::err).collect()
}

/// A part that starts: its certificate is that of its settings, and is exchanged when it is renewed.
#[derive(Clone, Debug)]
pub struct Part {
    name: &'static str,
    listen: String,
    daemon: Daemon,
    /// The certificate of the part, for calls to other parts.
    pub credentials: Credentials,
    /// The limits of calls, to the part and from it. Calls are cut before the tasks are, so that a client that does not
    /// read ends as a call and not as a failure.
    pub limits: RpcLimits,
}

impl Part {
    /// Checks the settings and reads the certificate. From then on, refused calls are counted, and a renewed certificate
    /// is noticed.
    ///
    /// # Errors
    ///
    /// Fails if values cannot work, or the certificate cannot be used or is somebody else's.
    pub fn open<S: PartSettings>(settings: &S, daemon: &Daemon) -> Result<Self, StartError> {
        settings.check_values()?;
        let credentials = read_credentials(settings, daemon.clock.now())?;
        let refused = daemon
            .metrics
            .count_refusals(&credentials.identity().to_string())?;
        credentials.on_refusal(move |kind| {
            kind.choose_by_kind(&refused.calls, &refused.connections)
                .inc();
        });
        let renewed = credentials.clone();
        let reload = ReloadWorker::new(daemon.clock.clone(), move |now| {
            Ok(renewed.reload_files(now.into())?)
        });
        match settings.holders().first() {
            Some((_, Some(name))) => daemon.workers.spawn_instance(name, reload)?,
            _ => daemon.workers.spawn_worker(reload)?,
        }
        let drain = settings.daemon().drain.duration();
        Ok(Self {
            name: S::PART,
            listen: settings.rpc().listen.clone(),
            daemon: daemon.clone(),
            credentials,
            limits: settings.rpc().rpc_limits(drain / 2),
        })
    }

    /// Takes the address of the part, on which nothing is answered yet. Port 0 becomes a free one.
    ///
    /// # Errors
    ///
    /// Fails if the address is taken, or is not one of this machine.
    pub async fn bind(&self) -> Result<(TcpListener, SocketAddr), StartError> {
        let bound = archive_rpc::bind_address(&self.listen).await;
        bound.map_err(|error| {
            StartError::of_setting("rpc.listen", format!("{error}; set another address"))
        })
    }

    /// Answers calls until the stop, on the address that was taken.
    pub fn serve(&self, listener: TcpListener, services: Services) {
        self.serve_within(&self.daemon.tasks, listener, services);
    }

    /// Answers calls until the stop of `tasks`, which may be earlier than that of the part.
    pub fn serve_within(&self, tasks: &Tasks, listener: TcpListener, services: Services) {
        let stopped = tasks.stop_token().cancelled_owned();
        let server =
            archive_rpc::Server::new(services, self.credentials.clone()).within_limits(self.limits);
        match listener.local_addr() {
            Ok(address) => tracing::info!(part = self.name, %address, "listening"),
            Err(error) => {
                tracing::warn!(part = self.name, %error, "listening, on an unknown address");
            }
        }
        tasks.spawn("rpc", server.serve_and_log(listener, stopped));
    }

    /// Takes the address of the part, answers calls there until the stop, and returns it.
    ///
    /// # Errors
    ///
    /// Fails like [`Part::bind`].
    pub async fn listen(&self, services: Services) -> Result<SocketAddr, StartError> {
        let (listener, address) = self.bind().await?;
        self.serve(listener, services);
        Ok(address)
    }

    /// Returns a channel to another part, which is called at its first use and again whenever it is lost.
    ///
    /// # Errors
    ///
    /// Fails if the text in `setting` is not an address.
    pub fn connect(&self, setting: &str, address: &str, role: Role) -> Result<Channel, StartError> {
        let expected = ExpectedIdentity::any_of_role(role);
        let channel = connect_lazy(address, &self.credentials, &expected, &self.limits);
        channel.map_err(|error| StartError::of_setting(setting, error))
    }
}

/// Reads the trust file that `setting` names.
///
/// # Errors
///
/// Fails if there is no such file, or it is not a trust file.
pub fn read_trust_file(setting: &str, path: &Path) -> Result<TrustFile, StartError> {
    read_setting_file(setting, path, |text| {
        TrustFile::parse(text).map_err(|error| {
            format!("{error}; take the trust file of this archive, trust.json, from its operator")
        })
    })
}

/// Reads a small file that `setting` names.
///
/// # Errors
///
/// Fails if there is no such file, or `parse` fails.
pub fn read_setting_file<T>(
    setting: &str,
    path: &Path,
    parse: impl FnOnce(&[u8]) -> Result<T, String>,
) -> Result<T, StartError> {
    let wrong = |why: String| StartError::of_setting(setting, format!("{}: {why}", path.display()));
    let text = read_state(path).map_err(|error| StartError::of_setting(setting, error))?;
    let text = text.ok_or_else(|| {
        wrong("there is no such file; put it there, or correct the path".to_owned())
    })?;
    parse(&text).map_err(wrong)
}

/// Reads the certificate of the settings, and checks whose it is. `now` decides whether it is still valid.
///
/// # Errors
///
/// Fails if a file is missing, the files do not fit together, or the certificate is somebody else's.
pub fn read_credentials<S: PartSettings>(
    settings: &S,
    now: Timestamp,
) -> Result<Credentials, StartError> {
    let credentials = settings.rpc().load_credentials(now.into());
    let credentials = credentials.map_err(|error| explain_credentials(&error))?;
    check_holder(&settings.holders(), &credentials.identity())?;
    Ok(credentials)
}

/// Names the setting that an error of the certificate is about, and says what to do.
fn explain_credentials(error: &CredentialsError) -> StartError {
    const ISSUE: &str =
        "; issue a certificate and its key with `holdfast pki issue`, or correct the path";
    let (setting, bring) = match error.wrong_file() {
        CredentialFile::Certificate => ("rpc.certificate", ISSUE),
        CredentialFile::Key => ("rpc.key", ISSUE),
        CredentialFile::Authorities => (
            "rpc.authorities",
            "; copy the authorities of the environment there, or correct the path",
        ),
        CredentialFile::Revoked => (
            "rpc.revoked",
            "; copy the list of revoked certificates there, or correct the path",
        ),
    };
    let advice = match error {
        CredentialsError::Read { source, .. } => match source.kind() {
            io::ErrorKind::NotFound => bring,
            io::ErrorKind::PermissionDenied => "; let the account of this process read it",
            // A key that others can read says itself how to protect it.
            _ => "",
        },
        CredentialsError::Identity(InvalidIdentity::Nobody) | CredentialsError::NotGood(_) => "",
        _ => bring,
    };
    StartError::of_setting(setting, format!("{error}{advice}"))
}

/// Refuses a certificate that does not name all of `holders`: other parts would not talk to it.
fn check_holder(holders: &[(Role, Option<&str>)], found: &Identity) -> Result<(), StartError> {
    let is_named = |(role, name): &(Role, Option<&str>)| match name {
        Some(name) => found.is_named(*role, name),
        None => found.has_role(*role),
    };
    if holders.iter().all(is_named) {
        return Ok(());
    }
    let wanted: Vec<String> = holders
        .iter()
        .map(|(role, name)| format!("{role}/{}", name.unwrap_or("<name>")))
        .collect();
    let wanted = wanted.join(" and ");
    Err(StartError::of_setting(
        "rpc.certificate",
        format!("the certificate is {found}, not {wanted}; issue one with `holdfast pki issue`"),
    ))
}
