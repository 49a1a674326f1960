//! The timeline and the bars of years, as SVG: geometry only, so that no style is needed in the page.

use std::collections::BTreeMap;

/// The most years of a timeline: beyond that a month is too narrow to be seen.
const MOST_YEARS: i16 = 80;

/// The height of a bar.
const HEIGHT: u64 = 40;

/// The height of the lowest bar.
const LOWEST: u64 = 3;

/// A bar in an SVG image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bar {
    pub(super) x: u32,
    pub(super) y: u64,
    pub(super) height: u64,
}

/// A bar for each month with captures, between the first and the last year.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Timeline {
    pub(super) first_year: i16,
    pub(super) last_year: i16,
    /// The width of the timeline in months.
    pub(super) width: u32,
    pub(super) bars: Vec<Bar>,
    /// The begin of the year that is shown below, in months.
    pub(super) shown: Option<u32>,
}

impl Bar {
    /// Returns the bar of a number beside the largest one.
    pub(super) fn new(x: u32, count: u64, largest: u64) -> Self {
        let scaled = u128::from(count) * u128::from(HEIGHT) / u128::from(largest.max(1));
        let height = u64::try_from(scaled)
            .unwrap_or(HEIGHT)
            .clamp(LOWEST, HEIGHT);
        Self {
            x,
            y: HEIGHT - height,
            height,
        }
    }
}

impl Timeline {
    /// Returns the timeline of months; `None` if there are no captures, or more years than can be seen.
    pub(super) fn new(months: &BTreeMap<(i16, i8), u64>, shown: Option<i16>) -> Option<Self> {
        let ((first_year, _), _) = months.first_key_value()?;
        let ((last_year, _), _) = months.last_key_value()?;
        let first_year = *first_year;
        let last_year = *last_year;
        if last_year - first_year >= MOST_YEARS {
            return None;
        }
        let largest = months.values().copied().max().unwrap_or(1);
        let place = |year: i16, month: i8| {
            let months = i32::from(year - first_year) * 12 + i32::from(month) - 1;
            u32::try_from(months).expect("no month is before the first year")
        };
        let bars = months
            .iter()
            .map(|((year, month), count)| Bar::new(place(*year, *month), *count, largest));
        let shown = shown.filter(|year| (first_year..=last_year).contains(year));
        Some(Self {
            first_year,
            last_year,
            width: place(last_year, 12) + 1,
            bars: bars.collect(),
            shown: shown.map(|year| place(year, 1)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a bar stands in another month than its captures, or leaves the image.
    #[test]
    fn bars_stand_in_their_months() {
        let months = BTreeMap::from([((2019, 12), 1), ((2020, 1), 1000), ((2021, 6), 500)]);
        let timeline = Timeline::new(&months, Some(2020)).unwrap();
        assert_eq!((timeline.width, timeline.shown), (36, Some(12)));
        let places: Vec<u32> = timeline.bars.iter().map(|bar| bar.x).collect();
        assert_eq!(places, [11, 12, 29]);
        let heights: Vec<u64> = timeline.bars.iter().map(|bar| bar.height).collect();
        assert_eq!(heights, [3, 40, 20]);
        assert!(timeline.bars.iter().all(|bar| bar.y + bar.height == 40));
        assert_eq!(Timeline::new(&BTreeMap::new(), None), None);
        let far = BTreeMap::from([((1, 1), 1), ((9999, 12), u64::MAX)]);
        assert_eq!(Timeline::new(&far, None), None);
        assert_eq!(Bar::new(0, u64::MAX, u64::MAX).height, 40);
        assert_eq!(Bar::new(0, 0, 0).height, 3);
    }
}
