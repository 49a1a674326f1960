//! A place with a client file, and the executable run in it.

use std::fs::Permissions;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::world::{ServedArchive, trust};

pub struct Place {
    pub directory: tempfile::TempDir,
    pub world: ServedArchive,
}

/// The exit code and the output of a run.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Ran {
    fn new(output: Output) -> Self {
        Self {
            code: output.status.code().expect("an exit code"),
            out: String::from_utf8(output.stdout).expect("text"),
            err: String::from_utf8(output.stderr).expect("text"),
        }
    }

    /// Returns the one document on stdout.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Expects that the command line was wrong; clap says so in several lines.
    #[track_caller]
    pub fn usage(self) {
        assert_eq!((self.code, self.out.as_str()), (2, ""), "{self:?}");
        assert!(!self.err.is_empty());
    }

    #[track_caller]
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:?}");
        assert!(!self.err.contains("panicked"), "{self:?}");
        for line in self.err.lines() {
            assert!(line.starts_with("holdfast: "), "{line:?} in {self:?}");
        }
        self
    }
}

/// Returns the executable, in no place.
pub fn executable() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_holdfast"));
    command.env_remove("HOLDFAST_CLIENT").stdin(Stdio::null());
    command
}

pub fn run(command: &mut Command) -> Ran {
    Ran::new(command.output().expect("run"))
}

impl Place {
    pub async fn new() -> Self {
        let place = Self {
            directory: tempfile::tempdir().expect("a directory"),
            world: ServedArchive::new().await,
        };
        std::fs::create_dir(place.path("holdfast-data")).expect("mkdir");
        let pem = place.world.authority.pem(&["harvester/anna"]);
        let reader = place.world.authority.pem(&["reader/ben"]);
        place.write("holdfast-data/ca.pem", pem.authorities.as_bytes());
        place.write("holdfast-data/anna.pem", pem.certificate.as_bytes());
        place.write("holdfast-data/anna.key", pem.key.as_bytes());
        place.write("holdfast-data/ben.pem", reader.certificate.as_bytes());
        place.write("holdfast-data/ben.key", reader.key.as_bytes());
        place.write(
            "holdfast-data/trust.json",
            trust().to_json().expect("json").as_bytes(),
        );
        let address = place.world.address;
        let client = format!(
            "authorities = 'ca.pem'\ntrust = 'trust.json'\ncertificate = 'anna.pem'\nkey = 'anna.key'\n\
             [endpoints]\nrepository = '{address}'\n[limits]\nattempts = 2\nfirst_pause_ms = 1\n\
             [[identity]]\nrole = 'reader'\nname = 'ben'\ncertificate = 'ben.pem'\nkey = 'ben.key'\n"
        );
        let others =
            ["officer/ora", "custodian/cus-1", "operator/opa"].map(|grant| place.identity(grant));
        let client = client + &others.concat();
        place.write("holdfast-data/client.toml", client.as_bytes());
        place
    }

    /// Writes a certificate and its key, and says how the client file names them.
    fn identity(&self, grant: &str) -> String {
        let (role, name) = grant.split_once('/').expect("a grant");
        let pem = self.world.authority.pem(&[grant]);
        self.write(
            &format!("holdfast-data/{name}.pem"),
            pem.certificate.as_bytes(),
        );
        self.write(&format!("holdfast-data/{name}.key"), pem.key.as_bytes());
        format!(
            "[[identity]]\nrole = '{role}'\nname = '{name}'\ncertificate = '{name}.pem'\nkey = '{name}.key'\n"
        )
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path(name);
        let mut file = std::fs::File::create_new(&path).expect("create");
        // As a private key is.
        file.set_permissions(Permissions::from_mode(0o600))
            .expect("chmod");
        file.write_all(bytes).expect("write");
        path
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).expect("read")
    }

    pub fn has(&self, name: impl AsRef<Path>) -> bool {
        self.directory.path().join(name).try_exists().expect("stat")
    }

    /// Runs `holdfast` with words, in this place.
    pub fn holdfast(&self, words: &[&str]) -> Ran {
        run(executable().args(words).current_dir(self.directory.path()))
    }
}
