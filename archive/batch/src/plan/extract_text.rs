//! The text of pages.
//!
//! Owns what of a page is text that a reader sees. Lays nothing out: blocks begin a line, and blanks are one blank.

use std::io::Read;

use archive_formats::http::MediaType;
use archive_formats::warc::{Record, RecordSummary};
use serde::Serialize;

use super::html::{self, Piece};
use super::view::{self, Page};
use super::{JobInfo, Plan, Reduce};
use crate::control::StopControl;
use crate::job::{BatchJobError, Job, Reads, Sink};

pub(super) const INFO: JobInfo = JobInfo {
    name: "extract-text",
    about: "Gives the text that a reader sees in pages of HTML and plain text that were answered with status 200.",
    output: "a JSON document a line: url, timestamp, mime, title, text",
    arguments: &[],
    reduce: Reduce::Concatenate,
};

/// Elements whose content nobody sees.
const HIDDEN: [&[u8]; 8] = [
    b"script",
    b"style",
    b"template",
    b"iframe",
    b"noembed",
    b"noframes",
    b"object",
    b"title",
];

/// Elements within a line; all others begin and end one.
const INLINE: [&[u8]; 45] = [
    b"a",
    b"abbr",
    b"acronym",
    b"b",
    b"bdi",
    b"bdo",
    b"big",
    b"cite",
    b"code",
    b"data",
    b"del",
    b"dfn",
    b"em",
    b"font",
    b"i",
    b"img",
    b"ins",
    b"kbd",
    b"label",
    b"link",
    b"map",
    b"mark",
    b"meta",
    b"meter",
    b"nobr",
    b"noscript",
    b"q",
    b"rb",
    b"rp",
    b"rt",
    b"ruby",
    b"s",
    b"samp",
    b"script",
    b"small",
    b"span",
    b"strike",
    b"strong",
    b"style",
    b"sub",
    b"sup",
    b"time",
    b"tt",
    b"u",
    b"var",
];

/// The elements that stand beside each other in a line.
const BESIDE: [&[u8]; 6] = [b"button", b"input", b"option", b"select", b"td", b"th"];

#[derive(Debug)]
pub(super) struct ExtractText;

impl Plan for ExtractText {
    fn reduce(&self) -> Reduce {
        INFO.reduce
    }

    fn start(&self, _control: &StopControl) -> Result<Box<dyn Job + '_>, BatchJobError> {
        Ok(Box::new(ExtractTextJob))
    }
}

struct ExtractTextJob;

/// The line that is written of a page.
#[derive(Serialize)]
struct Document<'a> {
    url: &'a str,
    timestamp: &'a str,
    mime: &'a str,
    title: &'a str,
    text: &'a str,
}

impl Job for ExtractTextJob {
    fn reads(&self) -> Reads {
        Reads::Records
    }

    fn record(
        &mut self,
        mut record: Record<'_, &mut dyn Read>,
        out: &mut dyn Sink,
    ) -> Result<RecordSummary, BatchJobError> {
        let is_wanted = |media: &MediaType| html::is_html(media) || media.essence == "text/plain";
        let Some(page) = view::read_page(&mut record, is_wanted)? else {
            return Ok(record.read_end()?);
        };
        out.write(&line(&page)?)?;
        match page.flaw {
            Some(flaw) => Err(BatchJobError::Failed(flaw)),
            None => Ok(record.read_end()?),
        }
    }
}

fn line(page: &Page) -> Result<Vec<u8>, BatchJobError> {
    let (source, _) = html::decode_page(&page.bytes, &page.media);
    let (title, text) = if html::is_html(&page.media) {
        text(&source)
    } else {
        (String::new(), source.into_owned())
    };
    let document = Document {
        url: &page.url,
        timestamp: &page.timestamp,
        mime: &page.media.essence,
        title: &title,
        text: &text,
    };
    let mut line =
        serde_json::to_vec(&document).map_err(|error| BatchJobError::Failed(error.to_string()))?;
    line.push(b'\n');
    Ok(line)
}

/// Returns the title of a page, and its text.
fn text(source: &str) -> (String, String) {
    let mut title = None::<Flow>;
    let mut text = Flow::default();
    // The element that hides its content, and how often it was begun within itself.
    let mut hidden: Option<(Vec<u8>, u64)> = None;
    for piece in html::page_pieces(source) {
        match piece {
            Piece::Start(element) => match &mut hidden {
                Some((name, depth)) if *name == element.name => *depth += 1,
                Some(_) => {}
                None => {
                    let name = element.name.as_slice();
                    text.separate(name);
                    // Only the first one is the title of the page.
                    if name == b"title" {
                        title.get_or_insert_default();
                    }
                    if HIDDEN.contains(&name) {
                        hidden = Some((element.name, 1));
                    }
                }
            },
            Piece::End(name) => {
                let is_over = match &mut hidden {
                    Some((hiding, depth)) if *hiding == name => {
                        *depth -= 1;
                        *depth == 0
                    }
                    Some(_) => false,
                    None => {
                        text.separate(&name);
                        false
                    }
                };
                if is_over {
                    if name == b"title" {
                        title.get_or_insert_default().is_closed = true;
                    }
                    hidden = None;
                }
            }
            Piece::Text(string) => match (&hidden, &mut title) {
                (None, _) => text.push(&string),
                (Some((name, _)), Some(title)) if name == b"title" && !title.is_closed => {
                    title.push(&string);
                }
                (Some(_), _) => {}
            },
        }
    }
    (title.unwrap_or_default().text, text.text)
}

/// The text of a page: words, and the blanks and line breaks between them.
#[derive(Default)]
struct Flow {
    text: String,
    gap: Option<char>,
    is_closed: bool,
}

impl Flow {
    fn push(&mut self, string: &str) {
        for (at, word) in string.split(char::is_whitespace).enumerate() {
            if at > 0 {
                self.gap.get_or_insert(' ');
            }
            if word.is_empty() {
                continue;
            }
            if let Some(gap) = self.gap.take().filter(|_| !self.text.is_empty()) {
                self.text.push(gap);
            }
            self.text.push_str(word);
        }
    }

    /// Separates the words before and after the tag of an element: by a blank, a line break, or not at all.
    fn separate(&mut self, name: &[u8]) {
        if BESIDE.contains(&name) {
            self.gap.get_or_insert(' ');
        } else if !INLINE.contains(&name) {
            self.gap = Some('\n');
        }
    }
}
