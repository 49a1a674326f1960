//! Captures by day, counted: what the years, months and days of a calendar show. Pure, and as large as there are days.

use std::collections::BTreeMap;

use archive_formats::date::Stamp;
use jiff::civil::Date;

use super::super::texts::stamp_date;

/// The captures of one day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DayCaptures {
    pub(super) count: u64,
    /// The first capture of the day.
    pub(super) first: Stamp,
}

/// A day in a grid, with its captures if it has any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GridDay {
    pub(super) date: Date,
    pub(super) captures: Option<DayCaptures>,
}

/// Captures by day.
#[derive(Clone, Debug, Default)]
pub(super) struct CaptureDays {
    days: BTreeMap<Date, DayCaptures>,
    total: u64,
}

impl CaptureDays {
    /// Counts a capture.
    pub(super) fn add_capture(&mut self, stamp: Stamp) {
        self.total += 1;
        let day = self.days.entry(stamp_date(stamp)).or_insert(DayCaptures {
            count: 0,
            first: stamp,
        });
        day.count += 1;
    }

    /// Returns how many captures there are.
    pub(super) const fn total(&self) -> u64 {
        self.total
    }

    /// Returns the years with captures, and how many each has.
    pub(super) fn years(&self) -> BTreeMap<i16, u64> {
        let mut years = BTreeMap::new();
        for (date, day) in &self.days {
            *years.entry(date.year()).or_insert(0) += day.count;
        }
        years
    }

    /// Returns the months with captures of all years, and how many each has.
    pub(super) fn months(&self) -> BTreeMap<(i16, i8), u64> {
        let mut months = BTreeMap::new();
        for (date, day) in &self.days {
            *months.entry((date.year(), date.month())).or_insert(0) += day.count;
        }
        months
    }

    /// Returns how many captures lie between two days, both included.
    pub(super) fn count_between(&self, first: Date, last: Date) -> u64 {
        if first > last {
            return 0;
        }
        self.days
            .range(first..=last)
            .map(|(_, day)| day.count)
            .sum()
    }

    /// Returns the last year with captures between two days.
    pub(super) fn last_year(&self, first: Date, last: Date) -> Option<i16> {
        if first > last {
            return None;
        }
        let mut days = self.days.range(first..=last);
        days.next_back().map(|(date, _)| date.year())
    }

    /// Returns a month as weeks from Monday to Sunday; the first and the last one may have days that are not of it.
    pub(super) fn month_grid(&self, year: i16, month: i8) -> Vec<[Option<GridDay>; 7]> {
        let Ok(first) = Date::new(year, month, 1) else {
            return Vec::new();
        };
        let mut weeks = Vec::new();
        let mut week = [None; 7];
        for day in 1..=first.days_in_month() {
            let Ok(date) = Date::new(year, month, day) else {
                break;
            };
            let days_after_monday = date.weekday().to_monday_zero_offset();
            let column =
                usize::try_from(days_after_monday).expect("a day is 0 to 6 days after a Monday");
            if column == 0 && day > 1 {
                weeks.push(week);
                week = [None; 7];
            }
            week[column] = Some(GridDay {
                date,
                captures: self.days.get(&date).copied(),
            });
        }
        weeks.push(week);
        weeks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn days(stamps: &[&str]) -> CaptureDays {
        let mut days = CaptureDays::default();
        for stamp in stamps {
            days.add_capture(stamp.parse().unwrap());
        }
        days
    }

    /// Fails if a day stands in another column or week than in the calendar, or a capture is counted elsewhere.
    #[test]
    fn month_grid_is_that_of_the_calendar() {
        let days = days(&["20200229235959", "20200229000000", "20200301000000"]);
        let grid = days.month_grid(2020, 2);
        assert_eq!(grid.len(), 5);
        let numbers: Vec<Vec<i8>> = grid
            .iter()
            .map(|week| {
                week.iter()
                    .map(|day| day.map_or(0, |day| day.date.day()))
                    .collect()
            })
            .collect();
        assert_eq!(
            numbers[0],
            [0, 0, 0, 0, 0, 1, 2],
            "1 February 2020 was a Saturday"
        );
        assert_eq!(numbers[4], [24, 25, 26, 27, 28, 29, 0]);
        let leap = grid[4][5].unwrap().captures.unwrap();
        assert_eq!(
            (leap.count, leap.first.to_string().as_str()),
            (2, "20200229235959")
        );
        assert_eq!(days.years(), BTreeMap::from([(2020, 3)]));
        assert_eq!(
            days.months(),
            BTreeMap::from([((2020, 2), 2), ((2020, 3), 1)])
        );
        assert_eq!(days.month_grid(2021, 2).len(), 4, "28 days from Monday on");
        assert!(days.month_grid(2020, 13).is_empty());
    }

    /// Fails if the ends of the calendar break it.
    #[test]
    fn first_and_last_year_have_grids() {
        let days = days(&["00000101000000", "99991231235959"]);
        assert_eq!(days.total(), 2);
        for year in days.years().into_keys() {
            for month in 1..=12 {
                assert!(days.month_grid(year, month).len() >= 4, "{year}-{month}");
            }
        }
        let first = Date::new(0, 1, 1).unwrap();
        let last = Date::new(9999, 12, 31).unwrap();
        assert_eq!(days.count_between(first, last), 2);
        assert_eq!(days.count_between(last, first), 0);
        assert_eq!(days.last_year(first, last), Some(9999));
    }
}
