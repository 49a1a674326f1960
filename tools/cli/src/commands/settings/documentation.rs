//! The meaning of each setting, from the comments beside it: the comment that the compiler asks for is the manual.

use archive_daemon::settings::{Section, SettingsForm};

/// Returns each key of a section with the lines of its comment.
fn list_comments(section: &Section) -> impl Iterator<Item = (&'static str, Vec<String>)> {
    let keys = section.keys.iter().zip(section.comments);
    keys.map(|(key, comment)| {
        // Links are of the documentation of the code.
        let plain = comment.replace("[`", "`").replace("`]", "`");
        (*key, plain.lines().map(str::to_owned).collect())
    })
}

/// Returns the TOML text with the comment of each key above it, and the keys and sections that are not set.
pub(super) fn document_settings(form: &SettingsForm, toml: &str) -> String {
    let set: Vec<&str> = toml.lines().filter_map(path_of).collect();
    let mut out = Vec::new();
    let mut path = "";
    let mut seen: Vec<&str> = Vec::new();
    for line in toml.lines() {
        if let Some(next) = path_of(line) {
            insert_unset(&mut out, unset(form, path, &seen, &set));
            seen.clear();
            path = next;
            let (outer, key) = path.rsplit_once('.').unwrap_or(("", path));
            out.extend(comment(form, outer, key));
        } else if let Some((key, _)) = line.split_once(" = ").filter(|_| !line.starts_with(' ')) {
            out.extend(comment(form, path, key));
            seen.push(key);
        }
        // A blank line before a section stands before its comment as well.
        out.push(line.to_owned());
    }
    insert_unset(&mut out, unset(form, path, &seen, &set));
    out.join("\n") + "\n"
}

/// Returns the comment of a key, each line as a comment of TOML.
fn comment(form: &SettingsForm, path: &str, key: &str) -> Vec<String> {
    let mut keys = form.find_section(path).into_iter().flat_map(list_comments);
    let found = keys.find(|(name, _)| *name == key);
    found.map_or_else(Vec::new, |(_, lines)| as_comment(&lines))
}

fn as_comment(lines: &[String]) -> Vec<String> {
    lines.iter().map(|line| format!("# {line}")).collect()
}

/// Returns the dotted path of the section that a line opens.
fn path_of(line: &str) -> Option<&str> {
    let header = line.strip_prefix('[')?;
    Some(header.trim_matches(|c| c == '[' || c == ']'))
}

/// Adds the lines about what is not set before the blank line that ends the section.
fn insert_unset(out: &mut Vec<String>, lines: Vec<String>) {
    let ends_blank = out.last().is_some_and(String::is_empty);
    let end = out.len() - usize::from(ends_blank);
    out.splice(end..end, lines);
}

/// Returns the keys of a section that are not set, and the sections within it that are not there, with all of their
/// keys.
fn unset(form: &SettingsForm, path: &str, seen: &[&str], set: &[&str]) -> Vec<String> {
    let mut lines = Vec::new();
    for (key, comment) in form.find_section(path).into_iter().flat_map(list_comments) {
        let own = match path {
            "" => key.to_owned(),
            _ => format!("{path}.{key}"),
        };
        match form.find_section(&own) {
            None if !seen.contains(&key) => {
                lines.extend(as_comment(&comment));
                lines.push(format!("# {key} is not set"));
            }
            Some(inner) if !set.iter().any(|section| is_within(section, &own)) => {
                lines.extend(as_comment(&comment));
                lines.push(format!("# [{own}] is not set; its keys:"));
                for (key, comment) in list_comments(inner) {
                    lines.push(format!("#   {key}: {}", comment.join(" ")));
                }
            }
            _ => {}
        }
    }
    lines
}

fn is_within(section: &str, path: &str) -> bool {
    let rest = section.strip_prefix(path);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use archive_daemon::settings::Sources;
    use archive_part::PartSettings;

    use super::super::{Depth, KINDS};
    use super::*;

    /// Each section of a form is a key of the section around it. Fails if a path is misspelt or a key was renamed: the
    /// section would be printed without comments, and its keys would be unknown.
    #[test]
    fn sections_are_keys_of_their_outer_section() {
        for kind in KINDS {
            let form = kind.form;
            assert!(form.find_section(form.section).is_some(), "{}", kind.name);
            for section in form
                .sections
                .iter()
                .filter(|section| !section.path.is_empty())
            {
                let (outer, key) = section.path.rsplit_once('.').unwrap_or(("", section.path));
                let outer = form.find_section(outer).map(|outer| outer.keys);
                assert!(
                    outer.is_some_and(|keys| keys.contains(&key)),
                    "{}: [{}] is in no section: {outer:?}",
                    kind.name,
                    section.path
                );
            }
        }
    }

    /// Fails if an example is not accepted as settings, or a section or a key of it would be printed without its
    /// comment: add the section to the form.
    #[test]
    fn examples_are_accepted_and_documented() {
        for kind in KINDS {
            let mut file = tempfile::NamedTempFile::new().unwrap();
            file.write_all(kind.form.example.as_bytes()).unwrap();
            let sources = Sources {
                file: Some(file.path().to_owned()),
                ..Sources::default()
            };
            let problems = (kind.list_problems)(&sources, Depth::Values).unwrap();
            assert_eq!(problems, [""; 0], "{}", kind.name);
            let printed = (kind.print)(&sources).unwrap();
            let text = document_settings(&kind.form, &printed);
            // All keys at the top of a part's file are sections: one that is printed as a key is not in the form.
            let mut top = text.lines().take_while(|line| path_of(line).is_none());
            assert!(
                kind.name == "client" || !top.any(|line| line.ends_with(" is not set")),
                "{}: a section is not in the form\n{text}",
                kind.name
            );
            let lines: Vec<&str> = text.lines().collect();
            for (above, line) in lines.iter().zip(lines.iter().skip(1)) {
                let is_key = path_of(line).is_some() || line.contains(" = ");
                if is_key && !line.starts_with(['#', ' ']) {
                    assert!(above.starts_with('#'), "{}: {line}\n{text}", kind.name);
                }
            }
        }
    }

    /// Fails if a comment is printed above the key of another section, or if a value is changed.
    #[test]
    fn comments_stand_above_their_keys() {
        let toml = "[daemon]\nlog = \"info\"\n\n[rpc]\nlisten = \"h:1\"\ncertificate = \"c\"\nkey = \"k\"\n\
                    authorities = \"a\"\n\n[monitor]\nreplica = \"one\"\nheartbeat = \"1 s\"\n";
        let text = document_settings(&archive_monitor::Settings::FORM, toml);
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
        let plain: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(
            plain.join("\n") + "\n",
            toml,
            "nothing but comments is added"
        );
    }

    /// Fails if an operator can read about a section that may be left out only after having set it, or if a section
    /// that is set is called unset.
    #[test]
    fn absent_section_is_still_documented() {
        let toml = "[notify]\ncommand = []\n\n[repair]\nautomatic = \"all\"\n";
        let text = document_settings(&archive_repository::Settings::FORM, toml);
        let (_, own) = text
            .split_once("# [notify.smtp] is not set; its keys:\n")
            .unwrap();
        let (own, _) = own.split_once("\n\n").unwrap();
        assert!(
            own.contains("#   password_file: The file whose first line"),
            "{text}"
        );
        assert_eq!(text.matches("[notify.smtp]").count(), 1, "{text}");
        let set = document_settings(
            &archive_repository::Settings::FORM,
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
        let text = document_settings(&archive_repository::Settings::FORM, toml);
        assert_eq!(
            text.matches("# The id of the replica.\n").count(),
            2,
            "{text}"
        );
        assert_eq!(text.matches("# site is not set").count(), 2, "{text}");
    }
}
