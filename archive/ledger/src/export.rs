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
//! It is all as it stood at one moment. `audit_head` is the SHA-256 of the last line of the audit log: an export that
//! is stored in the replicas shows whether the log was rewritten since.
//!
//! Format 1 had files, nodes and trail alone; it is still read.
//!
//! Not promised: when checks and exports are due, and since when each volume has been in its state. That begins anew.

mod rows;
mod snapshot;
#[cfg(test)]
mod tests;

use std::fmt;
use std::io::{self, Write};
use std::path::Path;

use archive_db::DbError;
use archive_model::{NodeId, ReplicaId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

pub use rows::{RowCounts, TableRow, TableRows, Tables};

use self::snapshot::Snapshot;
use crate::admin::{Admin, AdminRow};
use crate::audit::Trail;
use crate::audit_log::{Chain, LogError, TrailLineJson};
use crate::standing::Retirement;

/// The format, in the first line.
pub const FORMAT: &str = "holdfast-admin-export/2";

/// A line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExportLine {
    /// The first line.
    Header(ExportHeader),
    /// A file.
    File(Box<AdminRow>),
    /// A node.
    Node(ExportNode),
    /// A line of the trail.
    Audit(TrailLineJson),
    /// The last line.
    End(ExportEnd),
    /// A row of another table.
    #[serde(untagged)]
    Row(Box<TableRow>),
}

/// The first line.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ExportHeader {
    /// The format and its version.
    pub format: String,
    /// The name of the archive.
    pub archive: String,
    /// The moment that the export shows.
    pub time: Timestamp,
}

/// A node of a replica.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ExportNode {
    /// The replica of the node.
    pub replica: ReplicaId,
    /// The name of the node.
    #[serde(rename = "node")]
    pub id: NodeId,
    /// When and why people took the node out of service; `None` if it is in service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retired: Option<Retirement>,
}

/// The last line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportEnd {
    /// The number of files.
    pub files: u64,
    /// The number of nodes.
    pub nodes: u64,
    /// The number of lines of the trail.
    pub audit: u64,
    /// The number of rows of the other tables.
    pub rows: RowCounts,
    /// SHA-256 of the last line of the audit log, in hex.
    pub audit_head: String,
    /// BLAKE3 of every byte before this line, in hex.
    pub blake3: String,
}

/// The content of an export, counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportSummary {
    /// The last line.
    pub end: ExportEnd,
    /// BLAKE3 of the lines without the time, and without the traces of storing exports: equal if nothing else changed.
    pub content: String,
}

/// The reason why there is no export.
#[derive(Debug, thiserror::Error)]
pub enum ExportTablesError {
    /// The admin data cannot be read.
    #[error(transparent)]
    Database(#[from] DbError),
    /// The audit log cannot be read, or is not believed.
    #[error("{0}")]
    Log(#[from] LogError),
    /// The export cannot be written.
    #[error("the export cannot be written: {0}")]
    Write(#[from] io::Error),
    /// The repository stops.
    #[error("the repository stops")]
    Stopped,
}

/// The tables that are to be exported.
pub struct TablesExport<'a> {
    /// The admin data.
    pub admin: &'a Admin,
    /// The directory of the audit log.
    pub log: &'a Path,
    /// The name of the archive.
    pub archive: &'a str,
    /// The time that the first line says.
    pub time: Timestamp,
    /// Whether to break off.
    pub is_stopping: &'a dyn Fn() -> bool,
}

impl fmt::Debug for TablesExport<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Export").finish_non_exhaustive()
    }
}

impl TablesExport<'_> {
    /// Writes the export to `out`. Memory holds one line.
    ///
    /// # Errors
    ///
    /// [`ExportTablesError`] if the admin data cannot be read, or `out` does not take the lines.
    pub fn write_export(&self, out: &mut dyn Write) -> Result<ExportSummary, ExportTablesError> {
        let tables = Tables::open(self.admin)?;
        let Snapshot {
            files,
            nodes,
            rows,
            trail,
        } = Snapshot::take_snapshot(self.admin, &tables)?;
        let mut lines = Lines {
            out,
            whole: blake3::Hasher::new(),
            content: blake3::Hasher::new(),
            is_stopping: self.is_stopping,
        };
        let header = ExportLine::Header(ExportHeader {
            format: FORMAT.to_owned(),
            archive: self.archive.to_owned(),
            time: self.time,
        });
        lines.put(&header, false)?;
        let mut end = ExportEnd {
            files: 0,
            nodes: 0,
            audit: 0,
            rows: RowCounts::default(),
            audit_head: String::new(),
            blake3: String::new(),
        };
        for row in files {
            let row = row?;
            let is_own = is_export(self.archive, row.record.name.as_str());
            lines.put(&ExportLine::File(Box::new(row)), !is_own)?;
            end.files += 1;
        }
        for node in nodes {
            lines.put(&ExportLine::Node(node?), true)?;
            end.nodes += 1;
        }
        for row in rows {
            let row = row?;
            end.rows.add(&row);
            lines.put(&ExportLine::Row(Box::new(row)), true)?;
        }
        let mut chain = Chain::start_chain();
        for entry in Trail::from_snapshot(trail, self.log)? {
            let entry = entry?;
            chain
                .chain_line(entry.number, &entry.line)
                .map_err(|error| ExportTablesError::Log(error.into()))?;
            let file = entry.line.file.as_ref();
            let is_own = file.is_some_and(|name| is_export(self.archive, name.as_str()));
            lines.put(
                &ExportLine::Audit(TrailLineJson::new(entry.number, &entry.line)),
                !is_own,
            )?;
            end.audit += 1;
        }
        end.audit_head = chain.previous().to_string();
        end.blake3 = lines.whole.finalize().to_hex().to_string();
        let content = lines.content.finalize().to_hex().to_string();
        lines.put(&ExportLine::End(end.clone()), false)?;
        lines.out.flush()?;
        Ok(ExportSummary { end, content })
    }
}

struct Lines<'a> {
    out: &'a mut dyn Write,
    whole: blake3::Hasher,
    content: blake3::Hasher,
    is_stopping: &'a dyn Fn() -> bool,
}

impl Lines<'_> {
    fn put(&mut self, line: &ExportLine, is_content: bool) -> Result<(), ExportTablesError> {
        if (self.is_stopping)() {
            return Err(ExportTablesError::Stopped);
        }
        let mut bytes = serde_json::to_vec(line).map_err(io::Error::from)?;
        bytes.push(b'\n');
        self.whole.update(&bytes);
        if is_content {
            match line {
                // Its number changes with the lines about exports between.
                ExportLine::Audit(written) => self
                    .content
                    .update(&written.content().map_err(io::Error::from)?),
                ExportLine::Header(_)
                | ExportLine::File(_)
                | ExportLine::Node(_)
                | ExportLine::Row(_)
                | ExportLine::End(_) => self.content.update(&bytes),
            };
        }
        Ok(self.out.write_all(&bytes)?)
    }
}

/// Returns the beginning of the names of the exports in the archive.
pub fn file_prefix(archive: &str) -> String {
    format!("holdfast-admin-{archive}-")
}

fn is_export(archive: &str, name: &str) -> bool {
    name.strip_prefix(&file_prefix(archive))
        .is_some_and(|rest| rest.ends_with(".jsonl.gz"))
}
