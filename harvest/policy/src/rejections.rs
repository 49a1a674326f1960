//! URIs that a person rejects while a crawl runs.
//!
//! Owns how such a rule is written, one a line: a URI, which covers all that begins with it; a prefix in SURT form; or
//! a regular expression, which has to match all of a URI. A text that could match no URI is refused.
//!
//! ```
//! use harvest_policy::rejections::Rejections;
//! use url::Url;
//!
//! let mut rejections = Rejections::default();
//! rejections.add(["https://example.dk/calendar/".parse()?, r".*[?&]sid=.*".parse()?])?;
//! assert!(rejections.covers_url(&Url::parse("http://example.dk/calendar/2031")?));
//! assert!(!rejections.covers_url(&Url::parse("http://example.dk/news")?));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::fmt;
use std::str::FromStr;

use url::Url;

use crate::surt::{SurtPrefix, SurtPrefixes, url_surt};
use crate::traps::{InvalidTrap, InvalidTrapExpression, TrapExpression, TrapList};

/// The characters that make a text with a scheme an expression and no URI.
const EXPRESSION: [char; 11] = ['*', '\\', '[', ']', '{', '}', '|', '^', '$', '(', ')'];

/// The characters of which an expression has at least one, or it would match itself only.
const WILD: [char; 5] = ['*', '+', '?', '[', '\\'];

/// A rule by which URIs are rejected. Its text can be read again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RejectionRule {
    /// All URIs that begin with a prefix in SURT form.
    Prefix(SurtPrefix),
    /// All URIs that match an expression as a whole.
    Expression(TrapExpression),
}

/// The reason why a text is no rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRejection {
    /// The text is no prefix, and no expression either.
    #[error(transparent)]
    Expression(#[from] InvalidTrapExpression),
    /// The text is neither a URI nor a prefix, and as an expression it would match nothing.
    #[error(
        "`{0}` would match no URI; write a URI with `http://` or `https://`, a prefix in SURT form such as \
         `http://(dk,example,`, or an expression for whole URIs such as `.*/calendar/.*`"
    )]
    Nothing(String),
}

impl FromStr for RejectionRule {
    type Err = InvalidRejection;

    fn from_str(text: &str) -> Result<Self, InvalidRejection> {
        let text = text.trim();
        if let Ok(prefix) = text.parse() {
            return Ok(Self::Prefix(prefix));
        }
        let has_scheme = ["http://", "https://"].iter().any(|scheme| {
            text.get(..scheme.len())
                .is_some_and(|begin| begin.eq_ignore_ascii_case(scheme))
        });
        if has_scheme && !text.contains(EXPRESSION) && !text.contains(char::is_whitespace) {
            let url = Url::parse(text).ok();
            let prefix = url.as_ref().and_then(url_surt);
            let prefix = prefix.and_then(|prefix| prefix.parse().ok());
            return prefix
                .map(Self::Prefix)
                .ok_or_else(|| InvalidRejection::Nothing(text.to_owned()));
        }
        let expression: TrapExpression = text.parse()?;
        if !text.contains(WILD) {
            return Err(InvalidRejection::Nothing(text.to_owned()));
        }
        Ok(Self::Expression(expression))
    }
}

impl fmt::Display for RejectionRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Prefix(prefix) => prefix.fmt(f),
            Self::Expression(expression) => expression.fmt(f),
        }
    }
}

/// The rules of one crawl.
#[derive(Clone, Debug, Default)]
pub struct Rejections {
    rules: Vec<RejectionRule>,
    prefixes: SurtPrefixes,
    compiled: TrapList,
}

impl Rejections {
    /// Adds rules. One that is there already changes nothing.
    ///
    /// # Errors
    ///
    /// [`InvalidTrap::Large`] if all expressions together need too much memory; then nothing is added.
    pub fn add(
        &mut self,
        rules: impl IntoIterator<Item = RejectionRule>,
    ) -> Result<(), InvalidTrap> {
        let mut all = self.rules.clone();
        for rule in rules {
            if !all.contains(&rule) {
                all.push(rule);
            }
        }
        *self = Self::with_rules(all)?;
        Ok(())
    }

    /// Takes a rule back; returns whether it was there.
    ///
    /// # Errors
    ///
    /// [`InvalidTrap::Large`] as [`Rejections::add`]; then nothing is taken back.
    pub fn remove(&mut self, rule: &RejectionRule) -> Result<bool, InvalidTrap> {
        let mut rest = self.rules.clone();
        rest.retain(|other| other != rule);
        if rest.len() == self.rules.len() {
            return Ok(false);
        }
        *self = Self::with_rules(rest)?;
        Ok(true)
    }

    fn with_rules(rules: Vec<RejectionRule>) -> Result<Self, InvalidTrap> {
        let mut prefixes = SurtPrefixes::default();
        let mut expressions = Vec::new();
        for rule in &rules {
            match rule {
                RejectionRule::Prefix(prefix) => prefixes.add(prefix.as_str()),
                RejectionRule::Expression(expression) => expressions.push(expression.clone()),
            }
        }
        Ok(Self {
            rules,
            prefixes,
            compiled: TrapList::new(&expressions)?,
        })
    }

    /// Returns the rules.
    pub fn rules(&self) -> &[RejectionRule] {
        &self.rules
    }

    /// Returns whether a rule covers a URI.
    pub fn covers_url(&self, url: &Url) -> bool {
        !self.rules.is_empty()
            && (self.prefixes.covers(url) || self.compiled.catches_uri(url.as_str()))
    }

    /// Returns the first rule that covers a URI.
    pub fn covering_rule(&self, url: &Url) -> Option<&RejectionRule> {
        if !self.covers_url(url) {
            return None;
        }
        let mut covering = self.rules.iter().filter(|rule| {
            let alone = Self::with_rules(vec![(*rule).clone()]);
            alone.is_ok_and(|alone| alone.covers_url(url))
        });
        covering.next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a rule covers more or less than what people mean by it, or is not read again as it is written.
    #[test]
    fn rule_covers_what_it_names() {
        for (text, written, url, covered) in [
            (
                "https://a.dk/cal",
                "http://(dk,a,)/cal",
                "http://a.dk/calendar",
                true,
            ),
            (
                "HTTP://A.dk",
                "http://(dk,a,)/",
                "https://a.dk/x?y=(z)",
                true,
            ),
            (
                "http://a.dk/p?id=1",
                "http://(dk,a,)/p?id=1",
                "http://a.dk/p?id=17",
                true,
            ),
            ("http://(dk,a,", "http://(dk,a,", "http://www.a.dk/x", true),
            (
                "https?://(www\\.)?a\\.dk/.*",
                "https?://(www\\.)?a\\.dk/.*",
                "http://a.dk/x",
                true,
            ),
            (".*/cal/.*", ".*/cal/.*", "http://a.dk/cal/x", true),
            (".*/cal", ".*/cal", "http://a.dk/cal/x", false),
            (
                "http://a.dk/cal",
                "http://(dk,a,)/cal",
                "http://b.dk/cal",
                false,
            ),
        ] {
            let rule: RejectionRule = text.parse().unwrap();
            assert_eq!(rule.to_string(), written);
            assert_eq!(
                written.parse::<RejectionRule>().as_ref(),
                Ok(&rule),
                "{text}"
            );
            let mut rules = Rejections::default();
            rules.add([rule.clone(), rule]).unwrap();
            let url = Url::parse(url).unwrap();
            assert_eq!(rules.covers_url(&url), covered, "{text} of {url}");
            let covering = rules.covering_rule(&url).map(ToString::to_string);
            assert_eq!(covering.as_deref(), covered.then_some(written), "{text}");
            let rule = rules.rules()[0].clone();
            assert_eq!(rules.remove(&rule), Ok(true));
            assert_eq!(rules.remove(&rule), Ok(false));
            assert!(!rules.covers_url(&url), "{text} was taken back");
        }
        assert!(!Rejections::default().covers_url(&Url::parse("http://a.dk/").unwrap()));
    }

    /// Fails if a rule is taken that would match nothing, or that is no expression.
    #[test]
    fn rule_without_effect_is_refused() {
        for text in ["example.dk/calendar", "a.dk", "", "(open", "http://"] {
            let refused = text.parse::<RejectionRule>();
            assert!(refused.is_err(), "{text}: {refused:?}");
        }
        let why = "example.dk"
            .parse::<RejectionRule>()
            .unwrap_err()
            .to_string();
        assert!(why.contains("https://"), "{why}");
    }
}
