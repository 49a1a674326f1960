//! The words in which a job is shown to people.

use archive_client::batch::{JobNode, JobStatus};
use archive_model::{JobSpec, Program};
use tools_terminal::describe::{describe_gap, describe_time, time_or_dash};
use tools_terminal::output::size_text;

/// Names the program and its input.
pub(super) fn describe_spec(spec: &JobSpec) -> String {
    let mut words = match &spec.program {
        Program::BuiltIn(job) => job.clone(),
        Program::Component(digest) => {
            let hex = digest.to_string();
            format!("component {}", hex.get(..16).unwrap_or(&hex))
        }
    };
    for (name, value) in &spec.arguments {
        words.extend([" ", name, "=", value]);
    }
    let files = match (&spec.names, spec.files.as_str()) {
        (Some(names), _) => format!("{} named file(s)", names.as_slice().len()),
        (None, "") => "all files".to_owned(),
        (None, expression) => expression.to_owned(),
    };
    words.extend([" over ", &files, " of replica ", spec.replica.as_str()]);
    words
}

/// Returns the lines that tell people of a job.
pub(super) fn describe_job(job: &JobStatus) -> Vec<String> {
    let JobStatus {
        id,
        state,
        spec,
        files,
        failed,
        unread,
        records,
        ..
    } = job;
    let reason = match &job.reason {
        Some(reason) => format!(": {reason}"),
        None => String::new(),
    };
    let mut lines = vec![
        format!("job {id} is {state}{reason}"),
        format!("  {}", describe_spec(spec)),
        format!(
            "  submitted by {}, {}",
            job.who,
            describe_time(job.submitted)
        ),
    ];
    if job.started.is_some() {
        let started = time_or_dash(job.started);
        let ended = time_or_dash(job.ended);
        lines.push(format!("  began {started}, ended {ended}"));
    }
    lines.push(format!(
        "  {files} file(s) read, {} of them, {records} record(s); {failed} with failures, {unread} not read",
        size_text(job.bytes)
    ));
    if state.has_ended() {
        lines.push(format!(
            "  result {}, errors {}, manifest {}; kept until {}",
            size_text(job.result_bytes),
            size_text(job.error_bytes),
            size_text(job.manifest_bytes),
            time_or_dash(job.expires)
        ));
    } else {
        lines.extend(job.nodes.iter().map(node));
    }
    if job.restarts > 0 {
        lines.push(format!("  begun again {} time(s)", job.restarts));
    }
    lines.extend(
        job.gaps
            .iter()
            .map(|lack| format!("  not read: {}", describe_gap(lack))),
    );
    lines
}

fn node(node: &JobNode) -> String {
    let of = match node.files_total {
        Some(total) => format!(" of {total}"),
        None => String::new(),
    };
    let files = node.files;
    let bytes = size_text(node.bytes);
    format!("  node {}: {files}{of} file(s), {bytes}", node.node)
}

#[cfg(test)]
pub(super) mod tests {
    use archive_client::batch::JobState;
    use archive_model::{JobId, JobLimits, NameList};

    use super::*;

    pub(in crate::commands::batch) fn status(state: JobState) -> JobStatus {
        JobStatus {
            id: JobId::new("b-1").unwrap(),
            spec: JobSpec {
                program: Program::BuiltIn("checksum".into()),
                arguments: vec![("algorithm".into(), "md5".into())],
                files: String::new(),
                names: None,
                replica: "one".parse().unwrap(),
                limits: JobLimits::default(),
                keep: None,
            },
            state,
            reason: None,
            who: "researcher/rita".into(),
            submitted: "2026-01-02T03:04:05Z".parse().unwrap(),
            started: None,
            ended: None,
            expires: None,
            files: 3,
            failed: 0,
            unread: 0,
            records: 0,
            bytes: 1000,
            output_bytes: 0,
            result_bytes: 0,
            error_bytes: 0,
            manifest_bytes: 0,
            gaps: Vec::new(),
            nodes: Vec::new(),
            restarts: 0,
        }
    }

    /// Fails if a job is shown without the progress of a node, without the reason of its failure, or as if it read all
    /// files where it reads a few.
    #[test]
    fn job_line_names_job_and_progress() {
        let running = JobStatus {
            nodes: vec![JobNode {
                node: "one-1".parse().unwrap(),
                files: 3,
                files_total: Some(7),
                bytes: 1000,
                seen: None,
            }],
            ..status(JobState::Running)
        };
        let text = describe_job(&running).join("\n");
        for words in [
            "job b-1 is running",
            "checksum algorithm=md5 over all files of replica one",
            "node one-1: 3 of 7 file(s), 1.0 kB",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
        let mut listed = status(JobState::Queued);
        let names = ["a.warc", "b.warc"].map(|name| name.parse().unwrap());
        listed.spec.names = Some(NameList::new(names.to_vec()).unwrap());
        let text = describe_job(&listed).join("\n");
        let words = "over 2 named file(s) of replica one";
        assert!(text.contains(words), "{text}");
        let failed = JobStatus {
            reason: Some("its time is over".into()),
            ..status(JobState::Failed)
        };
        let text = describe_job(&failed).join("\n");
        assert!(text.contains("is failed: its time is over"), "{text}");
        assert!(text.contains("kept until"), "{text}");
    }
}
