//! The admin data as lines of JSON: what `holdfast admin restore` reads, and people in fifty years.
//!
//! ```text
//! {"header":{"format":"holdfast-admin-export/2","archive":"kb","time":"…"}}
//! {"file":{"record":{…},"depositor":"harvester/h-1","admission":"{…}"}}       every file, sorted by name
//! {"node":{"replica":"one","node":"one-1"}}                                   every node, sorted
//! {"anomaly":{…}}  {"closed-anomaly":{…}}  {"request":{…}}                    each kind sorted by its key
//! {"replica":{…}}  {"volume":{…}}  {"drain":{…}}                              what is filled, retired, drained
//! {"audit":{"number":0,"at":"…","who":"…","file":"…","what":"…"}}             the whole trail, oldest first
//! {"end":{"files":1,"nodes":1,"audit":1,"rows":{…},"audit_head":"…","blake3":"…"}}   BLAKE3 of every byte before it
//! ```
//!
//! It is all as it stood at one moment. `audit_head` is the SHA-256 of the last line of the audit log: an export that is
//! stored in the replicas tells whether the log was rewritten since.
//!
//! Format 1 had files, nodes and trail alone; it is still read.
//!
//! Not promised: when checks and exports are due, and since when each volume has been in its state. That begins anew.

mod daily;
mod rows;
#[cfg(test)]
mod tests;

use std::io::{self, Write};
use std::path::Path;

use archive_db::DbError;
use archive_model::{NodeId, ReplicaId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

pub(crate) use daily::Daily;
pub(crate) use rows::{Counted, Row, Rows, Tables};

use crate::admin::{Admin, AdminRow, Snapshot};
use crate::audit::Trail;
use crate::audit_log::{Chain, LogError, Written};
use crate::standing::Retired;

/// The format, in the first line.
pub(crate) const FORMAT: &str = "holdfast-admin-export/2";

/// The format before that had no rows of other tables.
pub(crate) const OLD_FORMAT: &str = "holdfast-admin-export/1";

/// A line.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Line {
    Header(Header),
    File(Box<AdminRow>),
    Node(Node),
    Audit(Written),
    End(End),
    #[serde(untagged)]
    Row(Box<Row>),
}

/// The first line.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Header {
    pub(crate) format: String,
    pub(crate) archive: String,
    pub(crate) time: Timestamp,
}

/// A node of a replica.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Node {
    pub(crate) replica: ReplicaId,
    #[serde(rename = "node")]
    pub(crate) id: NodeId,
    /// Whether people took it out of service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) retired: Option<Retired>,
}

/// The last line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct End {
    pub(crate) files: u64,
    pub(crate) nodes: u64,
    pub(crate) audit: u64,
    /// How many rows of the other tables.
    #[serde(default)]
    pub(crate) rows: Counted,
    /// SHA-256 of the last line of the audit log, in hex.
    pub(crate) audit_head: String,
    /// BLAKE3 of every byte before this line, in hex.
    pub(crate) blake3: String,
}

/// What an export has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Exported {
    pub(crate) end: End,
    /// BLAKE3 of what it says beside the time, and beside what its own storing has left: equal where nothing changed.
    pub(crate) content: String,
}

/// Why there is no export.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ExportError {
    #[error(transparent)]
    Database(#[from] DbError),
    #[error("{0}")]
    Log(#[from] LogError),
    #[error("the export cannot be written: {0}")]
    Write(#[from] io::Error),
    #[error("the repository stops")]
    Stopped,
}

/// What is to be exported.
pub(crate) struct Export<'a> {
    pub(crate) admin: &'a Admin,
    /// Where the audit log is.
    pub(crate) log: &'a Path,
    pub(crate) archive: &'a str,
    pub(crate) time: Timestamp,
    pub(crate) is_stopping: &'a dyn Fn() -> bool,
}

impl Export<'_> {
    /// Writes it. Memory holds one line.
    pub(crate) fn write(&self, out: &mut dyn Write) -> Result<Exported, ExportError> {
        let Snapshot {
            files,
            nodes,
            rows,
            trail,
            last,
        } = self.admin.snapshot()?;
        let mut lines = Lines {
            out,
            whole: blake3::Hasher::new(),
            content: blake3::Hasher::new(),
            is_stopping: self.is_stopping,
        };
        let header = Line::Header(Header {
            format: FORMAT.to_owned(),
            archive: self.archive.to_owned(),
            time: self.time,
        });
        lines.put(&header, false)?;
        let mut end = End {
            files: 0,
            nodes: 0,
            audit: 0,
            rows: Counted::default(),
            audit_head: String::new(),
            blake3: String::new(),
        };
        for row in files {
            let row = row?;
            let is_own = is_export(self.archive, row.record.name.as_str());
            lines.put(&Line::File(Box::new(row)), !is_own)?;
            end.files += 1;
        }
        for node in nodes {
            lines.put(&Line::Node(node?), true)?;
            end.nodes += 1;
        }
        for row in rows {
            let row = row?;
            end.rows.add(&row);
            lines.put(&Line::Row(Box::new(row)), true)?;
        }
        let mut chain = Chain::start();
        for entry in Trail::of(trail, last, self.log)? {
            let entry = entry?;
            chain
                .line(entry.number, &entry.line)
                .map_err(|error| ExportError::Log(error.into()))?;
            let file = entry.line.file.as_ref();
            let is_own = file.is_some_and(|name| is_export(self.archive, name.as_str()));
            lines.put(
                &Line::Audit(Written::new(entry.number, &entry.line)),
                !is_own,
            )?;
            end.audit += 1;
        }
        end.audit_head = chain.previous().to_string();
        end.blake3 = lines.whole.finalize().to_hex().to_string();
        let content = lines.content.finalize().to_hex().to_string();
        lines.put(&Line::End(end.clone()), false)?;
        lines.out.flush()?;
        Ok(Exported { end, content })
    }
}

struct Lines<'a> {
    out: &'a mut dyn Write,
    whole: blake3::Hasher,
    content: blake3::Hasher,
    is_stopping: &'a dyn Fn() -> bool,
}

impl Lines<'_> {
    fn put(&mut self, line: &Line, is_content: bool) -> Result<(), ExportError> {
        if (self.is_stopping)() {
            return Err(ExportError::Stopped);
        }
        let mut bytes = serde_json::to_vec(line).map_err(io::Error::from)?;
        bytes.push(b'\n');
        self.whole.update(&bytes);
        if is_content {
            match line {
                // Its number changes with the lines about exports between.
                Line::Audit(written) => self
                    .content
                    .update(&written.said().map_err(io::Error::from)?),
                Line::Header(_) | Line::File(_) | Line::Node(_) | Line::Row(_) | Line::End(_) => {
                    self.content.update(&bytes)
                }
            };
        }
        Ok(self.out.write_all(&bytes)?)
    }
}

/// What the names of the exports in the archive begin with.
pub(crate) fn prefix(archive: &str) -> String {
    format!("holdfast-admin-{archive}-")
}

fn is_export(archive: &str, name: &str) -> bool {
    name.strip_prefix(&prefix(archive))
        .is_some_and(|rest| rest.ends_with(".jsonl.gz"))
}
