//! Batch jobs over a whole archive: complete, or what is lacking is named; resumed, or ended cleanly.
//!
//! It is over 450 lines because all of it wants the same files on two nodes.

use std::collections::BTreeSet;
use std::time::Duration;

use archive_client::batch::{Code as Program, JobOutput, JobState, JobStatus, JobSubmission};
use archive_client::{Batch, ClientError, Researcher};
use archive_formats::cdx::{Format, extract_capture};
use archive_formats::warc::{Builder, WarcReader, WarcType, WarcWriter};
use archive_model::{FileName, GROUP_SIZE, JobId, Root};
use bytes::Bytes;
use proto_archive::wire::preservation_client::PreservationClient;
use proto_archive::wire::{Mode, NodeRequest, SetModeRequest};
use serde_json::Value;
use tokio::time::Instant;
use tonic::Code;

use super::people::{node_of, stat, status, until_live};
use super::visits::{limits, name, noise, store};
use super::wire::Wire;
use super::world::{Cluster, MONITORS, REPOSITORY, flip, on_a_cluster};
use super::world::{LONG, eventually};

/// Counts the records of every file; its reduce step counts the files.
const COUNT: &[u8] = include_bytes!("../../../archive/component/examples/count.wat");

/// Never ends.
pub(super) const ENDLESS: &[u8] =
    include_bytes!("../../../archive/component/tests/hostile/endless.wat");

pub(super) fn researcher(cluster: &Cluster) -> Researcher {
    Researcher::new(cluster.channel("researcher/rita"), limits())
}

pub(super) fn job(id: &str, program: &str) -> JobSubmission {
    JobSubmission {
        replica: Some("one".parse().unwrap()),
        ..JobSubmission::built_in(JobId::new(id).unwrap(), program)
    }
}

/// Returns the submission of a component, from its text.
pub(super) fn component(id: &str, text: &[u8]) -> JobSubmission {
    bytes(id, &wat::parse_bytes(text).unwrap())
}

fn bytes(id: &str, bytes: &[u8]) -> JobSubmission {
    JobSubmission {
        code: Program::Component {
            digest: Root::from_bytes(blake3::hash(bytes).into()),
            bytes: Bytes::copy_from_slice(bytes),
        },
        ..job(id, "")
    }
}

pub(super) async fn ended(researcher: &Researcher, id: &JobId) -> JobStatus {
    eventually("the end of a job", LONG, async || {
        match researcher.find(id).await {
            Ok(status) if status.state.has_ended() => Ok(status),
            Err(error) if !error.is_passing() => panic!("{id}: {error}"),
            other => Err(other),
        }
    })
    .await
}

async fn run(cluster: &Cluster, submission: &JobSubmission) -> JobStatus {
    let researcher = researcher(cluster);
    researcher.submit(submission).await.unwrap();
    ended(&researcher, &submission.id).await
}

async fn left(cluster: &Cluster, id: &JobId, left: JobOutput) -> Vec<u8> {
    let mut steps = researcher(cluster).output(id, left, 0).await.unwrap();
    let mut bytes = Vec::new();
    while let Some(piece) = steps.next().await.unwrap() {
        bytes.extend_from_slice(&piece);
    }
    bytes
}

async fn text(cluster: &Cluster, id: &JobId, what: JobOutput) -> String {
    String::from_utf8(left(cluster, id, what).await).unwrap()
}

async fn lines(cluster: &Cluster, id: &JobId, what: JobOutput) -> Vec<Value> {
    let text = text(cluster, id, what).await;
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Returns an archive file of some pages, some hundred bytes to some tens of kilobytes each.
pub(super) fn pages(file: u64, count: u64) -> Vec<u8> {
    let mut writer = WarcWriter::gzip_writer(Vec::new(), 6);
    for page in 0..count {
        let id = format!("urn:uuid:00000000-0000-4000-8000-{file:06}{page:06}");
        let url = format!("http://site-{}.example/{file}/{page}", page % 7);
        let body = noise(
            usize::try_from(200 + page * 397 % 9000).unwrap(),
            file * 1000 + page,
        );
        let mut block = b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n\r\n".to_vec();
        block.extend(body);
        let record = Builder::new(WarcType::Response, &id, "2026-11-21T19:14:09Z")
            .target_uri(&url)
            .content_type("application/http; msgtype=response");
        let size = block.len() as u64;
        let head = record.render_head(size).unwrap();
        writer
            .write_record(&head, size, &mut block.as_slice())
            .unwrap();
    }
    writer.into_inner()
}

/// Returns the lines that one machine makes of the same files.
pub(super) fn index(files: &[(FileName, Vec<u8>)]) -> String {
    let mut lines = Vec::new();
    for (name, bytes) in files {
        let mut reader = WarcReader::new(bytes.as_slice());
        while let Some(record) = reader.next_record().unwrap() {
            let extracted = extract_capture(record, name.as_str()).unwrap();
            lines.extend(
                extracted
                    .capture
                    .map(|capture| Format::Cdxj.write_line(&capture) + "\n"),
            );
        }
    }
    lines.sort();
    lines.concat()
}

/// The repository takes a new node up a moment after its monitor, and the monitor hears of the mode a moment later.
async fn set_node(cluster: &Cluster, node: &str, mode: Mode) {
    let operator = PreservationClient::new(cluster.channel("operator/otto"));
    let order = SetModeRequest { mode: mode.into() };
    let request = NodeRequest {
        node: node.to_owned(),
        order: Some(order),
        ..NodeRequest::default()
    };
    eventually("the node is known", LONG, async || {
        match operator.clone().node(request.clone()).await {
            Err(status) if status.code() == Code::NotFound => Err(status),
            answer => Ok(answer.unwrap()),
        }
    })
    .await;
    eventually("its monitor knows", LONG, async || {
        let replicas = status(cluster).await.replicas;
        let mut nodes = replicas.iter().flat_map(|replica| &replica.nodes);
        let is_known = nodes.any(|known| known.node == node && known.mode() == mode);
        is_known.then_some(()).ok_or(replicas)
    })
    .await;
}

/// Stores files on two nodes of replica `one`, half on each, names mixed.
pub(super) async fn files_on_two_nodes(
    cluster: &mut Cluster,
    count: u64,
    records: u64,
) -> Vec<(FileName, Vec<u8>)> {
    cluster.add_node("one", "-2");
    cluster.start("bitarchive-one-2").await;
    until_live(cluster, "one", 2).await;
    let mut files = Vec::new();
    for (closed, rest) in [("one-2-1", 0), ("one-1", 1)] {
        set_node(cluster, closed, Mode::ReadOnly).await;
        for number in (0..count).filter(|number| number % 2 == rest) {
            let file = (
                name(&format!("f-{number:03}.warc.gz")),
                pages(number, records),
            );
            store(cluster, &file.0, &file.1).await.unwrap();
            files.push(file);
        }
        set_node(cluster, closed, Mode::ReadWrite).await;
    }
    files.sort();
    for (number, (name, _)) in files.iter().enumerate() {
        let expected = if number % 2 == 0 { "one-1" } else { "one-2-1" };
        let status = stat(cluster, name).await;
        assert_eq!(node_of(&status, "one").as_deref(), Some(expected), "{name}");
    }
    files
}

/// Fails if a job over two nodes skips, repeats or reorders lines of what one machine gives, or if one id can stand for
/// two jobs.
#[test]
fn two_nodes_give_what_one_machine_gives() {
    on_a_cluster(async |cluster: &mut Cluster| {
        let files = files_on_two_nodes(cluster, 10, 40).await;
        let whole = run(cluster, &job("cdx", "extract-cdx")).await;
        assert!(whole.is_whole(), "{whole:?}");
        assert_eq!((whole.files, whole.records, whole.restarts), (10, 400, 0));
        assert_eq!(
            text(cluster, &whole.id, JobOutput::Result).await,
            index(&files)
        );
        assert_eq!(text(cluster, &whole.id, JobOutput::Errors).await, "");
        let manifest = lines(cluster, &whole.id, JobOutput::Manifest).await;
        let read: Vec<_> = manifest
            .iter()
            .skip(1)
            .map(|line| {
                let word = |field: &str| line[field].as_str().unwrap().to_owned();
                (word("file"), word("root"))
            })
            .collect();
        let expected: Vec<_> = files
            .iter()
            .map(|(name, bytes)| (name.to_string(), blake3::hash(bytes).to_string()))
            .collect();
        assert_eq!(read, expected);

        // A second time, the same bytes; over some files only, those.
        let again = run(cluster, &job("again", "extract-cdx")).await;
        assert_eq!(
            text(cluster, &again.id, JobOutput::Result).await,
            index(&files)
        );
        let some = JobSubmission {
            files: Some("f-00[3-6].*".into()),
            ..job("some", "extract-cdx")
        };
        let some = run(cluster, &some).await;
        assert_eq!(some.files, 4);
        assert_eq!(
            text(cluster, &some.id, JobOutput::Result).await,
            index(&files[3..7])
        );

        // The same id is the same job; another one under it is refused.
        let known = researcher(cluster)
            .submit(&job("cdx", "extract-cdx"))
            .await
            .unwrap();
        assert_eq!(known.ended, whole.ended);
        let other = researcher(cluster).submit(&job("cdx", "file-list")).await;
        assert!(matches!(other, Err(ClientError::Exists(_))), "{other:?}");
    });
}

/// Fails if a job that could not ask a node calls itself done, or does not name the files that were not read.
#[test]
fn batch_without_a_node_is_partial() {
    on_a_cluster(async |cluster: &mut Cluster| {
        let files = files_on_two_nodes(cluster, 8, 5).await;
        cluster.stop("bitarchive-one-2").await;
        until_live(cluster, "one", 1).await;
        let partial = run(cluster, &job("cdx", "extract-cdx")).await;
        assert_eq!(partial.state, JobState::Partial, "{partial:?}");
        assert_eq!((partial.files, partial.unread), (4, 4));
        let silent: BTreeSet<_> = partial
            .gaps
            .iter()
            .filter_map(|gap| gap.node.as_ref())
            .map(ToString::to_string)
            .collect();
        assert_eq!(silent, BTreeSet::from(["one-2-1".to_owned()]));
        let (here, gone): (Vec<_>, Vec<_>) = files
            .into_iter()
            .enumerate()
            .partition(|(number, _)| number % 2 == 0);
        let here: Vec<_> = here.into_iter().map(|(_, file)| file).collect();
        assert_eq!(
            text(cluster, &partial.id, JobOutput::Result).await,
            index(&here)
        );
        let errors = lines(cluster, &partial.id, JobOutput::Errors).await;
        let unread: Vec<_> = errors
            .iter()
            .map(|line| line["file"].as_str().unwrap())
            .collect();
        let expected: Vec<_> = gone.iter().map(|(_, (name, _))| name.as_str()).collect();
        assert_eq!(unread, expected);
        assert!(
            errors.iter().all(|line| line["kind"] == "unread"),
            "{errors:?}"
        );
    });
}

/// Fails if a job that ends early says that nothing was left out, or does not name what was.
#[test]
fn job_out_of_time_names_unread_files() {
    on_a_cluster(async |cluster: &mut Cluster| {
        let files = files_on_two_nodes(cluster, 4, 2).await;
        let late = JobSubmission {
            time: Some(Duration::from_millis(1)),
            ..job("late", "checksum")
        };
        let late = run(cluster, &late).await;
        assert_eq!(late.state, JobState::Failed, "{late:?}");
        assert_eq!((late.files, late.unread), (0, 4), "{late:?}");
        let nodes: BTreeSet<_> = late
            .gaps
            .iter()
            .filter_map(|gap| gap.node.as_ref())
            .map(ToString::to_string)
            .collect();
        assert_eq!(nodes.len(), 2, "{late:?}");
        let errors = lines(cluster, &late.id, JobOutput::Errors).await;
        let unread: Vec<_> = errors
            .iter()
            .map(|line| line["file"].as_str().unwrap())
            .collect();
        let expected: Vec<_> = files.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(unread, expected);
    });
}

/// Fails if the bytes of a damaged group are given to the program of a job, or if one such group costs the records
/// beyond it.
#[test]
fn damage_is_reported_and_never_read_as_data() {
    on_a_cluster(async |cluster: &mut Cluster| {
        let files =
            [0, 1, 2].map(|number| (name(&format!("f-{number}.warc.gz")), pages(number, 60)));
        for (name, bytes) in &files {
            store(cluster, name, bytes).await.unwrap();
        }
        flip(&cluster.copy("one", &files[1].0), 3 * GROUP_SIZE + 5);
        let ended = run(cluster, &job("cdx", "extract-cdx")).await;
        assert_eq!(
            (ended.state, ended.files, ended.failed),
            (JobState::Done, 3, 1)
        );
        let errors = lines(cluster, &ended.id, JobOutput::Errors).await;
        let damaged: Vec<_> = errors
            .iter()
            .filter(|line| line["kind"] == "damaged")
            .collect();
        assert_eq!(damaged.len(), 1, "{errors:?}");
        assert_eq!(damaged[0]["file"], files[1].0.as_str());
        assert_eq!(damaged[0]["offset"], 3 * GROUP_SIZE);
        let result = text(cluster, &ended.id, JobOutput::Result).await;
        let whole: BTreeSet<String> = index(&files).lines().map(ToOwned::to_owned).collect();
        let found: BTreeSet<String> = result.lines().map(ToOwned::to_owned).collect();
        assert!(found.is_subset(&whole), "what is there is true");
        let lost = whole.len() - found.len();
        assert!(
            (1..12).contains(&lost),
            "{lost} records lie in a damaged group"
        );
        let other = JobSubmission {
            replica: Some("two".parse().unwrap()),
            ..job("other", "extract-cdx")
        };
        let other = run(cluster, &other).await;
        assert!(other.is_whole(), "{other:?}");
        assert_eq!(
            text(cluster, &other.id, JobOutput::Result).await,
            index(&files)
        );
    });
}

/// Fails if an endless component cannot be cancelled, holds up other jobs of its node, or computes beyond the time that
/// it has for a file.
#[test]
fn component_runs_on_every_node_until_cancelled() {
    on_a_cluster(async |cluster: &mut Cluster| {
        let files = files_on_two_nodes(cluster, 6, 9).await;
        let whole = run(cluster, &component("count", COUNT)).await;
        assert!(whole.is_whole(), "{whole:?}");
        let counted = (whole.files, whole.records);
        assert_eq!(counted, (files.len() as u64, 6 * 9));
        assert_eq!(
            text(cluster, &whole.id, JobOutput::Result).await,
            "files\t6\n"
        );

        let researcher = researcher(cluster);
        let job = component("endless", ENDLESS);
        researcher.submit(&job).await.unwrap();
        eventually("it computes", LONG, async || {
            let status = researcher.find(&job.id).await.unwrap();
            assert!(!status.state.has_ended(), "{status:?}");
            (!status.nodes.is_empty()).then_some(()).ok_or(status)
        })
        .await;
        // The endless job computes at every node, for as long as it may; other jobs go on beside it.
        let beside = run(cluster, &super::batch::job("beside", "file-list")).await;
        assert!(beside.is_whole(), "{beside:?}");

        let begun = Instant::now();
        researcher.cancel(&job.id).await.unwrap();
        let cancelled = ended(&researcher, &job.id).await;
        let took = begun.elapsed();
        assert_eq!(cancelled.state, JobState::Cancelled, "{cancelled:?}");
        println!("cancelled after {took:?}");
        assert!(took < Duration::from_secs(20), "{took:?}");
        assert_eq!(text(cluster, &job.id, JobOutput::Result).await, "");
        let once_more = researcher.cancel(&job.id).await.unwrap();
        assert_eq!(once_more.ended, cancelled.ended);
        for part in ["bitarchive-one", "bitarchive-one-2"] {
            eventually("no job runs any more", LONG, async || {
                let page = cluster.page(part);
                let running = page
                    .lines()
                    .find(|line| line.starts_with("bitarchive_batch_jobs_running{"))
                    .unwrap_or_else(|| panic!("no such series: {page}"));
                let none_runs = running.ends_with(" 0");
                none_runs.then_some(()).ok_or(running.to_owned())
            })
            .await;
        }

        let limited = JobSubmission {
            file_time: Some(Duration::from_millis(300)),
            ..component("limited", ENDLESS)
        };
        let limited = run(cluster, &limited).await;
        assert_eq!(
            (limited.state, limited.failed),
            (JobState::Done, 6),
            "{limited:?}"
        );
        let errors = lines(cluster, &limited.id, JobOutput::Errors).await;
        assert!(
            errors.iter().all(|line| line["kind"] == "component"),
            "{errors:?}"
        );
    });
}

/// Lays a wire from the repository to each of these nodes of replica `one`, and restarts the parts at their ends.
async fn lay<const N: usize>(cluster: &mut Cluster, nodes: [&str; N]) -> Vec<Wire> {
    let mut wires = Vec::new();
    for node in nodes {
        let wire = Wire::to(&cluster.address(node)).await;
        cluster.endpoints.insert(node.to_owned(), wire.address());
        wires.push(wire);
    }
    // The monitor too: it must not remember where the nodes were.
    let parts = [MONITORS[0]].into_iter().chain(nodes).chain([REPOSITORY]);
    for part in parts.clone() {
        cluster.stop(part).await;
    }
    for part in parts {
        cluster.start(part).await;
    }
    until_live(cluster, "one", nodes.len()).await;
    wires
}

/// Fails if a job that is under way when a part restarts is lost, or then lacks a file or has one twice.
#[test]
fn batch_job_continues_after_every_part_restarts() {
    on_a_cluster(async |cluster: &mut Cluster| {
        let files = files_on_two_nodes(cluster, 40, 120).await;
        let expected = index(&files);
        let nodes = ["bitarchive-one", "bitarchive-one-2"];
        let wires = lay(cluster, nodes).await;
        for part in [REPOSITORY, MONITORS[0]].into_iter().chain(nodes) {
            let id = format!("without-{part}");
            let job = job(&id, "extract-cdx");
            // The job stops in the middle: the node that restarts has said a part of what it has to say.
            let wire = &wires[usize::from(part == nodes[1])];
            wire.mute_after_answers(i64::try_from(expected.len() / 10).unwrap());
            researcher(cluster).submit(&job).await.unwrap();
            eventually("some files are on the disk", LONG, async || {
                let status = researcher(cluster).find(&job.id).await.unwrap();
                assert!(!status.state.has_ended(), "{part}: {status:?}");
                (status.files > 0).then_some(()).ok_or(status)
            })
            .await;
            cluster.stop(part).await;
            cluster.start(part).await;
            wire.release();
            let ended = ended(&researcher(cluster), &job.id).await;
            println!("{part}: {} restarts", ended.restarts);
            // A run that has begun needs no monitor.
            assert!(ended.restarts > 0 || part == MONITORS[0], "{ended:?}");
            assert!(ended.is_whole(), "{part}: {ended:?}");
            assert_eq!(ended.files, 40, "{part}");
            let result = text(cluster, &job.id, JobOutput::Result).await;
            assert!(result == expected, "{part}: another result");
            let manifest = lines(cluster, &job.id, JobOutput::Manifest).await;
            let read: Vec<_> = manifest
                .iter()
                .skip(1)
                .map(|line| line["file"].as_str().unwrap())
                .collect();
            let names: Vec<_> = files.iter().map(|(name, _)| name.as_str()).collect();
            assert_eq!(read, names, "{part}: each once");
        }
    });
}

/// Fails if a job with an unknown program, argument or replica is accepted, or is refused without the word that is
/// wrong.
#[test]
fn unrunnable_job_is_refused_with_remedy() {
    on_a_cluster(async |cluster: &mut Cluster| {
        let researcher = researcher(cluster);
        let refused = async |submission: JobSubmission, words: &str| {
            let error = researcher.submit(&submission).await.unwrap_err();
            assert!(error.to_string().contains(words), "{words}: {error}");
        };
        refused(job("a", "make-coffee"), "batch jobs").await;
        let argument = JobSubmission {
            arguments: vec![("colour".into(), "red".into())],
            ..job("a", "file-list")
        };
        refused(argument, "colour").await;
        let pattern = JobSubmission {
            files: Some("(".into()),
            ..job("a", "file-list")
        };
        refused(pattern, "files").await;
        let checksums = JobSubmission {
            replica: Some("three".parse().unwrap()),
            ..job("a", "file-list")
        };
        refused(checksums, "three").await;
        let unknown = JobSubmission {
            replica: Some("nine".parse().unwrap()),
            ..job("a", "file-list")
        };
        refused(unknown, "nine").await;
        let other_bytes = JobSubmission {
            code: Program::Component {
                digest: Root::from_bytes([1; 32]),
                bytes: Bytes::from_static(b"no component"),
            },
            ..job("a", "")
        };
        refused(other_bytes, "component").await;
        // Bytes that are no component are taken, and refused by the nodes, in words.
        store(cluster, &name("f.warc"), b"").await.unwrap();
        let failed = run(cluster, &bytes("b", b"no component")).await;
        assert_eq!(failed.state, JobState::Failed, "{failed:?}");
        assert!(failed.reason.unwrap().contains("component"));
        let readers = Researcher::new(cluster.channel("reader/ruth"), limits());
        let error = readers.submit(&job("a", "file-list")).await.unwrap_err();
        assert!(matches!(error, ClientError::Refused(_)), "{error}");
    });
}
