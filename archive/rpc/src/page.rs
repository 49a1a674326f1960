//! Lists of any length in messages of bounded length.

use prost::Message;

/// The most items of a page, unless it is made with another limit.
const MOST_ITEMS: usize = 1000;

/// The most bytes of the items of a page together, unless a single one is larger: far below
/// [`crate::limits::LARGEST_MESSAGE`], so that the rest of the message has room.
const MOST_BYTES: usize = 1 << 20;

/// The items of a message that is being filled, bounded in their number and in their encoded bytes.
///
/// ```
/// use archive_rpc::Page;
///
/// let mut page = Page::with_most(2);
/// assert_eq!(page.push("a".to_owned()), None);
/// assert_eq!(page.push("b".to_owned()), None);
/// assert_eq!(page.push("c".to_owned()).unwrap(), ["a", "b"]);
/// assert_eq!(page.take_page(), ["c"]);
/// ```
#[derive(Debug)]
pub struct Page<T> {
    items: Vec<T>,
    bytes: usize,
    most: usize,
}

impl<T: Message> Page<T> {
    /// Returns an empty page of at most 1,000 items.
    pub const fn new() -> Self {
        Self::with_most(MOST_ITEMS)
    }

    /// Returns an empty page of at most `most` items.
    pub const fn with_most(most: usize) -> Self {
        Self {
            items: Vec::new(),
            bytes: 0,
            most,
        }
    }

    /// Adds an item. Returns the earlier ones, which are to be sent first, if there is no room for both.
    #[must_use = "the earlier items are to be sent"]
    pub fn push(&mut self, item: T) -> Option<Vec<T>> {
        let bytes = item.encoded_len();
        let has_room = self.items.len() < self.most && self.bytes + bytes <= MOST_BYTES;
        let full = (!has_room && !self.items.is_empty()).then(|| self.take_page());
        self.bytes += bytes;
        self.items.push(item);
        full
    }

    /// Returns whether there is nothing to send.
    pub const fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Takes the items that were not sent yet.
    pub fn take_page(&mut self) -> Vec<T> {
        self.bytes = 0;
        std::mem::take(&mut self.items)
    }
}

impl<T: Message> Default for Page<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a message has more items or bytes than a caller reads, or an item is lost or changes its place.
    #[test]
    fn pages_are_bounded_in_items_and_bytes() {
        for (length, count) in [
            (0, 2500),
            (1000, 2500),
            (700_000, 5),
            (3_000_000, 3),
            (1, 0),
        ] {
            let items: Vec<String> = (0..count)
                .map(|n| "x".repeat(length) + &n.to_string())
                .collect();
            let mut page = Page::new();
            let full = items.iter().filter_map(|item| page.push(item.clone()));
            let mut sent: Vec<Vec<String>> = full.collect();
            sent.push(page.take_page());
            assert!(page.is_empty());
            for items in &sent {
                let bytes: usize = items.iter().map(Message::encoded_len).sum();
                assert!(items.len() <= MOST_ITEMS, "{}", items.len());
                assert!(items.len() <= 1 || bytes <= MOST_BYTES, "{bytes}");
            }
            assert_eq!(sent.concat(), items);
        }
    }
}
