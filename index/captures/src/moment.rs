//! Times of captures as numbers that sort as the times do.

use archive_formats::date::Stamp;

/// The number of bytes that a moment has in a key.
pub(crate) const BYTES: usize = 7;

/// A [`Stamp`] as a number: year, month, day, hour, minute, second and millisecond in bits, then whether it is written
/// with 17 digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(u64);

/// The bits of each part after the year.
const PARTS: [u32; 6] = [4, 5, 5, 6, 6, 10];

impl Moment {
    /// Before every capture.
    pub(crate) const FIRST: Self = Self(0);
    /// Behind every capture: the bits of a date end before, and the next moment fits into a key, too.
    pub(crate) const LAST: Self = Self(1 << 52);

    /// Returns the moment of a timestamp.
    pub(crate) fn from_stamp(stamp: Stamp) -> Self {
        let [year, parts @ ..] = stamp.date_parts();
        let bits = PARTS
            .into_iter()
            .zip(parts)
            .fold(u64::from(year), |bits, (width, part)| {
                bits << width | u64::from(part)
            });
        Self(bits << 1 | u64::from(stamp.has_millis()))
    }

    /// Returns the first moment of the second or millisecond that a timestamp names.
    pub(crate) fn start_of(stamp: Stamp) -> Self {
        Self(Self::from_stamp(stamp).0 & !1)
    }

    /// Returns the last moment of the second or millisecond that a timestamp names.
    pub(crate) fn end_of(stamp: Stamp) -> Self {
        let first = Self::from_stamp(stamp);
        let unit = if stamp.has_millis() { 1 } else { 11 };
        Self(first.0 | ((1 << unit) - 1))
    }

    /// Returns the next possible moment.
    pub(crate) const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// Returns the timestamp; `None` if the bits are not those of a date.
    pub(crate) fn stamp(self) -> Option<Stamp> {
        let mut bits = self.0 >> 1;
        let mut parts = [0; 7];
        let [year, rest @ ..] = &mut parts;
        for (width, part) in PARTS.into_iter().zip(rest).rev() {
            *part = u16::try_from(bits & ((1 << width) - 1)).ok()?;
            bits >>= width;
        }
        *year = u16::try_from(bits).ok()?;
        Stamp::from_parts(parts, self.0 & 1 == 1).ok()
    }

    /// Returns the milliseconds since 1970.
    pub(crate) fn millis(self) -> Option<i64> {
        Some(self.stamp()?.time().as_millisecond())
    }

    pub(crate) const fn to_bytes(self) -> [u8; BYTES] {
        let [_, bytes @ ..] = self.0.to_be_bytes();
        bytes
    }

    pub(crate) fn from_bytes(bytes: [u8; BYTES]) -> Self {
        let number = bytes.into_iter();
        Self(number.fold(0, |number, byte| number << 8 | u64::from(byte)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SORTED: [&str; 12] = [
        "00000101000000",
        "00000101000000000",
        "00000101000000001",
        "19991231235959",
        "19991231235959999",
        "20000101000000",
        "20000229120000",
        "20161231235959",
        "20161231235959001",
        "20161231235959010",
        "99991231235959",
        "99991231235959999",
    ];

    /// Fails if a time is changed by its way through a key, or sorts elsewhere than as text.
    #[test]
    fn moments_round_trip_and_sort_as_text() {
        let stamps = SORTED.map(|text| text.parse::<Stamp>().unwrap());
        let moments = stamps.map(Moment::from_stamp);
        assert!(moments.is_sorted_by(|a, b| a < b), "{moments:?}");
        for (stamp, moment) in stamps.into_iter().zip(moments) {
            assert_eq!(moment.stamp(), Some(stamp), "{stamp}");
            assert_eq!(Moment::from_bytes(moment.to_bytes()), moment);
            assert!(Moment::FIRST < moment && moment < Moment::LAST);
        }
        assert_eq!(Moment::LAST.stamp(), None);
        let behind = Moment::LAST.next();
        assert_eq!(Moment::from_bytes(behind.to_bytes()), behind);
    }

    /// Fails if the first or the last millisecond of a second is left out of it.
    #[test]
    fn second_ends_with_its_last_millisecond() {
        let stamp = |text: &str| text.parse::<Stamp>().unwrap();
        let end = Moment::end_of(stamp("20161231235959"));
        assert!(Moment::from_stamp(stamp("20161231235959999")) <= end);
        assert!(Moment::from_stamp(stamp("20170101000000")) > end);
        let start = Moment::start_of(stamp("20161231235959000"));
        assert_eq!(start, Moment::from_stamp(stamp("20161231235959")));
        let end = Moment::end_of(stamp("20161231235959001"));
        assert!(Moment::from_stamp(stamp("20161231235959")) < end);
        assert_eq!(Moment::from_stamp(stamp("20161231235959001")), end);
        assert!(Moment::from_stamp(stamp("20161231235959002")) > end);
    }
}
