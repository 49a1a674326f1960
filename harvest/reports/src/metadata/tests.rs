//! A metadata file that is read back and held against the standard.

use std::io::Cursor;
use std::time::Duration;

use archive_formats::digest::digest_bytes;
use archive_formats::warc::{Validator, WarcReader};

use super::*;
use crate::index::index_archive_file;
use crate::progress::EndMessage;
use crate::statistics::{CrawlStatistics, CrawlSummary};

/// The fields and the block of a record.
#[derive(Debug)]
struct StoredRecord {
    fields: Vec<(String, String)>,
    block: String,
}

impl StoredRecord {
    fn get(&self, name: &str) -> Option<&str> {
        let mut fields = self.fields.iter();
        fields
            .find(|(field, _)| field == name)
            .map(|(_, value)| value.as_str())
    }
}

fn read(file: &[u8]) -> Vec<StoredRecord> {
    let mut reader = WarcReader::new(file);
    let mut records = Vec::new();
    while let Some(mut record) = reader.next_record().unwrap() {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let fields = record
            .header()
            .fields()
            .map(|field| (text(field.name), text(&field.value())));
        let fields = fields.collect();
        let mut block = String::new();
        record.read_to_string(&mut block).unwrap();
        let end = record.read_end().unwrap();
        assert!(end.complete && !end.shared, "{end:?}");
        records.push(StoredRecord { fields, block });
    }
    assert_eq!(reader.take_defects(), []);
    records
}

fn violations(file: &[u8]) -> Vec<archive_formats::warc::Violation> {
    let mut reader = WarcReader::new(file);
    let mut validator = Validator::default();
    let mut found = Vec::new();
    while let Some(record) = reader.next_record().unwrap() {
        found.extend(validator.check_record(record).unwrap());
    }
    found.extend(validator.finish_file());
    found
}

/// Ids that count, and a time that stands still.
fn stamps() -> impl FnMut() -> RecordStamp {
    let mut number = 0;
    move || {
        number += 1;
        RecordStamp {
            id: format!("urn:uuid:00000000-0000-4000-8000-{number:012}"),
            time: "2021-07-05T15:20:39.9Z".parse().unwrap(),
        }
    }
}

fn begin<W: Write>(output: W) -> MetadataFile<W, impl FnMut() -> RecordStamp> {
    let job = JobIdentity {
        organization: "netarkivet.dk".to_owned(),
        harvest_id: 3,
        harvest_number: 0,
        job_id: 7,
    };
    let warcinfo = Warcinfo {
        software: "Holdfast/0.1.0".to_owned(),
        is_part_of: Some("7".to_owned()),
        ..Warcinfo::default()
    };
    let address = "192.0.2.7".parse().unwrap();
    MetadataFile::begin_file(
        output,
        MetadataHead {
            name: "7-metadata-1.warc.gz",
            job: &job,
            address,
            warcinfo: &warcinfo,
        },
        stamps(),
    )
    .unwrap()
}

fn document<'a>(section: MetadataSection, name: &str, content: &'a str) -> MetadataDocument<'a> {
    MetadataDocument {
        section,
        name: name.to_owned(),
        content: Box::new(Cursor::new(content.as_bytes())),
    }
}

fn alias(alias: &str, father: &str) -> DomainAlias {
    DomainAlias {
        alias: alias.to_owned(),
        father: father.to_owned(),
    }
}

/// Returns a metadata file with a record of every kind.
fn full_file() -> Vec<u8> {
    let mut file = begin(Vec::new());
    let aliases = [alias("a.dk", "b.dk"), alias("c.dk", "b.dk")];
    file.write_aliases(&aliases).unwrap();
    file.duplicate_reduction_jobs(&[5, 6]).unwrap();
    file.write_documents(vec![
        document(MetadataSection::Logs, "progress-statistics.log", "p\n"),
        document(MetadataSection::Logs, "crawl.log", "c\n"),
        document(MetadataSection::Reports, "seeds-report.txt", "s\n"),
        document(MetadataSection::Setup, "harvestInfo.xml", "<harvestInfo/>"),
        document(MetadataSection::Setup, "crawler-beans.cxml", ""),
    ])
    .unwrap();
    let directory = tempfile::tempdir().unwrap();
    let block = "HTTP/1.1 200 OK\r\n\r\nhello";
    let mut archive = WarcWriter::plain_writer(Vec::new());
    let length = u64::try_from(block.len()).unwrap();
    let head = Builder::new(WarcType::Response, "urn:uuid:1", "2021-07-05T15:20:39Z")
        .target_uri("http://a.dk/")
        .content_type("application/http; msgtype=response")
        .render_head(length)
        .unwrap();
    archive
        .write_record(&head, length, &mut block.as_bytes())
        .unwrap();
    let archive = archive.into_inner();
    let index = index_archive_file(archive.as_slice(), "7-3-0.warc", directory.path());
    file.write_index(&mut index.unwrap()).unwrap();
    file.finish().unwrap()
}

/// Fails if a record is missing, out of its order, or under another URI or media type.
#[test]
fn records_stand_in_their_order() {
    let records = read(&full_file());
    let md5 = digest_bytes(Algorithm::Md5, b"hello").hex_text();
    let found: Vec<_> = records
        .iter()
        .map(|record| {
            let uri = record.get("WARC-Target-URI").unwrap_or("-");
            let uri = uri
                .strip_prefix("metadata://netarkivet.dk/crawl/")
                .unwrap_or(uri);
            (
                uri,
                record.get("Content-Type").unwrap(),
                record.block.as_str(),
            )
        })
        .collect();
    let version = format!("heritrixVersion={CRAWLER_VERSION}&harvestid=3&jobid=7");
    let before = "majorversion=1&minorversion=0&harvestid=3&harvestnum=0&jobid=7";
    let setup = |name: &str| format!("setup/{name}?{version}");
    let index = |name: &str, major: u8| {
        format!(
            "index/{name}?majorversion={major}&minorversion=0&harvestid=3&jobid=7&filename=7-3-0.warc"
        )
    };
    let expected = [
        (
            format!("setup/aliases?{before}"),
            "text/plain",
            "a.dk is an alias for b.dk\nc.dk is an alias for b.dk\n",
        ),
        (
            format!("setup/duplicatereductionjobs?{before}"),
            "text/plain",
            "5,6",
        ),
        (setup("crawler-beans.cxml"), "text/plain", ""),
        (setup("harvestInfo.xml"), "text/xml", "<harvestInfo/>"),
        (
            format!("reports/seeds-report.txt?{version}"),
            "text/plain",
            "s\n",
        ),
        (format!("logs/crawl.log?{version}"), "text/plain", "c\n"),
        (
            format!("logs/progress-statistics.log?{version}"),
            "text/plain",
            "p\n",
        ),
    ];
    let expected: Vec<_> = expected
        .iter()
        .map(|(uri, media, block)| (uri.as_str(), *media, *block))
        .collect();
    assert_eq!((found[0].0, found[0].1), ("-", "application/warc-fields"));
    assert!(
        found[0]
            .2
            .starts_with("software: Holdfast/0.1.0\r\nformat: WARC File Format 1.1\r\n")
    );
    assert_eq!(found[1..8], expected);
    assert_eq!(
        found[8],
        (
            index("cdx", 2).as_str(),
            "application/x-cdx",
            format!("http://a.dk/ - 20210705152039 - 24 7-3-0.warc 0 {md5}\n").as_str()
        )
    );
    assert_eq!(
        (found[9].0, found[9].1),
        (index("captures", 1).as_str(), "application/x-cdxj")
    );
    assert!(
        found[9]
            .2
            .starts_with("dk,a)/ 20210705152039 {\"url\": \"http://a.dk/\""),
        "{}",
        found[9].2
    );
    assert_eq!(found.len(), 10);
}

/// Fails if a record lacks a field that NetarchiveSuite's records have, or the file breaks the standard.
#[test]
fn file_follows_the_standard() {
    let file = full_file();
    assert_eq!(violations(&file), []);
    let records = read(&file);
    let (warcinfo, others) = records.split_first().unwrap();
    assert_eq!(warcinfo.get("WARC-Type"), Some("warcinfo"));
    assert_eq!(warcinfo.get("WARC-Filename"), Some("7-metadata-1.warc.gz"));
    for (record, number) in others.iter().zip(2..) {
        let block = record.block.as_bytes();
        for (name, expected) in [
            ("WARC-Type", "resource".to_owned()),
            ("WARC-Date", "2021-07-05T15:20:39Z".to_owned()),
            (
                "WARC-Record-ID",
                format!("<urn:uuid:00000000-0000-4000-8000-{number:012}>"),
            ),
            (
                "WARC-Warcinfo-ID",
                warcinfo.get("WARC-Record-ID").unwrap().to_owned(),
            ),
            ("WARC-IP-Address", "192.0.2.7".to_owned()),
            (
                "WARC-Block-Digest",
                digest_bytes(Algorithm::Sha1, block).to_string(),
            ),
            ("Content-Length", block.len().to_string()),
        ] {
            assert_eq!(record.get(name), Some(expected.as_str()), "{record:?}");
        }
        assert_eq!(record.fields.len(), 9, "{record:?}");
    }
}

/// Fails if the record of earlier jobs is left out because there are none, or that of aliases is not.
#[test]
fn empty_job_list_has_a_record() {
    let mut file = begin(Vec::new());
    file.write_aliases(&[]).unwrap();
    file.duplicate_reduction_jobs(&[]).unwrap();
    let records = read(&file.finish().unwrap());
    let uris: Vec<_> = records
        .iter()
        .filter_map(|record| record.get("WARC-Target-URI"))
        .collect();
    assert_eq!(uris.len(), 1);
    assert!(
        uris[0].contains("/setup/duplicatereductionjobs?"),
        "{uris:?}"
    );
    assert_eq!(records[1].block, "");
}

/// Fails if records can be written in another order than readers expect.
#[test]
fn late_record_is_refused() {
    let mut file = begin(Vec::new());
    file.write_documents(vec![document(MetadataSection::Setup, "seeds.txt", "x")])
        .unwrap();
    assert!(matches!(
        file.duplicate_reduction_jobs(&[]),
        Err(MetadataError::Order { .. })
    ));
    file.write_documents(vec![document(MetadataSection::Logs, "crawl.log", "x")])
        .unwrap();
    assert_eq!(violations(&file.finish().unwrap()), []);
}

/// A content that is longer each time it is read.
struct GrowingContent {
    bytes: Cursor<Vec<u8>>,
}

impl Read for GrowingContent {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.bytes.read(buffer)
    }
}

impl Seek for GrowingContent {
    fn seek(&mut self, position: io::SeekFrom) -> io::Result<u64> {
        self.bytes.get_mut().push(b'x');
        self.bytes.seek(position)
    }
}

/// Fails if a log that still grows is archived with a wrong length or digest.
#[test]
fn growing_content_is_refused() {
    let mut file = begin(Vec::new());
    let document = MetadataDocument {
        section: MetadataSection::Logs,
        name: "crawl.log".to_owned(),
        content: Box::new(GrowingContent {
            bytes: Cursor::new(Vec::new()),
        }),
    };
    let refused = file.write_documents(vec![document]);
    assert!(
        matches!(refused, Err(MetadataError::Write { .. })),
        "{refused:?}"
    );
    assert!(file.duplicate_reduction_jobs(&[]).is_err());
}

/// Fails if names and values of a job can add fields or records to the file.
#[test]
fn hostile_names_stay_in_their_field() {
    let mut file = begin(Vec::new());
    let name = "a\r\nWARC-Type: warcinfo\r\n\r\n&jobid=8#.log";
    file.write_aliases(&[alias("a.dk\nb.dk", "c.dk d.dk")])
        .unwrap();
    file.write_documents(vec![document(MetadataSection::Logs, name, "x")])
        .unwrap();
    let bytes = file.finish().unwrap();
    assert_eq!(violations(&bytes), []);
    let records = read(&bytes);
    assert_eq!(
        records[1].block,
        "a.dk%0Ab.dk is an alias for c.dk%20d.dk\n"
    );
    let uri = records[2].get("WARC-Target-URI").unwrap();
    assert!(
        uri.contains("%0D%0A%26jobid%3D8%23.log?heritrixVersion="),
        "{uri}"
    );
}

/// Fails if a report is missing, or bears a name by which it would not be archived as a report.
#[test]
fn reports_have_names_of_reports() {
    let summary = CrawlSummary {
        name: "7-1".to_owned(),
        end: EndMessage::Finished,
        duration: Duration::ZERO,
    };
    let reports = CrawlStatistics::default().write_reports(&summary, []);
    let others = [
        crate::archive_files::FILE_NAME,
        crate::frontier::NONEMPTY_FILE_NAME,
        crate::frontier::SUMMARY_FILE_NAME,
        crate::processors::FILE_NAME,
        crate::threads::FILE_NAME,
    ];
    for name in reports.iter().map(|(name, _)| *name).chain(others) {
        assert_eq!(
            MetadataSection::from_file_name(name),
            Some(MetadataSection::Reports),
            "{name}"
        );
    }
    let progress = crate::progress::FILE_NAME;
    assert_eq!(
        MetadataSection::from_file_name(progress),
        Some(MetadataSection::Logs)
    );
}
