//! Links with their relations, as they stand in a `Link` field and in a TimeMap.

use std::collections::BTreeMap;

use crate::support::curl::Answer;

/// A link: its address and its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    pub address: String,
    pub parameters: BTreeMap<String, String>,
}

impl Link {
    /// Returns whether the link has a relation, beside others or alone.
    pub fn has(&self, relation: &str) -> bool {
        let relations = self.parameters.get("rel").map_or("", String::as_str);
        relations.split(' ').any(|own| own == relation)
    }

    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.get(name).map(String::as_str)
    }
}

/// Reads links as RFC 8288 writes them: a comma within an address or a quoted value ends nothing.
#[track_caller]
pub fn links(text: &str) -> Vec<Link> {
    let mut links = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (address, behind) = rest.strip_prefix('<').unwrap().split_once('>').unwrap();
        let mut parameters = BTreeMap::new();
        rest = behind.trim_start();
        while let Some(parameter) = rest.strip_prefix(';') {
            let (name, value) = parameter.trim_start().split_once("=\"").unwrap();
            let (value, behind) = value.split_once('"').unwrap();
            let known = parameters.insert(name.to_owned(), value.to_owned());
            assert_eq!(known, None, "{name} stands twice");
            rest = behind.trim_start();
        }
        links.push(Link {
            address: address.to_owned(),
            parameters,
        });
        rest = if let Some(next) = rest.strip_prefix(',') {
            next.trim_start()
        } else {
            assert_eq!(rest, "", "something behind the last link");
            rest
        };
    }
    links
}

/// Returns the links in the head of an answer.
#[track_caller]
pub fn links_of(answer: &Answer) -> Vec<Link> {
    links(answer.field("Link").expect("a Link"))
}

/// Returns the one link with a relation.
#[track_caller]
pub fn only<'a>(links: &'a [Link], relation: &str) -> &'a Link {
    let mut found = links.iter().filter(|link| link.has(relation));
    let first = found
        .next()
        .unwrap_or_else(|| panic!("no {relation} in {links:#?}"));
    assert_eq!(found.next(), None, "{relation} stands twice");
    first
}
