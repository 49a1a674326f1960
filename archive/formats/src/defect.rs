//! The defects that an archive file can have, and the reaction to each.
//!
//! Owns the classes of defects, their places and words, and the policy per class. Finds nothing itself.

use std::fmt;

/// A class of defects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Class {
    /// A file without a byte.
    Empty,
    /// A file in which no record was found.
    NoRecord,
    /// Bytes that belong to no record.
    Garbage,
    /// Zeros between gzip members.
    Padding,
    /// The file ends within a record or a member.
    Cut,
    /// Compressed data that cannot be decompressed.
    Deflate,
    /// The checksum of a compressed member does not match its data.
    Crc,
    /// The length at the end of a gzip member does not match its data.
    Isize,
    /// A record that continues in the next gzip member.
    Spans,
    /// A gzip member with more than one record: records cannot be reached by offset.
    Shared,
    /// Data that was compressed with a dictionary that the file does not have, or with another one.
    Dictionary,
    /// A version of WARC that is not known.
    Version,
    /// A type of record that no standard names. Legal: readers skip it.
    UnknownType,
    /// A WARC record that does not say its type.
    MissingType,
    /// A header line that is no field.
    Field,
    /// Header lines that end with LF alone.
    LineEnding,
    /// A header, or a line of an ARC file, beyond the limit.
    HeaderTooLong,
    /// A header that ends before its empty line.
    HeaderCut,
    /// A record without `Content-Length`.
    MissingLength,
    /// A `Content-Length` that is no number, or is there twice with different values.
    BadLength,
    /// A `Content-Length` that does not fit what follows.
    WrongLength,
    /// Something else than the prescribed line ends after a block.
    Trailer,
    /// An ARC line with too many, too few or impossible fields.
    ArcLine,
}

impl Class {
    /// The number of classes.
    const COUNT: usize = 23;

    /// All classes, in order.
    pub const ALL: [Self; Self::COUNT] = [
        Self::Empty,
        Self::NoRecord,
        Self::Garbage,
        Self::Padding,
        Self::Cut,
        Self::Deflate,
        Self::Crc,
        Self::Isize,
        Self::Spans,
        Self::Shared,
        Self::Dictionary,
        Self::Version,
        Self::UnknownType,
        Self::MissingType,
        Self::Field,
        Self::LineEnding,
        Self::HeaderTooLong,
        Self::HeaderCut,
        Self::MissingLength,
        Self::BadLength,
        Self::WrongLength,
        Self::Trailer,
        Self::ArcLine,
    ];

    /// Returns whether a defect of this class costs content: something that was in the file, or should be, is lost,
    /// cut, guessed or in doubt in its records. Defects of other classes are read as they were meant.
    pub fn costs_content(self) -> bool {
        match self {
            Self::Empty
            | Self::NoRecord
            | Self::Garbage
            | Self::Cut
            | Self::Deflate
            | Self::Crc
            | Self::Isize
            | Self::Dictionary
            | Self::MissingType
            | Self::HeaderTooLong
            | Self::HeaderCut
            | Self::MissingLength
            | Self::BadLength
            | Self::WrongLength => true,
            Self::Padding
            | Self::Spans
            | Self::Shared
            | Self::Version
            | Self::UnknownType
            | Self::Field
            | Self::LineEnding
            | Self::Trailer
            | Self::ArcLine => false,
        }
    }

    /// Returns the name of the class in reports and settings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::NoRecord => "no-record",
            Self::Garbage => "garbage",
            Self::Padding => "padding",
            Self::Cut => "cut",
            Self::Deflate => "deflate",
            Self::Crc => "crc",
            Self::Isize => "isize",
            Self::Spans => "spans",
            Self::Shared => "shared",
            Self::Dictionary => "dictionary",
            Self::Version => "version",
            Self::UnknownType => "unknown-type",
            Self::MissingType => "missing-type",
            Self::Field => "field",
            Self::LineEnding => "line-ending",
            Self::HeaderTooLong => "header-too-long",
            Self::HeaderCut => "header-cut",
            Self::MissingLength => "missing-length",
            Self::BadLength => "bad-length",
            Self::WrongLength => "wrong-length",
            Self::Trailer => "trailer",
            Self::ArcLine => "arc-line",
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A defect of a file, and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Defect {
    /// The class of the defect.
    pub class: Class,
    /// The offset in the file: of the byte in a plain file, of the member in a compressed one.
    pub offset: u64,
    /// The offset in the decompressed bytes, counted from where reading began.
    pub uncompressed: u64,
    /// The id of the record with the defect, as its header names it.
    pub record: Option<String>,
    /// The description of the defect.
    pub words: String,
}

impl fmt::Display for Defect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "offset {}: {}: {}", self.offset, self.class, self.words)?;
        if let Some(record) = &self.record {
            write!(f, " (record {record})")?;
        }
        Ok(())
    }
}

/// The reaction of a reader to a defect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Says nothing, and reads on.
    Ignore,
    /// Reports the defect beside the record, and reads on.
    Report,
    /// Returns an error. A caller who asks again reads on behind the defect.
    Refuse,
}

/// The reaction to each class of defects.
///
/// ```
/// use archive_formats::defect::{Action, Class, DefectPolicy};
/// use archive_formats::warc::{ReaderOptions, WarcReader};
///
/// let policy = DefectPolicy::lenient_policy().with_action(Class::Cut, Action::Refuse);
/// let options = ReaderOptions { policy, ..ReaderOptions::default() };
/// let file = b"WARC/1.1\r\nWARC-Type: resource\r\nContent-Length: 5\r\n\r\nhel";
/// let mut reader = WarcReader::with_options(&file[..], options);
/// let refused = reader.next_record().and_then(|record| record.map(|record| record.read_end()).transpose());
/// assert!(refused.is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefectPolicy {
    actions: [Action; Class::COUNT],
}

impl DefectPolicy {
    /// Returns the policy that reports defects and refuses nothing; padding, bare line feeds and unknown types, which
    /// harm nobody, are ignored.
    pub fn lenient_policy() -> Self {
        [Class::UnknownType, Class::LineEnding, Class::Padding]
            .into_iter()
            .fold(Self::one_action(Action::Report), |policy, class| {
                policy.with_action(class, Action::Ignore)
            })
    }

    /// Returns the policy that refuses everything that a standard forbids. Padding and shared members, which a standard
    /// allows and nobody should write, are reported; unknown types are ignored.
    pub fn strict_policy() -> Self {
        [Class::Shared, Class::Padding]
            .into_iter()
            .fold(Self::one_action(Action::Refuse), |policy, class| {
                policy.with_action(class, Action::Report)
            })
            .with_action(Class::UnknownType, Action::Ignore)
    }

    /// Returns the policy with the same action for each class.
    pub fn one_action(action: Action) -> Self {
        Self {
            actions: [action; Class::COUNT],
        }
    }

    /// Sets the action for one class.
    #[must_use]
    pub fn with_action(mut self, class: Class, action: Action) -> Self {
        if let Some(slot) = self.actions.get_mut(class as usize) {
            *slot = action;
        }
        self
    }

    /// Returns the reaction to this class.
    pub fn action_for(&self, class: Class) -> Action {
        self.actions
            .get(class as usize)
            .copied()
            .unwrap_or(Action::Report)
    }
}

impl Default for DefectPolicy {
    fn default() -> Self {
        Self::lenient_policy()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if two classes of defects share a name, or the action that is set for one class applies to another.
    #[test]
    fn every_class_has_its_own_name_and_action() {
        let mut names: Vec<_> = Class::ALL.iter().map(|class| class.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Class::ALL.len());
        for class in Class::ALL {
            let policy =
                DefectPolicy::one_action(Action::Report).with_action(class, Action::Refuse);
            for other in Class::ALL {
                assert_eq!(
                    policy.action_for(other) == Action::Refuse,
                    class == other,
                    "{class} {other}"
                );
            }
        }
    }

    /// Fails if the text of a defect lacks its offset, its class, the explanation or the record.
    #[test]
    fn a_defect_says_where_and_what() {
        let defect = Defect {
            class: Class::Crc,
            offset: 7,
            uncompressed: 0,
            record: Some("<urn:x>".into()),
            words: "no match".into(),
        };
        assert_eq!(
            defect.to_string(),
            "offset 7: crc: no match (record <urn:x>)"
        );
    }
}
