//! Steps that several tests take with an archive: two persons, a killed part that comes back, what is filed and listed.

use std::collections::BTreeSet;
use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::Value;
use tools_testing::Random;

use crate::archive::{Archive, Ran, executable, files_below, wait};

/// With the copies left alone by everything but the commands of the test.
pub const BY_HAND: [&str; 2] = ["repair.automatic=off", "scrub.enabled=false"];

/// A file, a replica, and in a word what is wrong there.
pub type FiledAnomaly = (String, String, String);

pub fn filed(name: &str, replica: &str, kind: &str) -> FiledAnomaly {
    (name.to_owned(), replica.to_owned(), kind.to_owned())
}

impl Archive {
    /// Has the first custodian ask for an act; the id of the request.
    #[track_caller]
    pub fn asked(&self, words: &[&str]) -> String {
        let all = [&["--as", "custodian/custodian-1"], words].concat();
        let request = self.json(&all, 0);
        request["id"].as_str().expect("an id").to_owned()
    }

    /// Has the first custodian ask for the copy of a file to be removed, which has these bytes.
    #[track_caller]
    pub fn removal_of(&self, name: &str, replica: &str, bytes: &[u8]) -> String {
        let checksum = blake3::hash(bytes).to_hex();
        let words = ["remove", name, "--replica", replica, "--checksum"];
        self.asked(&[&words[..], &[&checksum, "--reason", "a test"]].concat())
    }

    /// Has the second custodian approve.
    pub fn approve(&self, request: &str) -> Ran {
        self.run(&["--as", "custodian/custodian-2", "approve", request])
    }

    /// Begins a command whose end somebody else waits for.
    pub fn begin(&self, words: &[&str]) -> Child {
        let mut command = executable();
        command
            .arg("--client")
            .arg(self.data().join("client.toml"))
            .args(words)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command.spawn().expect("a command")
    }

    /// Kills a part at a random moment within `span` from now, and starts it again.
    pub fn kill_within(&mut self, span: Duration, part: &str, dice: &mut Random) {
        let span = u64::try_from(span.as_micros()).expect("short");
        // Any moment is right: nothing is awaited.
        std::thread::sleep(Duration::from_micros(dice.below(span.max(1))));
        self.kill(part);
        self.restart(part);
    }

    /// Returns every anomaly that is open. Copies that could not be looked at are among them, as `unverified`.
    #[track_caller]
    pub fn filed(&self) -> BTreeSet<FiledAnomaly> {
        let ran = self.run(&["--json", "anomalies"]);
        assert!(matches!(ran.code, 0 | 1), "{ran:#?}");
        let document = ran.json();
        let anomalies = document["anomalies"].as_array().expect("anomalies");
        let text = |one: &Value, key: &str| one[key].as_str().expect("text").to_owned();
        let filed = anomalies
            .iter()
            .map(|one| (text(one, "file"), text(one, "replica"), text(one, "kind")));
        filed.collect()
    }

    /// Returns the listing of a replica, as `b3sum` would write it, whatever is wrong with it.
    #[track_caller]
    pub fn listed(&self, replica: &str) -> String {
        let ran = self.run(&["list", "--replica", replica, "--checksums"]);
        assert!(matches!(ran.code, 0 | 1), "{ran:#?}");
        ran.out
    }

    /// Checks until these and no others are wrong, and everybody was heard.
    #[track_caller]
    pub fn check_until(&self, kind: &str, what: &str, wrong: &BTreeSet<FiledAnomaly>) {
        self.check_until_as(kind, what, || wrong.clone());
    }

    /// Checks until what is wrong is what `wrong` says, which is asked anew before each check, as it may be mended
    /// meanwhile.
    #[track_caller]
    pub fn check_until_as(
        &self,
        kind: &str,
        what: &str,
        wrong: impl Fn() -> BTreeSet<FiledAnomaly>,
    ) {
        wait(what, || {
            let wrong = wrong();
            let ran = self.run(&["check", kind]);
            let filed = self.filed();
            if filed == wrong && ran.code == i32::from(!wrong.is_empty()) {
                Ok(())
            } else {
                Err(format!("filed {filed:?} and not {wrong:?}: {ran:#?}"))
            }
        });
    }

    /// Waits until every node answers by itself: a monitor takes one for alive that was killed a moment ago.
    #[track_caller]
    pub fn wait_for_answers(&mut self) {
        self.wait_until_alive();
        self.until(&["attic", "list"], 0);
    }

    /// Nothing lies under a final name that is not as long as what was stored under it.
    #[track_caller]
    pub fn no_file_is_short(&self, size: impl Fn(&str) -> usize) {
        for replica in ["one", "two"] {
            for path in files_below(&self.volume(replica)) {
                let name = path.file_name().expect("a name").to_string_lossy();
                // What was taken into the attic since it was listed is not under its name.
                if let Ok(metadata) = std::fs::metadata(&path) {
                    assert_eq!(
                        metadata.len(),
                        size(&name) as u64,
                        "{name} in {replica} is short"
                    );
                }
            }
        }
    }

    /// Returns the parts of mends that lie in a volume.
    pub fn mends(&self, replica: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.volume(replica).join("incoming")).expect("list");
        let names = entries.map(|entry| entry.expect("an entry").file_name());
        names
            .map(|name| name.to_string_lossy().into_owned())
            .filter(|name| name.contains(".mend"))
            .collect()
    }
}
