//! The kind of an error: what its caller does next.

use std::fmt;
use std::str::FromStr;

use tonic::Code;

/// The kind of an error, by what the caller does next. Stable: the texts are on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CallErrorKind {
    /// The request is wrong: correct it.
    Invalid,
    /// The archive has no such thing.
    NotFound,
    /// The name is taken by other content.
    Exists,
    /// The work is under way for another caller: ask again later.
    Busy,
    /// The bytes are not what was announced: read the source again.
    Mismatch,
    /// The file is not safe yet: keep the source, ask again later.
    NotEnoughReplicas,
    /// The bytes are intact in no replica.
    Damaged,
    /// The certificate does not allow the call.
    Refused,
    /// The archive has no room: free some.
    NoSpace,
    /// A part is not reachable or not ready: ask again.
    Unavailable,
    /// A time limit passed: ask again.
    TimedOut,
    /// A disk failed: an operator must look.
    Storage,
    /// A bug, or an error of which nothing more is known.
    Internal,
}

/// The reason why a text is not a kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a kind of error")]
pub struct UnknownKind(String);

impl CallErrorKind {
    /// Every kind.
    pub const ALL: [Self; 13] = [
        Self::Invalid,
        Self::NotFound,
        Self::Exists,
        Self::Busy,
        Self::Mismatch,
        Self::NotEnoughReplicas,
        Self::Damaged,
        Self::Refused,
        Self::NoSpace,
        Self::Unavailable,
        Self::TimedOut,
        Self::Storage,
        Self::Internal,
    ];

    /// Returns the kind as it stands on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Invalid => "invalid",
            Self::NotFound => "not-found",
            Self::Exists => "exists",
            Self::Busy => "busy",
            Self::Mismatch => "mismatch",
            Self::NotEnoughReplicas => "not-enough-replicas",
            Self::Damaged => "damaged",
            Self::Refused => "refused",
            Self::NoSpace => "no-space",
            Self::Unavailable => "unavailable",
            Self::TimedOut => "timed-out",
            Self::Storage => "storage",
            Self::Internal => "internal",
        }
    }

    /// Returns the gRPC code of the kind, for clients that know only codes.
    pub const fn status_code(self) -> Code {
        match self {
            Self::Invalid => Code::InvalidArgument,
            Self::NotFound => Code::NotFound,
            Self::Exists => Code::AlreadyExists,
            Self::Busy => Code::Aborted,
            Self::Mismatch => Code::FailedPrecondition,
            Self::Damaged => Code::DataLoss,
            Self::Refused => Code::PermissionDenied,
            Self::NoSpace => Code::ResourceExhausted,
            Self::NotEnoughReplicas | Self::Unavailable => Code::Unavailable,
            Self::TimedOut => Code::DeadlineExceeded,
            Self::Storage | Self::Internal => Code::Internal,
        }
    }

    /// Returns whether the same call may succeed later without any action.
    pub const fn is_passing(self) -> bool {
        matches!(self, Self::Busy | Self::Unavailable | Self::TimedOut)
    }
}

impl fmt::Display for CallErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for CallErrorKind {
    type Err = UnknownKind;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|kind| kind.as_str() == text);
        found.ok_or_else(|| UnknownKind(text.chars().take(40).collect()))
    }
}
