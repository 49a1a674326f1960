//! Decisions against a naive model that looks at every rule.

use tools_testing::Random;

use super::*;

/// Makes a key of few letters, so that many begin with each other.
fn key(numbers: &mut Random, longest: usize) -> String {
    let length = numbers.index(longest) + 1;
    (0..length)
        .map(|_| *numbers.pick(&['a', 'b', ',']))
        .collect()
}

#[derive(Clone, Debug)]
struct PlainRule {
    key: String,
    is_exact: bool,
    user: Option<&'static str>,
    before: Option<u32>,
    after: Option<u32>,
    access: &'static str,
}

const ACCESS: [&str; 4] = ["allow_ignore_embargo", "allow", "block", "exclude"];

impl PlainRule {
    fn random(numbers: &mut Random) -> Self {
        let year = |numbers: &mut Random| {
            let year = 2000 + u32::try_from(numbers.index(20)).unwrap();
            (numbers.index(4) == 0).then_some(year)
        };
        Self {
            key: key(numbers, 6),
            is_exact: numbers.index(4) == 0,
            user: *numbers.pick(&[None, None, Some("staff"), Some("guest")]),
            before: year(numbers),
            after: year(numbers),
            access: *numbers.pick(&ACCESS),
        }
    }

    fn line(&self) -> String {
        let mut json = format!("{{\"access\": \"{}\"", self.access);
        if let Some(user) = self.user {
            let field = format!(", \"user\": \"{user}\"");
            json.push_str(&field);
        }
        if let Some(before) = self.before {
            let field = format!(", \"before\": \"{before}\"");
            json.push_str(&field);
        }
        if let Some(after) = self.after {
            let field = format!(", \"after\": {after}");
            json.push_str(&field);
        }
        let exact = if self.is_exact { "###" } else { "" };
        format!("{}{exact} - {json}}}", self.key)
    }

    fn applies(&self, groups: &[&str], key: &str, year: u32) -> bool {
        let reaches = if self.is_exact {
            key == self.key
        } else {
            key.starts_with(&self.key)
        };
        reaches
            && self.user.is_none_or(|user| groups.contains(&user))
            && self.before.is_none_or(|before| year < before)
            && self.after.is_none_or(|after| year >= after)
    }

    fn rank(&self) -> (bool, usize) {
        (self.is_exact, self.key.len())
    }

    fn strictness(&self) -> usize {
        ACCESS
            .iter()
            .position(|access| *access == self.access)
            .unwrap()
    }
}

/// Returns the verdict of the rules alone, by looking at all of them again and again.
fn naive(rules: &[PlainRule], groups: &[&str], key: &str, year: u32) -> Option<usize> {
    let applying: Vec<&PlainRule> = rules
        .iter()
        .filter(|rule| rule.applies(groups, key, year))
        .collect();
    let best = applying.iter().map(|rule| rule.rank()).max()?;
    let top: Vec<&PlainRule> = applying
        .into_iter()
        .filter(|rule| rule.rank() == best)
        .collect();
    let of_user = |user: Option<&str>| {
        let own: Vec<&&PlainRule> = top.iter().filter(|rule| rule.user == user).collect();
        let is_dated = |rule: &&&&PlainRule| rule.before.is_some() || rule.after.is_some();
        let dated = own
            .iter()
            .filter(is_dated)
            .map(|rule| rule.strictness())
            .max();
        dated.or_else(|| own.iter().map(|rule| rule.strictness()).max())
    };
    let personal = groups.iter().filter_map(|group| of_user(Some(group))).min();
    personal.or_else(|| of_user(None))
}

/// Fails if the sorted search decides otherwise than a look at every rule, or the order of lines has a meaning.
#[test]
fn search_agrees_with_naive_model() {
    let mut numbers = Random::new(7);
    let mut decided = 0;
    let mut questions = 0;
    for round in 0..300 {
        let count = numbers.index(40) + 1;
        let rules: Vec<PlainRule> = (0..count)
            .map(|_| PlainRule::random(&mut numbers))
            .collect();
        let text = |rules: &[PlainRule]| {
            rules
                .iter()
                .map(PlainRule::line)
                .collect::<Vec<_>>()
                .join("\n")
        };
        let set = super::rules(&text(&rules));
        let mut backwards = rules.clone();
        backwards.reverse();
        let other = super::rules(&text(&backwards));
        for _ in 0..60 {
            let key = key(&mut numbers, 8);
            let year = 1999 + u32::try_from(numbers.index(23)).unwrap();
            let sets: [&[&str]; 4] = [&[], &["staff"], &["guest"], &["guest", "staff"]];
            let groups = *numbers.pick(&sets);
            let visitor = Visitor::of_groups(groups.iter().map(|group| group.parse().unwrap()));
            let time = stamp(&year.to_string()).time();
            let expected = naive(&rules, groups, &key, year);
            let strictness = |rule: &super::super::rule_file::Rule| rule.access as usize;
            let found = set.find_rule(&visitor, &key, time, now()).map(strictness);
            assert_eq!(
                found, expected,
                "round {round}: {key} {year} {groups:?} of {rules:#?}"
            );
            assert_eq!(
                other.find_rule(&visitor, &key, time, now()).map(strictness),
                expected
            );
            decided += usize::from(found.is_some());
            questions += 1;
        }
    }
    assert!(
        decided * 4 > questions,
        "only {decided} of {questions} were decided by a rule"
    );
}

/// Fails if all short keys against all small sets of prefixes are not found by the walk over their parents.
#[test]
fn all_small_prefix_sets_are_searched() {
    let keys: Vec<String> = (1..=3)
        .flat_map(|length| {
            (0..1_usize << length).map(move |bits| {
                (0..length)
                    .map(|at| if bits >> at & 1 == 0 { 'a' } else { 'b' })
                    .collect()
            })
        })
        .collect();
    for chosen in 0_usize..1 << keys.len() {
        let present: Vec<&String> = keys
            .iter()
            .zip(0..)
            .filter(|(_, at)| chosen >> at & 1 == 1)
            .map(|(key, _)| key)
            .collect();
        let lines: Vec<String> = present
            .iter()
            .map(|key| format!("{key} - {{\"access\": \"block\"}}"))
            .collect();
        let set = super::rules(&lines.join("\n"));
        for key in &keys {
            let expected = present
                .iter()
                .filter(|prefix| key.starts_with(**prefix))
                .map(|key| key.len())
                .max();
            let found = set.find_rule(&Visitor::anonymous(), key, now(), now());
            let found = found.map(|rule| present[rule.place.line - 1].len());
            assert_eq!(found, expected, "{key} in {present:?}");
        }
    }
}

/// Fails if a hundred thousand rules are read or searched in more than linear and logarithmic time: then it does not
/// end.
#[test]
fn many_rules_are_read_and_searched() {
    let lines: Vec<String> = (0..100_000)
        .map(|n| format!("com,host{n:06})/a - {{\"access\": \"block\"}}"))
        .collect();
    let set = super::rules(&lines.join("\n"));
    assert_eq!(set.len(), 100_000);
    for n in 0..100_000 {
        let key = format!("com,host{n:06})/a/b/c");
        let found = set
            .find_rule(&Visitor::anonymous(), &key, now(), now())
            .unwrap();
        assert_eq!(found.place.line, n + 1);
    }
}
