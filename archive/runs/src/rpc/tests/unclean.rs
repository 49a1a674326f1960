//! Jobs that were running when the node ended without a stop.

use super::hostile::component;
use super::*;

/// Opens a job of which it is known that it has begun: its component is wanted.
async fn begin(batch: &Arc<Batch>) -> Result<Caller, Status> {
    let mut caller = Caller::new(batch);
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
    let world = TestNode::new();
    let mut batch = Arc::clone(&world.batch);
    let mut data = world.path("data");
    for end in ["first", "second"] {
        let caller = begin(&batch).await.unwrap();
        // What a node that is killed now finds when it starts again.
        let left = world.path(end);
        std::fs::create_dir(&left).unwrap();
        let noted = "batch-running.json";
        std::fs::copy(data.join(noted), left.join(noted)).unwrap();
        drop(caller);
        let settings = NodeBatchSettings::default();
        let around = (&world.clock, &world.tasks, None);
        let counters = world.counters.clone();
        let again = Batch::open(&world.node, &left, settings, around, counters);
        (batch, data) = (Arc::new(again.unwrap()), left);
    }
    let refused = begin(&batch).await.err().expect("a refusal");
    assert_eq!(Kind::of(&refused), Kind::Unavailable, "{refused}");
    assert!(refused.message().contains("2 times"), "{refused}");
}
