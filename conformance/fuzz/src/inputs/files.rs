//! State, labels and settings: files that people and broken disks get at.

use std::cell::RefCell;
use std::io::{Seek, Write};
use std::path::Path;

use archive_client::ClientFile;
use archive_daemon::settings::{self, SettingsForm, Sources};
use archive_durable::volume::{LABEL_NAME, identify_volume};
use archive_durable::{OutboardRecord, Sidecar};
use archive_model::{Root, VolumeId};
use archive_part::PartSettings;
use serde::Serialize;
use serde::de::DeserializeOwned;

pub(super) fn sidecar_seeds() -> Vec<Vec<u8>> {
    let sidecar = Sidecar {
        admission: serde_json::value::to_raw_value("{}").unwrap(),
        outboard: Some(OutboardRecord {
            size: 64,
            digest: Root::from_bytes([1; 32]),
        }),
        volume: VolumeId::new("v1").unwrap(),
        stored: "2026-01-02T03:04:05Z".parse().unwrap(),
        unknown: [(
            "more".to_owned(),
            serde_json::value::to_raw_value(&[1, 2]).unwrap(),
        )]
        .into(),
    };
    vec![sidecar.to_json().unwrap()]
}

pub(super) fn sidecar(input: &[u8]) {
    if let Ok(read) = Sidecar::from_json(input) {
        let again = Sidecar::from_json(&read.to_json().unwrap()).unwrap();
        assert_eq!(again.admission.get(), read.admission.get(), "verbatim");
        assert_eq!((again.outboard, again.volume), (read.outboard, read.volume));
        assert!(again.unknown.keys().eq(read.unknown.keys()));
    }
}

/// Puts `input` into a file of that name in a directory that is kept, and shows both.
pub(crate) fn in_file<T>(name: &str, input: &[u8], look: impl FnOnce(&Path, &Path) -> T) -> T {
    thread_local! {
        static PLACE: RefCell<tempfile::TempDir> = RefCell::new(tempfile::tempdir().unwrap());
    }
    PLACE.with_borrow(|directory| {
        let path = directory.path().join(name);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).unwrap();
        }
        let mut file = std::fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .unwrap();
        file.set_len(0).unwrap();
        file.rewind().unwrap();
        file.write_all(input).unwrap();
        look(directory.path(), &path)
    })
}

pub(super) fn volume_label_seeds() -> Vec<Vec<u8>> {
    vec![
        br#"{"format":"holdfast-volume/1","volume":"v1","node":"n1","replica":"one","generation":3}"#
            .to_vec(),
    ]
}

pub(super) fn volume_label(input: &[u8]) {
    in_file(LABEL_NAME, input, |directory, _| {
        if let Ok(identity) = identify_volume(directory) {
            let text = serde_json::to_value(&identity).unwrap();
            assert_eq!(
                serde_json::from_value::<archive_durable::VolumeIdentity>(text).unwrap(),
                identity
            );
        }
    });
}

/// Reads settings of a part, and holds against each other what reads, checks and prints them.
pub(crate) fn read_part_settings<S: PartSettings>(input: &[u8]) {
    read::<S>("settings.toml", Some(&S::FORM), input);
}

/// Reads settings, and holds against each other what reads and prints them, and what checks them by their form.
fn read<T: DeserializeOwned + Serialize>(name: &str, form: Option<&SettingsForm>, input: &[u8]) {
    // What stands behind the first zero is an override.
    let mut parts = input.splitn(2, |byte| *byte == 0);
    let text = parts.next().unwrap_or_default();
    let set = parts.map(|set| String::from_utf8_lossy(set).into_owned());
    let set: Vec<String> = set.collect();
    let sources = |path: &Path, set: Vec<String>| Sources {
        file: Some(path.to_owned()),
        environment: Vec::new(),
        set,
    };
    let printed = in_file(name, text, |_, path| {
        let sources = sources(path, set);
        let loaded = settings::load_settings::<T>(&sources);
        if let Some(form) = form {
            let problems = settings::list_problems::<T>(form, &sources);
            let found = problems.map_or(1, |problems| problems.len());
            assert_eq!(
                loaded.is_ok(),
                found == 0,
                "what cannot be read has a problem"
            );
        }
        drop(settings::list_top_names(path));
        // Numbers above 2⁶³ − 1 cannot be written as TOML.
        loaded
            .ok()
            .and_then(|settings| settings::print_settings(&settings).ok())
    });
    if let Some(printed) = printed {
        let again = in_file(name, printed.as_bytes(), |_, path| {
            settings::load_settings::<T>(&sources(path, Vec::new()))
                .map(|read| settings::print_settings(&read).unwrap())
        });
        assert_eq!(again.unwrap(), printed, "what is printed is read back");
    }
}

pub(super) fn settings_seeds() -> Vec<Vec<u8>> {
    let text = "[daemon]\nlog = \"info\"\ndrain = \"30 s\"\n[rpc]\nlisten = \"127.0.0.1:0\"\ncertificate = \"c\"\nkey = \"k\"\n\
                authorities = \"a\"\n[monitor]\nreplica = \"one\"\nheartbeat = \"1 s\"\n";
    vec![
        text.as_bytes().to_vec(),
        format!("{text}\0monitor.find=[1, 2]").into_bytes(),
    ]
}

pub(super) fn settings(input: &[u8]) {
    read_part_settings::<archive_monitor::Settings>(input);
}

pub(super) fn client_file_seeds() -> Vec<Vec<u8>> {
    let text = "authorities = 'a'\ntrust = 't'\ncertificate = 'c'\nkey = 'k'\n[endpoints]\nrepository = 'h:1'\n\
                [limits]\nattempts = 3\n[[identity]]\nrole = 'reader'\nname = 'ben'\ncertificate = 'c'\nkey = 'k'\n";
    vec![
        text.as_bytes().to_vec(),
        format!("{text}\0identity.0.name=anna").into_bytes(),
    ]
}

pub(super) fn client_file(input: &[u8]) {
    read::<ClientFile>("client.toml", None, input);
}
