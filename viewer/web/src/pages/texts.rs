//! The texts of the pages, in every language, through Fluent.
//!
//! Owns how a text is found and filled in, and how numbers and dates are written. The texts themselves are in
//! `texts/*.ftl`; a test holds the languages to the same keys, and each key to being used.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use archive_formats::date::Stamp;
use fluent_bundle::concurrent::FluentBundle;
use fluent_bundle::{FluentArgs, FluentResource, FluentValue};
use jiff::civil::Date;
use jiff::tz::Offset;
use unic_langid::LanguageIdentifier;

use super::language::Language;

/// The months, as keys.
const MONTHS: [&str; 12] = [
    "month-january",
    "month-february",
    "month-march",
    "month-april",
    "month-may",
    "month-june",
    "month-july",
    "month-august",
    "month-september",
    "month-october",
    "month-november",
    "month-december",
];

/// The days of the week, as keys: the whole name, and the short one.
pub(crate) const WEEKDAYS: [(&str, &str); 7] = [
    ("weekday-monday", "weekday-monday-short"),
    ("weekday-tuesday", "weekday-tuesday-short"),
    ("weekday-wednesday", "weekday-wednesday-short"),
    ("weekday-thursday", "weekday-thursday-short"),
    ("weekday-friday", "weekday-friday-short"),
    ("weekday-saturday", "weekday-saturday-short"),
    ("weekday-sunday", "weekday-sunday-short"),
];

/// A bug: the texts that were compiled in cannot be used.
#[derive(Clone, Debug, thiserror::Error)]
#[error("cannot use texts/{language}.ftl: {why}")]
pub struct TextsError {
    language: &'static str,
    why: String,
}

/// The texts of all languages.
pub(crate) struct Texts {
    bundles: BTreeMap<&'static str, FluentBundle<FluentResource>>,
}

impl fmt::Debug for Texts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Texts").finish_non_exhaustive()
    }
}

/// Returns the source of the texts of a language.
pub(super) const fn texts_source(language: Language) -> &'static str {
    match language {
        Language::English => include_str!("../../texts/en.ftl"),
        Language::Danish => include_str!("../../texts/da.ftl"),
    }
}

impl Texts {
    /// Reads the texts that were compiled in.
    pub(crate) fn read_texts() -> Result<Self, TextsError> {
        let bundles = Language::ALL.into_iter().map(|language| {
            let failed = |why: String| TextsError {
                language: language.tag(),
                why,
            };
            let tag: LanguageIdentifier = language
                .tag()
                .parse()
                .map_err(|error: unic_langid::LanguageIdentifierError| failed(error.to_string()))?;
            let resource = FluentResource::try_new(texts_source(language).to_owned())
                .map_err(|(_, errors)| failed(format!("{errors:?}")))?;
            let mut bundle = FluentBundle::new_concurrent(vec![tag]);
            // URLs stand in elements of their own, which isolate them.
            bundle.set_use_isolating(false);
            bundle
                .add_resource(resource)
                .map_err(|errors| failed(format!("{errors:?}")))?;
            Ok((language.tag(), bundle))
        });
        Ok(Self {
            bundles: bundles.collect::<Result<_, TextsError>>()?,
        })
    }
}

/// The texts for one visitor.
#[derive(Clone, Debug)]
pub(crate) struct Words {
    texts: Arc<Texts>,
    language: Language,
}

impl Words {
    /// Returns the texts of a language.
    pub(crate) const fn new(texts: Arc<Texts>, language: Language) -> Self {
        Self { texts, language }
    }

    /// Returns the language.
    pub(crate) const fn language(&self) -> Language {
        self.language
    }

    /// Returns a text.
    pub(crate) fn text(&self, key: &str) -> String {
        self.format(key, &FluentArgs::new())
    }

    /// Returns a text with values in it.
    pub(crate) fn text_with(&self, key: &str, values: &[(&str, &str)]) -> String {
        let mut args = FluentArgs::new();
        for (name, value) in values {
            args.set(*name, *value);
        }
        self.format(key, &args)
    }

    /// Returns a text about a number, which is `$count` where it decides about the form and `$number` where it is
    /// written.
    pub(crate) fn count(&self, key: &str, count: u64) -> String {
        self.count_with(key, count, &[])
    }

    /// Returns a text about a number, with further values.
    pub(crate) fn count_with(&self, key: &str, count: u64, values: &[(&str, &str)]) -> String {
        let mut args = FluentArgs::new();
        args.set("count", count);
        args.set("number", self.number(count));
        for (name, value) in values {
            args.set(*name, FluentValue::from(*value));
        }
        self.format(key, &args)
    }

    fn format(&self, key: &str, args: &FluentArgs<'_>) -> String {
        let bundle = self.texts.bundles.get(self.language.tag());
        let found = bundle.and_then(|bundle| {
            let pattern = bundle.get_message(key)?.value()?;
            let mut errors = Vec::new();
            let text = bundle.format_pattern(pattern, Some(args), &mut errors);
            if !errors.is_empty() {
                tracing::error!(key, ?errors, "a text of the pages lacks a value");
            }
            Some(text.into_owned())
        });
        found.unwrap_or_else(|| {
            tracing::error!(
                key,
                language = self.language.tag(),
                "a text of the pages is missing"
            );
            key.to_owned()
        })
    }

    /// Returns a number with its digits in groups.
    pub(crate) fn number(&self, number: u64) -> String {
        let digits = number.to_string();
        let separator = match self.language {
            Language::English => ',',
            Language::Danish => '.',
        };
        let mut text = String::with_capacity(digits.len() + digits.len() / 3);
        for (at, digit) in digits.chars().enumerate() {
            if at > 0 && (digits.len() - at).is_multiple_of(3) {
                text.push(separator);
            }
            text.push(digit);
        }
        text
    }

    /// Returns the name of a month, counted from 1.
    pub(crate) fn month(&self, month: i8) -> String {
        let index = usize::try_from(month - 1).expect("months are counted from 1");
        self.text(MONTHS[index])
    }

    /// Returns a day.
    pub(crate) fn date(&self, date: Date) -> String {
        let day = date.day();
        let month = self.month(date.month());
        let year = date.year();
        let day = day.to_string();
        let year = year.to_string();
        let values = [
            ("day", day.as_str()),
            ("month", month.as_str()),
            ("year", year.as_str()),
        ];
        self.text_with("date", &values)
    }

    /// Returns the day of a capture.
    pub(crate) fn day_of(&self, stamp: Stamp) -> String {
        self.date(stamp_date(stamp))
    }

    /// Returns day and time of a capture.
    pub(crate) fn moment(&self, stamp: Stamp) -> String {
        let day = self.day_of(stamp);
        let time = stamp_time(stamp);
        self.text_with("moment", &[("date", day.as_str()), ("time", time.as_str())])
    }
}

/// Returns the day of a capture, in UTC.
pub(crate) fn stamp_date(stamp: Stamp) -> Date {
    Offset::UTC.to_datetime(stamp.time()).date()
}

/// Returns the time of day of a capture, in UTC.
pub(crate) fn stamp_time(stamp: Stamp) -> String {
    Offset::UTC
        .to_datetime(stamp.time())
        .strftime("%H:%M:%S")
        .to_string()
}

/// Returns the moment of a capture, as in `datetime` attributes.
pub(crate) fn machine_time(stamp: Stamp) -> String {
    let moment = Offset::UTC.to_datetime(stamp.time());
    moment.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests;
