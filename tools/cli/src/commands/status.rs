//! `holdfast status`: the archive at a glance.

use std::collections::BTreeSet;

use archive_client::{Access, ArchiveStatus, Drain, ReplicaOverview};
use archive_model::{NodeState, ReplicaKind, VolumeState};
use clap::Args;
use tools_terminal::context::CommandContext;
use tools_terminal::describe;
use tools_terminal::exit::{Exit, Failure};
use tools_terminal::output::{Output, TableColumn, TextTable, or_dash, size_text, tell_user};
use tools_terminal::session::Session;

/// Show replicas, nodes, volumes, space and what is wrong
///
/// Needs the role reader or operator. The exit code is 1 if a part does not answer, a volume is offline, an anomaly is
/// open, a drain is held up, or a file is not in every required replica. That all required copies are at one site is
/// reported, and does not change the exit code.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  holdfast status
  holdfast status --json | jq '.below_required'")]
pub(crate) struct Status {}

impl Status {
    pub(crate) async fn run(self, context: &CommandContext) -> Result<Exit, Failure> {
        let session = Session::open(&context.global)?;
        let status = session.reader().status().await?;
        if context.output.is_json() {
            context.output.write_document(&status)?;
        } else {
            show(&context.output, &status)?;
        }
        let problems = problems(&status);
        for problem in only_site(&status).iter().chain(&problems) {
            tell_user(problem);
        }
        Ok(if problems.is_empty() {
            Exit::Done
        } else {
            Exit::Failed
        })
    }
}

fn show(output: &Output, status: &ArchiveStatus) -> Result<(), Failure> {
    let ArchiveStatus {
        files,
        bytes,
        version,
        ..
    } = status;
    output.write_line(&format!(
        "{files} files, {}; repository {version}",
        size_text(*bytes)
    ))?;
    if let Some(held) = &status.held {
        output.write_line(&format!(
            "nothing is repaired automatically: {held}; see `holdfast repair --all --dry-run`"
        ))?;
    }
    output.write_line("")?;
    output.write_table(&replica_table(&status.replicas))?;
    output.write_line("")?;
    output.write_table(&volume_table(&status.replicas))?;
    for drain in &status.drains {
        output.write_line(&describe::describe_drain(drain))?;
    }
    Ok(())
}

fn replica_table(replicas: &[ReplicaOverview]) -> TextTable {
    let mut table = TextTable::new(&[
        TableColumn::Left("REPLICA"),
        TableColumn::Left("KIND"),
        TableColumn::Left("REQUIRED"),
        TableColumn::Right("NODES"),
        TableColumn::Left("STATE"),
    ]);
    for replica in replicas {
        let in_service = || replica.nodes.iter().filter(|node| !node.is_retired());
        let alive = in_service().filter(|node| node.alive).count();
        let problem = replica.problem.clone();
        table.push([
            replica.replica.to_string(),
            replica.kind.to_string(),
            if replica.required { "yes" } else { "no" }.to_owned(),
            format!("{alive}/{}", in_service().count()),
            problem.unwrap_or_else(|| "answers".to_owned()),
        ]);
    }
    table
}

/// Returns the table of volumes. A node without volumes has a row too.
fn volume_table(replicas: &[ReplicaOverview]) -> TextTable {
    let mut table = TextTable::new(&[
        TableColumn::Left("REPLICA"),
        TableColumn::Left("NODE"),
        TableColumn::Left("ENDPOINT"),
        TableColumn::Left("SEEN"),
        TableColumn::Left("VOLUME"),
        TableColumn::Left("MODE"),
        TableColumn::Right("FREE"),
        TableColumn::Right("TOTAL"),
        TableColumn::Left("PATH"),
    ]);
    for overview in replicas {
        for node in &overview.nodes {
            let [replica, id, endpoint, seen] = [
                overview.replica.to_string(),
                node.node.to_string(),
                node.endpoint.clone(),
                seen(node),
            ];
            for volume in &node.volumes {
                table.push([
                    replica.clone(),
                    id.clone(),
                    endpoint.clone(),
                    seen.clone(),
                    or_dash(volume.volume.as_ref()),
                    mode(volume).to_owned(),
                    size_text(volume.free),
                    size_text(volume.total),
                    volume.path.clone(),
                ]);
            }
            if node.volumes.is_empty() {
                let dash = || "-".to_owned();
                let row = [
                    replica,
                    id,
                    endpoint,
                    seen,
                    dash(),
                    dash(),
                    dash(),
                    dash(),
                    dash(),
                ];
                table.push(row);
            }
        }
    }
    table
}

/// Returns when a node was last heard, as a word where it is in touch or in no service.
fn seen(node: &NodeState) -> String {
    if node.is_retired() {
        "retired".to_owned()
    } else if node.alive {
        "now".to_owned()
    } else {
        or_dash(node.seen.as_ref())
    }
}

fn mode(volume: &VolumeState) -> &'static str {
    match (&volume.problem, volume.retired) {
        (_, true) => "retired",
        (Some(_), false) => "offline",
        (None, false) => volume.mode.as_str(),
    }
}

/// Returns the warning where all required replicas that keep bytes stand at one site; nothing where the site of one is
/// not known.
fn only_site(status: &ArchiveStatus) -> Option<String> {
    let required = status.replicas.iter().filter(|replica| {
        replica.required && !replica.retired && replica.kind == ReplicaKind::Bitarchive
    });
    let sites = required.map(|replica| replica.site.as_ref());
    let sites: Option<BTreeSet<&String>> = sites.collect();
    let mut sites = sites?.into_iter();
    match (sites.next(), sites.next()) {
        (Some(only), None) => Some(format!(
            "every required copy stands at one site ({only}): one fire or flood can take them all; add a required \
             replica at another site"
        )),
        (_, _) => None,
    }
}

/// Returns the state of the archive in a line.
pub(crate) fn state_line(status: &ArchiveStatus) -> String {
    let problems = problems(status);
    let wrong = match problems.as_slice() {
        [] => "nothing is wrong".to_owned(),
        [problem] => problem.clone(),
        [first, ..] => format!("{} problems, `holdfast status`: {first}", problems.len()),
    };
    format!(
        "{} files, {} · {wrong}",
        status.files,
        size_text(status.bytes)
    )
}

/// Returns the problems that an operator should look at.
fn problems(status: &ArchiveStatus) -> Vec<String> {
    let mut problems = status.problems.clone();
    if status.below_required > 0 {
        let count = status.below_required;
        problems.push(format!(
            "{count} files are not in every required replica; see `holdfast list`"
        ));
    }
    for (kind, count) in status.anomalies.iter().filter(|(_, count)| **count > 0) {
        problems.push(format!("{count} {kind}; see `holdfast anomalies`"));
    }
    for ReplicaOverview {
        replica,
        kind,
        problem,
        nodes,
        ..
    } in &status.replicas
    {
        if let Some(problem) = problem {
            let part = match kind {
                ReplicaKind::Bitarchive => "its monitor",
                ReplicaKind::Checksum => "it",
            };
            problems.push(format!(
                "replica {replica} does not answer: {problem}; see that {part} is running"
            ));
        }
        for node in nodes.iter().filter(|node| !node.is_retired()) {
            if let Some(problem) = &node.problem {
                let id = &node.node;
                problems.push(format!("node {id} of replica {replica}: {problem}"));
            } else if !node.alive {
                let seen = or_dash(node.seen.as_ref());
                problems.push(format!(
                    "node {} of replica {replica} is silent (last seen: {seen}); see that it is running",
                    node.node
                ));
            }
            for volume in node.volumes.iter().filter(|volume| !volume.retired) {
                if let Some(problem) = &volume.problem {
                    let path = &volume.path;
                    let node = &node.node;
                    let name = volume.volume.as_ref().filter(|_| volume.unreported);
                    problems.push(match name {
                        Some(id) => {
                            format!("volume {id} of node {node} is not there: {problem}")
                        }
                        None => format!(
                            "volume {path} of node {node} is offline, for reading too: {problem}; look at that disk"
                        ),
                    });
                }
                problems.extend(volume.warnings.iter().map(|warning| {
                    format!("volume {} of node {}: {warning}", volume.path, node.node)
                }));
            }
        }
    }
    let is_waiting = |drain: &&Drain| drain.drained.is_none() && drain.held.is_some();
    problems.extend(
        status
            .drains
            .iter()
            .filter(is_waiting)
            .map(describe::describe_drain),
    );
    problems
}

#[cfg(test)]
mod tests {
    use archive_model::Mode;

    use super::*;

    /// Fails if a silent node, an offline or vanished volume, or a warning is left out of the problems, or if a retired
    /// disk is among them.
    #[test]
    fn status_names_every_problem_and_dashes_retired_disks() {
        let volume = |problem: Option<&str>, retired| VolumeState {
            path: "/disk".into(),
            problem: problem.map(Into::into),
            total: 2,
            free: 1,
            retired,
            warnings: problem.map(|_| "full of dust".into()).into_iter().collect(),
            ..VolumeState::default()
        };
        let node = |alive, volumes| NodeState {
            endpoint: "h:1".into(),
            volumes,
            alive,
            ..NodeState::unheard_node("n-1".parse().unwrap())
        };
        let status = |problem: Option<&str>, nodes, below_required| ArchiveStatus {
            replicas: vec![ReplicaOverview {
                replica: "one".parse().unwrap(),
                kind: ReplicaKind::Bitarchive,
                required: true,
                problem: problem.map(Into::into),
                site: None,
                retired: false,
                nodes,
            }],
            files: 1,
            bytes: 1,
            below_required,
            version: "1".into(),
            anomalies: [("missing", below_required)].into(),
            held: None,
            drains: Vec::new(),
            problems: Vec::new(),
        };
        let good = node(true, vec![volume(None, false), volume(Some("gone"), true)]);
        assert_eq!(
            problems(&status(None, vec![good.clone()], 0)),
            Vec::<String>::new()
        );
        let retired = NodeState {
            mode: Some(Mode::Retired),
            ..node(false, vec![volume(Some("EIO"), false)])
        };
        assert_eq!(problems(&status(None, vec![retired], 0)), [""; 0]);
        let forgotten = VolumeState {
            volume: Some("v-3".parse().unwrap()),
            unreported: true,
            ..volume(Some("its node does not know it"), false)
        };
        let namesake = NodeState {
            problem: Some("replica two has a node n-1 too".into()),
            ..node(true, vec![forgotten])
        };
        let all = problems(&status(None, vec![namesake], 0)).join("\n");
        for part in [
            "node n-1 of replica one: replica two",
            "volume v-3 of node n-1 is not there",
        ] {
            assert!(all.contains(part), "{part}: {all}");
        }
        let bad = node(false, vec![volume(Some("EIO"), false)]);
        let all = problems(&status(Some("refused"), vec![good, bad], 3)).join("\n");
        for part in [
            "3 files",
            "3 missing",
            "replica one",
            "refused",
            "n-1",
            "silent",
            "/disk",
            "EIO",
            "full of dust",
        ] {
            assert!(all.contains(part), "{part}: {all}");
        }
    }

    /// Fails if no warning says that all required copies burn together, or if there is one for an archive whose sites
    /// are not known, or of copies that are not required or in no service any more.
    #[test]
    fn one_site_of_all_required_copies_warns() {
        let status = |sites: &[(&str, bool, bool)]| ArchiveStatus {
            replicas: sites
                .iter()
                .zip(["one", "two", "three"])
                .map(|((site, required, is_bytes), id)| ReplicaOverview {
                    replica: id.parse().unwrap(),
                    kind: if *is_bytes {
                        ReplicaKind::Bitarchive
                    } else {
                        ReplicaKind::Checksum
                    },
                    required: *required,
                    problem: None,
                    site: (!site.is_empty()).then(|| (*site).to_owned()),
                    retired: false,
                    nodes: Vec::new(),
                })
                .collect(),
            files: 1,
            bytes: 1,
            below_required: 0,
            version: "1".into(),
            anomalies: [].into(),
            held: None,
            drains: Vec::new(),
            problems: Vec::new(),
        };
        for (sites, is_said) in [
            (&[("aarhus", true, true), ("aarhus", true, true)][..], true),
            (&[("aarhus", true, true), ("odense", true, true)], false),
            (&[("aarhus", true, true), ("", true, true)], false),
            (&[("", true, true), ("", true, true)], false),
            (&[("aarhus", true, true), ("odense", false, true)], true),
            (&[("aarhus", true, true), ("odense", true, false)], true),
        ] {
            let said = only_site(&status(sites));
            assert_eq!(said.is_some(), is_said, "{sites:?}");
            assert!(said.is_none_or(|said| said.contains("aarhus")));
        }
        let mut retired = status(&[("aarhus", true, true), ("odense", true, true)]);
        retired.replicas[1].retired = true;
        assert!(only_site(&retired).is_some(), "a retired copy counts");
    }
}
