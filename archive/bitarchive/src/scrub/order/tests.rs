//! The order of the scrub, over every small archive and over a simulated year.

use std::collections::BTreeMap;

use archive_model::Groups;

use super::*;
use crate::catalog::Row;

const POLICY: ReadPolicy = ReadPolicy {
    deadline: Duration::from_hours(30 * 24),
    young: Duration::from_hours(7 * 24),
};

fn at(hours: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + hours * 3600).unwrap()
}

fn volume(text: &str) -> VolumeId {
    VolumeId::new(text).unwrap()
}

fn entry(name: &str, stored: i64, verified: Option<i64>) -> CatalogEntry {
    CatalogEntry {
        name: FileName::new(name).unwrap(),
        volume: volume("v1"),
        row: Row {
            size: 100,
            root: None,
            stored: at(stored),
            verified: verified.map(at),
            condition: Condition::Present,
        },
    }
}

fn survey(now: i64, suspects: Vec<Suspect>) -> Survey {
    let volumes = SurveyedVolumes {
        online: vec![volume("v1")],
        retired: vec![volume("gone")],
    };
    Survey::new(POLICY, at(now), at(0), volumes).with_suspects(suspects)
}

fn plan(now: i64, entries: &[CatalogEntry]) -> ReadPlan {
    let mut survey = survey(now, Vec::new());
    for entry in entries {
        survey.see_entry(entry);
    }
    survey.finish_plan()
}

fn names(plan: &ReadPlan) -> Vec<&str> {
    plan.next
        .iter()
        .map(|planned| planned.name.as_str())
        .collect()
}

/// Fails if a young copy is read too early or too late, an old one after the deadline, or one that was never verified
/// waits beyond it.
#[test]
fn every_copy_has_a_window_within_its_limits() {
    let hours = |time: i128| (time - at(0).as_nanosecond()) / 3_600_000_000_000;
    for number in 0..500 {
        let name = format!("f{number}");
        let window = |verified| {
            let entry = entry(&name, 0, verified);
            let window = POLICY
                .read_window(&entry, at(0), at(200).as_nanosecond())
                .unwrap();
            assert!(window.from < window.until, "{window:?}");
            (hours(window.from), hours(window.until))
        };
        let (first, until) = window(Some(0));
        assert!((42..84).contains(&first) && until == 84, "{first} {until}");
        let (second, until) = window(Some(84));
        assert!(
            (117..168).contains(&second) && until == 168,
            "{second} {until}"
        );
        let (later, until) = window(Some(168));
        assert!((168 + 540..168 + 684).contains(&later) && until == 168 + 720);
        let (unknown, until) = window(None);
        assert!(
            (0..684).contains(&unknown) && until <= 720,
            "{unknown} {until}"
        );
    }
}

/// Fails if in some small archive a due copy is forgotten, or a less urgent one is read first.
#[test]
fn most_urgent_due_copy_comes_first() {
    // Each of four copies was not verified, or was verified this number of days ago; at every day.
    let ages = [
        None,
        Some(0),
        Some(20),
        Some(26),
        Some(29),
        Some(31),
        Some(400),
    ];
    let old = -1000 * 24;
    for case in 0..ages.len().pow(4) {
        let entries: Vec<CatalogEntry> = (0..4)
            .map(|index| {
                let age = ages[case / ages.len().pow(index) % ages.len()];
                entry(&format!("f{index}"), old, age.map(|days| -24 * days))
            })
            .collect();
        let found = plan(0, &entries);
        let mut expected: Vec<(ReadWindow, &str)> = entries
            .iter()
            .map(|entry| {
                (
                    POLICY
                        .read_window(entry, at(0), at(0).as_nanosecond())
                        .unwrap(),
                    entry.name.as_str(),
                )
            })
            .filter(|(window, _)| window.from <= at(0).as_nanosecond())
            .collect();
        expected.sort();
        let expected: Vec<&str> = expected.into_iter().map(|(_, name)| name).collect();
        assert_eq!(names(&found), expected);
        assert_eq!(found.due, expected.len() as u64);
        let unknown = entries.iter().filter(|entry| entry.row.verified.is_none());
        assert_eq!(found.unknown, unknown.count() as u64);
        let oldest = entries.iter().filter_map(|entry| entry.row.verified).min();
        assert_eq!(found.oldest, oldest.filter(|_| found.unknown == 0));
        assert_eq!(found.next_due.is_none(), expected.len() == 4);
    }
}

/// Fails if a copy that somebody has to act on is read again and again, or damage is not located.
#[test]
fn missing_waits_and_unlocated_damage_is_due() {
    let since = at(-1);
    let damaged = |corrupt: Groups| Condition::Damaged {
        since,
        corrupt,
        unreadable: Groups::none(),
    };
    let with = |condition| {
        let mut entry = entry("f", -24, Some(-20));
        entry.row.condition = condition;
        names(&plan(0, &[entry])).len()
    };
    assert_eq!(with(Condition::Missing { since }), 0);
    assert_eq!(with(damaged(Groups::all(1))), 0);
    assert_eq!(with(damaged(Groups::none())), 1);
    let elsewhere = |on: &str| {
        let mut entry = entry("f", -9000, None);
        entry.volume = volume(on);
        plan(800, &[entry])
    };
    let offline = elsewhere("v2");
    assert_eq!(
        (offline.next.len(), offline.unknown),
        (0, 1),
        "offline: it waits"
    );
    let retired = elsewhere("gone");
    assert_eq!((retired.next.len(), retired.unknown), (0, 0));
}

/// Fails if copies stored at about the same time as a damaged one wait for their turn, or are read again and again for
/// the same damage.
#[test]
fn damage_makes_its_neighbours_next() {
    let entries: Vec<CatalogEntry> = (0..100)
        .map(|hour| entry(&format!("f{hour:02}"), hour - 5000, Some(-1)))
        .collect();
    let suspect = Suspect {
        volume: volume("v1"),
        stored: at(50 - 5000),
        found: at(0),
    };
    let mut survey = survey(0, vec![suspect.clone()]);
    for entry in &entries {
        survey.see_entry(entry);
    }
    let found = survey.finish_plan();
    let mut next = names(&found);
    assert_eq!(next[0], "f50");
    next.sort_unstable();
    next.retain(|name| !["f42", "f58"].contains(name));
    let expected: Vec<String> = (43..58).map(|hour| format!("f{hour:02}")).collect();
    assert_eq!(next, expected, "none was due");
    assert_eq!(
        found.next.len(),
        NEIGHBOURS,
        "one of those that are equally far"
    );
    // Copies that were read since are not read again for the same damage.
    let mut survey = super::tests::survey(1, vec![suspect]);
    for mut entry in entries {
        entry.row.verified = Some(at(1));
        survey.see_entry(&entry);
    }
    assert!(survey.finish_plan().next.is_empty());
}

/// Fails if a copy whose last verification lies in the future counts as verified until then.
#[test]
fn a_clock_that_was_wrong_leaves_nothing_unread() {
    let ahead = entry("f", 5000, Some(5000));
    let found = plan(0, std::slice::from_ref(&ahead));
    assert_eq!((found.unknown, found.oldest), (1, None));
    assert_eq!(
        names(&plan(720, &[ahead])),
        ["f"],
        "as if it was never read"
    );
}

/// Fails if a plan takes memory for every copy, or leaves out an urgent one.
#[test]
fn plan_is_bounded_and_has_the_most_urgent() {
    let mut survey = survey(0, Vec::new());
    survey.most = 10;
    for number in 0..1000_i64 {
        let age = number * 7919 % 1000;
        survey.see_entry(&entry(&format!("f{age}"), -9000, Some(-2000 - age)));
    }
    let found = survey.finish_plan();
    assert_eq!(found.due, 1000);
    let expected: Vec<String> = (990..1000).rev().map(|age| format!("f{age}")).collect();
    assert_eq!(names(&found), expected);
}

/// Fails if the scrub reads too slowly for a group of copies with an early limit.
#[test]
fn rate_keeps_the_tightest_limit() {
    let tebibyte = 1 << 40;
    let sized = |name: &str, verified: i64, size: u64| {
        let mut entry = entry(name, -9000, Some(verified));
        entry.row.size = size;
        entry
    };
    assert_eq!(plan(0, &[]).rate, LEAST_RATE);
    let small = sized("a", -700, 100);
    assert_eq!(plan(0, std::slice::from_ref(&small)).rate, LEAST_RATE);
    // Ten hours are left for it; but what is nearly overdue is given a thirtieth of the deadline.
    let tight = sized("b", -710, tebibyte);
    let expected = tebibyte / (24 * 3600);
    assert_eq!(plan(0, &[small.clone(), tight.clone()]).rate, expected);
    let overdue = sized("c", -9000, tebibyte);
    assert_eq!(plan(0, &[overdue, tight, small]).rate, 2 * expected);
    // Copies beyond the plan count too.
    let mut survey = survey(0, Vec::new());
    survey.most = 1;
    for name in ["a", "b", "c"] {
        survey.see_entry(&sized(name, -710, tebibyte));
    }
    assert_eq!(survey.finish_plan().rate, 3 * expected);
}

/// Fails if a limit is missed, a new file is not read twice in its first week, or a day has to read much more than its
/// share: in a year of an archive with a thousand files on the first day and one more every day.
#[test]
fn year_keeps_limits_without_crowded_days() {
    let mut rows: BTreeMap<String, CatalogEntry> = BTreeMap::new();
    let mut reads: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    let mut busiest = (0, 0, 0);
    for day in 0..365 {
        let come = if day == 0 { 1000 } else { 1 };
        for number in 0..come {
            let name = format!("f{day}-{number}");
            rows.insert(name.clone(), entry(&name, day * 24, Some(day * 24)));
        }
        for hour in (0..24).step_by(3) {
            let now = day * 24 + hour;
            let all: Vec<CatalogEntry> = rows.values().cloned().collect();
            let found = plan(now, &all);
            if day > 7 {
                busiest = busiest.max((found.next.len(), day, hour));
            }
            for planned in found.next {
                let key = planned.name.to_string();
                assert!(planned.window.until > at(now).as_nanosecond(), "{key} late");
                rows.get_mut(&key).unwrap().row.verified = Some(at(now));
                reads.entry(key).or_default().push(now);
            }
        }
    }
    assert!(busiest.0 < 60, "{busiest:?} of 1365 in three hours");
    for number in 0..1000 {
        let reads = &reads[&format!("f0-{number}")];
        assert!(
            reads.iter().filter(|hour| **hour <= 168).count() == 2,
            "{reads:?}"
        );
        let gaps = reads.windows(2).map(|pair| pair[1] - pair[0]);
        assert!(gaps.max().unwrap() <= 30 * 24, "{reads:?}");
    }
}
