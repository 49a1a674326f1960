//! Tests of decisions: against pywb's manual, against a naive model, and against strangers.

use std::net::IpAddr;

use archive_formats::date::Fill;

use super::*;

mod model;
mod visitors;

fn rules(text: &str) -> RuleSet {
    let file = RuleFile {
        name: "rules.aclj",
        text: text.as_bytes(),
    };
    RuleSet::parse([file]).unwrap()
}

fn policy(text: &str) -> AccessPolicy {
    AccessPolicy {
        rules: rules(text),
        ..AccessPolicy::default()
    }
}

fn stamp(digits: &str) -> Stamp {
    Stamp::from_query(digits, Fill::First).unwrap()
}

fn now() -> Timestamp {
    stamp("20260101").time()
}

fn staff() -> Visitor {
    Visitor::of_groups(["staff".parse().unwrap()])
}

fn decide(policy: &AccessPolicy, visitor: &Visitor, key: &str, time: &str) -> String {
    let time = stamp(time);
    policy
        .decide_access(visitor, AccessSubject::Capture { key, time }, now())
        .to_string()
}

/// Fails if the examples of pywb's manual are decided otherwise than it says.
#[test]
fn manual_examples_decide_as_written() {
    let policy = policy(
        "org,httpbin)/anything/something - {\"access\": \"allow\", \"url\": \"http://httpbin.org/anything/something\"}\n\
         org,httpbin)/anything - {\"access\": \"exclude\", \"url\": \"http://httpbin.org/anything\"}\r\n\
         \n\
         org,httpbin)/ - {\"access\": \"block\", \"url\": \"httpbin.org/\"}\n\
         com,example)/restricted - {\"access\": \"allow_ignore_embargo\", \"user\": \"staff\"}\n\
         com,example)/restricted - {\"access\": \"block\"}\n\
         com, - {\"access\": \"allow\", \"url\": \"com,\"}",
    );
    let anyone = Visitor::anonymous();
    for (visitor, key, expected) in [
        (
            &anyone,
            "org,httpbin)/anything/something",
            "allow by rules.aclj:1",
        ),
        (
            &anyone,
            "org,httpbin)/anything/some",
            "exclude by rules.aclj:2",
        ),
        (&anyone, "org,httpbin)/anythin", "block by rules.aclj:4"),
        (&anyone, "org,httpbin)/", "block by rules.aclj:4"),
        (
            &anyone,
            "org,httpbin,sub)/",
            "allow by the default of the collection",
        ),
        (
            &anyone,
            "com,example)/restricted/a",
            "block by rules.aclj:6",
        ),
        (
            &staff(),
            "com,example)/restricted/a",
            "allow by rules.aclj:5",
        ),
        (&staff(), "com,example)/", "allow by rules.aclj:7"),
        (
            &anyone,
            "community)/",
            "allow by the default of the collection",
        ),
    ] {
        assert_eq!(decide(&policy, visitor, key, "2020"), expected, "{key}");
    }
}

/// Fails if an exact rule reaches beyond its key, or `*,` does not reach everything.
#[test]
fn exact_and_universal_rules_reach_right() {
    let policy = policy(
        "com,a)/x### - {\"access\": \"block\"}\ncom,a)/x - {\"access\": \"allow\"}\n*, - {\"access\": \"exclude\"}",
    );
    let anyone = Visitor::anonymous();
    assert_eq!(
        decide(&policy, &anyone, "com,a)/x", "1"),
        "block by rules.aclj:1"
    );
    assert_eq!(
        decide(&policy, &anyone, "com,a)/xy", "1"),
        "allow by rules.aclj:2"
    );
    assert_eq!(
        decide(&policy, &anyone, "com,a)/", "1"),
        "exclude by rules.aclj:3"
    );
    assert_eq!(
        decide(&policy, &anyone, "urn:x", "1"),
        "exclude by rules.aclj:3"
    );
}

/// Fails if a boundary of a date lies on the wrong side, or a rule whose dates do not hold hides the next one.
#[test]
fn dated_rules_hold_within_their_dates() {
    let policy = policy(
        "com,a)/ - {\"access\": \"block\", \"before\": \"2010\"}\n\
         com,a)/ - {\"access\": \"exclude\", \"after\": 20200102030405}\n\
         com,a)/ - {\"access\": \"allow\"}\n\
         com,b)/ - {\"access\": \"block\", \"newer\": {\"years\": 1}}\n\
         com,b)/ - {\"access\": \"exclude\", \"older\": {\"years\": 1, \"months\": 1}}\n\
         com,c)/in - {\"access\": \"block\", \"after\": \"2010\", \"before\": \"2012\"}\n\
         com,c)/ - {\"access\": \"exclude\"}",
    );
    let anyone = Visitor::anonymous();
    for (key, time, expected) in [
        ("com,a)/", "20091231235959", "block by rules.aclj:1"),
        ("com,a)/", "20100101000000", "allow by rules.aclj:3"),
        ("com,a)/", "20200102030404", "allow by rules.aclj:3"),
        ("com,a)/", "20200102030405", "exclude by rules.aclj:2"),
        ("com,b)/", "20250101000001", "block by rules.aclj:4"),
        (
            "com,b)/",
            "20250101000000",
            "allow by the default of the collection",
        ),
        (
            "com,b)/",
            "20241201000001",
            "allow by the default of the collection",
        ),
        ("com,b)/", "20241201000000", "exclude by rules.aclj:5"),
        ("com,c)/in", "2011", "block by rules.aclj:6"),
        ("com,c)/in", "2009", "exclude by rules.aclj:7"),
        ("com,c)/in", "2012", "exclude by rules.aclj:7"),
    ] {
        assert_eq!(
            decide(&policy, &anyone, key, time),
            expected,
            "{key} {time}"
        );
    }
}

/// Fails if an embargo opens something, spares captures that it should refuse, or binds those who are free of it.
#[test]
fn embargo_only_makes_decisions_stricter() {
    let mut policy = policy(
        "com,a)/ - {\"access\": \"block\"}\ncom,b)/ - {\"access\": \"exclude\"}\n\
         com,c)/ - {\"access\": \"allow_ignore_embargo\", \"user\": \"staff\"}",
    );
    policy.embargo =
        serde_json::from_str(r#"{"newer": {"years": 1}, "before": "2000", "access": "block"}"#)
            .unwrap();
    let anyone = Visitor::anonymous();
    for (visitor, key, time, expected) in [
        (
            &anyone,
            "com,x)/",
            "20250601",
            "block by the embargo (`newer`)",
        ),
        (
            &anyone,
            "com,x)/",
            "1999",
            "block by the embargo (`before`)",
        ),
        (
            &anyone,
            "com,x)/",
            "2010",
            "allow by the default of the collection",
        ),
        (&anyone, "com,a)/", "20250601", "block by rules.aclj:1"),
        (&anyone, "com,b)/", "20250601", "exclude by rules.aclj:2"),
        (
            &anyone,
            "com,c)/",
            "20250601",
            "block by the embargo (`newer`)",
        ),
        (&staff(), "com,c)/", "20250601", "allow by rules.aclj:3"),
    ] {
        assert_eq!(
            decide(&policy, visitor, key, time),
            expected,
            "{key} {time}"
        );
    }
    policy.embargo = serde_json::from_str(r#"{"older": {"weeks": 1, "days": 1}}"#).unwrap();
    assert_eq!(
        decide(&policy, &anyone, "com,a)/", "20251224"),
        "exclude by the embargo (`older`)"
    );
    assert_eq!(
        decide(&policy, &anyone, "com,x)/", "20251224000001"),
        "allow by the default of the collection"
    );
}

/// Fails if periods follow no calendar, or one that reaches beyond it panics or opens something.
#[test]
fn periods_follow_the_calendar() {
    let mut policy = AccessPolicy::default();
    for (period, time, verdict) in [
        ("{\"years\": 9000}", "0001", AccessVerdict::Exclude),
        ("{\"months\": 10}", "20250301000001", AccessVerdict::Exclude),
        ("{\"months\": 10}", "20250301000000", AccessVerdict::Allow),
        ("{\"days\": 1}", "20251231000001", AccessVerdict::Exclude),
    ] {
        let json = format!("{{\"newer\": {period}}}");
        policy.embargo = serde_json::from_str(&json).unwrap();
        let subject = AccessSubject::Capture {
            key: "com,a)/",
            time: stamp(time),
        };
        let decision = policy.decide_access(&Visitor::anonymous(), subject, now());
        assert_eq!(decision.verdict, verdict, "{json}");
    }
    for wrong in [
        "{}",
        "{\"years\": 0}",
        "{\"years\": 99999}",
        "{\"years\": 4294967295, \"days\": 4294967295}",
        "{\"years\": -1}",
        "{\"year\": 1}",
        "\"1 year\"",
    ] {
        assert!(
            serde_json::from_str::<CalendarPeriod>(wrong).is_err(),
            "{wrong}"
        );
    }
}

/// Fails if a faulty line is taken for a rule, is reported with the wrong place, or hides the faults behind it.
#[test]
fn faulty_lines_are_refused_with_places() {
    let text = b"com,a)/ - {\"access\": \"block\"}\n\
        com,a)/ {\"access\": \"block\"}\n\
        com,a)/ 2020 {\"access\": \"block\"}\n\
        com,a)/ - {\"access\": \"blok\"}\n\
        com,a)/ - {\"access\": \"allow\", \"befor\": \"2020\"}\n\
        com,a)/ - {\"access\": \"allow\", \"before\": \"20201301\"}\n\
        com,a)/ - {\"access\": \"allow\", \"newer\": {}}\n\
        com,a)/ - {\"access\": \"allow\"\n\
        com,a)/ - {\"access\": \"allow\", \"access\": \"block\"}\n\
        http://a.com/ - {\"access\": \"block\"}\n\
        \xef\xbb\xbfcom,a)/ - {\"access\": \"block\"}\n\
        com,\xff)/ - {\"access\": \"block\"}\n\
        com,a)/ - {\"user\": \"staff\"}\n\
        com,a)/ - {\"access\": \"allow\", \"user\": \" staff\"}\n\
        # comment\n\
        com,a)/ - {\"access\": \"allow\"} x";
    let file = RuleFile {
        name: "bad.aclj",
        text,
    };
    let errors = RuleSet::parse([file]).unwrap_err();
    let lines: Vec<usize> = std::iter::once(&errors.first)
        .chain(&errors.others)
        .map(|error| error.place.line)
        .collect();
    assert_eq!(lines, (2..=16).collect::<Vec<_>>());
    assert_eq!(
        errors.to_string(),
        "bad.aclj:2: write a rule as KEY - {\"access\": \"block\"} (and 14 more lines)"
    );
    let told: Vec<String> = errors.others.iter().map(ToString::to_string).collect();
    assert!(told[1].contains("unknown variant `blok`"), "{}", told[1]);
    assert!(told[2].contains("unknown field `befor`"), "{}", told[2]);
    assert!(told[3].contains("month 13 does not exist"), "{}", told[3]);
    assert!(told[7].ends_with("write its key, `com,a)/`"), "{}", told[7]);
    let endless = "x\n".repeat(1000);
    let file = RuleFile {
        name: "long",
        text: endless.as_bytes(),
    };
    let errors = RuleSet::parse([file]).unwrap_err();
    assert_eq!((errors.others.len(), errors.omitted), (100, 899));
}

/// Fails if a file that cannot be read takes the rules away that were there.
#[test]
fn faulty_reload_keeps_old_rules() {
    let mut set = rules("com,a)/ - {\"access\": \"block\"}");
    let file = |text: &'static str| RuleFile {
        name: "new.aclj",
        text: text.as_bytes(),
    };
    assert!(set.reload_files([file("nonsense")]).is_err());
    assert_eq!(set.len(), 1);
    set.reload_files([file(
        "com,a)/ - {\"access\": \"allow\"}\n*, - {\"access\": \"block\"}",
    )])
    .unwrap();
    assert_eq!(set.len(), 2);
    set.reload_files([]).unwrap();
    assert!(set.is_empty());
}

/// Fails if a whole file is given to a stranger, or refused to a group that may read it.
#[test]
fn whole_files_are_for_named_groups() {
    let mut policy = policy("*, - {\"access\": \"allow_ignore_embargo\"}");
    let ask = |policy: &AccessPolicy, visitor: &Visitor| {
        policy
            .decide_access(visitor, AccessSubject::WholeFile, now())
            .to_string()
    };
    let refused = "block by the groups that may read whole files";
    assert_eq!(ask(&policy, &staff()), refused);
    policy.file_groups.insert("staff".parse().unwrap());
    assert_eq!(ask(&policy, &Visitor::anonymous()), refused);
    assert_eq!(
        ask(&policy, &staff()),
        "allow by group staff, which may read whole files"
    );
    assert_eq!(AccessVerdict::Block.status(), Some(451));
    assert_eq!(AccessVerdict::Exclude.status(), Some(404));
    assert_eq!(AccessVerdict::Allow.status(), None);
}
