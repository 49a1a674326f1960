//! The names of the files that a job is about, in pages.

use archive_bitarchive::{CatalogEntry, Condition, Node, NodeError, Row};
use archive_model::{FileName, FileSelection, NameList, NamePattern};

/// The number of rows of the catalog that are read before the snapshot of the catalog is released.
const ROWS: usize = 10_000;

/// The number of names of a list that are looked up for one page.
const LOOKUPS: usize = 1000;

/// A page of names, in order.
#[derive(Debug, Default)]
pub(crate) struct NamePage {
    pub(crate) names: Vec<FileName>,
    /// The name after which the next page begins; `None` if this was the last page.
    pub(crate) next: Option<FileName>,
}

/// Returns the next names of files of the archive, in any condition of their copies. A file that nobody admitted is
/// left out.
pub(crate) fn names_page(
    node: &Node,
    selection: &FileSelection,
    after: Option<&FileName>,
) -> Result<NamePage, NodeError> {
    match selection {
        FileSelection::Pattern(pattern) => page_of(node.files.list_entries(after)?, pattern, ROWS),
        FileSelection::Names(names) => {
            let is_here = |name: &FileName| {
                let entries = node.files.find_copies(name)?;
                Ok(entries.iter().any(|entry| is_admitted(&entry.row)))
            };
            page_of_list(names, after, LOOKUPS, is_here)
        }
    }
}

/// Reads a page of a list, without a look at any other file of the catalog.
fn page_of_list(
    list: &NameList,
    after: Option<&FileName>,
    most: usize,
    is_here: impl Fn(&FileName) -> Result<bool, NodeError>,
) -> Result<NamePage, NodeError> {
    let left = list.names_after(after);
    let (now, later) = left.split_at_checked(most).unwrap_or((left, &[]));
    let mut page = NamePage::default();
    for name in now {
        if is_here(name)? {
            page.names.push(name.clone());
        }
    }
    if !later.is_empty() {
        page.next = now.last().cloned();
    }
    Ok(page)
}

fn page_of(
    rows: impl Iterator<Item = Result<CatalogEntry, NodeError>>,
    pattern: &NamePattern,
    most: usize,
) -> Result<NamePage, NodeError> {
    let mut page = NamePage::default();
    // All rows of one name are looked at in one page.
    let mut last: Option<FileName> = None;
    let mut is_taken = false;
    for (count, entry) in rows.enumerate() {
        let entry = entry?;
        if last.as_ref() != Some(&entry.name) {
            if count >= most {
                page.next = last;
                return Ok(page);
            }
            is_taken = false;
            last = Some(entry.name.clone());
        }
        if !is_taken && is_admitted(&entry.row) && pattern.matches(entry.name.as_str()) {
            is_taken = true;
            page.names.push(entry.name);
        }
    }
    Ok(page)
}

/// Returns whether it is, or was, a file with a signed admission.
pub(crate) fn is_admitted(row: &Row) -> bool {
    let is_strange = matches!(row.condition, Condition::Unexpected { .. });
    !is_strange && row.root.is_some()
}

#[cfg(test)]
mod tests {
    use archive_model::{Root, VolumeId};
    use jiff::Timestamp;

    use super::*;

    fn row(name: &str, volume: &str, condition: Condition) -> CatalogEntry {
        CatalogEntry {
            name: FileName::new(name).unwrap(),
            volume: VolumeId::new(volume).unwrap(),
            row: Row {
                size: 1,
                root: Some(Root::from_bytes([1; 32])),
                stored: Timestamp::UNIX_EPOCH,
                verified: None,
                condition,
            },
        }
    }

    fn strange() -> Condition {
        Condition::Unexpected { why: "x".into() }
    }

    /// Fails if a name with copies on several volumes is listed twice or lost at the edge of a page, or a file that
    /// nobody admitted is listed.
    #[test]
    fn pages_of_any_size_have_names_once() {
        let rows = [
            row("a", "v1", strange()),
            row("a", "v2", Condition::Present),
            row("b", "v1", Condition::Present),
            row("b", "v2", Condition::Present),
            row("c", "v1", strange()),
            row("d", "v1", strange()),
            row("d", "v2", strange()),
            row("d", "v3", Condition::Present),
            row(
                "e",
                "v1",
                Condition::Missing {
                    since: Timestamp::UNIX_EPOCH,
                },
            ),
        ];
        for most in 1..=rows.len() + 1 {
            let mut found = Vec::new();
            let mut after = None;
            let mut pages = 0;
            loop {
                let rest = rows
                    .iter()
                    .filter(|row| after.as_ref().is_none_or(|after| row.name > *after))
                    .cloned()
                    .map(Ok);
                let page = page_of(rest, &NamePattern::default(), most).unwrap();
                found.extend(page.names.iter().map(ToString::to_string));
                pages += 1;
                match page.next {
                    Some(next) => after = Some(next),
                    None => break,
                }
            }
            assert_eq!(found, ["a", "b", "d", "e"], "{most}");
            assert!(pages <= 5, "{most}: {pages}");
        }
    }

    /// Fails if a named file that is here is passed over at the edge of a page, or one that is not is read.
    #[test]
    fn list_pages_have_every_name_here() {
        let names = |texts: &[&str]| -> Vec<_> {
            let names = texts.iter().map(|text| FileName::new(text).unwrap());
            names.collect()
        };
        let list = NameList::new(names(&["a", "b", "c", "d", "e", "f", "g"])).unwrap();
        let here = names(&["b", "d", "e", "h"]);
        for most in 1..=8 {
            for start in [None, Some("b"), Some("bb"), Some("g")] {
                let start = start.map(|name| FileName::new(name).unwrap());
                let mut found = Vec::new();
                let mut after = start.clone();
                loop {
                    let is_here = |name: &FileName| Ok(here.contains(name));
                    let page = page_of_list(&list, after.as_ref(), most, is_here).unwrap();
                    found.extend(page.names);
                    match page.next {
                        Some(next) => after = Some(next),
                        None => break,
                    }
                }
                let mut expected = names(&["b", "d", "e"]);
                expected.retain(|name| start.as_ref().is_none_or(|start| name > start));
                assert_eq!(found, expected, "{most} {start:?}");
            }
        }
    }
}
