//! Captures between the wire and `archive_formats::cdx`.

use archive_formats::cdx::{Capture, OriginalRecord};
use archive_formats::date::Stamp;
use archive_rpc::InvalidMessage;

use crate::fields;
use crate::wire;

/// The longest text of a capture, in bytes.
const LONGEST_TEXT: usize = 1 << 20;

/// The most fields without a place of their own.
const MOST_EXTRA: usize = 100;

/// Writes a capture.
pub fn write_capture(capture: Capture) -> wire::Capture {
    let text = Option::unwrap_or_default;
    wire::Capture {
        key: capture.key,
        timestamp: capture.timestamp.to_string(),
        original: text(capture.original),
        mime: text(capture.mime),
        status: capture.status.map_or(0, u32::from),
        digest: text(capture.digest),
        redirect: text(capture.redirect),
        robots: text(capture.robots),
        length: capture.length,
        offset: capture.offset,
        file: text(capture.file),
        original_record: capture.original_record.map(|record| wire::OriginalRecord {
            length: record.length,
            offset: record.offset,
            file: text(record.file),
        }),
        extra: capture
            .extra
            .into_iter()
            .map(|(name, value)| wire::Extra { name, value })
            .collect(),
    }
}

/// Reads a capture.
///
/// # Errors
///
/// Fails with the name of the field that is missing, too long or invalid.
pub fn read_capture(message: wire::Capture) -> Result<Capture, InvalidMessage> {
    if message.key.is_empty() {
        return Err(InvalidMessage::missing_field("key"));
    }
    let timestamp: Stamp = fields::parse_field("timestamp", &message.timestamp)?;
    let status = match message.status {
        0 => None,
        status => Some(u16::try_from(status).map_err(|_large| {
            InvalidMessage::invalid_field("status", format!("is {status}, more than 65535"))
        })?),
    };
    if message.extra.len() > MOST_EXTRA {
        let reason = format!("has more than {MOST_EXTRA} fields");
        return Err(InvalidMessage::invalid_field("extra", reason));
    }
    let mut capture = Capture::new(bounded("key", message.key)?, timestamp);
    capture.original = optional("original", message.original)?;
    capture.mime = optional("mime", message.mime)?;
    capture.status = status;
    capture.digest = optional("digest", message.digest)?;
    capture.redirect = optional("redirect", message.redirect)?;
    capture.robots = optional("robots", message.robots)?;
    capture.length = message.length;
    capture.offset = message.offset;
    capture.file = optional("file", message.file)?;
    if let Some(record) = message.original_record {
        capture.original_record = Some(OriginalRecord {
            length: record.length,
            offset: record.offset,
            file: optional("original_record.file", record.file)?,
        });
    }
    for extra in message.extra {
        let name = bounded("extra.name", extra.name)?;
        capture
            .extra
            .push((name, bounded("extra.value", extra.value)?));
    }
    Ok(capture)
}

fn optional(field: &'static str, text: String) -> Result<Option<String>, InvalidMessage> {
    if text.is_empty() {
        return Ok(None);
    }
    bounded(field, text).map(Some)
}

/// Refuses a text that is too long, or that would not be one line.
fn bounded(field: &'static str, text: String) -> Result<String, InvalidMessage> {
    let text = fields::bounded_text(field, text, LONGEST_TEXT)?;
    if text.contains(['\n', '\r']) {
        return Err(InvalidMessage::invalid_field(field, "holds a line end"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capture() -> Capture {
        let mut capture = Capture::new("example,www)/a", "20260102030405".parse().unwrap());
        capture.original = Some("http://www.example/a".to_owned());
        capture.mime = Some("text/html".to_owned());
        capture.status = Some(200);
        capture.digest = Some("sha1:AAAA".to_owned());
        capture.redirect = Some("http://b.example/".to_owned());
        capture.robots = Some("A".to_owned());
        capture.length = Some(0);
        capture.offset = Some(u64::MAX);
        capture.file = Some("a.warc.gz".to_owned());
        capture.original_record = Some(OriginalRecord {
            length: None,
            offset: Some(7),
            file: Some("b.warc.gz".to_owned()),
        });
        capture.extra = vec![
            ("method".to_owned(), "POST".to_owned()),
            ("requestBody".to_owned(), String::new()),
        ];
        capture
    }

    /// Fails if a field is lost, or swapped with another, on the way.
    #[test]
    fn captures_survive_the_wire() {
        let bare = Capture::new("-", "20260102030405123".parse().unwrap());
        for capture in [capture(), bare] {
            assert_eq!(read_capture(write_capture(capture.clone())), Ok(capture));
        }
    }

    /// Fails if a message of a liar becomes a capture, or the error does not name its field.
    #[test]
    fn faulty_captures_name_their_field() {
        let refused = |field: &str, change: &dyn Fn(&mut wire::Capture)| {
            let mut message = write_capture(capture());
            change(&mut message);
            let error = read_capture(message).unwrap_err();
            assert_eq!(error.field, field, "{error}");
        };
        refused("key", &|message| message.key.clear());
        refused("key", &|message| message.key = "a\nb".to_owned());
        refused("timestamp", &|message| message.timestamp.clear());
        refused("timestamp", &|message| {
            message.timestamp = "20261302030405".to_owned();
        });
        refused("status", &|message| message.status = 65_536);
        refused("mime", &|message| {
            message.mime = "m".repeat(LONGEST_TEXT + 1);
        });
        refused("extra", &|message| {
            message.extra = vec![wire::Extra::default(); MOST_EXTRA + 1];
        });
        refused("original_record.file", &|message| {
            message.original_record.as_mut().unwrap().file = "a\r".to_owned();
        });
    }
}
