//! Values that were used lately, by number.
//!
//! Owns how they are forgotten: there are two generations of at most a number of values each, and the older one is
//! dropped as a whole when the younger one is full. What is used again becomes young again.

use std::collections::HashMap;

/// A bounded map from numbers that are spread evenly, such as hashes.
#[derive(Clone, Debug)]
pub(super) struct RecentMap<V> {
    young: HashMap<u64, V>,
    old: HashMap<u64, V>,
    capacity: usize,
}

impl<V: Default> RecentMap<V> {
    /// Makes a map without values; there will never be more than twice `capacity`.
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            young: HashMap::new(),
            old: HashMap::new(),
            capacity,
        }
    }

    /// Returns the value of a number; a new one if it has none.
    pub(super) fn entry(&mut self, key: u64) -> &mut V {
        let renewed = self.old.remove(&key);
        if self.young.len() >= self.capacity && !self.young.contains_key(&key) {
            self.old = std::mem::take(&mut self.young);
        }
        self.young
            .entry(key)
            .or_insert_with(|| renewed.unwrap_or_default())
    }
}

impl RecentMap<()> {
    /// Adds a number. Returns whether it was not there.
    pub(super) fn insert(&mut self, key: u64) -> bool {
        let is_new = !self.young.contains_key(&key) && !self.old.contains_key(&key);
        self.entry(key);
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a value in use is forgotten, or more are kept than there is room for.
    #[test]
    fn unused_values_are_forgotten() {
        let mut recent = RecentMap::new(4);
        for key in 0..100 {
            *recent.entry(1000) += 1;
            *recent.entry(key) += 1;
            assert!(recent.young.len() <= 4 && recent.old.len() <= 4);
        }
        assert_eq!(
            (*recent.entry(1000), *recent.entry(99), *recent.entry(5)),
            (100, 1, 0)
        );
    }

    /// Fails if a number is new twice in a row, or not new at first.
    #[test]
    fn number_is_new_once() {
        let mut recent = RecentMap::new(4);
        let known: Vec<bool> = [1, 2, 1, 3, 2].map(|key| recent.insert(key)).into();
        assert_eq!(known, [true, true, false, true, false]);
    }
}
