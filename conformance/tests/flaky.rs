//! `tools/flaky.sh`: which failed tests are run again, and what is said of those that then pass.
//!
//! Runs the real cargo on two packages made for this test. Not tested here: what `tools/test` does with the counts.

use std::fs;
use std::process::Command;

use archive_durable::{directory, replace_file};
use conformance::tree;
use tempfile::TempDir;

/// A library with a test of each kind: the first passes, the second fails always, the third fails the first time.
const LIBRARY: &str = r#"//! Tests of three kinds.
#[cfg(test)]
mod tests {
    #[test]
    fn always_passes() {}

    #[test]
    fn always_fails() {
        panic!("as ever");
    }

    #[test]
    fn passes_the_second_time() {
        let was_here = std::fs::exists("was-here").unwrap();
        std::fs::write("was-here", "").unwrap();
        println!("seen the first time");
        assert!(was_here);
    }
}
"#;

/// An executable that ends before it can say which test failed.
const CRASH: &str = r"//! A test that ends its process.
#[test]
fn crashes() {
    std::process::abort();
}
";

/// Fails if a failed test is not run again, if one that fails again or a crash is excused, or if the first output of a
/// flaky test is lost.
#[test]
fn only_tests_that_pass_alone_are_flaky() {
    let workspace = TempDir::new().unwrap();
    let write = |path: &str, text: &str| {
        let path = workspace.path().join(path);
        directory::make_directory(path.parent().unwrap()).unwrap();
        replace_file(&path, text.as_bytes()).unwrap();
    };
    write(
        "Cargo.toml",
        "[workspace]\nresolver = \"3\"\nmembers = [\"crash\", \"kinds\"]\n",
    );
    for (package, text) in [("crash", CRASH), ("kinds", LIBRARY)] {
        let manifest = "version = \"0.1.0\"\nedition = \"2024\"\n";
        write(
            &format!("{package}/Cargo.toml"),
            &format!("[package]\nname = \"{package}\"\n{manifest}"),
        );
        write(&format!("{package}/src/lib.rs"), text);
    }
    let script = "source \"$FLAKY\"; cargo generate-lockfile --offline --quiet; \
                  cargo test --locked --offline --no-fail-fast >whole 2>&1; \
                  failed_tests whole | cut -f 1,3; rerun_failed whole >again; \
                  echo \"$flaky flaky, $failing failing\"; cat again";
    let output = Command::new("bash")
        .args(["-c", script])
        .current_dir(workspace.path())
        .env("FLAKY", tree::root().join("tools/flaky.sh"))
        .env("CARGO_TARGET_DIR", workspace.path().join("target"))
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let whole = fs::read_to_string(workspace.path().join("whole")).unwrap_or_default();
    let expected = "crash\t?\n\
                    kinds\ttests::always_fails\n\
                    kinds\ttests::passes_the_second_time\n\
                    1 flaky, 2 failing\n";
    assert!(said.starts_with(expected), "{said}\n{whole}");
    let (_, flaky) = said.split_once("\nFLAKY: ").unwrap();
    assert!(
        flaky.starts_with("tests::passes_the_second_time\n")
            && flaky.contains("seen the first time"),
        "{said}"
    );
}
