//! Memento: captures by date, as RFC 7089 says.
//!
//! Owns `Accept-Datetime`, the answers of a TimeGate, the `Link` of a capture, TimeMaps and `Prefer`. Does not look
//! captures up: a shell says which there are. Header values that are made here are visible ASCII.
//!
//! ```
//! use viewer_replay::memento::{self, Neighbours, TimeGate, TimeGateStyle};
//! use viewer_replay::request::Addresses;
//!
//! let wanted = memento::accept_datetime([b"Thu, 31 May 2007 20:35:00 GMT".as_slice()])?;
//! assert_eq!(wanted.unwrap().to_string(), "20070531203500");
//!
//! let addresses = Addresses::new("https://replay.example.org", "all");
//! let only = Neighbours::alone("20070601000000".parse().unwrap());
//! let gate = TimeGate { style: TimeGateStyle::Redirect, modifier: None };
//! let headers = gate.gate_fields(&addresses, "http://a.dk/", &only);
//! assert_eq!(headers[0], ("Location", "https://replay.example.org/all/20070601000000/http://a.dk/".to_owned()));
//! # Ok::<(), viewer_replay::memento::InvalidDatetime>(())
//! ```

mod http_date;
mod negotiate;
mod preference;
mod time_map;

use archive_formats::date::Stamp;

use crate::request::{Addresses, Modifier, TimeMapFormat, header_safe};

pub use http_date::{InvalidDatetime, accept_datetime, http_date};
pub use negotiate::{Nearest, nearest_capture};
pub use preference::Preference;
pub use time_map::{TimeMap, TimeMapPage, TimeMapScope, TimeMapWriter, split_pages};

/// A header field: its name and its value.
pub type AnswerField = (&'static str, String);

/// A capture among the captures of its URL, in the order of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbours {
    /// The capture itself.
    pub this: Stamp,
    /// The first capture.
    pub first: Option<Stamp>,
    /// The capture before.
    pub previous: Option<Stamp>,
    /// The capture after.
    pub next: Option<Stamp>,
    /// The last capture.
    pub last: Option<Stamp>,
}

impl Neighbours {
    /// Returns a capture of whose neighbours nothing is said.
    pub const fn alone(this: Stamp) -> Self {
        Self {
            this,
            first: None,
            previous: None,
            next: None,
            last: None,
        }
    }

    /// Returns the captures with their relations; a capture with several relations is named once.
    fn relations(&self) -> Vec<(Stamp, String)> {
        let named = [
            (self.first, "first "),
            (self.last, "last "),
            (self.previous, "prev "),
            (self.next, "next "),
            (Some(self.this), ""),
        ];
        let mut relations: Vec<(Stamp, String)> = Vec::new();
        for (stamp, relation) in named {
            let Some(stamp) = stamp else {
                continue;
            };
            match relations.iter_mut().find(|(known, _)| *known == stamp) {
                Some((_, relations)) => relations.push_str(relation),
                None => relations.push((stamp, relation.to_owned())),
            }
        }
        relations.sort_by_key(|(stamp, _)| *stamp);
        for (_, relations) in &mut relations {
            relations.push_str("memento");
        }
        relations
    }
}

/// The answer of a TimeGate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimeGateStyle {
    /// With the capture itself, and its address in `Content-Location` (RFC 7089, pattern 2.2; pywb's default).
    #[default]
    Direct,
    /// With a redirect to the capture (pattern 2.3).
    Redirect,
}

impl TimeGateStyle {
    /// Returns the status of the answer; `None` if it is that of the capture.
    pub const fn status(self) -> Option<u16> {
        match self {
            Self::Direct => None,
            Self::Redirect => Some(302),
        }
    }
}

/// A TimeGate, which leads to captures in one form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeGate {
    /// The way in which it answers.
    pub style: TimeGateStyle,
    /// The form of the captures that it leads to.
    pub modifier: Option<Modifier>,
}

impl TimeGate {
    /// Returns the fields of an answer that finds a capture: where it is, `Vary`, `Link`, and with the capture itself
    /// its date.
    pub fn gate_fields(
        &self,
        addresses: &Addresses,
        url: &str,
        neighbours: &Neighbours,
    ) -> Vec<AnswerField> {
        let address = addresses.memento_address(neighbours.this, self.modifier, url);
        let link = link(addresses, url, neighbours);
        let mut fields = match self.style {
            TimeGateStyle::Direct => vec![
                ("Content-Location", address),
                ("Memento-Datetime", http_date(neighbours.this)),
            ],
            // RFC 7089 forbids the date on an answer that is no capture.
            TimeGateStyle::Redirect => vec![("Location", address)],
        };
        fields.push(("Vary", "accept-datetime, prefer".to_owned()));
        fields.push(("Link", link));
        fields
    }
}

/// Returns the fields of a TimeGate's answer that finds nothing, or that refuses the date.
pub fn empty_time_gate(addresses: &Addresses, url: &str) -> Vec<AnswerField> {
    vec![
        ("Vary", "accept-datetime, prefer".to_owned()),
        ("Link", context_link(addresses, url)),
    ]
}

/// Returns the fields of a capture at its own address: its date, and `Link`.
pub fn memento_fields(
    addresses: &Addresses,
    url: &str,
    neighbours: &Neighbours,
) -> Vec<AnswerField> {
    vec![
        ("Memento-Datetime", http_date(neighbours.this)),
        ("Link", link(addresses, url, neighbours)),
    ]
}

/// Returns the fields of a capture at the address of its original, as a proxy serves it (RFC 7089, pattern 1.3): the
/// original is its own TimeGate, and captures have no addresses of their own.
pub fn proxied_memento(url: &str, time: Stamp) -> Vec<AnswerField> {
    let link = format!("<{}>; rel=\"original timegate\"", header_safe(url));
    vec![
        ("Memento-Datetime", http_date(time)),
        ("Vary", "accept-datetime".to_owned()),
        ("Link", link),
    ]
}

/// The most bytes of `Link` with other captures in it: clients read lines of 64 KiB at most, and a long URL stands in
/// it many times.
const LONGEST_LINK: usize = 32 << 10;

/// The most bytes of `Link`. A URL whose bytes are all escaped has 30,000.
const MOST_LINK: usize = 60 << 10;

/// Returns the value of `Link` for a capture: original, TimeGate, TimeMap and the captures around it, as far as they
/// have room.
fn link(addresses: &Addresses, url: &str, neighbours: &Neighbours) -> String {
    let link = whole_link(addresses, url, neighbours);
    if link.len() <= LONGEST_LINK {
        return link;
    }
    let link = whole_link(addresses, url, &Neighbours::alone(neighbours.this));
    if link.len() <= MOST_LINK {
        return link;
    }
    context_link(addresses, url)
}

fn whole_link(addresses: &Addresses, url: &str, neighbours: &Neighbours) -> String {
    let mut link = context_link(addresses, url);
    for (stamp, relations) in neighbours.relations() {
        let address = addresses.memento_address(stamp, None, url);
        let date = http_date(stamp);
        let text = format!(", <{address}>; rel=\"{relations}\"; datetime=\"{date}\"");
        link.push_str(&text);
    }
    link
}

/// Returns the part of `Link` that does not depend on captures; of a very long URL the original alone.
fn context_link(addresses: &Addresses, url: &str) -> String {
    let original = format!("<{}>; rel=\"original\"", header_safe(url));
    let link = format!(
        "{original}, <{}>; rel=\"timegate\", <{}>; rel=\"timemap\"; type=\"application/link-format\"",
        addresses.time_gate(url),
        addresses.time_map(TimeMapFormat::Link, None, url),
    );
    if link.len() <= MOST_LINK {
        link
    } else {
        original
    }
}

#[cfg(test)]
mod tests;
