//! Fairness, and that no job is lost or given twice.

use super::*;

fn job(text: &str) -> JobId {
    JobId::new(text).unwrap()
}

fn replica(text: &str) -> ReplicaId {
    ReplicaId::new(text).unwrap()
}

fn drain(queue: &mut Queue) -> Vec<String> {
    let mut order = Vec::new();
    while let Some((replica, job)) = queue.next() {
        order.push(job.to_string());
        queue.ended(&replica);
    }
    order
}

#[test]
fn persons_take_turns_and_each_goes_in_order() {
    let (mut queue, one) = (Queue::new(1), replica("one"));
    for at in 1..=4 {
        queue.push(&one, "researcher/anna", job(&format!("a{at}")));
    }
    assert_eq!(queue.next().unwrap().1, job("a1"));
    queue.push(&one, "researcher/bo", job("b1"));
    queue.push(&one, "researcher/bo", job("b2"));
    queue.push(&one, "researcher/cy", job("c1"));
    assert_eq!(queue.next(), None, "one runs");
    queue.ended(&one);
    assert_eq!(drain(&mut queue), ["a2", "b1", "c1", "a3", "b2", "a4"]);
}

#[test]
fn each_replica_has_its_own_places_and_what_ran_goes_first() {
    let (one, two) = (replica("one"), replica("two"));
    let mut queue = Queue::new(2);
    for at in 1..=3 {
        queue.push(&one, "researcher/anna", job(&format!("a{at}")));
        queue.push(&two, "researcher/anna", job(&format!("z{at}")));
    }
    queue.push_first(&one, job("again"));
    let given: Vec<_> =
        std::iter::from_fn(|| queue.next().map(|(_, job)| job.to_string())).collect();
    assert_eq!(given, ["again", "a1", "z1", "z2"]);
    queue.ended(&two);
    assert_eq!(queue.next(), Some((two, job("z3"))));
    assert_eq!(queue.next(), None);
}

#[test]
fn what_is_taken_out_is_gone_and_the_others_keep_their_turn() {
    let one = replica("one");
    let fill = || {
        let mut queue = Queue::new(1);
        queue.push_first(&one, job("f"));
        for (who, id) in [("a", "a1"), ("b", "b1"), ("a", "a2"), ("b", "b2")] {
            queue.push(&one, who, job(id));
        }
        queue
    };
    let all = ["f", "a1", "b1", "a2", "b2"];
    assert_eq!(drain(&mut fill()), all);
    for out in all {
        let mut queue = fill();
        assert!(queue.remove(&one, &job(out)));
        assert!(!queue.remove(&one, &job(out)), "{out} twice");
        let mut left = drain(&mut queue);
        assert!(!left.contains(&out.to_owned()));
        left.sort();
        let mut expected: Vec<_> = all.iter().filter(|id| **id != out).collect();
        expected.sort();
        assert_eq!(left.iter().collect::<Vec<_>>(), expected);
    }
    let mut queue = fill();
    assert!(queue.remove(&one, &job("a1")) && queue.remove(&one, &job("a2")));
    assert_eq!(drain(&mut queue), ["f", "b1", "b2"]);
    assert!(!queue.remove(&replica("none"), &job("b1")));
}
