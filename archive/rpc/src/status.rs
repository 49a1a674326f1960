//! The kind of an error, carried over the wire in a [`Status`].
//!
//! A gRPC code is too coarse to tell what a caller does next, so the kind travels beside it as metadata
//! `holdfast-kind`.
//! Not promised: the fields of an error. `proto-archive` carries those.

use std::error::Error;

use tonic::metadata::MetadataValue;
use tonic::{Code, Status};

use crate::connect::ConnectError;
use crate::kind::CallErrorKind;

/// The key of the kind in the metadata of a status.
const KEY: &str = "holdfast-kind";

impl CallErrorKind {
    /// Makes a status of this kind.
    pub fn to_status(self, message: impl Into<String>) -> Status {
        let mut status = Status::new(self.status_code(), message);
        status
            .metadata_mut()
            .insert(KEY, MetadataValue::from_static(self.as_str()));
        status
    }

    /// Returns the kind of a status: the one in its metadata, else the one of our own connector's error, else the one
    /// that its code suggests.
    pub fn from_status(status: &Status) -> Self {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Through the headers, as over the wire.
    fn sent(status: &Status) -> Status {
        let mut headers = tonic::codegen::http::HeaderMap::new();
        status.add_header(&mut headers).unwrap();
        Status::from_header_map(&headers).unwrap()
    }

    /// Fails if the headers of a status change its kind, or a reason of several lines.
    #[test]
    fn every_kind_survives_the_wire() {
        for kind in CallErrorKind::ALL {
            let received = sent(&kind.to_status("ä reason\nof two lines"));
            assert_eq!(CallErrorKind::from_status(&received), kind);
            assert_eq!(received.code(), kind.status_code());
            assert_eq!(received.message(), "ä reason\nof two lines");
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
    }

    /// Fails if a status of a peer that sends no kind gets another meaning than that of its code.
    #[test]
    fn status_without_kind_is_read_by_code() {
        for kind in CallErrorKind::ALL {
            let coarser = [
                (CallErrorKind::NotEnoughReplicas, CallErrorKind::Unavailable),
                (CallErrorKind::Storage, CallErrorKind::Internal),
            ];
            let expected = coarser
                .iter()
                .find(|(fine, _)| *fine == kind)
                .map_or(kind, |(_, coarse)| *coarse);
            assert_eq!(
                CallErrorKind::from_status(&Status::new(kind.status_code(), "")),
                expected
            );
        }
        for (code, expected) in [
            (Code::Unauthenticated, CallErrorKind::Refused),
            (Code::Cancelled, CallErrorKind::Unavailable),
            (Code::Unimplemented, CallErrorKind::Invalid),
            (Code::Unknown, CallErrorKind::Internal),
            (Code::Ok, CallErrorKind::Internal),
        ] {
            assert_eq!(
                CallErrorKind::from_status(&Status::new(code, "")),
                expected,
                "{code:?}"
            );
        }
    }

    /// Fails if a kind that only a later version knows is read as an internal error, although the code is known.
    #[test]
    fn kind_of_later_version_is_read_by_code() {
        for text in ["on-fire", "", "Invalid"] {
            let mut status = CallErrorKind::NoSpace.to_status("");
            status.metadata_mut().insert(KEY, text.parse().unwrap());
            assert_eq!(
                CallErrorKind::from_status(&sent(&status)),
                CallErrorKind::NoSpace,
                "{text:?}"
            );
        }
    }

    /// Fails if a connection that broke on the side of the caller counts as a bug, and not as something that will pass.
    #[test]
    fn a_connection_that_broke_here_is_unavailable() {
        let broken = Status::from_error(Box::new(std::io::Error::from(
            std::io::ErrorKind::ConnectionReset,
        )));
        assert_eq!(
            CallErrorKind::from_status(&broken),
            CallErrorKind::Unavailable
        );
    }
}
