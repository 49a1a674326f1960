//! A test that mounts file systems runs again in a process with mounts of its own, so that nothing is left behind.
//!
//! Needs root. Where it cannot run, it says so: a test that did not run has not passed.

use std::io::Write as _;
use std::process::Command;

/// Set in the process that has its own mounts.
const INSIDE: &str = "HOLDFAST_HAS_OWN_MOUNTS";

/// Runs the test of this path again where it may mount, and says whether this is that run.
pub(crate) fn has_own_mounts(test: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    if let Some(why) = skip_reason() {
        tools_testing::skipped(&why);
        return false;
    }
    let output = Command::new("unshare")
        .args(["--mount", "--propagation", "private"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "--nocapture", test])
        .env(INSIDE, "yes")
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    assert!(output.status.success(), "{}", said.concat());
    assert!(
        said[0].contains("1 passed"),
        "it did not run: {}",
        said.concat()
    );
    std::io::stdout()
        .write_all(said.concat().as_bytes())
        .unwrap();
    false
}

fn skip_reason() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("only root can mount".to_owned());
    }
    let place = tempfile::tempdir().unwrap();
    let image = place.path().join("image");
    let script = "truncate -s 8M \"$1\" && mkfs.ext4 -q \"$1\" && mount -o loop \"$1\" \"$2\" && umount \"$2\"";
    let output = Command::new("unshare")
        .args(["--mount", "--propagation", "private"])
        .args(["sh", "-c", script, "sh"])
        .args([image.as_path(), place.path()])
        .output()
        .unwrap();
    (!output.status.success()).then(|| {
        let why = String::from_utf8_lossy(&output.stderr).into_owned();
        format!("no file system can be mounted here: {}", why.trim())
    })
}

/// Runs a tool that has to succeed.
pub(crate) fn run(program: &str, arguments: &[&str]) {
    let output = Command::new(program).args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {said}");
}
