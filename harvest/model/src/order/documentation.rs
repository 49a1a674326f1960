//! An order as a file that explains itself.
//!
//! Owns the layout: the comment of each section and key above it, and keys that are not set as a comment. Passwords are
//! left out, unless the file is for the job alone.

use documented::{Documented, DocumentedFields};
use toml::{Table, Value};

use super::sections::{
    DedupSettings, DnsSettings, ExtractionSettings, FileSettings, HttpSettings, LimitSettings,
    NetworkSettings, PolitenessSettings, QuarantineSettings, QueueSettings, RetrySettings,
    RobotsSettings, ScopeSettings,
};
use super::{CrawlOrder, Credential, Overlay};

/// A section: its comment, and its keys in the order in which they are declared, each with its comment.
struct Section {
    name: &'static str,
    about: &'static str,
    keys: &'static [&'static str],
    comments: &'static [&'static str],
}

const SECTIONS: [Section; 13] = [
    section::<ScopeSettings>("scope"),
    section::<PolitenessSettings>("politeness"),
    section::<RobotsSettings>("robots"),
    section::<QueueSettings>("queues"),
    section::<LimitSettings>("limits"),
    section::<RetrySettings>("retry"),
    section::<HttpSettings>("http"),
    section::<ExtractionSettings>("extraction"),
    section::<QuarantineSettings>("quarantine"),
    section::<FileSettings>("files"),
    section::<DedupSettings>("dedup"),
    section::<NetworkSettings>("networks"),
    section::<DnsSettings>("dns"),
];

/// Sections that may stand several times, or not at all.
const LISTS: [Section; 2] = [
    section::<Credential>("credential"),
    section::<Overlay>("overlay"),
];

const fn section<T: Documented + DocumentedFields>(name: &'static str) -> Section {
    Section {
        name,
        about: T::DOCS,
        keys: T::FIELD_NAMES,
        comments: T::FIELD_DOCS,
    }
}

/// An order with a value that TOML has no form for: a number above 2⁶³ − 1, a path that is not UTF-8.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the order as TOML: {0}")]
pub struct PrintOrderError(#[from] toml::ser::Error);

impl CrawlOrder {
    /// Prints the order as a file in which every key is explained. Passwords are left out: an order that has some is
    /// not read back from it, but refused at the line of the first credential.
    ///
    /// # Errors
    ///
    /// [`PrintOrderError`].
    pub fn to_toml(&self) -> Result<String, PrintOrderError> {
        Ok(document(&Table::try_from(self)?))
    }

    /// Prints the order as [`CrawlOrder::to_toml`] does, with the passwords: for a file that nobody but the job reads,
    /// and that is no part of its documentation.
    ///
    /// # Errors
    ///
    /// [`PrintOrderError`].
    pub fn to_toml_with_passwords(&self) -> Result<String, PrintOrderError> {
        Ok(document(&self.to_table_with_passwords()?))
    }

    pub(crate) fn to_table_with_passwords(&self) -> Result<Table, PrintOrderError> {
        let mut table = Table::try_from(self)?;
        let entries = table.get_mut("credential").and_then(Value::as_array_mut);
        for (entry, credential) in entries.into_iter().flatten().zip(&self.credentials) {
            if let Some(entry) = entry.as_table_mut() {
                let password = credential.password.expose_text().to_owned();
                entry.insert("password".to_owned(), Value::String(password));
            }
        }
        Ok(table)
    }
}

fn document(order: &Table) -> String {
    let mut lines = vec!["# The order of a harvest job.".to_owned()];
    for section in SECTIONS {
        let values = order.get(section.name).and_then(Value::as_table);
        lines.extend(section.opened(&format!("[{}]", section.name)));
        lines.extend(section.described(values));
    }
    for section in LISTS {
        let header = format!("[[{}]]", section.name);
        let entries = order.get(section.name).and_then(Value::as_array);
        for entry in entries.into_iter().flatten() {
            lines.extend(section.opened(&header));
            lines.extend(section.described(entry.as_table()));
        }
        if entries.is_none() {
            lines.extend(section.opened(&format!("# {header}")));
            lines.extend(section.described(None));
        }
    }
    lines.join("\n") + "\n"
}

impl Section {
    /// Returns the lines that open the section: an empty one, its comment, its header.
    fn opened(&self, header: &str) -> Vec<String> {
        let mut lines = vec![String::new()];
        lines.extend(as_comment(self.about));
        lines.push(header.to_owned());
        lines
    }

    /// Returns the lines of the keys, each below its comment.
    fn described(&self, values: Option<&Table>) -> Vec<String> {
        let mut lines = Vec::new();
        for (key, comment) in self.keys.iter().zip(self.comments) {
            lines.extend(as_comment(comment));
            lines.push(match values.and_then(|values| values.get(*key)) {
                Some(value) => format!("{key} = {value}"),
                None if *key == "password" => "# password = (left out)".to_owned(),
                None => format!("# {key} is not set"),
            });
        }
        lines
    }
}

fn as_comment(text: &str) -> impl Iterator<Item = String> {
    text.lines().map(|line| format!("# {line}"))
}
