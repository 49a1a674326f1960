//! The search for a file: all nodes that are alive are asked at once, each with the same limit of time.
//!
//! A node that cannot be asked, is silent, or has a volume offline is a gap: the file may be there. Only an answer
//! without entries *and* without gaps says that the file is nowhere.

use std::fmt;
use std::time::Duration;

use archive_daemon::Clock;
use futures_util::future::join_all;

use crate::gap::ReplicaGap;
use crate::nodes::{Address, NodeSurvey};

/// The entries that were found, in the order of their nodes, and the gaps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SurveyAnswer<E> {
    /// The entries, one for each volume that knows the file.
    pub entries: Vec<E>,
    /// The nodes and volumes that could not be asked.
    pub gaps: Vec<ReplicaGap>,
}

impl<E> SurveyAnswer<E> {
    /// Whether every node and volume answered.
    pub fn is_complete(&self) -> bool {
        self.gaps.is_empty()
    }
}

/// Asks every node of `survey` with `ask`, and waits for each at most `limit`.
pub async fn locate_copies<E, X, F>(
    survey: NodeSurvey,
    limit: Duration,
    clock: &Clock,
    ask: impl Fn(Address) -> F,
) -> SurveyAnswer<E>
where
    F: Future<Output = Result<SurveyAnswer<E>, X>>,
    X: fmt::Display,
{
    let answers = survey.ask.into_iter().map(|address| {
        let node = address.node.clone();
        let answer = clock.run_with_timeout(limit, ask(address));
        async move {
            match answer.await {
                Ok(Ok(found)) => found,
                Ok(Err(error)) => SurveyAnswer {
                    entries: Vec::new(),
                    gaps: vec![ReplicaGap::node_gap(&node, &error)],
                },
                Err(_late) => {
                    let gap =
                        ReplicaGap::node_gap(&node, &format_args!("no answer within {limit:?}"));
                    SurveyAnswer {
                        entries: Vec::new(),
                        gaps: vec![gap],
                    }
                }
            }
        }
    });
    let mut found = SurveyAnswer {
        entries: Vec::new(),
        gaps: survey.gaps,
    };
    for answer in join_all(answers).await {
        found.entries.extend(answer.entries);
        found.gaps.extend(answer.gaps);
    }
    found
}

#[cfg(test)]
mod tests {
    use archive_daemon::clock::ManualClock;
    use archive_model::{NodeId, VolumeName};
    use jiff::Timestamp;

    use super::*;

    fn survey(names: &[&str], gaps: Vec<ReplicaGap>) -> NodeSurvey {
        let address = |name: &&str| Address {
            node: NodeId::new(name).unwrap(),
            endpoint: format!("{name}:1"),
        };
        NodeSurvey {
            ask: names.iter().map(address).collect(),
            gaps,
        }
    }

    /// Answers as each node of these tests does when it is asked.
    async fn answer(address: Address) -> Result<SurveyAnswer<&'static str>, &'static str> {
        let offline = ReplicaGap::volume_gap(&address.node, VolumeName::new("v1"), &"not mounted");
        match address.node.as_str() {
            "has" => Ok(SurveyAnswer {
                entries: vec!["on has"],
                gaps: vec![],
            }),
            "twice" => Ok(SurveyAnswer {
                entries: vec!["on v1", "on v2"],
                gaps: vec![],
            }),
            "not" => Ok(SurveyAnswer {
                entries: vec![],
                gaps: vec![],
            }),
            "half" => Ok(SurveyAnswer {
                entries: vec!["on half"],
                gaps: vec![offline],
            }),
            "broken" => Err("connection refused"),
            _ => std::future::pending().await,
        }
    }

    /// Fails if a node that is silent, broken or late, or one of its volumes that is offline, is left out of the gaps,
    /// or discards the entries of the others.
    #[tokio::test]
    async fn everything_that_was_not_asked_is_named() {
        let hand = ManualClock::new(Timestamp::UNIX_EPOCH);
        let clock = hand.clock();
        let limit = Duration::from_secs(5);
        let silent = ReplicaGap::node_gap(&NodeId::new("dead").unwrap(), &"silent");
        let survey = survey(
            &["broken", "half", "has", "not", "stuck", "stuck-2", "twice"],
            vec![silent],
        );
        let found = locate_copies(survey, limit, &clock, answer);
        let advance = async {
            hand.wait_for_sleepers(2).await;
            hand.advance(limit);
        };
        let (found, ()) = tokio::join!(found, advance);
        assert_eq!(found.entries, ["on half", "on has", "on v1", "on v2"]);
        assert_eq!(
            found
                .gaps
                .iter()
                .map(ReplicaGap::to_string)
                .collect::<Vec<_>>(),
            [
                "node dead: silent",
                "node broken: connection refused",
                "node half, volume v1: not mounted",
                "node stuck: no answer within 5s",
                "node stuck-2: no answer within 5s",
            ]
        );
    }

    /// Fails if an empty answer counts as complete while the nodes of the replica are unknown: the file would be taken
    /// for missing.
    #[tokio::test]
    async fn nowhere_is_said_only_when_all_have_answered() {
        let clock = ManualClock::new(Timestamp::UNIX_EPOCH).clock();
        let limit = Duration::from_secs(5);
        let nowhere = locate_copies(survey(&["not"], vec![]), limit, &clock, answer).await;
        assert!(nowhere.entries.is_empty() && nowhere.is_complete());
        let unknown = locate_copies(
            survey(&[], vec![ReplicaGap::unknown_nodes()]),
            limit,
            &clock,
            answer,
        )
        .await;
        assert!(unknown.entries.is_empty() && !unknown.is_complete());
    }
}
