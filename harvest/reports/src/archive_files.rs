//! `archivefiles-report.txt`: the archive files that a crawl has closed (NetarchiveSuite).
//!
//! Owns the text. Does not look at files.

use archive_formats::crawl_log::escape_blanks;
use jiff::Timestamp;

use crate::text::ReportText;

/// The name of the report.
pub const FILE_NAME: &str = "archivefiles-report.txt";

/// An archive file of a crawl.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchiveFileReport {
    /// The name of the file, without folders.
    pub name: String,
    /// The time at which the file was closed, written to the millisecond.
    pub closed: Timestamp,
    /// The size of the file in bytes.
    pub size: u64,
}

/// Writes a line for each file, in the order in which they are given.
pub fn archive_files_report<'a>(files: impl IntoIterator<Item = &'a ArchiveFileReport>) -> String {
    let mut text = ReportText::with_header("[ARCHIVEFILE] [Closed] [Size]");
    for file in files {
        let name = escape_blanks(&file.name);
        text.push_line(format_args!("{name} {:.3} {}", file.closed, file.size));
    }
    text.into_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a column or the header is not the one of NetarchiveSuite.
    #[test]
    fn files_are_listed_as_netarchivesuite_does() {
        let files = [
            ArchiveFileReport {
                name: "7-1-20210705152039378-00000-h.warc.gz".to_owned(),
                closed: "2021-07-05T16:00:00Z".parse().unwrap(),
                size: 1_000_000_123,
            },
            ArchiveFileReport {
                name: "a b\n.warc".to_owned(),
                closed: "2021-07-05T16:00:00.1239Z".parse().unwrap(),
                size: 0,
            },
        ];
        assert_eq!(
            archive_files_report(&files),
            "[ARCHIVEFILE] [Closed] [Size]\n\
             7-1-20210705152039378-00000-h.warc.gz 2021-07-05T16:00:00.000Z 1000000123\n\
             a%20b%0A.warc 2021-07-05T16:00:00.123Z 0\n"
        );
    }
}
