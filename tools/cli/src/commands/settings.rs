//! `holdfast settings`: looks at a settings file without starting anything.
//!
//! The sections of a file tell what it is for. The environment and `--set` stand over it as they do when the part
//! starts.

mod documentation;

use std::path::{Path, PathBuf};

use archive_client::client_file::read_trust_file;
use archive_client::{ClientFile, ClientIdentity, ClientLimits, Endpoints};
use archive_daemon::Clock;
use archive_daemon::settings::{self, Section, SettingsError, SettingsForm, Sources};
use archive_part::{PartSettings, list_faults};
use clap::{Args, Subcommand};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tools_terminal::context::CommandContext;
use tools_terminal::exit::{Exit, Failure};

use self::documentation::document_settings;

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
/// Nothing is started, and no port is tried. The certificates, keys and trust files that the settings name are read as
/// at a start. The exit code is 3 if anything is wrong.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  holdfast settings check holdfast-data/settings/*.toml
  holdfast settings check holdfast-data/client.toml --json")]
pub(crate) struct Check {
    /// Leave out the files that the settings name, as on another machine
    #[arg(long)]
    without_files: bool,
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

/// A kind of settings file.
struct FileKind {
    /// The verb that runs the part, or `client`.
    name: &'static str,
    form: SettingsForm,
    list_problems: fn(&Sources, Depth) -> Result<Vec<String>, SettingsError>,
    print: fn(&Sources) -> Result<String, Failure>,
}

/// What is checked of a settings file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Depth {
    /// What is in it.
    Values,
    /// The files that it names, too.
    Files,
}

/// All kinds. A new part has its line here.
const KINDS: [FileKind; 7] = [
    of_part::<archive_repository::Settings>(),
    of_part::<archive_monitor::Settings>(),
    of_part::<archive_bitarchive::Settings>(),
    of_part::<archive_bitarchive::checksum::Settings>(),
    of_part::<index_server::Settings>(),
    of_part::<viewer_web::Settings>(),
    FileKind {
        name: "client",
        form: CLIENT,
        list_problems: list_client_problems,
        print: printed::<ClientFile>,
    },
];

const CLIENT: SettingsForm = SettingsForm {
    section: "endpoints",
    sections: &[
        Section::section_of::<ClientFile>(""),
        Section::section_of::<Endpoints>("endpoints"),
        Section::section_of::<ClientLimits>("limits"),
        Section::section_of::<ClientIdentity>("identity"),
    ],
    example: r#"
authorities = "pki/authorities.pem"
trust = "trust.json"
certificate = "pki/default.pem"
key = "pki/default.key"

[endpoints]
repository = "127.0.0.1:7401"

[[identity]]
role = "custodian"
name = "custodian-1"
certificate = "pki/custodian-1.pem"
key = "pki/custodian-1.key"
"#,
};

const fn of_part<S: PartSettings>() -> FileKind {
    FileKind {
        name: S::PART,
        form: S::FORM,
        list_problems: list_part_problems::<S>,
        print: printed::<S>,
    }
}

impl FileKind {
    fn from_sections(path: &Path) -> Result<&'static Self, Failure> {
        static ALL: [FileKind; 7] = KINDS;
        let names = settings::list_top_names(path)?;
        let fits = |kind: &&Self| names.iter().any(|name| name == kind.form.section);
        let fitting: Vec<&Self> = ALL.iter().filter(fits).collect();
        if let [kind] = fitting.as_slice() {
            return Ok(kind);
        }
        let sections = ALL
            .each_ref()
            .map(|kind| format!("[{}]", kind.form.section));
        let has = if fitting.is_empty() {
            "none"
        } else {
            "several"
        };
        Err(Failure::new(
            Exit::Settings,
            format!(
                "{}: it has {has} of the sections that say what it is for: {}; a process has one file",
                path.display(),
                sections.join(", ")
            ),
        ))
    }

    /// Returns the sources of the settings. Clients take nothing from `HOLDFAST__…`.
    fn sources(&self, path: &Path, set: &[String]) -> Result<Sources, SettingsError> {
        let environment = match self.name {
            "client" => Vec::new(),
            _ => settings::read_environment()?,
        };
        Ok(Sources {
            file: Some(path.to_owned()),
            environment,
            set: set.to_vec(),
        })
    }
}

/// Returns what is wrong with the settings of a part: what would prevent its start, and what is hardly meant.
fn list_part_problems<S: PartSettings>(
    sources: &Sources,
    depth: Depth,
) -> Result<Vec<String>, SettingsError> {
    let found = settings::list_problems::<S>(&S::FORM, sources)?;
    if !found.is_empty() {
        return Ok(found.iter().map(ToString::to_string).collect());
    }
    let settings: S = settings::load_settings(sources)?;
    let problems = match depth {
        Depth::Values => {
            let invalid = settings.check_values().err();
            invalid.map(|error| error.to_string()).into_iter().collect()
        }
        Depth::Files => {
            let faults = list_faults(&settings, Clock::system_clock().now());
            let faults = faults.iter().map(ToString::to_string);
            faults.chain(settings.list_doubts()).collect()
        }
    };
    Ok(about_file(sources, problems))
}

fn list_client_problems(sources: &Sources, depth: Depth) -> Result<Vec<String>, SettingsError> {
    let found = settings::list_problems::<ClientFile>(&CLIENT, sources)?;
    if !found.is_empty() {
        return Ok(found.iter().map(ToString::to_string).collect());
    }
    if depth == Depth::Values {
        return Ok(Vec::new());
    }
    let client: ClientFile = settings::load_settings(sources)?;
    let file = sources.file.as_deref().unwrap_or(Path::new(""));
    let client = client.within_directory(file.parent().unwrap_or(Path::new("")));
    let now = Clock::system_clock().now().into();
    let credentials = client.load_credentials(None, now).err();
    let trust = read_trust_file(&client.trust).err();
    let problems = [credentials, trust].into_iter().flatten();
    let problems = problems.map(|error| error.to_string()).collect();
    Ok(about_file(sources, problems))
}

/// Begins each problem with the file that it is in.
fn about_file(sources: &Sources, problems: Vec<String>) -> Vec<String> {
    let file = sources.file.as_deref().unwrap_or(Path::new("")).display();
    let about = |problem| format!("{file}: {problem}");
    problems.into_iter().map(about).collect()
}

fn printed<T: DeserializeOwned + Serialize>(sources: &Sources) -> Result<String, Failure> {
    let settings: T = settings::load_settings(sources)?;
    settings::print_settings(&settings).map_err(|error| Failure::because_failed(error.to_string()))
}

/// The result of checking one file.
#[derive(Debug, Serialize)]
struct Verdict<'a> {
    #[serde(serialize_with = "tools_terminal::shown_path::one")]
    file: &'a Path,
    #[serde(skip_serializing_if = "Option::is_none")]
    part: Option<&'static str>,
    problems: Vec<String>,
}

impl Settings {
    pub(crate) fn run(self, context: &CommandContext) -> Result<Exit, Failure> {
        match self {
            Self::Check(check) => check.run(context),
            Self::Print(print) => print.run(context),
        }
    }
}

impl Check {
    fn run(&self, context: &CommandContext) -> Result<Exit, Failure> {
        let mut verdicts = Vec::new();
        let mut exits = Vec::new();
        for file in &self.files {
            let depth = if self.without_files {
                Depth::Values
            } else {
                Depth::Files
            };
            let verdict = match check_file(file, &context.global.set, depth) {
                Ok((part, problems)) => Verdict {
                    file,
                    part,
                    problems,
                },
                Err(failure) => Verdict {
                    file,
                    part: None,
                    problems: vec![failure.message],
                },
            };
            exits.push(if verdict.problems.is_empty() {
                Exit::Done
            } else {
                Exit::Settings
            });
            verdicts.push(verdict);
        }
        if context.output.is_json() {
            let document = serde_json::json!({ "files": verdicts });
            context.output.write_document(&document)?;
        } else {
            for verdict in &verdicts {
                if verdict.problems.is_empty() {
                    let shown = verdict.file.display();
                    context.output.write_line(&format!("{shown}: good"))?;
                }
                for problem in &verdict.problems {
                    context.output.write_line(problem)?;
                }
            }
        }
        Ok(Exit::of_all(exits))
    }
}

/// Returns the name of the kind of file, where that can be told, and what is wrong with the file.
fn check_file(
    file: &Path,
    set: &[String],
    depth: Depth,
) -> Result<(Option<&'static str>, Vec<String>), Failure> {
    // Of a file that is no TOML nothing else can be said.
    let torn = settings::list_torn_lines(file)?;
    if !torn.is_empty() {
        return Ok((None, torn.iter().map(ToString::to_string).collect()));
    }
    let kind = FileKind::from_sections(file)?;
    let sources = kind.sources(file, set)?;
    Ok((Some(kind.name), (kind.list_problems)(&sources, depth)?))
}

impl Print {
    fn run(&self, context: &CommandContext) -> Result<Exit, Failure> {
        let kind = FileKind::from_sections(&self.file)?;
        let sources = kind.sources(&self.file, &context.global.set)?;
        let printed = (kind.print)(&sources)?;
        let text = if self.documented {
            document_settings(&kind.form, &printed)
        } else {
            printed
        };
        if context.output.is_json() {
            let document = serde_json::json!({ "part": kind.name, "toml": text });
            context.output.write_document(&document)?;
        } else {
            context.output.write_line(text.trim_end())?;
        }
        Ok(Exit::Done)
    }
}
