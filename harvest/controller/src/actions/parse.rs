//! The text of requests.
//!
//! Owns that a request is understood as a whole or refused as a whole, with the line of its first mistake. Empty lines
//! and those that begin with `#` say nothing.

use std::path::Path;

use archive_model::ByteSize;
use harvest_crawler::crawl::CrawlCommand;
use harvest_model::seed::parse_seeds;
use harvest_policy::account::QueueBudget;
use harvest_policy::rejections::RejectionRule;
use url::Url;

/// Returns the request that the name of a file is.
pub(super) fn parse_name(name: &str) -> Option<CrawlCommand> {
    match name {
        "pause" => Some(CrawlCommand::Pause),
        "resume" => Some(CrawlCommand::Resume),
        "terminate" => Some(CrawlCommand::Terminate),
        _ => None,
    }
}

/// A request as its file has it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ActionRequest {
    /// A command for the crawl.
    Command(CrawlCommand),
    /// Failures that are tried again, by rules.
    Retry(Vec<RejectionRule>),
    /// Keys of the order that change, as TOML.
    Change(String),
}

/// Returns the request in the lines of a file; the kind is said by its name.
pub(super) fn parse_lines(name: &str, bytes: &[u8]) -> Result<ActionRequest, String> {
    let extension = Path::new(name).extension();
    let extension = extension.and_then(|extension| extension.to_str());
    let text = || {
        std::str::from_utf8(bytes)
            .map_err(|error| format!("it is no UTF-8 text: {error}; write it again"))
    };
    let rules = || {
        let rules = each_line(text()?, |line| {
            line.parse::<RejectionRule>()
                .map_err(|error| error.to_string())
        })?;
        not_empty(rules, "rule")
    };
    let command = match extension {
        Some("seeds") => {
            let seeds = parse_seeds(text()?).map_err(|error| error.to_string())?;
            not_empty(seeds, "seed").map(CrawlCommand::AddSeeds)
        }
        Some("reject") => rules().map(CrawlCommand::Reject),
        Some("accept") => rules().map(CrawlCommand::Accept),
        Some("retry") => return rules().map(ActionRequest::Retry),
        Some("order") => return Ok(ActionRequest::Change(text()?.to_owned())),
        Some("free") => {
            let patterns = each_line(text()?, |line| Ok(line.to_owned()))?;
            not_empty(patterns, "pattern").map(CrawlCommand::Free)
        }
        Some("budget") => {
            let budgets = each_line(text()?, budget)?;
            not_empty(budgets, "budget").map(CrawlCommand::Budget)
        }
        _ => Err(
            "it is no request; name the file pause, resume, terminate, or NAME and .seeds, .reject, .accept, .free, .retry, \
             .budget or .order"
                .to_owned(),
        ),
    };
    command.map(ActionRequest::Command)
}

fn not_empty<T>(things: Vec<T>, what: &str) -> Result<Vec<T>, String> {
    if things.is_empty() {
        return Err(format!("it has no {what} in it; write one a line"));
    }
    Ok(things)
}

fn each_line<T>(text: &str, parse: impl Fn(&str) -> Result<T, String>) -> Result<Vec<T>, String> {
    let mut parsed = Vec::new();
    for (line, number) in text.lines().map(str::trim).zip(1_u64..) {
        if !line.is_empty() && !line.starts_with('#') {
            let one = parse(line).map_err(|why| format!("line {number}: {why}"))?;
            parsed.push(one);
        }
    }
    Ok(parsed)
}

/// Returns a line `QUEUE OBJECTS BYTES`.
fn budget(line: &str) -> Result<(String, QueueBudget), String> {
    let wrong = || {
        format!(
            "`{line}` is no budget; write a domain, a number of objects and a number of bytes, such as `example.org 5000 -1` or \
             `example.org -1 2 GB`; -1 is no limit"
        )
    };
    let mut words = line.split_whitespace();
    let (Some(name), Some(objects)) = (words.next(), words.next()) else {
        return Err(wrong());
    };
    let bytes = words.collect::<Vec<_>>().join(" ");
    let objects = match objects {
        "-1" => None,
        number => Some(number.parse().ok().ok_or_else(wrong)?),
    };
    let bytes = match (bytes.as_str(), bytes.parse::<u64>()) {
        ("", _) => return Err(wrong()),
        ("-1", _) => None,
        (_, Ok(bytes)) => Some(bytes),
        (text, Err(_)) => {
            let size: ByteSize = text.parse().ok().ok_or_else(wrong)?;
            Some(size.bytes())
        }
    };
    Ok((
        queue_name(name).ok_or_else(wrong)?,
        QueueBudget { objects, bytes },
    ))
}

/// Returns the name of a queue in the form that URIs have it: lower case, international names as `xn--`.
fn queue_name(name: &str) -> Option<String> {
    let url = Url::parse(&format!("http://{name}/")).ok()?;
    let is_host = url.path() == "/"
        && url.query().is_none()
        && url.fragment().is_none()
        && url.port().is_none()
        && url.username().is_empty()
        && !name.contains('@');
    let host = url.host_str().filter(|_| is_host)?;
    Some(host.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget_of(line: &str) -> Option<(String, Option<u64>, Option<u64>)> {
        let Ok(ActionRequest::Command(CrawlCommand::Budget(budgets))) =
            parse_lines("a.budget", line.as_bytes())
        else {
            return None;
        };
        let (name, budget) = budgets.into_iter().next()?;
        Some((name, budget.objects, budget.bytes))
    }

    /// Fails if a budget is read as another one, or a slip of the pen passes for one.
    #[test]
    fn budget_is_three_words() {
        let name = "example.org".to_owned();
        for (line, expected) in [
            (
                "example.org 5000 -1",
                Some((name.clone(), Some(5000), None)),
            ),
            (
                " Example.ORG\t-1 2 GB\n",
                Some((name.clone(), None, Some(2_000_000_000))),
            ),
            ("# all\n\nexample.org 0 17", Some((name, Some(0), Some(17)))),
            (
                "blåbær.dk 1 1",
                Some(("xn--blbr-roah.dk".to_owned(), Some(1), Some(1))),
            ),
            ("example.org 5000", None),
            ("example.org -2 5", None),
            ("example.org many 5", None),
            ("example.org 5 some", None),
            ("example.org/path 5 5", None),
            ("u@example.org 5 5", None),
            ("", None),
        ] {
            assert_eq!(budget_of(line), expected, "{line}");
        }
    }

    /// Fails if a part of a request is taken although another part is wrong, or the mistake is not named.
    #[test]
    fn wrong_request_is_refused_as_a_whole() {
        for (name, text, named) in [
            ("a.seeds", &b"http://a.dk/\nftp://b.dk/"[..], "line 2"),
            ("a.seeds", b"# nothing\n", "no seed"),
            ("a.reject", b"http://a.dk/\n(open\n", "line 2"),
            ("a.reject", b"example.dk\n", "would match no URI"),
            ("a.free", b"", "no pattern"),
            ("a.budget", b"a.dk 1 1\na.dk\n", "line 2"),
            ("a.seeds", b"\xff\xfe", "UTF-8"),
            ("pause.txt", b"", "no request"),
            ("Pause", b"", "no request"),
        ] {
            let why = parse_lines(name, text).unwrap_err();
            assert!(why.contains(named), "{name}: {why}");
        }
        assert_eq!(parse_name("pause"), Some(CrawlCommand::Pause));
        assert_eq!(parse_name("Pause"), None);
    }
}
