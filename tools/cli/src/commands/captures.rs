//! `holdfast captures`: where and when a URL was captured.

mod collection;

use std::io::Write;

use archive_formats::cdx::query::{
    CaptureQuery, KeyMatch, Limit, MAX_LAST, MatchKind, Order, TimeSpan,
};
use archive_formats::cdx::{Capture, Format};
use archive_formats::date::{Fill, Stamp};
use clap::Args;
use index_client::CaptureSearch as _;

use collection::Question;
use tools_terminal::context::CommandContext;
use tools_terminal::exit::{Exit, Failure};
use tools_terminal::output::tell_user;
use tools_terminal::session::Session;

/// Show where and when a URL was captured
///
/// Asks the index that the client file names. The answer includes captures that the rules of a viewer hide, unless
/// --collection is given. Prints one line for each capture: its time, status and media type, the place of its record,
/// and the URL; oldest first, or with --closest nearest first. With --json, prints one document on each line, in which
/// `set` names the import of a capture. Needs the role reader. The exit code is 0 also if there are no captures.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  holdfast captures http://www.example.org/
  holdfast captures example.org --match domain --from 2019 --to 201906
  holdfast captures http://www.example.org/ --closest 20200101 --limit 1
  holdfast captures http://www.example.org/ --collection all
  holdfast captures http://www.example.org/a/ --match prefix --json | jq -r .url")]
pub(crate) struct Captures {
    /// The URL, taken literally: `*` has no special meaning
    #[arg(value_name = "URL")]
    url: String,
    /// The URLs to find: the URL itself (`exact`), all that begin with it (`prefix`), all of its host (`host`), all of
    /// its host and the hosts below it (`domain`), or all that sort behind it (`range`)
    #[arg(long = "match", value_name = "HOW", default_value = "exact", value_parser = ["exact", "prefix", "host", "domain", "range"])]
    matching: String,
    /// Only captures from this time on: 1 to 14 digits, such as 2016 or 20161231235959
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    /// Only captures up to this time, included as a whole: 2016 ends with its last second
    #[arg(long, value_name = "TIME")]
    to: Option<String>,
    /// Print the nearest to this time first; with --match exact only
    #[arg(long, value_name = "TIME")]
    closest: Option<String>,
    /// Most captures to print; a negative number prints the last ones [default: all]
    #[arg(long, value_name = "COUNT", allow_negative_numbers = true)]
    limit: Option<i64>,
    /// Only captures that the viewer shows to everybody in this collection [default: every capture of the index]
    #[arg(long, value_name = "NAME")]
    collection: Option<String>,
}

impl Captures {
    pub(crate) async fn run(self, context: &CommandContext) -> Result<Exit, Failure> {
        let query = self.query()?;
        let session = Session::open(&context.global)?;
        let mut out = context.output.writer();
        let mut count = 0_u64;
        let mut show = |capture: Capture| {
            count += 1;
            let line = if context.output.is_json() {
                document(&capture).to_string()
            } else {
                line(&capture)
            };
            writeln!(out, "{line}").map_err(|error| Failure::output_failed(&error))
        };
        if let Some(collection) = &self.collection {
            let question = Question {
                listener: session.replay()?,
                collection,
                parameters: &self.parameters(),
                patience: session.patience(),
            };
            question.ask_collection(show)?;
        } else {
            let mut captures = session.index()?.query(&query).await?;
            while let Some(capture) = captures.next().await? {
                show(capture)?;
            }
        }
        out.flush()
            .map_err(|error| Failure::output_failed(&error))?;
        if count == 0 {
            let whose = match &self.collection {
                Some(collection) => format!("collection {collection}"),
                None => "the index".to_owned(),
            };
            tell_user(&format!("{whose} has no such capture of {}", self.url));
        }
        Ok(Exit::Done)
    }

    /// Gives the parts of the question by the names that CDX servers have.
    fn parameters(&self) -> Vec<(&str, String)> {
        let mut all = vec![
            ("url", self.url.clone()),
            ("matchType", self.matching.clone()),
        ];
        let times = [("from", &self.from), ("to", &self.to)];
        all.extend(
            times
                .map(|(name, time)| Some((name, time.clone()?)))
                .into_iter()
                .flatten(),
        );
        if let Some(closest) = &self.closest {
            all.push(("closest", closest.clone()));
            all.push(("sort", "closest".to_owned()));
        }
        all.extend(self.limit.map(|limit| ("limit", limit.to_string())));
        all
    }

    fn query(&self) -> Result<CaptureQuery, Failure> {
        if self.collection.is_some() && self.limit.is_some_and(|limit| limit <= 0) {
            let said = "--limit must be more than 0 with --collection";
            return Err(Failure::wrong_usage(said));
        }
        let kind: MatchKind = self
            .matching
            .parse()
            .map_err(|error| Failure::wrong_usage(format!("--match: {error}")))?;
        let keys = KeyMatch::for_url(kind, &self.url).map_err(|error| {
            Failure::wrong_usage(format!(
                "{}: {error}; use --match exact or prefix",
                self.url
            ))
        })?;
        let wrong = |option: &str, text: &str, error: &dyn std::fmt::Display| {
            Failure::wrong_usage(format!(
                "{option} {text}: {error}; write 1 to 14 digits, as in 2016 or 20161231235959"
            ))
        };
        let text = |option: &Option<String>| option.clone().unwrap_or_default();
        let from = text(&self.from);
        let to = text(&self.to);
        for (option, text) in [("--from", &self.from), ("--to", &self.to)] {
            if let Some(text) = text
                && let Err(error) = Stamp::from_query(text, Fill::First)
            {
                return Err(wrong(option, text, &error));
            }
        }
        let span = TimeSpan::parse(&from, &to).map_err(|error| wrong("--to", &to, &error))?;
        let order = match &self.closest {
            None => Order::Ascending,
            Some(text) => Order::Closest(
                Stamp::from_query(text, Fill::First)
                    .map_err(|error| wrong("--closest", text, &error))?,
            ),
        };
        let query = CaptureQuery {
            span,
            order,
            limit: self.limit.map(|limit| match u64::try_from(limit) {
                Ok(first) => Limit::First(first),
                Err(_negative) => Limit::Last(limit.unsigned_abs()),
            }),
            ..CaptureQuery::new(keys)
        };
        query.validate_query().map_err(|error| {
            Failure::wrong_usage(format!("{error} (--limit not below -{MAX_LAST})"))
        })?;
        Ok(query)
    }
}

/// Returns the line of a capture for people.
fn line(capture: &Capture) -> String {
    let or_dash = |text: Option<&str>| text.unwrap_or("-").to_owned();
    let status = capture
        .status
        .map_or_else(|| "-".to_owned(), |status| status.to_string());
    let place = match (&capture.file, capture.offset) {
        (Some(file), Some(offset)) => format!("{file} {offset}"),
        (Some(file), None) => format!("{file} -"),
        (None, _) => "- -".to_owned(),
    };
    format!(
        "{}  {status:>3}  {:<24}  {place}  {}",
        capture.timestamp,
        or_dash(capture.mime.as_deref()),
        or_dash(capture.original.as_deref().or(Some(&capture.key)))
    )
}

/// Returns the document of a capture for programs: the fields of CDXJ, and before them its key and time.
fn document(capture: &Capture) -> serde_json::Value {
    let line = Format::Cdxj.write_line(capture);
    let fields = line.splitn(3, ' ').nth(2).unwrap_or("{}");
    let fields: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(fields).unwrap_or_default();
    let mut document = serde_json::Map::new();
    document.insert("urlkey".to_owned(), capture.key.clone().into());
    document.insert("timestamp".to_owned(), capture.timestamp.to_string().into());
    document.extend(fields);
    document.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verb(url: &str) -> Captures {
        Captures {
            url: url.to_owned(),
            matching: "exact".to_owned(),
            from: None,
            to: None,
            closest: None,
            limit: None,
            collection: None,
        }
    }

    fn text(text: &str) -> String {
        text.to_owned()
    }

    /// Fails if a faulty argument is asked of the index, or the message does not name it.
    #[test]
    fn faulty_arguments_are_named() {
        let refused = |verb: Captures, said: &str| {
            let failure = verb.query().unwrap_err();
            assert_eq!(failure.exit, Exit::Usage);
            assert!(failure.message.contains(said), "{said}: {failure}");
        };
        for time in ["", "x", "20161301", "20160230", "123456789012345", "-1"] {
            let with = |change: &dyn Fn(&mut Captures)| {
                let mut verb = verb("http://a.example/");
                change(&mut verb);
                verb
            };
            refused(with(&|verb| verb.from = Some(text(time))), "--from");
            refused(with(&|verb| verb.to = Some(text(time))), "--to");
            refused(with(&|verb| verb.closest = Some(text(time))), "--closest");
        }
        let host = Captures {
            matching: "host".to_owned(),
            ..verb("dns:a.example")
        };
        refused(host, "no host");
        let many = Captures {
            matching: "prefix".to_owned(),
            closest: Some(text("2016")),
            ..verb("http://a.example/")
        };
        refused(many, "exact URL");
        let last = Captures {
            limit: Some(i64::MIN),
            ..verb("http://a.example/")
        };
        refused(last, "--limit");
    }

    /// Fails if two lines cannot be distinguished, or the document lacks a field.
    #[test]
    fn captures_are_shown_with_their_place() {
        let mut capture = Capture::new("example,a)/", "20200101000000".parse().unwrap());
        assert_eq!(
            line(&capture),
            format!("20200101000000    -  {:<24}  - -  example,a)/", "-")
        );
        capture.original = Some(text("http://a.example/"));
        capture.mime = Some(text("text/html"));
        capture.status = Some(200);
        capture.file = Some(text("a.warc.gz"));
        capture.offset = Some(7);
        assert_eq!(
            line(&capture),
            format!(
                "20200101000000  200  {:<24}  a.warc.gz 7  http://a.example/",
                "text/html"
            )
        );
        let document = document(&capture);
        assert_eq!(document["urlkey"], "example,a)/");
        assert_eq!(document["filename"], "a.warc.gz");
        assert_eq!(document["url"], "http://a.example/");
    }
}
