//! `holdfast admin restore`: lost admin data restored, from an export or from the admissions beside the files.

use std::path::PathBuf;

use archive_daemon::Clock;
use archive_ledger::restore::{FromExport, RestoreError, RestoreFindings, from_export};
use archive_model::NodeKey;
use archive_repository::restore::{AllowedGaps, RestoreReport, from_both, from_replicas};
use clap::Args;
use serde_json::{Value, json};
use tools_terminal::context::CommandContext;
use tools_terminal::exit::{Exit, Failure};

use crate::commands::{parts, talk};

/// Restore lost admin data, while the repository is stopped
///
/// Refuses if there are admin data: nothing is ever replaced. The exit code is 1 if anything was left out.
///
/// An export does not have files that were admitted after it was made. With --from-replicas as well, the admissions of
/// the replicas are added; the export decides about every file that it has. Without them, the next check reports such
/// files as unexpected.
///
/// Without an export, a removed copy stays removed only if it still lies in an attic. Nobody has signed the record of
/// an attic, so each such removal is listed, and shown by `holdfast stat`, as unproven.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  holdfast admin restore --settings repository.toml --from admin.jsonl
  holdfast admin restore --settings repository.toml --from-replicas")]
pub(crate) struct Restore {
    /// The settings file of the stopped repository
    #[arg(long, value_name = "FILE")]
    settings: PathBuf,
    /// Restore from this export, compressed with gzip or not
    #[arg(long, value_name = "EXPORT", required_unless_present = "from_replicas")]
    from: Option<PathBuf>,
    /// Restore from the signed admissions beside the files of every node; with --from, after the export
    #[arg(long)]
    from_replicas: bool,
    /// Restore the lines of a damaged export that are intact
    #[arg(long, requires = "from")]
    skip_damaged: bool,
    /// Go on without the nodes and volumes that do not answer
    #[arg(long, requires = "from_replicas")]
    partial: bool,
}

impl Restore {
    pub(crate) fn run(self, context: &CommandContext) -> Result<Exit, Failure> {
        let settings: archive_repository::Settings =
            parts::load_part_settings(&self.settings, &context.global.set)?;
        match &self.from {
            Some(export) if self.from_replicas => talk(async {
                let allowed = AllowedGaps {
                    skip_damaged: self.skip_damaged,
                    partial: self.partial,
                };
                let both = from_both(&settings, export, allowed, Clock::system_clock()).await;
                let (exported, found) = both.map_err(|error| failure(&error))?;
                if exported.time.is_some() && exported.damaged.count > 0 && !self.skip_damaged {
                    return show_export(context, &exported);
                }
                show_both(context, &exported, &found)
            }),
            Some(export) => {
                let now = Clock::system_clock().now();
                let report = from_export(
                    settings.repository.restore_target(),
                    export,
                    self.skip_damaged,
                    now,
                );
                show_export(context, &report.map_err(|error| failure(&error))?)
            }
            None => talk(async {
                let report = from_replicas(&settings, self.partial, Clock::system_clock()).await;
                show_replicas(context, &report.map_err(|error| failure(&error))?)
            }),
        }
    }
}

fn failure(error: &RestoreError) -> Failure {
    let exit = match error {
        RestoreError::There(_) => Exit::Refused,
        RestoreError::File { .. } | RestoreError::Settings(_) => Exit::Settings,
        RestoreError::Export { .. }
        | RestoreError::Log(_)
        | RestoreError::Admin(_)
        | RestoreError::Database(_)
        | RestoreError::Disk(_) => Exit::Failed,
        RestoreError::Join(_) => Exit::Bug,
    };
    Failure::new(exit, error.to_string())
}

fn exit(written: bool, left_out: &[&RestoreFindings]) -> Exit {
    if written && left_out.iter().all(|findings| findings.count == 0) {
        Exit::Done
    } else {
        Exit::Failed
    }
}

fn document(findings: &RestoreFindings) -> Value {
    let list = findings.list.iter();
    let list: Vec<Value> = list
        .map(|finding| json!({ "about": finding.about, "what": finding.what }))
        .collect();
    json!({ "count": findings.count, "first": list })
}

fn lines(context: &CommandContext, title: &str, findings: &RestoreFindings) -> Result<(), Failure> {
    if findings.count == 0 {
        return Ok(());
    }
    context
        .output
        .write_line(&format!("{title}: {}", findings.count))?;
    for finding in &findings.list {
        context
            .output
            .write_line(&format!("  {}: {}", finding.about, finding.what))?;
    }
    Ok(())
}

/// Returns the result of restoring from an export, for programs.
fn export_document(report: &FromExport) -> Value {
    let FromExport {
        time,
        files,
        nodes,
        audit,
        rows,
        intents,
        damaged,
        removed,
        written,
    } = report;
    json!({
        "written": written, "exported": time, "files": files, "nodes": nodes, "audit_lines": audit,
        "rows": rows, "intents": intents, "damaged": document(damaged), "removed": document(removed),
    })
}

/// Returns the result of restoring from the replicas, for programs.
fn replicas_document(report: &RestoreReport) -> Value {
    let RestoreReport {
        nodes,
        files,
        incomplete,
        removed,
        logged,
        contradicting,
        unsigned,
        silent,
        written,
    } = report;
    let nodes: Vec<Value> = nodes
        .iter()
        .map(|NodeKey { replica, node }| json!({ "replica": replica, "node": node }))
        .collect();
    json!({
        "written": written, "nodes": nodes, "files": files, "not_in_every_replica": incomplete,
        "removed": document(removed), "removed_by_log": document(logged), "contradicting": document(contradicting),
        "unsigned": document(unsigned), "silent": document(silent),
    })
}

/// Shows what an export had, and what the replicas know beyond it.
fn show_both(
    context: &CommandContext,
    exported: &FromExport,
    found: &RestoreReport,
) -> Result<Exit, Failure> {
    if context.output.is_json() {
        context.output.write_document(&json!({
            "export": export_document(exported), "replicas": replicas_document(found),
        }))?;
        return Ok(exit(
            found.written,
            &[
                &exported.damaged,
                &found.contradicting,
                &found.unsigned,
                &found.silent,
            ],
        ));
    }
    lines(context, "damaged lines, left out", &exported.damaged)?;
    lines(
        context,
        "removed after the export, as the audit log says",
        &exported.removed,
    )?;
    let time = exported.time.map(|time| time.to_string());
    context.output.write_line(&format!(
        "the export has {} files, as of {}; beyond it:",
        exported.files,
        time.unwrap_or_default()
    ))?;
    let shown = show_replicas(context, found)?;
    Ok(if exported.damaged.count == 0 {
        shown
    } else {
        Exit::Failed
    })
}

fn show_export(context: &CommandContext, report: &FromExport) -> Result<Exit, Failure> {
    let FromExport {
        time,
        files,
        nodes,
        audit,
        rows,
        intents: _,
        damaged,
        removed,
        written,
    } = report;
    let exit = exit(*written, &[damaged]);
    if context.output.is_json() {
        context.output.write_document(&export_document(report))?;
        return Ok(exit);
    }
    lines(context, "damaged lines, left out", damaged)?;
    lines(
        context,
        "removed after the export, as the audit log says",
        removed,
    )?;
    let time = time.map(|time| time.to_string()).unwrap_or_default();
    let what = format!(
        "{files} files, {nodes} nodes, {rows} rows of other tables and {audit} lines of the audit trail, as of {time}"
    );
    if *written {
        context.output.write_line(&format!("restored: {what}"))?;
        let after = "what was stored after that is found by the next check as unexpected; start the repository";
        context.output.write_line(after)?;
    } else {
        context.output.write_line(&format!(
            "nothing was written; {what} could be restored with --skip-damaged, if there is no better export"
        ))?;
    }
    Ok(exit)
}

fn show_replicas(context: &CommandContext, report: &RestoreReport) -> Result<Exit, Failure> {
    let RestoreReport {
        nodes,
        files,
        incomplete,
        removed,
        logged,
        contradicting,
        unsigned,
        silent,
        written,
    } = report;
    let exit = exit(*written, &[contradicting, unsigned, silent]);
    if context.output.is_json() {
        context.output.write_document(&replicas_document(report))?;
        return Ok(exit);
    }
    for node in nodes {
        context.output.write_line(&format!("asked: {node}"))?;
    }
    lines(context, "did not answer, or not wholly", silent)?;
    lines(
        context,
        "still removed, unproven: only an attic says that two persons decided it",
        removed,
    )?;
    lines(context, "still removed, as the audit log says", logged)?;
    lines(
        context,
        "contradicting admissions, left out until people decide",
        contradicting,
    )?;
    lines(context, "without a valid admission, left out", unsigned)?;
    if *written {
        context.output.write_line(&format!(
            "re-established: {files} files, {incomplete} of them not in every replica"
        ))?;
        context.output.write_line(
            "the restored admin data lack the trail before this, and files that depositors had only begun to store; start \
             the repository, then let a check confirm",
        )?;
    } else {
        context.output.write_line(
            "nothing was written; make the nodes that did not answer reachable, or continue without them with --partial",
        )?;
    }
    Ok(exit)
}
