//! Sample files of the field, if they are at hand: records begin and end where other tools say that they do.
//!
//! The files are taken from the folder that `HOLDFAST_SAMPLES` names; without it nothing is tested here, and a line
//! says so.

use std::collections::BTreeMap;
use std::env;
use std::path::PathBuf;
use std::process::Command;

use archive_client::fetch_record;
use archive_formats::record_end::{NoRecord, RecordEnd, RecordProgress};
use archive_model::FileName;

use crate::world::ServedArchive;

/// Prints for each file the offsets of its records: by zlib for compressed ones, by warcio for all if python3 has it.
const JUDGE: &str = r"
import json, sys, zlib
try:
    from warcio.archiveiterator import ArchiveIterator
except ImportError:
    ArchiveIterator = None

def members(data):
    at, found = 0, []
    while at < len(data):
        inflate = zlib.decompressobj(31)
        try:
            inflate.decompress(data[at:])
        except zlib.error:
            break
        if not inflate.eof:
            break
        found.append(at)
        at = len(data) - len(inflate.unused_data)
    return found + [at]

def records(path):
    found, whole = [], True
    try:
        with open(path, 'rb') as file:
            iterator = ArchiveIterator(file)
            for record in iterator:
                found.append(iterator.get_record_offset())
    except Exception:
        whole = False
    return found, whole

for path in sys.argv[1:]:
    with open(path, 'rb') as file:
        data = file.read()
    said = {'path': path}
    if data[:2] == b'\x1f\x8b':
        said['members'] = members(data)
    if ArchiveIterator:
        said['records'], said['whole'] = records(path)
    print(json.dumps(said))
";

/// Returns the sample files: `$HOLDFAST_SAMPLES` has one folder for each project that wrote some of them.
fn samples() -> Option<Vec<PathBuf>> {
    let folder = std::env::var_os("HOLDFAST_SAMPLES")?;
    let mut files = Vec::new();
    for project in std::fs::read_dir(folder).unwrap() {
        let inside = std::fs::read_dir(project.unwrap().path());
        let inside = inside.into_iter().flatten().flatten();
        files.extend(inside.map(|entry| entry.path()).filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            [".warc", ".arc", ".warc.gz", ".arc.gz"]
                .iter()
                .any(|end| name.ends_with(end))
        }));
    }
    assert!(!files.is_empty(), "HOLDFAST_SAMPLES has no samples");
    files.sort();
    Some(files)
}

/// Returns the length of the record that begins here.
fn length(bytes: &[u8]) -> Result<usize, NoRecord> {
    let mut search = RecordEnd::new();
    let mut length = 0;
    for piece in bytes.chunks(5000) {
        match search.push(piece)? {
            RecordProgress::Continues => length += piece.len(),
            RecordProgress::Ends(used) => return Ok(length + used),
        }
    }
    search.end_of_file().map(|()| length)
}

/// Returns the extents of the records that follow each other without a gap, and how the last search ended.
fn chain(bytes: &[u8]) -> (Vec<(u64, u64)>, Option<NoRecord>) {
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        match length(&bytes[at..]) {
            Ok(length) => {
                found.push((at as u64, (at + length) as u64));
                at += length;
            }
            Err(error) => return (found, Some(error)),
        }
    }
    (found, None)
}

/// Returns the extents of the records that begin at `offsets`, up to one that is broken. Only empty lines may lie
/// between two.
fn apart(bytes: &[u8], offsets: &[u64]) -> Vec<(u64, u64)> {
    let mut found = Vec::new();
    for (index, start) in offsets.iter().enumerate() {
        let at = usize::try_from(*start).unwrap();
        let Ok(length) = length(&bytes[at..]) else {
            break;
        };
        let next = offsets
            .get(index + 1)
            .map_or(bytes.len(), |next| usize::try_from(*next).unwrap());
        let between = bytes
            .get(at + length..next)
            .expect("ends before the next begins");
        let is_empty = between.iter().all(|byte| b"\r\n".contains(byte));
        assert!(is_empty || index + 1 == offsets.len(), "after {start}");
        found.push((*start, (at + length) as u64));
    }
    found
}

/// Returns the Python that has `warcio`, which may be in an environment of its own; else any.
fn python() -> PathBuf {
    let path = env::var_os("PATH").unwrap_or_default();
    let has_both =
        |folder: &PathBuf| folder.join("warcio").is_file() && folder.join("python3").is_file();
    let judges = env::split_paths(&path).find(has_both);
    judges.unwrap_or_default().join("python3")
}

/// Fails if records in files of the field are found at other offsets than by zlib and warcio.
#[tokio::test]
async fn field_records_are_found_where_others_find_them() {
    let Some(files) = samples() else {
        tools_testing::skipped("HOLDFAST_SAMPLES names no folder with sample files");
        return;
    };
    let judge = Command::new(python())
        .arg("-c")
        .arg(JUDGE)
        .args(&files)
        .output();
    let judge = match judge {
        Ok(output) if output.status.success() => output.stdout,
        Ok(output) => panic!("{}", String::from_utf8_lossy(&output.stderr)),
        Err(error) => {
            tools_testing::skipped(&format!("python3: {error}"));
            return;
        }
    };
    let said: BTreeMap<String, serde_json::Value> = String::from_utf8(judge)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .map(|said| (said["path"].as_str().unwrap().to_owned(), said))
        .collect();
    let numbers = |value: &serde_json::Value| -> Option<Vec<u64>> {
        Some(
            value
                .as_array()?
                .iter()
                .filter_map(serde_json::Value::as_u64)
                .collect(),
        )
    };
    let world = ServedArchive::new().await;
    let reader = world.reader();
    let mut count = 0;
    let mut by_warcio = 0;
    for path in &files {
        let shown = path.display();
        let bytes = std::fs::read(path).unwrap();
        let said = &said[&path.to_string_lossy().into_owned()];
        let mut ends = Vec::new();
        let mut error = None;
        if let Some(members) = numbers(&said["members"]) {
            (ends, error) = chain(&bytes);
            let pairs = members.windows(2).map(|pair| (pair[0], pair[1]));
            assert!(
                ends.iter().copied().eq(pairs),
                "{shown}: members, by zlib; {error:?}"
            );
            count += ends.len();
        }
        if let Some(records) = numbers(&said["records"]) {
            let is_plain = said["members"].is_null();
            if is_plain {
                ends = apart(&bytes, &records);
                count += ends.len();
            }
            // One member may hold many records, and every tool reads a torn one differently.
            let is_single = !is_plain && ends.len() == 2;
            if said["whole"] == true && !is_single && (is_plain || error.is_none()) {
                let begins = ends.iter().map(|(start, _)| start);
                assert!(
                    begins.eq(records.iter().take(ends.len())),
                    "{shown}: by warcio"
                );
                by_warcio += ends.len();
            }
            if ends.len() != records.len() {
                println!(
                    "{shown}: {} here ({error:?}), {} by warcio",
                    ends.len(),
                    records.len()
                );
            }
        }
        // Some of the records are read through the archive.
        let name = FileName::new("sample.warc.gz").unwrap();
        world.archive.put(name.as_str(), &bytes);
        for (start, end) in ends.iter().step_by(1 + ends.len() / 4) {
            let mut record = fetch_record(&reader, &name, *start, None).await.unwrap();
            while record.next().await.unwrap().is_some() {}
            assert_eq!(record.range(), *start..*end, "{shown}");
        }
    }
    println!(
        "{count} records of {} files, {by_warcio} of them held against warcio",
        files.len()
    );
    if by_warcio == 0 {
        tools_testing::skipped("no record was held against warcio: python3 does not have it");
    }
}
