//! Rules as they are searched: sorted by key, each key with the next shorter one that it begins with.
//!
//! Owns which rule decides. A search is one binary search, and then a walk over the keys that the wanted one begins
//! with: it does not depend on how many rules there are. Does not read files.

use std::ops::Range;

use jiff::Timestamp;

use super::rule_file::{self, InvalidRules, Rule, RuleFile, RuleReach};
use super::{Group, Visitor};

/// The rules of a collection.
#[derive(Clone, Debug, Default)]
pub struct RuleSet {
    /// All rules, sorted by reach and key.
    rules: Vec<Rule>,
    exact: Vec<Level>,
    prefixes: Vec<Level>,
}

/// The rules that share a key.
#[derive(Clone, Debug)]
struct Level {
    key: Box<str>,
    rules: Range<usize>,
    /// The index, in the same list, of the longest other key that this key begins with.
    parent: Option<usize>,
}

impl RuleSet {
    /// Reads rules from files. The order of files and lines has no meaning.
    ///
    /// # Errors
    /// Fails with all lines that are no rules: then none of the rules can be used.
    pub fn parse<'a>(files: impl IntoIterator<Item = RuleFile<'a>>) -> Result<Self, InvalidRules> {
        let mut read = rule_file::read_rules(files)?;
        read.sort_by(|(one_reach, one, _), (other_reach, other, _)| {
            (one_reach, one).cmp(&(other_reach, other))
        });
        let mut set = Self::default();
        for (reach, key, rule) in read {
            let at = set.rules.len();
            set.rules.push(rule);
            let levels = match reach {
                RuleReach::Exact => &mut set.exact,
                RuleReach::Prefix => &mut set.prefixes,
            };
            match levels.last_mut() {
                Some(level) if level.key == key => level.rules.end = at + 1,
                _ => levels.push(Level {
                    key,
                    rules: at..at + 1,
                    parent: None,
                }),
            }
        }
        link(&mut set.prefixes);
        Ok(set)
    }

    /// Replaces the rules with those of these files. If the files cannot be read, the present rules stay.
    ///
    /// # Errors
    /// Fails with all lines that are no rules.
    pub fn reload_files<'a>(
        &mut self,
        files: impl IntoIterator<Item = RuleFile<'a>>,
    ) -> Result<(), InvalidRules> {
        *self = Self::parse(files)?;
        Ok(())
    }

    /// Returns the number of rules.
    pub fn len(&self) -> usize {
        self.rules.len()
    }

    /// Returns whether there are no rules.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Returns the rule that decides for a visitor about a capture; `None` if none applies.
    pub(super) fn find_rule(
        &self,
        visitor: &Visitor,
        key: &str,
        time: Timestamp,
        now: Timestamp,
    ) -> Option<&Rule> {
        self.levels(key).find_map(|level| {
            let rules = &self.rules[level.rules.clone()];
            let holding = |user: Option<&Group>| {
                let of_user = rules.iter().filter(move |rule| rule.user.as_ref() == user);
                let holding = of_user.filter(|rule| rule.conditions.hold(time, now));
                // Dates before none, then the strictest.
                holding.max_by_key(|rule| (!rule.conditions.is_empty(), rule.access))
            };
            let personal = visitor.groups().filter_map(|group| holding(Some(group)));
            personal
                .min_by_key(|rule| rule.access)
                .or_else(|| holding(None))
        })
    }

    /// Returns the levels that reach a key, the most specific one first.
    fn levels<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a Level> {
        let exact = self.exact.binary_search_by(|level| (*level.key).cmp(key));
        let exact = exact.ok().and_then(|at| self.exact.get(at));
        let below = self.prefixes.partition_point(|level| *level.key <= *key);
        let nearest = below.checked_sub(1);
        let chain = std::iter::successors(nearest, |at| self.prefixes.get(*at)?.parent);
        let chain = chain.filter_map(|at| self.prefixes.get(at));
        // All keys that the wanted one begins with lie on this chain, the longest first: each is at most the wanted
        // key, and whatever lies between the two begins with it as well.
        let reaching = chain.filter(move |level| key.starts_with(&*level.key));
        exact.into_iter().chain(reaching)
    }
}

/// Gives each level of a sorted list its parent.
fn link(levels: &mut [Level]) {
    let mut open: Vec<usize> = Vec::new();
    for at in 0..levels.len() {
        let (before, rest) = levels.split_at_mut(at);
        let Some(level) = rest.first_mut() else {
            return;
        };
        let begins_with = |open: &usize| {
            before
                .get(*open)
                .is_some_and(|outer| level.key.starts_with(&*outer.key))
        };
        while open.last().is_some_and(|outer| !begins_with(outer)) {
            open.pop();
        }
        level.parent = open.last().copied();
        open.push(at);
    }
}
