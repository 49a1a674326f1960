//! Jobs of the index beside those of researchers: they wait for none of them.

use std::time::Duration;

use archive_client::batch::{
    JobFailure, JobLines, JobOutput, JobState, JobSubmission, read_output_lines, run_job,
};
use archive_client::{Batch, ClientError, Researcher};
use archive_model::{FileName, JobId, NameList};
use tokio::time::{Instant, timeout};

use super::batch::{ENDLESS, component, ended, files_on_two_nodes, index, job, researcher};
use super::visits::{limits, name};
use super::world::{Cluster, LONG, eventually, on_a_cluster};

/// Returns the job that the index runs over files that were stored just now.
fn cdx(id: &str, names: &[&FileName]) -> JobSubmission {
    let names = names.iter().map(|name| (*name).clone()).collect();
    JobSubmission {
        arguments: vec![("post-append".to_owned(), "true".to_owned())],
        names: Some(NameList::new(names).unwrap()),
        replica: Some("one".parse().unwrap()),
        keep: Some(Duration::from_mins(10)),
        ..JobSubmission::built_in(JobId::new(id).unwrap(), "extract-cdx")
    }
}

async fn all(mut lines: JobLines) -> Vec<String> {
    let mut all = Vec::new();
    while let Some(line) = lines.next().await.unwrap() {
        all.push(String::from_utf8(line.to_vec()).unwrap());
    }
    all
}

/// Fails if the index waits until two studies of days have ended, takes a place of a researcher, gets other lines than
/// one machine makes of the same files, or is not told of a name that nobody has.
#[test]
fn index_reads_named_files_beside_two_long_jobs() {
    on_a_cluster(async |cluster: &mut Cluster| {
        let files = files_on_two_nodes(cluster, 4, 9).await;
        let rita = researcher(cluster);
        for id in ["long-1", "long-2"] {
            let long = component(id, ENDLESS);
            rita.submit(&long).await.unwrap();
            eventually("it computes", LONG, async || {
                let status = rita.find(&long.id).await.unwrap();
                assert!(!status.state.has_ended(), "{status:?}");
                (!status.nodes.is_empty()).then_some(()).ok_or(status)
            })
            .await;
        }
        // The places of researchers are taken, for one of them too.
        let third = job("third", "file-list");
        rita.submit(&third).await.unwrap();

        let of_index = Researcher::new(cluster.channel("index/main"), limits());
        // On different nodes.
        let one = &files[0];
        let other = &files[1];
        let asked = cdx("cdx-1", &[&other.0, &one.0]);
        let begun = Instant::now();
        let status = timeout(LONG, run_job(&of_index, &asked, limits())).await;
        let status = status.expect("two long jobs are waited for").unwrap();
        println!("two named files after {:?}", begun.elapsed());
        assert!(status.is_whole(), "{status:?}");
        assert_eq!((status.files, status.who.as_str()), (2, "index/main"));
        let result = read_output_lines(&of_index, &asked.id, JobOutput::Result)
            .await
            .unwrap();
        let expected = index(&files[..2]);
        let expected: Vec<_> = expected.lines().map(str::to_owned).collect();
        assert_eq!(all(result).await, expected);
        // Asked again, as after a crash: the same job.
        let again = run_job(&of_index, &asked, limits()).await.unwrap();
        assert_eq!(again.ended, status.ended);

        let nowhere = name("nowhere.warc.gz");
        let asked = cdx("cdx-2", &[&one.0, &nowhere]);
        let status = run_job(&of_index, &asked, limits()).await.unwrap();
        assert_eq!(status.state, JobState::Partial, "{status:?}");
        assert_eq!((status.files, status.unread), (1, 1));
        let errors = read_output_lines(&of_index, &asked.id, JobOutput::Errors)
            .await
            .unwrap();
        let errors = all(errors).await;
        let [error] = errors.as_slice() else {
            panic!("{errors:?}");
        };
        let failure = JobFailure::read_line(error.as_bytes()).unwrap();
        assert!(failure.is_unread(), "{failure:?}");
        assert_eq!(failure.file, nowhere);

        // What a researcher handed in before waits still: no place of the index is theirs.
        let waits = rita.find(&third.id).await.unwrap();
        assert_eq!(waits.state, JobState::Queued, "{waits:?}");
        let refused = of_index.submit(&component("own", ENDLESS)).await;
        assert!(
            matches!(refused, Err(ClientError::Refused(_))),
            "{refused:?}"
        );
        let refused = of_index.cancel(&third.id).await;
        assert!(
            matches!(refused, Err(ClientError::Refused(_))),
            "{refused:?}"
        );
        for id in ["long-1", "long-2"] {
            rita.cancel(&JobId::new(id).unwrap()).await.unwrap();
        }
        let done = ended(&rita, &third.id).await;
        assert!(done.is_whole(), "{done:?}");
    });
}
