//! The numbers of the files that are shown: bits in pages that versions share.

use std::sync::Arc;

/// The number of numbers on a page.
const PAGE: u32 = 64 * 64;

type Page = [u64; 64];

/// A set of numbers of files. A clone is cheap, and stays as it is while the other one changes.
#[derive(Clone, Debug, Default)]
pub(crate) struct NumberSet {
    pages: Vec<Option<Arc<Page>>>,
}

impl NumberSet {
    /// Returns whether a number is in the set.
    pub(crate) fn has_number(&self, number: u32) -> bool {
        let (page, word, bit) = split(number);
        let page = self.pages.get(page).and_then(Option::as_deref);
        page.is_some_and(|page| page[word] & bit != 0)
    }

    /// Adds or removes a number.
    pub(crate) fn set_number(&mut self, number: u32, is_in: bool) {
        let (page, word, bit) = split(number);
        if self.pages.len() <= page {
            if !is_in {
                return;
            }
            self.pages.resize(page + 1, None);
        }
        let page = self.pages[page].get_or_insert_with(|| Arc::new([0; 64]));
        let word = &mut Arc::make_mut(page)[word];
        *word = if is_in { *word | bit } else { *word & !bit };
    }
}

/// Returns the page, the word in it and the bit in that.
fn split(number: u32) -> (usize, usize, u64) {
    let page = (number / PAGE) as usize;
    let word = (number % PAGE / 64) as usize;
    (page, word, 1 << (number % 64))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a number is lost, or a clone sees later changes.
    #[test]
    fn numbers_are_kept_and_clones_stay() {
        let numbers = [0, 1, 63, 64, 4095, 4096, 1_000_000, 100_000_000];
        let mut set = NumberSet::default();
        set.set_number(5_000_000, false);
        for (count, number) in numbers.into_iter().enumerate() {
            let before = set.clone();
            set.set_number(number, true);
            assert!(!before.has_number(number) && set.has_number(number));
            assert!(numbers.iter().filter(|n| set.has_number(**n)).count() == count + 1);
            assert!(!set.has_number(number + 1) || numbers.contains(&(number + 1)));
        }
        let full = set.clone();
        for number in numbers {
            set.set_number(number, false);
            assert!(full.has_number(number) && !set.has_number(number));
        }
        assert!(!set.has_number(u32::MAX));
    }
}
