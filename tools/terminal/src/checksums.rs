//! Lists of checksums as `b3sum`, `sha256sum` and `md5sum` write them.
//!
//! Which algorithm it is shows in the length: MD5 has 32 digits. BLAKE3 and SHA-256 both have 64: a file must have the
//! one or the other.
//!
//! # Errors
//!
//! A list or a source that cannot be read, a line that holds no checksum, and a digest that is not the listed one; each
//! says which file and line.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::Path;

use archive_client::AnnouncedDigests;
use archive_model::Root;
use md5::Md5;
use sha2::{Digest as _, Sha256};

use crate::exit::{Exit, Failure};
use crate::list;

/// The longest list that is read, in bytes: some millions of files.
const LONGEST: u64 = 1 << 30;

/// Checksums by file name: the last part of the path in the list.
#[derive(Debug, Default)]
pub struct Checksums {
    by_name: BTreeMap<String, ListedChecksum>,
}

/// A checksum of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListedChecksum {
    /// MD5.
    Md5([u8; 16]),
    /// BLAKE3 or SHA-256.
    Long([u8; 32]),
}

/// The reason why a text is not a list of checksums.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidList {
    /// The line of this number has another form.
    #[error("line {0} is not a line of b3sum, sha256sum or md5sum: CHECKSUM, two spaces, FILE")]
    Line(usize),
    /// A name has two checksums.
    #[error("line {line}: {name} is listed before with another checksum; leave one of them")]
    Twice {
        /// The number of the second line.
        line: usize,
        /// The name of the file.
        name: String,
    },
}

impl Checksums {
    /// Reads a list.
    pub fn read_checksums(path: &Path) -> Result<Self, Failure> {
        let text = list::read_list(path, LONGEST)?;
        Self::parse(&text)
            .map_err(|error| Failure::wrong_usage(format!("{}: {error}", path.display())))
    }

    fn parse(text: &str) -> Result<Self, InvalidList> {
        let mut by_name = BTreeMap::new();
        for (line, text) in (1..).zip(text.lines()) {
            if text.trim().is_empty() || text.starts_with('#') {
                continue;
            }
            let (listed, path) = entry(text).ok_or(InvalidList::Line(line))?;
            let name = path.rsplit('/').next().unwrap_or(&path).to_owned();
            if by_name
                .insert(name.clone(), listed)
                .is_some_and(|before| before != listed)
            {
                return Err(InvalidList::Twice { line, name });
            }
        }
        Ok(Self { by_name })
    }

    /// Returns the checksum of a file.
    pub fn find_checksum(&self, name: &str) -> Option<ListedChecksum> {
        self.by_name.get(name).copied()
    }
}

/// Reads a line: `CHECKSUM  FILE`, `CHECKSUM *FILE`, and with a leading `\` the same with `\\` and `\n` in the file's
/// name.
fn entry(line: &str) -> Option<(ListedChecksum, String)> {
    let (escaped, line) = match line.strip_prefix('\\') {
        Some(rest) => (true, rest),
        None => (false, line),
    };
    let (digits, path) = line.split_once(' ')?;
    let path = path.strip_prefix([' ', '*'])?;
    if path.is_empty() {
        return None;
    }
    let bytes = hex::decode(digits).ok()?;
    let listed = match bytes.len() {
        16 => ListedChecksum::Md5(bytes.try_into().ok()?),
        32 => ListedChecksum::Long(bytes.try_into().ok()?),
        _ => return None,
    };
    let path = if escaped {
        unescape(path)?
    } else {
        path.to_owned()
    };
    Some((listed, path))
}

fn unescape(text: &str) -> Option<String> {
    let mut chars = text.chars();
    let mut plain = String::new();
    while let Some(c) = chars.next() {
        plain.push(match c {
            '\\' => match chars.next()? {
                '\\' => '\\',
                'n' => '\n',
                'r' => '\r',
                _ => return None,
            },
            other => other,
        });
    }
    Some(plain)
}

/// Reads a file once and computes its BLAKE3, and what is needed to compare it with the list.
pub fn digest_file(
    mut source: impl Read,
    listed: Option<ListedChecksum>,
) -> io::Result<AnnouncedDigests> {
    let mut blake3 = blake3::Hasher::new();
    let mut sha256 = matches!(listed, Some(ListedChecksum::Long(_))).then(Sha256::new);
    let mut md5 = matches!(listed, Some(ListedChecksum::Md5(_))).then(Md5::new);
    let mut buffer = vec![0; 256 * 1024];
    loop {
        let count = match source.read(&mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            other => other?,
        };
        let Some(bytes) = buffer.get(..count).filter(|bytes| !bytes.is_empty()) else {
            break;
        };
        blake3.update(bytes);
        if let Some(sha256) = &mut sha256 {
            sha256.update(bytes);
        }
        if let Some(md5) = &mut md5 {
            md5.update(bytes);
        }
    }
    Ok(AnnouncedDigests {
        blake3: Some(Root::from_bytes(*blake3.finalize().as_bytes())),
        sha256: sha256.map(|hasher| hasher.finalize().into()),
        md5: md5.map(|hasher| hasher.finalize().into()),
    })
}

/// Compares the digests of a file with what the list says of it.
pub fn compare_digest(
    name: &str,
    found: &AnnouncedDigests,
    listed: ListedChecksum,
) -> Result<(), Failure> {
    let (same, said, has) = match listed {
        ListedChecksum::Md5(bytes) => (
            found.md5 == Some(bytes),
            hex::encode(bytes),
            found.md5.map(hex::encode),
        ),
        ListedChecksum::Long(bytes) => (
            found.sha256 == Some(bytes) || found.blake3 == Some(Root::from_bytes(bytes)),
            hex::encode(bytes),
            found.blake3.map(|root| root.to_string()),
        ),
    };
    if same {
        return Ok(());
    }
    let has = has.unwrap_or_default();
    Err(Failure::new(
        Exit::Refused,
        format!(
            "{name}: the list says {said}, the file has {has}; get the file again, or correct the list"
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn long(byte: &str) -> String {
        byte.repeat(32)
    }

    /// Fails if a line as `b3sum`, `sha256sum` or `md5sum` write it is misread: a `*` for binary, an escaped name, or
    /// folders before the name.
    #[test]
    fn the_lists_of_the_three_tools_are_read() {
        let a = long("0a");
        let b = long("0B");
        let c = "0c".repeat(16);
        let text = format!(
            "# a comment\n{a}  dir/a.warc\n{b} *b b.warc\r\n\n{c}  ./c.warc\n\\{a}  x/back\\\\slash\\n\n{a}  other/a.warc\n"
        );
        let list = Checksums::parse(&text).unwrap();
        assert_eq!(
            list.find_checksum("a.warc"),
            Some(ListedChecksum::Long([0x0a; 32]))
        );
        assert_eq!(
            list.find_checksum("b b.warc"),
            Some(ListedChecksum::Long([0x0b; 32]))
        );
        assert_eq!(
            list.find_checksum("c.warc"),
            Some(ListedChecksum::Md5([0x0c; 16]))
        );
        assert_eq!(
            list.find_checksum("back\\slash\n"),
            Some(ListedChecksum::Long([0x0a; 32]))
        );
        assert_eq!(list.find_checksum("dir/a.warc"), None);
    }

    /// Fails if a line without a checksum is passed over, so that its file is stored unchecked, or if one name may have
    /// two checksums.
    #[test]
    fn malformed_checksum_list_names_its_line() {
        for bad in [
            "nonsense".to_owned(),
            long("0a"),
            format!("{}  ", long("0a")),
            format!("{} a", long("0a")),
            format!("{}  a", "0a".repeat(20)),
            format!("{}  a", "zz".repeat(32)),
            format!("\\{}  a\\t", long("0a")),
            format!("\\{}  a\\", long("0a")),
        ] {
            let text = format!("{}  good\n{bad}\n", long("01"));
            assert_eq!(
                Checksums::parse(&text).unwrap_err(),
                InvalidList::Line(2),
                "{bad:?}"
            );
        }
        let twice = format!("{}  x/a\n{}  y/a\n", long("01"), long("02"));
        assert!(matches!(
            Checksums::parse(&twice),
            Err(InvalidList::Twice { line: 2, .. })
        ));
    }

    /// Fails if a checksum of 64 digits is compared with only one of BLAKE3 and SHA-256, or if a file with another
    /// checksum passes.
    #[test]
    fn each_of_three_algorithms_checks_a_file() {
        // The digests of "abc", from the standards.
        let listed = |text: &str| entry(&format!("{text}  f")).unwrap().0;
        let blake3 = listed("6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85");
        let sha256 = listed("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        let md5 = listed("900150983cd24fb0d6963f7d28e17f72");
        for listed in [blake3, sha256, md5] {
            let found = digest_file(&b"abc"[..], Some(listed)).unwrap();
            assert_eq!(compare_digest("f", &found, listed), Ok(()));
            let other = digest_file(&b"abd"[..], Some(listed)).unwrap();
            let failure = compare_digest("f", &other, listed).unwrap_err();
            assert_eq!(failure.exit, Exit::Refused, "{failure}");
        }
        let found = digest_file(&b"abc"[..], None).unwrap();
        assert_eq!((found.sha256, found.md5), (None, None));
        assert_eq!(
            found.blake3.unwrap().to_string(),
            "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85"
        );
    }
}
