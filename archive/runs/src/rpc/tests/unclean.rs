//! Jobs that were running when the node ended without a stop.

use super::hostile::component;
use super::*;

/// Opens a job and waits until its component is wanted: it has begun then.
async fn begin(node_jobs: &Arc<NodeJobs>) -> Result<Caller, Status> {
    let mut caller = Caller::new(node_jobs);
    let open = batch_run_request::Step::Open(component(9));
    caller.say(open).await;
    loop {
        match caller.next().await? {
            Step::Want(_) => return Ok(caller),
            Step::Progress(_) => {}
            other @ (Step::Begin(_) | Step::Output(_) | Step::Done(_) | Step::End(_)) => {
                panic!("{other:?}")
            }
        }
    }
}

/// Fails if a job begins before it is noted on disk: a node that it ends would run it again and again.
#[tokio::test]
async fn job_is_noted_before_it_runs() {
    let fixture = TestNode::new();
    let mut node_jobs = Arc::clone(&fixture.node_jobs);
    let mut data = fixture.path("data");
    for end in ["first", "second"] {
        let caller = begin(&node_jobs).await.unwrap();
        // The files that a node that is killed now finds when it starts again.
        let left = fixture.path(end);
        std::fs::create_dir(&left).unwrap();
        let noted = "batch-running.json";
        std::fs::copy(data.join(noted), left.join(noted)).unwrap();
        drop(caller);
        let again = NodeJobs::open(NodeJobsParts {
            data: left.clone(),
            ..fixture.parts()
        });
        (node_jobs, data) = (Arc::new(again.unwrap()), left);
    }
    let refused = begin(&node_jobs).await.err().expect("a refusal");
    assert_eq!(
        CallErrorKind::from_status(&refused),
        CallErrorKind::Unavailable,
        "{refused}"
    );
    assert!(refused.message().contains("2 times"), "{refused}");
}
