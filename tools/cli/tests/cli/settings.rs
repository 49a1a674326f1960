//! `settings`: files that are printed and checked, without starting anything.

use std::io::Write;
use std::path::Path;

use crate::holdfast::{executable, run};

const RPC: &str = "[rpc]\nlisten = \"127.0.0.1:0\"\ncertificate = \"c.pem\"\nkey = \"k.pem\"\nauthorities = \"a.pem\"\n";

fn write(directory: &Path, name: &str, text: &str) {
    let mut file = std::fs::File::create_new(directory.join(name)).expect("create");
    file.write_all(text.as_bytes()).expect("write");
}

/// Fails if settings that were printed, with comments or without, are not accepted as a settings file, or do not show
/// what `--set` changed.
#[test]
fn valid_settings_pass_and_print_effective_values() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    write(
        at,
        "m.toml",
        &format!("{RPC}[monitor]\nreplica = \"one\"\n"),
    );
    write(
        at,
        "c.toml",
        "authorities = 'a'\ntrust = 't'\ncertificate = 'c'\nkey = 'k'\n[endpoints]\nrepository = 'h:1'\n",
    );
    let holdfast = |words: &[&str]| run(executable().args(words).current_dir(at));
    let ran = holdfast(&["settings", "check", "--without-files", "m.toml", "c.toml"]).expect(0);
    assert_eq!(ran.out, "m.toml: good\nc.toml: good\n");
    let ran = holdfast(&["settings", "print", "m.toml"]).expect(0);
    assert!(ran.out.contains("silent_after = \"10 s\""), "{ran:?}");
    assert!(!ran.out.contains('#'), "{ran:?}");
    write(at, "printed.toml", &ran.out);
    holdfast(&["settings", "check", "--without-files", "printed.toml"]).expect(0);
    let ran = holdfast(&[
        "settings",
        "print",
        "--documented",
        "m.toml",
        "--set",
        "monitor.silent_after=20 s",
    ])
    .expect(0);
    assert!(
        ran.out
            .contains("node may have. At least twice `heartbeat`.\nsilent_after = \"20 s\"\n"),
        "{ran:?}"
    );
    assert!(ran.out.contains("# revoked is not set"), "{ran:?}");
    write(at, "documented.toml", &ran.out);
    holdfast(&["settings", "check", "--without-files", "documented.toml"]).expect(0);
    let ran = holdfast(&["settings", "print", "--documented", "c.toml"]).expect(0);
    assert!(
        ran.out.contains("[limits]") && ran.out.contains("attempts = 6"),
        "{ran:?}"
    );
    let said = holdfast(&["settings", "print", "c.toml", "--json"]).expect(0);
    assert_eq!(said.json()["part"], "client");
}

/// Fails if `settings check` ends at the first mistake, names a wrong line, or lets a value pass that makes no sense.
#[test]
fn every_settings_error_is_reported_with_its_line() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let text = format!(
        "{RPC}limits = 1\n[monitor]\nreplica = \"No 1\"\nheartbeat = \"soon\"\nidel = \"3 s\"\n"
    );
    write(at, "m.toml", &text);
    write(
        at,
        "sense.toml",
        &format!("{RPC}[monitor]\nreplica = \"one\"\nfind = \"0 s\"\n"),
    );
    write(at, "none.toml", RPC);
    write(at, "both.toml", "[monitor]\n[repository]\n");
    write(at, "torn.toml", "[monitor\nreplica = \n");
    let holdfast = |words: &[&str]| run(executable().args(words).current_dir(at));
    let ran = holdfast(&["settings", "check", "m.toml"]).expect(3);
    for wanted in [
        "m.toml:6: unknown key `rpc.limits`",
        "m.toml:8: `monitor.replica`",
        "m.toml:9: `monitor.heartbeat`",
        "m.toml:10: unknown key `monitor.idel`; did you mean `idle`?",
    ] {
        assert!(ran.out.contains(wanted), "{wanted} in {}", ran.out);
    }
    assert_eq!(ran.out.lines().count(), 4, "{ran:?}");
    let ran = holdfast(&["settings", "check", "--without-files", "sense.toml"]).expect(3);
    assert_eq!(ran.out, "sense.toml: monitor.find must be longer than 0\n");
    let ran = holdfast(&["settings", "check", "none.toml", "both.toml"]).expect(3);
    assert!(
        ran.out.contains("it has none of") && ran.out.contains("it has several of"),
        "{ran:?}"
    );
    let ran = holdfast(&["settings", "check", "torn.toml"]).expect(3);
    assert!(ran.out.contains("torn.toml:1:"), "{ran:?}");
    holdfast(&["settings", "check", "absent.toml"]).expect(3);
    let said = holdfast(&["settings", "check", "m.toml", "--json"]).expect(3);
    let problems = said.json()["files"][0]["problems"].as_array().map(Vec::len);
    assert_eq!(problems, Some(4));
    holdfast(&["settings", "print", "m.toml"]).expect(3);
}

/// Fails if a part starts although its settings have a key that it does not know, and so ignores what an operator
/// relies on.
#[test]
fn settings_key_of_later_release_prevents_start() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let text = format!("{RPC}[monitor]\nreplica = \"one\"\nlater = \"3 s\"\n[newer]\nkey = 1\n");
    write(at, "m.toml", &text);
    let holdfast = |words: &[&str]| run(executable().args(words).current_dir(at));
    let ran = holdfast(&["monitor", "--settings", "m.toml"]).expect(3);
    assert!(ran.err.contains("unknown key `monitor.later`"), "{ran:?}");
    write(at, "n.toml", &text.replace("later = \"3 s\"\n", ""));
    let ran = holdfast(&["monitor", "--settings", "n.toml"]).expect(3);
    assert!(ran.err.contains("unknown key `newer`"), "{ran:?}");
}
