//! Help, versions and mistakes on the command line.

use crate::holdfast::{executable, run};

/// Returns the verbs that a help text lists.
fn verbs(help: &str) -> Vec<String> {
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    commands
        .take_while(|line| !line.is_empty())
        // A longer help goes on in lines that begin further right.
        .filter(|line| !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|verb| *verb != "help")
        .map(str::to_owned)
        .collect()
}

fn walk(words: &[String]) -> usize {
    let ran = run(executable().args(words).arg("--help")).expect(0);
    assert!(ran.err.is_empty(), "{ran:?}");
    assert!(ran.out.contains("Usage: holdfast"), "{ran:?}");
    let short = run(executable().args(words).arg("-h")).expect(0);
    assert!(short.out.contains("Usage: holdfast"));
    let deeper = verbs(&short.out).into_iter().map(|verb| {
        let words: Vec<String> = words.iter().cloned().chain([verb]).collect();
        walk(&words)
    });
    1 + deeper.sum::<usize>()
}

/// Fails if a verb that the help lists has no help itself, or `--help` does not explain the exit codes.
#[test]
fn every_command_has_help_that_runs() {
    let count = walk(&[]);
    assert!(count > 80, "only {count} verbs were found in the lists");
    let root = run(executable().arg("--help")).expect(0);
    assert!(root.out.contains("Exit codes: 0 done"), "{root:?}");
    let version = run(executable().arg("--version")).expect(0);
    assert_eq!(
        version.out.trim(),
        format!("holdfast {}", env!("CARGO_PKG_VERSION"))
    );
}

/// Fails if a mistake on the command line ends with another code than 2, or writes to stdout where data are expected.
#[test]
fn a_wrong_command_line_is_two() {
    let wrong: [&[&str]; 8] = [
        &[],
        &["frobnicate"],
        &["store"],
        &["store", "a", "--jobs", "0"],
        &["store", "a", "--checksums", "x", "--no-digest"],
        &["get", "a", "--range", "5-1"],
        &["get", "a", "--replica", "No 1"],
        &["stat", "a", "--as", "king"],
    ];
    for words in wrong {
        let ran = run(executable().args(words));
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{words:?}: {ran:?}");
        assert!(!ran.err.is_empty());
    }
    let ran = run(executable().args(["list", "--checksums", "--json"]));
    assert_eq!(ran.code, 2, "{ran:?}");
    assert_eq!(ran.json()["error"]["class"], "usage");
}

/// Fails if a command without a client file does not say how to get one, or does not name the file that it looked for.
#[test]
fn missing_client_file_error_says_remedy() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = executable();
    let ran = run(command.args(["list"]).current_dir(directory.path())).expect(3);
    for hint in [
        "client.toml",
        "holdfast up",
        "operator",
        "--client",
        "HOLDFAST_CLIENT",
    ] {
        assert!(ran.err.contains(hint), "{hint}: {ran:?}");
    }
    assert_eq!(ran.out, "");
    let ran = run(executable()
        .args(["list", "--json"])
        .env("HOLDFAST_CLIENT", "/none/client.toml"))
    .expect(3);
    assert_eq!(ran.json()["error"]["class"], "settings");
    assert!(ran.err.contains("/none/client.toml"), "{ran:?}");
}
