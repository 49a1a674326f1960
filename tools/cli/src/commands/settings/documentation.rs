//! The meaning of each setting, from the comments beside it: the comment that the compiler asks for is the manual.
//!
//! Owns the list of the files in which settings are declared. A key of a part that has no comment here fails a test.

use std::collections::BTreeMap;

use super::Kind;

/// The file that declares a whole file of settings, for each kind.
const ROOTS: [(Kind, &str); 7] = [
    (
        Kind::Repository,
        include_str!("../../../../../archive/repository/src/settings.rs"),
    ),
    (
        Kind::Monitor,
        include_str!("../../../../../archive/monitor/src/settings.rs"),
    ),
    (
        Kind::Bitarchive,
        include_str!("../../../../../archive/bitarchive/src/settings.rs"),
    ),
    (
        Kind::ChecksumReplica,
        include_str!("../../../../../archive/bitarchive/src/checksum/settings.rs"),
    ),
    (
        Kind::Client,
        include_str!("../../../../../archive/client/src/client_file.rs"),
    ),
    (
        Kind::Index,
        include_str!("../../../../../index/server/src/settings.rs"),
    ),
    (
        Kind::Viewer,
        include_str!("../../../../../viewer/web/src/settings.rs"),
    ),
];

/// The other files that declare settings, of any kind.
const SOURCES: &[&str] = &[
    include_str!("../../../../../archive/client/src/client_file/endpoints.rs"),
    include_str!("../../../../../archive/client/src/limits.rs"),
    include_str!("../../../../../archive/daemon/src/notify/settings.rs"),
    include_str!("../../../../../archive/daemon/src/run.rs"),
    include_str!("../../../../../archive/daemon/src/telemetry.rs"),
    include_str!("../../../../../archive/jobs/src/settings.rs"),
    include_str!("../../../../../archive/replicas/src/settings.rs"),
    include_str!("../../../../../archive/rpc/src/settings.rs"),
    include_str!("../../../../../viewer/proxy/src/settings.rs"),
    include_str!("../../../../../viewer/web/src/settings/collection.rs"),
    include_str!("../../../../../viewer/web/src/settings/web.rs"),
];

/// A key, as it is declared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) name: String,
    pub(super) comment: Vec<String>,
    /// The last name in the type of the key: that of a section, if there is one of that name.
    kind: String,
}

/// Structures by name, each with its keys in order.
type Structures = BTreeMap<String, Vec<Key>>;

/// Returns the TOML text with the comment of each key above it, and the keys and sections that are not set.
pub(super) fn document(kind: Kind, toml: &str) -> String {
    let (root, structures) = structures(kind);
    let sections: Vec<&str> = toml.lines().filter_map(path_of).collect();
    let absent = |path: &str, section: &str, seen: &[String], out: &mut Vec<String>| {
        let lines = unset(&structures, (path, section), seen, &sections);
        // Before the blank line that ends the section.
        let blank = out.last().is_some_and(String::is_empty);
        let end = if blank {
            out.len().saturating_sub(1)
        } else {
            out.len()
        };
        drop(out.splice(end..end, lines));
    };
    let mut out = Vec::new();
    let (mut path, mut section) = ("", root.clone());
    let mut seen: Vec<String> = Vec::new();
    for line in toml.lines() {
        if let Some(next) = path_of(line) {
            absent(path, &section, &seen, &mut out);
            seen.clear();
            path = next;
            section = at(&structures, &root, path).unwrap_or_default();
            if let Some(key) = key_at(&structures, &root, path) {
                out.extend(key.comment.iter().map(|line| format!("# {line}")));
            }
        } else if let Some((name, _)) = line.split_once(" = ").filter(|_| !line.starts_with(' ')) {
            if let Some(key) = find(&structures, &section, name) {
                out.extend(key.comment.iter().map(|line| format!("# {line}")));
            }
            seen.push(name.to_owned());
        }
        // A blank line before a section stands before its comment as well.
        out.push(line.to_owned());
    }
    absent(path, &section, &seen, &mut out);
    out.join("\n") + "\n"
}

/// Returns the dotted path of the section that a line opens.
fn path_of(line: &str) -> Option<&str> {
    let header = line.strip_prefix('[')?;
    Some(header.trim_matches(|c| c == '[' || c == ']'))
}

/// Returns the keys of a section that are not set, and the sections within it that are not there, with all of their
/// keys.
fn unset(
    structures: &Structures,
    (path, section): (&str, &str),
    seen: &[String],
    sections: &[&str],
) -> Vec<String> {
    let mut lines = Vec::new();
    for key in structures.get(section).into_iter().flatten() {
        let comment = key.comment.iter().map(|line| format!("# {line}"));
        let own = match path {
            "" => key.name.clone(),
            _ => format!("{path}.{}", key.name),
        };
        match structures.get(&key.kind) {
            None if !seen.contains(&key.name) => {
                lines.extend(comment);
                lines.push(format!("# {} is not set", key.name));
            }
            Some(keys) if !sections.iter().any(|section| is_within(section, &own)) => {
                lines.extend(comment);
                lines.push(format!("# [{own}] is not set; its keys:"));
                for key in keys {
                    let comment = key.comment.join(" ");
                    lines.push(format!("#   {}: {comment}", key.name));
                }
            }
            None | Some(_) => {}
        }
    }
    lines
}

fn is_within(section: &str, path: &str) -> bool {
    let rest = section.strip_prefix(path);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Returns the structure of the section at a dotted path.
fn at(structures: &Structures, root: &str, path: &str) -> Option<String> {
    key_at(structures, root, path).map(|key| key.kind.clone())
}

fn key_at<'a>(structures: &'a Structures, root: &str, path: &str) -> Option<&'a Key> {
    let mut section = root.to_owned();
    let mut key = None;
    for piece in path.split('.') {
        let found = find(structures, &section, piece)?;
        section.clone_from(&found.kind);
        key = Some(found);
    }
    key
}

fn find<'a>(structures: &'a Structures, section: &str, name: &str) -> Option<&'a Key> {
    let mut keys = structures.get(section)?.iter();
    keys.find(|key| key.name == name)
}

/// Returns all structures, and the name of the one that is the file of `kind`.
fn structures(kind: Kind) -> (String, Structures) {
    let root = match kind {
        Kind::Client => "ClientFile",
        Kind::Repository
        | Kind::Monitor
        | Kind::Bitarchive
        | Kind::ChecksumReplica
        | Kind::Index
        | Kind::Viewer => "Settings",
    };
    let mut all = Structures::new();
    for (of, source) in ROOTS {
        // Several parts call their file `Settings`.
        let found = declared(source).into_iter();
        all.extend(found.filter(|(name, _)| name != "Settings" || of == kind));
    }
    for source in SOURCES {
        all.extend(declared(source));
    }
    (root.to_owned(), all)
}

/// Returns the public structures with named fields that a source declares.
fn declared(source: &str) -> Structures {
    let mut structures = Structures::new();
    let mut open: Option<(String, Vec<Key>)> = None;
    let mut comment: Vec<String> = Vec::new();
    let mut renamed: Option<String> = None;
    let mut is_unread = false;
    for line in source.lines() {
        let trimmed = line.trim();
        if let Some(text) = trimmed.strip_prefix("///") {
            comment.push(text.trim().replace("[`", "`").replace("`]", "`"));
            continue;
        }
        if trimmed.starts_with("#[") {
            let quoted = trimmed.split_once("rename = \"").map(|(_, rest)| rest);
            let name = quoted.and_then(|rest| rest.split('"').next());
            renamed = name.map(str::to_owned).or(renamed);
            is_unread |= trimmed.contains("skip_serializing)");
            continue;
        }
        if let Some((_, keys)) = &mut open {
            if let Some((name, kind)) = field(trimmed) {
                let key = Key {
                    name: renamed.take().unwrap_or(name),
                    comment: std::mem::take(&mut comment),
                    kind,
                };
                // What is never written is of earlier builds: nobody needs to be told of it.
                if !std::mem::take(&mut is_unread) {
                    keys.push(key);
                }
            } else if line == "}" {
                structures.extend(open.take());
            }
        } else if let Some(name) = opened(line) {
            open = Some((name, Vec::new()));
        }
        comment.clear();
        renamed = None;
    }
    structures
}

fn opened(line: &str) -> Option<String> {
    let name = line.strip_prefix("pub struct ")?.strip_suffix(" {")?;
    Some(name.to_owned())
}

fn field(line: &str) -> Option<(String, String)> {
    let (name, kind) = line
        .strip_prefix("pub ")?
        .strip_suffix(',')?
        .split_once(": ")?;
    let inner = kind.trim_end_matches('>').rsplit(['<', ':']).next()?;
    Some((name.to_owned(), inner.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns every key that can stand in a file of `kind`, with its path.
    fn keys(kind: Kind) -> Vec<(String, Key)> {
        let (root, structures) = structures(kind);
        let mut found = Vec::new();
        let mut open = vec![(String::new(), root)];
        while let Some((path, section)) = open.pop() {
            for key in structures.get(&section).into_iter().flatten() {
                let path = format!("{path}{}", key.name);
                open.push((format!("{path}."), key.kind.clone()));
                found.push((path, key.clone()));
            }
        }
        found
    }

    /// Fails if a key has no doc comment, or the file that declares its section is not in `SOURCES`: the printed manual
    /// would lack the key.
    #[test]
    fn every_key_of_every_part_has_a_comment() {
        for (kind, section) in Kind::ALL {
            let keys = keys(kind);
            assert!(
                keys.iter()
                    .any(|(path, _)| path.starts_with(&format!("{section}."))),
                "{kind:?}: {section} was not found: {keys:?}"
            );
            for (path, key) in keys {
                assert!(
                    !key.comment.is_empty(),
                    "{kind:?}: {path}: put a doc comment above its field: it is the manual"
                );
                let looks = key.kind.ends_with("Settings") || key.kind.ends_with("Limits");
                let known = structures(kind).1.contains_key(&key.kind);
                assert!(
                    !looks || known,
                    "{kind:?}: {path} is a {}: add its file to SOURCES",
                    key.kind
                );
            }
        }
    }

    /// Fails if a comment is printed above the key of another section, if a value is changed, or if a section that is
    /// not read any more is documented.
    #[test]
    fn comments_stand_above_their_keys() {
        let toml = "[daemon]\nlog = \"info\"\n\n[rpc]\nlisten = \"h:1\"\ncertificate = \"c\"\nkey = \"k\"\n\
                    authorities = \"a\"\n\n[monitor]\nreplica = \"one\"\nheartbeat = \"1 s\"\n";
        let text = document(Kind::Monitor, toml);
        assert!(
            text.contains("# Logs, metrics, stop.\n[daemon]\n# The level of logging"),
            "{text}"
        );
        assert!(
            text.contains("# The time between two signs of life of a node.\nheartbeat = \"1 s\"\n"),
            "{text}"
        );
        assert!(
            text.contains("# The list of revoked certificates, PEM.\n# revoked is not set\n"),
            "{text}"
        );
        assert!(!text.contains("batch_monitor"), "{text}");
        let plain: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(
            plain.join("\n") + "\n",
            toml,
            "nothing but comments is added"
        );
    }

    /// Fails if an operator can read about a section that may be left out only after having set it, or if a section that
    /// is set is called unset.
    #[test]
    fn absent_section_is_still_documented() {
        let toml = "[notify]\ncommand = []\n\n[repair]\nautomatic = \"all\"\n";
        let text = document(Kind::Repository, toml);
        let (_, own) = text
            .split_once("# [notify.smtp] is not set; its keys:\n")
            .unwrap();
        let (own, _) = own.split_once("\n\n").unwrap();
        assert!(
            own.contains("#   password_file: The file whose first line"),
            "{text}"
        );
        assert_eq!(text.matches("[notify.smtp]").count(), 1, "{text}");
        let set = document(
            Kind::Repository,
            "[notify]\n\n[notify.smtp]\nserver = \"m\"\n",
        );
        assert!(!set.contains("[notify.smtp] is not set"), "{set}");
        assert!(
            set.contains("# The name of the mail server, as in its certificate.\nserver"),
            "{set}"
        );
        assert!(set.contains("# port is not set"), "{set}");
    }

    /// Fails if only the first of several `[[replica]]` has comments.
    #[test]
    fn lists_of_sections_are_documented_each() {
        let toml =
            "[[replica]]\nid = \"one\"\nkind = \"bitarchive\"\n\n[[replica]]\nid = \"two\"\n";
        let text = document(Kind::Repository, toml);
        assert_eq!(
            text.matches("# The id of the replica.\n").count(),
            2,
            "{text}"
        );
        assert_eq!(text.matches("# site is not set").count(), 2, "{text}");
    }
}
