//! The view of a calendar: counts and captures become what the template shows.

use archive_formats::cdx::Capture;
use archive_formats::date::Stamp;
use askama::Template;
use jiff::civil::Date;
use viewer_replay::request::{ReplayTarget, RequestedSpan, TargetMatch};

use super::super::layout::Layout;
use super::super::lookup::url_of;
use super::super::shown_url::ShownUrl;
use super::super::texts::{WEEKDAYS, Words, machine_time, stamp_time};
use super::super::{PageAddress, PageVisit};
use super::days::{CaptureDays, GridDay};
use super::timeline::{Bar, Timeline};
use super::{CalendarScope, CaptureCounts, LISTED, MOST};

/// A year, as a bar that leads to it.
#[derive(Debug)]
struct YearBar {
    year: i16,
    href: String,
    count: String,
    bar: Bar,
    is_shown: bool,
}

/// A month of the year that is shown.
#[derive(Debug)]
struct MonthView {
    name: String,
    /// The page of the month, if it has captures.
    href: Option<String>,
    count: String,
    weeks: Vec<Vec<Option<DayView>>>,
}

/// A day of a month.
#[derive(Debug)]
struct DayView {
    day: i8,
    link: Option<DayLink>,
}

/// A day with captures.
#[derive(Debug)]
struct DayLink {
    href: String,
    label: String,
    /// The level of the number of captures, from 1 to 4.
    level: u8,
}

/// A day of the week.
#[derive(Debug)]
struct Weekday {
    name: String,
    short: String,
}

/// The captures of a month, a day, or less.
#[derive(Debug)]
struct CaptureListing {
    title: String,
    rows: Vec<ListedCapture>,
    /// The place of these captures in the list, in words; `None` if the list has no others.
    place: Option<String>,
    previous: Option<String>,
    next: Option<String>,
}

/// A line of the list.
#[derive(Debug)]
struct ListedCapture {
    href: String,
    /// The day of the capture, where the list has several.
    day: Option<String>,
    time: String,
    machine: String,
    status: Option<u16>,
    mime: String,
    /// The URL of the capture, if it is spelt otherwise than the URL of the page.
    url: Option<ShownUrl>,
}

/// A link to the first or last capture.
#[derive(Debug)]
struct EndLink {
    href: String,
    moment: String,
}

#[derive(Template)]
#[template(path = "calendar.html")]
pub(super) struct CalendarPage {
    layout: Layout,
    collection: String,
    url: ShownUrl,
    count: String,
    first: EndLink,
    last: EndLink,
    below: String,
    timeline: Option<Timeline>,
    timeline_label: String,
    years: Vec<YearBar>,
    shown_year: Option<i16>,
    shown_count: String,
    weekdays: Vec<Weekday>,
    months: Vec<MonthView>,
    listing: Option<CaptureListing>,
    /// The words and the link for captures before those that were counted.
    earlier: Option<(String, String)>,
    /// The words and the link for captures behind those that were counted.
    later: Option<(String, String)>,
}

/// The page of the list that is shown.
#[derive(Clone, Copy)]
pub(super) struct ListPage<'a> {
    /// The captures that the list has.
    pub(super) scope: &'a CalendarScope,
    /// The number of the page, from 1 on.
    pub(super) number: u64,
    /// The number of pages.
    pub(super) pages: u64,
}

/// The input from which the parts of a calendar page are made.
pub(super) struct CalendarView<'a> {
    pub(super) visit: &'a PageVisit,
    pub(super) words: &'a Words,
    pub(super) span: &'a RequestedSpan,
    pub(super) url: &'a str,
    pub(super) from: Option<Stamp>,
}

impl CalendarView<'_> {
    /// Returns the address of a part of the calendar, in the captures that are counted here.
    pub(super) fn view_address(&self, digits: &str) -> PageAddress {
        let address = self.visit.calendar(digits, self.url, TargetMatch::Exact);
        match self.from {
            Some(from) => address.with_parameter("from", from.to_string()),
            None => address,
        }
    }

    fn link(&self, digits: &str) -> String {
        self.visit.link(&self.view_address(digits))
    }

    pub(super) fn render_page(
        &self,
        layout: Layout,
        target: &ReplayTarget,
        counted: &CaptureCounts,
        page: ListPage<'_>,
    ) -> CalendarPage {
        let words = self.words;
        let scope = page.scope;
        let days = &counted.days;
        let end = |capture: &Capture| EndLink {
            href: self.visit.frame(capture.timestamp, url_of(capture, target)),
            moment: words.moment(capture.timestamp),
        };
        let year = days.last_year(scope.first, scope.last);
        let shown_year = year.or(self.span.bounds().map(|_| scope.first.year()));
        let year_days = shown_year.and_then(|year| {
            let first = Date::new(year, 1, 1).ok()?;
            Some((first, Date::new(year, 12, 31).ok()?))
        });
        let shown_count = year_days.map_or(0, |(first, last)| days.count_between(first, last));
        let months = shown_year.map_or(Vec::new(), |year| self.months(days, year, scope));
        let timeline = Timeline::new(&days.months(), shown_year);
        let beside = |stamp: Stamp| {
            let address = self.visit.calendar("", self.url, TargetMatch::Exact);
            self.visit
                .link(&address.with_parameter("from", stamp.to_string()))
        };
        let later = counted.stopped.map(|stamp| {
            let until = words.moment(stamp);
            let text = words.count_with("calendar-later", MOST, &[("moment", &until)]);
            (text, beside(stamp))
        });
        let earlier = self.from.map(|from| {
            let text = words.text_with("calendar-earlier", &[("moment", &words.moment(from))]);
            let all = self.visit.calendar("", self.url, TargetMatch::Exact);
            (text, self.visit.link(&all))
        });
        let count = match counted.stopped {
            Some(_) => words.count("captures-at-least", days.total()),
            None => words.count("captures", days.total()),
        };
        CalendarPage {
            collection: self.visit.collection.name().to_owned(),
            url: ShownUrl::new(self.url),
            first: end(&counted.first),
            last: end(&counted.last),
            below: {
                let below = self.visit.calendar("", self.url, TargetMatch::Prefix);
                self.visit.link(&below)
            },
            timeline_label: timeline.as_ref().map_or(String::new(), |timeline| {
                let first = timeline.first_year.to_string();
                let last = timeline.last_year.to_string();
                let values = [("first", first.as_str()), ("last", last.as_str())];
                words.text_with("timeline", &values)
            }),
            timeline,
            years: self.years(days, shown_year),
            shown_year,
            shown_count: words.count("captures", shown_count),
            weekdays: weekdays(words),
            months,
            listing: scope.listed.map(|_| self.listing(target, counted, page)),
            layout: layout.with_search(self.url, Some(self.visit.collection.name()), "exact"),
            count,
            earlier,
            later,
        }
    }

    fn years(&self, days: &CaptureDays, shown: Option<i16>) -> Vec<YearBar> {
        let years = days.years();
        let largest = years.values().copied().max().unwrap_or(1);
        let bars = years.into_iter().map(|(year, count)| YearBar {
            year,
            href: self.link(&format!("{year:04}")),
            count: self.words.count("captures", count),
            bar: Bar::new(0, count, largest),
            is_shown: shown == Some(year),
        });
        bars.collect()
    }

    fn months(&self, days: &CaptureDays, year: i16, scope: &CalendarScope) -> Vec<MonthView> {
        let only = scope.listed.map(|_| scope.first.month());
        let months = (1..=12).filter(|month| only.is_none_or(|only| only == *month));
        let views = months.map(|month| {
            let digits = format!("{year:04}{month:02}");
            let grid = days.month_grid(year, month);
            let cells = grid.iter().flatten().flatten();
            let counts = cells.filter_map(|day| Some(day.captures?.count));
            let count: u64 = counts.sum();
            let weeks = grid.iter().map(|week| {
                let days = week.iter().map(|day| day.as_ref().map(|day| self.day(day)));
                days.collect()
            });
            MonthView {
                name: self.words.month(month),
                href: (count > 0).then(|| self.link(&digits)),
                count: self.words.count("captures", count),
                weeks: weeks.collect(),
            }
        });
        views.collect()
    }

    fn day(&self, grid: &GridDay) -> DayView {
        let link = grid.captures.map(|captures| {
            let day = self.words.date(grid.date);
            // A day with one capture leads to it.
            let href = match captures.count {
                1 => self.visit.frame(captures.first, self.url),
                _ => self.link(&grid.date.strftime("%Y%m%d").to_string()),
            };
            DayLink {
                href,
                label: self
                    .words
                    .count_with("day-captures", captures.count, &[("day", &day)]),
                level: match captures.count {
                    0 | 1 => 1,
                    2..=4 => 2,
                    5..=19 => 3,
                    _ => 4,
                },
            }
        });
        DayView {
            day: grid.date.day(),
            link,
        }
    }

    fn listing(
        &self,
        target: &ReplayTarget,
        counted: &CaptureCounts,
        page: ListPage<'_>,
    ) -> CaptureListing {
        let ListPage {
            scope,
            number: page,
            pages,
        } = page;
        let words = self.words;
        let title = if scope.is_one_day() {
            words.date(scope.first)
        } else {
            let month = words.month(scope.first.month());
            let year = scope.first.year();
            words.text_with("month", &[("month", &month), ("year", &year.to_string())])
        };
        let to_page = |number: u64| {
            let address = self.view_address(self.span.digits());
            self.visit
                .link(&address.with_parameter("page", number.to_string()))
        };
        let rows = counted.listed.iter().map(|capture| {
            let url = url_of(capture, target);
            ListedCapture {
                href: self.visit.frame(capture.timestamp, url),
                day: (!scope.is_one_day()).then(|| words.day_of(capture.timestamp)),
                time: stamp_time(capture.timestamp),
                machine: machine_time(capture.timestamp),
                status: capture.status,
                mime: capture.mime.clone().unwrap_or_default(),
                url: (url != self.url).then(|| ShownUrl::new(url)),
            }
        });
        let first = (page - 1) * LISTED + 1;
        let last = first + (counted.listed.len() as u64).saturating_sub(1);
        let first = words.number(first);
        let last = words.number(last);
        let place = [("first", first.as_str()), ("last", last.as_str())];
        CaptureListing {
            title,
            rows: rows.collect(),
            place: (pages > 1).then(|| words.count_with("list-place", counted.in_list, &place)),
            previous: (page > 1).then(|| to_page(page - 1)),
            next: (page < pages).then(|| to_page(page + 1)),
        }
    }
}

fn weekdays(words: &Words) -> Vec<Weekday> {
    let days = WEEKDAYS.into_iter().map(|(name, short)| Weekday {
        name: words.text(name),
        short: words.text(short),
    });
    days.collect()
}
