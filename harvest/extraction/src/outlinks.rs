//! The links of one document as they are gathered.
//!
//! Owns how a reference becomes an absolute URL, which schemes are links, that each link is kept once, and how many are
//! kept. Does not know where references stand.

use std::borrow::Cow;
use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};

use encoding_rs::{Encoding, UTF_8};
use harvest_policy::hops::Hop;
use url::Url;

use crate::Link;

/// The longest URL that is a link: Heritrix' limit, beyond which servers refuse as well.
const MAX_URL: usize = 2083;

/// The longest reference that is looked at: line ends and escapes may make it longer than its URL.
pub(crate) const MAX_REFERENCE: usize = 4 * MAX_URL;

/// The most bytes of references that are kept for a base which comes behind them.
const MOST_EARLY: usize = 1 << 20;

/// The icon that browsers ask for beside a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IconLink {
    /// It is no link by itself.
    Unwanted,
    /// It is guessed at the end of the page.
    Guessed,
}

/// Links relative to a base.
#[derive(Debug)]
pub(crate) struct Outlinks<'a> {
    own: &'a Url,
    base: Url,
    encoding: &'static Encoding,
    links: Vec<Link>,
    /// The links that a base which comes later moves, by their places, as they are written.
    early: Vec<(usize, String)>,
    early_bytes: usize,
    /// Whether the document may name a base yet.
    awaits_base: bool,
    /// Whether links are left that the page asks not to follow.
    obeys_nofollow: bool,
    /// Whether the page asks not to follow any of them.
    is_nofollow: bool,
    icon: IconLink,
    max_links: usize,
    discarded: u64,
    too_long: u64,
    /// The keyed hashes of the links and their hops.
    seen: HashSet<u64>,
    hashes: RandomState,
}

impl<'a> Outlinks<'a> {
    pub(crate) fn new(own: &'a Url, max_links: usize) -> Self {
        Self {
            own,
            base: own.clone(),
            encoding: UTF_8,
            links: Vec::new(),
            early: Vec::new(),
            early_bytes: 0,
            awaits_base: false,
            obeys_nofollow: false,
            is_nofollow: false,
            icon: IconLink::Unwanted,
            max_links,
            discarded: 0,
            too_long: 0,
            seen: HashSet::new(),
            hashes: RandomState::new(),
        }
    }

    /// Sets the charset in which queries are escaped: that of the page (URL Standard, "percent-encode after encoding").
    pub(crate) const fn set_encoding(&mut self, encoding: &'static Encoding) {
        self.encoding = encoding;
    }

    /// Sets the URL to which references are relative from now on.
    pub(crate) fn set_base(&mut self, base: Url) {
        self.base = base;
    }

    /// Expects that the document names a base, which its links before it are relative to, too.
    pub(crate) const fn await_base(&mut self) {
        self.awaits_base = true;
    }

    /// Sets the base that a page names, which is itself relative to the page. One that nothing can be relative to is
    /// ignored.
    pub(crate) fn set_base_reference(&mut self, reference: &str) {
        if let Ok(base) = self.own.join(reference)
            && !matches!(base.scheme(), "data" | "javascript")
            && !base.cannot_be_a_base()
        {
            self.base = base;
            self.awaits_base = false;
            // A link is followed when the whole page is there; what is shown was asked for before (HTML Standard,
            // "document base URL").
            for (place, reference) in std::mem::take(&mut self.early) {
                let moved = self.resolve(&reference).and_then(as_link);
                if let (Some(url), Some(link)) = (moved, self.links.get_mut(place)) {
                    link.url = url;
                }
            }
        }
    }

    /// Returns the number of references that were no links because they are too long.
    pub(crate) const fn too_long(&self) -> u64 {
        self.too_long
    }

    /// Returns the absolute URL of a reference.
    fn resolve(&self, reference: &str) -> Option<Url> {
        let encode = encode_as(self.encoding);
        let mut options = Url::options().base_url(Some(&self.base));
        if self.encoding != UTF_8 {
            options = options.encoding_override(Some(&encode));
        }
        options.parse(reference).ok()
    }

    /// Adds the URL of a reference, unless it is no link: empty, a fragment, of another scheme, a template, the
    /// document itself.
    pub(crate) fn add_reference(&mut self, reference: &str, hop: Hop, context: &'static str) {
        let reference = reference.trim_matches(|c: char| c <= ' ');
        if reference.is_empty()
            || reference.starts_with('#')
            || reference.contains("{{")
            || reference.contains("${")
        {
            return;
        }
        let is_inline = ["data:", "javascript:", "blob:"].iter().any(|scheme| {
            let begin = reference.get(..scheme.len());
            begin.is_some_and(|begin| begin.eq_ignore_ascii_case(scheme))
        });
        if is_inline {
            return;
        }
        if reference.len() > MAX_REFERENCE {
            self.too_long += 1;
            return;
        }
        let url = self.resolve(reference);
        if url.as_ref().is_some_and(|url| url.as_str().len() > MAX_URL) {
            self.too_long += 1;
        }
        let url = url.and_then(as_link);
        let Some(url) = url.filter(|url| !is_same_document(url, self.own)) else {
            return;
        };
        let hash = self.hashes.hash_one((hop, url.as_str()));
        if self.seen.contains(&hash) {
            return;
        }
        if self.links.len() >= self.max_links {
            self.discarded += 1;
            return;
        }
        self.seen.insert(hash);
        if self.awaits_base && hop == Hop::Link && self.early_bytes < MOST_EARLY {
            self.early_bytes += reference.len();
            self.early.push((self.links.len(), reference.to_owned()));
        }
        self.links.push(Link { url, hop, context });
    }

    /// Lets the icon be a link that browsers ask for by themselves, unless the page names one.
    pub(crate) const fn guess_icon(&mut self) {
        self.icon = IconLink::Guessed;
    }

    /// Takes note that the page names an icon.
    pub(crate) const fn note_icon(&mut self) {
        self.icon = IconLink::Unwanted;
    }

    /// Adds the icon that is guessed.
    pub(crate) fn add_icon(&mut self) {
        if self.icon == IconLink::Guessed
            && let Ok(icon) = self.own.join("/favicon.ico")
        {
            self.add_reference(icon.as_str(), Hop::Embed, "favicon");
        }
    }

    /// Leaves links from now on that the page asks not to follow.
    pub(crate) const fn obey_nofollow(&mut self) {
        self.obeys_nofollow = true;
    }

    /// Returns whether links are left that the page asks not to follow.
    pub(crate) const fn obeys_nofollow(&self) -> bool {
        self.obeys_nofollow
    }

    /// Takes note of what a page asks of robots, in a `robots` meta element or in `X-Robots-Tag`: `noindex, nofollow`.
    pub(crate) fn note_robots(&mut self, directives: &str) {
        let mut words = directives.split([',', ':', ' ']).map(str::trim);
        self.is_nofollow |= words
            .any(|word| word.eq_ignore_ascii_case("nofollow") || word.eq_ignore_ascii_case("none"));
    }

    /// Returns the links, and the number of those that were beyond the limit; one that stands there twice counts twice.
    pub(crate) fn finish(mut self) -> (Vec<Link>, u64) {
        if self.obeys_nofollow && self.is_nofollow {
            self.links
                .retain(|link| !matches!(link.hop, Hop::Link | Hop::Submit));
        }
        (self.links, self.discarded)
    }
}

/// Returns a URL as a link: without a fragment, which no host sees, and without a user or password, which logs and
/// records would show. `None` if it is of another scheme than those that are fetched, or too long.
pub fn as_link(mut url: Url) -> Option<Url> {
    if !matches!(url.scheme(), "http" | "https" | "ftp") {
        return None;
    }
    url.set_fragment(None);
    url.set_username("").ok()?;
    url.set_password(None).ok()?;
    (url.as_str().len() <= MAX_URL).then_some(url)
}

/// Writes a query in a charset. A character that it does not have becomes an escaped reference (URL Standard,
/// "percent-encode after encoding"); the ready escapes stay what they are.
fn encode_as(encoding: &'static Encoding) -> impl Fn(&str) -> Cow<'_, [u8]> {
    move |query| {
        let (bytes, _, has_unknown) = encoding.encode(query);
        if !has_unknown {
            return bytes;
        }
        let mut escaped = Vec::with_capacity(query.len());
        for c in query.chars() {
            let mut buffer = [0; 4];
            let (bytes, _, is_unknown) = encoding.encode(c.encode_utf8(&mut buffer));
            if is_unknown {
                escaped.extend_from_slice(format!("%26%23{}%3B", u32::from(c)).as_bytes());
            } else {
                escaped.extend_from_slice(&bytes);
            }
        }
        Cow::Owned(escaped)
    }
}

/// Returns whether two URLs differ in nothing but the fragment.
fn is_same_document(url: &Url, own: &Url) -> bool {
    own.as_str().split('#').next() == Some(url.as_str())
}
