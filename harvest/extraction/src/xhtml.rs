//! Pages of XHTML, read as pages of HTML.

use std::io::{self, BufRead, Read};

use archive_formats::xhtml::SelfClosedTags;

use crate::source::read_buffered;

/// A reader of a page of XHTML, whose self-closed tags have end tags.
pub(crate) struct HtmlReader<'a, R> {
    inner: &'a mut R,
    tags: Option<SelfClosedTags>,
    page: Vec<u8>,
    /// The part of it that was read.
    from: usize,
}

impl<'a, R: BufRead> HtmlReader<'a, R> {
    pub(crate) fn new(inner: &'a mut R) -> Self {
        Self {
            inner,
            tags: Some(SelfClosedTags::default()),
            page: Vec::new(),
            from: 0,
        }
    }
}

impl<R: BufRead> Read for HtmlReader<'_, R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        read_buffered(self, out)
    }
}

impl<R: BufRead> BufRead for HtmlReader<'_, R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        while self.from == self.page.len()
            && let Some(mut tags) = self.tags.take()
        {
            self.page.clear();
            self.from = 0;
            let bytes = self.inner.fill_buf()?;
            let length = bytes.len();
            if length == 0 {
                tags.finish(&mut self.page);
            } else {
                tags.push(bytes, &mut self.page);
                self.inner.consume(length);
                self.tags = Some(tags);
            }
        }
        Ok(self.page.get(self.from..).unwrap_or_default())
    }

    fn consume(&mut self, amount: usize) {
        self.from = self.from.saturating_add(amount).min(self.page.len());
    }
}
