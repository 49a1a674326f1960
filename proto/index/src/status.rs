//! The status of an index, in the nouns that its users and the wire share.

use archive_model::FileName;
use archive_rpc::InvalidMessage;
use jiff::Timestamp;
use serde::Serialize;

use crate::fields::{self, parse_field};
use crate::sets::SetName;
use crate::wire;
use crate::wire::status_response as message;

/// The most parked files of one answer.
pub const MOST_PARKED: usize = 1000;

/// The way in which the index follows the archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FollowState {
    /// The archive has not answered since the index started.
    Starting,
    /// The index compares a full listing with what it has.
    Listing,
    /// The index takes changes as they come.
    Following,
    /// The archive does not answer.
    Waiting,
}

impl FollowState {
    /// Returns the state in one word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Listing => "listing",
            Self::Following => "following",
            Self::Waiting => "waiting",
        }
    }
}

/// The status of an index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct IndexStatus {
    /// The way in which the index follows the archive.
    pub state: FollowState,
    /// The reason why the index does not follow the archive, or not yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// The number of the last change of the archive that was taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<u64>,
    /// The number of captures, those of sets included.
    pub captures: u64,
    /// The number of files whose captures are in the index.
    pub indexed: u64,
    /// The number of files that wait to be read, or are being read.
    pub behind: u64,
    /// The number of files that are not tried any more.
    pub parked_files: u64,
    /// The imported sets.
    pub sets: Vec<SetStatus>,
    /// The sets that were lost with a damaged database, and were not imported again.
    pub lost_sets: Vec<SetName>,
    /// Parked files, sorted by name; at most [`MOST_PARKED`].
    pub parked: Vec<ParkedFile>,
    /// The last file that was read again and compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comparison: Option<Comparison>,
    /// The number of files that were compared since the start.
    pub compared: u64,
    /// The number of compared files that differed.
    pub differed: u64,
    /// The reason why the database of captures was begun anew at the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rebuilt: Option<String>,
    /// The version of the program.
    pub version: String,
}

/// An imported set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SetStatus {
    /// The name of the set.
    pub name: SetName,
    /// The number of captures of the set.
    pub captures: u64,
}

/// A file that is not tried any more until an operator asks for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ParkedFile {
    /// The name of the file.
    pub name: FileName,
    /// The reason why its last attempt failed.
    pub reason: String,
    /// The number of attempts that failed.
    pub failures: u32,
    /// The time at which the file was parked.
    pub since: Timestamp,
}

/// A comparison of a file, which was read again, with the captures that the index had of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Comparison {
    /// The time of the comparison.
    pub time: Timestamp,
    /// The name of the file.
    pub name: FileName,
    /// The number of captures of the file.
    pub captures: u64,
    /// The number of captures that differed in the index, were missing from it, or were too many.
    pub differences: u64,
}

impl From<IndexStatus> for wire::StatusResponse {
    fn from(status: IndexStatus) -> Self {
        let state = match status.state {
            FollowState::Starting => message::State::Starting,
            FollowState::Listing => message::State::Listing,
            FollowState::Following => message::State::Following,
            FollowState::Waiting => message::State::Waiting,
        };
        Self {
            state: state.into(),
            problem: status.problem.unwrap_or_default(),
            position: status.position,
            captures: status.captures,
            indexed: status.indexed,
            behind: status.behind,
            parked_files: status.parked_files,
            sets: status
                .sets
                .into_iter()
                .map(|set| message::Set {
                    name: set.name.to_string(),
                    captures: set.captures,
                })
                .collect(),
            lost_sets: status.lost_sets.iter().map(ToString::to_string).collect(),
            parked: status
                .parked
                .into_iter()
                .take(MOST_PARKED)
                .map(|file| message::Parked {
                    name: file.name.to_string(),
                    reason: file.reason,
                    failures: file.failures,
                    since: file.since.to_string(),
                })
                .collect(),
            comparison: status.comparison.map(|comparison| message::Comparison {
                time: comparison.time.to_string(),
                name: comparison.name.to_string(),
                captures: comparison.captures,
                differences: comparison.differences,
            }),
            compared: status.compared,
            differed: status.differed,
            rebuilt: status.rebuilt.unwrap_or_default(),
            version: status.version,
        }
    }
}

impl TryFrom<wire::StatusResponse> for IndexStatus {
    type Error = InvalidMessage;

    fn try_from(status: wire::StatusResponse) -> Result<Self, InvalidMessage> {
        let state = match message::State::try_from(status.state) {
            Ok(message::State::Starting) => FollowState::Starting,
            Ok(message::State::Listing) => FollowState::Listing,
            Ok(message::State::Following) => FollowState::Following,
            Ok(message::State::Waiting) => FollowState::Waiting,
            Ok(message::State::Unspecified) => return Err(InvalidMessage::missing_field("state")),
            Err(_) => {
                let reason = format!("has the unknown value {}", status.state);
                return Err(InvalidMessage::invalid_field("state", reason));
            }
        };
        if status.parked.len() > MOST_PARKED {
            let reason = format!("has more than {MOST_PARKED} files");
            return Err(InvalidMessage::invalid_field("parked", reason));
        }
        let set = |set: message::Set| {
            Ok(SetStatus {
                name: SetName::read_set("sets.name", &set.name)?,
                captures: set.captures,
            })
        };
        let parked = |file: message::Parked| {
            Ok(ParkedFile {
                name: parse_field("parked.name", &file.name)?,
                reason: file.reason,
                failures: file.failures,
                since: parse_field("parked.since", &file.since)?,
            })
        };
        let comparison = |comparison: message::Comparison| {
            Ok::<_, InvalidMessage>(Comparison {
                time: parse_field("comparison.time", &comparison.time)?,
                name: parse_field("comparison.name", &comparison.name)?,
                captures: comparison.captures,
                differences: comparison.differences,
            })
        };
        let optional = |text: String| Some(text).filter(|text| !text.is_empty());
        Ok(Self {
            state,
            problem: optional(status.problem),
            position: status.position,
            captures: status.captures,
            indexed: status.indexed,
            behind: status.behind,
            parked_files: status.parked_files,
            sets: status
                .sets
                .into_iter()
                .map(set)
                .collect::<Result<_, InvalidMessage>>()?,
            lost_sets: status
                .lost_sets
                .iter()
                .map(|name| SetName::read_set("lost_sets", name))
                .collect::<Result<_, InvalidMessage>>()?,
            parked: status
                .parked
                .into_iter()
                .map(parked)
                .collect::<Result<_, InvalidMessage>>()?,
            comparison: status.comparison.map(comparison).transpose()?,
            compared: status.compared,
            differed: status.differed,
            rebuilt: optional(status.rebuilt),
            version: status.version,
        })
    }
}

/// Reads the name of a file; absent if the text is empty.
///
/// # Errors
///
/// Fails when the text is no name of an archive file.
pub fn optional_name(field: &'static str, text: &str) -> Result<Option<FileName>, InvalidMessage> {
    fields::parse_optional(field, text)
}

/// Reads the names of files.
///
/// # Errors
///
/// Fails if a text is not the name of an archive file.
pub fn read_names(field: &'static str, texts: &[String]) -> Result<Vec<FileName>, InvalidMessage> {
    texts.iter().map(|text| parse_field(field, text)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status() -> IndexStatus {
        let name = FileName::new("a.warc.gz").unwrap();
        let time: Timestamp = "2026-11-23T20:00:00Z".parse().unwrap();
        IndexStatus {
            state: FollowState::Waiting,
            problem: Some("the archive is silent".to_owned()),
            position: Some(0),
            captures: 1,
            indexed: 2,
            behind: 3,
            parked_files: 4,
            sets: vec![SetStatus {
                name: SetName::new("old").unwrap(),
                captures: 5,
            }],
            lost_sets: vec![SetName::new("lost").unwrap()],
            parked: vec![ParkedFile {
                name: name.clone(),
                reason: "damaged".to_owned(),
                failures: 3,
                since: time,
            }],
            comparison: Some(Comparison {
                time,
                name,
                captures: 6,
                differences: 7,
            }),
            compared: 8,
            differed: 9,
            rebuilt: Some("damaged".to_owned()),
            version: "0.1.0".to_owned(),
        }
    }

    /// Fails if a part of the status is lost, or becomes another one, on the way.
    #[test]
    fn statuses_survive_the_wire() {
        let bare = IndexStatus {
            problem: None,
            position: None,
            sets: Vec::new(),
            lost_sets: Vec::new(),
            parked: Vec::new(),
            comparison: None,
            rebuilt: None,
            ..status()
        };
        let all_states = [
            FollowState::Starting,
            FollowState::Listing,
            FollowState::Following,
            FollowState::Waiting,
        ];
        for state in all_states {
            for status in [status(), bare.clone()] {
                let whole = IndexStatus { state, ..status };
                let read = IndexStatus::try_from(wire::StatusResponse::from(whole.clone()));
                assert_eq!(read, Ok(whole));
            }
        }
    }

    /// Fails if a faulty answer is believed, or the error does not name its field.
    #[test]
    fn faulty_statuses_name_their_field() {
        let refused = |field: &str, change: &dyn Fn(&mut wire::StatusResponse)| {
            let mut message = wire::StatusResponse::from(status());
            change(&mut message);
            let error = IndexStatus::try_from(message).unwrap_err();
            assert_eq!(error.field, field, "{error}");
        };
        refused("state", &|message| message.state = 0);
        refused("state", &|message| message.state = 77);
        refused("sets.name", &|message| message.sets[0].name.clear());
        refused("parked.name", &|message| {
            message.parked[0].name = "../x".to_owned();
        });
        refused("parked.since", &|message| message.parked[0].since.clear());
        refused("parked", &|message| {
            message.parked = vec![message.parked[0].clone(); MOST_PARKED + 1];
        });
        refused("comparison.time", &|message| {
            message.comparison.as_mut().unwrap().time = "noon".to_owned();
        });
    }
}
