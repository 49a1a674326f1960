//! CDXJ lines: `key timestamp {"url": "…", …}`.
//!
//! Written as the field's tools do: all values are strings, in one order, with a blank after `:` and `,`, and only ASCII.

use std::fmt::Write as _;

use super::legend::{number, set_original};
use super::{Capture, InvalidLine};
use crate::json::Json;

pub(super) fn read(line: &str) -> Result<Capture, InvalidLine> {
    let mut parts = line.splitn(3, ' ');
    let (Some(key), Some(timestamp), Some(json)) = (parts.next(), parts.next(), parts.next())
    else {
        return Err(InvalidLine::Fields {
            expected: 3,
            found: line.split(' ').count(),
        });
    };
    if key.is_empty() {
        return Err(InvalidLine::NoKey);
    }
    let timestamp = timestamp.parse().map_err(InvalidLine::Timestamp)?;
    let object = match serde_json::from_str(json) {
        Ok(Json::Object(members)) => members,
        Ok(_) => return Err(InvalidLine::Json("no object".to_owned())),
        Err(error) => return Err(InvalidLine::Json(error.to_string())),
    };
    let mut capture = Capture::new(key, timestamp);
    for (name, value) in object {
        let text = match value {
            Json::Null => continue,
            Json::Text(text) => text,
            other @ (Json::Bool(_)
            | Json::Unsigned(_)
            | Json::Signed(_)
            | Json::Float(_)
            | Json::Array(_)
            | Json::Object(_)) => other.to_string(),
        };
        let value = (text != "-" && !text.is_empty()).then_some(text.as_str());
        match name.as_str() {
            "url" => capture.original = Some(text),
            "mime" => capture.mime = Some(text),
            "status" => capture.status = number("status", value)?,
            "digest" => capture.digest = Some(text),
            "redirect" => capture.redirect = Some(text),
            "robotflags" => capture.robots = Some(text),
            "length" => capture.length = number("length", value)?,
            "offset" => capture.offset = number("offset", value)?,
            "filename" => capture.file = Some(text),
            "orig.length" => {
                let length = number("orig.length", value)?;
                set_original(&mut capture, value, |o| o.length = length);
            }
            "orig.offset" => {
                let offset = number("orig.offset", value)?;
                set_original(&mut capture, value, |o| o.offset = offset);
            }
            "orig.filename" => {
                set_original(&mut capture, value, |o| o.file = value.map(str::to_owned));
            }
            _ => capture.extra.push((name, text)),
        }
    }
    Ok(capture)
}

pub(super) fn write(capture: &Capture) -> String {
    let number = |n: Option<u64>| n.map(|n| n.to_string());
    let (status, length, offset) = (
        capture.status.map(|s| s.to_string()),
        number(capture.length),
        number(capture.offset),
    );
    let original = capture.original_record.as_ref();
    let (original_length, original_offset) = (
        number(original.and_then(|o| o.length)),
        number(original.and_then(|o| o.offset)),
    );
    let mut line = format!("{} {} {{", blankless(&capture.key), capture.timestamp);
    let mut first = true;
    let mut put = |name: &str, value: Option<&str>| {
        let Some(value) = value else { return };
        if !first {
            line.push_str(", ");
        }
        first = false;
        string(&mut line, name);
        line.push_str(": ");
        string(&mut line, value);
    };
    put("url", capture.original.as_deref());
    put("mime", capture.mime.as_deref());
    put("status", status.as_deref());
    put("digest", capture.digest.as_deref());
    put("redirect", capture.redirect.as_deref());
    put("robotflags", capture.robots.as_deref());
    put("length", length.as_deref());
    put("offset", offset.as_deref());
    put("filename", capture.file.as_deref());
    put("orig.length", original_length.as_deref());
    put("orig.offset", original_offset.as_deref());
    put("orig.filename", original.and_then(|o| o.file.as_deref()));
    for (name, value) in &capture.extra {
        put(name, Some(value));
    }
    line.push('}');
    line
}

/// The key without what would end it, escaped as in a CDX line.
fn blankless(key: &str) -> String {
    let mut out = String::with_capacity(key.len());
    for c in key.chars() {
        if c.is_ascii_whitespace() || c.is_ascii_control() {
            // Writing to a string cannot fail.
            let _ok = write!(out, "%{:02X}", u32::from(c)).is_ok();
        } else {
            out.push(c);
        }
    }
    out
}

/// A JSON string in ASCII.
fn string(line: &mut String, text: &str) {
    line.push('"');
    for c in text.chars() {
        match c {
            '"' => line.push_str("\\\""),
            '\\' => line.push_str("\\\\"),
            '\n' => line.push_str("\\n"),
            '\r' => line.push_str("\\r"),
            '\t' => line.push_str("\\t"),
            '\u{8}' => line.push_str("\\b"),
            '\u{c}' => line.push_str("\\f"),
            ' '..='\u{7f}' => line.push(c),
            other => {
                for unit in other.encode_utf16(&mut [0; 2]) {
                    // Writing to a string cannot fail.
                    let _ok = write!(line, "\\u{unit:04x}").is_ok();
                }
            }
        }
    }
    line.push('"');
}
