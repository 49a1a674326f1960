//! The settings as one tree in which every value still knows its place in a source.
//!
//! Values of the file keep their place in its text. Values of an override have a place past the end of the text, one
//! for each override; so the place in an error tells which source to name.

use std::borrow::Cow;
use std::ops::Range;

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer};

use super::{Place, SettingsError};

/// A value that overrides that of the file.
pub(super) struct Override {
    /// The place where the override was given.
    pub(super) place: Place,
    /// The dotted key, in pieces. A number picks an element of a list.
    pub(super) path: Vec<String>,
    /// The value: TOML if it can be read as TOML, else a string.
    pub(super) text: String,
}

/// The file and its overrides, merged.
pub(super) struct Document<'i> {
    pub(super) file: Place,
    pub(super) text: &'i str,
    pub(super) overrides: &'i [Override],
    pub(super) root: DeTable<'i>,
}

impl<'i> Document<'i> {
    /// Reads `text`, then applies the overrides in their order: the last one counts.
    pub(super) fn new(
        file: Place,
        text: &'i str,
        overrides: &'i [Override],
    ) -> Result<Self, SettingsError> {
        let root = match DeTable::parse(text) {
            Ok(root) => root.into_inner(),
            Err(error) => {
                let place = file.at_line(error.span().map(|span| line_number(text, span.start)));
                return Err(SettingsError::Invalid {
                    place,
                    message: error.message().to_owned(),
                });
            }
        };
        let mut tree = Spanned::new(0..0, DeValue::Table(root));
        for (number, over) in overrides.iter().enumerate() {
            let value = value_of(&over.text, &past_end(text, number));
            lay(&mut tree, &over.path, value).map_err(|message| SettingsError::Invalid {
                place: over.place.clone(),
                message,
            })?;
        }
        let DeValue::Table(root) = tree.into_inner() else {
            return Err(SettingsError::Invalid {
                place: file,
                message: "an override has no key".to_owned(),
            });
        };
        Ok(Self {
            file,
            text,
            overrides,
            root,
        })
    }

    /// Returns the typed settings. A key that is not read is an error, whether or not the type refuses it itself.
    pub(super) fn read_document<T: DeserializeOwned>(&self) -> Result<T, SettingsError> {
        let mut ignored = Vec::new();
        let tree = Deserializer::from(Spanned::new(0..0, self.root.clone()));
        let read = serde_ignored::deserialize(tree, |path| ignored.push(unknown_key_read(&path)));
        let settings = read.map_err(|error| self.refuse_document(&error))?;
        match ignored.first() {
            None => Ok(settings),
            Some(key) => Err(self.unknown_key(key)),
        }
    }

    /// Returns the error of a key that no type has read.
    pub(super) fn unknown_key(&self, key: &str) -> SettingsError {
        let found = self.find_key(|path, _| path == key);
        SettingsError::Invalid {
            place: found.map_or_else(|| self.file.clone(), |found| found.1),
            message: format!("unknown key `{key}`"),
        }
    }

    /// Returns the error of a section that lacks a key, in the words that serde has for it.
    pub(super) fn missing_key(&self, section: &str, key: &str) -> SettingsError {
        let missing = format!("missing field `{key}`");
        match self.find_key(|path, _| path == section) {
            None => SettingsError::Invalid {
                place: self.file.clone(),
                message: missing,
            },
            Some((section, place)) => SettingsError::Invalid {
                place,
                message: format!("`{}`: {missing}", self.named(&section)),
            },
        }
    }

    pub(super) fn refuse_document(&self, error: &toml::de::Error) -> SettingsError {
        let span = error.span().unwrap_or_default();
        let found = self.find_key(|_, at| !span.is_empty() && *at == span);
        let unknown = unknown_key(
            error.message(),
            found.as_ref().map(|found| found.0.as_str()),
        );
        match (found, unknown) {
            (Some((_, place)), Some(message)) => SettingsError::Invalid { place, message },
            (Some((key, place)), None) => SettingsError::Invalid {
                place,
                message: format!("`{}`: {}", self.named(&key), error.message()),
            },
            (None, unknown) => {
                let message = unknown.unwrap_or_else(|| error.message().to_owned());
                SettingsError::Invalid {
                    place: self.place(&span),
                    message,
                }
            }
        }
    }

    /// Returns the path and the place of the first key or value for which `wanted` holds, given its path and its span.
    pub(super) fn find_key(
        &self,
        wanted: impl Fn(&str, &Range<usize>) -> bool,
    ) -> Option<(String, Place)> {
        let (path, span) = find_in(&self.root, "", &wanted)?;
        Some((path, self.place(&span)))
    }

    /// Returns a path in the form that people know: an element of a list by its `id`, where it has one, and else by its
    /// number.
    fn named(&self, path: &str) -> String {
        let mut said: Vec<String> = Vec::new();
        let mut item = self.root_item(path.split('.').next().unwrap_or_default());
        for (depth, piece) in path.split('.').enumerate() {
            if depth == 0 {
                said.push(piece.to_owned());
                continue;
            }
            let list = matches!(item, Some(DeValue::Array(_)));
            item = item.and_then(|item| element(item, piece));
            match (
                item.and_then(|item| self.id(item)).filter(|_| list),
                said.last_mut(),
            ) {
                (Some(id), Some(list)) => *list = format!("{list} {id:?}"),
                _ => said.push(piece.to_owned()),
            }
        }
        said.join(".")
    }

    /// Returns the `id` of an element of a list, where the file has it.
    fn id<'v>(&self, item: &'v DeValue<'_>) -> Option<&'v str> {
        let DeValue::Table(table) = item else {
            return None;
        };
        let (_, value) = table.iter().find(|(key, _)| key.get_ref() == "id")?;
        let is_said = value.span().end <= self.text.len();
        match value.get_ref() {
            DeValue::String(id) if is_said => Some(id),
            _ => None,
        }
    }

    fn root_item(&self, key: &str) -> Option<&DeValue<'_>> {
        let mut items = self.root.iter();
        let found = items.find(|(own, _)| own.get_ref() == key)?;
        Some(found.1.get_ref())
    }

    fn place(&self, span: &Range<usize>) -> Place {
        let number = span.start.checked_sub(self.text.len() + 1);
        match number.and_then(|number| self.overrides.get(number)) {
            Some(over) => over.place.clone(),
            None if span.is_empty() => self.file.clone(),
            None => self.file.at_line(Some(line_number(self.text, span.start))),
        }
    }
}

/// Finds the value at one piece of a path.
fn element<'v, 'i>(item: &'v DeValue<'i>, piece: &str) -> Option<&'v DeValue<'i>> {
    match item {
        DeValue::Table(table) => {
            let found = table.iter().find(|(key, _)| key.get_ref() == piece)?;
            Some(found.1.get_ref())
        }
        DeValue::Array(array) => {
            let index: usize = piece.parse().ok()?;
            array.get(index).map(Spanned::get_ref)
        }
        _ => None,
    }
}

/// Returns the span of override `number`: past the text, so that no value of the file has it.
pub(super) fn past_end(text: &str, number: usize) -> Range<usize> {
    let start = text.len() + 1 + number;
    start..start + 1
}

pub(super) fn line_number(text: &str, at: usize) -> usize {
    1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count()
}

pub(super) fn value_of<'i>(text: &'i str, span: &Range<usize>) -> Spanned<DeValue<'i>> {
    match DeValue::parse(text) {
        Ok(value) => restamp_value(value.into_inner(), span),
        Err(_) => Spanned::new(span.clone(), DeValue::String(Cow::Borrowed(text))),
    }
}

/// Gives a value, and all in it, the place `span`.
pub(super) fn restamp_value<'i>(value: DeValue<'i>, span: &Range<usize>) -> Spanned<DeValue<'i>> {
    let value = match value {
        DeValue::Array(array) => DeValue::Array(
            array
                .into_iter()
                .map(|item| restamp_value(item.into_inner(), span))
                .collect(),
        ),
        DeValue::Table(table) => DeValue::Table(
            table
                .into_iter()
                .map(|(key, item)| {
                    (
                        Spanned::new(span.clone(), key.into_inner()),
                        restamp_value(item.into_inner(), span),
                    )
                })
                .collect(),
        ),
        leaf => leaf,
    };
    Spanned::new(span.clone(), value)
}

/// Puts `value` at `path` under `target`, and makes missing sections.
fn lay<'i>(
    target: &mut Spanned<DeValue<'i>>,
    path: &'i [String],
    value: Spanned<DeValue<'i>>,
) -> Result<(), String> {
    let Some((key, rest)) = path.split_first() else {
        *target = value;
        return Ok(());
    };
    // A section on the way gets a longer span, so that an error can be told from one of a value in it.
    let here = value.span().start..value.span().end + rest.len();
    let next = match target.get_mut() {
        DeValue::Table(table) => table
            .entry(Spanned::new(here.clone(), Cow::Borrowed(key.as_str())))
            .or_insert_with(|| Spanned::new(here, DeValue::Table(DeTable::new()))),
        DeValue::Array(array) => {
            let length = array.len();
            let item = key
                .parse::<usize>()
                .ok()
                .and_then(|index| array.get_mut(index));
            item.ok_or_else(|| {
                format!("`{key}` picks nothing from a list of {length}; the first element is 0")
            })?
        }
        _ => return Err(format!("no `{key}` can be set below a single value")),
    };
    lay(next, rest, value)
}

fn find_in(
    table: &DeTable<'_>,
    above: &str,
    wanted: &impl Fn(&str, &Range<usize>) -> bool,
) -> Option<(String, Range<usize>)> {
    table.iter().find_map(|(key, value)| {
        let path = format!("{above}{}", key.get_ref());
        if wanted(&path, &key.span()) {
            Some((path, key.span()))
        } else {
            find_at(value, path, wanted)
        }
    })
}

fn find_at(
    value: &Spanned<DeValue<'_>>,
    path: String,
    wanted: &impl Fn(&str, &Range<usize>) -> bool,
) -> Option<(String, Range<usize>)> {
    if wanted(&path, &value.span()) {
        return Some((path, value.span()));
    }
    match value.get_ref() {
        DeValue::Table(table) => find_in(table, &format!("{path}."), wanted),
        DeValue::Array(array) => array
            .iter()
            .enumerate()
            .find_map(|(index, item)| find_at(item, format!("{path}.{index}"), wanted)),
        _ => None,
    }
}

/// Returns the dotted key of what a type has not read. `serde_ignored` has a piece for each `Option` on the way.
pub(super) fn unknown_key_read(path: &serde_ignored::Path<'_>) -> String {
    let path = path.to_string();
    let pieces: Vec<&str> = path.split('.').filter(|piece| *piece != "?").collect();
    pieces.join(".")
}

/// Returns serde's sentence about an unknown field, shorter, with the nearest known key.
fn unknown_key(message: &str, path: Option<&str>) -> Option<String> {
    let mut quoted = message
        .strip_prefix("unknown field ")?
        .split('`')
        .skip(1)
        .step_by(2);
    let unknown = quoted.next()?;
    let known: Vec<&str> = quoted.collect();
    Some(explain_unknown_key(path.unwrap_or(unknown), &known))
}

/// Returns a sentence about a key that its section does not have, with the nearest of those that it has.
pub(super) fn explain_unknown_key(path: &str, known: &[&str]) -> String {
    let unknown = path.rsplit('.').next().unwrap_or(path);
    let nearest = known
        .iter()
        .min_by_key(|key| strsim::damerau_levenshtein(unknown, key));
    let near = nearest.filter(|key| strsim::damerau_levenshtein(unknown, key) <= 1 + key.len() / 3);
    let hint = match near {
        Some(key) => format!("did you mean `{key}`?"),
        None if known.is_empty() => "there are no keys here".to_owned(),
        None => format!("the keys here are {}", known.join(", ")),
    };
    format!("unknown key `{path}`; {hint}")
}
