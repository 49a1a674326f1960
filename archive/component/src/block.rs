//! The input of a component: the block of a record, or the output of all files.
//!
//! Owns the order of asking: the head first, then either the bytes as they are stored or what they carry. Bounded
//! memory. Keeps the first error of the input itself, so that damage is reported whatever the component does with it.

use std::io::{self, BufRead, Cursor, Read};

use archive_batch::BatchJobError;
use archive_formats::http::{Body, BodyError, DecodeLimits, Head, HeadError};
use archive_formats::warc::{ReadRecordError, Record, WarcType};

use super::wit::HttpMessage;

/// The longest head of an HTTP message that is read.
const HEAD_LIMIT: usize = 1 << 20;
/// The most bytes that are handed over at once, and how many by default.
const MOST: u32 = 1 << 20;
const USUAL: u32 = 64 << 10;

/// Bytes to read, and how far they are understood.
pub(super) struct Block<'a> {
    state: BlockState<'a>,
    message: Option<HttpMessage>,
    damage: Option<io::Error>,
}

type Input<'a> = Box<dyn BufRead + 'a>;

enum BlockState<'a> {
    /// May begin with the head of an HTTP message.
    Fresh(Input<'a>),
    /// The head was read; the input is behind it.
    Headed(Head, Input<'a>),
    /// No HTTP: content and stored bytes are the same.
    Whole(Input<'a>),
    /// The bytes are read as they are stored.
    Stored(Input<'a>),
    /// The content that the message carries is read.
    Content(Body<'a>),
    /// Nothing more can be read, and why.
    Failed(String),
    /// The block has nothing to read.
    Nothing,
}

impl<'a> Block<'a> {
    /// Returns a block without bytes.
    pub(super) fn no_block() -> Self {
        Self::with(BlockState::Nothing)
    }

    /// Returns the block of bytes that are no message.
    pub(super) fn whole_block(input: &'a mut dyn BufRead) -> Self {
        Self::with(BlockState::Whole(Box::new(input)))
    }

    /// Returns the block of a record.
    pub(super) fn from_record<R: Read>(record: &'a mut Record<'_, R>) -> Self {
        let holds_message = matches!(
            record.kind(),
            WarcType::Response | WarcType::Request | WarcType::Revisit
        );
        let input: Input<'a> = Box::new(record);
        Self::with(if holds_message {
            BlockState::Fresh(input)
        } else {
            BlockState::Whole(input)
        })
    }

    fn with(state: BlockState<'a>) -> Self {
        Self {
            state,
            message: None,
            damage: None,
        }
    }

    /// Returns the error with which the input itself could not be read, if there was one.
    pub(super) fn read_damage(self) -> Result<(), BatchJobError> {
        self.damage.map_or(Ok(()), |error| {
            Err(BatchJobError::Read(ReadRecordError::Io(error)))
        })
    }

    /// Answers `host.http`: returns the head of the HTTP message, if the block holds one.
    pub(super) fn read_http(&mut self) -> Result<Option<HttpMessage>, String> {
        let asked_late = matches!(self.state, BlockState::Stored(_)) && self.message.is_none();
        if asked_late {
            return Err("the block was read already: ask for `http` before `read`".to_owned());
        }
        self.state = match self.take() {
            BlockState::Fresh(input) => self.begin(input),
            other => other,
        };
        match &self.state {
            BlockState::Failed(words) if self.message.is_none() => Err(words.clone()),
            _ => Ok(self.message.clone()),
        }
    }

    /// Answers `host.read`: returns up to `most` further bytes as they are stored.
    pub(super) fn read_bytes(&mut self, most: u32) -> Result<Vec<u8>, String> {
        self.state = match self.take() {
            BlockState::Fresh(input) | BlockState::Headed(_, input) => BlockState::Stored(input),
            other => other,
        };
        match &mut self.state {
            BlockState::Whole(input) | BlockState::Stored(input) => {
                let read = up_to(input, most);
                self.hand_out(read)
            }
            BlockState::Content(_) => Err("this record is read by `payload` already".to_owned()),
            BlockState::Failed(words) => Err(words.clone()),
            BlockState::Fresh(_) | BlockState::Headed(..) | BlockState::Nothing => Ok(Vec::new()),
        }
    }

    /// Answers `host.payload`: returns up to `most` further bytes of the content that the message carries.
    pub(super) fn read_payload(&mut self, most: u32) -> Result<Vec<u8>, String> {
        if matches!(self.state, BlockState::Fresh(_)) {
            self.read_http()?;
        }
        self.state = match self.take() {
            BlockState::Headed(head, input) => {
                BlockState::Content(Body::decoded_body(&head, input, DecodeLimits::default()))
            }
            other => other,
        };
        match &mut self.state {
            BlockState::Content(body) => {
                let read = up_to(body, most);
                self.hand_out(read)
            }
            BlockState::Whole(input) => {
                let read = up_to(input, most);
                self.hand_out(read)
            }
            BlockState::Stored(_) => Err("this record is read by `read` already".to_owned()),
            BlockState::Failed(words) => Err(words.clone()),
            BlockState::Fresh(_) | BlockState::Headed(..) | BlockState::Nothing => Ok(Vec::new()),
        }
    }

    fn take(&mut self) -> BlockState<'a> {
        std::mem::replace(&mut self.state, BlockState::Nothing)
    }

    /// Reads the head of the HTTP message, if the block begins with one.
    fn begin(&mut self, mut input: Input<'a>) -> BlockState<'a> {
        match Head::read_head(&mut input, HEAD_LIMIT) {
            Ok(head) => {
                self.message = HttpMessage::from_head(&head);
                if self.message.is_some() {
                    return BlockState::Headed(head, input);
                }
                let unread = Cursor::new(head.unread_bytes().to_vec());
                BlockState::Whole(Box::new(unread.chain(input)))
            }
            Err(HeadError::Io(error)) => self.fail(error),
            Err(error @ HeadError::TooLarge { .. }) => BlockState::Failed(error.to_string()),
        }
    }

    /// Hands out the bytes that came before an error first; then the error, again and again.
    fn hand_out(&mut self, read: (Vec<u8>, Option<io::Error>)) -> Result<Vec<u8>, String> {
        let (bytes, error) = read;
        let Some(error) = error else {
            return Ok(bytes);
        };
        let words = error.to_string();
        self.state = self.fail(error);
        if bytes.is_empty() {
            Err(words)
        } else {
            Ok(bytes)
        }
    }

    /// Fails the block with an error. Remembers the error as damage if the input itself cannot be read, and not if only
    /// the content is broken.
    fn fail(&mut self, error: io::Error) -> BlockState<'a> {
        let words = error.to_string();
        if BodyError::find_within(&error).is_none() {
            self.damage.get_or_insert(error);
        }
        BlockState::Failed(words)
    }
}

/// Reads as many bytes as are asked for, within bounds, or up to the end.
fn up_to(input: &mut impl Read, most: u32) -> (Vec<u8>, Option<io::Error>) {
    let most = if most == 0 { USUAL } else { most.min(MOST) };
    let mut bytes = Vec::new();
    let error = input.take(u64::from(most)).read_to_end(&mut bytes).err();
    (bytes, error)
}

#[cfg(test)]
mod tests;
