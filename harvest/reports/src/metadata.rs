//! The metadata file of a job: its setup, reports, logs and indexes as the records of one WARC file (NetarchiveSuite).
//!
//! Owns the order of the records, their URIs, their fields and media types. Every record is a gzip member of a WARC 1.1
//! file. Record ids and times are arguments. The contents are those that the caller gives, unchanged: passwords must
//! not be in them.
//!
//! The parameter `heritrixVersion` of setup, report and log records keeps the name that readers of such files look for.
//! Its value here is [`CRAWLER_VERSION`], which no version of Heritrix looks like.
//!
//! Beside NetarchiveSuite's CDX record there is one record more for each archive file, `crawl/index/captures`, with the
//! captures as CDXJ lines ([`crate::index`]). CDXJ has no registered media type; `application/x-cdxj` goes with
//! NetarchiveSuite's `application/x-cdx`.

use std::io::{self, Read, Seek, Write};
use std::net::IpAddr;

use archive_formats::crawl_log::escape_blanks;
use archive_formats::date::{Precision, WarcDate};
use archive_formats::digest::{Algorithm, Hashers};
use archive_formats::warc::{Builder, HeaderBuildError, WarcType, WarcWriter, WriteError};
use jiff::Timestamp;
use thiserror::Error;

use crate::index::ArchiveIndex;
use crate::warcinfo::{self, Warcinfo};

mod uri;

pub use uri::{JobIdentity, MetadataSection};

/// The value of `heritrixVersion`: the name and version of this crawler.
pub const CRAWLER_VERSION: &str = concat!("holdfast-", env!("CARGO_PKG_VERSION"));

/// The level at which records are deflated: zlib's own default.
const LEVEL: u32 = 6;

/// A domain that is left out because it is another name of a domain that is harvested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DomainAlias {
    /// The domain that is left out.
    pub alias: String,
    /// The domain that is harvested instead.
    pub father: String,
}

/// The reason why a metadata file cannot be written. The file is of no use then.
#[derive(Debug, Error)]
pub enum MetadataError {
    /// A field of a header cannot be written.
    #[error("cannot write the header of the record {uri} of the metadata file: {source}")]
    Header {
        /// The URI of the record.
        uri: String,
        /// The field and what is wrong with it.
        source: HeaderBuildError,
    },
    /// The content of a record cannot be read.
    #[error("cannot read the content of {uri}: {source}")]
    Content {
        /// The URI of the record.
        uri: String,
        /// The error of the content.
        source: io::Error,
    },
    /// The file cannot be written, or a content changed its length meanwhile.
    #[error("cannot write the record {uri} of the metadata file: {source}")]
    Write {
        /// The URI of the record.
        uri: String,
        /// The error of the writer.
        source: WriteError,
    },
    /// A record was given after one that it belongs before.
    #[error(
        "the record {uri} belongs before one that is in the metadata file; write the records in their order"
    )]
    Order {
        /// The URI of the record.
        uri: String,
    },
}

/// The id and the time of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordStamp {
    /// The id, a URI such as `urn:uuid:…`, without brackets.
    pub id: String,
    /// The time, written to the second.
    pub time: Timestamp,
}

/// The content of a record. It is read twice: for its digest, and to be written.
pub trait RecordContent: Read + Seek {}

impl<T: Read + Seek> RecordContent for T {}

/// A file of the crawl.
pub struct MetadataDocument<'a> {
    /// The section that the file belongs to.
    pub section: MetadataSection,
    /// The name of the file, without folders.
    pub name: String,
    /// The bytes of the file, from the first one.
    pub content: Box<dyn RecordContent + 'a>,
}

impl std::fmt::Debug for MetadataDocument<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut debug = f.debug_struct("MetadataDocument");
        let debug = debug.field("section", &self.section);
        debug.field("name", &self.name).finish_non_exhaustive()
    }
}

/// The parts of a metadata file, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum MetadataPart {
    Aliases,
    DuplicateReductionJobs,
    Documents,
    Indexes,
}

/// A metadata file that is written. `stamps` gives each record its id and time.
#[derive(Debug)]
pub struct MetadataFile<W, S> {
    writer: WarcWriter<W>,
    stamps: S,
    job: JobIdentity,
    address: IpAddr,
    warcinfo_id: String,
    reached: MetadataPart,
}

/// The facts that the `warcinfo` record of a metadata file is made of, and the URIs of the others.
#[derive(Clone, Copy, Debug)]
pub struct MetadataHead<'a> {
    /// The name of the file.
    pub name: &'a str,
    /// The job that is documented.
    pub job: &'a JobIdentity,
    /// The address of this machine.
    pub address: IpAddr,
    /// The block of the record.
    pub warcinfo: &'a Warcinfo,
}

impl<W: Write, S: FnMut() -> RecordStamp> MetadataFile<W, S> {
    /// Begins a file: writes its `warcinfo` record.
    ///
    /// # Errors
    ///
    /// [`MetadataError::Header`] if `name` has control characters, [`MetadataError::Write`] if the file cannot be
    /// written.
    pub fn begin_file(
        output: W,
        head: MetadataHead<'_>,
        mut stamps: S,
    ) -> Result<Self, MetadataError> {
        let MetadataHead {
            name,
            job,
            address,
            warcinfo,
        } = head;
        let stamp = stamps();
        let mut file = Self {
            writer: WarcWriter::gzip_writer(output, LEVEL),
            stamps,
            job: job.clone(),
            address,
            warcinfo_id: stamp.id.clone(),
            reached: MetadataPart::Aliases,
        };
        let builder = builder(WarcType::Warcinfo, &stamp)
            .with_field("WARC-Filename", name)
            .content_type(warcinfo::CONTENT_TYPE);
        let block = warcinfo.render_block();
        file.write(name, builder, &mut io::Cursor::new(block.as_bytes()))?;
        Ok(file)
    }

    /// Writes which domains were left out because they are aliases. Without any, writes no record.
    ///
    /// # Errors
    ///
    /// [`MetadataError::Order`] if it comes late, [`MetadataError::Write`] if the file cannot be written.
    pub fn write_aliases(&mut self, aliases: &[DomainAlias]) -> Result<(), MetadataError> {
        if aliases.is_empty() {
            return Ok(());
        }
        let lines = aliases.iter();
        let lines = lines.map(|DomainAlias { alias, father }| {
            format!(
                "{} is an alias for {}\n",
                escape_blanks(alias),
                escape_blanks(father)
            )
        });
        let text = lines.collect::<String>();
        let uri = self.job.aliases_uri();
        self.text(MetadataPart::Aliases, &uri, &text)
    }

    /// Writes which jobs the crawl was deduplicated against, also if there are no such jobs.
    ///
    /// # Errors
    ///
    /// [`MetadataError::Order`] if it comes late, [`MetadataError::Write`] if the file cannot be written.
    pub fn duplicate_reduction_jobs(&mut self, jobs: &[u64]) -> Result<(), MetadataError> {
        let jobs: Vec<String> = jobs.iter().map(ToString::to_string).collect();
        let uri = self.job.duplicate_reduction_jobs_uri();
        self.text(MetadataPart::DuplicateReductionJobs, &uri, &jobs.join(","))
    }

    /// Writes the files of the crawl: setup, reports, logs, and in each section by URI.
    ///
    /// # Errors
    ///
    /// [`MetadataError::Content`] if a file cannot be read, [`MetadataError::Write`] if the metadata file cannot be
    /// written or a file grows or shrinks meanwhile, [`MetadataError::Order`] if indexes were written before.
    pub fn write_documents(
        &mut self,
        documents: Vec<MetadataDocument<'_>>,
    ) -> Result<(), MetadataError> {
        let mut documents: Vec<_> = documents
            .into_iter()
            .map(|document| {
                let uri = self.job.document_uri(document.section, &document.name);
                (document.section, uri, document)
            })
            .collect();
        documents.sort_by(|one, other| (one.0, &one.1).cmp(&(other.0, &other.1)));
        for (section, uri, mut document) in documents {
            let media_type = section.media_type(&document.name);
            self.resource(
                MetadataPart::Documents,
                &uri,
                media_type,
                &mut document.content,
            )?;
        }
        Ok(())
    }

    /// Writes the index of an archive file: its CDX lines, and its captures.
    ///
    /// # Errors
    ///
    /// [`MetadataError::Content`] if the index cannot be read, [`MetadataError::Write`] if the metadata file cannot be
    /// written.
    pub fn write_index(&mut self, index: &mut ArchiveIndex) -> Result<(), MetadataError> {
        let uri = self.job.cdx_uri(&index.file);
        self.resource(
            MetadataPart::Indexes,
            &uri,
            "application/x-cdx",
            &mut index.cdx.lines,
        )?;
        let uri = self.job.captures_uri(&index.file);
        let captures = &mut index.captures.lines;
        self.resource(MetadataPart::Indexes, &uri, "application/x-cdxj", captures)
    }

    /// Flushes, and gives the output back.
    ///
    /// # Errors
    ///
    /// Fails if the output does.
    pub fn finish(self) -> io::Result<W> {
        let mut output = self.writer.into_inner();
        output.flush()?;
        Ok(output)
    }

    fn text(&mut self, part: MetadataPart, uri: &str, text: &str) -> Result<(), MetadataError> {
        self.resource(
            part,
            uri,
            "text/plain",
            &mut io::Cursor::new(text.as_bytes()),
        )
    }

    fn resource(
        &mut self,
        part: MetadataPart,
        uri: &str,
        media_type: &str,
        content: &mut dyn RecordContent,
    ) -> Result<(), MetadataError> {
        if part < self.reached {
            let uri = uri.to_owned();
            return Err(MetadataError::Order { uri });
        }
        self.reached = part;
        let builder = builder(WarcType::Resource, &(self.stamps)())
            .target_uri(uri)
            .with_field("WARC-IP-Address", &self.address.to_string())
            .warcinfo_id(&self.warcinfo_id)
            .content_type(media_type);
        self.write(uri, builder, content)
    }

    fn write(
        &mut self,
        uri: &str,
        builder: Builder,
        content: &mut dyn RecordContent,
    ) -> Result<(), MetadataError> {
        let failed = |source| MetadataError::Content {
            uri: uri.to_owned(),
            source,
        };
        let mut hashers = Hashers::new([Algorithm::Sha1]);
        content.rewind().map_err(failed)?;
        let length = io::copy(content, &mut hashers).map_err(failed)?;
        content.rewind().map_err(failed)?;
        let digests = hashers.finish();
        let digest = digests.first().map(ToString::to_string).unwrap_or_default();
        let head = builder
            .with_field("WARC-Block-Digest", &digest)
            .render_head(length);
        let head = head.map_err(|source| MetadataError::Header {
            uri: uri.to_owned(),
            source,
        })?;
        let mut content = content;
        let written = self.writer.write_record(&head, length, &mut content);
        written.map_err(|source| MetadataError::Write {
            uri: uri.to_owned(),
            source,
        })?;
        Ok(())
    }
}

fn builder(kind: WarcType, stamp: &RecordStamp) -> Builder {
    let date = WarcDate::from_time(stamp.time, Precision::Second);
    Builder::new(kind, &stamp.id, date.as_str())
}

#[cfg(test)]
mod tests;
