//! Callers that send a step that is not allowed, too much, too little, or nothing.

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

/// Sends these steps and nothing after them, and returns how the job ends.
async fn ends(fixture: &TestNode, steps: Vec<batch_run_request::Step>) -> Status {
    let mut caller = Caller::waited_for(&fixture.node_jobs, Duration::from_millis(500));
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

/// Fails if a job that cannot be run is begun, or the refusal does not name the field.
#[tokio::test]
async fn invalid_job_is_refused_by_its_field() {
    let fixture = TestNode::new();
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
        assert_eq!(field(&ends(&fixture, steps).await), named);
    }
    let unknown = ends(&fixture, spec(&|spec| spec.job = "mine-bitcoin".to_owned())).await;
    assert_eq!(
        CallErrorKind::from_status(&unknown),
        CallErrorKind::NotFound,
        "{unknown}"
    );
    assert_eq!(fixture.counters.jobs.get(), 0);
}

/// Fails if a component of another length or digest than announced is compiled.
#[tokio::test]
async fn component_is_exactly_what_was_announced() {
    let fixture = TestNode::new();
    let open = |size| batch_run_request::Step::Open(component(size));
    for (steps, kind, says) in [
        (vec![open(9), piece(10)], CallErrorKind::Invalid, "10 came"),
        (
            vec![open(9), piece(4), piece(6)],
            CallErrorKind::Invalid,
            "10 came",
        ),
        (vec![open(9), piece(0)], CallErrorKind::Invalid, "0 bytes"),
        (
            vec![open(3 << 20), piece((1 << 20) + 1)],
            CallErrorKind::Invalid,
            "1048577 bytes",
        ),
        (vec![open(9), open(9)], CallErrorKind::Invalid, "component"),
        (
            vec![open(9), piece(9)],
            CallErrorKind::Mismatch,
            "send that one",
        ),
        (vec![open(9), piece(8)], CallErrorKind::TimedOut, "stalled"),
        (vec![], CallErrorKind::TimedOut, "stalled"),
        (
            vec![open((64 << 20) + 1)],
            CallErrorKind::Invalid,
            "component_size",
        ),
    ] {
        let status = ends(&fixture, steps).await;
        assert_eq!(CallErrorKind::from_status(&status), kind, "{status}");
        assert!(status.message().contains(says), "{status}");
    }
    // Bytes that are announced and come, and are no component.
    let bytes = b"no component at all";
    let mut announced = component(bytes.len() as u64);
    announced.spec.as_mut().unwrap().component = fields::root_bytes(&root(bytes));
    let steps = vec![
        batch_run_request::Step::Open(announced),
        batch_run_request::Step::Component(bytes.to_vec().into()),
    ];
    let status = ends(&fixture, steps).await;
    assert_eq!(
        CallErrorKind::from_status(&status),
        CallErrorKind::Mismatch,
        "{status}"
    );
    assert!(status.message().contains("refused"), "{status}");
    assert_eq!(fixture.counters.jobs.get(), 0);
    assert_eq!(fixture.node_jobs.compiling.available_permits(), 1);
}

/// Fails if a job runs on after its caller has gone or sent what it must not.
#[tokio::test]
async fn unexpected_step_or_end_cancels_the_job() {
    let fixture = TestNode::new();
    for number in 0..2000 {
        fixture.store(&format!("f{number:04}"), b"x");
    }
    let talks = |says: Vec<batch_run_request::Step>| {
        let fixture = &fixture;
        async move {
            let mut caller = Caller::new(&fixture.node_jobs);
            caller.say(batch_run_request::Step::Open(open())).await;
            assert!(matches!(
                caller.next().await,
                Ok(Step::Begin(_) | Step::Progress(_))
            ));
            for step in says {
                caller.say(step).await;
            }
            // The caller sends nothing more.
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

/// Fails if more jobs run than there are places, jobs of the index wait for those of people, or a place is lost.
#[tokio::test]
async fn places_of_jobs_are_limited_per_class() {
    let fixture = TestNode::new();
    let mut waiting = Vec::new();
    for _ in 0..4 {
        let mut caller = Caller::new(&fixture.node_jobs);
        caller
            .say(batch_run_request::Step::Open(component(9)))
            .await;
        assert!(matches!(caller.next().await, Ok(Step::Want(_))));
        waiting.push(caller);
    }
    assert_eq!(fixture.counters.jobs.get(), 4);
    let status = ends(&fixture, vec![batch_run_request::Step::Open(open())]).await;
    assert_eq!(
        CallErrorKind::from_status(&status),
        CallErrorKind::Busy,
        "{status}"
    );
    // The index has places of its own, and no more than those.
    let of_index = |open: batch_run_request::Open| batch_run_request::Open {
        of_index: true,
        ..open
    };
    assert!(run_to_end(&fixture, of_index(open())).await.1.is_ok());
    for _ in 0..2 {
        let mut caller = Caller::new(&fixture.node_jobs);
        let open = of_index(component(9));
        caller.say(batch_run_request::Step::Open(open)).await;
        assert!(matches!(caller.next().await, Ok(Step::Want(_))));
        waiting.push(caller);
    }
    let third = batch_run_request::Step::Open(of_index(open()));
    let status = ends(&fixture, vec![third]).await;
    assert_eq!(
        CallErrorKind::from_status(&status),
        CallErrorKind::Busy,
        "{status}"
    );
    assert!(status.message().contains("of the index"), "{status}");
    drop(waiting);
    eventually("no job is left", PATIENCE, async || {
        match fixture.counters.jobs.get() {
            0 => Ok(()),
            jobs => Err(jobs),
        }
    })
    .await;
    assert!(run_to_end(&fixture, open()).await.1.is_ok());
}
