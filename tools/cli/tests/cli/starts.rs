//! `repository`, `monitor`, `bitarchive`, `checksum-replica`, `index`, `viewer`: settings with which none of them starts,
//! and what `settings check` says of these.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use archive_proof::SigningKey;
use archive_proof::testing::{signing_key, trust_in};
use archive_rpc::testing::TestAuthority;

use crate::holdfast::{executable, run};

/// The verb of a part, what its certificate has to grant, its own section, and a contradiction in its settings with the
/// words that the message has to have.
struct PartCase {
    verb: &'static str,
    grants: &'static [&'static str],
    sections: &'static str,
    contradiction: &'static [&'static str],
    advice: &'static str,
    /// The setting of the trust file, if the part has one.
    trust: Option<&'static str>,
}

const PARTS: [PartCase; 6] = [
    PartCase {
        verb: "monitor",
        grants: &["monitor/one"],
        sections: "[monitor]\nreplica = 'one'\n",
        contradiction: &["monitor.heartbeat=1 s", "monitor.silent_after=1 s"],
        advice: "at least twice monitor.heartbeat",
        trust: None,
    },
    PartCase {
        verb: "bitarchive",
        grants: &["node/one-1"],
        sections: "[bitarchive]\nnode = 'one-1'\nreplica = 'one'\ndata = 'node'\nvolumes = ['volume']\n\
                   trust = 'trust.json'\nmonitor = '127.0.0.1:1'\n",
        contradiction: &["scrub.deadline=0 s"],
        advice: "switch the scrub off",
        trust: Some("bitarchive.trust"),
    },
    PartCase {
        verb: "checksum-replica",
        grants: &["monitor/three", "node/three-1"],
        sections: "[checksum_replica]\nnode = 'three-1'\nreplica = 'three'\ndata = 'checksums'\n\
                   trust = 'trust.json'\n",
        contradiction: &["checksum_replica.idle=0 s"],
        advice: "such as \"60 s\"",
        trust: Some("checksum_replica.trust"),
    },
    PartCase {
        verb: "repository",
        grants: &["repository/kb"],
        sections: "[repository]\narchive = 'kb'\ndata = 'repository'\nsigning_key = 'signing.pem'\n\
                   trust = 'trust.json'\n[[replica]]\nid = 'one'\nkind = 'bitarchive'\nmonitor = '127.0.0.1:1'\n\
                   [[replica]]\nid = 'two'\nkind = 'bitarchive'\nmonitor = '127.0.0.1:2'\n",
        contradiction: &["replica.1.id=one"],
        advice: "has an id of its own",
        trust: Some("repository.trust"),
    },
    PartCase {
        verb: "index",
        grants: &["index/one"],
        sections: "[index]\ndata = 'index'\nrepository = '127.0.0.1:1'\ntrust = 'trust.json'\n",
        contradiction: &["index.files_per_job=1000000"],
        advice: "at most",
        trust: Some("index.trust"),
    },
    PartCase {
        verb: "viewer",
        grants: &["viewer/one"],
        sections: "[viewer]\nrepository = '127.0.0.1:1'\nindex = '127.0.0.1:2'\ntrust = 'trust.json'\n",
        contradiction: &["web={ listen = \"127.0.0.1:0\" }"],
        advice: "give one of them another host",
        trust: Some("viewer.trust"),
    },
];

fn write(directory: &Path, name: &str, text: &str) {
    let mut options = OpenOptions::new();
    // Readable for its owner alone, as a private key is.
    let file = options.write(true).create_new(true).mode(0o600);
    let mut file = file.open(directory.join(name)).expect("create");
    file.write_all(text.as_bytes()).expect("write");
}

/// A directory with the settings of each part, and with the files that they name.
fn prepare_parts() -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    let at = directory.path();
    let authority = TestAuthority::new();
    write(at, "authorities.pem", authority.certificate());
    write(
        at,
        "trust.json",
        &trust_in(&signing_key()).to_json().expect("trust"),
    );
    let foreign = trust_in(&SigningKey::from_seed([9; 32]));
    write(at, "foreign.json", &foreign.to_json().expect("trust"));
    write(at, "signing.pem", &signing_key().to_pem().expect("a key"));
    for PartCase {
        verb,
        grants,
        sections,
        ..
    } in PARTS
    {
        let pem = authority.pem(grants);
        write(at, &format!("{verb}.pem"), &pem.certificate);
        write(at, &format!("{verb}.key"), &pem.key);
        let rpc = format!(
            "[rpc]\nlisten = '127.0.0.1:0'\ncertificate = '{verb}.pem'\nkey = '{verb}.key'\n\
             authorities = 'authorities.pem'\n"
        );
        write(at, &format!("{verb}.toml"), &format!("{rpc}{sections}"));
    }
    directory
}

/// Expects that a part does not start with what `set` changes, that its one message has `words`, and that
/// `settings check` says the same.
fn expect_refusal(at: &Path, verb: &str, set: &[&str], words: &[&str]) {
    let file = format!("{verb}.toml");
    let changes: Vec<&str> = set.iter().flat_map(|change| ["--set", *change]).collect();
    let quiet = ["--set", "daemon.log=error"];
    let holdfast = |words: &[&str]| {
        run(executable()
            .args(words)
            .args(&changes)
            .args(quiet)
            .current_dir(at))
    };
    let started = holdfast(&[verb, "--settings", &file]).expect(3);
    let said = started.err.strip_prefix("holdfast: ").expect("a message");
    assert_eq!(said.lines().count(), 1, "{verb} {set:?}: {started:?}");
    for word in words {
        assert!(said.contains(word), "{verb} {set:?}: no {word:?} in {said}");
    }
    let checked = holdfast(&["settings", "check", &file]).expect(3);
    assert_eq!(checked.out, said, "{verb} {set:?}");
}

/// Fails if a part with a wrong value, a contradiction, or a certificate or trust file that is missing or another's
/// exits with another code than 3, tells it in more than one message or without advice, or `settings check` says
/// something else.
#[test]
fn every_part_exits_with_three() {
    let directory = prepare_parts();
    let at = directory.path();
    for part in PARTS {
        let verb = part.verb;
        let good = ["settings", "check", &format!("{verb}.toml")];
        let checked = run(executable().args(good).current_dir(at)).expect(0);
        assert_eq!(checked.out, format!("{verb}.toml: good\n"));

        let soon = &["daemon.drain=soon"];
        expect_refusal(at, verb, soon, &["`daemon.drain`", "write for example"]);
        expect_refusal(at, verb, part.contradiction, &[part.advice]);
        let absent = &["rpc.certificate=absent.pem"];
        let advice = "`holdfast pki issue`";
        expect_refusal(at, verb, absent, &["rpc.certificate: absent.pem: ", advice]);
        let another = match verb {
            "monitor" => "index",
            _ => "monitor",
        };
        let another = &[
            &*format!("rpc.certificate={another}.pem"),
            &*format!("rpc.key={another}.key"),
        ];
        expect_refusal(
            at,
            verb,
            another,
            &["rpc.certificate: the certificate is", advice],
        );
        let Some(trust) = part.trust else {
            continue;
        };
        let absent = &*format!("{trust}=absent.json");
        expect_refusal(at, verb, &[absent], &[trust, "there is no such file"]);
        let another = &*format!("{trust}=authorities.pem");
        expect_refusal(
            at,
            verb,
            &[another],
            &[trust, "take the trust file of this archive"],
        );
    }
    let cut = &["rpc.authorities=trust.json"];
    expect_refusal(
        at,
        "monitor",
        cut,
        &["rpc.authorities: the authorities: ", "copy the"],
    );
    let exposed = &["rpc.key=exposed.key"];
    std::fs::copy(at.join("monitor.key"), at.join("exposed.key")).unwrap();
    let open = std::fs::Permissions::from_mode(0o644);
    std::fs::set_permissions(at.join("exposed.key"), open).unwrap();
    expect_refusal(
        at,
        "monitor",
        exposed,
        &["rpc.key: exposed.key: ", "chmod 600 exposed.key"],
    );
    let foreign = &["repository.trust=foreign.json"];
    expect_refusal(
        at,
        "repository",
        foreign,
        &["does not list key", "of this archive"],
    );
}
