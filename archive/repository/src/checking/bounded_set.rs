//! A set that counts each item once, in bounded memory.

use std::collections::BTreeSet;

/// The most items that are remembered.
const MOST: usize = 100_000;

/// A set of items. The first of them are remembered, and of the others the last: names come in order, so that an item
/// that is repeated at once is known. Beyond that an item may be counted twice, and is never missed.
#[derive(Debug)]
pub(super) struct BoundedSet<T> {
    first: BTreeSet<T>,
    last: Option<T>,
    count: u64,
}

impl<T> Default for BoundedSet<T> {
    fn default() -> Self {
        Self {
            first: BTreeSet::new(),
            last: None,
            count: 0,
        }
    }
}

impl<T: Ord> BoundedSet<T> {
    /// Inserts an item. Returns `false` if it was there before.
    pub(super) fn insert(&mut self, one: T) -> bool {
        if self.first.contains(&one) || self.last.as_ref() == Some(&one) {
            return false;
        }
        self.count = self.count.saturating_add(1);
        if self.first.len() < MOST {
            self.first.insert(one);
        } else {
            self.last = Some(one);
        }
        true
    }

    /// Returns the number of items.
    pub(super) const fn count(&self) -> u64 {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if the set grows with the damage, or an item that is not remembered is not counted.
    #[test]
    fn item_is_counted_once_in_bounded_memory() {
        let mut seen = BoundedSet::default();
        for number in 0..2 * MOST {
            assert!(seen.insert(number));
            assert!(!seen.insert(number), "repeated at once: {number}");
        }
        assert_eq!(seen.count(), 2 * MOST as u64);
        assert!(!seen.insert(7), "the first items stay known");
        assert_eq!(seen.first.len(), MOST);
    }
}
