//! Failures of the run on one node, or of its reduce step, and the events that follow for the job.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use archive_decisions::batch::life::JobEvent;
use archive_model::NodeId;
use archive_rpc::{CallErrorKind, ConnectError};
use tonic::{Code, Status};

use crate::merge::SourceError;

/// The reason why a node failed.
#[derive(Debug)]
pub(crate) enum NodeFailure {
    /// The node or the connection returned an error.
    Said(Status),
    /// The node was silent for this time.
    Silent(Duration),
    /// The stream ended without its last message.
    Cut,
}

/// Returns the event for the job if a node failed: the job waits, fails, or continues with the node later, or without
/// it.
pub(crate) fn broken_event(node: &NodeId, why: &SourceError<NodeFailure>) -> JobEvent {
    let said = format!("node {node}: {why}");
    let SourceError::Failed(NodeFailure::Said(status)) = why else {
        return JobEvent::NodeBroke(node.clone(), said);
    };
    match kind(status) {
        CallErrorKind::Busy => JobEvent::Busy(said),
        CallErrorKind::Invalid
        | CallErrorKind::Mismatch
        | CallErrorKind::NotFound
        | CallErrorKind::NoSpace => JobEvent::Failed(said),
        CallErrorKind::Exists
        | CallErrorKind::NotEnoughReplicas
        | CallErrorKind::Damaged
        | CallErrorKind::Refused
        | CallErrorKind::Unavailable
        | CallErrorKind::TimedOut
        | CallErrorKind::Storage
        | CallErrorKind::Internal => JobEvent::NodeBroke(node.clone(), said),
    }
}

/// Returns the kind of a status. An error of the connection alone refuses no job.
fn kind(status: &Status) -> CallErrorKind {
    if status.code() == Code::Unimplemented {
        CallErrorKind::Mismatch
    } else if status.source().is_some() || matches!(status.code(), Code::Unknown | Code::OutOfRange)
    {
        CallErrorKind::Unavailable
    } else {
        CallErrorKind::from_status(status)
    }
}

impl fmt::Display for NodeFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Said(status) => match ConnectError::within(status) {
                Some(error) => error.fmt(f),
                None if status.message().is_empty() => status.code().fmt(f),
                None => f.write_str(status.message()),
            },
            Self::Silent(limit) => write!(f, "it sent nothing for {limit:?}"),
            Self::Cut => f.write_str("its stream broke off"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure_event(why: &SourceError<NodeFailure>) -> JobEvent {
        broken_event(&NodeId::new("a").unwrap(), why)
    }

    fn status_event(status: Status) -> JobEvent {
        failure_event(&SourceError::Failed(NodeFailure::Said(status)))
    }

    fn is_of_node(event: &JobEvent) -> bool {
        matches!(event, JobEvent::NodeBroke(node, said) if node.as_str() == "a" && said.starts_with("node a: "))
    }

    /// Fails if a job fails because a node is away, or continues although a node has refused it.
    #[test]
    fn only_refusal_of_node_fails_job() {
        for why in [
            SourceError::Failed(NodeFailure::Cut),
            SourceError::Failed(NodeFailure::Silent(Duration::from_mins(1))),
            SourceError::Lied("it sent noise".to_owned()),
        ] {
            assert!(is_of_node(&failure_event(&why)), "{why}");
        }
        for kind in CallErrorKind::ALL {
            let event = status_event(kind.to_status("x"));
            let is_as_it_should = match kind {
                CallErrorKind::Busy => matches!(event, JobEvent::Busy(_)),
                CallErrorKind::Invalid
                | CallErrorKind::Mismatch
                | CallErrorKind::NotFound
                | CallErrorKind::NoSpace => {
                    matches!(event, JobEvent::Failed(_))
                }
                CallErrorKind::Exists
                | CallErrorKind::NotEnoughReplicas
                | CallErrorKind::Damaged
                | CallErrorKind::Refused
                | CallErrorKind::Unavailable
                | CallErrorKind::TimedOut
                | CallErrorKind::Storage
                | CallErrorKind::Internal => is_of_node(&event),
            };
            assert!(is_as_it_should, "{kind:?}: {event:?}");
        }
    }

    /// Fails if a broken connection is taken for a refusal of the node.
    #[test]
    fn connection_error_refuses_no_job() {
        let slow = ConnectError::TimedOut {
            address: "a:1".to_owned(),
            limit: Duration::from_secs(2),
        };
        let mut unreached = Status::unavailable("no connection");
        unreached.set_source(std::sync::Arc::new(slow));
        let reset = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
        for status in [
            Status::unknown("h2"),
            Status::out_of_range("message too large"),
            Status::from_error(Box::new(reset)),
            unreached,
        ] {
            assert!(is_of_node(&status_event(status.clone())), "{status}");
        }
        let unknown_call = status_event(Status::unimplemented("what?"));
        assert!(matches!(unknown_call, JobEvent::Failed(_)));
    }
}
