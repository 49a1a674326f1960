//! Links in XML: sitemaps, RSS, Atom, OPML, SVG, and whatever else names URLs.
//!
//! Owns which elements and attributes of these are links. Entities that a document declares are not expanded, and
//! nothing is fetched for it. Names are compared as they are usually written: prefixes are not resolved.

use std::io::{self, BufRead, Read};

use harvest_policy::hops::Hop;
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use crate::outlinks::Outlinks;
use crate::source::{ReadEnd, read_buffered};
use crate::speculation::looks_like_url;
use crate::{css, entities, html, references, script};

const LINK: &str = "=NAVLINK_MISC";
const EMBED: &str = "=EMBED_MISC";

/// Adds the links of a document. One that is not well-formed is read to where that shows.
pub(crate) fn xml_links(
    input: &mut impl BufRead,
    outlinks: &mut Outlinks<'_>,
    memory: usize,
) -> Result<(), ReadEnd> {
    let mut reader = Reader::from_reader(MeteredReader {
        inner: input,
        left: memory,
        is_over: false,
    });
    let config = reader.config_mut();
    config.check_end_names = false;
    config.allow_unmatched_ends = true;
    config.allow_dangling_amp = true;
    let mut xml = XmlScanner {
        outlinks,
        memory,
        text: String::new(),
        is_in_sitemap: false,
        is_permalink: true,
    };
    let mut buffer = Vec::new();
    loop {
        buffer.clear();
        reader.get_mut().left = memory;
        match reader.read_event_into(&mut buffer) {
            Ok(Event::Start(element)) => xml.start(&element),
            Ok(Event::Empty(element)) => {
                xml.start(&element);
                xml.end(element.name().into_inner());
            }
            Ok(Event::End(element)) => xml.end(element.name().into_inner()),
            Ok(Event::Text(text)) => xml.push(&text),
            Ok(Event::CData(text)) => xml.push(&text),
            Ok(Event::GeneralRef(name)) => {
                if let Some(text) = entities::resolve_entity(&name) {
                    xml.push(&text);
                }
            }
            Ok(Event::PI(instruction)) => {
                if instruction.target() == "xml-stylesheet" {
                    for attribute in instruction.attributes().with_checks(false).flatten() {
                        if attribute.key.into_inner() == "href" {
                            let reference = entities::decode_entities(&attribute.value);
                            xml.outlinks.add_reference(&reference, Hop::Embed, EMBED);
                        }
                    }
                }
            }
            Ok(Event::Comment(_) | Event::Decl(_) | Event::DocType(_)) => {}
            _ if reader.get_ref().is_over => return Err(ReadEnd::Memory),
            Ok(Event::Eof) => return Ok(()),
            Err(_) => return Err(ReadEnd::Syntax),
        }
    }
}

/// A document as it is read.
struct XmlScanner<'p, 'd> {
    outlinks: &'p mut Outlinks<'d>,
    memory: usize,
    /// The text since the last tag.
    text: String,
    /// Whether `loc` names a sitemap, and not a page.
    is_in_sitemap: bool,
    /// Whether the `guid` of a feed is a URL.
    is_permalink: bool,
}

impl XmlScanner<'_, '_> {
    fn push(&mut self, text: &str) {
        if self.text.len().saturating_add(text.len()) <= self.memory {
            self.text.push_str(text);
        }
    }

    fn start(&mut self, element: &BytesStart<'_>) {
        self.text.clear();
        let (_, name) = parts(element.name().into_inner());
        self.is_in_sitemap |= name == "sitemap";
        self.is_permalink = true;
        let mut relation = None;
        let mut references = Vec::new();
        for attribute in element.attributes().with_checks(false).flatten() {
            let value = entities::decode_entities(&attribute.value);
            let (prefix, key) = parts(attribute.key.into_inner());
            match key {
                "href" | "src" | "url" | "xmlUrl" | "htmlUrl" if prefix != "xmlns" => {
                    references.push((key.to_owned(), value.into_owned()));
                }
                // Segments of a DASH presentation (ISO/IEC 23009-1).
                "media" | "sourceURL" if matches!(name, "SegmentURL" | "Initialization") => {
                    references.push(("src".to_owned(), value.into_owned()));
                }
                "rel" => relation = Some(value.into_owned()),
                "isPermaLink" => self.is_permalink = value.trim() != "false",
                "style" => css::css_links(&value, self.outlinks),
                _ => {}
            }
        }
        for (key, reference) in references {
            let hop = match (name, key.as_str()) {
                ("link", "href") => match relation.as_deref() {
                    Some("enclosure") => Some(Hop::Embed),
                    relation => references::relation_hop(relation.unwrap_or_default()),
                },
                (_, "src")
                | ("image" | "use" | "feImage" | "script" | "pattern", "href")
                | ("enclosure" | "content" | "thumbnail" | "player", "url") => Some(Hop::Embed),
                _ => Some(Hop::Link),
            };
            match hop {
                Some(Hop::Embed) => self.outlinks.add_reference(&reference, Hop::Embed, EMBED),
                Some(hop) => self.outlinks.add_reference(&reference, hop, LINK),
                None => {}
            }
        }
    }

    fn end(&mut self, name: &str) {
        let (prefix, name) = parts(name);
        let whole = std::mem::take(&mut self.text);
        let text = whole.trim();
        self.is_in_sitemap &= name != "sitemap";
        if text.is_empty() {
            return;
        }
        let is_absolute = text.starts_with("http://") || text.starts_with("https://");
        match (prefix, name) {
            ("image" | "video", _) if is_absolute && name.ends_with("loc") => {
                self.outlinks.add_reference(text, Hop::Embed, EMBED);
            }
            (_, "loc") if self.is_in_sitemap => {
                self.outlinks
                    .add_reference(text, Hop::Manifest, "=MANIFEST_MISC");
            }
            (_, "loc" | "link" | "comments" | "commentRss" | "origLink") => {
                self.outlinks.add_reference(text, Hop::Link, LINK);
            }
            (_, "BaseURL") => self.outlinks.add_reference(text, Hop::Embed, EMBED),
            (_, "guid") if self.is_permalink && is_absolute => {
                self.outlinks.add_reference(text, Hop::Link, LINK);
            }
            (_, "url" | "icon" | "logo") if looks_like_url(text) => {
                self.outlinks.add_reference(text, Hop::Embed, EMBED);
            }
            (_, "guid" | "url" | "icon" | "logo") => {}
            (_, "style") => css::css_links(text, self.outlinks),
            (_, "script") => script::script_links(text, self.outlinks),
            _ if text.contains('<') => html::fragment_links(text, self.outlinks, self.memory),
            _ if is_absolute && looks_like_url(text) => {
                self.outlinks
                    .add_reference(text, Hop::Speculative, "=SPECULATIVE_MISC");
            }
            _ => {}
        }
    }
}

/// Returns the prefix of a name, which may be empty, and its rest.
fn parts(name: &str) -> (&str, &str) {
    name.split_once(':').unwrap_or(("", name))
}

/// A reader of some bytes for each event: a larger one looks cut.
#[derive(Debug)]
struct MeteredReader<R> {
    inner: R,
    left: usize,
    is_over: bool,
}

impl<R: BufRead> Read for MeteredReader<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        read_buffered(self, out)
    }
}

impl<R: BufRead> BufRead for MeteredReader<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        let bytes = self.inner.fill_buf()?;
        self.is_over |= self.left == 0 && !bytes.is_empty();
        Ok(bytes.get(..self.left).unwrap_or(bytes))
    }

    fn consume(&mut self, amount: usize) {
        self.left = self.left.saturating_sub(amount);
        self.inner.consume(amount);
    }
}
