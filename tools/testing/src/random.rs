//! Numbers and bytes that look random and are the same in every run.

/// A generator of numbers (`SplitMix64`), the same for the same seed. Fit for tests only.
///
/// ```
/// use tools_testing::Random;
///
/// let mut one = Random::new(7);
/// let mut other = Random::new(7);
/// assert_eq!(one.below(1000), other.below(1000));
/// assert!([1, 2, 3].contains(one.pick(&[1, 2, 3])));
/// ```
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Begins the sequence of a seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next number.
    pub const fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `end`.
    ///
    /// # Panics
    ///
    /// Panics if `end` is 0.
    pub const fn below(&mut self, end: u64) -> u64 {
        assert!(end > 0, "there is no number below 0");
        self.roll() % end
    }

    /// Returns a place in a list of this length.
    ///
    /// # Panics
    ///
    /// Panics if the list is empty.
    pub fn index(&mut self, length: usize) -> usize {
        let place = self.below(length as u64);
        usize::try_from(place).expect("a place is below the length of its list")
    }

    /// Returns one of several values.
    ///
    /// # Panics
    ///
    /// Panics if there are no values.
    #[expect(
        clippy::indexing_slicing,
        reason = "a test that picks from nothing fails"
    )]
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        let place = self.index(from.len());
        &from[place]
    }
}

/// Returns bytes that look random, the same for the same seed.
///
/// ```
/// assert_eq!(tools_testing::noise(3, 1), tools_testing::noise(5, 1)[..3]);
/// assert_ne!(tools_testing::noise(5, 1), tools_testing::noise(5, 2));
/// ```
pub fn noise(size: usize, seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    let mut bytes = Vec::with_capacity(size.next_multiple_of(8));
    while bytes.len() < size {
        bytes.extend_from_slice(&random.roll().to_le_bytes());
    }
    bytes.truncate(size);
    bytes
}
