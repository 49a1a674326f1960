//! The report of a builder: numbers, and the problems by name.
//!
//! Owns the words for what is wrong with metadata. A great number of problems is counted, and the first ones are named.

use std::fmt;

/// The most problems that are named.
const NAMED: usize = 1000;

/// The most characters of a URI, a name or a reason in a problem.
const SHOWN: usize = 300;

/// Returns a text from a metadata file as it is shown to people: in one line, without what steers a terminal, and not
/// endless.
pub(crate) fn printable_text(text: &str) -> String {
    let mut shown = String::new();
    for letter in text.chars().take(SHOWN) {
        if letter.is_control() {
            shown.extend(letter.escape_default());
        } else {
            shown.push(letter);
        }
    }
    if text.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    shown
}

/// The result of a builder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BuildReport {
    /// The number of metadata files that were read.
    pub files: u64,
    /// The number of lines in the crawl logs and indexes of those files.
    pub lines: u64,
    /// The number of lines in the section by URL.
    pub captures: u64,
    /// The number of duplicates in crawl logs that led to their first captures.
    pub duplicates: u64,
    /// The number of responses in crawl logs of which no index has the record: those that were not written.
    pub without_record: u64,
    /// The number of problems.
    pub problem_count: u64,
    /// The first thousand problems.
    pub problems: Vec<BuildProblem>,
}

impl BuildReport {
    pub(crate) fn add_problem(&mut self, problem: BuildProblem) {
        self.problem_count += 1;
        if self.problems.len() < NAMED {
            self.problems.push(problem);
        }
    }
}

/// Something that makes the index lack captures. Texts from metadata files are cut to 300 characters, and their control
/// characters are escaped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BuildProblem {
    /// A metadata file that is damaged, or cannot be read to its end.
    Damage {
        /// The metadata file.
        file: String,
        /// The damage, and where it is.
        problem: String,
    },
    /// A metadata file without a crawl log or an index: no metadata file, or that of a crawl that fetched nothing.
    Empty {
        /// The metadata file.
        file: String,
    },
    /// A line that was left out.
    Line {
        /// The metadata file.
        file: String,
        /// The URI of the record.
        record: String,
        /// The offset of the record in the metadata file.
        offset: u64,
        /// The number of the line in the record, from 1.
        number: u64,
        /// The reason why the line was left out.
        problem: String,
    },
    /// A duplicate whose origin is in no metadata file that was given, so that it is not known whether it is a first
    /// capture.
    Dangling {
        /// The URI of the duplicate.
        uri: String,
        /// The origin that was not found, in words.
        origin: Option<String>,
    },
    /// A duplicate whose origins lead on without an end.
    Loop {
        /// The URI of the duplicate.
        uri: String,
    },
    /// A duplicate whose origin has another digest.
    Contradiction {
        /// The URI of the duplicate.
        uri: String,
        /// The archive file of the origin.
        file: String,
        /// The offset of the origin's record.
        offset: u64,
    },
    /// A capture whose line would be longer than [`MAX_LINE`](crate::MAX_LINE).
    LongLine {
        /// The URI of the capture.
        uri: String,
    },
}

impl fmt::Display for BuildProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Damage { file, problem } => write!(f, "{file}: {problem}"),
            Self::Empty { file } => write!(
                f,
                "{file}: holds no crawl log and no index of captures; name metadata files of crawls"
            ),
            Self::Line {
                file,
                record,
                offset,
                number,
                problem,
            } => write!(
                f,
                "{file}: offset {offset}: {record}: line {number} is left out: {problem}"
            ),
            Self::Dangling { uri, origin } => {
                write!(f, "{uri}: a duplicate is left out: ")?;
                match origin {
                    Some(origin) => write!(
                        f,
                        "no metadata file has its origin {origin}; name the metadata of that job, too"
                    ),
                    None => f.write_str("it leads to a revisit whose origin is not known"),
                }
            }
            Self::Loop { uri } => write!(
                f,
                "{uri}: a duplicate is left out: its origins lead on without an end"
            ),
            Self::Contradiction { uri, file, offset } => write!(
                f,
                "{uri}: a duplicate is left out: its origin {file}, offset {offset} has another digest"
            ),
            Self::LongLine { uri } => write!(
                f,
                "{uri}: is left out: its line would be longer than {} bytes",
                crate::MAX_LINE
            ),
        }
    }
}
