//! The languages of the pages, and which of them a visitor gets.
//!
//! `?lang=` decides; without it `Accept-Language`; without a language that there is, English. Nothing is remembered: a
//! language that was chosen goes from link to link in the addresses.

use axum::http::HeaderMap;
use axum::http::header::ACCEPT_LANGUAGE;

/// A language of the pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    /// English.
    English,
    /// Danish.
    Danish,
}

impl Language {
    /// All languages; the first one is for visitors who ask for none of them.
    pub(crate) const ALL: [Self; 2] = [Self::English, Self::Danish];

    /// Returns the tag of the language, as in `lang` attributes.
    pub(crate) const fn tag(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::Danish => "da",
        }
    }

    /// Returns the name of the language in the language itself.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::English => "English",
            Self::Danish => "Dansk",
        }
    }

    /// Returns the language of a tag, regions left aside.
    pub(crate) fn from_tag(tag: &str) -> Option<Self> {
        let primary = tag.trim().split('-').next().unwrap_or_default();
        Self::ALL
            .into_iter()
            .find(|language| language.tag().eq_ignore_ascii_case(primary))
    }

    /// Returns the language that a client likes best.
    pub(crate) fn from_headers(headers: &HeaderMap) -> Self {
        let lines = headers.get_all(ACCEPT_LANGUAGE).iter();
        let members = lines.filter_map(|line| line.to_str().ok());
        let mut best = (Self::English, 0.0);
        for member in members.flat_map(|line| line.split(',')) {
            let (tag, parameters) = member.split_once(';').unwrap_or((member, ""));
            let quality = parameters.trim().strip_prefix("q=");
            let quality = quality.map_or(1.0, |q| q.trim().parse().unwrap_or(0.0));
            if let Some(language) = Self::from_tag(tag)
                && quality > best.1
                && quality <= 1.0
            {
                best = (language, quality);
            }
        }
        best.0
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    /// Fails if a visitor gets another language than the best one that there is.
    #[test]
    fn best_language_that_exists_is_chosen() {
        for (accept, expected) in [
            ("", Language::English),
            ("da", Language::Danish),
            ("da-DK,da;q=0.9,en;q=0.8", Language::Danish),
            ("en;q=0.5, DA;q=0.6", Language::Danish),
            ("de, da;q=0.1", Language::Danish),
            ("da;q=0, en;q=0.1", Language::English),
            ("da;q=0", Language::English),
            ("en, da", Language::English),
            ("da;q=7, en;q=0.2", Language::English),
            ("da;q=NaN, x;;;==", Language::English),
            ("dan, *", Language::English),
        ] {
            let value = HeaderValue::from_static(accept);
            let headers = HeaderMap::from_iter([(ACCEPT_LANGUAGE, value)]);
            assert_eq!(Language::from_headers(&headers), expected, "{accept}");
        }
        assert_eq!(Language::from_headers(&HeaderMap::new()), Language::English);
    }
}
