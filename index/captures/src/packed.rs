//! Captures as bytes: the fields that the key of a row and the number of its file do not say.
//!
//! The form is that of `FORMAT.md`. Every field comes back as it was, letter for letter.

mod digest;
mod media;
mod text;
mod url;

use archive_formats::cdx::{Capture, OriginalRecord};

use crate::place::{Place, Position};
use crate::rows::PackedCapture;
use text::{put_number, put_text, take_number, take_text};

/// The fields that are there, in the first byte.
const URL: u8 = 1;
const MEDIA: u8 = 1 << 1;
const STATUS: u8 = 1 << 2;
const DIGEST: u8 = 1 << 3;
const LENGTH: u8 = 1 << 4;
const REDIRECT: u8 = 1 << 5;
const ROBOTS: u8 = 1 << 6;
/// A second byte follows.
const MORE: u8 = 1 << 7;

/// The fields that are there, in the second byte.
const OFFSET: u8 = 1;
const RECORD: u8 = 1 << 1;
const RECORD_LENGTH: u8 = 1 << 2;
const RECORD_OFFSET: u8 = 1 << 3;
const RECORD_FILE: u8 = 1 << 4;
const EXTRA: u8 = 1 << 5;

/// Packs a capture that stands at a place.
pub(crate) fn pack_capture(place: &Place, capture: &Capture) -> PackedCapture {
    let mut out = Vec::with_capacity(64);
    pack_into(&mut out, place, capture);
    PackedCapture(out)
}

/// Appends what [`pack`] makes of a capture.
pub(crate) fn pack_into(out: &mut Vec<u8>, place: &Place, capture: &Capture) {
    let bit = |is_there: bool, bit: u8| if is_there { bit } else { 0 };
    let more = more(place, capture);
    let fields = bit(capture.original.is_some(), URL)
        | bit(capture.mime.is_some(), MEDIA)
        | bit(capture.status.is_some(), STATUS)
        | bit(capture.digest.is_some(), DIGEST)
        | bit(capture.length.is_some(), LENGTH)
        | bit(capture.redirect.is_some(), REDIRECT)
        | bit(capture.robots.is_some(), ROBOTS)
        | bit(more != 0, MORE);
    out.push(fields);
    if more != 0 {
        out.push(more);
    }
    if let Some(url) = &capture.original {
        url::put_url(out, &place.key, url);
    }
    if let Some(mime) = &capture.mime {
        media::put_media(out, mime);
    }
    if let Some(status) = capture.status {
        put_number(out, status.into());
    }
    if let Some(digest) = &capture.digest {
        digest::put_digest(out, digest);
    }
    if let Some(length) = capture.length {
        put_number(out, length);
    }
    for text in [&capture.redirect, &capture.robots].into_iter().flatten() {
        put_text(out, text);
    }
    if more & OFFSET != 0 {
        put_number(out, capture.offset.unwrap_or(0));
    }
    if let Some(record) = &capture.original_record {
        for number in [record.length, record.offset].into_iter().flatten() {
            put_number(out, number);
        }
        if let Some(file) = &record.file {
            put_text(out, file);
        }
    }
    if more & EXTRA != 0 {
        put_number(out, capture.extra.len() as u64);
        for (name, value) in &capture.extra {
            put_text(out, name);
            put_text(out, value);
        }
    }
}

fn more(place: &Place, capture: &Capture) -> u8 {
    let bit = |is_there: bool, bit: u8| if is_there { bit } else { 0 };
    let is_line = matches!(place.position, Position::Line(_));
    let record = capture.original_record.as_ref();
    bit(is_line && capture.offset.is_some(), OFFSET)
        | bit(record.is_some(), RECORD)
        | bit(record.is_some_and(|r| r.length.is_some()), RECORD_LENGTH)
        | bit(record.is_some_and(|r| r.offset.is_some()), RECORD_OFFSET)
        | bit(record.is_some_and(|r| r.file.is_some()), RECORD_FILE)
        | bit(!capture.extra.is_empty(), EXTRA)
}

/// Returns the capture at a place, in a file; says why it cannot be read.
pub(crate) fn unpack_capture(
    place: &Place,
    packed: &PackedCapture,
    file: Option<&str>,
) -> Result<Capture, &'static str> {
    let stamp = place.time.stamp().ok_or("its time does not exist")?;
    let mut capture = Capture::new(place.key.as_str(), stamp);
    let mut rest = packed.0.as_slice();
    read(&mut rest, place, &mut capture).ok_or("its fields end too early, or are no text")?;
    if !rest.is_empty() {
        return Err("bytes are left over behind its fields");
    }
    capture.file = file.map(str::to_owned);
    Ok(capture)
}

fn read(rest: &mut &[u8], place: &Place, capture: &mut Capture) -> Option<()> {
    let fields = take_byte(rest)?;
    let more = if fields & MORE == 0 {
        0
    } else {
        take_byte(rest)?
    };
    if fields & URL != 0 {
        capture.original = Some(url::take_url(rest, &place.key)?);
    }
    if fields & MEDIA != 0 {
        capture.mime = Some(media::take_media(rest)?);
    }
    if fields & STATUS != 0 {
        capture.status = Some(u16::try_from(take_number(rest)?).ok()?);
    }
    if fields & DIGEST != 0 {
        capture.digest = Some(digest::take_digest(rest)?);
    }
    if fields & LENGTH != 0 {
        capture.length = Some(take_number(rest)?);
    }
    if fields & REDIRECT != 0 {
        capture.redirect = Some(take_text(rest)?.to_owned());
    }
    if fields & ROBOTS != 0 {
        capture.robots = Some(take_text(rest)?.to_owned());
    }
    capture.offset = match place.position {
        Position::Offset(offset) => Some(offset),
        Position::Line(_) if more & OFFSET != 0 => Some(take_number(rest)?),
        Position::Line(_) => None,
    };
    if more & RECORD != 0 {
        let mut record = OriginalRecord::default();
        if more & RECORD_LENGTH != 0 {
            record.length = Some(take_number(rest)?);
        }
        if more & RECORD_OFFSET != 0 {
            record.offset = Some(take_number(rest)?);
        }
        if more & RECORD_FILE != 0 {
            record.file = Some(take_text(rest)?.to_owned());
        }
        capture.original_record = Some(record);
    }
    if more & EXTRA != 0 {
        for _ in 0..take_number(rest)? {
            let name = take_text(rest)?.to_owned();
            let value = take_text(rest)?.to_owned();
            capture.extra.push((name, value));
        }
    }
    Some(())
}

fn take_byte(rest: &mut &[u8]) -> Option<u8> {
    let (byte, tail) = rest.split_first()?;
    *rest = tail;
    Some(*byte)
}

#[cfg(test)]
mod tests;
