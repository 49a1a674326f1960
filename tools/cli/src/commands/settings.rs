//! `holdfast settings`: looks at a settings file without starting anything.
//!
//! The sections of a file tell what it is for. The environment and `--set` stand over it as they do when the part
//! starts.

mod documentation;

use std::path::{Path, PathBuf};

use archive_client::ClientFile;
use archive_daemon::settings::{self, SettingsError, Sources};
use clap::{Args, Subcommand};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tools_terminal::context::Context;
use tools_terminal::exit::{Exit, Failure};

use self::documentation::document;

/// Check settings files, and print the settings in force
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  holdfast settings check holdfast-data/settings/repository.toml
  holdfast settings print --documented holdfast-data/settings/repository.toml")]
pub(crate) enum Settings {
    Check(Check),
    Print(Print),
}

/// Report everything that is wrong with settings files, with the lines
///
/// Nothing is started, and no path or port in the files is tried. The exit code is 3 if anything is wrong.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  holdfast settings check holdfast-data/settings/*.toml
  holdfast settings check holdfast-data/client.toml --json")]
pub(crate) struct Check {
    /// Settings files of parts, or client files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// Print all settings that are in force, with the defaults
///
/// The output is a settings file with the same meaning. The exit code is 3 if the settings are wrong.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  holdfast settings print holdfast-data/settings/monitor-one.toml
  holdfast settings print --documented holdfast-data/settings/repository.toml")]
pub(crate) struct Print {
    /// Explain each key in a comment above it, and list the keys that are not set
    #[arg(long)]
    documented: bool,
    /// The settings file of a part, or a client file
    file: PathBuf,
}

/// The purpose of a settings file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    Repository,
    Monitor,
    Bitarchive,
    ChecksumReplica,
    Index,
    Viewer,
    Client,
}

impl Kind {
    /// Each, and the section that only it has.
    const ALL: [(Self, &'static str); 7] = [
        (Self::Repository, "repository"),
        (Self::Monitor, "monitor"),
        (Self::Bitarchive, "bitarchive"),
        (Self::ChecksumReplica, "checksum_replica"),
        (Self::Index, "index"),
        (Self::Viewer, "viewer"),
        (Self::Client, "endpoints"),
    ];

    fn from_sections(path: &Path) -> Result<Self, Failure> {
        let sections = settings::sections(path)?;
        let fits = |name: &str| sections.iter().any(|section| section == name);
        let kinds: Vec<Self> = Self::ALL
            .into_iter()
            .filter(|(_, section)| fits(section))
            .map(|(kind, _)| kind)
            .collect();
        match kinds.as_slice() {
            [kind] => Ok(*kind),
            found => {
                let names = Self::ALL.map(|(_, section)| format!("[{section}]"));
                let shown = path.display();
                let names = names.join(", ");
                let has = if found.is_empty() { "none" } else { "several" };
                Err(Failure::new(
                    Exit::Settings,
                    format!(
                        "{shown}: it has {has} of the sections that say what it is for: {names}; a process has one file"
                    ),
                ))
            }
        }
    }

    /// Returns the sources of the settings. Clients take nothing from `HOLDFAST__…`.
    fn sources(self, path: &Path, set: &[String]) -> Result<Sources, SettingsError> {
        let environment = match self {
            Self::Client => Vec::new(),
            _ => settings::environment()?,
        };
        Ok(Sources {
            file: Some(path.to_owned()),
            environment,
            set: set.to_vec(),
        })
    }

    /// Returns every problem of the settings, those included that only show between values.
    fn problems(self, sources: &Sources) -> Result<Vec<String>, SettingsError> {
        match self {
            Self::Repository => {
                looked_through(sources, |settings: &archive_repository::Settings| {
                    settings.check().err().map(|error| error.to_string())
                })
            }
            Self::Monitor => looked_through(sources, |settings: &archive_monitor::Settings| {
                let checked = settings.monitor.check();
                checked.err().map(|error| error.to_string())
            }),
            Self::Bitarchive => {
                looked_through(sources, |settings: &archive_bitarchive::Settings| {
                    let wrong = settings.check().err().map(|error| error.to_string());
                    wrong.or_else(|| unlisted_volumes(settings))
                })
            }
            Self::ChecksumReplica => looked_through(
                sources,
                |settings: &archive_bitarchive::checksum::Settings| {
                    settings.check().err().map(|error| error.to_string())
                },
            ),
            Self::Index => looked_through(sources, |settings: &index_server::Settings| {
                let checked = settings.index.check();
                checked.err().map(|error| error.to_string())
            }),
            Self::Viewer => looked_through(sources, |settings: &viewer_web::Settings| {
                settings.check().err().map(|error| error.to_string())
            }),
            Self::Client => looked_through(sources, |_: &ClientFile| None),
        }
    }

    /// Returns the settings as TOML.
    fn printed(self, sources: &Sources) -> Result<String, Failure> {
        match self {
            Self::Repository => printed::<archive_repository::Settings>(sources),
            Self::Monitor => printed::<archive_monitor::Settings>(sources),
            Self::Bitarchive => printed::<archive_bitarchive::Settings>(sources),
            Self::ChecksumReplica => printed::<archive_bitarchive::checksum::Settings>(sources),
            Self::Index => printed::<index_server::Settings>(sources),
            Self::Viewer => printed::<viewer_web::Settings>(sources),
            Self::Client => printed::<ClientFile>(sources),
        }
    }
}

fn looked_through<T: DeserializeOwned>(
    sources: &Sources,
    check: impl Fn(&T) -> Option<String>,
) -> Result<Vec<String>, SettingsError> {
    let found = settings::problems::<T>(sources)?;
    if !found.is_empty() {
        return Ok(found.iter().map(ToString::to_string).collect());
    }
    let shown = sources.file.as_deref().unwrap_or(Path::new("")).display();
    let wrong = check(&settings::load::<T>(sources)?);
    Ok(wrong
        .map(|error| format!("{shown}: {error}"))
        .into_iter()
        .collect())
}

/// Returns the volumes that a node goes on filling though its settings no longer name them, as far as its data are
/// here.
fn unlisted_volumes(settings: &archive_bitarchive::Settings) -> Option<String> {
    let own = &settings.bitarchive;
    match archive_bitarchive::volumes::unlisted(&own.data, &own.volumes) {
        Ok(unlisted) if unlisted.is_empty() => None,
        Ok(unlisted) => {
            let paths = unlisted
                .iter()
                .map(|(id, path)| format!("{id} at {}", path.display()));
            Some(format!(
                "bitarchive.volumes: the node knows volumes that it no longer names, and goes on filling them: {}; drain \
                 them or make them read-only, or name them again",
                paths.collect::<Vec<_>>().join(", ")
            ))
        }
        Err(error) => Some(error.to_string()),
    }
}

fn printed<T: DeserializeOwned + Serialize>(sources: &Sources) -> Result<String, Failure> {
    let settings: T = settings::load(sources)?;
    settings::print(&settings).map_err(|error| Failure::failed(error.to_string()))
}

/// The result of checking one file.
#[derive(Debug, Serialize)]
struct Verdict<'a> {
    #[serde(serialize_with = "tools_terminal::shown_path::one")]
    file: &'a Path,
    #[serde(skip_serializing_if = "Option::is_none")]
    part: Option<Kind>,
    problems: Vec<String>,
}

impl Settings {
    pub(crate) fn run(self, context: &Context) -> Result<Exit, Failure> {
        match self {
            Self::Check(check) => check.run(context),
            Self::Print(print) => print.run(context),
        }
    }
}

impl Check {
    fn run(&self, context: &Context) -> Result<Exit, Failure> {
        let mut verdicts = Vec::new();
        let mut exits = Vec::new();
        for file in &self.files {
            let (part, problems, exit) = match looked_at(file, &context.global.set) {
                Ok((kind, problems)) if problems.is_empty() => (kind, problems, Exit::Done),
                Ok((kind, problems)) => (kind, problems, Exit::Settings),
                Err(failure) => (None, vec![failure.message], failure.exit),
            };
            exits.push(exit);
            verdicts.push(Verdict {
                file,
                part,
                problems,
            });
        }
        if context.output.is_json() {
            let document = serde_json::json!({ "files": verdicts });
            context.output.document(&document)?;
        } else {
            for verdict in &verdicts {
                if verdict.problems.is_empty() {
                    let shown = verdict.file.display();
                    context.output.line(&format!("{shown}: good"))?;
                }
                for problem in &verdict.problems {
                    context.output.line(problem)?;
                }
            }
        }
        Ok(Exit::of_all(exits))
    }
}

fn looked_at(file: &Path, set: &[String]) -> Result<(Option<Kind>, Vec<String>), Failure> {
    // Of a file that is no TOML nothing else can be said.
    let alone = Sources {
        file: Some(file.to_owned()),
        ..Sources::default()
    };
    let torn = looked_through(&alone, |_: &serde_json::Value| None)?;
    if !torn.is_empty() {
        return Ok((None, torn));
    }
    let kind = Kind::from_sections(file)?;
    let sources = kind.sources(file, set)?;
    Ok((Some(kind), kind.problems(&sources)?))
}

impl Print {
    fn run(&self, context: &Context) -> Result<Exit, Failure> {
        let kind = Kind::from_sections(&self.file)?;
        let sources = kind.sources(&self.file, &context.global.set)?;
        let printed = kind.printed(&sources)?;
        let text = if self.documented {
            document(kind, &printed)
        } else {
            printed
        };
        if context.output.is_json() {
            let document = serde_json::json!({ "part": kind, "toml": text });
            context.output.document(&document)?;
        } else {
            context.output.line(text.trim_end())?;
        }
        Ok(Exit::Done)
    }
}
