//! An order as a file that explains itself.
//!
//! Owns the layout: the comment of each section and key above it, and keys that are not set as a comment. Passwords are left
//! out, unless the file is for the job alone.

use toml::{Table, Value};

use super::section::{DocumentedSection, Keys};
use super::sections::{
    DedupSettings, DnsSettings, ExtractionSettings, FileSettings, HttpSettings, LimitSettings,
    NetworkSettings, PolitenessSettings, QuarantineSettings, QueueSettings, RetrySettings,
    RobotsSettings, ScopeSettings,
};
use super::{CrawlOrder, Credential, Overlay};

/// The name of a section, the lines of its comment, and its keys.
type SectionText = (&'static str, &'static [&'static str], Keys);

const SECTIONS: [SectionText; 13] = [
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
const LISTS: [SectionText; 2] = [
    section::<Credential>("credential"),
    section::<Overlay>("overlay"),
];

const fn section<T: DocumentedSection>(name: &'static str) -> SectionText {
    (name, T::ABOUT, T::KEYS)
}

/// An order with a value that TOML has no form for: a number above 2⁶³ − 1, a path that is not UTF-8.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the order as TOML: {0}")]
pub struct PrintError(#[from] toml::ser::Error);

impl CrawlOrder {
    /// Prints the order as a file in which every key is explained. Passwords are left out: an order that has some is not read
    /// back from it, but refused at the line of the first credential.
    ///
    /// # Errors
    ///
    /// [`PrintError`].
    pub fn to_toml(&self) -> Result<String, PrintError> {
        Ok(document(&Table::try_from(self)?))
    }

    /// Prints the order as [`CrawlOrder::to_toml`] does, with the passwords: for a file that nobody but the job reads, and that
    /// is no part of its documentation.
    ///
    /// # Errors
    ///
    /// [`PrintError`].
    pub fn to_toml_with_passwords(&self) -> Result<String, PrintError> {
        Ok(document(&self.to_table_with_passwords()?))
    }

    pub(crate) fn to_table_with_passwords(&self) -> Result<Table, PrintError> {
        let mut table = Table::try_from(self)?;
        let entries = table.get_mut("credential").and_then(Value::as_array_mut);
        for (entry, credential) in entries.into_iter().flatten().zip(&self.credentials) {
            if let Some(entry) = entry.as_table_mut() {
                let password = credential.password.expose().to_owned();
                entry.insert("password".to_owned(), Value::String(password));
            }
        }
        Ok(table)
    }
}

fn document(order: &Table) -> String {
    let mut lines = vec!["# The order of a harvest job.".to_owned()];
    for (name, about, keys) in SECTIONS {
        let values = order.get(name).and_then(Value::as_table);
        open(&mut lines, about, format!("[{name}]"));
        describe(&mut lines, keys, values);
    }
    for (name, about, keys) in LISTS {
        let entries = order.get(name).and_then(Value::as_array);
        for entry in entries.into_iter().flatten() {
            open(&mut lines, about, format!("[[{name}]]"));
            describe(&mut lines, keys, entry.as_table());
        }
        if entries.is_none() {
            open(&mut lines, about, format!("# [[{name}]]"));
            describe(&mut lines, keys, None);
        }
    }
    lines.join("\n") + "\n"
}

fn open(lines: &mut Vec<String>, about: &[&str], header: String) {
    lines.push(String::new());
    lines.extend(about.iter().map(|line| format!("#{line}")));
    lines.push(header);
}

fn describe(lines: &mut Vec<String>, keys: Keys, values: Option<&Table>) {
    for (key, comment) in keys {
        lines.extend(comment.iter().map(|line| format!("#{line}")));
        lines.push(match values.and_then(|values| values.get(*key)) {
            Some(value) => format!("{key} = {value}"),
            None if *key == "password" => "# password = (left out)".to_owned(),
            None => format!("# {key} is not set"),
        });
    }
}
