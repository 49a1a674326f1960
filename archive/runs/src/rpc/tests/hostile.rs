//! Callers that say what they must not, too much, too little, or nothing.

use super::*;

pub(super) fn component(size: u64) -> batch_run_request::Open {
    let mut open = open();
    let spec = open.spec.as_mut().unwrap();
    spec.job.clear();
    spec.component = vec![7; 32].into();
    spec.component_size = size;
    open
}

fn piece(length: usize) -> batch_run_request::Step {
    batch_run_request::Step::Component(vec![0; length].into())
}

/// How a job ends of which this is said, and nothing after it.
async fn ends(world: &TestNode, steps: Vec<batch_run_request::Step>) -> Status {
    let mut caller = Caller::waited_for(&world.batch, Duration::from_millis(500));
    for step in steps {
        caller.say(step).await;
    }
    loop {
        match caller.next().await {
            Ok(Step::Want(_) | Step::Progress(_) | Step::Begin(_)) => {}
            Ok(other) => panic!("{other:?}"),
            Err(status) => return status,
        }
    }
}

#[tokio::test]
async fn what_cannot_be_run_is_refused_by_its_field() {
    let world = TestNode::new();
    let spec = |change: &dyn Fn(&mut wire::BatchSpec)| {
        let mut open = open();
        change(open.spec.as_mut().unwrap());
        vec![batch_run_request::Step::Open(open)]
    };
    let argument = wire::batch_spec::Value {
        name: "x".to_owned(),
        value: "y".to_owned(),
    };
    for (steps, named) in [
        (spec(&|spec| spec.replica = "other".to_owned()), "replica"),
        (spec(&|spec| spec.files = "(".to_owned()), "files"),
        (
            spec(&|spec| spec.files = "a{9999}{9999}".to_owned()),
            "files",
        ),
        (spec(&|spec| spec.memory = 0), "memory"),
        (
            spec(&|spec| spec.arguments = vec![argument.clone()]),
            "arguments",
        ),
        (vec![piece(1)], "step"),
    ] {
        assert_eq!(field(&ends(&world, steps).await), named);
    }
    let unknown = ends(&world, spec(&|spec| spec.job = "mine-bitcoin".to_owned())).await;
    assert_eq!(Kind::of(&unknown), Kind::NotFound, "{unknown}");
    assert_eq!(world.counters.jobs.get(), 0);
}

#[tokio::test]
async fn a_component_is_exactly_what_was_announced() {
    let world = TestNode::new();
    let open = |size| batch_run_request::Step::Open(component(size));
    for (steps, kind, says) in [
        (vec![open(9), piece(10)], Kind::Invalid, "10 came"),
        (vec![open(9), piece(4), piece(6)], Kind::Invalid, "10 came"),
        (vec![open(9), piece(0)], Kind::Invalid, "0 bytes"),
        (
            vec![open(3 << 20), piece((1 << 20) + 1)],
            Kind::Invalid,
            "1048577 bytes",
        ),
        (vec![open(9), open(9)], Kind::Invalid, "component"),
        (vec![open(9), piece(9)], Kind::Mismatch, "send that one"),
        (vec![open(9), piece(8)], Kind::TimedOut, "stalled"),
        (vec![], Kind::TimedOut, "stalled"),
        (vec![open((64 << 20) + 1)], Kind::Invalid, "component_size"),
    ] {
        let status = ends(&world, steps).await;
        assert_eq!(Kind::of(&status), kind, "{status}");
        assert!(status.message().contains(says), "{status}");
    }
    // What is announced and comes, and is no component.
    let bytes = b"no component at all";
    let mut announced = component(bytes.len() as u64);
    announced.spec.as_mut().unwrap().component = fields::root_bytes(&root(bytes));
    let steps = vec![
        batch_run_request::Step::Open(announced),
        batch_run_request::Step::Component(bytes.to_vec().into()),
    ];
    let status = ends(&world, steps).await;
    assert_eq!(Kind::of(&status), Kind::Mismatch, "{status}");
    assert!(status.message().contains("refused"), "{status}");
    assert_eq!(world.counters.jobs.get(), 0);
    assert_eq!(world.batch.compiling.available_permits(), 1);
}

#[tokio::test]
async fn a_caller_that_goes_on_talking_or_is_cut_ends_its_job() {
    let world = TestNode::new();
    for number in 0..2000 {
        world.store(&format!("f{number:04}"), b"x");
    }
    let talks = |says: Vec<batch_run_request::Step>| {
        let world = &world;
        async move {
            let mut caller = Caller::new(&world.batch);
            caller.say(batch_run_request::Step::Open(open())).await;
            assert!(matches!(
                caller.next().await,
                Ok(Step::Begin(_) | Step::Progress(_))
            ));
            for step in says {
                caller.say(step).await;
            }
            // And with that it says no more.
            let Caller { says, answers } = caller;
            drop(says);
            let answers: Vec<_> = in_time(answers.collect()).await;
            let last: Result<wire::BatchRunResponse, Status> = answers.into_iter().last().unwrap();
            last.unwrap_err()
        }
    };
    let again = batch_run_request::Step::Open(open());
    assert_eq!(field(&talks(vec![again]).await), "step");
    assert_eq!(field(&talks(vec![piece(5)]).await), "step");
    assert_eq!(talks(vec![]).await.code(), tonic::Code::Cancelled);
}

#[tokio::test]
async fn so_many_jobs_and_no_more() {
    let world = TestNode::new();
    let mut waiting = Vec::new();
    for _ in 0..4 {
        let mut caller = Caller::new(&world.batch);
        caller
            .say(batch_run_request::Step::Open(component(9)))
            .await;
        assert!(matches!(caller.next().await, Ok(Step::Want(_))));
        waiting.push(caller);
    }
    assert_eq!(world.counters.jobs.get(), 4);
    let status = ends(&world, vec![batch_run_request::Step::Open(open())]).await;
    assert_eq!(Kind::of(&status), Kind::Busy, "{status}");
    // The index has places of its own, and no more than those.
    let of_index = |open: batch_run_request::Open| batch_run_request::Open {
        of_index: true,
        ..open
    };
    assert!(heard(&world, of_index(open())).await.1.is_ok());
    for _ in 0..2 {
        let mut caller = Caller::new(&world.batch);
        let open = of_index(component(9));
        caller.say(batch_run_request::Step::Open(open)).await;
        assert!(matches!(caller.next().await, Ok(Step::Want(_))));
        waiting.push(caller);
    }
    let third = batch_run_request::Step::Open(of_index(open()));
    let status = ends(&world, vec![third]).await;
    assert_eq!(Kind::of(&status), Kind::Busy, "{status}");
    assert!(status.message().contains("of the index"), "{status}");
    drop(waiting);
    eventually("no job is left", PATIENCE, async || {
        match world.counters.jobs.get() {
            0 => Ok(()),
            jobs => Err(jobs),
        }
    })
    .await;
    assert!(heard(&world, open()).await.1.is_ok());
}
