//! The banner over a page without scripts, and the notes that follow a page whose bytes are not what they should be.
//!
//! Owns their HTML. The styles stand in the elements, because a page may have any style sheet. Nothing in them leads
//! out of the archive: the original URL is a text. Everything from outside is escaped.

use archive_formats::date::Stamp;

use crate::html::escape_html;
use crate::request::header_safe;

/// A fault of a capture that is shown all the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CaptureFault {
    /// The payload does not have the digest of its record.
    Digest,
    /// The body ends before its end; in words, why.
    Cut(String),
    /// The bytes have encodings that cannot be undone; their names.
    Encoded(String),
    /// The capture redirects to its own URL, and there is no other near it.
    SelfRedirect,
}

impl CaptureFault {
    /// Returns the problem in a sentence.
    pub fn sentence(&self) -> String {
        match self {
            Self::Digest => "The bytes of this capture do not have the digest that was noted when it was captured: they may \
                             have been changed, or recorded wrongly."
                .to_owned(),
            Self::Cut(why) => {
                format!("This page is not whole; the rest of it cannot be shown: {why}.")
            }
            Self::Encoded(names) => format!(
                "The bytes of this capture cannot be decoded and are shown as they are; their encoding is {names}."
            ),
            Self::SelfRedirect => {
                "The archived server redirected this address to itself, and the archive has nothing else.".to_owned()
            }
        }
    }
}

/// The facts that a banner shows.
#[derive(Clone, Copy, Debug)]
pub struct Banner<'a> {
    /// The URL of the capture.
    pub url: &'a str,
    /// The time of the capture.
    pub time: Stamp,
    /// The address of the list of all captures of the URL.
    pub calendar: &'a str,
}

const BOX: &str = "all:initial;display:block;box-sizing:border-box;width:100%;padding:.6em 1em;font:14px/1.5 sans-serif;\
                   overflow-wrap:anywhere";

impl Banner<'_> {
    /// Returns the banner in HTML.
    pub fn render_html(&self, problems: &[CaptureFault]) -> String {
        let url = escape_html(self.url);
        let calendar = escape_html(&header_safe(self.calendar));
        let time = iso(self.time);
        let mut html = format!(
            "<div role=\"region\" aria-label=\"Archived page\" style=\"{BOX};background:#12344d;color:#fff\">Archived copy of \
             <b style=\"all:unset;font-weight:bold\">{url}</b>, captured at <time datetime=\"{time}\" \
             style=\"all:unset\">{time}</time>; shown without scripts. <a href=\"{calendar}\" \
             style=\"all:unset;color:#fff;text-decoration:underline;cursor:pointer\">All captures</a></div>"
        );
        for problem in problems {
            html.push_str(&fault_note(problem));
        }
        html
    }
}

/// Returns a note about a problem, in HTML: for a banner, and for the end of a page.
pub fn fault_note(problem: &CaptureFault) -> String {
    let sentence = escape_html(&problem.sentence());
    format!("<div role=\"alert\" style=\"{BOX};background:#7a1f1f;color:#fff\">{sentence}</div>")
}

/// Returns a time as ISO 8601 has it.
fn iso(time: Stamp) -> String {
    let digits = time.to_string();
    let part = |from: usize, to: usize| &digits[from..to];
    format!(
        "{}-{}-{}T{}:{}:{}Z",
        part(0, 4),
        part(4, 6),
        part(6, 8),
        part(8, 10),
        part(10, 12),
        part(12, 14)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a URL can end its place in the banner, or the banner leads to the live web.
    #[test]
    fn hostile_urls_stay_text() {
        let banner = Banner {
            url: "http://a.dk/'\"><script>x</script>&\n",
            time: "20200102030405".parse().unwrap(),
            calendar: "/all/*/http://a.dk/\"><script>",
        };
        let html = banner.render_html(&[
            CaptureFault::Cut("<b>'".to_owned()),
            CaptureFault::Encoded("<b>'".to_owned()),
            CaptureFault::Digest,
        ]);
        assert!(
            !html.contains("<script") && !html.contains("<b>'"),
            "{html}"
        );
        assert!(html.contains("2020-01-02T03:04:05Z"), "{html}");
        assert_eq!(html.matches("href=").count(), 1);
        assert!(
            html.contains("href=\"/all/*/http://a.dk/%22%3E%3Cscript%3E\""),
            "{html}"
        );
        assert_eq!(html.matches("role=\"alert\"").count(), 3);
    }
}
