//! A page as it is rewritten: one pass, with one tag and one style sheet in memory.
//!
//! Owns what happens to elements. Builds no tree. The text of `noscript` is a page of its own, because a parser with
//! scripts does not look into it, and a reader without scripts sees it.

use std::borrow::Cow;
use std::sync::Arc;

use encoding_rs::UTF_8;
use lol_html::html_content::{ContentType, DocumentEnd, TextChunk};
use lol_html::send::{
    DocumentContentHandlers, Element, ElementContentHandlers, HtmlRewriter, Settings,
};
use lol_html::{AsciiCompatibleEncoding, MemorySettings, Selector};
use parking_lot::Mutex;

use super::links::{LinkRewrite, Links, Purpose};
use super::roles::{Relation, Role, attribute_role, link_relation};
use super::{LEAST_MEMORY, PageMode, PageOptions, css, entities, references};
use crate::request::Modifier;

/// The rewriter of a page, whose output goes where it can be taken.
pub(super) type Rewriter = HtmlRewriter<'static, Box<dyn FnMut(&[u8]) + Send>>;

/// The elements whose text is rewritten as a whole.
const RAW: &str = "style, noscript";

/// The depth to which pages within pages are read.
const DEEPEST: usize = 3;

/// A page that is being rewritten.
#[derive(Debug)]
pub(super) struct Page {
    links: Links,
    mode: PageMode,
    memory: usize,
    /// The number of pages around this one.
    depth: usize,
    has_base: bool,
    /// Whether the banner or the first script stands in the page.
    has_begun: bool,
    raw: Option<RawText>,
    text: String,
}

/// The text of an element that is no text of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RawText {
    Style,
    NoScript,
    /// The text is longer than memory allows, and is left out up to its end.
    Oversized,
}

/// Makes the rewriter of a page. `None` if the parser refuses its own selectors, which it does not.
pub(super) fn page_rewriter(
    page: Page,
    encoding: AsciiCompatibleEncoding,
    memory: MemorySettings,
    output: Arc<Mutex<Vec<u8>>>,
) -> Option<Rewriter> {
    let any = "*".parse::<Selector>().ok()?;
    let raw = RAW.parse::<Selector>().ok()?;
    let page = Arc::new(Mutex::new(page));
    let for_text = Arc::clone(&page);
    let for_end = Arc::clone(&page);
    let elements =
        ElementContentHandlers::default().element(move |element: &mut Element<'_, '_>| {
            lock(&page).element(element);
            Ok(())
        });
    let texts = ElementContentHandlers::default().text(move |chunk: &mut TextChunk<'_>| {
        lock(&for_text).raw_text(chunk);
        Ok(())
    });
    let end = DocumentContentHandlers::default().end(move |end: &mut DocumentEnd<'_>| {
        lock(&for_end).end(end);
        Ok(())
    });
    let settings = Settings::new_send()
        .append_element_content_handler((Cow::Owned(any), elements))
        .append_element_content_handler((Cow::Owned(raw), texts))
        .append_document_content_handler(end)
        .with_encoding(encoding)
        .with_memory_settings(memory)
        .with_adjust_charset_on_meta_tag(false)
        .with_strict(false);
    let sink = move |bytes: &[u8]| lock(&output).extend_from_slice(bytes);
    Some(HtmlRewriter::new(settings, Box::new(sink)))
}

fn lock<T>(shared: &Mutex<T>) -> parking_lot::MutexGuard<'_, T> {
    shared.lock()
}

impl Page {
    pub(super) fn new(options: PageOptions, is_fragment: bool) -> Self {
        let modifier = match options.mode {
            PageMode::NoScript { .. } => None,
            PageMode::Guided { .. } => Some(Modifier::Main),
        };
        let links = Links::new(options.addresses, options.time, options.url)
            .in_encoding(options.encoding)
            .with_page_modifier(modifier);
        Self {
            links,
            mode: options.mode,
            memory: options.memory.max(LEAST_MEMORY),
            depth: 0,
            has_base: is_fragment,
            has_begun: is_fragment,
            raw: None,
            text: String::new(),
        }
    }

    const fn is_guided(&self) -> bool {
        matches!(self.mode, PageMode::Guided { .. })
    }

    fn element(&mut self, element: &mut Element<'_, '_>) {
        self.raw = None;
        let name = element.tag_name();
        self.begin(&name, element);
        match name.as_str() {
            "base" => self.base(element),
            "meta" => self.meta(element),
            "link" => self.link(element),
            "script" if self.is_guided() => {
                let kind = attribute(element, "type").unwrap_or_default();
                if kind.trim().eq_ignore_ascii_case("speculationrules") {
                    element.remove();
                }
            }
            "script" => element.remove(),
            "style" if !self.is_guided() => self.raw = Some(RawText::Style),
            "noscript" if !self.is_guided() => {
                self.raw = Some(RawText::NoScript);
                element.remove_and_keep_content();
            }
            _ => {}
        }
        if !element.removed() || name == "noscript" {
            self.attributes(&name, element);
        }
    }

    /// Inserts the beginning of the page: the banner into the body, a script before everything.
    fn begin(&mut self, name: &str, element: &mut Element<'_, '_>) {
        if self.has_begun {
            return;
        }
        match &self.mode {
            PageMode::NoScript { banner } => {
                if name == "body" {
                    element.prepend(banner, ContentType::Html);
                    self.has_begun = true;
                }
            }
            PageMode::Guided { first } => {
                match name {
                    "html" => return,
                    "head" => element.prepend(first, ContentType::Html),
                    _ => element.before(first, ContentType::Html),
                }
                self.has_begun = true;
            }
        }
    }

    /// Inserts the banner or the first script at the end of a page that has no element to put it before.
    fn end(&mut self, end: &mut DocumentEnd<'_>) {
        if !self.has_begun {
            let (PageMode::NoScript { banner: text } | PageMode::Guided { first: text }) =
                &self.mode;
            end.append(text, ContentType::Html);
            self.has_begun = true;
        }
    }

    fn base(&mut self, element: &mut Element<'_, '_>) {
        let Some(href) = attribute(element, "href") else {
            return;
        };
        if self.has_base {
            // Only the first one counts.
            element.remove_attribute("href");
            return;
        }
        self.has_base = true;
        if let LinkRewrite::Address(address) = self.links.set_base(&href) {
            set(element, "href", &address);
        }
    }

    fn meta(&self, element: &mut Element<'_, '_>) {
        let Some(kind) = attribute(element, "http-equiv") else {
            return;
        };
        match kind.trim().to_ascii_lowercase().as_str() {
            "refresh" => {
                let content = attribute(element, "content").unwrap_or_default();
                let rewrite = |reference: &str| self.links.rewrite_link(reference, Purpose::Link);
                match references::rewrite_refresh(&content, &rewrite) {
                    Some(content) => set(element, "content", &content),
                    None => element.remove(),
                }
            }
            // The policies of another server: they have no say in what is stopped, or asked for, here.
            "content-security-policy"
            | "content-security-policy-report-only"
            | "x-dns-prefetch-control"
            | "origin-trial"
            | "accept-ch"
            | "delegate-ch"
            | "set-cookie" => element.remove(),
            _ => {}
        }
    }

    fn link(&self, element: &mut Element<'_, '_>) {
        let relations = attribute(element, "rel").unwrap_or_default();
        let purpose = match link_relation(&relations) {
            Relation::Connection => return element.remove(),
            Relation::Preload if !self.is_guided() => return element.remove(),
            Relation::Preload => return,
            Relation::To(purpose) => purpose,
        };
        if self.is_guided() && purpose != Purpose::Link {
            return;
        }
        if let Some(href) = attribute(element, "href") {
            self.replace(element, "href", &href, purpose);
        }
    }

    fn attributes(&mut self, element_name: &str, element: &mut Element<'_, '_>) {
        let is_read = |name: &str| matches!((element_name, name), ("link" | "base", "href"));
        let found: Vec<(String, Role, String)> = element
            .attributes()
            .iter()
            .filter_map(|attribute| {
                let name = attribute.name();
                let role = attribute_role(element_name, &name).filter(|_| !is_read(&name))?;
                Some((name, role, attribute.value()))
            })
            .collect();
        for (name, role, raw) in found {
            // Objects of a guided page are shown as frames are.
            let is_object = self.is_guided()
                && matches!(
                    (element_name, name.as_str()),
                    ("object", "data") | ("embed", "src")
                );
            if self.is_guided() && !role.is_navigation() && !is_object {
                continue;
            }
            let value = entities::decode_entities(&raw);
            match role {
                Role::Reference(_) if is_object => {
                    self.replace(element, &name, &value, Purpose::Frame);
                }
                Role::Reference(purpose) => self.replace(element, &name, &value, purpose),
                Role::Candidates => {
                    let rewrite =
                        |reference: &str, purpose| self.links.rewrite_link(reference, purpose);
                    set(
                        element,
                        &name,
                        &references::rewrite_srcset(&value, &rewrite),
                    );
                }
                Role::Style => {
                    let rewrite =
                        |reference: &str, purpose| self.links.rewrite_link(reference, purpose);
                    set(element, &name, &css::rewrite_css(&value, &rewrite));
                }
                Role::Page => match self.inner_page(&value) {
                    Some(page) => set(element, &name, &page),
                    None => element.remove_attribute(&name),
                },
                Role::Harmful | Role::Script => element.remove_attribute(&name),
            }
        }
    }

    fn replace(
        &self,
        element: &mut Element<'_, '_>,
        name: &str,
        reference: &str,
        purpose: Purpose,
    ) {
        match self.links.rewrite_link(reference, purpose) {
            LinkRewrite::Same => {}
            LinkRewrite::Address(address) => set(element, name, &address),
            // Scripts run there, in links as elsewhere.
            LinkRewrite::Dropped if self.is_guided() && is_script(reference) => {}
            LinkRewrite::Dropped => element.remove_attribute(name),
        }
    }

    /// Collects the text of a style sheet or of `noscript`, and rewrites it.
    fn raw_text(&mut self, chunk: &mut TextChunk<'_>) {
        let Some(raw) = self.raw else {
            return;
        };
        if self.text.len().saturating_add(chunk.as_str().len()) > self.memory {
            // Nothing of it is shown: half a style sheet might say something else.
            self.text.clear();
            self.raw = Some(RawText::Oversized);
        } else if raw != RawText::Oversized {
            self.text.push_str(chunk.as_str());
        }
        if !chunk.last_in_text_node() || self.raw == Some(RawText::Oversized) {
            chunk.remove();
            return;
        }
        let text = std::mem::take(&mut self.text);
        let rewritten = match raw {
            RawText::Style => {
                let rewrite =
                    |reference: &str, purpose| self.links.rewrite_link(reference, purpose);
                css::rewrite_css(&text, &rewrite)
            }
            RawText::NoScript => self.inner_page(&text).unwrap_or_default(),
            RawText::Oversized => String::new(),
        };
        self.raw = None;
        chunk.replace(&rewritten, ContentType::Html);
    }

    /// Returns a page within this page, rewritten; `None` if it is too deep or too large.
    fn inner_page(&self, text: &str) -> Option<String> {
        if self.depth >= DEEPEST {
            return None;
        }
        let page = Self {
            links: self.links.clone(),
            mode: self.mode.clone(),
            memory: self.memory,
            depth: self.depth + 1,
            has_base: true,
            // A page in a frame has a window of its own, for which the script has to come first as well.
            has_begun: !self.is_guided(),
            raw: None,
            text: String::new(),
        };
        let output = Arc::new(Mutex::new(Vec::new()));
        let memory = MemorySettings::new().with_max_allowed_memory_usage(self.memory);
        let encoding = AsciiCompatibleEncoding::new(UTF_8)?;
        let mut rewriter = page_rewriter(page, encoding, memory, Arc::clone(&output))?;
        rewriter.write(text.as_bytes()).ok()?;
        rewriter.end().ok()?;
        let output = std::mem::take(&mut *lock(&output));
        String::from_utf8(output).ok()
    }
}

/// Returns the value of an attribute.
fn attribute(element: &Element<'_, '_>, name: &str) -> Option<String> {
    let raw = element.get_attribute(name)?;
    Some(entities::decode_entities(&raw).into_owned())
}

/// Returns whether a reference is a script, as a browser reads it.
fn is_script(reference: &str) -> bool {
    let visible = reference
        .chars()
        .filter(|c| !matches!(c, '\t' | '\n' | '\r'));
    let scheme: String = visible.skip_while(|c| *c <= ' ').take(11).collect();
    scheme.eq_ignore_ascii_case("javascript:")
}

/// Sets an attribute that the element has.
fn set(element: &mut Element<'_, '_>, name: &str, value: &str) {
    if element
        .set_attribute(name, &entities::encode_entities(value))
        .is_err()
    {
        // A name that cannot be written again cannot stay as it was.
        element.remove_attribute(name);
    }
}
