//! Tests of the texts: the same keys in all languages, each used, and none missing.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use fluent_syntax::ast::{Entry, Expression, InlineExpression, Pattern, PatternElement};

use super::*;

fn words(language: Language) -> Words {
    Words::new(Arc::new(Texts::read_texts().unwrap()), language)
}

/// Returns the variables of each key of a language.
fn keys(language: Language) -> BTreeMap<String, BTreeSet<String>> {
    let resource = FluentResource::try_new(texts_source(language).to_owned()).unwrap();
    let mut keys = BTreeMap::new();
    for entry in resource.entries() {
        if let Entry::Message(message) = entry {
            let mut variables = BTreeSet::new();
            collect(message.value.as_ref().unwrap(), &mut variables);
            let twice = keys.insert(message.id.name.to_owned(), variables);
            assert_eq!(twice, None, "{} stands there twice", message.id.name);
        }
    }
    keys
}

fn collect(pattern: &Pattern<&str>, variables: &mut BTreeSet<String>) {
    for element in &pattern.elements {
        let PatternElement::Placeable { expression } = element else {
            continue;
        };
        let (Expression::Inline(inline)
        | Expression::Select {
            selector: inline, ..
        }) = expression;
        if let InlineExpression::VariableReference { id } = inline {
            variables.insert(id.name.to_owned());
        }
        if let Expression::Select { variants, .. } = expression {
            for variant in variants {
                collect(&variant.value, variables);
            }
        }
    }
}

/// Returns the text of all files below a folder of this crate, without tests.
fn sources(folder: &Path) -> String {
    let mut all = String::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.push_str(&sources(&path));
        } else if !path.ends_with("tests.rs") {
            all.push_str(&std::fs::read_to_string(&path).unwrap());
        }
    }
    all
}

/// Fails if a text is missing in a language, has other values there, or is used nowhere.
#[test]
fn every_text_exists_everywhere_and_is_used() {
    let english = keys(Language::English);
    assert!(english.len() > 50, "{}", english.len());
    for language in Language::ALL {
        let own = keys(language);
        for (key, variables) in &english {
            // A form that is chosen by a number may leave the number out.
            let without = |all: &BTreeSet<String>| -> BTreeSet<String> {
                all.iter()
                    .filter(|name| *name != "number")
                    .cloned()
                    .collect()
            };
            let there = own.get(key);
            let there = there.unwrap_or_else(|| panic!("{key} is missing in {language:?}"));
            assert_eq!(without(there), without(variables), "{key} in {language:?}");
        }
        assert_eq!(
            own.len(),
            english.len(),
            "{language:?} has texts that English lacks"
        );
    }
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let used = [
        sources(&crate_folder.join("src/pages")),
        sources(&crate_folder.join("templates")),
    ]
    .concat();
    for key in english.keys() {
        assert!(
            used.contains(&format!("\"{key}\"")),
            "{key} is used nowhere"
        );
    }
}

/// Fails if a text that the pages ask for does not exist.
#[test]
fn every_text_that_is_asked_for_exists() {
    let english = keys(Language::English);
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let used = [
        sources(&crate_folder.join("src/pages")),
        sources(&crate_folder.join("templates")),
    ]
    .concat();
    let mut count = 0;
    for call in ["text(\"", "text_with(\"", "count(\"", "count_with(\""] {
        for (at, _) in used.match_indices(call) {
            let key = &used[at + call.len()..];
            let key = &key[..key.find('"').unwrap()];
            assert!(english.contains_key(key), "{call}{key}");
            count += 1;
        }
    }
    assert!(count > 30, "{count}");
}

/// Fails if numbers or dates are written in the manner of another language.
#[test]
fn numbers_and_dates_follow_the_language() {
    let english = words(Language::English);
    let danish = words(Language::Danish);
    for (number, expected) in [
        (0, "0"),
        (999, "999"),
        (1000, "1,000"),
        (1_234_567, "1,234,567"),
    ] {
        assert_eq!(english.number(number), expected);
        assert_eq!(danish.number(number), expected.replace(',', "."));
    }
    let stamp: Stamp = "20200301140509".parse().unwrap();
    assert_eq!(english.moment(stamp), "1 March 2020, 14:05:09 UTC");
    assert_eq!(danish.moment(stamp), "1. marts 2020 kl. 14:05:09 UTC");
    assert_eq!(english.count("captures", 1), "1 capture");
    assert_eq!(english.count("captures", 1000), "1,000 captures");
    assert_eq!(danish.count("captures", 0), "0 versioner");
    assert_eq!(machine_time(stamp), "2020-03-01T14:05:09Z");
}
