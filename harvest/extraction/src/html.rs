//! Links of pages: attributes, redirects and embedded scripts, styles and data of HTML.
//!
//! Owns how a page is read in one pass, with one tag in memory, and what several attributes of an element mean
//! together. Builds no tree and runs no script. The content of `noscript` is read too: replay may have to do without
//! scripts.

mod roles;

use std::borrow::Cow;
use std::cell::RefCell;
use std::io::BufRead;

use harvest_policy::hops::Hop;
use lol_html::html_content::Element;
use lol_html::{
    DocumentContentHandlers, ElementContentHandlers, HtmlRewriter, MemorySettings, Selector,
    Settings,
};

use crate::outlinks::Outlinks;
use crate::source::ReadEnd;
use crate::speculation::{looks_like_url, may_be_reference};
use crate::{css, entities, references, script};
use roles::{AttributeRole, ValueForm};

/// The elements whose text is a script, a style sheet, or a page for browsers without scripts or frames.
const RAW: &str = "script, style, noscript, noframes, noembed";

/// Adds the links of a page, which is given in UTF-8.
pub(crate) fn html_links(
    input: &mut impl BufRead,
    outlinks: &mut Outlinks<'_>,
    memory: usize,
) -> Result<(), ReadEnd> {
    outlinks.await_base();
    let result = PageParser::new(outlinks, memory, false).read(input);
    outlinks.add_icon();
    result
}

/// Adds the links of a piece of a page. A page within it is not read, which bounds the depth.
pub(crate) fn fragment_links(text: &str, outlinks: &mut Outlinks<'_>, memory: usize) {
    match PageParser::new(outlinks, memory, true).read(&mut text.as_bytes()) {
        // The document around it continues.
        Ok(()) | Err(_) => {}
    }
}

/// The text of an element that is no text of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RawTextKind {
    /// A script, or JSON.
    Script,
    Style,
    Html,
}

/// A page as it is read.
struct PageParser<'p, 'd> {
    outlinks: &'p mut Outlinks<'d>,
    memory: usize,
    is_fragment: bool,
    has_base: bool,
    raw: Option<RawTextKind>,
    text: String,
    is_over: bool,
}

impl<'p, 'd> PageParser<'p, 'd> {
    const fn new(outlinks: &'p mut Outlinks<'d>, memory: usize, is_fragment: bool) -> Self {
        Self {
            outlinks,
            memory,
            is_fragment,
            // The base of a piece is that of the page.
            has_base: is_fragment,
            raw: None,
            text: String::new(),
            is_over: false,
        }
    }

    fn read(mut self, input: &mut dyn BufRead) -> Result<(), ReadEnd> {
        let result = self.parse(input);
        self.finish_text();
        if self.is_over {
            Err(ReadEnd::Memory)
        } else {
            result
        }
    }

    /// Reads the tags and texts of a page up to its end, or to where memory ends.
    fn parse(&mut self, input: &mut dyn BufRead) -> Result<(), ReadEnd> {
        let (Ok(any), Ok(raw)) = ("*".parse::<Selector>(), RAW.parse::<Selector>()) else {
            return Err(ReadEnd::Syntax);
        };
        let memory = MemorySettings::new().with_max_allowed_memory_usage(self.memory.max(4096));
        let page = RefCell::new(&mut *self);
        let elements =
            ElementContentHandlers::default().element(|element: &mut Element<'_, '_>| {
                page.borrow_mut().element(element);
                Ok(())
            });
        let comments = DocumentContentHandlers::default().comments(
            |comment: &mut lol_html::html_content::Comment<'_>| {
                page.borrow_mut().comment(&comment.text());
                Ok(())
            },
        );
        let texts = ElementContentHandlers::default().text(
            |chunk: &mut lol_html::html_content::TextChunk<'_>| {
                page.borrow_mut()
                    .push(chunk.as_str(), chunk.last_in_text_node());
                Ok(())
            },
        );
        let settings = Settings::new()
            .append_element_content_handler((Cow::Borrowed(&any), elements))
            .append_element_content_handler((Cow::Borrowed(&raw), texts))
            .append_document_content_handler(comments)
            .with_memory_settings(memory)
            .with_adjust_charset_on_meta_tag(false)
            .with_strict(false);
        let mut rewriter = HtmlRewriter::new(settings, |_: &[u8]| {});
        loop {
            let length = match input.fill_buf() {
                Ok(bytes @ [_, ..]) => match rewriter.write(bytes) {
                    Ok(()) => bytes.len(),
                    Err(_) => return Err(ReadEnd::Memory),
                },
                Ok([]) | Err(_) => return rewriter.end().map_err(|_error| ReadEnd::Memory),
            };
            input.consume(length);
        }
    }

    /// Adds the links of what Internet Explorer reads of a comment: `<!--[if IE]>…<![endif]-->`.
    fn comment(&mut self, text: &str) {
        let condition = text.trim_start().get(..3);
        if self.is_fragment || !condition.is_some_and(|word| word.eq_ignore_ascii_case("[if")) {
            return;
        }
        if let Some((_, html)) = text.split_once("]>") {
            fragment_links(html, self.outlinks, self.memory);
        }
    }

    fn element(&mut self, element: &Element<'_, '_>) {
        self.finish_text();
        let name = element.tag_name();
        match name.as_str() {
            "base" => {
                if let Some(href) = value(element, "href").filter(|_| !self.has_base) {
                    self.outlinks.set_base_reference(&href);
                    self.has_base = true;
                }
                return;
            }
            "meta" => self.meta(element),
            "link" => {
                let relations = value(element, "rel").unwrap_or_default();
                let hop = references::relation_hop(&relations);
                let mut words = relations.split_ascii_whitespace();
                if words.any(|word| word.eq_ignore_ascii_case("icon")) {
                    self.outlinks.note_icon();
                }
                if let (Some(href), Some(hop)) = (value(element, "href"), hop) {
                    self.outlinks.add_reference(&href, hop, "link/@href");
                }
            }
            "form" => {
                let method = value(element, "method").unwrap_or_default();
                if method.is_empty() || method.trim().eq_ignore_ascii_case("get") {
                    self.add(value(element, "action"), "form/@action");
                }
            }
            "button" | "input" => {
                let method = value(element, "formmethod").unwrap_or_default();
                if method.trim().eq_ignore_ascii_case("get") {
                    self.add(value(element, "formaction"), "input/@formaction");
                }
            }
            "script" => {
                let media = value(element, "type").unwrap_or_default();
                self.raw = is_script(&media).then_some(RawTextKind::Script);
            }
            "style" => self.raw = Some(RawTextKind::Style),
            "noscript" | "noframes" | "noembed" => {
                self.raw = Some(RawTextKind::Html).filter(|_| !self.is_fragment);
            }
            _ => {}
        }
        let is_nofollow = self.outlinks.obeys_nofollow()
            && value(element, "rel").is_some_and(|relations| {
                let mut words = relations.split_ascii_whitespace();
                words.any(|word| word.eq_ignore_ascii_case("nofollow"))
            });
        for attribute in element.attributes() {
            let key = attribute.name();
            if is_nofollow && key == "href" {
                continue;
            }
            if let Some(role) = roles::role_of(&name, &key) {
                let value = attribute.value();
                self.attribute(role, &entities::decode_entities(&value));
            } else if roles::is_handler(&key) {
                let value = attribute.value();
                script::script_links(&entities::decode_entities(&value), self.outlinks);
            }
        }
    }

    fn add(&mut self, reference: Option<String>, context: &'static str) {
        if let Some(reference) = reference {
            self.outlinks.add_reference(&reference, Hop::Link, context);
        }
    }

    fn attribute(&mut self, role: AttributeRole, value: &str) {
        let AttributeRole { context, form } = role;
        match form {
            ValueForm::Reference(hop) => match javascript_code(value) {
                Some(code) => script::script_links(code, self.outlinks),
                None => self.outlinks.add_reference(value, hop, context),
            },
            ValueForm::References(hop) => {
                for reference in value.split_ascii_whitespace() {
                    self.outlinks.add_reference(reference, hop, context);
                }
            }
            ValueForm::Candidates => {
                for reference in references::srcset_candidates(value) {
                    self.outlinks.add_reference(reference, Hop::Embed, context);
                }
            }
            ValueForm::Lazy => {
                if may_be_reference(value) {
                    self.outlinks.add_reference(value, Hop::Embed, context);
                }
            }
            ValueForm::Guess => {
                let value = value.trim();
                if looks_like_url(value) {
                    self.outlinks
                        .add_reference(value, Hop::Speculative, context);
                }
            }
            ValueForm::Style => css::css_links(value, self.outlinks),
            ValueForm::Html => {
                if !self.is_fragment {
                    fragment_links(value, self.outlinks, self.memory);
                }
            }
        }
    }

    /// Adds the target of a refresh, and the images and pages that a page names for others to show.
    fn meta(&mut self, element: &Element<'_, '_>) {
        let Some(content) = value(element, "content") else {
            return;
        };
        let is_refresh = value(element, "http-equiv")
            .is_some_and(|name| name.trim().eq_ignore_ascii_case("refresh"));
        if is_refresh && let Some(target) = references::refresh_target(&content) {
            self.outlinks
                .add_reference(target, Hop::Redirect, "meta/@content");
        }
        if value(element, "name").is_some_and(|name| name.trim().eq_ignore_ascii_case("robots")) {
            self.outlinks.note_robots(&content);
        }
        let names = ["property", "name", "itemprop"];
        for name in names.iter().filter_map(|name| value(element, name)) {
            let hop = match name.trim().to_ascii_lowercase().as_str() {
                "og:image"
                | "og:image:url"
                | "og:image:secure_url"
                | "og:video"
                | "og:video:url"
                | "og:video:secure_url"
                | "og:audio"
                | "og:audio:url"
                | "og:audio:secure_url"
                | "twitter:image"
                | "twitter:image:src"
                | "twitter:player:stream"
                | "msapplication-tileimage"
                | "image"
                | "thumbnailurl"
                | "thumbnail" => Hop::Embed,
                "og:url" | "twitter:url" | "twitter:player" | "url" => Hop::Link,
                _ => continue,
            };
            if may_be_reference(&content) {
                self.outlinks.add_reference(&content, hop, "meta/@content");
            }
        }
    }

    /// Takes a piece of the text of an element.
    fn push(&mut self, text: &str, is_last: bool) {
        if self.raw.is_some() {
            let room = self.memory.saturating_sub(self.text.len());
            let end = text.floor_char_boundary(room);
            self.is_over |= end < text.len();
            self.text.push_str(text.get(..end).unwrap_or_default());
        }
        if is_last {
            self.finish_text();
        }
    }

    /// Adds the links of the text of an element that has ended.
    fn finish_text(&mut self) {
        let text = std::mem::take(&mut self.text);
        match self.raw.take() {
            Some(RawTextKind::Script) => script::script_links(&text, self.outlinks),
            Some(RawTextKind::Style) => css::css_links(&text, self.outlinks),
            Some(RawTextKind::Html) => fragment_links(&text, self.outlinks, self.memory),
            None => {}
        }
    }
}

/// Returns the value of an attribute with its character references replaced.
fn value(element: &Element<'_, '_>, name: &str) -> Option<String> {
    let value = element.get_attribute(name)?;
    Some(match entities::decode_entities(&value) {
        Cow::Borrowed(_) => value,
        Cow::Owned(decoded) => decoded,
    })
}

/// Returns the script of a `javascript:` URL.
fn javascript_code(reference: &str) -> Option<&str> {
    const SCHEME: &str = "javascript:";
    let reference = reference.trim_start();
    let start = reference.get(..SCHEME.len())?;
    start
        .eq_ignore_ascii_case(SCHEME)
        .then(|| reference.get(SCHEME.len()..))?
}

/// Returns whether the text of a `script` element of a type is a script or JSON; templates are neither.
fn is_script(media: &str) -> bool {
    let media = media.split(';').next().unwrap_or_default().trim();
    let media = media.to_ascii_lowercase();
    let is_other = [
        "",
        "module",
        "importmap",
        "speculationrules",
        "text/jscript",
    ]
    .contains(&media.as_str());
    is_other
        || media.contains("javascript")
        || media.ends_with("ecmascript")
        || media.ends_with("json")
}
