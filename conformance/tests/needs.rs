//! `tools/needs.sh`: what pip is told when a judge of the tests or benchmarks is installed.
//!
//! Runs with a pip that only repeats its arguments. Not tested here: that the packages can live together.

use std::fs;
use std::process::Command;

use conformance::tree;
use tempfile::TempDir;

/// Makes an environment of the judges whose pip repeats its arguments, and installs `pywb` there.
const SCRIPT: &str = r#"source "$NEEDS"
need_venv() { :; }
python3() {
    mkdir -p "$3/bin"
    printf '#!/bin/sh\necho "$@"\n' >"$3/bin/pip"
    chmod +x "$3/bin/pip"
}
need_python pywb
"#;

/// Fails if a new judge may take a version of a shared package that a judge which is there already cannot use.
#[test]
fn new_judge_heeds_the_ones_present() {
    let target = TempDir::new().unwrap();
    let packages = target.path().join("judges/lib/python3.11/site-packages");
    for package in ["httpbin-0.10.4", "cdxj_indexer-1.4.6", "greenlet-2.0.2"] {
        fs::create_dir_all(packages.join(format!("{package}.dist-info"))).unwrap();
    }
    let output = Command::new("bash")
        .args(["-c", SCRIPT])
        .env("NEEDS", tree::root().join("tools/needs.sh"))
        .env("CARGO_TARGET_DIR", target.path())
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let words: Vec<&str> = said.split_whitespace().collect();
    assert_eq!(words[..3], ["install", "--quiet", "pywb"], "{said}");
    assert!(words.contains(&"httpbin"), "{said}");
    assert!(words.contains(&"cdxj-indexer"), "{said}");
    assert!(!words.contains(&"fastwarc"), "{said}");
}
