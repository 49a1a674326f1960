//! The lines of a job's manifest and of its list of errors: JSON, one document a line.

use archive_decisions::store::Content;
use archive_model::{
    BatchFileOutcome, FailureKind, FileFailure, FileName, NodeId, Program, Root, VolumeId,
};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::table::JobRow;

/// The first line of a manifest: the program, its files, and the person who submitted it.
#[derive(Debug, Serialize)]
struct JobLine<'a> {
    job: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    built_in: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    component: Option<String>,
    arguments: Vec<Argument<'a>>,
    files: &'a str,
    /// The number of files that the job names instead of an expression.
    #[serde(skip_serializing_if = "Option::is_none")]
    names: Option<usize>,
    replica: &'a str,
    time_ms: u128,
    file_time_ms: u128,
    memory: u64,
    output: u64,
    who: &'a str,
    submitted: Timestamp,
    started: Option<Timestamp>,
    holdfast: &'static str,
}

#[derive(Debug, Serialize)]
struct Argument<'a> {
    name: &'a str,
    value: &'a str,
}

/// A line of the manifest: a file that was read.
#[derive(Debug, Serialize)]
struct FileLine<'a> {
    file: &'a FileName,
    root: &'a Root,
    size: u64,
    node: &'a NodeId,
    volume: &'a VolumeId,
    records: u64,
    output: u64,
    failures: u64,
}

/// The part of a line of a manifest that is compared.
#[derive(Debug, Deserialize)]
pub(crate) struct ManifestEntry {
    pub file: FileName,
    pub root: Root,
    pub size: u64,
    pub node: NodeId,
    pub failures: u64,
}

/// The part of a line of the list of errors that is compared.
#[derive(Debug, Deserialize)]
pub(crate) struct ReportedFile {
    pub file: FileName,
}

#[derive(Debug, Serialize)]
struct ErrorLine<'a> {
    file: &'a FileName,
    node: &'a str,
    offset: Option<u64>,
    kind: FailureKind,
    reason: &'a str,
}

/// The reason why a file should have been read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MissReason {
    /// The replica is known to have it.
    Here,
    /// The archive has it, and the replica is not known to.
    Elsewhere,
    /// The archive knows no such file.
    Unknown,
}

/// Returns the first line of the manifest.
pub(crate) fn job_line(row: &JobRow) -> Result<Vec<u8>, serde_json::Error> {
    let (built_in, component) = match &row.spec.program {
        Program::BuiltIn(name) => (Some(name.as_str()), None),
        Program::Component(root) => (None, Some(root.to_string())),
    };
    let arguments = row.spec.arguments.iter();
    line(&JobLine {
        job: row.id.as_str(),
        built_in,
        component,
        arguments: arguments
            .map(|(name, value)| Argument { name, value })
            .collect(),
        files: &row.spec.files,
        names: row.spec.names.as_ref().map(|names| names.as_slice().len()),
        replica: row.spec.replica.as_str(),
        time_ms: row.spec.limits.time.as_millis(),
        file_time_ms: row.spec.limits.file_time.as_millis(),
        memory: row.spec.limits.memory,
        output: row.spec.limits.output,
        who: &row.who,
        submitted: row.submitted,
        started: row.started,
        holdfast: env!("CARGO_PKG_VERSION"),
    })
}

/// Returns the lines of the manifest and of the list of errors for a file that was read, ready to be appended.
pub(crate) fn outcome_lines(
    outcome: &BatchFileOutcome,
) -> Result<(Vec<u8>, Vec<u8>), serde_json::Error> {
    let kept = outcome.failures.len() as u64;
    let manifest = line(&FileLine {
        file: &outcome.name,
        root: &outcome.root,
        size: outcome.size,
        node: &outcome.node,
        volume: &outcome.volume,
        records: outcome.records,
        output: outcome.output,
        failures: kept.saturating_add(outcome.more_failures),
    })?;
    let mut errors = Vec::new();
    for failure in &outcome.failures {
        errors.extend(error(outcome, failure)?);
    }
    if let Some(last) = outcome
        .failures
        .last()
        .filter(|_| outcome.more_failures > 0)
    {
        let more = FileFailure {
            kind: last.kind,
            offset: None,
            reason: format!("and {} more failures", outcome.more_failures),
        };
        errors.extend(error(outcome, &more)?);
    }
    Ok((manifest, errors))
}

/// Returns the line of the list of errors for a file that nobody has read.
pub(crate) fn unread_line(
    file: &FileName,
    node: Option<&NodeId>,
    missed: MissReason,
) -> Result<Vec<u8>, serde_json::Error> {
    line(&ErrorLine {
        file,
        node: node.map(NodeId::as_str).unwrap_or_default(),
        offset: None,
        kind: FailureKind::Unread,
        reason: match missed {
            MissReason::Here => "the replica is known to have it, and no node has read it",
            MissReason::Elsewhere => {
                "the archive has it, and this replica is not known to have it; ask another replica"
            }
            MissReason::Unknown => "the archive knows no file of this name",
        },
    })
}

/// Returns the line of the list of errors for a file of which a node read other bytes than the archive has.
pub(crate) fn other_content_line(
    read: &ManifestEntry,
    content: &Content,
) -> Result<Vec<u8>, serde_json::Error> {
    let reason = format!(
        "the node read another file of this name, and what the job wrote of it is in the output: read was root {} of {} \
         bytes, the archive has root {} of {} bytes; have an officer settle it (`holdfast check`, `holdfast anomalies`), \
         and submit the job again",
        read.root, read.size, content.root, content.size
    );
    line(&ErrorLine {
        file: &read.file,
        node: read.node.as_str(),
        offset: None,
        kind: FailureKind::Damaged,
        reason: &reason,
    })
}

fn error(outcome: &BatchFileOutcome, failure: &FileFailure) -> Result<Vec<u8>, serde_json::Error> {
    line(&ErrorLine {
        file: &outcome.name,
        node: outcome.node.as_str(),
        offset: failure.offset,
        kind: failure.kind,
        reason: &failure.reason,
    })
}

fn line(document: &impl Serialize) -> Result<Vec<u8>, serde_json::Error> {
    let mut line = serde_json::to_vec(document)?;
    line.push(b'\n');
    Ok(line)
}
