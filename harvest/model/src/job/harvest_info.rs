//! The facts about a job that stand in every archive file (`warcinfo`) and in harvestInfo.xml.
//!
//! Owns their keys and their order, which are those of NetarchiveSuite's version 0.6, and the XML. Says nothing secret.

use archive_model::ByteSize;

use super::HarvestJob;

/// The version of the keys.
const VERSION: &str = "0.6";

impl HarvestJob {
    /// Returns the keys and values of harvestInfo, in their order. Optional ones are left out if there is nothing to
    /// say. Values are one line each.
    pub fn harvest_info(&self) -> Vec<(&'static str, String)> {
        let limit =
            |limit: Option<u64>| limit.map_or_else(|| "-1".to_owned(), |limit| limit.to_string());
        let harvest = &self.harvest;
        let queues = &self.order.queues;
        let required = |text: &str| Some(one_line(text));
        let optional = |text: &str| Some(one_line(text)).filter(|text| !text.is_empty());
        let facts = [
            ("version", Some(VERSION.to_owned())),
            ("jobId", Some(self.id.to_string())),
            ("channel", required(&self.channel)),
            ("harvestNum", Some(self.harvest_number.to_string())),
            ("origHarvestDefinitionID", Some(self.harvest_id.to_string())),
            (
                "maxBytesPerDomain",
                Some(limit(queues.max_bytes.map(ByteSize::bytes))),
            ),
            ("maxObjectsPerDomain", Some(limit(queues.max_objects))),
            ("templateName", required(&harvest.template)),
            (
                "templateLastUpdateDate",
                optional(&harvest.template_updated),
            ),
            (
                "templateDescription",
                optional(&harvest.template_description),
            ),
            ("origHarvestDefinitionName", required(&harvest.name)),
            ("origHarvestDefinitionComments", optional(&harvest.comments)),
            ("scheduleName", optional(&harvest.schedule)),
            ("harvestFilenamePrefix", Some(self.archive_prefix())),
            (
                "jobSubmitDate",
                Some(self.submitted.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()),
            ),
            ("performer", optional(&harvest.performer)),
            ("operator", optional(&harvest.operator)),
            ("audience", optional(&harvest.audience)),
        ];
        let said = facts
            .into_iter()
            .filter_map(|(key, value)| Some((key, value?)));
        said.collect()
    }

    /// Returns the lines for the body of a `warcinfo` record: names such as `harvestInfo.jobId`, and values.
    pub fn warcinfo_fields(&self) -> Vec<(String, String)> {
        let facts = self.harvest_info().into_iter();
        facts
            .map(|(key, value)| (format!("harvestInfo.{key}"), value))
            .collect()
    }

    /// Returns the file harvestInfo.xml.
    pub fn harvest_info_xml(&self) -> String {
        let mut xml = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<harvestInfo>\n".to_owned();
        for (key, value) in self.harvest_info() {
            let value = escape(&value);
            xml.extend(["  <", key, ">", &value, "</", key, ">\n"]);
        }
        xml.push_str("</harvestInfo>\n");
        xml
    }
}

/// Returns a text in one line: runs of blanks and control characters become one blank.
fn one_line(text: &str) -> String {
    let pieces = text.split(|c: char| c.is_whitespace() || c.is_control());
    let pieces: Vec<&str> = pieces.filter(|piece| !piece.is_empty()).collect();
    pieces.join(" ")
}

/// Returns a text as the content of an XML element (XML 1.0 §2.2, §2.4).
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}
