//! Sets of groups of a file: 16 KiB each, the unit in which damage is located, proven and repaired.

use std::ops::Range;

use serde::{Deserialize, Serialize};

/// The size of a group in bytes: 16 BLAKE3 chunks of 1024 bytes.
pub const GROUP_SIZE: u64 = 16 * 1024;

/// A set of groups: sorted, disjoint, non-adjacent half-open ranges of group indexes.
///
/// ```
/// use archive_model::{GROUP_SIZE, Groups};
///
/// // The damaged byte 40,000 lies in the third group of a file of 50,000 bytes.
/// let damaged = Groups::groups_touching([40_000..40_001]);
/// assert!(damaged.contains_group(2));
/// assert_eq!(damaged.byte_ranges(50_000).collect::<Vec<_>>(), [2 * GROUP_SIZE..3 * GROUP_SIZE]);
/// assert_eq!(Groups::all(50_000).difference(&damaged).len(), 3);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "Vec<(u64, u64)>", into = "Vec<(u64, u64)>")]
pub struct Groups(Vec<Range<u64>>);

impl FromIterator<u64> for Groups {
    /// Collects group indexes, in any order.
    fn from_iter<I: IntoIterator<Item = u64>>(indexes: I) -> Self {
        let mut groups = Self::none();
        for index in indexes {
            groups.insert_one(index);
        }
        groups
    }
}

impl Groups {
    /// Returns the empty set.
    pub const fn none() -> Self {
        Self(Vec::new())
    }

    /// Returns every group of a file of `size` bytes; an empty file has one group, of no bytes.
    pub fn all(size: u64) -> Self {
        Self(std::iter::once(0..group_count(size)).collect())
    }

    /// Returns the groups that any of the byte `ranges` touches. Empty ranges touch nothing.
    pub fn groups_touching(ranges: impl IntoIterator<Item = Range<u64>>) -> Self {
        let mut groups = Self::none();
        for range in ranges.into_iter().filter(|range| range.start < range.end) {
            groups.insert_range(range.start / GROUP_SIZE..range.end.div_ceil(GROUP_SIZE));
        }
        groups
    }

    /// Adds a range of group indexes.
    pub fn insert_range(&mut self, range: Range<u64>) {
        if range.start >= range.end {
            return;
        }
        let first = self.0.partition_point(|r| r.end < range.start);
        let past = self.0.partition_point(|r| r.start <= range.end);
        let mut merged = range;
        for old in self.0.drain(first..past) {
            merged = merged.start.min(old.start)..merged.end.max(old.end);
        }
        self.0.insert(first, merged);
    }

    /// Adds one group, by its index.
    pub fn insert_one(&mut self, group: u64) {
        self.insert_range(group..group.saturating_add(1));
    }

    /// Returns whether no group is in the set.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of groups in the set.
    pub fn len(&self) -> u64 {
        self.0.iter().map(|r| r.end - r.start).sum()
    }

    /// Returns whether `group` is in the set.
    pub fn contains_group(&self, group: u64) -> bool {
        let next = self.0.partition_point(|r| r.end <= group);
        self.0.get(next).is_some_and(|r| r.contains(&group))
    }

    /// Returns the ranges of group indexes, ascending.
    pub fn ranges(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.0.iter().cloned()
    }

    /// Returns each group index, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        self.0.iter().flat_map(Clone::clone)
    }

    /// Returns the groups that are in this set or in `other`.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let mut all = self.clone();
        for range in other.ranges() {
            all.insert_range(range);
        }
        all
    }

    /// Returns the groups that are in this set and not in `other`.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        let mut left = Self::none();
        let mut cuts = other.0.iter().peekable();
        for range in &self.0 {
            let mut start = range.start;
            while let Some(cut) = cuts.peek() {
                if cut.start >= range.end {
                    break;
                }
                left.insert_range(start..cut.start.min(range.end));
                start = start.max(cut.end);
                if cut.end > range.end {
                    break;
                }
                cuts.next();
            }
            left.insert_range(start..range.end);
        }
        left
    }

    /// Returns the groups that are in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        self.difference(&self.difference(other))
    }

    /// Returns the byte ranges that the set covers in a file of `size` bytes, ascending.
    pub fn byte_ranges(&self, size: u64) -> impl Iterator<Item = Range<u64>> + '_ {
        self.0.iter().map(move |r| {
            r.start.saturating_mul(GROUP_SIZE).min(size)..r.end.saturating_mul(GROUP_SIZE).min(size)
        })
    }
}

/// Returns the number of groups of a file of `size` bytes: at least one.
pub const fn group_count(size: u64) -> u64 {
    let groups = size.div_ceil(GROUP_SIZE);
    if groups == 0 { 1 } else { groups }
}

/// The reason why ranges are no set of groups: some are empty or out of order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("group ranges must be non-empty, ascending and apart")]
pub struct InvalidGroups;

impl TryFrom<Vec<(u64, u64)>> for Groups {
    type Error = InvalidGroups;

    fn try_from(pairs: Vec<(u64, u64)>) -> Result<Self, Self::Error> {
        let ordered = pairs
            .windows(2)
            .all(|w| matches!(w, [(_, end), (start, _)] if end < start));
        if !ordered || pairs.iter().any(|(start, end)| start >= end) {
            return Err(InvalidGroups);
        }
        Ok(Self(
            pairs.into_iter().map(|(start, end)| start..end).collect(),
        ))
    }
}

impl From<Groups> for Vec<(u64, u64)> {
    fn from(groups: Groups) -> Self {
        groups.0.into_iter().map(|r| (r.start, r.end)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from_bits(bits: u32) -> Groups {
        (0..8).filter(|bit| bits & (1 << bit) != 0).collect()
    }

    fn to_bits(groups: &Groups) -> u32 {
        groups.iter().map(|group| 1 << group).sum()
    }

    /// Fails if an operation on sets of groups gives a wrong set, or the right one in a form that compares as
    /// different.
    #[test]
    fn every_pair_of_small_sets_obeys_set_algebra() {
        for a in 0..256 {
            for b in 0..256 {
                let left = from_bits(a);
                let right = from_bits(b);
                assert_eq!(to_bits(&left.union(&right)), a | b);
                assert_eq!(
                    to_bits(&left.difference(&right)),
                    a & !b,
                    "{left:?} {right:?}"
                );
                assert_eq!(to_bits(&left.intersection(&right)), a & b);
                assert_eq!(left.difference(&right), from_bits(a & !b), "normal form");
            }
            assert_eq!(from_bits(a).len(), u64::from(a.count_ones()));
            assert!((0..8).all(|bit| from_bits(a).contains_group(bit) == (a & (1 << bit) != 0)));
        }
    }

    /// Fails if a group of which a range touches one byte is left out, or the last group reaches beyond the end of the
    /// file.
    #[test]
    fn bytes_and_groups_meet_at_the_edges() {
        assert_eq!(group_count(0), 1);
        assert_eq!(group_count(GROUP_SIZE), 1);
        assert_eq!(group_count(GROUP_SIZE + 1), 2);
        let groups = Groups::groups_touching([
            0..1,
            GROUP_SIZE..GROUP_SIZE + 1,
            5 * GROUP_SIZE - 1..5 * GROUP_SIZE,
            9..9,
        ]);
        assert_eq!(groups.ranges().collect::<Vec<_>>(), [0..2, 4..5]);
        assert_eq!(
            groups.byte_ranges(4 * GROUP_SIZE + 7).collect::<Vec<_>>(),
            [0..2 * GROUP_SIZE, 4 * GROUP_SIZE..4 * GROUP_SIZE + 7]
        );
    }

    /// Fails if empty, adjoining or unordered ranges are accepted, so that one set has two forms.
    #[test]
    fn json_that_is_no_set_is_refused() {
        assert_eq!(
            serde_json::from_str::<Groups>("[[0,2],[4,5]]")
                .unwrap()
                .len(),
            3
        );
        for bad in ["[[2,2]]", "[[3,1]]", "[[0,2],[2,3]]", "[[5,6],[0,1]]"] {
            assert!(serde_json::from_str::<Groups>(bad).is_err(), "{bad}");
        }
    }
}
