//! Fields of messages: present, of a bounded length, and of their type, or refused by name.

use std::fmt::Display;
use std::str::FromStr;

use archive_rpc::InvalidMessage;

/// Parses a required field.
pub(crate) fn parse_field<T: FromStr<Err: Display>>(
    field: &'static str,
    text: &str,
) -> Result<T, InvalidMessage> {
    if text.is_empty() {
        return Err(InvalidMessage::missing_field(field));
    }
    text.parse()
        .map_err(|error: T::Err| InvalidMessage::invalid_field(field, error.to_string()))
}

/// Parses a field that may be empty.
pub(crate) fn parse_optional<T: FromStr<Err: Display>>(
    field: &'static str,
    text: &str,
) -> Result<Option<T>, InvalidMessage> {
    if text.is_empty() {
        return Ok(None);
    }
    parse_field(field, text).map(Some)
}

/// Refuses a text of more than `longest` bytes.
pub(crate) fn bounded_text(
    field: &'static str,
    text: String,
    longest: usize,
) -> Result<String, InvalidMessage> {
    if text.len() > longest {
        let reason = format!("has {} bytes, more than {longest}", text.len());
        return Err(InvalidMessage::invalid_field(field, reason));
    }
    Ok(text)
}
