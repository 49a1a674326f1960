//! Decides what a change of the archive, or its listing, means for a file in the index. Pure.

use archive_model::{ChangeKind, FileContent};

/// A file that the index knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KnownFile {
    /// The content of which the index has the captures; `None` if that was not kept.
    pub(crate) content: Option<FileContent>,
    /// Whether the captures of the file are hidden.
    pub(crate) is_withdrawn: bool,
}

/// The next act upon a file of the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileAction {
    /// The index is right already.
    Nothing,
    /// The file is new: its captures are extracted.
    Index,
    /// The captures are of other content than the file has: they are deleted, and extracted again.
    IndexAnew,
    /// The captures of the file are hidden.
    Withdraw,
    /// The captures of the file are shown again.
    Reinstate,
}

/// Decides about a change.
pub(crate) fn on_change(
    known: Option<KnownFile>,
    kind: ChangeKind,
    content: FileContent,
) -> FileAction {
    match kind {
        ChangeKind::Stored | ChangeKind::Restored | ChangeKind::NewRoot => stands(known, content),
        ChangeKind::Withdrawn => match known {
            Some(known) if known.is_withdrawn => FileAction::Nothing,
            // Also a file that the index does not know: an imported set may name it.
            _ => FileAction::Withdraw,
        },
    }
}

/// Decides about a file that a full listing has, or has not.
pub(crate) fn on_listing(known: Option<KnownFile>, listed: Option<FileContent>) -> FileAction {
    match (known, listed) {
        (known, Some(content)) => stands(known, content),
        // The file stays hidden, and is shown again at once when it is restored.
        (Some(known), None) if known.is_withdrawn => FileAction::Nothing,
        // The file was withdrawn while the index did not follow the archive: its name is kept, because an imported set
        // may name it.
        (Some(_), None) => FileAction::Withdraw,
        (None, None) => FileAction::Nothing,
    }
}

fn stands(known: Option<KnownFile>, content: FileContent) -> FileAction {
    match known {
        None => FileAction::Index,
        Some(known) if known.content != Some(content) => FileAction::IndexAnew,
        Some(known) if known.is_withdrawn => FileAction::Reinstate,
        Some(_) => FileAction::Nothing,
    }
}

/// Returns whether a file may have the captures of an earlier crawl in its logs: it is a metadata file of a harvest
/// job.
pub(crate) fn is_metadata(name: &str) -> bool {
    name.contains("-metadata-") && is_archive_name(name)
}

/// Returns whether a file is an archive file by its name: one that turns out not to be is a failure.
pub(crate) fn is_archive_name(name: &str) -> bool {
    matches!(kind_of_name(name).as_deref(), Some("warc" | "arc"))
}

/// Returns whether a file is an ARC file by its name.
pub(crate) fn is_arc_name(name: &str) -> bool {
    kind_of_name(name).as_deref() == Some("arc")
}

/// Returns the last word of a name, but for that of a compression.
fn kind_of_name(name: &str) -> Option<String> {
    let name = name.to_ascii_lowercase();
    let mut words = name.rsplit('.');
    let last = words.next()?;
    let is_compressed = matches!(last, "gz" | "zst" | "open");
    let kind = if is_compressed { words.next()? } else { last };
    words.next().map(|_before| kind.to_owned())
}

/// Writes a content as it is kept with a file: `SIZE ROOT`.
pub(crate) fn write_content(content: FileContent) -> String {
    format!("{} {}", content.size, content.root)
}

/// Reads what [`write_content`] wrote; `None` if it is something else.
pub(crate) fn parse_content(text: &str) -> Option<FileContent> {
    let (size, root) = text.split_once(' ')?;
    Some(FileContent {
        size: size.parse().ok()?,
        root: root.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use archive_model::Root;

    use super::*;

    fn content(number: u8) -> FileContent {
        FileContent {
            size: u64::from(number),
            root: Root::from_bytes([number; 32]),
        }
    }

    /// Fails if a kept content is read as another one.
    #[test]
    fn content_survives_its_text() {
        for content in [content(0), content(255)] {
            assert_eq!(parse_content(&write_content(content)), Some(content));
        }
        for bad in ["", "1", "1 ", "x 00", "-1 ff"] {
            assert_eq!(parse_content(bad), None, "{bad}");
        }
    }

    /// The state of a file in a small archive, beside what an index that follows it shows.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    struct ArchivedFile {
        content: Option<u8>,
        is_withdrawn: bool,
    }

    fn apply(known: &mut Option<KnownFile>, action: FileAction, content: FileContent) {
        match action {
            FileAction::Nothing => {}
            FileAction::Index | FileAction::IndexAnew => {
                *known = Some(KnownFile {
                    content: Some(content),
                    is_withdrawn: false,
                });
            }
            FileAction::Withdraw => {
                let content = known.and_then(|known| known.content);
                *known = Some(KnownFile {
                    content,
                    is_withdrawn: true,
                });
            }
            FileAction::Reinstate => known.as_mut().unwrap().is_withdrawn = false,
        }
    }

    /// Fails if some order of decisions of the archive, each reported once or twice, or a listing at any point, leaves
    /// the index with other content than the archive, or shows what is withdrawn.
    #[test]
    fn every_short_history_ends_like_the_archive() {
        const DEPTH: u32 = 6;
        const STEPS: usize = 6;
        for sequence in 0..STEPS.pow(DEPTH) {
            let mut rest = sequence;
            let mut archived = ArchivedFile::default();
            let mut known: Option<KnownFile> = None;
            for _ in 0..DEPTH {
                let step = rest % STEPS;
                rest /= STEPS;
                let kind = match (step, archived.content, archived.is_withdrawn) {
                    (0, None, _) => {
                        archived.content = Some(1);
                        ChangeKind::Stored
                    }
                    (1, Some(_), false) => {
                        archived.is_withdrawn = true;
                        ChangeKind::Withdrawn
                    }
                    (2, Some(_), true) => {
                        archived.is_withdrawn = false;
                        ChangeKind::Restored
                    }
                    (3, Some(number), false) => {
                        archived.content = Some(number + 1);
                        ChangeKind::NewRoot
                    }
                    (4, ..) => {
                        let number = archived.content.filter(|_| !archived.is_withdrawn);
                        let listed = number.map(content);
                        let action = on_listing(known, listed);
                        apply(&mut known, action, content(number.unwrap_or(0)));
                        continue;
                    }
                    (5, ..) => {
                        // The index is begun anew.
                        known = None;
                        continue;
                    }
                    _ => continue,
                };
                let content = content(archived.content.unwrap());
                for _ in 0..2 {
                    let action = on_change(known, kind, content);
                    apply(&mut known, action, content);
                }
            }
            let stands = archived.content.filter(|_| !archived.is_withdrawn);
            let action = on_listing(known, stands.map(content));
            apply(&mut known, action, content(stands.unwrap_or(0)));
            let shown = known.filter(|known| !known.is_withdrawn);
            let shown = shown.map(|known| known.content.unwrap());
            assert_eq!(shown, stands.map(content), "{sequence}");
        }
    }

    /// Fails if the name of a withdrawn file is forgotten, or not kept: imported sets would show the file.
    #[test]
    fn withdrawn_names_are_kept() {
        let known = |is_withdrawn| {
            Some(KnownFile {
                content: Some(content(1)),
                is_withdrawn,
            })
        };
        let withdrawn = ChangeKind::Withdrawn;
        for known in [None, known(false)] {
            let action = on_change(known, withdrawn, content(1));
            assert_eq!(action, FileAction::Withdraw, "{known:?}");
        }
        let again = on_change(known(true), withdrawn, content(1));
        assert_eq!(again, FileAction::Nothing);
        assert_eq!(on_listing(known(false), None), FileAction::Withdraw);
        assert_eq!(on_listing(known(true), None), FileAction::Nothing);
        assert_eq!(on_listing(None, None), FileAction::Nothing);
    }

    /// Fails if a file is taken for what it is not by its name.
    #[test]
    fn names_tell_kinds_of_files() {
        for (name, archive, arc, metadata) in [
            ("a.warc", true, false, false),
            ("A.WARC.GZ", true, false, false),
            ("a.warc.zst", true, false, false),
            ("a.arc.gz", true, true, false),
            ("1-metadata-1.warc.gz", true, false, true),
            ("1-metadata-1.arc", true, true, true),
            ("1-metadata-1.txt", false, false, false),
            ("notes.txt.gz", false, false, false),
            ("warc", false, false, false),
        ] {
            assert_eq!(is_archive_name(name), archive, "{name}");
            assert_eq!(is_arc_name(name), arc, "{name}");
            assert_eq!(is_metadata(name), metadata, "{name}");
        }
    }
}
