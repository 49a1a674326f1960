//! A list of names of files, sorted, each once.
//!
//! Owns how many names such a list may have and how long they may be together: the same at every door. A list is never
//! empty, because a list of no names is too easily taken for every file.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::file_name::FileName;

/// Names of files in the order of their bytes, each once; at least one. Cheap to clone.
///
/// ```
/// use archive_model::{FileName, NameList};
/// let names = ["b.warc", "a.warc", "b.warc"].map(|name| FileName::new(name).unwrap());
/// let list = NameList::new(names.to_vec())?;
/// assert_eq!(list.as_slice().len(), 2);
/// assert!(list.contains(&names[0]));
/// # Ok::<(), archive_model::InvalidNameList>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<FileName>", into = "Vec<FileName>")]
pub struct NameList(Arc<[FileName]>);

/// The reason why names are not a list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidNameList {
    /// The list names no file.
    #[error("the list names no file")]
    Empty,
    /// The list names too many files.
    #[error("the list has {0} names, at most {most} are allowed; split it", most = NameList::MOST)]
    Many(usize),
    /// The names of the list are too long together.
    #[error("the names of the list have {0} bytes together, at most {most} are allowed; split it", most = NameList::LARGEST)]
    Large(usize),
    /// The list is not sorted, or a name stands in it twice.
    #[error("the name {0} is not in order: names are sorted by their bytes, and each stands once")]
    Order(FileName),
}

impl NameList {
    /// The most names that a list may have.
    pub const MOST: usize = 10_000;

    /// The most bytes that all names of a list may have together.
    pub const LARGEST: usize = 1 << 20;

    /// Sorts names and drops repeated ones.
    ///
    /// # Errors
    /// There are none, too many, or they are too long together.
    pub fn new(mut names: Vec<FileName>) -> Result<Self, InvalidNameList> {
        names.sort_unstable();
        names.dedup();
        Self::from_sorted(names)
    }

    /// Takes names that are sorted already, each once.
    ///
    /// # Errors
    /// As of [`NameList::new`]; or they are not in order.
    pub fn from_sorted(names: Vec<FileName>) -> Result<Self, InvalidNameList> {
        if names.is_empty() {
            return Err(InvalidNameList::Empty);
        }
        if names.len() > Self::MOST {
            return Err(InvalidNameList::Many(names.len()));
        }
        let bytes = names.iter().map(|name| name.as_str().len()).sum();
        if bytes > Self::LARGEST {
            return Err(InvalidNameList::Large(bytes));
        }
        let mut pairs = names.iter().zip(names.iter().skip(1));
        if let Some((_, late)) = pairs.find(|(one, next)| one >= next) {
            return Err(InvalidNameList::Order(late.clone()));
        }
        Ok(Self(names.into()))
    }

    /// Returns whether a name is in the list.
    pub fn contains(&self, name: &FileName) -> bool {
        self.0.binary_search(name).is_ok()
    }

    /// Returns the names, in order.
    pub fn as_slice(&self) -> &[FileName] {
        &self.0
    }

    /// Returns the names behind `name`, in order; all names if it is absent.
    pub fn names_after(&self, name: Option<&FileName>) -> &[FileName] {
        let start = name.map_or(0, |name| self.0.partition_point(|one| one <= name));
        &self.0[start..]
    }
}

impl TryFrom<Vec<FileName>> for NameList {
    type Error = InvalidNameList;

    fn try_from(names: Vec<FileName>) -> Result<Self, InvalidNameList> {
        Self::from_sorted(names)
    }
}

impl From<NameList> for Vec<FileName> {
    fn from(list: NameList) -> Self {
        list.0.to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(texts: &[&str]) -> Vec<FileName> {
        texts
            .iter()
            .map(|text| FileName::new(text).unwrap())
            .collect()
    }

    /// Fails if a name is lost by sorting, or two lists of the same names differ.
    #[test]
    fn order_of_names_makes_no_difference() {
        let list = NameList::new(names(&["b", "a", "c", "a"])).unwrap();
        assert_eq!(list.as_slice(), names(&["a", "b", "c"]));
        assert_eq!(
            NameList::from_sorted(names(&["a", "b", "c"])).unwrap(),
            list
        );
        for (name, is_in) in [("a", true), ("c", true), ("B", false), ("bb", false)] {
            assert_eq!(
                list.contains(&FileName::new(name).unwrap()),
                is_in,
                "{name}"
            );
        }
        let after = |name: &str| {
            list.names_after(Some(&FileName::new(name).unwrap()))
                .to_vec()
        };
        assert_eq!(list.names_after(None), names(&["a", "b", "c"]));
        assert_eq!(after("a"), names(&["b", "c"]));
        assert_eq!(after("aa"), names(&["b", "c"]));
        assert_eq!(after("c"), []);
    }

    /// Fails if a list may mean everything, be of any size, or come unsorted from a peer.
    #[test]
    fn lists_beyond_the_limits_are_refused() {
        assert_eq!(NameList::new(Vec::new()), Err(InvalidNameList::Empty));
        let many = |count: usize, length: usize| {
            let name = |number| FileName::new(&format!("{number:0length$}")).unwrap();
            NameList::new((0..count).map(name).collect())
        };
        assert!(many(NameList::MOST, 9).is_ok());
        assert_eq!(
            many(NameList::MOST + 1, 9),
            Err(InvalidNameList::Many(NameList::MOST + 1))
        );
        assert!(many(NameList::LARGEST / 128, 128).is_ok());
        assert!(matches!(
            many(NameList::LARGEST / 128 + 1, 128),
            Err(InvalidNameList::Large(_))
        ));
        for bad in [["b", "a"], ["a", "a"]] {
            let refused = NameList::from_sorted(names(&bad));
            assert!(matches!(refused, Err(InvalidNameList::Order(_))), "{bad:?}");
            let read = NameList::try_from(names(&bad));
            assert!(read.is_err(), "{bad:?}");
        }
    }
}
