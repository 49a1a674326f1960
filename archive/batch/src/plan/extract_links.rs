//! The links of pages.
//!
//! Owns which attributes are links, and how they are read. A link is written as it is resolved, once for each place
//! where it stands; scripts and data within the page are none.

use std::borrow::Cow;
use std::io::Read;

use archive_formats::warc::{Record, RecordSummary};
use encoding_rs::Encoding;
use url::Url;

use super::view::{self, Page};
use super::{JobInfo, Plan, Reduce, html};
use crate::control::StopControl;
use crate::job::{BatchJobError, Job, Reads, Sink};

pub(super) const INFO: JobInfo = JobInfo {
    name: "extract-links",
    about: "Finds the links in pages of HTML that were answered with status 200.",
    output: "PAGE TAB LINK TAB ELEMENT@ATTRIBUTE, both as absolute URLs",
    arguments: &[],
    reduce: Reduce::Concatenate,
};

/// The longest URL that is written.
const LONGEST: usize = 16 * 1024;

/// The most bytes that are written for one page.
const MOST: usize = 64 << 20;

/// The attributes that are links, by element; an empty name stands for any element.
const LINKS: &[(&str, &[&str])] = &[
    ("a", &["href"]),
    ("applet", &["codebase", "archive"]),
    ("area", &["href"]),
    ("audio", &["src"]),
    ("blockquote", &["cite"]),
    ("button", &["formaction"]),
    ("del", &["cite"]),
    ("embed", &["src"]),
    ("form", &["action"]),
    ("frame", &["src", "longdesc"]),
    ("head", &["profile"]),
    ("html", &["manifest"]),
    ("iframe", &["src", "longdesc"]),
    ("image", &["href", "xlink:href"]),
    ("img", &["src", "srcset", "longdesc", "lowsrc"]),
    ("input", &["src", "formaction"]),
    ("ins", &["cite"]),
    ("link", &["href", "imagesrcset"]),
    ("object", &["data", "codebase"]),
    ("q", &["cite"]),
    ("script", &["src"]),
    ("source", &["src", "srcset"]),
    ("track", &["src"]),
    ("use", &["href", "xlink:href"]),
    ("video", &["src", "poster"]),
    ("", &["background"]),
];

#[derive(Debug)]
pub(super) struct ExtractLinks;

impl Plan for ExtractLinks {
    fn reduce(&self) -> Reduce {
        INFO.reduce
    }

    fn start(&self, _control: &StopControl) -> Result<Box<dyn Job + '_>, BatchJobError> {
        Ok(Box::new(ExtractLinksJob))
    }
}

struct ExtractLinksJob;

impl Job for ExtractLinksJob {
    fn reads(&self) -> Reads {
        Reads::Records
    }

    fn record(
        &mut self,
        mut record: Record<'_, &mut dyn Read>,
        out: &mut dyn Sink,
    ) -> Result<RecordSummary, BatchJobError> {
        let Some(page) = view::read_page(&mut record, html::is_html)? else {
            return Ok(record.read_end()?);
        };
        write(&page, out)?;
        match page.flaw {
            Some(flaw) => Err(BatchJobError::Failed(flaw)),
            None => Ok(record.read_end()?),
        }
    }
}

/// A link as it stands in a page.
struct Link {
    value: String,
    element: &'static str,
    attribute: &'static str,
}

fn write(page: &Page, out: &mut dyn Sink) -> Result<(), BatchJobError> {
    let own = Url::parse(&page.url).map_err(|error| {
        BatchJobError::Failed(format!("its own URL {:?}: {error}", excerpt(&page.url)))
    })?;
    if page.url.len() > LONGEST {
        return Err(BatchJobError::Failed(format!(
            "its own URL is longer than {LONGEST} bytes"
        )));
    }
    let (text, encoding) = html::decode_page(&page.bytes, &page.media);
    let (links, base) = links(&text);
    let base = base.and_then(|base| own.join(&base).ok()).unwrap_or(own);
    let encode = encode_as(encoding);
    let options = Url::options()
        .base_url(Some(&base))
        .encoding_override(Some(&encode));
    let from = view::escape_field(&page.url);
    let mut written = 0;
    let mut too_long = 0_u64;
    for link in links {
        let Ok(url) = options.parse(&link.value) else {
            continue;
        };
        if matches!(url.scheme(), "javascript" | "data" | "blob" | "about") {
            continue;
        }
        if url.as_str().len() > LONGEST {
            too_long += 1;
            continue;
        }
        let Link {
            element, attribute, ..
        } = link;
        let line = format!(
            "{from}\t{}\t{element}@{attribute}\n",
            view::escape_field(url.as_str())
        );
        written += line.len();
        if written > MOST {
            return Err(BatchJobError::Failed(format!(
                "its links are more than {} MiB: these were written, and no more",
                MOST >> 20
            )));
        }
        out.write(line.as_bytes())?;
    }
    if too_long > 0 {
        return Err(BatchJobError::Failed(format!(
            "{too_long} links are longer than {LONGEST} bytes, and were left out"
        )));
    }
    Ok(())
}

/// Writes a query as the page is written.
fn encode_as(encoding: &'static Encoding) -> impl Fn(&str) -> Cow<'_, [u8]> {
    move |query| encoding.encode(query).0
}

fn excerpt(url: &str) -> String {
    url.chars().take(200).collect()
}

/// Returns the links of a page in their order, and the base that the page names for relative ones.
fn links(text: &str) -> (Vec<Link>, Option<String>) {
    let mut links = Vec::new();
    let mut base = None;
    for piece in html::page_pieces(text) {
        let html::Piece::Start(element) = piece else {
            continue;
        };
        let name = element.name.as_slice();
        let value = |name: &str| {
            let value = element.attribute(name)?.trim().to_owned();
            Some(value).filter(|value| !value.is_empty())
        };
        match name {
            b"base" if base.is_none() => base = value("href"),
            b"meta" => {
                let is_refresh =
                    value("http-equiv").is_some_and(|name| name.eq_ignore_ascii_case("refresh"));
                let target = value("content").filter(|_| is_refresh);
                if let Some(target) = target.as_deref().and_then(refresh) {
                    links.push(Link {
                        value: target.to_owned(),
                        element: "meta",
                        attribute: "content",
                    });
                }
            }
            _ => {}
        }
        for (known, attributes) in LINKS {
            let is_any = known.is_empty();
            if !is_any && name != known.as_bytes() {
                continue;
            }
            for attribute in *attributes {
                let Some(value) = value(attribute) else {
                    continue;
                };
                let element = if is_any { "*" } else { known };
                let link = |value: &str| Link {
                    value: value.to_owned(),
                    element,
                    attribute,
                };
                if attribute.ends_with("srcset") {
                    links.extend(candidates(&value).map(link));
                } else {
                    links.push(link(&value));
                }
            }
        }
    }
    (links, base)
}

/// Returns the target of a refresh such as `5; url=…`.
fn refresh(content: &str) -> Option<&str> {
    let (_, rest) = content.split_once([';', ','])?;
    let rest = rest.trim_start();
    let is_named = rest
        .get(..3)
        .is_some_and(|name| name.eq_ignore_ascii_case("url"));
    let target = match rest.get(3..).filter(|_| is_named) {
        Some(named) => named.trim_start().strip_prefix('=')?.trim(),
        None => rest.trim(),
    };
    let quote = target.chars().next()?;
    let target = if matches!(quote, '"' | '\'') {
        target.get(1..)?.split(quote).next()?
    } else {
        target
    };
    Some(target).filter(|target| !target.is_empty())
}

/// Returns the URLs of a `srcset`, without their sizes.
fn candidates(set: &str) -> impl Iterator<Item = &str> {
    let mut rest = set;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(|c: char| c == ',' || c.is_ascii_whitespace());
        if rest.is_empty() {
            return None;
        }
        let end = rest
            .find(|c: char| c.is_ascii_whitespace())
            .unwrap_or(rest.len());
        let (url, behind) = rest.split_at(end);
        let bare = url.trim_end_matches(',');
        rest = if bare.len() == url.len() {
            behind.split_once(',').map_or("", |(_, next)| next)
        } else {
            behind
        };
        Some(bare)
    })
}
