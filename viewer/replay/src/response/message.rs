//! The block of a record as a message: its head, if it has one, and the bytes behind it.

use std::borrow::Cow;
use std::io::{self, BufRead, Read};

use archive_formats::http::{
    Body, BodyError, DecodeLimits, Head, HeadError, MediaType, Note, Start,
};
use archive_formats::warc::{Header, WarcType};

/// The head of a record's block.
///
/// Read from the beginning of the block; the input then stands behind it, and [`entity_body`](Self::entity_body) or
/// [`decoded_body`](Self::decoded_body) read on.
#[derive(Clone, Debug)]
pub struct StoredMessage {
    /// The head, also of a block without a status line: it has the bytes that were read to see that.
    head: Option<Head>,
    media: Option<Vec<u8>>,
}

impl StoredMessage {
    /// Reads the head of a block, if the record is one that has a head: a response or revisit whose type is HTTP or not
    /// given.
    ///
    /// # Errors
    /// Fails if the input fails, or if the head is longer than `limit`.
    pub fn read_message(
        kind: WarcType,
        header: &Header,
        block: &mut impl BufRead,
        limit: usize,
    ) -> Result<Self, HeadError> {
        let media = header.get("Content-Type").map(Cow::into_owned);
        let essence = media.as_deref().and_then(MediaType::read_media);
        let is_http = essence.is_none_or(|media| media.essence == "application/http");
        let has_head = is_http && matches!(kind, WarcType::Response | WarcType::Revisit);
        Ok(Self {
            head: if has_head {
                Some(Head::read_head(block, limit)?)
            } else {
                None
            },
            media: media.filter(|_| !has_head),
        })
    }

    /// Returns the head; `None` of a record that has none, and of a block that begins with no status line.
    pub fn head(&self) -> Option<&Head> {
        self.head
            .as_ref()
            .filter(|head| matches!(head.start(), Start::Status { .. }))
    }

    /// Returns the media type of a record that is not HTTP, such as a `resource`.
    pub fn media(&self) -> Option<&[u8]> {
        self.media.as_deref()
    }

    /// Returns the bytes behind the head without the framing of chunks, and with content encodings kept.
    pub fn entity_body<'a>(&self, block: impl BufRead + 'a) -> Box<dyn Read + 'a> {
        match &self.head {
            Some(head) => Box::new(Body::entity_body(head, block)),
            None => Box::new(block),
        }
    }

    /// Returns the bytes behind the head with all encodings undone, within limits.
    pub fn decoded_body<'a>(
        &self,
        block: impl BufRead + 'a,
        limits: DecodeLimits,
    ) -> Box<dyn Read + 'a> {
        match &self.head {
            Some(head) => Box::new(Body::decoded_body(head, block, limits)),
            None => Box::new(block),
        }
    }

    /// Returns the length of the entity, from that of the block. `None` if it has to be [measured](measure_entity), because it
    /// is chunked.
    pub fn entity_length(&self, block_length: u64) -> Option<u64> {
        match &self.head {
            Some(head) if head.is_chunked() => None,
            Some(head) => {
                let stored = u64::try_from(head.raw().len()).ok()?;
                block_length.checked_sub(stored)
            }
            None => Some(block_length),
        }
    }

    pub(super) fn framing(&self) -> Option<&Head> {
        self.head.as_ref()
    }
}

/// Undoes the content encodings of an entity that its head names; its chunks are undone already. Returns the names of
/// the encodings that are left as well, if there are any: they are not known, or too many.
pub fn decoded_entity<'a>(
    head: Option<&Head>,
    entity: impl BufRead + 'a,
    limits: DecodeLimits,
) -> (Box<dyn Read + 'a>, Option<String>) {
    let codings: Vec<&[u8]> = head.map_or_else(Vec::new, |head| {
        head.list_values("content-encoding").collect()
    });
    if codings.is_empty() {
        return (Box::new(entity), None);
    }
    // A head of nothing but the encodings: the framing that the stored one names is not there any more.
    let names = codings.join(b", ".as_slice());
    let text = [
        b"HTTP/1.1 200 OK\r\nContent-Encoding: ".as_slice(),
        &names,
        b"\r\n\r\n",
    ]
    .concat();
    match Head::read_head(&mut text.as_slice(), text.len()) {
        Ok(head) => {
            let body = Body::decoded_body(&head, entity, limits);
            // Which ones are left is known before the first byte is read.
            let left = body.notes().into_iter().find_map(left_codings);
            (Box::new(body), left)
        }
        Err(_unreadable) => {
            let left = String::from_utf8_lossy(&names).into_owned();
            (Box::new(entity), Some(left))
        }
    }
}

fn left_codings(note: Note) -> Option<String> {
    match note {
        Note::LeftCoded(names) => Some(names),
        _ => None,
    }
}

/// The length of an entity that was read to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntityMeasure {
    /// The number of bytes that can be read.
    pub length: u64,
    /// The reason why the bytes end before the end of the entity, if they do.
    pub damage: Option<BodyError>,
}

/// Reads an entity to its end, to learn its length.
///
/// # Errors
/// Fails if the input fails; damage of the entity is no error.
pub fn measure_entity(entity: &mut impl Read) -> io::Result<EntityMeasure> {
    let mut buffer = vec![0; 64 * 1024];
    let mut length = 0_u64;
    loop {
        match entity.read(&mut buffer) {
            Ok(0) => {
                return Ok(EntityMeasure {
                    length,
                    damage: None,
                });
            }
            Ok(read) => length = length.saturating_add(read as u64),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => match BodyError::find_within(&error) {
                Some(damage) => {
                    return Ok(EntityMeasure {
                        length,
                        damage: Some(damage),
                    });
                }
                None => return Err(error),
            },
        }
    }
}
