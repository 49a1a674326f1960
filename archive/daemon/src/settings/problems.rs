//! All problems of a settings file, not only the first.
//!
//! What a file may have and needs is known: the form lists the keys, and a key is needed if the example cannot be read
//! without it. A problem is noted and then corrected in memory, so that the rest of the file is checked too: an unknown
//! key is removed, and a missing or wrong value is replaced by that of the example, or removed where the example has
//! none. A file that is not TOML is not checked any further.
//!
//! Not promised: that values go together; the parts check that themselves.

use std::ops::Range;

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer};

use super::document::{
    Document, Override, explain_unknown_key, line_number, past_end, restamp_value, unknown_key_read,
};
use super::form::{Section, SettingsForm};
use super::{Place, SettingsError};

/// The most problems that are returned.
const MOST: usize = 100;

/// The pieces of a dotted key; the elements of a list have their number.
type KeyPath = Vec<String>;

/// Returns all problems, those of the whole file first and then by their lines.
pub(super) fn list_problems<T: DeserializeOwned>(
    form: &SettingsForm,
    file: &Place,
    text: &str,
    overrides: &[Override],
) -> Result<Vec<SettingsError>, SettingsError> {
    let torn = list_torn_lines(file, text);
    if !torn.is_empty() {
        return Ok(torn);
    }
    let mut review = Review {
        form,
        example: read_example(form),
        document: Document::new(file.clone(), text, overrides)?,
        filled: past_end(text, overrides.len()),
        found: Vec::new(),
    };
    review.remove_unknown_keys();
    review.fill_missing_keys::<T>();
    review.replace_wrong_values::<T>();
    let mut found = review.found;
    found.sort_by_key(|problem| match problem {
        SettingsError::Invalid { place, .. } => place.line(),
        _ => None,
    });
    found.truncate(MOST);
    Ok(found)
}

/// Returns the lines that are not TOML.
pub(super) fn list_torn_lines(file: &Place, text: &str) -> Vec<SettingsError> {
    let (_, errors) = DeTable::parse_recoverable(text);
    let problem = |error: toml::de::Error| SettingsError::Invalid {
        place: file.at_line(error.span().map(|span| line_number(text, span.start))),
        message: error.message().to_owned(),
    };
    errors.into_iter().take(MOST).map(problem).collect()
}

/// Returns the names at the top of `text`.
pub(super) fn list_top_names(text: &str) -> Vec<String> {
    let (root, _errors) = DeTable::parse_recoverable(text);
    let names = root.get_ref().iter();
    names.map(|(name, _)| name.get_ref().to_string()).collect()
}

fn read_example(form: &SettingsForm) -> DeTable<'static> {
    let example = DeTable::parse(form.example);
    example
        .expect("the example of a form is TOML: each part has a test that reads its own")
        .into_inner()
}

/// The document under review, with what was found in it so far.
struct Review<'i> {
    form: &'i SettingsForm,
    example: DeTable<'static>,
    document: Document<'i>,
    /// The place of values that were filled in: one past those of the overrides.
    filled: Range<usize>,
    found: Vec<SettingsError>,
}

impl Review<'_> {
    fn remove_unknown_keys(&mut self) {
        let Some(top) = self.form.find_section("") else {
            return;
        };
        let mut unknown = Vec::new();
        list_unknown_keys(self.form, top, &self.document.root, &[], &mut unknown);
        for (path, section) in unknown {
            let key = path.join(".");
            let place = self.document.find_key(|own, _| own == key);
            self.found.push(SettingsError::Invalid {
                place: place.map_or_else(|| self.document.file.clone(), |found| found.1),
                message: explain_unknown_key(&key, section.keys),
            });
            remove_value(&mut self.document.root, &path);
        }
    }

    fn fill_missing_keys<T: DeserializeOwned>(&mut self) {
        for needed in list_needed_keys::<T>(&self.example) {
            let (key, section) = needed.split_last().expect("a key has a name");
            let mut sections = Vec::new();
            list_sections(&self.document.root, section, &mut sections);
            for own in sections {
                let path = [own.as_slice(), std::slice::from_ref(key)].concat();
                if find_value(&self.document.root, &path).is_some() {
                    continue;
                }
                self.found
                    .push(self.document.missing_key(&own.join("."), key));
                self.fill(&path);
            }
        }
    }

    fn replace_wrong_values<T: DeserializeOwned>(&mut self) {
        while self.found.len() < MOST {
            let error = match read_strictly::<T>(&self.document.root) {
                Ok(ignored) => {
                    let unknown = ignored.iter().map(|path| self.document.unknown_key(path));
                    self.found.extend(unknown);
                    return;
                }
                Err(error) => error,
            };
            let span = error.span().unwrap_or_default();
            if span == self.filled {
                return;
            }
            self.found.push(self.document.refuse_document(&error));
            let path = find_span(&self.document.root, &span).filter(|_| !span.is_empty());
            let is_replaced = path.is_some_and(|path| {
                // Without an example, a list goes as a whole.
                let is_number = |piece: &String| piece.parse::<usize>().is_ok();
                let key = path
                    .iter()
                    .rposition(|piece| !is_number(piece))
                    .unwrap_or(0);
                self.fill(&path) || remove_value(&mut self.document.root, &path[..=key])
            });
            if !is_replaced {
                return;
            }
        }
    }

    /// Puts the value of the example at `path`, if it has one there.
    fn fill(&mut self, path: &[String]) -> bool {
        let in_example: KeyPath = path
            .iter()
            .map(|piece| match piece.parse::<usize>() {
                Ok(_) => "0".to_owned(),
                Err(_) => piece.clone(),
            })
            .collect();
        let Some(value) = find_value(&self.example, &in_example) else {
            return false;
        };
        let value = restamp_value(value.get_ref().clone(), &self.filled);
        put_value(&mut self.document.root, path, value)
    }
}

/// Reads a whole document, and returns the keys that were not read.
fn read_strictly<T: DeserializeOwned>(root: &DeTable<'_>) -> Result<Vec<String>, toml::de::Error> {
    let mut ignored = Vec::new();
    let tree = Deserializer::from(Spanned::new(0..0, root.clone()));
    let read =
        serde_ignored::deserialize::<_, _, T>(tree, |path| ignored.push(unknown_key_read(&path)));
    read.map(|_settings| ignored)
}

/// Lists the keys in a table that its section does not have, each with that section.
fn list_unknown_keys(
    form: &SettingsForm,
    section: &'static Section,
    table: &DeTable<'_>,
    path: &[String],
    unknown: &mut Vec<(KeyPath, &'static Section)>,
) {
    for (key, value) in table {
        let own = [path, &[key.get_ref().to_string()]].concat();
        if !section.keys.contains(&key.get_ref().as_ref()) {
            unknown.push((own, section));
            continue;
        }
        let is_name = |piece: &&String| piece.parse::<usize>().is_err();
        let names: Vec<&str> = own.iter().filter(is_name).map(String::as_str).collect();
        let Some(inner) = form.find_section(&names.join(".")) else {
            continue;
        };
        match value.get_ref() {
            DeValue::Table(table) => list_unknown_keys(form, inner, table, &own, unknown),
            DeValue::Array(items) => {
                for (number, item) in items.iter().enumerate() {
                    if let DeValue::Table(table) = item.get_ref() {
                        let own = [own.as_slice(), &[number.to_string()]].concat();
                        list_unknown_keys(form, inner, table, &own, unknown);
                    }
                }
            }
            _ => {}
        }
    }
}

/// Lists the keys without which the example cannot be read, a section before its keys.
fn list_needed_keys<T: DeserializeOwned>(example: &DeTable<'static>) -> Vec<KeyPath> {
    let mut keys = Vec::new();
    list_keys(example, &[], &mut keys);
    keys.retain(|path| {
        let mut without = example.clone();
        remove_value(&mut without, path);
        read_strictly::<T>(&without).is_err()
    });
    keys
}

/// Lists the keys of a table, and those of the tables in it; of a list, those of its first element.
fn list_keys(table: &DeTable<'_>, path: &[String], keys: &mut Vec<KeyPath>) {
    for (key, value) in table {
        let own = [path, &[key.get_ref().to_string()]].concat();
        keys.push(own.clone());
        match value.get_ref() {
            DeValue::Table(table) => list_keys(table, &own, keys),
            DeValue::Array(items) => {
                if let Some(DeValue::Table(table)) = items.first().map(Spanned::get_ref) {
                    list_keys(table, &[own.as_slice(), &["0".to_owned()]].concat(), keys);
                }
            }
            _ => {}
        }
    }
}

/// Lists the tables of a document at the path that a section has in the example; of a list, all elements.
fn list_sections(root: &DeTable<'_>, in_example: &[String], sections: &mut Vec<KeyPath>) {
    let mut paths: Vec<KeyPath> = vec![Vec::new()];
    for piece in in_example {
        let grow = |path: KeyPath| -> Vec<KeyPath> {
            let value = find_value(root, &path).map(Spanned::get_ref);
            let pieces = match value {
                Some(DeValue::Array(items)) => (0..items.len()).map(|n| n.to_string()).collect(),
                _ => vec![piece.clone()],
            };
            pieces
                .into_iter()
                .map(|piece| [path.as_slice(), &[piece]].concat())
                .collect()
        };
        paths = paths.into_iter().flat_map(grow).collect();
    }
    paths.retain(|path| {
        let value = find_value(root, path).map(Spanned::get_ref);
        path.is_empty() || matches!(value, Some(DeValue::Table(_)))
    });
    sections.append(&mut paths);
}

/// Finds the path of the key or value at `span`.
fn find_span(table: &DeTable<'_>, span: &Range<usize>) -> Option<KeyPath> {
    table.iter().find_map(|(key, value)| {
        let rest = if key.span() == *span {
            Some(Vec::new())
        } else {
            find_span_in(value, span)
        };
        rest.map(|rest| [vec![key.get_ref().to_string()], rest].concat())
    })
}

fn find_span_in(value: &Spanned<DeValue<'_>>, span: &Range<usize>) -> Option<KeyPath> {
    if value.span() == *span {
        return Some(Vec::new());
    }
    match value.get_ref() {
        DeValue::Table(table) => find_span(table, span),
        DeValue::Array(items) => items.iter().enumerate().find_map(|(number, item)| {
            find_span_in(item, span).map(|rest| [vec![number.to_string()], rest].concat())
        }),
        _ => None,
    }
}

fn find_value<'t, 'i>(table: &'t DeTable<'i>, path: &[String]) -> Option<&'t Spanned<DeValue<'i>>> {
    let (first, rest) = path.split_first()?;
    let mut value = table.get(first.as_str())?;
    for piece in rest {
        value = match value.get_ref() {
            DeValue::Table(inner) => inner.get(piece.as_str())?,
            DeValue::Array(items) => items.get(piece.parse::<usize>().ok()?)?,
            _ => return None,
        };
    }
    Some(value)
}

/// Finds the table or list that has the last piece of a path, and calls `change` with it and that piece.
fn change_parent<'i>(
    root: &mut DeTable<'i>,
    path: &[String],
    change: impl FnOnce(&mut DeValue<'i>, &str) -> bool,
) -> bool {
    let Some((last, outer)) = path.split_last() else {
        return false;
    };
    let mut whole = DeValue::Table(std::mem::take(root));
    let mut parent = Some(&mut whole);
    for piece in outer {
        parent = parent.and_then(|value| match value {
            DeValue::Table(table) => table.get_mut(piece.as_str()).map(Spanned::get_mut),
            DeValue::Array(items) => {
                let item = items.get_mut(piece.parse::<usize>().ok()?);
                item.map(Spanned::get_mut)
            }
            _ => None,
        });
    }
    let is_changed = parent.is_some_and(|parent| change(parent, last));
    if let DeValue::Table(changed) = whole {
        *root = changed;
    }
    is_changed
}

/// Puts a value at a path, of which all but the last piece is there.
fn put_value<'i>(root: &mut DeTable<'i>, path: &[String], value: Spanned<DeValue<'i>>) -> bool {
    change_parent(root, path, |parent, key| match parent {
        DeValue::Table(table) => {
            let name = Spanned::new(value.span(), key.to_owned().into());
            table.remove(key);
            table.insert(name, value);
            true
        }
        DeValue::Array(items) => {
            let item = key.parse::<usize>().ok();
            let item = item.and_then(|number| items.get_mut(number));
            item.map(|item| *item = value).is_some()
        }
        _ => false,
    })
}

/// Removes a value from its table; a list keeps its elements.
fn remove_value(root: &mut DeTable<'_>, path: &[String]) -> bool {
    change_parent(root, path, |parent, key| match parent {
        DeValue::Table(table) => table.remove(key).is_some(),
        _ => false,
    })
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

    const FORM: SettingsForm = SettingsForm {
        section: "rpc",
        sections: &[
            section("", &["name", "rpc", "replica", "count"]),
            section("rpc", &["listen", "idle", "reserve"]),
            section("replica", &["id", "required"]),
        ],
        example: "name = 'a'\n[rpc]\nlisten = '127.0.0.1:1'\nidle = '1 s'\nreserve = '1 kB'\n\
                  [[replica]]\nid = 'one'\nrequired = true\n",
    };

    const fn section(path: &'static str, keys: &'static [&'static str]) -> Section {
        Section {
            path,
            keys,
            comments: &[],
        }
    }

    fn problems(text: &str) -> Vec<String> {
        let file = Place::File(PathBuf::from("F"), None);
        let found = list_problems::<Example>(&FORM, &file, text, &[]).unwrap();
        found.into_iter().map(|error| error.to_string()).collect()
    }

    const RPC: &str = "[rpc]\nlisten = '127.0.0.1:1'\nidle = '1 s'\nreserve = '1 kB'\n";

    /// Fails if a problem is reported for good settings, or a section of the file is not listed.
    #[test]
    fn good_settings_have_no_problem() {
        assert_eq!(problems(&format!("name = 'a'\n{RPC}")), [""; 0]);
        assert_eq!(
            list_top_names(&format!("name = 'a'\n{RPC}[[x]]\n")),
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
