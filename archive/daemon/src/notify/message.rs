//! A message as the channels get it: JSON for a command, a mail for people.
//!
//! Text that a node, a disk or a file name brings in is repeated without its control characters, and up to a limit
//! only.

use archive_model::visible_character;
use jiff::Timestamp;
use serde::Serialize;

use super::incident::{IncidentNews, IncidentStage};

/// The version of a message.
pub(super) const VERSION: &str = "holdfast-notification/1";

/// The longest subject, in characters.
const SUBJECT: usize = 200;

/// The longest mail, in bytes; items that do not fit are counted.
const LONGEST_MAIL: usize = 64 << 10;

/// A message; the same one when it is sent again.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Message {
    version: &'static str,
    /// The permanent name of the message.
    pub(super) id: String,
    /// The kind of the message: `digest` or `test`.
    kind: &'static str,
    source: String,
    pub(super) at: Timestamp,
    /// The subject, in one line.
    pub(super) subject: String,
    items: Vec<Item>,
    #[serde(skip)]
    pub(super) news: Vec<IncidentNews>,
}

#[derive(Clone, Debug, Serialize)]
struct Item {
    key: String,
    /// The stage of the incident: `began`, `lasts` or `over`.
    what: &'static str,
    since: Timestamp,
    count: u64,
    text: String,
}

impl Message {
    /// Makes a message of news.
    pub(super) fn digest_message(
        source: &str,
        id: String,
        at: Timestamp,
        news: Vec<IncidentNews>,
    ) -> Self {
        let subject = subject(&news);
        Self::new("digest", source, id, at, &subject, news)
    }

    /// Makes a test message.
    pub(super) fn test_message(source: &str, id: String, at: Timestamp) -> Self {
        let subject = "a test; nothing is wrong";
        Self::new("test", source, id, at, subject, Vec::new())
    }

    fn new(
        kind: &'static str,
        source: &str,
        id: String,
        at: Timestamp,
        subject: &str,
        news: Vec<IncidentNews>,
    ) -> Self {
        let items = news.iter().map(|news| Item {
            key: news.key.clone(),
            what: news.what.word(),
            since: news.since,
            count: news.count,
            text: news.text.clone(),
        });
        Self {
            version: VERSION,
            id,
            kind,
            source: source.to_owned(),
            at,
            subject: plain_text(&format!("{source}: {subject}"))
                .chars()
                .take(SUBJECT)
                .collect(),
            items: items.collect(),
            news,
        }
    }

    /// Returns the text of the mail, in lines that end with a line feed.
    pub(super) fn mail_text(&self) -> String {
        let mut mail = format!("{} says at {}:\n", self.source, second(self.at));
        if self.items.is_empty() {
            mail.push_str("\nThis is a test. Nothing is wrong, and nothing is to be done.\n");
            return mail;
        }
        for (index, item) in self.items.iter().enumerate() {
            let text = item.to_text();
            if mail.len().saturating_add(text.len()) > LONGEST_MAIL {
                let left = self.items.len().saturating_sub(index);
                let more = format!("\nAnd {left} more; `holdfast status` tells all.\n");
                mail.push_str(&more);
                break;
            }
            mail.push_str(&text);
        }
        mail.push_str("\nLook further with `holdfast status` and `holdfast anomalies`.\n");
        mail
    }
}

impl Item {
    /// Returns the lines of a mail about the incident.
    fn to_text(&self) -> String {
        let key = plain_text(&self.key);
        let since = second(self.since);
        let mut text = match self.what {
            "over" => format!("\n{key} is over; it was wrong since {since}\n"),
            "lasts" => format!("\n{key} lasts, since {since}\n"),
            _ => format!("\n{key} began, {since}\n"),
        };
        for line in self.text.lines() {
            text.push_str("  ");
            text.push_str(&plain_text(line));
            text.push('\n');
        }
        text
    }
}

/// Replaces characters that a terminal or a mail program might interpret.
pub(super) fn plain_text(text: &str) -> String {
    text.chars().map(visible_character).collect()
}

fn second(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

fn subject(news: &[IncidentNews]) -> String {
    let count = |what| news.iter().filter(|news| news.what == what).count();
    if let [one] = news {
        return format!("{} {}", one.key, one.what.word());
    }
    let parts = [
        IncidentStage::Began,
        IncidentStage::Lasts,
        IncidentStage::Over,
    ]
    .into_iter()
    .map(|what| (what, count(what)))
    .filter(|(_, count)| *count > 0)
    .map(|(what, count)| format!("{count} {}", what.word()));
    parts.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn news(key: &str, what: IncidentStage, text: &str) -> IncidentNews {
        IncidentNews {
            key: key.to_owned(),
            what,
            since: Timestamp::UNIX_EPOCH,
            count: 3,
            text: text.to_owned(),
        }
    }

    fn digest(news: Vec<IncidentNews>) -> Message {
        let at = "2026-01-02T03:04:05.678Z".parse().unwrap();
        Message::digest_message("repository kb", "id".to_owned(), at, news)
    }

    /// Fails if a mail leaves out the place, the time or the text of an incident, or calls one that is over a new one.
    #[test]
    fn mail_says_what_since_when_and_where() {
        let message = digest(vec![
            news(
                "replica/one/node/n",
                IncidentStage::Began,
                "it is silent\nlook at it",
            ),
            news("export", IncidentStage::Over, "no room"),
        ]);
        assert_eq!(message.subject, "repository kb: 1 began, 1 over");
        assert_eq!(
            message.mail_text(),
            "repository kb says at 2026-01-02T03:04:05Z:\n\
             \nreplica/one/node/n began, 1970-01-01T00:00:00Z\n  it is silent\n  look at it\n\
             \nexport is over; it was wrong since 1970-01-01T00:00:00Z\n  no room\n\
             \nLook further with `holdfast status` and `holdfast anomalies`.\n"
        );
    }

    /// Fails if text from outside adds a header to a mail or controls a terminal, or many long incidents make a mail of
    /// any length.
    #[test]
    fn hostile_text_neither_injects_nor_floods() {
        let evil = "a\r\nBcc: x@y\u{1b}[2J\u{202e}\u{2028}\0";
        let message = digest(vec![news(evil, IncidentStage::Lasts, evil)]);
        let allowed = |c: char| c == '\n' || !archive_model::is_steering(c);
        assert!(message.mail_text().chars().all(allowed));
        assert!(!message.subject.contains(['\r', '\n', '\u{1b}']));
        let many = (0..5000).map(|n| news(&n.to_string(), IncidentStage::Began, &"x".repeat(2000)));
        let message = digest(many.collect());
        let mail = message.mail_text();
        assert!(mail.len() < LONGEST_MAIL + 1000, "{}", mail.len());
        assert!(mail.contains(" more; `holdfast status` tells all."));
        let long = digest(vec![news(&"ä".repeat(9999), IncidentStage::Began, "")]);
        assert_eq!(long.subject.chars().count(), SUBJECT);
    }
}
