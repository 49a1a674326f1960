//! Rewriting of archived pages and style sheets, so that their references stay in the archive.
//!
//! Owns two forms of a page. [`PageMode::NoScript`] is for browsers without a service worker, for curl and for those
//! who read with their ears: scripts are off, and links, images, style sheets, frames and forms lead to captures.
//! [`PageMode::Guided`] is for our service worker, which catches what a page loads: only what would navigate is
//! rewritten (links, forms, frames, `base`, refresh), one script comes first, and everything else stays as it was. In
//! both, hints that connect to hosts are taken away, which no policy of a browser stops.
//!
//! Bytes that are not rewritten stay as they are, in the charset of the page. This is no wall: what the replay host
//! sends beside it (its `Content-Security-Policy`, the sandbox of its frame) is. Rewriting is what makes a page whole;
//! it does not run or understand scripts.
//!
//! ```
//! use viewer_replay::request::Addresses;
//! use viewer_replay::rewrite::{PageMode, PageOptions, PageRewriter};
//!
//! let mut rewriter = PageRewriter::new(PageOptions {
//!     addresses: Addresses::new("", "all"),
//!     time: "20200101000000".parse()?,
//!     url: "http://a.dk/x/".parse()?,
//!     encoding: encoding_rs::UTF_8,
//!     is_xml: false,
//!     mode: PageMode::NoScript { banner: String::new() },
//!     memory: 1 << 20,
//! });
//! let mut out = Vec::new();
//! rewriter.write_bytes(b"<a href='../y?a=1&amp;b'>y</a><script>alert(1)</script>", &mut out)?;
//! rewriter.end_page(&mut out)?;
//! assert_eq!(
//!     String::from_utf8(out)?,
//!     "<a href=\"/all/20200101000000/http://a.dk/y?a=1&amp;b\">y</a>",
//! );
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod charset;
mod css;
mod entities;
mod links;
mod page;
mod references;
mod roles;

use std::fmt;
use std::sync::Arc;

use archive_formats::date::Stamp;
use archive_formats::xhtml::SelfClosedTags;
use encoding_rs::{Decoder, Encoding};
use lol_html::{AsciiCompatibleEncoding, MemorySettings};
use parking_lot::Mutex;
use thiserror::Error;
use url::Url;

use crate::request::{Addresses, Modifier};
use links::{Links, Purpose};
use page::Page;

pub use charset::{START_OF_PAGE, page_encoding, sheet_text};

/// The least memory that a page is read with.
const LEAST_MEMORY: usize = 16 * 1024;

/// The way in which a page is rewritten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PageMode {
    /// The page loses its scripts; the banner is HTML that is put in front of the body.
    NoScript {
        /// The banner, already escaped.
        banner: String,
    },
    /// The page keeps its scripts, for the service worker of the replay host.
    Guided {
        /// HTML that is put before everything else of the page: a script element.
        first: String,
    },
}

/// The settings of a page's rewriting.
#[derive(Clone, Debug)]
pub struct PageOptions {
    /// The addresses of the collection; paths keep pages free of the host's name.
    pub addresses: Addresses,
    /// The time of the capture.
    pub time: Stamp,
    /// The URL of the capture.
    pub url: Url,
    /// The charset of the page; [`page_encoding`] finds it.
    pub encoding: &'static Encoding,
    /// Whether the server said that the page is XML: browsers have read it so, and now read it as HTML.
    pub is_xml: bool,
    /// The way in which the page is rewritten.
    pub mode: PageMode,
    /// The most bytes that are held at once: a tag, a style sheet within the page.
    pub memory: usize,
}

/// The reason why the rest of a page cannot be rewritten. The page ends there: what was not rewritten is not shown.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RewriteError {
    /// A tag needs more memory than was allowed.
    #[error("a tag of the page needs more than {0} bytes of memory")]
    Memory(usize),
    /// An earlier error has ended the page.
    #[error("the page has ended with an error before")]
    Ended,
}

/// A rewriter that takes a page piece by piece.
pub struct PageRewriter {
    rewriter: Option<page::Rewriter>,
    /// The output since it was taken the last time.
    output: Arc<Mutex<Vec<u8>>>,
    /// The decoder for charsets in which a tag is not ASCII: the page becomes UTF-8.
    decoder: Option<Decoder>,
    /// Of a page that is XML.
    tags: Option<SelfClosedTags>,
    encoding: &'static Encoding,
    memory: usize,
}

impl fmt::Debug for PageRewriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PageRewriter")
            .field("encoding", &self.encoding.name())
            .finish_non_exhaustive()
    }
}

impl PageRewriter {
    /// Begins a page.
    pub fn new(options: PageOptions) -> Self {
        let memory = options.memory.max(LEAST_MEMORY);
        let (encoding, decoder) = match AsciiCompatibleEncoding::new(options.encoding) {
            Some(encoding) => (encoding, None),
            None => (
                AsciiCompatibleEncoding::utf_8(),
                Some(options.encoding.new_decoder_with_bom_removal()),
            ),
        };
        let output = Arc::new(Mutex::new(Vec::new()));
        let tags = options.is_xml.then(SelfClosedTags::default);
        let page = Page::new(options, false);
        let memory_settings = MemorySettings::new().with_max_allowed_memory_usage(memory);
        Self {
            rewriter: page::page_rewriter(page, encoding, memory_settings, Arc::clone(&output)),
            output,
            decoder,
            tags,
            encoding: encoding.into(),
            memory,
        }
    }

    /// Returns the charset of the output: that of the page, or UTF-8 if that cannot hold tags (UTF-16, ISO-2022-JP).
    /// The answer then has to name it, because the page names another.
    pub fn encoding(&self) -> &'static Encoding {
        self.encoding
    }

    /// Rewrites the next bytes of the page. The part of it that is finished is appended to `out`.
    ///
    /// # Errors
    /// Fails if the page needs too much memory, and then for all that follows.
    pub fn write_bytes(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), RewriteError> {
        let mut rewriter = self.rewriter.take().ok_or(RewriteError::Ended)?;
        let text = self.decode(bytes, false);
        let bytes = text.as_ref().map_or(bytes, |text| text.as_bytes());
        let written = match &mut self.tags {
            Some(tags) => {
                let mut html = Vec::with_capacity(bytes.len());
                tags.push(bytes, &mut html);
                rewriter.write(&html)
            }
            None => rewriter.write(bytes),
        };
        self.drain(out);
        written.map_err(|_error| RewriteError::Memory(self.memory))?;
        self.rewriter = Some(rewriter);
        Ok(())
    }

    /// Ends the page, and appends what is left of it.
    ///
    /// # Errors
    /// Fails if the page needs too much memory, or if it has ended before.
    pub fn end_page(mut self, out: &mut Vec<u8>) -> Result<(), RewriteError> {
        let mut rewriter = self.rewriter.take().ok_or(RewriteError::Ended)?;
        let mut last = self
            .decode(&[], true)
            .map(String::into_bytes)
            .unwrap_or_default();
        if let Some(mut tags) = self.tags.take() {
            let mut html = Vec::new();
            tags.push(&last, &mut html);
            tags.finish(&mut html);
            last = html;
        }
        let written = rewriter.write(&last);
        let ended = written.and_then(|()| rewriter.end());
        self.drain(out);
        ended.map_err(|_error| RewriteError::Memory(self.memory))
    }

    fn decode(&mut self, bytes: &[u8], is_last: bool) -> Option<String> {
        let decoder = self.decoder.as_mut()?;
        let room = decoder.max_utf8_buffer_length(bytes.len());
        let mut text = String::with_capacity(room.unwrap_or_default());
        // The text has the room that the decoder asks for, so that it takes all.
        let _taken = decoder.decode_to_string(bytes, &mut text, is_last);
        Some(text)
    }

    fn drain(&self, out: &mut Vec<u8>) {
        let mut output = self.output.lock();
        out.append(&mut output);
    }
}

/// Rewrites a style sheet: its URLs lead to captures.
pub fn style_sheet(text: &str, addresses: &Addresses, time: Stamp, url: &Url) -> String {
    let links = Links::new(addresses.clone(), time, url.clone());
    css::rewrite_css(text, &|reference, purpose| {
        links.rewrite_link(reference, purpose)
    })
}

/// Rewrites the value of a `Refresh` field, which leads to another page that is shown with a modifier; `None` if it
/// leads nowhere in the archive.
pub fn refresh_value(
    value: &str,
    addresses: &Addresses,
    modifier: Option<Modifier>,
    time: Stamp,
    url: &Url,
) -> Option<String> {
    let links = Links::new(addresses.clone(), time, url.clone()).with_page_modifier(modifier);
    references::rewrite_refresh(value, &|reference| {
        links.rewrite_link(reference, Purpose::Link)
    })
}

#[cfg(test)]
mod tests;
