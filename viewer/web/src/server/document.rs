//! Documents on their way through a rewriter: pages and style sheets, decoded and rewritten while they are read.
//!
//! Owns what the thread that reads a record does with a document ([`DocumentPlan::write_document`]): it pulls decoded
//! chunks from the body, pushes them through the rewriter, and sends what comes out. Memory is bounded: pages pass in
//! chunks, a style sheet has a limit. A body that is cut, or that is a bomb, ends where it can be read no further, and
//! the page says so; a style sheet cannot say so and is refused. An archive that breaks off breaks the answer off.

use std::io::{BufReader, Read};

use archive_formats::date::Stamp;
use archive_formats::http::{DecodeLimits, Head};
use url::Url;
use viewer_replay::banner::{Banner, CaptureFault, fault_note};
use viewer_replay::content::{ContentKind, is_xml_page};
use viewer_replay::request::Addresses;
use viewer_replay::response::decoded_entity;
use viewer_replay::rewrite::{
    PageMode, PageOptions, PageRewriter, START_OF_PAGE, page_encoding, sheet_text, style_sheet,
};

use crate::records::{
    AnswerSender, CHUNK, DocumentStart, PayloadVerdict, RecordError, StoredBody, read_chunk,
};

/// The script that stands first in a framed page.
const FIRST: &str = concat!(
    "<script>",
    include_str!("../../worker/first.js"),
    "</script>"
);

/// Ends whatever a page was cut in, so that a note behind it is seen.
const CLOSING: &str = "<!-- --></script></style></textarea></title></select></table>";

/// The limits of a document's encodings: less than a gigabyte, and no bomb.
const LIMITS: DecodeLimits = DecodeLimits {
    output: 256 << 20,
    ratio: 1100,
    codings: 4,
};

/// The largest style sheet, decoded, in bytes.
const LARGEST_SHEET: usize = 4 << 20;

/// The most memory that the rewriter of a page may take, in bytes.
const PAGE_MEMORY: usize = 2 << 20;

/// The form that a document is given.
#[derive(Clone, Debug)]
pub(super) enum DocumentForm {
    /// A page for the worker.
    Framed,
    /// A page without scripts; with the address of the list of its captures.
    NoScript { calendar: String },
    /// A style sheet.
    Sheet,
}

/// The facts that a document is rewritten by.
#[derive(Debug)]
pub(super) struct DocumentPlan {
    pub(super) form: DocumentForm,
    /// The head of the record that has the bytes: it names their encodings.
    pub(super) head: Option<Head>,
    pub(super) content_type: Option<Vec<u8>>,
    pub(super) addresses: Addresses,
    pub(super) time: Stamp,
    pub(super) url: Url,
    /// The problems that are known before the bytes are read.
    pub(super) problems: Vec<CaptureFault>,
}

impl DocumentPlan {
    /// Writes the document that a body becomes, and returns what the digest of the body is worth.
    pub(super) fn write_document(
        self,
        body: StoredBody<'_>,
        answer: &AnswerSender,
    ) -> Result<PayloadVerdict, RecordError> {
        match self.form {
            DocumentForm::Sheet => self.write_sheet(body, answer),
            DocumentForm::Framed | DocumentForm::NoScript { .. } => {
                self.write_page_or_other(body, answer)
            }
        }
    }

    /// Writes a style sheet, which is read as a whole before the answer begins.
    fn write_sheet(
        self,
        mut body: StoredBody<'_>,
        answer: &AnswerSender,
    ) -> Result<PayloadVerdict, RecordError> {
        let stored_bytes = BufReader::with_capacity(CHUNK, &mut body);
        let (mut decoded, left_encoded) = decoded_entity(self.head.as_ref(), stored_bytes, LIMITS);
        let mut bytes = Vec::new();
        let fault = read_chunk(&mut decoded, &mut bytes, LARGEST_SHEET + 1)?;
        drop(decoded);
        let verdict = body.judge_payload()?;
        if bytes.len() > LARGEST_SHEET {
            let words = format!("the style sheet has more than {LARGEST_SHEET} bytes");
            return Err(RecordError::Unfit(words));
        }
        if let Some(names) = left_encoded {
            let words = format!("the encoding {names} of the style sheet cannot be undone");
            return Err(RecordError::Unfit(words));
        }
        let known_fault = self.problems.into_iter().find_map(|problem| match problem {
            CaptureFault::Cut(fault) => Some(fault),
            _ => None,
        });
        if let Some(fault) = fault.or(known_fault) {
            return Err(RecordError::Broken(fault));
        }
        let text = sheet_text(self.content_type.as_deref(), &bytes);
        let sheet = style_sheet(&text, &self.addresses, self.time, &self.url);
        answer.send_start(DocumentStart {
            kind: ContentKind::StyleSheet,
            charset: Some("utf-8"),
        })?;
        answer.send_chunk(sheet)?;
        Ok(verdict)
    }

    /// Writes a page, or bytes that look like something else as they are.
    fn write_page_or_other(
        mut self,
        mut body: StoredBody<'_>,
        answer: &AnswerSender,
    ) -> Result<PayloadVerdict, RecordError> {
        let stored_bytes = BufReader::with_capacity(CHUNK, &mut body);
        let (decoded, left_encoded) = decoded_entity(self.head.as_ref(), stored_bytes, LIMITS);
        let mut decoded = DecodedChunks {
            decoded,
            chunk: Vec::new(),
            fault: None,
        };
        decoded.read_next(START_OF_PAGE)?;
        let kind = ContentKind::read_kind(self.content_type.as_deref(), &decoded.chunk);
        if kind != ContentKind::Page {
            let charset = None;
            answer.send_start(DocumentStart { kind, charset })?;
            decoded.copy(answer)?;
            return body.judge_payload();
        }
        self.problems
            .extend(left_encoded.map(CaptureFault::Encoded));
        let is_mismatch_known = self.problems.contains(&CaptureFault::Digest);
        let mut late_problems = self.write_page(decoded, answer)?;
        let verdict = body.judge_payload()?;
        if verdict == PayloadVerdict::Differs && !is_mismatch_known {
            late_problems.push(CaptureFault::Digest);
        }
        if !late_problems.is_empty() {
            let notes: String = late_problems.iter().map(fault_note).collect();
            answer.send_chunk(format!("{CLOSING}{notes}"))?;
        }
        Ok(verdict)
    }

    /// Writes a page up to its end, and returns the problems that are to be reported behind it.
    fn write_page(
        self,
        mut decoded: DecodedChunks<'_>,
        answer: &AnswerSender,
    ) -> Result<Vec<CaptureFault>, RecordError> {
        let encoding = page_encoding(self.content_type.as_deref(), &decoded.chunk);
        let mut late_problems = Vec::new();
        let mode = match &self.form {
            DocumentForm::NoScript { calendar } => {
                let banner = Banner {
                    url: self.url.as_str(),
                    time: self.time,
                    calendar,
                };
                PageMode::NoScript {
                    banner: banner.render_html(&self.problems),
                }
            }
            DocumentForm::Framed | DocumentForm::Sheet => {
                late_problems = self.problems;
                PageMode::Guided {
                    first: FIRST.to_owned(),
                }
            }
        };
        let mut rewriter = PageRewriter::new(PageOptions {
            addresses: self.addresses,
            time: self.time,
            url: self.url,
            encoding,
            is_xml: is_xml_page(self.content_type.as_deref()),
            mode,
            memory: PAGE_MEMORY,
        });
        answer.send_start(DocumentStart {
            kind: ContentKind::Page,
            charset: Some(rewriter.encoding().name()),
        })?;
        let refusal = loop {
            let mut html = Vec::with_capacity(decoded.chunk.len() + decoded.chunk.len() / 4);
            if let Err(error) = rewriter.write_bytes(&decoded.chunk, &mut html) {
                answer.send_chunk(html)?;
                break Some(error.to_string());
            }
            if decoded.is_at_end() {
                let ended = rewriter.end_page(&mut html);
                answer.send_chunk(html)?;
                break ended.err().map(|error| error.to_string());
            }
            answer.send_chunk(html)?;
            decoded.read_next(CHUNK)?;
        };
        late_problems.extend(decoded.fault.or(refusal).map(CaptureFault::Cut));
        Ok(late_problems)
    }
}

/// A document without its content encodings, read in chunks.
struct DecodedChunks<'a> {
    decoded: Box<dyn Read + 'a>,
    /// The chunk that was read last; empty at the end of the document.
    chunk: Vec<u8>,
    /// The fault behind that chunk, which ends the document.
    fault: Option<String>,
}

impl DecodedChunks<'_> {
    /// Reads the next chunk, of up to `most` bytes.
    fn read_next(&mut self, most: usize) -> Result<(), RecordError> {
        self.chunk.clear();
        self.chunk.reserve(most);
        self.fault = read_chunk(&mut self.decoded, &mut self.chunk, most)?;
        Ok(())
    }

    /// Returns whether nothing can be read behind the last chunk.
    fn is_at_end(&self) -> bool {
        self.chunk.is_empty() || self.fault.is_some()
    }

    /// Sends the last chunk and all that follow, unchanged. A fault in them breaks the answer off: the bytes themselves
    /// cannot say that they are not whole.
    fn copy(mut self, answer: &AnswerSender) -> Result<(), RecordError> {
        loop {
            let is_at_end = self.is_at_end();
            answer.send_chunk(std::mem::take(&mut self.chunk))?;
            if let Some(fault) = self.fault {
                return Err(RecordError::Broken(fault));
            }
            if is_at_end {
                return Ok(());
            }
            self.read_next(CHUNK)?;
        }
    }
}
