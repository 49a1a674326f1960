//! The URIs and media types of the records of a metadata file (NetarchiveSuite).
//!
//! Owns the spelling: paths, and parameters in their order. Names are percent-encoded (RFC 3986 §2.1), so that one with
//! `&` or `#` in it adds nothing to a URI.

use std::fmt::Write as _;

use super::CRAWLER_VERSION;

/// The part of a URI that says which files it is about. In the order of the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MetadataSection {
    /// `crawl/setup`: the order of the job, its seeds, `harvestInfo.xml`.
    Setup,
    /// `crawl/reports`: the reports at the end of the crawl.
    Reports,
    /// `crawl/logs`: the logs.
    Logs,
}

impl MetadataSection {
    /// Returns the section of a file of the crawl: `*-report.txt`, then `*.log` and `*.out`, then `*.xml`, `*.cxml` and
    /// `*.txt`. `None` for other files, which are not documented.
    pub fn from_file_name(name: &str) -> Option<Self> {
        if name.ends_with("-report.txt") {
            return Some(Self::Reports);
        }
        match extension(name)? {
            "log" | "out" => Some(Self::Logs),
            "xml" | "cxml" | "txt" => Some(Self::Setup),
            _ => None,
        }
    }

    /// Returns the media type of a file: `text/xml` of a setup file that ends with `.xml`, and `text/plain` of all
    /// others.
    pub fn media_type(self, name: &str) -> &'static str {
        match self {
            Self::Setup if extension(name) == Some("xml") => "text/xml",
            Self::Setup | Self::Reports | Self::Logs => "text/plain",
        }
    }

    fn path(self) -> &'static str {
        match self {
            Self::Setup => "setup",
            Self::Reports => "reports",
            Self::Logs => "logs",
        }
    }
}

/// The job that is documented, as URIs name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobIdentity {
    /// The organisation that harvests: `netarkivet.dk`.
    pub organization: String,
    /// The number of the harvest definition.
    pub harvest_id: u64,
    /// The number of the run of that definition, counted from 0.
    pub harvest_number: u64,
    /// The number of the job.
    pub job_id: u64,
}

impl JobIdentity {
    /// Returns the URI of the record that names the aliases which were left out.
    pub fn aliases_uri(&self) -> String {
        self.before_harvest("aliases")
    }

    /// Returns the URI of the record that names the jobs which the crawl was deduplicated against.
    pub fn duplicate_reduction_jobs_uri(&self) -> String {
        self.before_harvest("duplicatereductionjobs")
    }

    /// Returns the URI of the record of a file of the crawl.
    pub fn document_uri(&self, section: MetadataSection, name: &str) -> String {
        let harvest = self.harvest_id;
        let job = self.job_id;
        let version = percent_encode(CRAWLER_VERSION);
        let path = format!("{}/{}", section.path(), percent_encode(name));
        let query = format!("heritrixVersion={version}&harvestid={harvest}&jobid={job}");
        self.uri(&path, &query)
    }

    /// Returns the URI of the record with the CDX lines of an archive file.
    pub fn cdx_uri(&self, file: &str) -> String {
        self.index("cdx", 2, file)
    }

    /// Returns the URI of the record with the captures of an archive file.
    pub fn captures_uri(&self, file: &str) -> String {
        self.index("captures", 1, file)
    }

    fn before_harvest(&self, name: &str) -> String {
        let harvest = self.harvest_id;
        let number = self.harvest_number;
        let job = self.job_id;
        let query = format!(
            "majorversion=1&minorversion=0&harvestid={harvest}&harvestnum={number}&jobid={job}"
        );
        self.uri(&format!("setup/{name}"), &query)
    }

    fn index(&self, name: &str, major: u8, file: &str) -> String {
        let harvest = self.harvest_id;
        let job = self.job_id;
        let file = percent_encode(file);
        let query = format!(
            "majorversion={major}&minorversion=0&harvestid={harvest}&jobid={job}&filename={file}"
        );
        self.uri(&format!("index/{name}"), &query)
    }

    fn uri(&self, path: &str, query: &str) -> String {
        format!(
            "metadata://{}/crawl/{path}?{query}",
            percent_encode(&self.organization)
        )
    }
}

/// Returns the letters behind the last dot of a name.
fn extension(name: &str) -> Option<&str> {
    name.rsplit_once('.').map(|(_, extension)| extension)
}

/// Returns a name as a part of a URI: everything but the unreserved characters (RFC 3986 §2.3) is encoded.
fn percent_encode(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ok = write!(out, "%{byte:02X}").is_ok();
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a URI differs from the one by which NetarchiveSuite's readers look for the record.
    #[test]
    fn uris_are_those_of_netarchivesuite() {
        let job = JobIdentity {
            organization: "netarkivet.dk".to_owned(),
            harvest_id: 3,
            harvest_number: 0,
            job_id: 4,
        };
        let version = format!("heritrixVersion={CRAWLER_VERSION}&harvestid=3&jobid=4");
        for (uri, expected) in [
            (
                job.aliases_uri(),
                "setup/aliases?majorversion=1&minorversion=0&harvestid=3&harvestnum=0&jobid=4".to_owned(),
            ),
            (
                job.duplicate_reduction_jobs_uri(),
                "setup/duplicatereductionjobs?majorversion=1&minorversion=0&harvestid=3&harvestnum=0&jobid=4"
                    .to_owned(),
            ),
            (
                job.document_uri(MetadataSection::Setup, "crawler-beans.cxml"),
                format!("setup/crawler-beans.cxml?{version}"),
            ),
            (
                job.document_uri(MetadataSection::Logs, "a&b#c d?.log"),
                format!("logs/a%26b%23c%20d%3F.log?{version}"),
            ),
            (
                job.cdx_uri("4-3-20210705152039378-00000-h.warc.gz"),
                "index/cdx?majorversion=2&minorversion=0&harvestid=3&jobid=4\
                 &filename=4-3-20210705152039378-00000-h.warc.gz"
                    .to_owned(),
            ),
            (
                job.captures_uri("\u{e6}.warc"),
                "index/captures?majorversion=1&minorversion=0&harvestid=3&jobid=4&filename=%C3%A6.warc".to_owned(),
            ),
        ] {
            assert_eq!(uri, format!("metadata://netarkivet.dk/crawl/{expected}"));
        }
    }

    /// Fails if a report is taken for setup, a log is not documented, or another file is.
    #[test]
    fn sections_follow_from_file_names() {
        for (name, expected) in [
            (
                "crawl-report.txt",
                Some((MetadataSection::Reports, "text/plain")),
            ),
            ("crawl.log", Some((MetadataSection::Logs, "text/plain"))),
            ("heritrix.out", Some((MetadataSection::Logs, "text/plain"))),
            (
                "harvestInfo.xml",
                Some((MetadataSection::Setup, "text/xml")),
            ),
            (
                "crawler-beans.cxml",
                Some((MetadataSection::Setup, "text/plain")),
            ),
            ("seeds.txt", Some((MetadataSection::Setup, "text/plain"))),
            ("frontier.recover.gz", None),
            ("credentials", None),
        ] {
            let section = MetadataSection::from_file_name(name);
            let found = section.map(|section| (section, section.media_type(name)));
            assert_eq!(found, expected, "{name}");
        }
    }
}
