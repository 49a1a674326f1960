//! CDXJ lines: `key timestamp {"url": "…", …}`.
//!
//! Lines are written as the field's tools do: all values are strings, in one order, with a blank after `:` and `,`, and
//! only ASCII.

use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::marker::PhantomData;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

use super::legend::{read_number, set_original};
use super::{Capture, InvalidLine};
use crate::json::Json;

pub(super) fn read_json_line(line: &str) -> Result<Capture, InvalidLine> {
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
    let mut capture = Capture::new(key, timestamp);
    let plain = read_plain(json, |name, text| {
        set(&mut capture, Cow::Borrowed(name), Cow::Borrowed(text))
    });
    if plain == Some(Ok(())) {
        return Ok(capture);
    }
    read_any(json, Capture::new(key, timestamp))
}

/// Reads any object; fails with what is wrong with it.
fn read_any(json: &str, mut capture: Capture) -> Result<Capture, InvalidLine> {
    let Members(members) =
        serde_json::from_str(json).map_err(|error| match serde_json::from_str(json) {
            Ok(Json::Object(_)) | Err(_) => InvalidLine::Json(error.to_string()),
            Ok(_) => InvalidLine::Json("no object".to_owned()),
        })?;
    for (name, text) in members {
        set(&mut capture, name, text)?;
    }
    Ok(capture)
}

/// Reads an object of strings without escapes, as nearly all lines have it, in a fraction of the time: calls `give`
/// with name and value of each member. Returns `None` if the text is no such object; what was given then does not
/// count.
fn read_plain<'a>(
    json: &'a str,
    mut give: impl FnMut(&'a str, &'a str) -> Result<(), InvalidLine>,
) -> Option<Result<(), InvalidLine>> {
    if json.bytes().any(|byte| byte < b' ' || byte == b'\\') {
        return None;
    }
    let mut rest = json.strip_prefix('{')?;
    loop {
        let (name, behind) = plain_text(rest)?;
        let (value, behind) = plain_text(behind.strip_prefix(':')?)?;
        if let Err(error) = give(name, value) {
            return Some(Err(error));
        }
        let Some(next) = behind.strip_prefix(',') else {
            let end = blankless_start(behind.strip_prefix('}')?);
            return end.is_empty().then_some(Ok(()));
        };
        rest = next;
    }
}

/// Returns a string without escapes, and the text behind it; blanks around the string are dropped.
fn plain_text(text: &str) -> Option<(&str, &str)> {
    let text = blankless_start(text).strip_prefix('"')?;
    let end = memchr::memchr(b'"', text.as_bytes())?;
    let (inner, rest) = text.split_at_checked(end)?;
    Some((inner, blankless_start(rest.strip_prefix('"')?)))
}

fn blankless_start(text: &str) -> &str {
    let blanks = text.bytes().take_while(|byte| *byte == b' ').count();
    text.get(blanks..).unwrap_or_default()
}

/// Sets the field of the capture that a member names.
fn set(capture: &mut Capture, name: Cow<'_, str>, text: Cow<'_, str>) -> Result<(), InvalidLine> {
    let value = (text != "-" && !text.is_empty()).then_some(&*text);
    match &*name {
        "url" => capture.original = Some(text.into_owned()),
        "mime" => capture.mime = Some(text.into_owned()),
        "status" => capture.status = read_number("status", value)?,
        "digest" => capture.digest = Some(text.into_owned()),
        "redirect" => capture.redirect = Some(text.into_owned()),
        "robotflags" => capture.robots = Some(text.into_owned()),
        "length" => capture.length = read_number("length", value)?,
        "offset" => capture.offset = read_number("offset", value)?,
        "filename" => capture.file = Some(text.into_owned()),
        "orig.length" => {
            let length = read_number("orig.length", value)?;
            set_original(capture, value, |o| o.length = length);
        }
        "orig.offset" => {
            let offset = read_number("orig.offset", value)?;
            set_original(capture, value, |o| o.offset = offset);
        }
        "orig.filename" => {
            set_original(capture, value, |o| o.file = value.map(str::to_owned));
        }
        _ => capture.extra.push((name.into_owned(), text.into_owned())),
    }
    Ok(())
}

/// The members of an object that are not null, as text. They are borrowed from the line where nothing is escaped: a
/// line is read millions of times.
struct Members<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

/// A string, or any other value as its JSON.
struct Member<'a>(Option<Cow<'a, str>>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MembersVisitor(PhantomData))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Member<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(MemberVisitor(PhantomData))
    }
}

struct MembersVisitor<'a>(PhantomData<&'a str>);

impl<'de: 'a, 'a> Visitor<'de> for MembersVisitor<'a> {
    type Value = Members<'a>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Members<'a>, A::Error> {
        let mut members = Vec::with_capacity(12);
        while let Some((name, value)) = access.next_entry::<Member<'a>, Member<'a>>()? {
            if let (Member(Some(name)), Member(Some(value))) = (name, value) {
                members.push((name, value));
            }
        }
        Ok(Members(members))
    }
}

struct MemberVisitor<'a>(PhantomData<&'a str>);

impl<'de: 'a, 'a> Visitor<'de> for MemberVisitor<'a> {
    type Value = Member<'a>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Member<'a>, E> {
        Ok(Member(None))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Member<'a>, E> {
        Ok(Member(Some(Cow::Borrowed(text))))
    }

    fn visit_str<E>(self, text: &str) -> Result<Member<'a>, E> {
        Ok(Member(Some(Cow::Owned(text.to_owned()))))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Member<'a>, E> {
        Ok(Json::Bool(value).into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Member<'a>, E> {
        Ok(Json::Unsigned(value).into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Member<'a>, E> {
        Ok(Json::Signed(value).into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Member<'a>, E> {
        Ok(Json::Float(value).into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, access: A) -> Result<Member<'a>, A::Error> {
        Json::deserialize(SeqAccessDeserializer::new(access)).map(Member::from)
    }

    fn visit_map<A: MapAccess<'de>>(self, access: A) -> Result<Member<'a>, A::Error> {
        Json::deserialize(MapAccessDeserializer::new(access)).map(Member::from)
    }
}

impl From<Json> for Member<'_> {
    fn from(value: Json) -> Self {
        Self(Some(Cow::Owned(value.to_string())))
    }
}

pub(super) fn write_json_line(capture: &Capture) -> String {
    let number = |n: Option<u64>| n.map(|n| n.to_string());
    let status = capture.status.map(|s| s.to_string());
    let length = number(capture.length);
    let offset = number(capture.offset);
    let original = capture.original_record.as_ref();
    let original_length = number(original.and_then(|o| o.length));
    let original_offset = number(original.and_then(|o| o.offset));
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

/// Returns the key with each character escaped that would end it, as in a CDX line.
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

/// Writes a JSON string in ASCII.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Pieces of lines: those that most lines have, and those that make a line unusual.
    const PIECES: [&str; 40] = [
        "{",
        "}",
        "\"",
        ":",
        ",",
        " ",
        "{\"url\": \"http://a.dk/\"",
        ", \"mime\": \"text/html\"",
        ", \"status\": \"200\"",
        ",\"status\":\"-\"",
        ", \"status\": \"+2\"",
        ", \"status\": 200",
        ", \"status\": \"99999\"",
        ", \"length\": \"12\"",
        ", \"offset\": \"\"",
        ", \"offset\": null",
        ", \"filename\": \"f é\"",
        ", \"filename\" : \"f\" ",
        ", \"orig.offset\": \"7\"",
        ", \"orig.length\": \"x\"",
        ", \"orig.filename\": \"-\"",
        ", \"digest\": \"sha1:A\"",
        ", \"a\": \"b\"",
        ", \"a\": \"\\n\"",
        ", \"a\\\\\": \"b\"",
        ", \"a\": [1]",
        ", \"a\": {\"b\": 1}",
        ", \"a\": true",
        ", \"redirect\": \"http://b/\"",
        ", \"robotflags\": \"AI\"",
        "\\",
        "\t",
        "\u{1}",
        "\u{7f}",
        "\"\"",
        "}}",
        "{}",
        "null",
        "[]",
        "x",
    ];

    /// Fails if the short way reads another capture out of a line than the long one, or hides what is wrong with it.
    #[test]
    fn plain_lines_read_as_any_others() {
        let mut seed = 5_u64;
        let mut plain = 0;
        let mut good = 0;
        for round in 0..200_000 {
            let mut random = |end: usize| {
                seed ^= seed << 13;
                seed ^= seed >> 7;
                seed ^= seed << 17;
                usize::try_from(seed >> 20).unwrap() % end
            };
            let mut json = String::new();
            if round % 3 > 0 {
                json.push_str(PIECES[6]);
            }
            for _ in 0..random(6) {
                json.push_str(PIECES[random(PIECES.len())]);
            }
            if round % 4 > 0 {
                json.push('}');
            }
            let line = format!("dk,a)/ 20200101000000 {json}");
            let timestamp = "20200101000000".parse().unwrap();
            let expected = read_any(&json, Capture::new("dk,a)/", timestamp));
            assert_eq!(read_json_line(&line), expected, "{line}");
            plain += u32::from(read_plain(&json, |_, _| Ok(())).is_some());
            good += u32::from(expected.is_ok());
        }
        assert!(plain > 1000 && good > plain, "{plain} {good}");
    }
}
