//! Commands, as NetarchiveSuite has them, and those of our own: what a path and its parameters ask for.
//!
//! Owns how parameters are read and what is too much. `returnURL` leads to a page of the proxy that changes nothing, or
//! it is ignored.

use std::collections::BTreeSet;

use archive_formats::date::{Fill, Stamp};
use url::{Url, form_urlencoded};

use crate::requested::CONTROL_HOSTS;

/// The most harvest jobs of one choice.
const MOST_JOBS: usize = 500;

/// The longest label, in characters.
const LONGEST_LABEL: usize = 200;

/// The most parameters that are read.
const MOST_PARAMETERS: usize = 1000;

/// A command to the proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// A question, which changes nothing.
    Ask(Question),
    /// A change of what is remembered of the client.
    Change(Change),
}

/// A question of a client, which changes nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Question {
    /// The page with the state and the forms.
    Home,
    /// The state in words.
    Status,
    /// The missing URLs.
    Recorded,
    /// The missing URLs as a list of seeds.
    Seeds,
    /// The certificate of the authority.
    Certificate,
    /// `getFile`, `getRecord`, `getMetadata`: what is stored.
    Stored,
}

/// A change of what the proxy remembers of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Missing URLs are recorded from now on.
    Start,
    /// Missing URLs are recorded no longer.
    Stop,
    /// The list of missing URLs is emptied.
    Clear,
    /// The harvest jobs that are looked at; without any, all.
    Index {
        /// The numbers of the jobs.
        jobs: BTreeSet<u64>,
        /// The name that the client gives to them.
        label: String,
    },
    /// The collection and the date that are looked at; empty for the defaults.
    ClientView {
        /// The collection that is looked at.
        collection: Option<String>,
        /// The date that is looked at.
        date: Option<Stamp>,
    },
}

impl Change {
    /// Returns the change, as a person is asked for it.
    pub const fn words(&self) -> &'static str {
        match self {
            Self::Start => "Record missing URLs from now on?",
            Self::Stop => "Stop recording missing URLs?",
            Self::Clear => "Clear the list of missing URLs?",
            Self::Index { .. } => "Look at other harvest jobs?",
            Self::ClientView { .. } => "Look at another collection or date?",
        }
    }
}

/// The reason why a command is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidCommand {
    /// A path that is no command.
    #[error("there is no command `{}`", .0.chars().take(80).collect::<String>().escape_debug())]
    Unknown(String),
    /// A job that is no number.
    #[error("`jobID` must be the number of a harvest job, and is `{}`", .0.escape_debug())]
    Job(String),
    /// Too many jobs.
    #[error("more than {MOST_JOBS} harvest jobs are named")]
    Jobs,
    /// Too many parameters.
    #[error("there are more than {MOST_PARAMETERS} parameters")]
    Parameters,
    /// Too long a label.
    #[error("`label` has more than {LONGEST_LABEL} characters")]
    Label,
    /// A date that no calendar has.
    #[error("`date` has 4 to 14 digits, such as 2020 or 20200131; {0}")]
    Date(String),
}

/// The parameters of a command, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandParameters(Vec<(String, String)>);

impl CommandParameters {
    /// Reads the query of a URL and the body of a form.
    ///
    /// # Errors
    ///
    /// Fails when there are too many.
    pub fn read_parameters(query: &str, form: &[u8]) -> Result<Self, InvalidCommand> {
        let all = form_urlencoded::parse(query.as_bytes()).chain(form_urlencoded::parse(form));
        let mut read = Vec::new();
        for (name, value) in all {
            if read.len() == MOST_PARAMETERS {
                return Err(InvalidCommand::Parameters);
            }
            read.push((name.into_owned(), value.into_owned()));
        }
        Ok(Self(read))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }

    fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.iter()
            .filter(move |(known, _)| *known == name)
            .map(|(_, value)| value)
    }

    /// Returns the first value of a name that says anything.
    fn first<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        self.all(name)
            .map(str::trim)
            .find(|value| !value.is_empty())
    }

    /// Returns the path that is shown after a command; `None` where no page of the proxy is named.
    pub fn return_path(&self) -> Option<&'static str> {
        let named = self.first("returnURL")?;
        let base = Url::parse("http://viewerproxy.invalid/").ok()?;
        let url = base.join(named).ok()?;
        let host = url.host_str()?.trim_end_matches('.');
        let is_own = CONTROL_HOSTS.contains(&host) && matches!(url.scheme(), "http" | "https");
        // Only paths that are known and change nothing.
        is_own.then(|| match url.path() {
            "/getStatus" => "/getStatus",
            "/getRecordedURIs" => "/getRecordedURIs",
            _ => "/",
        })
    }
}

impl Command {
    /// Reads a command.
    ///
    /// # Errors
    ///
    /// Fails with the error that the client gets.
    pub fn read_command(
        path: &str,
        parameters: &CommandParameters,
    ) -> Result<Self, InvalidCommand> {
        Ok(match path {
            "/" => Self::Ask(Question::Home),
            "/getStatus" => Self::Ask(Question::Status),
            "/getRecordedURIs" => Self::Ask(Question::Recorded),
            "/seeds.txt" => Self::Ask(Question::Seeds),
            "/ca.pem" => Self::Ask(Question::Certificate),
            "/getFile" | "/getRecord" | "/getMetadata" => Self::Ask(Question::Stored),
            "/startRecordingURIs" => Self::Change(Change::Start),
            "/stopRecordingURIs" => Self::Change(Change::Stop),
            "/clearRecordedURIs" => Self::Change(Change::Clear),
            "/changeIndex" => Self::Change(change_index(parameters)?),
            "/changeView" => Self::Change(change_view(parameters)?),
            _ => return Err(InvalidCommand::Unknown(path.to_owned())),
        })
    }
}

fn change_index(parameters: &CommandParameters) -> Result<Change, InvalidCommand> {
    let mut jobs = BTreeSet::new();
    let named = parameters.all("jobID");
    // People write several into one field of a form.
    let numbers = named.flat_map(|value| value.split([',', ';', ' ', '\t', '\r', '\n']));
    for number in numbers.filter(|number| !number.is_empty()) {
        let is_number = number.len() <= 18 && number.bytes().all(|byte| byte.is_ascii_digit());
        let invalid = || InvalidCommand::Job(number.chars().take(40).collect());
        let job = number.parse().ok().filter(|_| is_number);
        jobs.insert(job.ok_or_else(invalid)?);
        if jobs.len() > MOST_JOBS {
            return Err(InvalidCommand::Jobs);
        }
    }
    let label = parameters.first("label").unwrap_or_default();
    if label.chars().nth(LONGEST_LABEL).is_some() {
        return Err(InvalidCommand::Label);
    }
    let label = label.chars().filter(|c| !c.is_control()).collect();
    Ok(Change::Index { jobs, label })
}

fn change_view(parameters: &CommandParameters) -> Result<Change, InvalidCommand> {
    let date = match parameters.first("date") {
        None => None,
        Some(text) => {
            // A date as forms and people write it: 2020-01-31.
            let digits: String = text
                .chars()
                .filter(|c| !matches!(c, '-' | ':' | ' ' | 'T' | 'Z'))
                .collect();
            if digits.len() < 4 {
                return Err(InvalidCommand::Date("there are fewer".to_owned()));
            }
            let stamp = Stamp::from_query(&digits, Fill::Last);
            Some(stamp.map_err(|error| InvalidCommand::Date(error.to_string()))?)
        }
    };
    let collection = parameters.first("collection").map(str::to_owned);
    Ok(Change::ClientView { collection, date })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(target: &str) -> Result<Command, InvalidCommand> {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        Command::read_command(
            path,
            &CommandParameters::read_parameters(query, b"").unwrap(),
        )
    }

    /// Fails if a job is lost, or something that is no number passes for one.
    #[test]
    fn change_index_takes_repeated_job_numbers() {
        let index = |jobs: &[u64], label: &str| {
            Command::Change(Change::Index {
                jobs: jobs.iter().copied().collect(),
                label: label.to_owned(),
            })
        };
        for (query, expected) in [
            (
                "jobID=17&jobID=18&label=My+jobs",
                index(&[17, 18], "My jobs"),
            ),
            ("jobID=17,18;19+20", index(&[17, 18, 19, 20], "")),
            ("", index(&[], "")),
            ("jobID=&label=%0aa", index(&[], "a")),
        ] {
            assert_eq!(read(&format!("/changeIndex?{query}")).unwrap(), expected);
        }
        for query in [
            "jobID=x",
            "jobID=-1",
            "jobID=%2B1",
            "jobID=99999999999999999999",
        ] {
            let error = read(&format!("/changeIndex?{query}")).unwrap_err();
            assert!(matches!(error, InvalidCommand::Job(_)), "{query}: {error}");
        }
        let many: Vec<String> = (0..501).map(|job| format!("jobID={job}")).collect();
        let error = read(&format!("/changeIndex?{}", many.join("&"))).unwrap_err();
        assert_eq!(error, InvalidCommand::Jobs);
        let label = format!("/changeIndex?label={}", "x".repeat(201));
        assert_eq!(read(&label).unwrap_err(), InvalidCommand::Label);
        let endless = "a&".repeat(1001);
        assert!(CommandParameters::read_parameters(&endless, b"").is_err());
    }

    /// Fails if a date is read as another one, or an impossible one is taken.
    #[test]
    fn change_view_takes_dates() {
        for (text, stamp) in [
            ("2020", "20201231235959"),
            ("2020-01-31", "20200131235959"),
            ("20200131120000", "20200131120000"),
            ("2020-01-31T12%3A00%3A00Z", "20200131120000"),
        ] {
            let Ok(Command::Change(Change::ClientView { date, .. })) =
                read(&format!("/changeView?date={text}"))
            else {
                panic!("{text}");
            };
            assert_eq!(
                date.unwrap().to_string().get(..14),
                stamp.get(..14),
                "{text}"
            );
        }
        for text in ["1", "20201341", "yesterday", "2020013112000000000000"] {
            assert!(read(&format!("/changeView?date={text}")).is_err(), "{text}");
        }
        assert!(read("/changeview").is_err());
    }

    /// Fails if a command leads to an archived page, to the web, or on to another command.
    #[test]
    fn return_url_leads_to_own_pages_only() {
        for (named, expected) in [
            ("/", Some("/")),
            ("/getStatus", Some("/getStatus")),
            (
                "http://viewerproxy.invalid/getStatus?locale=da",
                Some("/getStatus"),
            ),
            ("http://netarchivesuite.viewerproxy.invalid/", Some("/")),
            ("/clearRecordedURIs", Some("/")),
            ("http://evil.example/", None),
            ("//evil.example/", None),
            ("http://viewerproxy.invalid@evil.example/", None),
            ("javascript:alert(1)", None),
            ("http://qa.example/QA-status.jsp", None),
            ("\\\\evil.example", None),
        ] {
            let form = form_urlencoded::Serializer::new(String::new())
                .append_pair("returnURL", named)
                .finish();
            let parameters = CommandParameters::read_parameters("", form.as_bytes()).unwrap();
            assert_eq!(parameters.return_path(), expected, "{named}");
        }
    }
}
