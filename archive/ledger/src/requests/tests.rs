//! Every short sequence of what several people do with one request.

use archive_model::{
    Act, ActKind, AnomalyKind, AtticKind, FileName, NodeId, NodeSelector, ReplicaId, Root,
    VolumeId, VolumeSelector,
};

use super::*;

fn acts() -> Vec<RequestedAct> {
    let name = FileName::new("a.warc").unwrap();
    let replica = ReplicaId::new("one").unwrap();
    let node = NodeId::new("n").unwrap();
    let volume = VolumeId::new("v").unwrap();
    let root = Root::from_bytes([7; 32]);
    let purge = |checksum, subject| RequestedAct {
        act: Act::Purge {
            place: "one/n/v/x".parse().unwrap(),
            checksum,
            last_copies: checksum.is_some(),
        },
        subject,
    };
    let volume = |is_bound: bool| VolumeSelector {
        replica: is_bound.then(|| replica.clone()),
        node: is_bound.then(|| node.clone()),
        volume: volume.clone(),
    };
    let node = |is_bound: bool| NodeSelector {
        replica: is_bound.then(|| replica.clone()),
        node: node.clone(),
    };
    let named = |act: Act| RequestedAct::from(act);
    vec![
        named(Act::Remove {
            name: name.clone(),
            replica: replica.clone(),
            checksum: root,
            last_copies: false,
        }),
        purge(None, ActSubject::None),
        purge(
            Some(root),
            ActSubject::Item(PurgedItem {
                name: Some(name.clone()),
                kind: AtticKind::File,
                bytes: 9,
            }),
        ),
        named(Act::RetireVolume {
            volume: volume(true),
            last_copies: false,
        }),
        named(Act::RetireNode {
            node: node(true),
            last_copies: false,
        }),
        named(Act::RetireVolume {
            volume: volume(false),
            last_copies: true,
        }),
        named(Act::RetireNode {
            node: node(false),
            last_copies: true,
        }),
        named(Act::RetireReplica(replica.clone())),
        RequestedAct {
            act: Act::Accept {
                anomaly: "a1".to_owned(),
            },
            subject: ActSubject::Anomaly(AcceptedAnomaly {
                file: name.clone(),
                replica: replica.clone(),
                kind: AnomalyKind::Lost(vec![(0, 16384)]),
            }),
        },
        named(Act::NewRoot {
            name: name.clone(),
            replica: replica.clone(),
            root,
        }),
        named(Act::ReinstateCopy { name, replica }),
    ]
}

/// Returns the persons of the tests: Anna has two certificates; Max has every role at once.
fn people() -> Vec<Person> {
    use Role::{Custodian, Harvester, Officer, Operator, Reader, Researcher};
    vec![
        Person::new("anna", &[Custodian]),
        Person::new("anna", &[Officer, Operator]),
        Person::new("bert", &[Custodian]),
        Person::new("olga", &[Officer]),
        Person::new("otto", &[Operator]),
        Person::new(
            "max",
            &[Harvester, Reader, Researcher, Officer, Custodian, Operator],
        ),
        Person::new("rita", &[Reader, Researcher, Harvester]),
    ]
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Approve(usize),
    Withdraw(usize),
    Days(i64),
    Done,
    Fail,
    Restart,
}

#[derive(Clone)]
struct RequestScene {
    request: PersonRequest,
    asker: usize,
    now: Timestamp,
    approved: u32,
    ended: u32,
}

impl RequestScene {
    fn step(&mut self, step: Step) {
        let before = self.request.clone();
        let people = people();
        let is_late = self.request.expires <= self.now;
        let story = format!("{step:?} {before:#?}");
        match step {
            Step::Approve(who) => {
                let result = self.request.approve_request(&people[who], self.now);
                if result.is_ok() {
                    // Fails if one person approves twice (also by another role), by a role that may not, too late, or
                    // what is approved already.
                    assert_ne!(people[who].name, people[self.asker].name, "{story}");
                    let may = before
                        .act
                        .approvers()
                        .iter()
                        .any(|role| people[who].roles.contains(role));
                    assert!(
                        may && !is_late && before.state == RequestStatus::Open,
                        "{story}"
                    );
                    self.approved += 1;
                }
            }
            Step::Withdraw(who) => {
                if self
                    .request
                    .withdraw_request(&people[who], self.now)
                    .is_ok()
                {
                    assert_eq!(people[who].name, people[self.asker].name, "{story}");
                    assert!(!is_late && before.state == RequestStatus::Open, "{story}");
                }
            }
            Step::Days(days) => {
                self.now = self
                    .now
                    .checked_add(SignedDuration::from_hours(24 * days))
                    .unwrap();
                self.request.tick_request(self.now);
            }
            Step::Done | Step::Fail => {
                let result = if matches!(step, Step::Done) {
                    Ok("ok")
                } else {
                    Err("no")
                };
                let result = result.map(str::to_owned).map_err(str::to_owned);
                if self.request.end_request(result, self.now) {
                    // Fails if something is done that nobody approved, or done twice.
                    assert!(before.is_due(), "{story}");
                    self.ended += 1;
                }
            }
            Step::Restart => {
                let bytes = postcard::to_stdvec(&self.request).unwrap();
                self.request = postcard::from_bytes(&bytes).unwrap();
                assert_eq!(self.request, before);
            }
        }
        assert!(self.approved <= 1 && self.ended <= self.approved, "{story}");
        // Fails if a step changes what the request is about.
        let bound = |request: &PersonRequest| {
            (
                request.act.clone(),
                request.reason.clone(),
                request.asked_by.clone(),
            )
        };
        assert_eq!(bound(&self.request), bound(&before), "{story}");
        // Fails if a step is taken after the end.
        match before.state {
            RequestStatus::Open | RequestStatus::Approved { .. } => {}
            RequestStatus::Ended { .. }
            | RequestStatus::Withdrawn { .. }
            | RequestStatus::Expired { .. } => {
                assert_eq!(self.request, before, "{story}");
            }
        }
        // Fails if an approved act expires before it is done.
        if before.is_due() {
            assert!(
                matches!(
                    self.request.state,
                    RequestStatus::Approved { .. } | RequestStatus::Ended { .. }
                ),
                "{story}"
            );
        }
        // Fails if an open request never expires.
        if self.request.state == RequestStatus::Open {
            assert!(!is_late || !matches!(step, Step::Days(_)), "{story}");
        }
    }
}

fn explore(world: &RequestScene, steps: &[Step], depth: usize) -> u64 {
    let mut tried = 0;
    for step in steps {
        let mut next = world.clone();
        next.step(*step);
        tried += 1;
        if depth > 1 {
            tried += explore(&next, steps, depth - 1);
        }
    }
    tried
}

/// Fails if some order of approving, withdrawing, waiting, doing and restarting lets one person approve alone, an act
/// be done twice or unapproved, or a request change.
#[test]
fn every_short_sequence_of_acts_keeps_the_rules() {
    let people = people();
    let mut steps = vec![
        Step::Days(3),
        Step::Days(4),
        Step::Done,
        Step::Fail,
        Step::Restart,
    ];
    steps.extend((0..people.len()).map(Step::Approve));
    steps.extend([0, 1, 2, 5].map(Step::Withdraw));
    let mut tried = 0;
    let mut asked = 0;
    let now = Timestamp::UNIX_EPOCH;
    for act in acts() {
        for (asker, person) in people.iter().enumerate() {
            let may = act.askers().iter().any(|role| person.roles.contains(role));
            let request = PersonRequest::ask_request(3, act.clone(), " why ", person, now);
            assert_eq!(request.is_ok(), may, "{person:?} asks for {act}");
            let Ok(request) = request else { continue };
            asked += 1;
            let world = RequestScene {
                request,
                asker,
                now,
                approved: 0,
                ended: 0,
            };
            tried += explore(&world, &steps, 4);
        }
    }
    println!("{asked} requests, {tried} sequences");
    assert!(tried > 1_000_000);
}

/// Fails if a role is added to or dropped from those that may ask for an act or approve it. The roles are written down
/// here a second time, without the code that decides.
#[test]
fn roles_that_ask_and_approve_are_fixed() {
    for act in acts() {
        let words = |roles: &[Role]| roles.iter().map(|role| role.as_str()).collect::<Vec<_>>();
        let expected: (&[&str], &[&str]) = match act.act.kind().as_str() {
            "remove" | "purge" => (&["custodian"], &["custodian"]),
            "retire" if act.to_string().contains("last good copies") => {
                (&["custodian"], &["custodian"])
            }
            "accept" | "new-root" => (&["custodian", "officer"], &["custodian"]),
            "reinstate" if act.file().is_some() => (&["custodian", "officer"], &["custodian"]),
            _ => (&["operator", "custodian"], &["custodian", "officer"]),
        };
        assert_eq!(
            (&words(act.askers())[..], &words(act.approvers())[..]),
            expected,
            "{act}"
        );
    }
}

/// Fails if a request needs no reason, lives longer than a week, or a refused approval does not say which role or
/// person is needed.
#[test]
fn request_says_why_and_refusal_says_remedy() {
    let anna = Person::new("anna", &[Role::Custodian]);
    let now = Timestamp::UNIX_EPOCH;
    let ask = |reason: &str| PersonRequest::ask_request(1, acts().remove(0), reason, &anna, now);
    for reason in ["", "  \n", "a\u{7}b", &"x".repeat(1001)] {
        assert_eq!(ask(reason), Err(RequestRefusal::Reason));
    }
    let mut request = ask("a court order").unwrap();
    let officer = Person::new("anna", &[Role::Officer]);
    let said = request
        .approve_request(&officer, now)
        .unwrap_err()
        .to_string();
    assert_eq!(
        said,
        "approving `remove` needs a certificate with the role custodian"
    );
    let said = request.approve_request(&anna, now).unwrap_err().to_string();
    assert_eq!(
        said,
        "custodian/anna asked for it; a second person must approve it"
    );
    assert_eq!(request.expires, "1970-01-08T00:00:00Z".parse().unwrap());
}

/// Fails if a person who approves reads only a number.
#[test]
fn acceptance_names_the_loss() {
    let act = acts()
        .into_iter()
        .find(|act| act.act.kind() == ActKind::Accept)
        .unwrap();
    assert_eq!(
        act.to_string(),
        "accept anomaly a1: a.warc in replica one: lost bytes 0-16383"
    );
    assert_eq!(act.file().unwrap().as_str(), "a.warc", "in its history");
}
