//! The data that the repository keeps: its trail, exports of all of it, and the rows and keys of every table.

use std::fmt::Debug;

use archive_bitarchive::checksum::RecordedFile;
use archive_db::value::decode_body;
use archive_db::{Key, TableValue, Text};
use archive_decisions::store::{
    Claim, Content, FileRecord, NamePhase, RecordedUpload, ReplicaRecord,
};
use archive_ledger::admin::{AdminRow, AuditLine, NodeRow};
use archive_ledger::anomalies::AnomalyRecord;
use archive_ledger::audit_log::{Chain, LineHash, LogPosition, LogWalk, verify_log};
use archive_ledger::requests::{PersonRequest, RequestStatus};
use archive_ledger::restore::{FromExport, judge_export, rewritten};
use archive_ledger::standing::{DrainRow, ReplicaRow, Retirement};
use archive_model::{
    Act, AnomalyKind, FileName, Finder, NodeId, ReplicaId, ReplicaKind, ReplicaState, Root,
    UploadId, VolumeId,
};
use jiff::Timestamp;
use serde_json::json;

use super::super::inputs::files::in_file;
use super::super::inputs::proof;

fn time() -> Timestamp {
    "2026-01-02T03:04:05.678Z".parse().unwrap()
}

fn name(name: &str) -> FileName {
    FileName::new(name).unwrap()
}

fn replica() -> ReplicaId {
    ReplicaId::new("one").unwrap()
}

fn trail() -> [AuditLine; 3] {
    ["stored", "said \"no\"\n{\"number\":7}", ""].map(|what| AuditLine {
        at: time(),
        who: "officer/anna".to_owned(),
        file: (!what.is_empty()).then(|| name("a.warc.gz")),
        what: what.to_owned(),
    })
}

fn chained(lines: &[AuditLine]) -> (Vec<u8>, LineHash) {
    let mut chain = Chain::start_chain();
    let lines = (0..).zip(lines);
    let bytes: Vec<u8> = lines
        .flat_map(|(number, line)| chain.chain_line(number, line).unwrap())
        .collect();
    (bytes, chain.previous())
}

pub(super) fn audit_log_seeds() -> Vec<Vec<u8>> {
    let whole = chained(&trail()).0;
    let from_second = whole.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    vec![
        [&[0], whole.as_slice()].concat(),
        [&[0], &whole[from_second..]].concat(),
        [&[0], &whole[..whole.len() - 9]].concat(),
        b"\x01one\0two\n\0{\"number\":0}".to_vec(),
    ]
}

/// Takes an input whose first byte selects: a log as it stands (0), or the lines of a log that is written first (1).
pub(super) fn audit_log(input: &[u8]) {
    match input.split_first() {
        Some((kind, body)) if kind & 1 == 0 => any_log(body),
        Some((_, body)) => written_log(body),
        None => {}
    }
}

fn any_log(body: &[u8]) {
    let check = |body: &[u8]| {
        in_file("audit-000000.jsonl", body, |_, path| {
            verify_log(&[path.to_owned()])
        })
    };
    let Ok(found) = check(body) else {
        return;
    };
    let ends: Vec<usize> = (0..body.len()).filter(|at| body[*at] == b'\n').collect();
    let whole = ends.last().map_or(0, |last| last + 1);
    assert_eq!(found.lines, ends.len() as u64, "no line is passed over");
    assert_eq!(found.torn, (body.len() - whole) as u64);
    assert_eq!(LineHash::parse(&found.head.to_string()), Some(found.head));
    if let [.., line_before, _] = ends.as_slice() {
        let at = body.iter().map(|byte| usize::from(*byte)).sum::<usize>() % line_before;
        let mut changed = body.to_vec();
        changed[at] ^= 1;
        assert!(check(&changed).is_err(), "byte {at} was changed unseen");
    }
}

fn written_log(body: &[u8]) {
    let lines: Vec<AuditLine> = body
        .split(|byte| *byte == 0)
        .map(|text| {
            let text = String::from_utf8_lossy(text).into_owned();
            AuditLine {
                at: time(),
                file: FileName::new(&text).ok(),
                who: text.clone(),
                what: text,
            }
        })
        .collect();
    let (bytes, head) = chained(&lines);
    in_file("audit-000000.jsonl", &bytes, |_, path| {
        let found = verify_log(&[path.to_owned()]).unwrap();
        assert_eq!((found.lines, found.head), (lines.len() as u64, head));
        let read = LogWalk::over_files(vec![path.to_owned()]);
        let read: Vec<AuditLine> = read.map(|entry| entry.unwrap().line).collect();
        assert_eq!(read, lines);
    });
}

fn admin_row() -> AdminRow {
    let (admission, envelope) = proof::admitted();
    let state = |state| ReplicaRecord {
        kind: ReplicaKind::Bitarchive,
        required: true,
        state,
        since: time(),
        node: Some(NodeId::new("n-1").unwrap()),
        volume: Some(VolumeId::new("v1").unwrap()),
        sealed: true,
    };
    let content = Content {
        root: admission.root,
        size: admission.size,
        digests: admission.digests.clone(),
    };
    AdminRow {
        record: FileRecord {
            name: admission.name.clone(),
            phase: NamePhase::Complete,
            upload: Some(RecordedUpload {
                id: UploadId::new("u-1").unwrap(),
                claim: Claim::from(&content),
            }),
            content: Some(content),
            replicas: [
                (replica(), state(ReplicaState::UploadCompleted)),
                (
                    ReplicaId::new("two").unwrap(),
                    state(ReplicaState::Withdrawn("no".to_owned())),
                ),
            ]
            .into(),
        },
        depositor: admission.depositor.clone(),
        admission: Some(envelope.as_str().to_owned()),
    }
}

fn filed() -> AnomalyRecord {
    AnomalyRecord {
        id: 3,
        kind: AnomalyKind::Lost(vec![(16_384, 32_768)]),
        size: 70_000,
        node: Some(NodeId::new("n-1").unwrap()),
        volume: None,
        since: time(),
        seen: time(),
        confirmed: Some(time()),
        found_by: Finder::Scrub,
        accepted: None,
        note: Some("tried".to_owned()),
        is_first: true,
    }
}

fn request() -> PersonRequest {
    PersonRequest {
        number: 7,
        act: Act::Remove {
            name: name("a.warc.gz"),
            replica: replica(),
            checksum: Root::from_bytes([3; 32]),
            last_copies: false,
        }
        .into(),
        reason: "why".to_owned(),
        asked_by: "custodian/anna".to_owned(),
        asked: time(),
        expires: time(),
        state: RequestStatus::Approved {
            by: "officer/ben".to_owned(),
            at: time(),
        },
    }
}

fn retired() -> Retirement {
    Retirement {
        at: time(),
        by: "operator/o".to_owned(),
        why: "old".to_owned(),
        emptied: false,
    }
}

fn drain_row() -> DrainRow {
    DrainRow {
        volume: Some(VolumeId::new("v2").unwrap()),
        since: time(),
        drained: None,
    }
}

/// Returns an export with a line of every kind.
fn export_text() -> Vec<u8> {
    let (log, head) = chained(&trail());
    let log = log
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty());
    let audit = log.map(|line| {
        let mut line: serde_json::Value = serde_json::from_slice(line).unwrap();
        drop(line.as_object_mut().unwrap().remove("previous"));
        json!({ "audit": line })
    });
    let ended = json!({"at": time(), "why": "it is good again"});
    let lines = [
        json!({"header": {"format": "holdfast-admin-export/2", "archive": "kb", "time": time()}}),
        json!({"file": admin_row()}),
        json!({"node": {"replica": "one", "node": "n-1", "retired": retired()}}),
        json!({"node": {"replica": "two", "node": "n-2"}}),
        json!({"anomaly": {"file": "a.warc.gz", "replica": "one", "filed": filed()}}),
        json!({"closed-anomaly": {"file": "a", "replica": "one", "filed": filed(), "ended": ended}}),
        json!({"request": request()}),
        json!({"replica": {"replica": "two", "stands": ReplicaRow::Retired(retired())}}),
        json!({"volume": {"volume": "v1", "stands": {
            "replica": replica(), "node": "n-1", "retired": retired()}}}),
        json!({"drain": {"replica": "one", "node": "n-1", "stands": drain_row()}}),
    ];
    let mut text = Vec::new();
    for line in lines.into_iter().chain(audit) {
        text.extend(rewritten(line.to_string().as_bytes()).unwrap());
        text.push(b'\n');
    }
    let rows = json!({"anomalies": 1, "closed_anomalies": 1, "requests": 1, "replicas": 1, "volumes": 1, "drains": 1});
    let end = json!({"end": {"files": 1, "nodes": 2, "audit": 3, "rows": rows, "audit_head": head.to_string(),
        "blake3": blake3::hash(&text).to_string()}});
    text.extend(rewritten(end.to_string().as_bytes()).unwrap());
    text.push(b'\n');
    assert_eq!(
        judged(&text).map(|report| report.damaged.list),
        Some(vec![])
    );
    text
}

/// Returns the part of an export that can be believed; `None` if it is not one of this archive at all.
fn judged(text: &[u8]) -> Option<FromExport> {
    in_file("export.jsonl", text, |directory, path| {
        let empty = directory.join("no-log");
        judge_export(&empty, path, proof::trust(), "kb").ok()
    })
}

pub(super) fn export_seeds() -> Vec<Vec<u8>> {
    let whole = export_text();
    let lines = whole.split(|byte| *byte == b'\n');
    let lines = lines.filter(|line| !line.is_empty());
    let lines = lines.map(|line| [&[1], line].concat());
    lines.chain([[&[0], whole.as_slice()].concat()]).collect()
}

/// A whole export (0), or one line (1).
pub(super) fn export(input: &[u8]) {
    match input.split_first() {
        Some((kind, body)) if kind & 1 == 0 => any_export(body),
        Some((_, line)) => any_line(line),
        None => {}
    }
}

fn any_line(line: &[u8]) {
    let Ok(once) = rewritten(line) else {
        return;
    };
    assert!(!once.contains(&b'\n'), "a line is one line");
    assert_eq!(rewritten(&once).unwrap(), once, "it is read as it was");
    assert!(rewritten(&once[..once.len() - 1]).is_err(), "a cut one");
}

fn any_export(body: &[u8]) {
    let Some(report) = judged(body).filter(|report| report.damaged.count == 0) else {
        return;
    };
    let FromExport {
        files,
        nodes,
        rows,
        audit,
        ..
    } = report;
    if body.starts_with(&[0x1f, 0x8b]) {
        return;
    }
    let lines = body.split_inclusive(|byte| *byte == b'\n').count() as u64;
    assert_eq!(files + nodes + rows + audit + 2, lines, "every line counts");
    let at = body.iter().map(|byte| usize::from(*byte)).sum::<usize>() % body.len();
    for cut in [at, body.len() - 1] {
        let report = judged(&body[..cut]);
        let is_seen = report.is_none_or(|report| report.damaged.count > 0);
        assert!(is_seen, "cut at {cut}");
    }
}

/// Decodes a row; its encoding must decode to the same, and nothing shorter may.
fn row<V: TableValue + PartialEq + Debug>(bytes: &[u8]) {
    let Some((version, body)) = bytes.split_first() else {
        return;
    };
    if *version != V::VERSION {
        return;
    }
    let Ok(read) = decode_body::<V>(body) else {
        return;
    };
    let written = postcard::to_stdvec(&read).unwrap();
    assert_eq!(decode_body::<V>(&written).unwrap(), read);
    if let Some((_, cut)) = written.split_last() {
        assert!(decode_body::<V>(cut).is_err(), "a cut one");
    }
}

/// The row of an anomaly is shown, too.
fn anomaly(bytes: &[u8]) {
    row::<AnomalyRecord>(bytes);
    if let Some((_, body)) = bytes.split_first()
        && let Ok(filed) = decode_body::<AnomalyRecord>(body)
    {
        assert!(
            filed
                .kind
                .to_string()
                .starts_with(filed.kind.class().as_str())
        );
    }
}

/// A key is written as it was read.
fn key<K: Key + PartialEq + Debug>(bytes: &[u8]) {
    if let Ok(key) = K::decode_last(bytes) {
        let mut out = Vec::new();
        key.encode_last(&mut out);
        assert_eq!(out, bytes);
    }
    let mut rest = bytes;
    if let Ok(key) = K::decode(&mut rest) {
        let mut out = Vec::new();
        key.encode(&mut out);
        assert_eq!([out.as_slice(), rest].concat(), bytes);
    }
}

fn good<V: TableValue>(value: &V) -> Vec<u8> {
    let body = postcard::to_stdvec(value).unwrap();
    [&[V::VERSION], body.as_slice()].concat()
}

type TwoTexts = (Text<FileName>, Text<VolumeId>);
type DrainKey = (Text<ReplicaId>, Text<NodeId>, String);

/// A function that takes bytes, and good inputs for it.
type Table = (fn(&[u8]), Vec<Vec<u8>>);

fn tables() -> [Table; 17] {
    let entry = archive_bitarchive::Row {
        size: 7,
        root: Some(Root::from_bytes([1; 32])),
        stored: time(),
        verified: Some(time()),
        condition: archive_bitarchive::Condition::Unexpected {
            why: "no sidecar".to_owned(),
        },
    };
    let recorded = RecordedFile {
        size: 7,
        root: Root::from_bytes([1; 32]),
        stored: time(),
    };
    let node = NodeRow {
        retired: Some(retired()),
    };
    [
        (row::<AdminRow>, vec![good(&admin_row())]),
        (row::<AuditLine>, trail().iter().map(good).collect()),
        (row::<NodeRow>, vec![good(&node)]),
        (anomaly, vec![good(&filed())]),
        (row::<PersonRequest>, vec![good(&request())]),
        (
            row::<ReplicaRow>,
            vec![good(&ReplicaRow::Retired(retired()))],
        ),
        (row::<Retirement>, vec![good(&retired())]),
        (row::<DrainRow>, vec![good(&drain_row())]),
        (
            row::<LogPosition>,
            vec![good(&LogPosition::first_position())],
        ),
        (row::<archive_bitarchive::Row>, vec![good(&entry)]),
        (row::<RecordedFile>, vec![good(&recorded)]),
        (row::<String>, vec![good(&"text".to_owned())]),
        (key::<Text<FileName>>, vec![b"a.warc.gz".to_vec()]),
        (key::<TwoTexts>, vec![b"a.warc.gz\0\0v1".to_vec()]),
        (key::<DrainKey>, vec![b"one\0\0n-1\0\0v\0\xff1".to_vec()]),
        (key::<(u64, String)>, vec![b"12345678text".to_vec()]),
        (key::<i64>, vec![vec![0x80, 0, 0, 0, 0, 0, 0, 1]]),
    ]
}

pub(super) fn table_rows_seeds() -> Vec<Vec<u8>> {
    let tables = (0..).zip(tables());
    let seeds = tables.flat_map(|(kind, (_, seeds))| {
        let seeds = seeds.into_iter();
        seeds.map(move |seed| [&[kind], seed.as_slice()].concat())
    });
    seeds.collect()
}

/// Takes an input whose first byte selects the table; behind it is a row, its version first, or a key.
pub(super) fn table_rows(input: &[u8]) {
    thread_local! {
        static TABLES: Vec<fn(&[u8])> = tables().into_iter().map(|(run, _)| run).collect();
    }
    if let Some((kind, bytes)) = input.split_first() {
        TABLES.with(|tables| tables[usize::from(*kind) % tables.len()](bytes));
    }
}
