//! The precedence of sources, and the words of the errors.

use std::collections::BTreeMap;
use std::io::Write;

use serde::Deserialize;

use super::*;

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Example {
    name: String,
    #[serde(default)]
    scrub: Scrub,
    #[serde(default)]
    replica: Vec<Replica>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Scrub {
    full_pass: Period,
    reserve: ByteSize,
    enabled: bool,
}

impl Default for Scrub {
    fn default() -> Self {
        Self {
            full_pass: "30 d".parse().unwrap(),
            reserve: "10 GB".parse().unwrap(),
            enabled: true,
        }
    }
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Replica {
    id: String,
    #[serde(default)]
    sites: Vec<u16>,
}

fn file(bytes: &[u8]) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::with_suffix(".toml").unwrap();
    file.write_all(bytes).unwrap();
    file
}

fn with(text: &str, environment: &[(&str, &str)], set: &[&str]) -> Result<Example, String> {
    let file = file(text.as_bytes());
    let sources = Sources {
        file: Some(file.path().to_owned()),
        environment: environment
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect(),
        set: set.iter().map(|&s| s.to_owned()).collect(),
    };
    let shown = file.path().display().to_string();
    load_settings(&sources).map_err(|error| error.to_string().replace(&shown, "FILE"))
}

/// Fails if the file prevails over a variable, a variable over `--set`, or an earlier `--set` over a later one.
#[test]
fn each_source_stands_over_the_next() {
    let text = "name = 'file'\n[scrub]\nfull_pass = '1 d'\n";
    let variable = [
        ("HOLDFAST__SCRUB__FULL_PASS", "2 d"),
        ("HOME", "/root"),
        ("HOLDFAST_CLIENT", "x"),
    ];
    let full_pass = |environment: &[(&str, &str)], set: &[&str]| {
        with(text, environment, set)
            .unwrap()
            .scrub
            .full_pass
            .to_string()
    };
    assert_eq!(
        with("name = 'a'", &[], &[]).unwrap().scrub,
        Scrub::default()
    );
    assert_eq!(full_pass(&[], &[]), "1 d");
    assert_eq!(full_pass(&variable, &[]), "2 d");
    assert_eq!(full_pass(&variable, &["scrub.full_pass=3 d"]), "3 d");
    assert_eq!(
        full_pass(&variable, &["scrub.full_pass=3 d", "scrub.full_pass=4 d"]),
        "4 d"
    );
}

/// Fails if settings cannot be read without a file, or a required key that no source sets goes unnoticed.
#[test]
fn without_a_file_there_are_defaults_and_overrides() {
    let sources = Sources::from_set(["name=x"]);
    assert_eq!(
        load_settings::<Example>(&sources).unwrap().scrub,
        Scrub::default()
    );
    let missing = load_settings::<Example>(&Sources::default())
        .unwrap_err()
        .to_string();
    assert_eq!(missing, "settings: missing field `name`");
}

/// Fails if an override that is no TOML is refused, or one that is a number, list or table is read as text.
#[test]
fn override_is_read_as_toml_or_else_text() {
    let text = "name = 'a'\n[[replica]]\nid = 'one'\n[[replica]]\nid = 'two'\n";
    let set = [
        "name=no = toml",
        "scrub.enabled=false",
        "replica.1.sites=[1, 2]",
        "scrub.reserve=4096",
    ];
    let example = with(text, &[("HOLDFAST__REPLICA__0__ID", "\"7\"")], &set).unwrap();
    assert_eq!(example.name, "no = toml");
    assert!(!example.scrub.enabled);
    assert_eq!(example.scrub.reserve, ByteSize::from_bytes(4096));
    assert_eq!(example.replica[0].id, "7");
    assert_eq!(example.replica[1].sites, [1, 2]);
    let whole = with(text, &[], &["scrub={ enabled = false }", "name="]).unwrap();
    assert!(!whole.scrub.enabled && whole.name.is_empty());
}

/// Fails if a wrong or misspelt key is accepted, or the error points to another line, key or `--set`.
#[test]
fn wrong_setting_is_named_with_its_place() {
    let check = |text: &str, set: &[&str], wanted: &str| {
        let error = with(text, &[], set).unwrap_err();
        assert!(
            error.starts_with(wanted),
            "{error:?} does not begin with {wanted:?}"
        );
    };
    check(
        "nmae = 'a'",
        &[],
        "FILE:1: unknown key `nmae`; did you mean `name`?",
    );
    check(
        "name = 'a'\n\n[scrub]\nfull_pas = '1 d'",
        &[],
        "FILE:4: unknown key `scrub.full_pas`; did you mean",
    );
    check(
        "name = 'a'\n[scrub]\nzzz = 1",
        &[],
        "FILE:3: unknown key `scrub.zzz`; the keys here are full_pass, res",
    );
    check(
        "name = 'a'\n[scrubb]\n",
        &[],
        "FILE:2: unknown key `scrubb`; did you mean `scrub`?",
    );
    check(
        "name = 'a'\n[scrub]\nfull_pass = '30 q'",
        &[],
        "FILE:3: `scrub.full_pass`: `30 q` has no known unit",
    );
    check(
        "name = 'a'\n[scrub]\nfull_pass = 30",
        &[],
        "FILE:3: `scrub.full_pass`: invalid type: integer `30`, exp",
    );
    check(
        "name = 'a'\n[scrub]\nreserve = -1",
        &[],
        "FILE:3: `scrub.reserve`: invalid value: integer `-1`, expec",
    );
    check(
        "name = 7",
        &[],
        "FILE:1: `name`: invalid type: integer `7`, expected a string",
    );
    check("name = 'a'\nname = 'b'", &[], "FILE:2: duplicate key");
    check("name = 'a'\n[scrub\n", &[], "FILE:2: ");
    check(
        "name = 'a'\n[[replica]]\nid = 'one'\n[[replica]]\n",
        &[],
        "FILE:4: `replica.1`: missing field `id`",
    );
    check(
        "name = 'a'\n[[replica]]\nid = 'one'\nsites = [1,\n-2]",
        &[],
        "FILE:5: `replica \"one\".sites.1`: invalid",
    );
    check("[scrub]\n", &[], "FILE: missing field `name`");
    check(
        "name = 'a'",
        &["scrubb.x=b"],
        "--set scrubb.x=b: unknown key `scrubb`; did you mean `scrub`?",
    );
    check(
        "name = 'a'",
        &["nmae=b"],
        "--set nmae=b: unknown key `nmae`; did you mean `name`?",
    );
    check(
        "name = 'a'",
        &["scrub.enabled=yes"],
        "--set scrub.enabled=yes: `scrub.enabled`: invalid type: string",
    );
    check(
        "name = 'a'",
        &["scrub={ enabled = 1 }"],
        "--set scrub={ enabled = 1 }: `scrub`: invalid type: integer",
    );
    check(
        "name = 'a'",
        &["name.x=1"],
        "--set name.x=1: no `x` can be set below a single value",
    );
    check(
        "name = 'a'\nreplica = []",
        &["replica.0.id=b"],
        "--set replica.0.id=b: `0` picks nothing from a list",
    );
    for nonsense in ["name", "=b", "scrub.=1", "."] {
        check(
            "name = 'a'",
            &[nonsense],
            &format!("--set {nonsense}: write it as SECTION.KEY=VALUE"),
        );
    }
}

/// Fails if a misspelt variable is ignored, or the error for a wrong value does not name the variable.
#[test]
fn a_variable_is_named_when_it_is_wrong() {
    let check = |name: &str, value: &str, wanted: &str| {
        let error = with(
            "name = 'a'\n[scrub]\nfull_pass = '1 d'",
            &[(name, value)],
            &[],
        )
        .unwrap_err();
        assert!(
            error.starts_with(&format!("environment {name}: {wanted}")),
            "{error}"
        );
    };
    check(
        "HOLDFAST__SCRUB__FULL_PASS",
        "1 q",
        "`scrub.full_pass`: `1 q` has no known unit",
    );
    check(
        "HOLDFAST__SCRUB__FULPASS",
        "1 d",
        "unknown key `scrub.fulpass`; did you mean `full_pass`?",
    );
    check("HOLDFAST__SCRUB__", "1", "write it as");
    check("HOLDFAST__", "1", "write it as");
    check("HOLDFAST__scrub__enabled", "true", "write it as");
}

/// Fails if an unknown key is ignored because its type forgot `deny_unknown_fields`, or an override that was replaced
/// still counts.
#[test]
fn type_without_deny_unknown_is_read_strictly() {
    #[derive(Debug, Deserialize)]
    struct Lax {
        inner: Option<BTreeMap<String, Inner>>,
    }
    #[derive(Debug, Deserialize)]
    struct Inner {
        id: u8,
    }
    let file = file(b"[inner.a]\nid = 1\n[inner.b]\nid = 2\nsize = 3\n");
    let sources = Sources {
        file: Some(file.path().to_owned()),
        ..Sources::default()
    };
    let error = load_settings::<Lax>(&sources).unwrap_err().to_string();
    assert_eq!(
        error,
        format!("{}:5: unknown key `inner.b.size`", file.path().display())
    );
    let set = ["inner.b=[]".to_owned(), "inner.b={ id = 9 }".to_owned()].to_vec();
    assert_eq!(
        load_settings::<Lax>(&Sources { set, ..sources })
            .unwrap()
            .inner
            .unwrap()["b"]
            .id,
        9
    );
}

/// Fails if deeply nested brackets in the file or an override overflow the stack and kill the process.
#[test]
fn no_depth_of_brackets_ends_the_process() {
    let text = format!("name = {}1{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(with(&text, &[], &[]).unwrap_err().starts_with("FILE:1: "));
    // The reader of TOML refuses such an override, which therefore is a text.
    let override_too = text.replacen(" = ", "=", 1);
    assert_eq!(
        with("", &[], &[&override_too]).unwrap().name,
        override_too[5..]
    );
}

/// Fails if settings that are printed are read back as others, or a period or size is printed in another unit.
#[test]
fn printed_settings_are_read_back_unchanged() {
    let text =
        "name = 'a'\n[scrub]\nfull_pass = '15 min'\n[[replica]]\nid = 'one'\nsites = [1, 2]\n";
    let example = with(text, &[], &[]).unwrap();
    let printed = print_settings(&example).unwrap();
    assert!(
        printed.contains("full_pass = \"15 min\"\nreserve = \"10 GB\""),
        "{printed}"
    );
    assert_eq!(with(&printed, &[], &[]).unwrap(), example);
}
