//! Why a batch job ends before its end because of one node, and what the repository is told of it.

use std::fmt;
use std::time::Duration;

use archive_model::NodeId;
use archive_rpc::{ConnectError, Kind};
use proto_archive::batch_broken::broken;
use tonic::{Code, Status};

use crate::batch::Why;
use crate::rpc::nodes_client::Reason;

/// Why a node broke off.
pub(super) enum Broken {
    /// It said so, or the connection did.
    Said(Status),
    /// It said nothing.
    Silent,
    /// Its stream ended without an end.
    Cut,
}

/// Why the job ends, as the repository is told: with the node in the details, unless it is not the node that is why. One
/// that waits in vain for the component (`is_waited_for`) has the caller to blame.
pub(super) fn status(
    node: &NodeId,
    why: &Why<Broken>,
    idle: Duration,
    is_waited_for: bool,
) -> Status {
    let (kind, reason) = match why {
        Why::Lied(_) => (Kind::Internal, why.to_string()),
        Why::Failed(Broken::Cut) => (Kind::Unavailable, "it broke off".to_owned()),
        Why::Failed(Broken::Silent) => (Kind::Unavailable, format!("it said nothing for {idle:?}")),
        Why::Failed(Broken::Said(status)) => (kind(status), Reason(status).to_string()),
    };
    let said = format!("node {node}: {reason}");
    let is_own = match why {
        Why::Failed(Broken::Said(status)) => {
            ConnectError::within(status).is_some() || kind != Kind::TimedOut || !is_waited_for
        }
        Why::Failed(Broken::Cut | Broken::Silent) | Why::Lied(_) => true,
    };
    if is_own {
        broken(kind, node, said)
    } else {
        kind.status(said)
    }
}

/// What the caller does next. What only the connection says refuses no job.
fn kind(status: &Status) -> Kind {
    use std::error::Error;
    let is_connection = status.source().is_some() && ConnectError::within(status).is_none();
    if status.code() == Code::Unimplemented {
        Kind::Mismatch
    } else if is_connection || matches!(status.code(), Code::Unknown | Code::OutOfRange) {
        Kind::Unavailable
    } else {
        Kind::of(status)
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Said(status) => Reason(status).fmt(f),
            Self::Silent => f.write_str("it is silent"),
            Self::Cut => f.write_str("it broke off"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proto_archive::batch_broken::broken_node;

    use super::*;

    const IDLE: Duration = Duration::from_secs(2);

    fn told(why: &Why<Broken>, is_waited_for: bool) -> (Kind, bool) {
        let node = NodeId::new("a").unwrap();
        let status = status(&node, why, IDLE, is_waited_for);
        assert!(status.message().starts_with("node a: "), "{status}");
        (Kind::of(&status), broken_node(&status) == Some(node))
    }

    #[test]
    fn a_break_is_of_the_node_unless_it_waits_for_the_component_in_vain() {
        let said = |status| Why::Failed(Broken::Said(status));
        for is_waited_for in [false, true] {
            assert_eq!(
                told(&Why::Failed(Broken::Cut), is_waited_for),
                (Kind::Unavailable, true)
            );
            assert_eq!(
                told(&Why::Failed(Broken::Silent), is_waited_for),
                (Kind::Unavailable, true)
            );
            assert_eq!(
                told(&Why::Lied("it sent noise".to_owned()), is_waited_for),
                (Kind::Internal, true)
            );
            for kind in Kind::ALL {
                let is_own = kind != Kind::TimedOut || !is_waited_for;
                let told = told(&said(kind.status("x")), is_waited_for);
                assert_eq!(told, (kind, is_own));
            }
            let slow = ConnectError::TimedOut {
                address: "a:1".to_owned(),
                limit: IDLE,
            };
            let mut unreached = Status::unavailable("no connection");
            unreached.set_source(std::sync::Arc::new(slow));
            assert_eq!(
                told(&said(unreached), is_waited_for),
                (Kind::TimedOut, true)
            );
        }
    }

    #[test]
    fn what_only_the_connection_says_refuses_no_job() {
        let reset = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
        for (status, kind) in [
            (Status::unknown("h2"), Kind::Unavailable),
            (Status::out_of_range("message too large"), Kind::Unavailable),
            (Status::from_error(Box::new(reset)), Kind::Unavailable),
            (Status::unimplemented("what?"), Kind::Mismatch),
        ] {
            let told = told(&Why::Failed(Broken::Said(status)), false);
            assert_eq!(told, (kind, true));
        }
    }
}
