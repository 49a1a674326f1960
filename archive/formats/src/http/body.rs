//! A body with its encodings undone.

use std::fmt;
use std::io::{self, BufRead, BufReader, Cursor, Read};

use super::coding::{Coding, DecodeLimits};
use super::notes::{Note, Notes};
use super::{ChunkedReader, Head, undo};

/// Reads a body: chunks are undone, and content encodings where they are known.
///
/// Ends with an error where the body is cut, damaged or too large: what came before it are good bytes.
/// [`BodyError::find_within`](super::BodyError::find_within) returns it.
pub struct Body<'a> {
    layers: Box<dyn Read + 'a>,
    notes: Notes,
}

impl fmt::Debug for Body<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Body")
            .field("notes", &self.notes.get())
            .finish_non_exhaustive()
    }
}

impl<'a> Body<'a> {
    /// Makes a reader of the body behind a head with all encodings undone.
    pub fn decoded_body(head: &Head, input: impl BufRead + 'a, limits: DecodeLimits) -> Self {
        let (input, notes) = transferred(head, input);
        let mut layers: Box<dyn BufRead + 'a> = Box::new(BufReader::new(input));
        let mut names: Vec<&[u8]> = head.list_values("content-encoding").collect();
        let mut undone = 0;
        while let Some(name) = names.pop() {
            if name.eq_ignore_ascii_case(b"identity") || name.eq_ignore_ascii_case(b"none") {
                continue;
            }
            match Coding::from_name(name) {
                Some(coding) if undone < limits.codings => {
                    layers = Box::new(BufReader::new(undo::undo_codings(
                        coding,
                        layers,
                        limits,
                        notes.clone(),
                    )));
                    undone += 1;
                }
                _ => {
                    names.push(name);
                    notes.add_note(Note::LeftCoded(
                        String::from_utf8_lossy(&names.join(&b", "[..])).into_owned(),
                    ));
                    break;
                }
            }
        }
        Self {
            layers: Box::new(layers),
            notes,
        }
    }

    /// Makes a reader of the body behind a head with chunks undone, and content encodings left: the entity body.
    pub fn entity_body(head: &Head, input: impl BufRead + 'a) -> Self {
        let (input, notes) = transferred(head, input);
        Self {
            layers: Box::new(input),
            notes,
        }
    }

    /// Returns the oddities of the body; complete once it is read to its end.
    pub fn notes(&self) -> Vec<Note> {
        self.notes.get()
    }
}

impl Read for Body<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.layers.read(out)
    }
}

fn transferred<'a>(head: &Head, input: impl BufRead + 'a) -> (Box<dyn Read + 'a>, Notes) {
    let notes = Notes::default();
    let input = Cursor::new(head.unread_bytes().to_vec()).chain(input);
    let input: Box<dyn Read + 'a> = if head.is_chunked() {
        Box::new(ChunkedReader::with_notes(input, notes.clone()))
    } else {
        Box::new(LengthCheckReader {
            input,
            expected: head.content_length(),
            found: 0,
            notes: notes.clone(),
        })
    };
    (input, notes)
}

/// A reader that compares the length of the body with that in the header.
struct LengthCheckReader<R> {
    input: R,
    expected: Option<u64>,
    found: u64,
    notes: Notes,
}

impl<R: Read> Read for LengthCheckReader<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(out)?;
        self.found = self.found.saturating_add(read as u64);
        if read == 0
            && !out.is_empty()
            && let Some(expected) = self.expected.filter(|n| *n != self.found)
        {
            self.notes.add_note(Note::Length {
                expected,
                found: self.found,
            });
        }
        Ok(read)
    }
}
