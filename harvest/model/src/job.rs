//! A harvest job: what is to be harvested, for which harvest, and by which order.
//!
//! Owns the identity of a job and the names that follow from it. The command line makes the same job that a scheduler
//! sends.

mod harvest_info;

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use toml::Value;
use url::Url;

use crate::order::PrintOrderError;
use crate::text;
use crate::{CrawlOrder, InvalidOrder};

/// A harvest job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HarvestJob {
    /// The number of the job, which no other job of the institution has.
    pub id: u64,
    /// The number of the harvest definition that the job belongs to.
    pub harvest_id: u64,
    /// The number of the run of that harvest that the job belongs to, from 0.
    #[serde(default)]
    pub harvest_number: u32,
    /// The collection that the archive files of the job are named after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collection: Option<Collection>,
    /// The kind of harvester that the job is for.
    #[serde(default = "default_channel")]
    pub channel: String,
    /// The time at which the job was submitted.
    pub submitted: Timestamp,
    /// The words of people about the harvest.
    #[serde(default)]
    pub harvest: HarvestDescription,
    /// The URIs that the job begins with, each once.
    pub seeds: Vec<Url>,
    /// The order by which the job is harvested.
    #[serde(default)]
    pub order: CrawlOrder,
}

/// Returns the channel of selective harvests, as NetarchiveSuite names it.
fn default_channel() -> String {
    "FOCUSED".to_owned()
}

/// The words of people about a harvest, for the documentation of its jobs. Empty ones are left out there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HarvestDescription {
    /// The name of the harvest definition.
    pub name: String,
    /// The comments on the harvest definition.
    pub comments: String,
    /// The name of the schedule.
    pub schedule: String,
    /// The name of the template of the order.
    pub template: String,
    /// The time at which the template was changed last, as text.
    pub template_updated: String,
    /// The description of the template.
    pub template_description: String,
    /// The institution that performs the harvest.
    pub performer: String,
    /// The institution or person that operates the crawler.
    pub operator: String,
    /// The readers that the harvest is meant for.
    pub audience: String,
}

impl HarvestJob {
    /// Makes a job of the FOCUSED channel: without seeds, a collection and a description, by an order of defaults.
    pub fn new(id: u64, harvest_id: u64, submitted: Timestamp) -> Self {
        Self {
            id,
            harvest_id,
            harvest_number: 0,
            collection: None,
            channel: default_channel(),
            submitted,
            harvest: HarvestDescription::default(),
            seeds: Vec::new(),
            order: CrawlOrder::default(),
        }
    }

    /// Replaces the seeds.
    #[must_use]
    pub fn with_seeds(mut self, seeds: Vec<Url>) -> Self {
        self.seeds = seeds;
        self
    }

    /// Replaces the order.
    #[must_use]
    pub fn with_order(mut self, order: CrawlOrder) -> Self {
        self.order = order;
        self
    }

    /// Reads a job from the file that [`HarvestJob::to_toml`] prints.
    ///
    /// # Errors
    ///
    /// [`InvalidOrder`] names the line and the key of the first mistake. Mistakes that [`CrawlOrder::check`] finds are
    /// named by their key.
    pub fn parse(text: &str) -> Result<Self, InvalidOrder> {
        let job: Self =
            toml::from_str(text).map_err(|error| InvalidOrder::from_toml(&error, text))?;
        job.order.check()?;
        Ok(job)
    }

    /// Prints the job with the passwords of its order: for a file that nobody but the job reads, and that is no part of
    /// its documentation.
    ///
    /// # Errors
    ///
    /// [`PrintOrderError`].
    pub fn to_toml(&self) -> Result<String, PrintOrderError> {
        let mut table = toml::Table::try_from(self)?;
        let order = self.order.to_table_with_passwords()?;
        table.insert("order".to_owned(), Value::Table(order));
        Ok(toml::to_string(&table)?)
    }

    /// Returns the beginning of the names of its archive files: `<collection>-<job>-<harvest>`, or `<job>-<harvest>`
    /// without a collection.
    ///
    /// ```
    /// use harvest_model::HarvestJob;
    ///
    /// let mut job = HarvestJob::new(7, 3, "2026-01-02T03:04:05Z".parse()?);
    /// assert_eq!(job.archive_prefix(), "7-3");
    /// job.collection = Some("national".parse()?);
    /// assert_eq!(job.archive_prefix(), "national-7-3");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn archive_prefix(&self) -> String {
        match &self.collection {
            Some(collection) => format!("{collection}-{}-{}", self.id, self.harvest_id),
            None => format!("{}-{}", self.id, self.harvest_id),
        }
    }
}

/// The name of a collection: it begins the names of archive files.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Collection(String);

/// A text that no collection may be called.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no name of a collection; take up to {LONGEST} letters (a-z, A-Z), digits, `_` and `.`, and a letter or digit \
     first"
)]
pub struct InvalidCollection(String);

/// The longest name of a collection, so that the names of archive files stay short enough.
const LONGEST: usize = 60;

impl FromStr for Collection {
    type Err = InvalidCollection;

    /// Reads a name. A `-` is refused, because it separates the parts of the name of an archive file.
    fn from_str(text: &str) -> Result<Self, InvalidCollection> {
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
        let is_valid = text.len() <= LONGEST
            && text.starts_with(|c: char| c.is_ascii_alphanumeric())
            && text.chars().all(is_part);
        if is_valid {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidCollection(text.to_owned()))
        }
    }
}

impl fmt::Display for Collection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for Collection {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        text::one::serialize(self, serializer)
    }
}

impl<'de> Deserialize<'de> for Collection {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        text::one::deserialize(deserializer)
    }
}

#[cfg(test)]
mod tests;
