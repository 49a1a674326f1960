//! The kind of an error, carried over the wire in a [`Status`].
//!
//! A gRPC code is too coarse to tell what a caller does next, so the kind travels beside it as metadata
//! `holdfast-kind`.
//! Not promised: the fields of an error. `proto-archive` carries those.

use std::error::Error;
use std::fmt;
use std::str::FromStr;

use tonic::metadata::MetadataValue;
use tonic::{Code, Status};

use crate::connect::ConnectError;

/// The kind of an error, by what the caller does next. Stable: the texts are on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
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

/// The key of the kind in the metadata of a status.
const KEY: &str = "holdfast-kind";

impl Kind {
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
    pub const fn code(self) -> Code {
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

    /// Makes a status of this kind.
    pub fn status(self, message: impl Into<String>) -> Status {
        let mut status = Status::new(self.code(), message);
        status
            .metadata_mut()
            .insert(KEY, MetadataValue::from_static(self.as_str()));
        status
    }

    /// Returns the kind of a status: the one in its metadata, else the one of our own connector's error, else the one
    /// that its code suggests.
    pub fn of(status: &Status) -> Self {
        let said = status
            .metadata()
            .get(KEY)
            .and_then(|value| value.to_str().ok());
        if let Some(kind) = said.and_then(|text| text.parse().ok()) {
            return kind;
        }
        if let Some(error) = ConnectError::within(status) {
            return error.kind();
        }
        match status.code() {
            Code::InvalidArgument | Code::OutOfRange | Code::Unimplemented => Self::Invalid,
            Code::NotFound => Self::NotFound,
            Code::AlreadyExists => Self::Exists,
            Code::Aborted => Self::Busy,
            Code::FailedPrecondition => Self::Mismatch,
            Code::DataLoss => Self::Damaged,
            Code::PermissionDenied | Code::Unauthenticated => Self::Refused,
            Code::ResourceExhausted => Self::NoSpace,
            Code::Unavailable | Code::Cancelled => Self::Unavailable,
            Code::DeadlineExceeded => Self::TimedOut,
            // A status from the wire has no source. One with a source was made here, for a connection that broke.
            Code::Internal | Code::Unknown if status.source().is_some() => Self::Unavailable,
            Code::Ok | Code::Internal | Code::Unknown => Self::Internal,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Kind {
    type Err = UnknownKind;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|kind| kind.as_str() == text);
        found.ok_or_else(|| UnknownKind(text.chars().take(40).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Through the headers, as over the wire.
    fn sent(status: &Status) -> Status {
        let mut headers = tonic::codegen::http::HeaderMap::new();
        status.add_header(&mut headers).unwrap();
        Status::from_header_map(&headers).unwrap()
    }

    #[test]
    fn every_kind_survives_the_wire() {
        for kind in Kind::ALL {
            let received = sent(&kind.status("ä reason\nof two lines"));
            assert_eq!(Kind::of(&received), kind);
            assert_eq!(received.code(), kind.code());
            assert_eq!(received.message(), "ä reason\nof two lines");
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
    }

    #[test]
    fn status_without_kind_is_read_by_code() {
        for kind in Kind::ALL {
            let coarser = [
                (Kind::NotEnoughReplicas, Kind::Unavailable),
                (Kind::Storage, Kind::Internal),
            ];
            let expected = coarser
                .iter()
                .find(|(fine, _)| *fine == kind)
                .map_or(kind, |(_, coarse)| *coarse);
            assert_eq!(Kind::of(&Status::new(kind.code(), "")), expected);
        }
        for (code, expected) in [
            (Code::Unauthenticated, Kind::Refused),
            (Code::Cancelled, Kind::Unavailable),
            (Code::Unimplemented, Kind::Invalid),
            (Code::Unknown, Kind::Internal),
            (Code::Ok, Kind::Internal),
        ] {
            assert_eq!(Kind::of(&Status::new(code, "")), expected, "{code:?}");
        }
    }

    #[test]
    fn kind_of_later_version_is_read_by_code() {
        for text in ["on-fire", "", "Invalid"] {
            let mut status = Kind::NoSpace.status("");
            status.metadata_mut().insert(KEY, text.parse().unwrap());
            assert_eq!(Kind::of(&sent(&status)), Kind::NoSpace, "{text:?}");
        }
    }

    #[test]
    fn a_connection_that_broke_here_is_unavailable() {
        let broken = Status::from_error(Box::new(std::io::Error::from(
            std::io::ErrorKind::ConnectionReset,
        )));
        assert_eq!(Kind::of(&broken), Kind::Unavailable);
    }
}
