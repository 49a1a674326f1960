//! JSON as a form: the names of members, numbered where they are repeated, and the values as Python prints them.

use std::collections::{HashMap, HashSet};

use crate::json::Json;

/// Returns the form of a JSON document, or of one in each line; `None` if the body is not JSON.
pub(super) fn flatten_json(body: &[u8]) -> Option<String> {
    let text = str::from_utf8(body).ok()?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let documents = match serde_json::from_str::<Json>(text) {
        Ok(document) => vec![document],
        Err(_) => text
            .split('\n')
            .map(|line| serde_json::from_str(line).ok())
            .collect::<Option<Vec<Json>>>()?,
    };
    let mut form = Form::default();
    for document in &documents {
        form.add("", document);
    }
    Some(super::encode(
        form.fields
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_bytes())),
    ))
}

#[derive(Default)]
struct Form {
    fields: Vec<(String, String)>,
    names: HashSet<String>,
    repeated: HashMap<String, usize>,
}

impl Form {
    /// Adds a value. Members have their own names, however deep; items have the name of their list. Values without a
    /// name are left out.
    fn add(&mut self, name: &str, value: &Json) {
        let text = match value {
            Json::Object(members) => {
                // The last of the members with one name counts, at the place of the first.
                let last: HashMap<&str, &Json> = members
                    .iter()
                    .map(|(name, value)| (name.as_str(), value))
                    .collect();
                let mut seen = HashSet::new();
                for (name, _) in members {
                    if seen.insert(name.as_str())
                        && let Some(value) = last.get(name.as_str())
                    {
                        self.add(name, value);
                    }
                }
                return;
            }
            Json::Array(items) => {
                for item in items {
                    self.add(name, item);
                }
                return;
            }
            Json::Null => "None".to_owned(),
            Json::Bool(true) => "True".to_owned(),
            Json::Bool(false) => "False".to_owned(),
            Json::Unsigned(number) => number.to_string(),
            Json::Signed(number) => number.to_string(),
            Json::Float(number) => float(*number),
            Json::Text(text) => text.clone(),
        };
        if name.is_empty() {
            return;
        }
        let name = self.free(name);
        self.names.insert(name.clone());
        self.fields.push((name, text));
    }

    fn free(&mut self, name: &str) -> String {
        if !self.names.contains(name) {
            return name.to_owned();
        }
        let count = self.repeated.entry(name.to_owned()).or_insert(1);
        *count += 1;
        format!("{name}.{count}_")
    }
}

/// Writes the shortest digits that read back, with an exponent below 1e-4 and from 1e16 on, as Python does.
fn float(number: f64) -> String {
    let scientific = format!("{number:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else {
        return scientific;
    };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&exponent) {
        let plain = number.to_string();
        return if plain.contains('.') {
            plain
        } else {
            format!("{plain}.0")
        };
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
}
