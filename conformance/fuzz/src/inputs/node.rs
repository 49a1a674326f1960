//! The state that a node and the repository keep beside files and sidecars, and the settings they are given.

#[path = "admin_data.rs"]
mod admin_data;
#[path = "node_state.rs"]
mod node_state;

use archive_bitarchive::{Volumes, checksum, manifest};
use archive_model::{FileName, NodeId, ReplicaId, Root};

use super::inputs::files::{in_file, read_part_settings};
use super::inputs::{Target, target};

/// The targets that whole parts, RocksDB too, are linked for.
pub const NODE: &[Target] = &[
    target(
        "audit_log",
        admin_data::audit_log_seeds,
        admin_data::audit_log,
    ),
    target("export", admin_data::export_seeds, admin_data::export),
    target("manifest", manifest_seeds, manifest),
    target(
        "node_state",
        node_state::node_state_seeds,
        node_state::node_state,
    ),
    target("part_settings", part_settings_seeds, part_settings),
    target(
        "table_rows",
        admin_data::table_rows_seeds,
        admin_data::table_rows,
    ),
    target("volumes", volumes_seeds, volumes),
];

fn listed() -> Vec<(FileName, Root)> {
    ["b.warc", "a x.warc", "Måned.warc"]
        .into_iter()
        .map(|name| {
            let root = Root::from_bytes(*blake3::hash(name.as_bytes()).as_bytes());
            (FileName::new(name).unwrap(), root)
        })
        .collect()
}

fn text() -> Vec<u8> {
    let lines = listed().into_iter();
    let lines: Vec<String> = lines
        .map(|(name, root)| format!("{root}  {name}\n"))
        .collect();
    lines.concat().into_bytes()
}

fn manifest_seeds() -> Vec<Vec<u8>> {
    vec![text(), Vec::new()]
}

/// Whatever is in the list, afterwards it says what it should, and it is written only where it did not.
fn manifest(input: &[u8]) {
    in_file("manifest-blake3.txt", input, |_, path| {
        let files = listed();
        let all = || files.iter().map(|(name, root)| (name, *root));
        let was_written = manifest::set_lines(path, all()).unwrap();
        let sorted = |bytes: &[u8]| {
            let mut lines: Vec<Vec<u8>> = bytes
                .split_inclusive(|byte| *byte == b'\n')
                .map(<[u8]>::to_vec)
                .collect();
            lines.sort_unstable();
            lines
        };
        let was_right = sorted(input) == sorted(&text());
        assert_eq!(was_written, !was_right);
        let found = std::fs::read(path).unwrap();
        assert_eq!(sorted(&found), sorted(&text()));
    });
}

fn volumes_seeds() -> Vec<Vec<u8>> {
    vec![
        br#"{"format":"holdfast-volumes/1","mode":"read-write","volumes":{"v1":{"path":"/v/1","generation":1,"mode":"read-write","retired":false,"listed":true}}}"#
            .to_vec(),
        br#"{"format":"holdfast-volumes/1","mode":"read-write","volumes":{}}"#.to_vec(),
    ]
}

fn volumes(input: &[u8]) {
    in_file("volumes.json", input, |directory, _| {
        let node = NodeId::new("n1").unwrap();
        let replica = ReplicaId::new("one").unwrap();
        if let Ok(volumes) = Volumes::open(&node, &replica, directory, &[]) {
            drop(volumes.list_volumes());
        }
    });
}

const RPC: &str =
    "[rpc]\nlisten = \"127.0.0.1:0\"\ncertificate = \"c\"\nkey = \"k\"\nauthorities = \"a\"\n";

/// The settings of each part beside [`RPC`].
const PARTS: [&str; 3] = [
    "[bitarchive]\nnode = \"n-1\"\nreplica = \"one\"\ndata = \"d\"\nvolumes = [\"v\"]\ntrust = \"t\"\nmonitor = \"h:1\"\n\
     [scrub]\nrate = \"5 MB\"\n[attic]\nmin_age = \"1 d\"\n",
    "[checksum_replica]\nnode = \"n-2\"\nreplica = \"two\"\ndata = \"d\"\ntrust = \"t\"\n",
    "[repository]\narchive = \"kb\"\ndata = \"d\"\nsigning_key = \"s\"\ntrust = \"t\"\nallow_single = true\n\
     [notify]\ncommand = [\"tell\"]\n[notify.smtp]\nserver = \"m\"\nfrom = \"A <a@b.org>\"\nto = [\"c@d.org\"]\n\
     [[replica]]\nid = \"one\"\nkind = \"bitarchive\"\nmonitor = \"h:1\"\nsite = \"here\"\n",
];

fn part_settings_seeds() -> Vec<Vec<u8>> {
    let parts = (0..).zip(PARTS);
    parts
        .map(|(kind, part)| [&[kind], RPC.as_bytes(), part.as_bytes()].concat())
        .collect()
}

/// Takes an input whose first byte selects the part; behind it are the settings of that part.
fn part_settings(input: &[u8]) {
    let Some((kind, input)) = input.split_first() else {
        return;
    };
    match kind % 3 {
        0 => read_part_settings::<archive_bitarchive::Settings>(input),
        1 => read_part_settings::<checksum::Settings>(input),
        _ => read_part_settings::<archive_repository::Settings>(input),
    }
}
