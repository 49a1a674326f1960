//! The names that the text of a file has of its crate: paths from the root, and what `use` brings in.

use std::collections::{BTreeMap, BTreeSet};
use std::iter::Peekable;
use std::str::Chars;
use std::vec::IntoIter;

/// The path of a module from the root of its crate; the root has none.
pub(super) type ModulePath = Vec<String>;

/// The names in a file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct FileNames {
    /// The paths that the file names, from the root of the crate.
    pub(super) paths: BTreeSet<ModulePath>,
    /// The paths of the names that `use` brings in.
    pub(super) imports: BTreeMap<String, ModulePath>,
    /// The modules of tests that the file declares.
    pub(super) tests: BTreeSet<ModulePath>,
}

/// Reads the names in the text of a module. `is_module` says which paths are modules.
pub(super) fn read_names(
    module: &[String],
    text: &str,
    is_module: &dyn Fn(&[String]) -> bool,
) -> FileNames {
    let mut reader = NameReader {
        module,
        is_module,
        tokens: tokens(text).into_iter().peekable(),
        names: FileNames::default(),
    };
    reader.read();
    reader.names
}

/// Returns the words and signs of a text, without comments, strings and letters; `::` is one sign.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut rest = text.chars();
    while let Some(letter) = rest.clone().next() {
        if skip_quoted(&mut rest) {
            continue;
        }
        let mut token = String::new();
        while let Some(next) = rest.clone().next() {
            if !next.is_alphanumeric() && next != '_' {
                break;
            }
            token.push(next);
            rest.next();
        }
        if token.is_empty() {
            rest.next();
            token.push(letter);
            if letter == ':' && rest.as_str().starts_with(':') {
                rest.next();
                token.push(':');
            }
        }
        if !letter.is_whitespace() {
            tokens.push(token);
        }
    }
    tokens
}

/// Skips a comment, a string or a letter, if one begins here.
fn skip_quoted(rest: &mut Chars<'_>) -> bool {
    let text = rest.as_str();
    let behind = |mark: &str, length: usize| text.find(mark).map_or(text.len(), |at| at + length);
    let raw = text.strip_prefix("br").or(text.strip_prefix('r'));
    let raw = raw.map(|raw| (raw, raw.trim_start_matches('#')));
    let length = if text.starts_with("//") {
        behind("\n", 1)
    } else if text.starts_with("/*") {
        behind("*/", 2)
    } else if let Some((raw, quoted)) = raw.filter(|(_, quoted)| quoted.starts_with('"')) {
        let end = format!("\"{}", "#".repeat(raw.len() - quoted.len()));
        let begin = text.len() - quoted.len() + 1;
        let found = text.get(begin..).and_then(|inner| inner.find(&end));
        found.map_or(text.len(), |at| begin + at + end.len())
    } else if text.starts_with('"') {
        quoted_length(text, '"')
    } else if text.starts_with("'\\")
        || text.chars().nth(2).is_some_and(|end| end == '\'') && text.starts_with('\'')
    {
        quoted_length(text, '\'')
    } else {
        return false;
    };
    *rest = text[length..].chars();
    true
}

/// Returns the length of what stands between two marks, with both.
fn quoted_length(text: &str, mark: char) -> usize {
    let mut letters = text.char_indices().skip(1);
    while let Some((at, letter)) = letters.next() {
        if letter == '\\' {
            letters.next();
        } else if letter == mark {
            return at + 1;
        }
    }
    text.len()
}

/// A reader of the names of one module.
struct NameReader<'a> {
    module: &'a [String],
    is_module: &'a dyn Fn(&[String]) -> bool,
    tokens: Peekable<IntoIter<String>>,
    names: FileNames,
}

impl NameReader<'_> {
    fn read(&mut self) {
        let mut last = String::new();
        while let Some(token) = self.tokens.next() {
            match token.as_str() {
                "#" if self.skip_attribute() => self.skip_item(),
                // `use<'a>` says what a type captures.
                "use" if !self.next_is("<") => self.read_use(&[]),
                _ if last == "::" || last == "." => {}
                _ if self.next_is("::") => self.read_path(token.clone()),
                _ => {}
            }
            last = token;
        }
    }

    fn next_is(&mut self, sign: &str) -> bool {
        self.tokens.peek().is_some_and(|next| next == sign)
    }

    fn skip(&mut self, sign: &str) -> bool {
        self.tokens.next_if(|next| next == sign).is_some()
    }

    /// Skips an attribute behind its `#`. Returns whether what follows is for tests only.
    fn skip_attribute(&mut self) -> bool {
        self.skip("!");
        let mut words = String::new();
        let mut depth = 0_usize;
        for token in self.tokens.by_ref() {
            match token.as_str() {
                "[" => depth += 1,
                "]" => depth = depth.saturating_sub(1),
                _ => words.push_str(&token),
            }
            if depth == 0 {
                break;
            }
        }
        words == "cfg(test)" || words.starts_with("cfg(any(test,")
    }

    /// Skips an item of tests: to its `;`, or behind its braces. A module in a file of its own is noted.
    fn skip_item(&mut self) {
        let mut depth = 0_usize;
        while let Some(token) = self.tokens.next() {
            match token.as_str() {
                "#" if depth == 0 => {
                    self.skip_attribute();
                }
                "mod" if depth == 0 => {
                    let name = self.tokens.peek().cloned();
                    let test = self.module.iter().cloned().chain(name).collect();
                    self.names.tests.insert(test);
                }
                "{" | "(" | "[" => depth += 1,
                "}" | ")" | "]" => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth == 0 && matches!(token.as_str(), ";" | "}") {
                return;
            }
        }
    }

    /// Reads a path outside of `use`, of which the first word was read.
    fn read_path(&mut self, first: String) {
        let mut words = vec![first];
        while self.skip("::") {
            let is_word = |next: &String| {
                next.starts_with(|letter: char| letter.is_alphabetic() || letter == '_')
            };
            match self.tokens.next_if(is_word) {
                Some(word) => words.push(word),
                None => break,
            }
        }
        self.names.paths.extend(self.path_of(&words));
    }

    /// Reads what stands behind `use`, or in braces behind a path.
    fn read_use(&mut self, prefix: &[String]) {
        let mut words = prefix.to_vec();
        let mut name = None;
        // Behind a comma or a group nothing may follow.
        let mut is_empty = true;
        while let Some(token) = self.tokens.next() {
            match token.as_str() {
                "{" => {
                    self.read_use(&words);
                    is_empty = true;
                }
                "::" => {}
                "as" => name = self.tokens.next(),
                "," | "}" | ";" => {
                    if !is_empty {
                        self.add_import(&words, name.take());
                    }
                    if token != "," {
                        return;
                    }
                    words = prefix.to_vec();
                    is_empty = true;
                }
                _ => {
                    is_empty = false;
                    if token != "self" || words.is_empty() {
                        words.push(token);
                    }
                }
            }
        }
    }

    fn add_import(&mut self, words: &[String], name: Option<String>) {
        if let Some(path) = self.path_of(words) {
            let name = name.or_else(|| words.last().cloned());
            if let Some(name) = name.filter(|name| name != "*") {
                self.names.imports.insert(name, path.clone());
            }
            self.names.paths.insert(path);
        }
    }

    /// Returns a path from the root of the crate; `None` if it leads out of the crate, or to something of this file.
    fn path_of(&self, words: &[String]) -> Option<ModulePath> {
        let (first, mut rest) = words.split_first()?;
        let mut path = self.module.to_vec();
        match first.as_str() {
            "crate" => path.clear(),
            "self" => {}
            "super" => {
                path.pop();
            }
            _ => {
                path.push(first.clone());
                if !(self.is_module)(&path) {
                    path.clone_from(self.names.imports.get(first)?);
                }
            }
        }
        while let Some(next) = rest.strip_prefix(&["super".to_owned()]) {
            path.pop();
            rest = next;
        }
        path.extend(rest.iter().cloned());
        Some(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> FileNames {
        let module = ["room".to_owned()];
        read_names(&module, text, &|path| path == ["room", "child"])
    }

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let paths: Vec<String> = read(text)
            .paths
            .iter()
            .map(|path| path.join("::"))
            .collect();
        assert_eq!(paths, expected, "{text}");
    }

    /// Fails if a path is lost in a tree of `use`, or one outside of the crate is taken for one of it.
    #[test]
    fn use_trees_are_read() {
        check(
            "use crate::a::{self, b::{C, D as E}, super_name};",
            &["a", "a::b::C", "a::b::D", "a::super_name"],
        );
        check(
            "use super::{x, super::y,}; use std::fmt::{self, Debug};",
            &["x", "y"],
        );
        check(
            "use crate::a::b; fn f() -> impl A + use<'_> { b::c::d() }",
            &["a::b", "a::b::c::d"],
        );
        check(
            "pub(in crate::a) use self::child::{Name}; use child::*;",
            &["a", "room::child::*", "room::child::Name"],
        );
    }

    /// Fails if a path in code is overlooked, or a part of another one or a field is taken for one.
    #[test]
    fn paths_in_code_are_read() {
        check(
            "fn f(a: &crate::a::A<super::b::B>) { child::g::<u8>(self.child) }",
            &["a::A", "b::B", "room::child::g"],
        );
        check(
            "fn f() -> pub_crate { other::child::g(); self.child::<u8>(); Self::child() }",
            &[],
        );
    }

    /// Fails if what is quoted, or said to people, is taken for code, or code behind a quote for a part of it.
    #[test]
    fn quotes_and_comments_are_no_code() {
        for quoted in [
            "// crate::a\n",
            "/* crate::a */",
            "\"crate::a \\\" crate::a\"",
            "r#\"crate::a \" crate::a\"#",
            "b\"crate::a\"",
            "'\"'",
            "'\\''",
            "<'a, 'b>",
        ] {
            check(&format!("{quoted} crate::b::B"), &["b::B"]);
        }
    }

    /// Fails if an item of tests is read, or one behind it is not.
    #[test]
    fn items_of_tests_are_skipped() {
        for test in [
            "mod tests { use crate::a; fn f() { crate::a } }",
            "#[path = \"x\"] mod tests;",
            "use crate::a::{b, c};",
            "fn f() { crate::a() }",
        ] {
            check(&format!("#[cfg(test)] {test} crate::b::B"), &["b::B"]);
        }
        check(
            "#[cfg(any(test, feature = \"x\"))] mod a; crate::b::B",
            &["b::B"],
        );
        check("#[cfg(unix)] use crate::b::B;", &["b::B"]);
        assert_eq!(read("#[cfg(test)] mod tests;").tests.len(), 1);
    }
}
