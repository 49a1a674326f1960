//! Callers of a reduce step that send a component or data that is not allowed, too much, too little, or nothing.

use proto_archive::wire::batch_reduce_request::{self, Step as Request};
use proto_archive::wire::batch_reduce_response::Step as Answer;

use super::*;
use crate::rpc::reduce;

struct Reducer {
    says: mpsc::Sender<Result<wire::BatchReduceRequest, Status>>,
    answers: AnswerStream<wire::BatchReduceResponse>,
}

impl Reducer {
    async fn begin(node_jobs: &Arc<NodeJobs>, first: Request) -> Self {
        let (says, said) = mpsc::channel(4);
        let idle = Duration::from_millis(500);
        let answers = reduce::run_reduce(node_jobs, idle, ReceiverStream::new(said)).into_inner();
        let reducer = Self { says, answers };
        reducer.say(first).await;
        reducer
    }

    async fn say(&self, step: Request) {
        let request = wire::BatchReduceRequest { step: Some(step) };
        self.says.send(Ok(request)).await.unwrap();
    }

    async fn next(&mut self) -> Result<Answer, Status> {
        let answer = in_time(self.answers.next()).await.expect("an answer")?;
        Ok(answer.step.unwrap())
    }
}

fn open_with(change: impl Fn(&mut wire::BatchSpec)) -> Request {
    let mut spec = super::hostile::component(9).spec.unwrap();
    change(&mut spec);
    Request::Open(batch_reduce_request::Open {
        id: "j1".to_owned(),
        spec: Some(spec),
        left_ms: 60_000,
    })
}

/// Returns the request that announces `bytes` as the component.
fn open_of(bytes: &[u8]) -> Request {
    open_with(|spec| {
        spec.component = fields::root_bytes(&root(bytes));
        spec.component_size = bytes.len() as u64;
    })
}

fn piece(bytes: &[u8]) -> Request {
    Request::Component(bytes.to_vec().into())
}

/// Fails if a reduce step accepts bytes that are no component or not those announced, data before the component, or a
/// caller that stalls.
#[tokio::test]
async fn invalid_or_stalled_reduce_step_is_refused() {
    let fixture = TestNode::new();
    let node_jobs = &fixture.node_jobs;
    let bytes = b"no component at all".as_slice();
    let long = vec![0; bytes.len() + 1];
    let data = || Request::Data(b"x".to_vec().into());
    for (steps, kind, says) in [
        (
            vec![piece(&bytes[..4]), piece(&bytes[4..])],
            CallErrorKind::Mismatch,
            "refused",
        ),
        (
            vec![piece(&long[1..])],
            CallErrorKind::Mismatch,
            "send that one",
        ),
        (vec![piece(&long)], CallErrorKind::Invalid, "20 came"),
        (vec![piece(b"")], CallErrorKind::Invalid, "0 bytes"),
        (vec![data()], CallErrorKind::Invalid, "component"),
        (vec![piece(b"no")], CallErrorKind::TimedOut, "stalled"),
    ] {
        let mut reducer = Reducer::begin(node_jobs, open_of(bytes)).await;
        assert!(matches!(reducer.next().await.unwrap(), Answer::Want(_)));
        for step in steps {
            reducer.say(step).await;
        }
        let status = reducer.next().await.unwrap_err();
        assert_eq!(CallErrorKind::from_status(&status), kind, "{status}");
        assert!(status.message().contains(says), "{status}");
    }
    let built_in = |spec: &mut wire::BatchSpec| {
        "file-list".clone_into(&mut spec.job);
        (spec.component, spec.component_size) = (bytes::Bytes::new(), 0);
    };
    for (first, named) in [
        (open_with(built_in), "component"),
        (
            open_with(|spec| spec.replica = "other".to_owned()),
            "replica",
        ),
        (open_with(|spec| spec.output = 0), "output"),
        (data(), "step"),
    ] {
        let status = Reducer::begin(node_jobs, first)
            .await
            .next()
            .await
            .unwrap_err();
        assert_eq!(field(&status), named);
    }
}

/// Fails if places are lost with callers that go away, or if a step takes the place of a run.
#[tokio::test]
async fn reduce_steps_have_two_places() {
    let fixture = TestNode::new();
    let node_jobs = &fixture.node_jobs;
    let mut waiting = Vec::new();
    for _ in 0..2 {
        let mut reducer = Reducer::begin(node_jobs, open_of(b"x")).await;
        assert!(matches!(reducer.next().await.unwrap(), Answer::Want(_)));
        waiting.push(reducer);
    }
    let mut third = Reducer::begin(node_jobs, open_of(b"x")).await;
    let status = third.next().await.unwrap_err();
    assert_eq!(
        CallErrorKind::from_status(&status),
        CallErrorKind::Busy,
        "{status}"
    );
    assert!(status.message().contains("batch_node.reduces"), "{status}");
    assert!(run_to_end(&fixture, super::open()).await.1.is_ok());
    drop(waiting);
    eventually("a place is free", PATIENCE, async || {
        let mut reducer = Reducer::begin(node_jobs, open_of(b"x")).await;
        reducer.next().await.map(drop)
    })
    .await;
}
