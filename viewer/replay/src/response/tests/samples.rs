//! Raw answers of all records in a folder of WARC and ARC files that others made.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use archive_formats::warc::WarcReader;

use super::*;

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.to_string_lossy().into_owned();
        if path.is_dir() {
            files(&path, found);
        } else if [".warc", ".warc.gz", ".arc", ".arc.gz"]
            .iter()
            .any(|end| name.ends_with(end))
        {
            found.push(path);
        }
    }
    found.sort();
}

/// Fails if the raw bytes of a response are not those that its digest is of, where the record itself is whole and
/// right.
#[test]
fn samples_answer_with_their_digests() {
    let Some(folder) = std::env::var_os("HOLDFAST_SAMPLES").map(PathBuf::from) else {
        tools_testing::skipped("HOLDFAST_SAMPLES names no folder with sample files");
        return;
    };
    let mut paths = Vec::new();
    files(&folder, &mut paths);
    let mut records = 0;
    let mut right = 0;
    let mut checked = 0;
    for path in paths {
        let mut reader = WarcReader::new(File::open(&path).unwrap());
        loop {
            let mut record = match reader.next_record() {
                Ok(Some(record)) => record,
                Ok(None) => break,
                Err(error) => {
                    eprintln!("{}: {error}", path.display());
                    continue;
                }
            };
            if record.kind() != WarcType::Response {
                continue;
            }
            let header = record.header().clone();
            let url = header
                .read_uri("WARC-Target-URI")
                .unwrap_or_default()
                .into_owned();
            let digest = header
                .text_of("WARC-Payload-Digest")
                .and_then(|digest| digest.trim().parse::<Digest>().ok());
            let mut block = Vec::new();
            record.read_to_end(&mut block).unwrap();
            let mut input = block.as_slice();
            let Ok(message) =
                StoredMessage::read_message(WarcType::Response, &header, &mut input, LIMIT)
            else {
                continue;
            };
            records += 1;
            let options = ReplyOptions {
                url: &url,
                media: message.media(),
                ..options(Redirects::ToWorker)
            };
            let reply = ReplyHead::new(message.head(), &options);
            assert!(reply.fields.iter().all(|(name, value)| {
                is_token(name.as_bytes()) && value.iter().all(|byte| *byte >= 0x20 && *byte != 0x7f)
            }));
            let measured = measure_entity(&mut message.entity_body(input)).unwrap();
            if let Some(length) = message.entity_length(block.len() as u64) {
                assert_eq!(length, measured.length, "{} {url}", path.display());
            }
            let audit = AuditedBody::new(&message, input, digest.clone())
                .finish()
                .unwrap();
            assert_eq!(audit.damage, measured.damage);
            let Some(digest) = digest else {
                continue;
            };
            let expected = check_payload(&mut block.as_slice(), &digest, LIMIT).unwrap();
            assert_eq!(
                audit.verdict,
                Some(expected.clone()),
                "{} {url}",
                path.display()
            );
            checked += 1;
            right += usize::from(matches!(expected, PayloadCheck::Matches(_)));
        }
    }
    eprintln!("{records} responses, {checked} with a digest, {right} of them right");
    assert!(right > 0 && checked <= records);
}
