//! The error of an invalid message from the wire, which names the field.

use tonic::Status;

use crate::call_error::CallError;
use crate::kind::CallErrorKind;

/// The reason why a message could not be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("field `{field}`: {reason}")]
pub struct InvalidMessage {
    /// The name of the field, as in the `.proto`.
    pub field: &'static str,
    /// The problem of the field.
    pub reason: String,
}

impl InvalidMessage {
    /// Makes the error of a required field that is absent.
    pub fn missing_field(field: &'static str) -> Self {
        Self::invalid_field(field, "missing")
    }

    /// Makes the error of a field with a wrong value.
    pub fn invalid_field(field: &'static str, reason: impl Into<String>) -> Self {
        let reason = reason.into();
        Self { field, reason }
    }

    /// Makes the error of a step that may not come at this place of a stream; `expected` names the steps that may.
    pub fn unexpected_step(expected: &str) -> Self {
        Self::invalid_field("step", format!("is not {expected}"))
    }
}

impl From<InvalidMessage> for CallError {
    fn from(error: InvalidMessage) -> Self {
        CallErrorKind::Invalid.to_error(error.to_string())
    }
}

impl From<InvalidMessage> for Status {
    fn from(error: InvalidMessage) -> Self {
        CallErrorKind::Invalid.to_status(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a message with a missing or invalid field is refused without the name of the field.
    #[test]
    fn the_status_names_the_field() {
        let status = Status::from(InvalidMessage::missing_field("root"));
        assert_eq!(status.code(), tonic::Code::InvalidArgument);
        assert_eq!(status.message(), "field `root`: missing");
        assert_eq!(CallErrorKind::from_status(&status), CallErrorKind::Invalid);
        let status = Status::from(InvalidMessage::invalid_field("value", "3 bytes, not 32"));
        assert_eq!(status.message(), "field `value`: 3 bytes, not 32");
        let status = Status::from(InvalidMessage::unexpected_step("open"));
        assert_eq!(status.message(), "field `step`: is not open");
    }
}
