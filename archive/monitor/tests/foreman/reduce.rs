//! The reduce step of a component: what is refused, and what is waited for.

use archive_rpc::Kind;
use proto_archive::wire::batch_reduce_response::Step;
use proto_archive::wire::{
    BatchReduceRequest, BatchReduceResponse, BatchSpec, batch_reduce_request,
};
use testing::in_time;
use tokio::sync::mpsc;
use tonic::{Status, Streaming};

use crate::batch::spec;
use crate::world::{Caller, World};

fn component(bytes: &[u8]) -> BatchSpec {
    BatchSpec {
        job: String::new(),
        component: blake3::hash(bytes).as_bytes().to_vec().into(),
        component_size: u64::try_from(bytes.len()).expect("small"),
        ..spec()
    }
}

fn open(spec: BatchSpec) -> batch_reduce_request::Step {
    batch_reduce_request::Step::Open(batch_reduce_request::Open {
        id: "j1".to_owned(),
        spec: Some(spec),
        left_ms: 60_000,
    })
}

struct Reduce {
    says: mpsc::Sender<BatchReduceRequest>,
    answers: Streaming<BatchReduceResponse>,
}

impl Reduce {
    async fn begin(caller: &mut Caller, first: batch_reduce_request::Step) -> Self {
        let (says, said) = mpsc::channel(4);
        let requests = futures_util::stream::unfold(said, async |mut said| {
            let next = mpsc::Receiver::<BatchReduceRequest>::recv(&mut said).await?;
            Some((next, said))
        });
        says.send(BatchReduceRequest { step: Some(first) })
            .await
            .expect("room");
        let answers = in_time(caller.client().reduce_batch(requests)).await;
        let answers = answers.expect("answers").into_inner();
        Self { says, answers }
    }

    async fn say(&self, step: batch_reduce_request::Step) {
        let request = BatchReduceRequest { step: Some(step) };
        self.says.send(request).await.expect("listened to");
    }

    async fn next(&mut self) -> Result<Step, Status> {
        let message = in_time(self.answers.message()).await?;
        Ok(message.expect("more").step.expect("a step"))
    }
}

fn piece(bytes: &[u8]) -> batch_reduce_request::Step {
    batch_reduce_request::Step::Component(bytes.to_vec().into())
}

#[tokio::test]
async fn what_is_no_component_is_refused() {
    let world = World::new();
    let monitor = world.impatient_monitor().await;
    let mut repository = world.repository(&monitor).await;
    let bytes = b"no component at all".as_slice();
    let data = || batch_reduce_request::Step::Data(b"x".to_vec().into());
    for (steps, kind, says) in [
        (
            vec![piece(&bytes[..4]), piece(&bytes[4..])],
            Kind::Mismatch,
            "",
        ),
        (vec![piece(&vec![0; bytes.len()])], Kind::Mismatch, "is not"),
        (
            vec![piece(&vec![0; bytes.len() + 1])],
            Kind::Invalid,
            "larger",
        ),
        (vec![piece(b"")], Kind::Invalid, "0 bytes"),
        (vec![data()], Kind::Invalid, "step"),
        (vec![piece(b"no")], Kind::TimedOut, "stalled"),
    ] {
        let mut reduce = Reduce::begin(&mut repository, open(component(bytes))).await;
        assert!(matches!(reduce.next().await.unwrap(), Step::Want(_)));
        for step in steps {
            reduce.say(step).await;
        }
        let status = reduce.next().await.unwrap_err();
        assert_eq!(Kind::of(&status), kind, "{status}");
        assert!(status.message().contains(says), "{status}");
    }
    for (first, field) in [
        (open(spec()), "`component`"),
        (data(), "`step`"),
        (
            open(BatchSpec {
                output: 0,
                ..component(bytes)
            }),
            "`output`",
        ),
    ] {
        let status = Reduce::begin(&mut repository, first).await.next().await;
        let status = status.unwrap_err();
        assert_eq!(Kind::of(&status), Kind::Invalid, "{status}");
        assert!(status.message().contains(field), "{status}");
    }
    // Places come back whatever became of those before; and there are no more than that.
    let mut all = Vec::new();
    for _ in 0..2 {
        let mut reduce = Reduce::begin(&mut repository, open(component(bytes))).await;
        assert!(matches!(reduce.next().await.unwrap(), Step::Want(_)));
        all.push(reduce);
    }
    let mut third = Reduce::begin(&mut repository, open(component(bytes))).await;
    assert_eq!(Kind::of(&third.next().await.unwrap_err()), Kind::Busy);
    drop(all);
    monitor.stop().await;
}
