//! Archive files that are cut anywhere and resumed.

use archive_formats::warc::WarcType;

use super::*;
use crate::capture::{RecordWriterPool, ResourceBlock};

fn settings(directory: &Path) -> ArchiveFileSettings {
    ArchiveFileSettings {
        directory: directory.to_owned(),
        prefix: "12-34".to_owned(),
        host: "crawler".to_owned(),
        max_size: 10_000,
        compresses: true,
        warcinfo: "software: test\r\n".to_owned(),
    }
}

fn now() -> Timestamp {
    "2026-11-23T03:04:05.678Z".parse().unwrap()
}

fn group(number: u8) -> RecordGroup {
    let text = format!("block {number}");
    let resource = ResourceBlock {
        uri: "dns:a.dk",
        time: now(),
        address: None,
        media_type: "text/dns",
        record_id: &record_id([number; 16]),
        block: text.as_bytes(),
    };
    let scratch = RecordWriterPool::new(PathBuf::from("/nowhere"), true);
    resource.into_records(&scratch).unwrap()
}

fn begin(directory: &Path, place: &RecordedPlace) -> ArchiveFiles {
    ArchiveFiles::open(settings(directory), place, Chance::seeded_chance(1)).unwrap()
}

fn blocks(path: &Path) -> Vec<WarcType> {
    let mut reader = WarcReader::new(File::open(path).unwrap());
    let mut kinds = Vec::new();
    while let Some(record) = reader.next_record().unwrap() {
        kinds.push(record.kind());
        assert!(record.read_end().unwrap().defects.is_empty());
    }
    kinds
}

/// Fails if a file has another name than the field expects, lacks its warcinfo, or is visible before it is whole.
#[test]
fn closed_file_has_its_name_and_warcinfo() {
    let directory = tempfile::tempdir().unwrap();
    let mut files = begin(directory.path(), &RecordedPlace::default());
    assert_eq!(files.close_file(now()).unwrap(), None);
    for number in 0..2 {
        files.append_records(&mut group(number), now()).unwrap();
    }
    let name = "12-34-20261123030405678-00001-crawler.warc.gz";
    assert!(!directory.path().join(name).try_exists().unwrap());
    let closed = files.close_file(now()).unwrap().unwrap();
    assert_eq!(
        (closed.name.as_str(), closed.path.clone()),
        (name, directory.path().join(name))
    );
    assert_eq!(fs_size(&closed.path), closed.size);
    assert_eq!(
        blocks(&closed.path),
        [WarcType::Warcinfo, WarcType::Resource, WarcType::Resource]
    );
    files.append_records(&mut group(3), now()).unwrap();
    assert!(files.place_at(0).file.contains("-00002-"));
}

fn fs_size(path: &Path) -> u64 {
    path.metadata().unwrap().len()
}

/// Fails if a file that was cut at any byte passes for whole, or one that is whole does not.
#[test]
fn every_cut_of_a_file_is_noticed() {
    let directory = tempfile::tempdir().unwrap();
    let mut files = begin(directory.path(), &RecordedPlace::default());
    let mut places = vec![RecordedPlace::default()];
    for number in 0..3 {
        files.append_records(&mut group(number), now()).unwrap();
        places.push(files.place_at(0));
    }
    drop(files);
    let path = directory.path().join(format!("{}{OPEN}", places[1].file));
    let whole = std::fs::read(&path).unwrap();
    for length in 0..=whole.len() {
        let mut file = AppendFile::open(&path).unwrap();
        file.cut(0).unwrap();
        file.append(&whole[..length]).unwrap();
        for pair in places.windows(2) {
            let expected = length as u64 >= pair[1].file_length;
            assert_eq!(
                has_records(directory.path(), &pair[0], &pair[1]),
                expected,
                "{length}"
            );
        }
    }
    let mut flipped = whole.clone();
    let middle = usize::try_from(places[1].file_length).unwrap() + 30;
    flipped[middle] ^= 1;
    let mut file = AppendFile::open(&path).unwrap();
    file.cut(0).unwrap();
    file.append(&flipped).unwrap();
    assert!(has_records(directory.path(), &places[0], &places[1]));
    assert!(!has_records(directory.path(), &places[1], &places[2]));
}

/// Fails if records behind the last place stay, or a file of which nothing is recorded does.
#[test]
fn file_is_cut_behind_the_last_place() {
    let directory = tempfile::tempdir().unwrap();
    let mut files = begin(directory.path(), &RecordedPlace::default());
    files.append_records(&mut group(1), now()).unwrap();
    let place = files.place_at(0);
    files.append_records(&mut group(2), now()).unwrap();
    drop(files);
    let stray = directory.path().join("12-34-x.warc.gz.open");
    AppendFile::open(&stray).unwrap().append(b"cut").unwrap();
    let mut files = begin(directory.path(), &place);
    assert!(!stray.try_exists().unwrap());
    assert_eq!(files.place_at(0), place);
    files.append_records(&mut group(3), now()).unwrap();
    let closed = files.close_file(now()).unwrap().unwrap();
    assert_eq!(
        blocks(&closed.path),
        [WarcType::Warcinfo, WarcType::Resource, WarcType::Resource]
    );
}
