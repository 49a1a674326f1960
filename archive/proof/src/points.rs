//! States that are kept while bytes pass, so that a cut stream continues near where it was.
//!
//! Owns which states are kept: every one of the last few mebibytes, and fewer the further back, so that their number
//! grows with the logarithm of the size. Two ends that keep points of one stream keep the same ones: the end that is
//! behind never lacks a point that the other end has kept up to there.
//!
//! Not promised: that a state is right for the bytes of another stream. Compare roots before going on.

use std::collections::VecDeque;

use archive_model::UploadId;

/// The number of bytes between two points where they are closest.
pub const STRIDE: u64 = 1024 * 1024;

/// The number of the last points that are all kept.
const DENSE: u64 = 8;

/// Splits `bytes`, which come after `size` other bytes, at the next point.
pub fn split_groups(size: u64, bytes: &[u8]) -> (&[u8], &[u8]) {
    let room = usize::try_from(STRIDE - size % STRIDE).unwrap_or(usize::MAX);
    bytes.split_at(room.min(bytes.len()))
}

/// Returns whether a state is kept after `size` bytes.
pub const fn is_point(size: u64) -> bool {
    size > 0 && size.is_multiple_of(STRIDE)
}

/// The states of a stream, each with the number of bytes that had passed.
///
/// ```
/// use archive_proof::points::{Points, STRIDE};
///
/// let mut points = Points::default();
/// points.keep_state(STRIDE, || "after one");
/// points.keep_state(2 * STRIDE, || "after two");
/// assert_eq!(points.back_to(STRIDE), Some(&"after one"));
/// assert_eq!(points.len(), 1);
/// ```
#[derive(Clone, Debug)]
pub struct Points<T>(Vec<(u64, T)>);

impl<T> Default for Points<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Points<T> {
    /// Keeps the state after `size` bytes, if [`is_point`]. Sizes must rise.
    pub fn keep_state(&mut self, size: u64, state: impl FnOnce() -> T) {
        if !is_point(size) {
            return;
        }
        let newest = size / STRIDE;
        self.0.retain(|(size, _)| {
            let number = size / STRIDE;
            newest.saturating_sub(number) < DENSE << number.trailing_zeros()
        });
        self.0.push((size, state()));
    }

    /// Returns every point, ascending.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        self.0.iter().map(|(size, state)| (*size, state))
    }

    /// Drops the points after `size` bytes, and returns the state at `size`; `None` if no point is kept there.
    pub fn back_to(&mut self, size: u64) -> Option<&T> {
        self.0.retain(|(other, _)| *other <= size);
        let last = self.0.last();
        last.filter(|(other, _)| *other == size)
            .map(|(_, state)| state)
    }

    /// Returns the number of points.
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there are no points.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The states of cut streams, by their upload. Bounded: the oldest are dropped first.
#[derive(Debug)]
pub struct ResumeStates<T> {
    most: usize,
    weight: usize,
    left: VecDeque<(UploadId, usize, T)>,
}

impl<T> ResumeStates<T> {
    /// Makes an empty set, for states whose weights add up to at most `most`.
    pub const fn new(most: usize) -> Self {
        Self {
            most,
            weight: 0,
            left: VecDeque::new(),
        }
    }

    /// Keeps the state of the stream of an upload, in place of an earlier one.
    pub fn put_states(&mut self, upload: UploadId, weight: usize, left: T) {
        self.take_states(&upload);
        self.weight = self.weight.saturating_add(weight);
        self.left.push_back((upload, weight, left));
        while self.weight > self.most
            && let Some((_, weight, _)) = self.left.pop_front()
        {
            self.weight -= weight;
        }
    }

    /// Removes and returns the state of the stream of an upload.
    pub fn take_states(&mut self, upload: &UploadId) -> Option<T> {
        let at = self.left.iter().position(|(other, _, _)| other == upload)?;
        let (_, weight, left) = self.left.remove(at)?;
        self.weight -= weight;
        Some(left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(strides: u64) -> Points<u64> {
        let mut points = Points::default();
        for number in 1..=strides {
            points.keep_state(number * STRIDE, || number);
        }
        points
    }

    /// Fails if a stream that is resumed far back sends nearly everything again, or the kept states grow with its
    /// length.
    #[test]
    fn resuming_at_any_point_resends_little() {
        for strides in (0..200).chain([1000, 1024, 4097, 1 << 20]) {
            let points = after(strides);
            assert!(points.len() <= 100, "{strides}: {}", points.len());
            for behind in (0..strides.min(300)).chain([strides / 2, strides]) {
                let stands = strides - behind;
                let before = points.iter().filter(|(size, _)| *size <= stands * STRIDE);
                let goes_on = before.last().map_or(0, |(_, number)| *number);
                let again = stands - goes_on;
                assert!(
                    again <= behind / 2,
                    "of {strides}, {behind} behind: {again} again"
                );
            }
        }
    }

    /// Fails if the two ends of a stream keep different points, so that they have none in common to resume from.
    #[test]
    fn end_that_is_behind_has_a_common_point() {
        for (ahead, behind) in [(1, 1), (9, 8), (100, 37), (1025, 1000), (5000, 64)] {
            let known: Vec<u64> = after(behind).iter().map(|(size, _)| size).collect();
            let points = after(ahead);
            let shared = points.iter().filter(|(size, _)| *size <= behind * STRIDE);
            for (size, _) in shared {
                assert!(known.contains(&size), "{ahead}, {behind}: {size}");
            }
        }
    }

    /// Fails if a point of bytes that were given up is kept, or a size between two points becomes a point.
    #[test]
    fn going_back_forgets_what_came_after() {
        let mut points = after(20);
        assert_eq!(points.back_to(18 * STRIDE + 1), None);
        assert_eq!(points.back_to(18 * STRIDE), Some(&18));
        assert_eq!(points.iter().last(), Some((18 * STRIDE, &18)));
        assert_eq!(points.back_to(0), None);
        assert!(points.is_empty());
        points.keep_state(STRIDE + 1, || 0);
        points.keep_state(0, || 0);
        assert!(points.is_empty(), "these are no points");
    }

    /// Fails if bytes are hashed past a point in one piece, so that no state is kept there.
    #[test]
    fn bytes_are_split_at_the_points() {
        let bytes = vec![0; 3 * 1024 * 1024];
        let mut size = STRIDE - 5;
        let mut rest = bytes.as_slice();
        let mut lengths = Vec::new();
        while !rest.is_empty() {
            let (piece, others) = split_groups(size, rest);
            lengths.push(piece.len() as u64);
            size += piece.len() as u64;
            rest = others;
        }
        assert_eq!(lengths, [5, STRIDE, STRIDE, STRIDE - 5]);
        assert_eq!(split_groups(7, b""), (b"".as_slice(), b"".as_slice()));
    }

    /// Fails if a full set drops another state than the oldest, counts a replaced one twice, or keeps one above its
    /// limit.
    #[test]
    fn full_set_drops_oldest_first() {
        let id = |name: &str| UploadId::new(name).unwrap();
        let mut states = ResumeStates::new(10);
        states.put_states(id("a"), 4, 'a');
        states.put_states(id("b"), 4, 'b');
        states.put_states(id("a"), 5, 'A');
        states.put_states(id("c"), 5, 'c');
        assert_eq!(states.take_states(&id("b")), None, "it was the oldest");
        assert_eq!(states.take_states(&id("a")), Some('A'));
        assert_eq!(states.take_states(&id("a")), None);
        states.put_states(id("d"), 11, 'd');
        assert_eq!(states.take_states(&id("c")), None);
        assert_eq!(states.take_states(&id("d")), None, "heavier than the limit");
        states.put_states(id("e"), 10, 'e');
        assert_eq!(states.take_states(&id("e")), Some('e'));
    }
}
