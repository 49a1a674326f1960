//! The parts that all pages share: the style, the search at the top, the languages at the bottom.
//!
//! `templates/base.html` shows them; a page hands its [`Layout`] over in the field `layout`.

use super::PageHost;
use super::address::{PageAddress, PagePath};
use super::language::Language;
use super::texts::Words;

/// The parts that all pages share.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) words: Words,
    pub(super) style: String,
    pub(super) icon: String,
    pub(super) home: String,
    pub(super) languages: Vec<LanguageLink>,
    pub(super) search: SearchForm,
}

/// The link to this page in a language.
#[derive(Clone, Debug)]
pub(super) struct LanguageLink {
    pub(super) tag: &'static str,
    pub(super) name: &'static str,
    pub(super) href: String,
    pub(super) is_current: bool,
}

/// The search for a URL.
#[derive(Clone, Debug)]
pub(super) struct SearchForm {
    /// The text in the field.
    pub(super) url: String,
    pub(super) collections: Vec<Choice>,
    pub(super) matches: Vec<Choice>,
    /// The language that is sent with the search, if one was chosen.
    pub(super) language: Option<&'static str>,
}

/// A value that a field can have.
#[derive(Clone, Debug)]
pub(super) struct Choice {
    pub(super) value: String,
    pub(super) label: String,
    pub(super) is_chosen: bool,
}

impl Layout {
    pub(super) fn new(
        words: &Words,
        chosen: Option<Language>,
        here: &PageAddress,
        host: &PageHost,
    ) -> Self {
        let assets = &host.assets;
        let collections = &host.parts.collections;
        let current = words.language();
        let languages = Language::ALL.into_iter().map(|language| LanguageLink {
            tag: language.tag(),
            name: language.name(),
            href: here.link_to(Some(language)),
            is_current: language == current,
        });
        let unnamed = collections.sole_collection().map(|own| own.name());
        let collections = collections.names().map(|name| Choice {
            value: name.to_owned(),
            label: name.to_owned(),
            is_chosen: unnamed == Some(name),
        });
        let matches = [
            ("exact", words.text("search-match-exact")),
            ("prefix", words.text("search-match-prefix")),
            ("domain", words.text("search-match-domain")),
        ];
        let matches = matches.into_iter().map(|(value, label)| Choice {
            value: value.to_owned(),
            label,
            is_chosen: value == "exact",
        });
        Self {
            style: assets.asset_path("pages").to_owned(),
            icon: assets.asset_path("icon").to_owned(),
            home: PageAddress::new(PagePath::Home).link_to(chosen),
            languages: languages.collect(),
            search: SearchForm {
                url: String::new(),
                collections: collections.collect(),
                matches: matches.collect(),
                language: chosen.map(Language::tag),
            },
            words: words.clone(),
        }
    }

    /// Returns this layout with a URL and its collection in the search.
    #[must_use]
    pub(super) fn with_search(
        mut self,
        url: &str,
        collection: Option<&str>,
        matching: &str,
    ) -> Self {
        url.clone_into(&mut self.search.url);
        if let Some(collection) = collection {
            choose(&mut self.search.collections, collection);
        }
        choose(&mut self.search.matches, matching);
        self
    }
}

fn choose(choices: &mut [Choice], value: &str) {
    if choices.iter().any(|choice| choice.value == value) {
        for choice in choices {
            choice.is_chosen = choice.value == value;
        }
    }
}
