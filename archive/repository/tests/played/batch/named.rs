//! Tests of jobs over files by their names, and of jobs that are kept for a short time.

use std::time::Duration;

use archive_daemon::Period;
use proto_archive::wire::BatchSpec;
use proto_archive::wire::batch_output_request::What;
use proto_archive::wire::batch_run_response::Step;
use proto_archive::wire::batch_status::State;
use tonic::Code;
use tools_testing::{PATIENCE, eventually};

use super::ends::fill;
use super::fixture::{BatchFixture, file_list, state};

fn named(names: &[&str]) -> BatchSpec {
    BatchSpec {
        names: names.iter().map(|name| (*name).to_owned()).collect(),
        ..file_list()
    }
}

/// Fails if a job is done although a file that it names was not read, or if that file is not reported.
#[tokio::test(flavor = "multi_thread")]
async fn named_file_that_no_node_has_is_reported() {
    let fixture = BatchFixture::new().await;
    fill(&fixture.replica, &["b.warc", "c.warc", "d.warc"]);
    fixture.store(&["b.warc", "c.warc", "d.warc", "e.warc"]);
    let running = fixture.start().await;
    let mut anna = fixture.caller(&running, "researcher/anna");
    let spec = named(&["b.warc", "e.warc", "z.warc"]);
    let taken = anna.submit("some", spec.clone()).await.unwrap();
    assert_eq!(taken.spec.unwrap().names, spec.names);
    let status = anna.ended("some").await;
    assert_eq!(state(&status), State::Partial, "{status:?}");
    assert_eq!((status.files, status.unread), (1, 2));
    assert_eq!(anna.output("some", What::Result).await, b"b.warc\n");
    let errors = String::from_utf8(anna.output("some", What::Errors).await).unwrap();
    let line = |name: &str, node: &str, reason: &str| {
        format!(
            "{{\"file\":\"{name}\",\"node\":\"{node}\",\"offset\":null,\"kind\":\"unread\",\"reason\":\"{reason}\"}}\n"
        )
    };
    let here = line(
        "e.warc",
        "n-2",
        "the replica is known to have it, and no node has read it",
    );
    let nowhere = line("z.warc", "", "the archive knows no file of this name");
    assert_eq!(errors, here + &nowhere);
    let manifest = anna.output("some", What::Manifest).await;
    let manifest = String::from_utf8(manifest).unwrap();
    assert!(
        manifest.contains("\"files\":\"\",\"names\":3,"),
        "{manifest}"
    );

    // A node that is silent has none of the files that were read.
    fixture.change(|script| script.has_silent_node = true);
    anna.submit("all", named(&["b.warc", "d.warc"]))
        .await
        .unwrap();
    let status = anna.ended("all").await;
    assert_eq!(state(&status), State::Done, "{status:?}");
    assert_eq!((status.files, status.unread), (2, 0));
    assert_eq!(status.gaps.len(), 1, "it is told nevertheless");

    // The same id with other names is another job.
    let other = anna.submit("all", named(&["b.warc"])).await.unwrap_err();
    assert_eq!(other.code(), Code::AlreadyExists);
    fixture.end(running).await;
}

/// Fails if the output of files that the job does not name gets into its result.
#[tokio::test(flavor = "multi_thread")]
async fn node_that_reads_unnamed_files_is_not_believed() {
    let fixture = BatchFixture::new().await;
    fill(&fixture.replica, &["a", "b", "c"]);
    fixture.replica.script().lie = Some(|mut steps| {
        for step in &mut steps {
            if let Step::Begin(begin) = step {
                "a".clone_into(&mut begin.name);
            } else if let Step::Done(done) = step {
                "a".clone_into(&mut done.name);
            }
        }
        steps
    });
    let running = fixture.start().await;
    let mut anna = fixture.caller(&running, "researcher/anna");
    anna.submit("b", named(&["b"])).await.unwrap();
    let status = anna.ended("b").await;
    assert_eq!(state(&status), State::Partial, "{status:?}");
    let said = &status.gaps[0].reason;
    assert!(said.contains("the job has not selected"), "{status:?}");
    assert_eq!((status.files, status.unread), (0, 1));
    assert_eq!(anna.output("b", What::Result).await, b"");
    fixture.end(running).await;
}

/// Fails if a job is accepted with an invalid list of names, or may be kept for longer than the settings allow.
#[tokio::test(flavor = "multi_thread")]
async fn wrong_lists_and_long_keeps_are_refused() {
    let mut fixture = BatchFixture::new().await;
    fixture.settings.keep = Period::from_secs(3600);
    let running = fixture.start().await;
    let mut anna = fixture.caller(&running, "researcher/anna");
    let many: Vec<_> = (0..=10_000).map(|at| format!("{at:05}")).collect();
    let long: Vec<_> = (0..9000).map(|at| format!("{at:0200}")).collect();
    let cases = [
        named(&["b", "a"]),
        named(&["a", "a"]),
        named(&["../x"]),
        named(&[""]),
        BatchSpec {
            names: many,
            ..file_list()
        },
        BatchSpec {
            names: long,
            ..file_list()
        },
        BatchSpec {
            files: "a".to_owned(),
            ..named(&["a"])
        },
        BatchSpec {
            keep_ms: 3_600_001,
            ..file_list()
        },
    ];
    for (at, spec) in cases.into_iter().enumerate() {
        let refused = anna.submit(&format!("bad-{at}"), spec).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{at}: {refused}");
        assert!(!fixture.folder(&format!("bad-{at}")).try_exists().unwrap());
    }
    fixture.end(running).await;
}

/// Fails if a job is kept for longer than it asked, or another one is removed with it.
#[tokio::test(flavor = "multi_thread")]
async fn job_is_forgotten_when_its_keep_is_over() {
    let fixture = BatchFixture::new().await;
    fill(&fixture.replica, &["a"]);
    let running = fixture.start().await;
    let mut index = fixture.caller(&running, "index/main");
    let short = BatchSpec {
        keep_ms: 60_000,
        ..named(&["a"])
    };
    index.submit("short", short).await.unwrap();
    index.submit("usual", named(&["a"])).await.unwrap();
    let status = index.ended("short").await;
    index.ended("usual").await;
    let time = |text: &str| text.parse::<jiff::Timestamp>().unwrap();
    let kept = time(&status.expires).duration_since(time(&status.ended));
    assert_eq!(kept.as_secs(), 60);
    assert_eq!(index.output("short", What::Result).await, b"a\n");
    fixture.hand.advance(Duration::from_secs(61));
    eventually("it is forgotten", PATIENCE, async || {
        fixture.hand.advance(Duration::from_secs(1));
        match index.find("short").await {
            Err(status) if status.code() == Code::NotFound => Ok(()),
            other => Err(other),
        }
    })
    .await;
    eventually("its files are removed", PATIENCE, async || {
        !fixture.folder("short").try_exists().unwrap()
    })
    .await;
    assert_eq!(state(&index.find("usual").await.unwrap()), State::Done);
    fixture.end(running).await;
}
