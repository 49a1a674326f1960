//! The way to the archive: the client file, one's own identity, whom to trust, and the connection.
//!
//! # Errors
//!
//! Every function fails on a client file that is missing or wrong, and says what to write there; the archive itself is
//! not asked yet.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use archive_client::{
    ArchiveReader, ClientError, ClientFile, ClientLimits, Depositor, Keeper, Researcher,
};
use archive_daemon::Clock;
use archive_daemon::settings::{self, Sources};
use archive_proof::TrustFile;
use index_client::{IndexClient, IndexLimits};
use tonic::transport::Channel;

use crate::context::Global;
use crate::exit::{Exit, Failure};

/// The client file that `holdfast up` writes.
const DEFAULT: &str = "holdfast-data/client.toml";

/// A connection that is made at its first use.
#[derive(Debug)]
pub struct Session {
    channel: Channel,
    trust: Arc<TrustFile>,
    limits: ClientLimits,
    /// The connection to the index, if the client file names one.
    index: Option<Channel>,
    /// The replay listener, if the client file names one.
    replay: Option<String>,
    /// The identities of the client file, for the message to a person who was refused.
    identities: String,
}

impl Session {
    /// Reads the client file and everything that it names. Inside a runtime only.
    pub fn open(global: &Global) -> Result<Self, Failure> {
        let file = client_file(global)?;
        let now = SystemTime::from(Clock::system_clock().now());
        let credentials = file.load_credentials(global.who.as_ref(), now)?;
        let identity = credentials.identity();
        let own = identity.grants().iter().map(ToString::to_string);
        let others = file.identities.iter().map(ToString::to_string);
        let mut identities: Vec<String> = own.chain(others).collect();
        identities.sort();
        identities.dedup();
        Ok(Self {
            channel: file.connect_repository(&credentials)?,
            trust: Arc::new(file.trust_file()?),
            limits: file.limits,
            index: file.connect_index(&credentials)?,
            replay: file.endpoints.replay.clone(),
            identities: identities.join(", "),
        })
    }

    /// Returns a client that stores files.
    pub fn depositor(&self) -> Depositor {
        Depositor::new(self.channel.clone(), Arc::clone(&self.trust), self.limits)
    }

    /// Returns a client that looks after the files.
    pub fn keeper(&self) -> Keeper {
        Keeper::new(self.channel.clone(), self.limits)
    }

    /// Returns a client that runs jobs over the files.
    pub fn researcher(&self) -> Researcher {
        Researcher::new(self.channel.clone(), self.limits)
    }

    /// Returns a client that looks up captures, and looks after the index.
    pub fn index(&self) -> Result<IndexClient, Failure> {
        let channel = self.index.clone().ok_or_else(|| {
            Failure::new(
                Exit::Settings,
                "the client file names no index; add `index = \"HOST:PORT\"` to its section [endpoints]",
            )
        })?;
        let limits = IndexLimits {
            answer: self.limits.answer_limit(),
            ..IndexLimits::default()
        };
        Ok(IndexClient::new(channel, limits))
    }

    /// Returns the beginning of the addresses of the replay listener.
    pub fn replay(&self) -> Result<&str, Failure> {
        self.replay.as_deref().ok_or_else(|| {
            Failure::new(
                Exit::Settings,
                "the client file names no viewer; add `replay = \"http://HOST:PORT\"` to its section [endpoints]",
            )
        })
    }

    /// Returns the time to wait for an answer.
    pub const fn patience(&self) -> Duration {
        self.limits.answer_limit()
    }

    /// Returns the limits on the waiting of this end.
    pub const fn limits(&self) -> ClientLimits {
        self.limits
    }

    /// Returns the words for an error: a person who may not do something learns who may.
    pub fn failure(&self, error: ClientError) -> Failure {
        let refused = matches!(error, ClientError::Refused(_));
        let failure = Failure::from(error);
        if !refused {
            return failure;
        }
        let message = failure.message;
        let identities = &self.identities;
        Failure::new(
            failure.exit,
            format!("{message}: the client file has {identities}; choose one with --as ROLE/NAME"),
        )
    }

    /// Returns a client that reads files.
    pub fn reader(&self) -> ArchiveReader {
        ArchiveReader::new(self.channel.clone(), Arc::clone(&self.trust), self.limits)
    }
}

/// Finds and reads the client file; `--set` stands over what is in it. Variables `HOLDFAST__…` are settings of parts,
/// and mean nothing here.
pub fn client_file(global: &Global) -> Result<ClientFile, Failure> {
    let given = global
        .client
        .as_ref()
        .filter(|path| !path.as_os_str().is_empty());
    let path = given.cloned().unwrap_or_else(|| PathBuf::from(DEFAULT));
    let shown = path.display();
    match path.try_exists() {
        Ok(true) => {}
        Ok(false) => {
            return Err(Failure::new(
                Exit::Settings,
                format!(
                    "there is no client file {shown}; start an archive here with `holdfast up`, or get a client file \
                     from an operator and name it with --client FILE or HOLDFAST_CLIENT"
                ),
            ));
        }
        Err(error) => {
            return Err(Failure::new(
                Exit::Settings,
                format!(
                    "the client file {shown} cannot be reached: {error}; name another with --client FILE"
                ),
            ));
        }
    }
    let sources = Sources {
        file: Some(path.clone()),
        environment: Vec::new(),
        set: global.set.clone(),
    };
    let file: ClientFile = settings::load_settings(&sources)?;
    Ok(file.within_directory(path.parent().unwrap_or(Path::new(""))))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// Fails if `--set` does not win over the client file, a misspelt key of it is ignored, or a path in that file
    /// depends on the working directory.
    #[test]
    fn command_line_overrides_client_file() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(
            b"authorities = 'a'\ntrust = 't'\ncertificate = 'c'\nkey = 'k'\n[endpoints]\nrepository = 'h:1'\n",
        )
        .unwrap();
        let client = Some(file.path().to_owned());
        let set = vec![
            "endpoints.repository=other:2".to_owned(),
            "limits.attempts=9".to_owned(),
        ];
        let global = Global {
            client,
            set,
            ..Global::default()
        };
        let read = client_file(&global).unwrap();
        assert_eq!(
            (read.endpoints.repository.as_str(), read.limits.attempts),
            ("other:2", 9)
        );
        assert_eq!(read.key, file.path().parent().unwrap().join("k"));
        let misspelt = Global {
            set: vec!["limits.atempts=9".to_owned()],
            ..global
        };
        let failure = client_file(&misspelt).unwrap_err();
        assert!(
            failure.message.contains("did you mean `attempts`"),
            "{failure}"
        );
    }
}
