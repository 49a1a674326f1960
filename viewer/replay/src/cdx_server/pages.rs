//! Pages of an answer, without a secondary index.
//!
//! Servers with `ZipNum` files count pages in blocks of 3,000 lines of a second, small index. Captures in a
//! log-structured table have no such blocks, so they are made: a block is 3,000 captures that the question accepts, and
//! its end is a [`Cursor`]. [`PageMarks`] holds these ends for one question; a shell keeps some of them in a cache, by
//! [`CdxRequest::page_key`](super::CdxRequest::page_key) and by who asks.
//!
//! - Pages that are read one after the other cost nothing extra: their captures are pushed into the marks as well.
//! - A page further on, and `showNumPages`, walk the captures once, without writing them. A walk has a limit for each
//!   request ([`WalkLimit`]); the marks keep what was walked, so that the next request continues from there.
//! - A number of pages that a walk has not found out by then, and a page that it has not reached, are refused with 503
//!   for now ([`PageMarks::unfinished`]): asking again continues the walk. A number is never that of a part.
//! - A question with more captures than there can be marks for has no number of pages: that is a 400.
//! - Captures that are added later lie between old marks, so that a page may have more than its rows, and no capture is
//!   lost between two pages; the last page has no end. Pages of a finished walk are never empty, for clients stop
//!   there.
//!
//! Each question has at least one page.

use std::num::NonZeroU64;

use archive_formats::cdx::Capture;
use archive_formats::cdx::query::Cursor;

use super::parameters::Parameters;
use super::{CdxRequestError, Dialect, DialectRefusal};

/// The most marks of one question. With blocks of 3,000 captures they reach as far as 300 million captures.
const MAX_MARKS: usize = 100_000;

/// The sizes of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageSizes {
    /// Captures in a block.
    pub block: u64,
    /// Blocks of a page that pywb's clients ask for without a size.
    pub pywb: u64,
    /// Blocks of a page that Wayback's clients ask for without a size.
    pub wayback: u64,
    /// The most blocks of a page.
    pub largest: u64,
}

/// The sizes that the servers are known for.
pub const DEFAULT_PAGE_SIZES: PageSizes = PageSizes {
    block: 3_000,
    pywb: 5,
    wayback: 50,
    largest: 50,
};

/// The part of an answer that is asked for: all of it, a page, or the number of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageRequest {
    /// All of the answer, without pages.
    Whole,
    /// A page of the answer.
    Page {
        /// The number of the page, counted from 0.
        number: u64,
        /// The size of the page in blocks.
        size: u64,
    },
    /// The number of pages.
    Count {
        /// The size of a page in blocks.
        size: u64,
    },
}

impl PageRequest {
    pub(super) fn read_page(
        dialect: Dialect,
        parameters: &Parameters,
        sizes: &PageSizes,
    ) -> Result<Self, CdxRequestError> {
        let default = match dialect {
            Dialect::Pywb => sizes.pywb,
            Dialect::Wayback => sizes.wayback,
            Dialect::OutbackCdx => return Ok(Self::Whole),
        };
        if parameters.switch("showPagedIndex")? == Some(true) {
            return Err(CdxRequestError::NoSecondaryIndex);
        }
        let size = match parameters.count("pageSize")? {
            None => default,
            Some(size) if (1..=sizes.largest).contains(&size) => size,
            Some(size) => {
                let wanted = "a number of blocks from 1 to 50, or what the server allows";
                return Err(CdxRequestError::wrong_value(
                    "pageSize",
                    &size.to_string(),
                    wanted,
                ));
            }
        };
        if parameters.switch("showNumPages")? == Some(true) {
            return Ok(Self::Count { size });
        }
        let Some(page) = parameters.number("page")? else {
            return Ok(Self::Whole);
        };
        match (u64::try_from(page), dialect) {
            (Ok(number), _) => Ok(Self::Page { number, size }),
            // Wayback's server answers without pages then.
            (Err(_), Dialect::Wayback) => Ok(Self::Whole),
            (Err(_), Dialect::Pywb | Dialect::OutbackCdx) => {
                let wanted = "the number of a page, counted from 0";
                Err(CdxRequestError::wrong_value(
                    "page",
                    &page.to_string(),
                    wanted,
                ))
            }
        }
    }
}

/// The limit of the walk of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WalkLimit {
    /// The number of captures.
    pub captures: NonZeroU64,
}

impl Default for WalkLimit {
    /// Returns a limit of a few seconds, for an index that gives a million captures in one second.
    fn default() -> Self {
        Self {
            captures: const { NonZeroU64::new(3_000_000).unwrap() },
        }
    }
}

/// The place of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PagePlace {
    /// The page can be read.
    Known {
        /// The capture behind which the page begins; `None` for the beginning of the answer.
        after: Option<Cursor>,
        /// The capture with which the page ends.
        until: Option<Cursor>,
        /// The number of captures after which the page ends; with neither this nor `until`, it ends with the answer.
        captures: Option<u64>,
        /// The walk stands at its beginning: its captures, and the end of the answer if it comes, are to be noted in
        /// the marks while the page is read.
        extends_walk: bool,
    },
    /// Behind the end of the answer.
    Beyond {
        /// The number of pages.
        pages: u64,
    },
    /// Further on than the walk has come: walk this number of captures more, then ask again.
    NotWalked {
        /// The number of captures.
        captures: u64,
    },
}

/// The number of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageCount {
    /// Pages; at least 1.
    pub pages: u64,
    /// The size of a page in blocks.
    pub size: u64,
    /// Blocks.
    pub blocks: u64,
}

/// The ends of the blocks of one question, as far as they are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageMarks {
    block: u64,
    marks: Vec<Cursor>,
    /// Captures behind the last mark that were walked.
    behind: u64,
    last: Option<Cursor>,
    is_whole: bool,
}

impl PageMarks {
    /// Returns the marks of a walk that has not begun.
    pub fn new(sizes: &PageSizes) -> Self {
        Self {
            block: sizes.block.max(1),
            marks: Vec::new(),
            behind: 0,
            last: None,
            is_whole: false,
        }
    }

    /// Returns the place at which the walk continues; `None` at the beginning.
    pub fn walked_to(&self) -> Option<&Cursor> {
        self.last.as_ref()
    }

    /// Returns whether the walk has reached the end.
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Returns whether there is no room for further marks. Such a question has to be narrowed down, or resumed by key.
    pub fn is_full(&self) -> bool {
        self.marks.len() >= MAX_MARKS
    }

    /// Lets the walk continue behind the end that it has found: captures may have come since.
    pub fn reopen_marks(&mut self) {
        self.is_whole = false;
    }

    /// Records a capture of the walk that is not part of the answer, so that the walk does not begin before it again.
    pub fn pass_over(&mut self, capture: &Capture) {
        if !self.is_whole && !self.is_full() {
            self.last = Some(Cursor::from_capture(capture));
        }
    }

    /// Records the next capture of the walk.
    pub fn push_capture(&mut self, capture: &Capture) {
        if self.is_whole || self.is_full() {
            return;
        }
        self.behind += 1;
        let place = Cursor::from_capture(capture);
        if self.behind == self.block {
            self.behind = 0;
            self.marks.push(place.clone());
        }
        self.last = Some(place);
    }

    /// Records that no capture follows.
    pub fn finish_marks(&mut self) {
        self.is_whole = true;
    }

    /// Returns the number of captures that were walked.
    pub fn walked_captures(&self) -> u64 {
        self.full_blocks()
            .saturating_mul(self.block)
            .saturating_add(self.behind)
    }

    /// Returns where a page lies.
    pub fn page_place(&self, number: u64, size: u64) -> PagePlace {
        let size = size.max(1);
        let first = number.saturating_mul(size);
        let end = first.saturating_add(size);
        if self.is_whole {
            let pages = self.blocks().div_ceil(size).max(1);
            if number >= pages {
                return PagePlace::Beyond { pages };
            }
        }
        if self.is_whole || end <= self.full_blocks() {
            return PagePlace::Known {
                after: self.mark(first),
                until: self.mark(end),
                captures: None,
                extends_walk: false,
            };
        }
        let start = first.saturating_mul(self.block);
        if self.walked_captures() == start {
            return PagePlace::Known {
                after: self.mark(first),
                until: None,
                captures: Some(size.saturating_mul(self.block)),
                extends_walk: true,
            };
        }
        let target = if self.walked_captures() < start {
            start
        } else {
            end.saturating_mul(self.block)
        };
        PagePlace::NotWalked {
            captures: target.saturating_sub(self.walked_captures()),
        }
    }

    /// Returns how many pages there are; `None` while the walk has not reached the end: see [`PageMarks::unfinished`].
    pub fn page_count(&self, size: u64) -> Option<PageCount> {
        let size = size.max(1);
        let blocks = self.blocks();
        self.is_whole.then(|| PageCount {
            pages: blocks.div_ceil(size).max(1),
            size,
            blocks,
        })
    }

    /// Returns the error of a request that a walk would have to go further for.
    pub fn unfinished(&self) -> CdxRequestError {
        let walked = self.walked_captures();
        if self.is_full() {
            CdxRequestError::TooManyPages { walked }
        } else {
            CdxRequestError::NotWalked { walked }
        }
    }

    fn full_blocks(&self) -> u64 {
        self.marks.len() as u64
    }

    fn blocks(&self) -> u64 {
        self.full_blocks()
            .saturating_add(u64::from(self.behind > 0))
    }

    /// Returns the end of this number of blocks, if it is known and something follows it.
    fn mark(&self, blocks: u64) -> Option<Cursor> {
        let at = usize::try_from(blocks.checked_sub(1)?).ok()?;
        if self.is_whole && blocks >= self.blocks() {
            return None;
        }
        self.marks.get(at).cloned()
    }
}

impl PageCount {
    /// Returns the answer to `showNumPages`: an object for pywb's clients, a number for the others.
    pub fn answer_count(&self, dialect: Dialect) -> DialectRefusal {
        let (content_type, body) = match dialect {
            Dialect::Pywb => (
                "application/json",
                format!(
                    "{{\"pages\": {}, \"pageSize\": {}, \"blocks\": {}}}\n",
                    self.pages, self.size, self.blocks
                ),
            ),
            Dialect::Wayback | Dialect::OutbackCdx => {
                ("text/plain; charset=utf-8", format!("{}\n", self.pages))
            }
        };
        DialectRefusal {
            status: 200,
            content_type,
            body,
        }
    }
}
