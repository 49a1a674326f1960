//! `holdfast list`: what is in the archive, or in one replica, and whether that is all.

use std::io::Write;

use archive_client::{
    Access, Completeness, ListEntry, ListItem, Listing, ReplicaProgress, Selection,
};
use archive_model::{NamePattern, ReplicaId};
use clap::Args;
use serde::Serialize;
use tools_terminal::context::CommandContext;
use tools_terminal::describe;
use tools_terminal::exit::{Exit, Failure};
use tools_terminal::output::{or_dash, tell_user};
use tools_terminal::session::Session;

/// List the files of the archive, or those of one replica
///
/// Lists the files sorted by name. Without --replica, lists what the repository has recorded of every file, and asks no
/// replica. With --replica, lists the files that this replica reports now. Needs the role reader. The exit code is 1 if
/// the listing lacks something, or lists a file that is not as it should be.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  holdfast list
  holdfast list --replica two --match '12-.*[.]warc[.]gz'
  holdfast list --checksums > all.b3
  holdfast list --json | jq '.entries[].name'")]
pub(crate) struct List {
    /// List the files that this replica has now [default: every file, as the repository has recorded it]
    #[arg(long, value_name = "ID")]
    replica: Option<ReplicaId>,
    /// Only files whose whole name matches this regular expression [default: every file]
    #[arg(long = "match", value_name = "REGEX")]
    matching: Option<NamePattern>,
    /// Print lines in the format of `b3sum`, for `b3sum --check`
    #[arg(long, conflicts_with = "json")]
    checksums: bool,
}

/// The format in which entries are written.
trait Format {
    fn begin(&mut self, out: &mut dyn Write) -> std::io::Result<()>;
    fn entry(&mut self, out: &mut dyn Write, entry: &ListEntry) -> std::io::Result<()>;
    fn end(
        &mut self,
        out: &mut dyn Write,
        end: &Result<Completeness, Failure>,
    ) -> std::io::Result<()>;
}

impl List {
    pub(crate) async fn run(self, context: &CommandContext) -> Result<Exit, Failure> {
        let session = Session::open(&context.global)?;
        let of_replica = self.replica.is_some();
        let selection = Selection {
            replica: self.replica,
            matching: self.matching.map(|pattern| pattern.to_string()),
            after: None,
        };
        let mut listing = session.reader().list(&selection).await?;
        let mut format: Box<dyn Format> = match (context.output.is_json(), self.checksums) {
            (true, _) => Box::new(Document { first: true }),
            (false, true) => Box::new(Checksums),
            (false, false) => Box::new(Lines { of_replica }),
        };
        let mut out = context.output.writer();
        let mut wrong = false;
        let written = async {
            format.begin(&mut out)?;
            let end = loop {
                match step(&mut listing).await {
                    Ok(ListItem::Entry(entry)) => {
                        wrong |= is_wrong(&entry) || (self.checksums && entry.root.is_none());
                        format.entry(&mut out, &entry)?;
                    }
                    Ok(ListItem::End(end)) => break Ok(end),
                    Err(failure) => break Err(failure),
                }
            };
            format.end(&mut out, &end)?;
            out.flush()?;
            Ok(end)
        };
        let end = written
            .await
            .map_err(|error: std::io::Error| Failure::output_failed(&error))?;
        match end {
            Ok(end) => {
                for gap in &end.gaps {
                    tell_user(&format!(
                        "not listed: {}; see `holdfast status`",
                        describe::describe_gap(gap)
                    ));
                }
                Ok(if wrong || !end.gaps.is_empty() {
                    Exit::Failed
                } else {
                    Exit::Done
                })
            }
            Err(failure) => {
                // The document, if there is one, is out already, and says it too.
                tell_user(&failure.message);
                Ok(failure.exit)
            }
        }
    }
}

async fn step(listing: &mut Listing) -> Result<ListItem, Failure> {
    let item = listing.next().await?;
    item.ok_or_else(|| {
        Failure::new(
            Exit::Bug,
            "the listing ended without an end; this is a bug, please report it",
        )
    })
}

/// Returns whether a file is not as it should be.
fn is_wrong(entry: &ListEntry) -> bool {
    let here = entry
        .found
        .as_ref()
        .is_some_and(|found| !found.is_present());
    here || entry
        .replicas
        .iter()
        .any(|replica| replica.progress == ReplicaProgress::UploadFailed)
}

/// For people: sizes and states aligned, the name last.
struct Lines {
    of_replica: bool,
}

impl Format for Lines {
    fn begin(&mut self, out: &mut dyn Write) -> std::io::Result<()> {
        if self.of_replica {
            writeln!(
                out,
                "{:>16}  {:<10}  {:<20}  {:<24}  NAME",
                "BYTES", "CONDITION", "VERIFIED", "NODE/VOLUME"
            )
        } else {
            writeln!(out, "{:>16}  {:<8}  NAME", "BYTES", "REPLICAS")
        }
    }

    fn entry(&mut self, out: &mut dyn Write, entry: &ListEntry) -> std::io::Result<()> {
        let ListEntry { name, size, .. } = entry;
        if let Some(found) = &entry.found {
            let place = format!("{}/{}", found.place.node, found.place.volume);
            // Whole seconds are enough for people.
            let verified = found
                .verified
                .and_then(|at| at.round(jiff::Unit::Second).ok());
            let condition = found.condition.as_str();
            let verified = or_dash(verified.as_ref());
            return writeln!(
                out,
                "{size:>16}  {condition:<10}  {verified:<20}  {place:<24}  {name}"
            );
        }
        let complete = entry
            .replicas
            .iter()
            .filter(|replica| replica.progress == ReplicaProgress::UploadCompleted)
            .count();
        let replicas = format!("{complete}/{}", entry.replicas.len());
        writeln!(out, "{size:>16}  {replicas:<8}  {name}")
    }

    fn end(
        &mut self,
        _out: &mut dyn Write,
        _end: &Result<Completeness, Failure>,
    ) -> std::io::Result<()> {
        Ok(())
    }
}

/// For `b3sum --check`.
struct Checksums;

impl Format for Checksums {
    fn begin(&mut self, _out: &mut dyn Write) -> std::io::Result<()> {
        Ok(())
    }

    fn entry(&mut self, out: &mut dyn Write, entry: &ListEntry) -> std::io::Result<()> {
        // A name has no backslash and no line break, so nothing is to be escaped.
        let Some(root) = entry.root else {
            tell_user(&format!(
                "{}: no checksum is known there; see `holdfast stat`",
                entry.name
            ));
            return Ok(());
        };
        writeln!(out, "{root}  {}", entry.name)
    }

    fn end(
        &mut self,
        _out: &mut dyn Write,
        _end: &Result<Completeness, Failure>,
    ) -> std::io::Result<()> {
        Ok(())
    }
}

/// The listing as one JSON document, written while the entries come: whole and valid also when the listing is not.
struct Document {
    first: bool,
}

/// The end of the document.
#[derive(Serialize)]
struct End<'a> {
    complete: bool,
    #[serde(flatten)]
    counted: Option<&'a Completeness>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a Failure>,
}

impl Format for Document {
    fn begin(&mut self, out: &mut dyn Write) -> std::io::Result<()> {
        out.write_all(b"{\"entries\":[")
    }

    fn entry(&mut self, out: &mut dyn Write, entry: &ListEntry) -> std::io::Result<()> {
        out.write_all(if self.first { b"\n" } else { b",\n" })?;
        self.first = false;
        Ok(serde_json::to_writer(out, entry)?)
    }

    fn end(
        &mut self,
        out: &mut dyn Write,
        end: &Result<Completeness, Failure>,
    ) -> std::io::Result<()> {
        let end = End {
            complete: end.as_ref().is_ok_and(|end| end.gaps.is_empty()),
            error: end.as_ref().err(),
            counted: end.as_ref().ok(),
        };
        let text = serde_json::to_string(&end)?;
        // The fields belong to the object that `begin` began.
        writeln!(out, "\n],{}", text.strip_prefix('{').unwrap_or(&text))
    }
}

#[cfg(test)]
mod tests {
    use archive_model::{FileName, Gap};

    use super::*;

    fn entry(name: &str) -> ListEntry {
        ListEntry {
            name: FileName::new(name).unwrap(),
            size: 7,
            root: Some("0a".repeat(32).parse().unwrap()),
            found: None,
            replicas: Vec::new(),
        }
    }

    fn written(
        format: &mut dyn Format,
        entries: &[ListEntry],
        end: &Result<Completeness, Failure>,
    ) -> String {
        let mut out = Vec::new();
        format.begin(&mut out).unwrap();
        for entry in entries {
            format.entry(&mut out, entry).unwrap();
        }
        format.end(&mut out, end).unwrap();
        String::from_utf8(out).unwrap()
    }

    /// Fails if a listing with gaps, or one that breaks off, leaves JSON that does not parse or that calls itself
    /// complete.
    #[test]
    fn the_document_is_whole_whatever_happens() {
        let gap = Gap {
            replica: "two".parse().unwrap(),
            node: None,
            volume: None,
            reason: "silent".into(),
        };
        let ends = [
            (
                Ok(Completeness {
                    count: 2,
                    gaps: vec![],
                }),
                true,
            ),
            (
                Ok(Completeness {
                    count: 2,
                    gaps: vec![gap],
                }),
                false,
            ),
            (Err(Failure::because_failed("cut")), false),
        ];
        for (end, complete) in ends {
            for entries in [vec![], vec![entry("a")], vec![entry("a"), entry("b")]] {
                let text = written(&mut Document { first: true }, &entries, &end);
                let document: serde_json::Value = serde_json::from_str(&text).unwrap();
                assert_eq!(document["entries"].as_array().unwrap().len(), entries.len());
                assert_eq!(document["complete"], complete);
                assert_eq!(document.get("error").is_some(), end.is_err());
                assert_eq!(document.get("count").is_some(), end.is_ok());
            }
        }
    }

    /// Fails if `b3sum --check` could not read what `list --checksums` prints.
    #[test]
    fn checksum_lines_are_those_of_b3sum() {
        let end = Ok(Completeness {
            count: 1,
            gaps: vec![],
        });
        let text = written(&mut Checksums, &[entry("Måned 1.warc")], &end);
        assert_eq!(text, format!("{}  Måned 1.warc\n", "0a".repeat(32)));
    }
}
