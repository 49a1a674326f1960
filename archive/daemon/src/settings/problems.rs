//! All problems of a settings file, not only the first.
//!
//! A problem is noted and then corrected in memory, so that the rest of the file is checked too: an unknown key is
//! removed, and a missing or wrong value is replaced by one that is accepted. A file that is not TOML is not checked
//! any further.
//!
//! Not promised: that values go together; the parts check that themselves.

use std::ops::Range;

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer};

use super::document::{Document, Override, line, past_end, value_of};
use super::{Place, SettingsError};

/// The most problems that are returned.
const MOST: usize = 100;

/// The values that are tried in the place of a wrong one, until one is accepted.
const GUESSES: [&str; 16] = [
    "\"x\"",
    "1",
    "true",
    "\"1 s\"",
    "\"1 B\"",
    "\"127.0.0.1:1\"",
    "\"info\"",
    "\"auto\"",
    "\"bitarchive\"",
    "\"reader\"",
    "[]",
    "1.0",
    "\"00000000\"",
    "\"none\"",
    "\"x@example.org\"",
    "1979-05-27T07:32:00Z",
];

/// The most levels of sections that are filled in.
const DEEPEST: usize = 4;

/// Returns all problems, in the order in which they were met.
pub(super) fn all<T: DeserializeOwned>(
    file: &Place,
    text: &str,
    overrides: &[Override],
) -> Result<Vec<SettingsError>, SettingsError> {
    let (_, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        let problem = |error: toml::de::Error| SettingsError::Invalid {
            place: file.at_line(error.span().map(|span| line(text, span.start))),
            message: error.message().to_owned(),
        };
        return Ok(errors.into_iter().take(MOST).map(problem).collect());
    }
    let mut document = Document::new(file.clone(), text, overrides)?;
    let mut found: Vec<SettingsError> = Vec::new();
    while found.len() < MOST {
        match attempt::<T>(&document) {
            Ok(ignored) => {
                found.extend(ignored.iter().map(|path| unknown(&document, path)));
                break;
            }
            Err(error) => {
                let problem = document.refuse(&error);
                let is_new = found
                    .last()
                    .is_none_or(|last| last.to_string() != problem.to_string());
                if is_new {
                    found.push(problem);
                }
                if !is_new || !put_right::<T>(&mut document, &error) {
                    break;
                }
            }
        }
    }
    Ok(found)
}

/// Returns the names at the top of `text`.
pub(super) fn sections(text: &str) -> Vec<String> {
    let (root, _errors) = DeTable::parse_recoverable(text);
    let names = root.get_ref().iter();
    names.map(|(name, _)| name.get_ref().to_string()).collect()
}

/// Reads the whole document, and returns the keys that were not read.
fn attempt<T: DeserializeOwned>(document: &Document<'_>) -> Result<Vec<String>, toml::de::Error> {
    let mut ignored = Vec::new();
    let tree = Deserializer::from(Spanned::new(0..0, document.root.clone()));
    let read = serde_ignored::deserialize::<_, _, T>(tree, |path| ignored.push(path.to_string()));
    read.map(|_settings| ignored)
}

fn unknown(document: &Document<'_>, path: &str) -> SettingsError {
    let pieces: Vec<&str> = path.split('.').filter(|piece| *piece != "?").collect();
    let key = pieces.join(".");
    let found = document.find(|path, _| path == key);
    SettingsError::Invalid {
        place: found.map_or_else(|| document.file.clone(), |found| found.1),
        message: format!("unknown key `{key}`"),
    }
}

/// Corrects the problem that `error` names; returns whether that was possible.
fn put_right<T: DeserializeOwned>(document: &mut Document<'_>, error: &toml::de::Error) -> bool {
    let span = error.span().unwrap_or_default();
    let path = if span.is_empty() {
        Some(Vec::new())
    } else {
        path_in(&document.root, &span)
    };
    let Some(mut path) = path else {
        return false;
    };
    if error.message().starts_with("unknown field ") {
        return take(&mut document.root, &path);
    }
    if let Some(missing) = missing(error.message()) {
        path.push(missing);
    }
    !path.is_empty() && fill::<T>(document, &path, 0)
}

/// Returns the field that serde misses.
fn missing(message: &str) -> Option<String> {
    let rest = message.strip_prefix("missing field `")?;
    rest.split('`').next().map(str::to_owned)
}

/// Puts a value that is accepted at `path`.
fn fill<T: DeserializeOwned>(document: &mut Document<'_>, path: &[String], depth: usize) -> bool {
    // The place is one past those of the overrides: an error there is about the value that was put in.
    let ours = past_end(document.text, document.overrides.len());
    let is_ours = |error: &toml::de::Error| error.span() == Some(ours.clone());
    for guess in GUESSES {
        if !put(&mut document.root, path, value_of(guess, &ours)) {
            return false;
        }
        if attempt::<T>(document).map_or_else(|error| !is_ours(&error), |_| true) {
            return true;
        }
    }
    let section = Spanned::new(ours.clone(), DeValue::Table(DeTable::new()));
    if depth == DEEPEST || !put(&mut document.root, path, section) {
        return false;
    }
    for _ in 0..MOST {
        let Err(error) = attempt::<T>(document) else {
            return true;
        };
        if !is_ours(&error) {
            return true;
        }
        let Some(field) = missing(error.message()) else {
            return false;
        };
        let inner: Vec<String> = path.iter().cloned().chain([field]).collect();
        if !fill::<T>(document, &inner, depth + 1) {
            return false;
        }
    }
    false
}

/// Returns the path to the key or value at `span`.
fn path_in(table: &DeTable<'_>, span: &Range<usize>) -> Option<Vec<String>> {
    table.iter().find_map(|(key, value)| {
        let rest = if key.span() == *span {
            Some(Vec::new())
        } else {
            path_at(value, span)
        };
        rest.map(|rest| [vec![key.get_ref().to_string()], rest].concat())
    })
}

fn path_at(value: &Spanned<DeValue<'_>>, span: &Range<usize>) -> Option<Vec<String>> {
    if value.span() == *span {
        return Some(Vec::new());
    }
    match value.get_ref() {
        DeValue::Table(table) => path_in(table, span),
        DeValue::Array(array) => array.iter().enumerate().find_map(|(index, item)| {
            path_at(item, span).map(|rest| [vec![index.to_string()], rest].concat())
        }),
        DeValue::String(_)
        | DeValue::Integer(_)
        | DeValue::Float(_)
        | DeValue::Boolean(_)
        | DeValue::Datetime(_) => None,
    }
}

/// Puts `value` at `path`, whose last piece may be new.
fn put<'i>(table: &mut DeTable<'i>, path: &[String], value: Spanned<DeValue<'i>>) -> bool {
    let Some((key, rest)) = path.split_first() else {
        return false;
    };
    let known = table.iter_mut().find(|(name, _)| name.get_ref() == key);
    match known {
        Some((_, place)) => put_at(place, rest, value),
        None if rest.is_empty() => {
            let name = Spanned::new(value.span(), key.clone().into());
            table.insert(name, value);
            true
        }
        None => false,
    }
}

fn put_at<'i>(
    place: &mut Spanned<DeValue<'i>>,
    path: &[String],
    value: Spanned<DeValue<'i>>,
) -> bool {
    let Some((key, rest)) = path.split_first() else {
        *place = value;
        return true;
    };
    match place.get_mut() {
        DeValue::Table(table) => put(table, path, value),
        DeValue::Array(array) => {
            let item = key
                .parse()
                .ok()
                .and_then(|index: usize| array.get_mut(index));
            item.is_some_and(|item| put_at(item, rest, value))
        }
        DeValue::String(_)
        | DeValue::Integer(_)
        | DeValue::Float(_)
        | DeValue::Boolean(_)
        | DeValue::Datetime(_) => false,
    }
}

/// Removes the value at `path`.
fn take(table: &mut DeTable<'_>, path: &[String]) -> bool {
    match path {
        [] => false,
        [key] => table.remove(key.as_str()).is_some(),
        [key, rest @ ..] => {
            let place = table.iter_mut().find(|(name, _)| name.get_ref() == key);
            place.is_some_and(|(_, place)| take_at(place, rest))
        }
    }
}

fn take_at(place: &mut Spanned<DeValue<'_>>, path: &[String]) -> bool {
    match (place.get_mut(), path) {
        (DeValue::Table(table), _) => take(table, path),
        (DeValue::Array(array), [index, rest @ ..]) => {
            let item = index
                .parse()
                .ok()
                .and_then(|index: usize| array.get_mut(index));
            item.is_some_and(|item| take_at(item, rest))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use serde::Deserialize;

    use super::*;
    use crate::settings::{ByteSize, Period};

    #[expect(dead_code, reason = "only read")]
    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Example {
        name: String,
        rpc: Rpc,
        #[serde(default)]
        replica: Vec<Replica>,
        count: Option<u8>,
    }

    #[expect(dead_code, reason = "only read")]
    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Rpc {
        listen: std::net::SocketAddr,
        idle: Period,
        reserve: ByteSize,
    }

    #[expect(dead_code, reason = "only read")]
    #[derive(Debug, Deserialize)]
    struct Replica {
        id: String,
        required: bool,
    }

    fn problems(text: &str) -> Vec<String> {
        let file = Place::File(PathBuf::from("F"), None);
        let found = all::<Example>(&file, text, &[]).unwrap();
        found.into_iter().map(|error| error.to_string()).collect()
    }

    const RPC: &str = "[rpc]\nlisten = '127.0.0.1:1'\nidle = '1 s'\nreserve = '1 kB'\n";

    /// Fails if a problem is reported for good settings, or a section of the file is not listed.
    #[test]
    fn good_settings_have_no_problem() {
        assert_eq!(problems(&format!("name = 'a'\n{RPC}")), [""; 0]);
        assert_eq!(
            sections(&format!("name = 'a'\n{RPC}[[x]]\n")),
            ["name", "rpc", "x"]
        );
    }

    /// Fails if only the first problem of the settings is reported, or one is reported twice or with a wrong line.
    #[test]
    fn every_problem_is_reported_with_its_line() {
        let text = "nmae = 'a'\ncount = 300\n[rpc]\nlisten = 'here'\nidle = '3 q'\nlimit = 1\n\
                    [[replica]]\nid = 1\nrequired = true\nsize = 3\n[[replica]]\nrequired = 'yes'\n[other]\n";
        let found = problems(text);
        for (line, what) in [
            ("F:1:", "`nmae`; did you mean `name`"),
            ("F:2:", "`count`"),
            ("F:4:", "`rpc.listen`"),
            ("F:5:", "`rpc.idle`"),
            ("F:6:", "`rpc.limit`"),
            ("F:3:", "missing field `reserve`"),
            ("F:8:", "`replica.0.id`"),
            ("F:10:", "unknown key `replica.0.size`"),
            ("F:11:", "missing field `id`"),
            ("F:12:", "`replica.1.required`"),
            ("F:13:", "`other`"),
            ("F:", "missing field `name`"),
        ] {
            let told = found
                .iter()
                .filter(|error| error.starts_with(line) && error.contains(what));
            assert_eq!(told.count(), 1, "{line} {what} in {found:#?}");
        }
        assert_eq!(found.len(), 12, "{found:#?}");
    }

    /// Fails if a missing section is reported again for each key that would be in it.
    #[test]
    fn a_section_that_is_missing_is_one_problem() {
        assert_eq!(problems("name = 'a'"), ["F: missing field `rpc`"]);
        assert_eq!(problems("name = 'a'\nrpc = 3").len(), 1);
        assert_eq!(
            problems("").len(),
            2,
            "name and rpc, and nothing of what would be in rpc"
        );
    }

    /// Fails if a line that is no TOML hides another one, or a duplicate key is reported twice.
    #[test]
    fn every_invalid_toml_line_is_reported_alone() {
        let found = problems("name = \n[rpc]\nidle = = 3\n");
        assert!(
            found.iter().any(|error| error.starts_with("F:1:"))
                && found.iter().any(|error| error.starts_with("F:3:")),
            "{found:#?}"
        );
        let twice = problems(&format!("name = 'a'\nname = 'b'\n{RPC}"));
        assert_eq!(twice.len(), 1, "{twice:#?}");
    }
}
