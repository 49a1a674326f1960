//! References: where one leads, and what it is replaced with.

use std::borrow::Cow;

use archive_formats::date::Stamp;
use encoding_rs::{Encoding, UTF_8};
use url::Url;

use crate::request::{Addresses, Modifier};

/// The use that a page makes of a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// The reference is followed by a person, or by a form or a refresh.
    Link,
    /// The reference is shown in a frame.
    Frame,
    /// The reference is an image.
    Image,
    /// The reference is a video, a sound, an object.
    Media,
    /// The reference is a style sheet.
    Style,
    /// The reference is loaded by a style sheet: an image, a font.
    StyleResource,
}

/// A reference after rewriting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LinkRewrite {
    /// The reference stays as it is: it leads to no host.
    Same,
    /// The reference is replaced with this address.
    Address(String),
    /// The reference is taken away: it is a script, leads to a program, or to no known place.
    Dropped,
}

/// References relative to a base.
#[derive(Clone, Debug)]
pub(super) struct Links {
    addresses: Addresses,
    time: Stamp,
    url: Url,
    base: Url,
    encoding: &'static Encoding,
    /// The modifier of pages, where they have one.
    page_modifier: Option<Modifier>,
}

impl Links {
    /// The references of a document at `url`, in UTF-8; links lead to pages without a modifier.
    pub(super) fn new(addresses: Addresses, time: Stamp, url: Url) -> Self {
        Self {
            addresses,
            time,
            base: url.clone(),
            url,
            encoding: UTF_8,
            page_modifier: None,
        }
    }

    /// Reads the references in the encoding of the document.
    pub(super) fn in_encoding(mut self, encoding: &'static Encoding) -> Self {
        self.encoding = encoding;
        self
    }

    /// Makes links lead to pages with a modifier.
    pub(super) fn with_page_modifier(mut self, modifier: Option<Modifier>) -> Self {
        self.page_modifier = modifier;
        self
    }

    /// Takes the base that a page names, which is relative to the page, and returns its replacement.
    pub(super) fn set_base(&mut self, reference: &str) -> LinkRewrite {
        self.base = self.url.clone();
        if let Some(base) = self.resolve(reference).filter(is_of_the_web) {
            self.base = base;
        }
        self.address(&self.base, self.page_modifier)
    }

    /// Rewrites a reference.
    pub(super) fn rewrite_link(&self, reference: &str, purpose: Purpose) -> LinkRewrite {
        let reference = reference.trim_matches(|c: char| c <= ' ');
        if reference.is_empty() || reference.starts_with('#') {
            return LinkRewrite::Same;
        }
        let Some(url) = self.resolve(reference) else {
            return LinkRewrite::Dropped;
        };
        if is_of_the_web(&url) {
            return self.address(&url, self.modifier(purpose));
        }
        let is_image = matches!(
            purpose,
            Purpose::Image | Purpose::StyleResource | Purpose::Media
        );
        match url.scheme() {
            "about" => LinkRewrite::Same,
            "mailto" | "tel" | "sms" if purpose == Purpose::Link => LinkRewrite::Same,
            // A page or style sheet in a URL would have references that are not rewritten.
            "data" | "blob" | "cid" if is_image => LinkRewrite::Same,
            _ => LinkRewrite::Dropped,
        }
    }

    fn modifier(&self, purpose: Purpose) -> Option<Modifier> {
        match purpose {
            Purpose::Link | Purpose::Frame => self.page_modifier,
            Purpose::Image => Some(Modifier::Image),
            Purpose::Media | Purpose::StyleResource => Some(Modifier::Object),
            Purpose::Style => Some(Modifier::Style),
        }
    }

    fn resolve(&self, reference: &str) -> Option<Url> {
        let encode = encoder(self.encoding);
        let options = Url::options().base_url(Some(&self.base));
        if self.encoding == UTF_8 {
            options.parse(reference).ok()
        } else {
            options
                .encoding_override(Some(&encode))
                .parse(reference)
                .ok()
        }
    }

    fn address(&self, url: &Url, modifier: Option<Modifier>) -> LinkRewrite {
        let mut plain = url.clone();
        plain.set_fragment(None);
        let mut address = self
            .addresses
            .memento_address(self.time, modifier, plain.as_str());
        if let Some(fragment) = url.fragment() {
            address.push('#');
            address.push_str(fragment);
        }
        LinkRewrite::Address(address)
    }
}

/// Escapes queries in the charset of the page, as browsers do.
fn encoder(encoding: &'static Encoding) -> impl Fn(&str) -> Cow<'_, [u8]> {
    move |text| Cow::Owned(encoding.encode(text).0.into_owned())
}

fn is_of_the_web(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https" | "ftp")
}
