//! The block of a `warcinfo` record: who has harvested, and how (Heritrix' fields, NetarchiveSuite's `harvestInfo`).
//!
//! Owns the names and their order (ISO 28500:2017 §6.2, `application/warc-fields`). The same block begins archive files
//! and the metadata file. Passwords have no place in it: what the caller gives is published.

use std::fmt::Write as _;
use std::net::IpAddr;

/// The media type of the block.
pub const CONTENT_TYPE: &str = "application/warc-fields";

/// The format that is written.
const FORMAT: &str = "WARC File Format 1.1";

/// The text of the standard.
const CONFORMS_TO: &str =
    "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/";

/// The value of [`Warcinfo::http2`] where HTTP/2 may be spoken.
pub const REWRITTEN_HEADS: &str = "messages of records with WARC-Protocol: h2 are written in the text of HTTP/1.1, \
     without pseudo-fields and trailers; all others are the bytes of the wire";

/// The fields of the block. One that is `None`, or empty, is not written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Warcinfo {
    /// The program, its version and its address: `Holdfast/0.1.0 https://example.org/holdfast`.
    pub software: String,
    /// The address of the machine.
    pub ip: Option<IpAddr>,
    /// The name of the machine.
    pub hostname: Option<String>,
    /// The person or institution that runs the crawl.
    pub operator: Option<String>,
    /// The institution that publishes the crawl.
    pub publisher: Option<String>,
    /// The people for whom the crawl was made.
    pub audience: Option<String>,
    /// The name of the crawl or the number of the job.
    pub is_part_of: Option<String>,
    /// A description of the crawl.
    pub description: Option<String>,
    /// The treatment of robots.txt: `obey`, `ignore`.
    pub robots: Option<String>,
    /// The User-Agent of requests.
    pub user_agent: Option<String>,
    /// The From of requests.
    pub from: Option<String>,
    /// The form in which messages that came by HTTP/2 are written, where it may be spoken.
    pub http2: Option<String>,
    /// The entries of `harvestInfo.xml`, as key and value, in their order: lines `harvestInfo.<key>: value`.
    pub harvest_info: Vec<(String, String)>,
}

impl Warcinfo {
    /// Writes the block: a line for each field, with CR LF at its end. Control characters and line ends in a value
    /// become one blank.
    pub fn render_block(&self) -> String {
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        let fields = [
            ("software", self.software.clone()),
            ("ip", self.ip.map_or_else(String::new, |ip| ip.to_string())),
            ("hostname", text(&self.hostname)),
            ("format", FORMAT.to_owned()),
            ("conformsTo", CONFORMS_TO.to_owned()),
            ("operator", text(&self.operator)),
            ("publisher", text(&self.publisher)),
            ("audience", text(&self.audience)),
            ("isPartOf", text(&self.is_part_of)),
            ("description", text(&self.description)),
            ("robots", text(&self.robots)),
            ("http-header-user-agent", text(&self.user_agent)),
            ("http-header-from", text(&self.from)),
            ("http2", text(&self.http2)),
        ];
        let mut block = String::new();
        let mut line = |name: &str, value: &str| {
            let value = fold_value(value);
            if !value.is_empty() {
                // Writing to a string cannot fail.
                let _ok = write!(block, "{name}: {value}\r\n").is_ok();
            }
        };
        for (name, value) in &fields {
            line(name, value);
        }
        for (key, value) in &self.harvest_info {
            let is_token =
                |letter: &char| letter.is_ascii_alphanumeric() || "-_.".contains(*letter);
            let key: String = key.chars().filter(is_token).collect();
            line(&format!("harvestInfo.{key}"), value);
        }
        block
    }
}

/// Returns a value in one line: line ends and other control characters, with the blanks around them, become one blank.
fn fold_value(value: &str) -> String {
    let breaks = |letter: char| letter.is_control() || matches!(letter, '\u{2028}' | '\u{2029}');
    let parts = value.split(breaks).map(str::trim);
    let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
    parts.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a field is missing, renamed or out of its order.
    #[test]
    fn fields_stand_in_heritrix_order() {
        let text = |value: &str| Some(value.to_owned());
        let warcinfo = Warcinfo {
            software: "Holdfast/0.1.0 https://example.org/".to_owned(),
            ip: "192.0.2.7".parse().ok(),
            hostname: text("harvester-1"),
            operator: text("A. Operator"),
            publisher: text("Netarkivet"),
            audience: text("researchers"),
            is_part_of: text("7"),
            description: text("a job"),
            robots: text("ignore"),
            user_agent: text("Mozilla/5.0 (compatible; holdfast)"),
            from: text("web@example.org"),
            http2: text("as text"),
            harvest_info: vec![
                ("version".to_owned(), "0.6".to_owned()),
                ("jobId".to_owned(), "7".to_owned()),
            ],
        };
        assert_eq!(
            warcinfo.render_block(),
            "software: Holdfast/0.1.0 https://example.org/\r\nip: 192.0.2.7\r\nhostname: harvester-1\r\n\
             format: WARC File Format 1.1\r\n\
             conformsTo: http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/\r\n\
             operator: A. Operator\r\npublisher: Netarkivet\r\naudience: researchers\r\nisPartOf: 7\r\n\
             description: a job\r\nrobots: ignore\r\n\
             http-header-user-agent: Mozilla/5.0 (compatible; holdfast)\r\nhttp-header-from: web@example.org\r\nhttp2: as text\r\n\
             harvestInfo.version: 0.6\r\nharvestInfo.jobId: 7\r\n"
        );
    }

    /// Fails if a value or a key can begin a line of its own.
    #[test]
    fn hostile_values_stay_in_their_line() {
        let warcinfo = Warcinfo {
            software: "x".to_owned(),
            description: Some(" one \r\n\r\n robots: two\u{85}\u{2028}\0three\t".to_owned()),
            operator: Some("\r\n".to_owned()),
            harvest_info: vec![("a: b\r\nc".to_owned(), "v".to_owned())],
            ..Warcinfo::default()
        };
        let block = warcinfo.render_block();
        let lines: Vec<&str> = block.split("\r\n").collect();
        assert_eq!(
            lines.get(3..),
            Some(
                [
                    "description: one robots: two three",
                    "harvestInfo.abc: v",
                    ""
                ]
                .as_slice()
            )
        );
    }
}
