//! The digest of a payload, computed while the payload passes, in both readings that the field has.

use std::cell::RefCell;
use std::io::{self, BufRead, Read};
use std::rc::Rc;

use archive_formats::digest::{Digest, Hashers, Value};

/// What the digest of a payload is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PayloadVerdict {
    /// The payload has it.
    Matches,
    /// The payload has it in no reading.
    Differs,
    /// The record has no digest of its payload, one of an unknown kind, or the payload was not read to its end.
    Unchecked,
}

/// The check of one payload: of the bytes as they are stored, and of those without chunks.
#[derive(Debug, Default)]
pub(super) struct PayloadCheck {
    expected: Option<Value>,
    stored: Rc<RefCell<Hashers>>,
    entity: Option<Hashers>,
}

impl PayloadCheck {
    /// A check against a digest as the header of a record has it. `chunked`: the stored bytes are not the payload.
    pub(super) fn new(digest: Option<&str>, chunked: bool) -> Self {
        let digest = digest.and_then(|text| text.trim().parse::<Digest>().ok());
        let expected = digest.and_then(|digest| digest.value().cloned());
        let hashers = || Hashers::new(expected.iter().map(Value::algorithm));
        Self {
            stored: Rc::new(RefCell::new(hashers())),
            entity: chunked.then(hashers),
            expected,
        }
    }

    /// The same input; what is taken from it is counted as stored bytes.
    pub(super) fn stored<R: BufRead>(&self, input: R) -> StoredBytes<R> {
        StoredBytes {
            input,
            hashers: Rc::clone(&self.stored),
        }
    }

    /// Takes in stored bytes that were read before.
    pub(super) fn add_stored(&self, bytes: &[u8]) {
        self.stored.borrow_mut().update(bytes);
    }

    /// Takes in bytes of the payload.
    pub(super) fn add_entity(&mut self, bytes: &[u8]) {
        if let Some(entity) = &mut self.entity {
            entity.update(bytes);
        }
    }

    /// What the digest is worth, once everything was taken in.
    pub(super) fn verdict(self) -> PayloadVerdict {
        let Some(expected) = self.expected else {
            return PayloadVerdict::Unchecked;
        };
        let stored = self.stored.take().finish();
        let entity = self.entity.map(Hashers::finish).unwrap_or_default();
        if stored.contains(&expected) || entity.contains(&expected) {
            PayloadVerdict::Matches
        } else {
            PayloadVerdict::Differs
        }
    }
}

/// Hashes what is taken from the input.
pub(super) struct StoredBytes<R> {
    input: R,
    hashers: Rc<RefCell<Hashers>>,
}

impl<R: BufRead> Read for StoredBytes<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(out)?;
        let bytes = out.get(..read).unwrap_or_default();
        self.hashers.borrow_mut().update(bytes);
        Ok(read)
    }
}

impl<R: BufRead> BufRead for StoredBytes<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.input.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        // What is consumed was in the buffer, which another look does not change.
        if let Ok(buffer) = self.input.fill_buf() {
            let bytes = buffer.get(..amount).unwrap_or_default();
            self.hashers.borrow_mut().update(bytes);
        }
        self.input.consume(amount);
    }
}
