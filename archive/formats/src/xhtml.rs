//! Pages of XHTML for readers of HTML.
//!
//! In XML a tag that ends in `/>` is an element without content. In HTML it is a start tag, and all that follows is the
//! content of a `script`, `style`, `title`, `iframe`, `textarea` or `noscript` that never ends (XHTML 1.0, appendix C.3;
//! HTML Standard §13.1.2.1). Owns the one change that makes both read the same page: such a tag gets its end tag. All
//! else stays byte for byte. Reads any charset that has ASCII in it. Memory is bounded.
//!
//! ```
//! use archive_formats::xhtml::SelfClosedTags;
//!
//! let mut tags = SelfClosedTags::default();
//! let mut page = Vec::new();
//! tags.push(b"<title/><a name='x/>'/><br/>", &mut page);
//! tags.finish(&mut page);
//! assert_eq!(page, b"<title></title><a name='x/>'></a><br/>");
//! ```

/// The elements that have no content in HTML either.
const VOID: [&[u8]; 18] = [
    b"area",
    b"base",
    b"basefont",
    b"br",
    b"col",
    b"embed",
    b"frame",
    b"hr",
    b"img",
    b"input",
    b"isindex",
    b"keygen",
    b"link",
    b"meta",
    b"param",
    b"source",
    b"track",
    b"wbr",
];

/// The elements whose content is no markup in HTML.
const RAW: [&[u8]; 2] = [b"script", b"style"];

/// The longest name of an element that is remembered.
const LONGEST_NAME: usize = 64;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    #[default]
    Text,
    /// Behind `<`.
    Open,
    /// In the name of a start tag.
    Name,
    /// In a start tag behind its name; the quotation mark of a value, if in one.
    Tag(Option<u8>),
    /// Behind a `/` in a start tag, which is held back.
    Slash,
    /// In a tag or declaration that ends with `>`.
    Other,
    /// Behind `<!`, with the bytes since.
    Declaration,
    /// In a comment, an instruction or a section, until these bytes.
    Until(&'static [u8]),
    /// In a script or a style sheet.
    Raw,
}

/// A reader of XHTML that gives self-closed tags their end tags.
#[derive(Clone, Debug, Default)]
pub struct SelfClosedTags {
    place: Place,
    /// The name of the start tag that is read, or was read last.
    name: Vec<u8>,
    /// The last bytes, where an end of several bytes is looked for.
    last: Vec<u8>,
}

impl SelfClosedTags {
    /// Takes the next bytes of a page, and adds what they become.
    pub fn push(&mut self, bytes: &[u8], page: &mut Vec<u8>) {
        for byte in bytes {
            self.push_byte(*byte, page);
        }
    }

    /// Ends the page: adds what was held back.
    pub fn finish(self, page: &mut Vec<u8>) {
        if self.place == Place::Slash {
            page.push(b'/');
        }
    }

    fn push_byte(&mut self, byte: u8, page: &mut Vec<u8>) {
        if self.place == Place::Slash {
            return self.end_slash(byte, page);
        }
        if byte == b'/' && matches!(self.place, Place::Name | Place::Tag(None)) {
            self.place = Place::Slash;
            return;
        }
        page.push(byte);
        self.place = match self.place {
            Place::Text if byte == b'<' => Place::Open,
            Place::Text => Place::Text,
            Place::Open => self.opened(byte),
            Place::Name | Place::Tag(None) if byte == b'>' => self.begun(),
            Place::Name if byte.is_ascii_whitespace() => Place::Tag(None),
            Place::Name => {
                self.note_name(byte);
                Place::Name
            }
            Place::Tag(None) if matches!(byte, b'"' | b'\'') => Place::Tag(Some(byte)),
            Place::Tag(Some(quote)) if byte == quote => Place::Tag(None),
            Place::Tag(quote) => Place::Tag(quote),
            Place::Other if byte == b'>' => Place::Text,
            Place::Other => Place::Other,
            Place::Declaration => self.declared(byte),
            Place::Until(end) => {
                self.note_last(byte, end.len());
                if self.last == end {
                    Place::Text
                } else {
                    self.place
                }
            }
            Place::Raw => self.raw(byte),
            // Handled above.
            Place::Slash => Place::Tag(None),
        };
    }

    /// Takes the byte behind a `/` in a start tag.
    fn end_slash(&mut self, byte: u8, page: &mut Vec<u8>) {
        if byte != b'>' {
            page.push(b'/');
            self.place = Place::Tag(None);
            return self.push_byte(byte, page);
        }
        self.place = Place::Text;
        if VOID.contains(&self.name.as_slice()) {
            return page.extend_from_slice(b"/>");
        }
        page.extend_from_slice(b"></");
        page.extend_from_slice(&self.name);
        page.push(b'>');
    }

    fn opened(&mut self, byte: u8) -> Place {
        self.name.clear();
        self.last.clear();
        match byte {
            b'!' => Place::Declaration,
            b'?' => Place::Until(b"?>"),
            b'/' => Place::Other,
            _ if byte.is_ascii_alphabetic() => {
                self.note_name(byte);
                Place::Name
            }
            b'<' => Place::Open,
            _ => Place::Text,
        }
    }

    fn declared(&mut self, byte: u8) -> Place {
        const SECTION: &[u8] = b"[CDATA[";
        if byte == b'>' {
            return Place::Text;
        }
        self.last.push(byte);
        if self.last == b"--" {
            self.last.clear();
            Place::Until(b"-->")
        } else if self.last == SECTION {
            self.last.clear();
            Place::Until(b"]]>")
        } else if SECTION.starts_with(&self.last) || self.last == b"-" {
            Place::Declaration
        } else {
            Place::Other
        }
    }

    /// Returns the place behind a start tag.
    fn begun(&mut self) -> Place {
        self.last.clear();
        if RAW.iter().any(|raw| self.name.eq_ignore_ascii_case(raw)) {
            Place::Raw
        } else {
            Place::Text
        }
    }

    fn raw(&mut self, byte: u8) -> Place {
        let length = self.name.len() + 2;
        self.note_last(byte, length);
        let ends = self
            .last
            .strip_prefix(b"</")
            .is_some_and(|name| name.eq_ignore_ascii_case(&self.name));
        if ends { Place::Other } else { Place::Raw }
    }

    fn note_name(&mut self, byte: u8) {
        if self.name.len() < LONGEST_NAME {
            self.name.push(byte);
        }
    }

    fn note_last(&mut self, byte: u8, length: usize) {
        if self.last.len() == length {
            self.last.remove(0);
        }
        self.last.push(byte);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page_of(text: &str, piece: usize) -> String {
        let mut tags = SelfClosedTags::default();
        let mut page = Vec::new();
        for bytes in text.as_bytes().chunks(piece) {
            tags.push(bytes, &mut page);
        }
        tags.finish(&mut page);
        String::from_utf8(page).unwrap()
    }

    /// Fails if a self-closed tag stays open, or anything else is changed, however the page is cut.
    #[test]
    fn only_self_closed_tags_change() {
        for (text, expected) in [
            (
                "<script src=\"/a.js\"/>x",
                "<script src=\"/a.js\"></script>x",
            ),
            ("<title/><p/>", "<title></title><p></p>"),
            ("<svg:path d='M1/2' />", "<svg:path d='M1/2' ></svg:path>"),
            (
                "<img src='a/'/><br /><IMG/>",
                "<img src='a/'/><br /><IMG></IMG>",
            ),
            ("<a b='<x/>' c=\"/>\">", "<a b='<x/>' c=\"/>\">"),
            ("<!-- <a/> --><b/>", "<!-- <a/> --><b></b>"),
            (
                "<![CDATA[<a/> ]]]]x<b/>]]><c/>",
                "<![CDATA[<a/> ]]]]x<b/>]]><c></c>",
            ),
            (
                "<?xml version='1.0'?><?p <a/>?><b/>",
                "<?xml version='1.0'?><?p <a/>?><b></b>",
            ),
            ("<!DOCTYPE html><b/>", "<!DOCTYPE html><b></b>"),
            (
                "<script>if (a<b/>c) '<d/>'</script><e/>",
                "<script>if (a<b/>c) '<d/>'</script><e></e>",
            ),
            ("<a href=b/c>", "<a href=b/c>"),
            ("a < b / c > d", "a < b / c > d"),
            ("<a/", "<a/"),
            ("<<a/>", "<<a></a>"),
        ] {
            for piece in 1..5 {
                assert_eq!(page_of(text, piece), expected, "in pieces of {piece}");
            }
        }
    }
}
