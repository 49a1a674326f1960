//! The records of one exchange: response or revisit, request, metadata, each deflated into a gzip member of its own,
//! unless the order says that they are not compressed.
//!
//! Owns which fields such records have (ISO 28500:2017 §5, §6; Heritrix' `metadata` fields). The members are made where
//! the exchange was, so that the owner of the archive file only appends them. Knows no archive file and no clock.

use std::io::{self, Cursor, Read, Seek as _, SeekFrom};
use std::net::IpAddr;
use std::path::PathBuf;

use archive_formats::date::{Precision, WarcDate};
use archive_formats::digest::{Algorithm, digest_bytes};
use archive_formats::http::MediaType;
use archive_formats::warc::{Builder, HeaderBuildError, WarcType, WarcWriter, WriteError};
use jiff::Timestamp;
use parking_lot::Mutex;
use tempfile::SpooledTempFile;

use crate::exchange::HttpProtocol;
use crate::exchange::receive::HttpResponse;

/// The bytes from which on a response is not deflated that does not shrink.
const DENSE: u64 = 64 << 10;

/// The level at which records are deflated: zlib's own default.
pub(crate) const LEVEL: u32 = 6;

/// A larger group leaves memory.
const IN_MEMORY: usize = 512 << 10;

/// The reason why the records of an exchange cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// A field of a header cannot be written.
    #[error("cannot write a record of {uri}: {source}")]
    Header {
        /// The URI that was captured.
        uri: String,
        /// The field and what is wrong with it.
        source: HeaderBuildError,
    },
    /// The temporary files cannot be read or written.
    #[error("cannot write the records of a capture: {0}; see to the disk of this machine")]
    Storage(#[from] WriteError),
}

/// An earlier capture with the same payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RevisitTarget {
    /// The URI of the earlier capture.
    pub uri: String,
    /// The time of the earlier capture.
    pub time: Timestamp,
    /// The id of the record of the earlier capture, if it is known.
    pub record_id: Option<String>,
}

/// The body of the response, compared with what was captured before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Novelty {
    /// The payload was never captured: the response becomes a `response` record.
    New,
    /// The payload was captured before: the head of the response becomes a `revisit` record.
    SamePayload(RevisitTarget),
    /// The host says that nothing has changed (304): the response as it came becomes a `revisit` record.
    NotModified(RevisitTarget),
}

/// The contents of the records of one exchange.
#[derive(Debug)]
pub struct CapturedExchange<'a> {
    /// The URI that was captured.
    pub uri: &'a str,
    /// The time at which the request began to go out.
    pub began: Timestamp,
    /// The address of the host; `None`: only a proxy knows it.
    pub address: Option<IpAddr>,
    /// The request as it was sent.
    pub request: &'a [u8],
    /// The response as it came in.
    pub response: &'a mut HttpResponse,
    /// The protocol by which the response came.
    pub protocol: HttpProtocol,
    /// Whether the body of the response is new.
    pub novelty: Novelty,
    /// The lines of the `metadata` record, as name and value.
    pub metadata: &'a [(String, String)],
    /// Ids for the records: of the response or revisit, the request, the metadata.
    pub record_ids: [String; 3],
}

/// The place of a record among the members of its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberPlace {
    /// The first byte, from the start of the group.
    pub offset: u64,
    /// The number of bytes.
    pub length: u64,
}

/// The records of one exchange, ready to be appended to an archive file.
#[derive(Debug)]
pub struct RecordGroup {
    /// The members, from the first byte.
    pub bytes: SpooledTempFile,
    /// The length of the members in bytes.
    pub length: u64,
    /// The place of the response or revisit.
    pub response: MemberPlace,
}

/// The means to make records: deflating memory, used again and again, and a directory for large groups.
#[derive(Debug)]
pub struct RecordWriterPool {
    directory: PathBuf,
    compresses: bool,
    /// Writers at [`LEVEL`], and those that only store.
    idle: [Mutex<Vec<WarcWriter<SpooledTempFile>>>; 2],
}

impl RecordWriterPool {
    /// Makes a pool. Large groups go to temporary files in `directory`. `compresses`: whether each record is a gzip
    /// member.
    pub const fn new(directory: PathBuf, compresses: bool) -> Self {
        Self {
            directory,
            compresses,
            idle: [Mutex::new(Vec::new()), Mutex::new(Vec::new())],
        }
    }

    /// Returns a writer that nobody else uses now. `stores`: what it writes does not shrink.
    fn take(&self, stores: bool) -> WarcWriter<SpooledTempFile> {
        let sink = tempfile::spooled_tempfile_in(IN_MEMORY, self.directory.clone());
        let mut idle = self.idle[usize::from(stores)].lock();
        if let Some(mut writer) = idle.pop() {
            drop(writer.begin_again(sink));
            writer
        } else {
            drop(idle);
            if self.compresses {
                WarcWriter::gzip_writer(sink, if stores { 0 } else { LEVEL })
            } else {
                WarcWriter::plain_writer(sink)
            }
        }
    }

    /// Puts a writer back into the pool; returns what it has written.
    fn recycle(&self, mut writer: WarcWriter<SpooledTempFile>, stores: bool) -> SpooledTempFile {
        let bytes = writer.begin_again(SpooledTempFile::new(0));
        let mut idle = self.idle[usize::from(stores)].lock();
        idle.push(writer);
        bytes
    }
}

/// Returns the id of a record, made of 16 random bytes: a UUID of version 4 (RFC 9562).
pub fn record_id(mut random: [u8; 16]) -> String {
    let [_, _, _, _, _, _, version, _, variant, ..] = &mut random;
    *version = (*version & 0x0f) | 0x40;
    *variant = (*variant & 0x3f) | 0x80;
    let digits = hex::encode(random);
    let groups = [0..8, 8..12, 12..16, 16..20, 20..32].map(|group| &digits[group]);
    format!("urn:uuid:{}", groups.join("-"))
}

/// A block that comes from no message: an answer of a name server.
///
/// ```
/// use archive_formats::warc::{WarcType, WarcReader};
/// use harvest_crawler::capture::{RecordWriterPool, ResourceBlock, record_id};
///
/// let pool = RecordWriterPool::new(std::env::temp_dir(), true);
/// let block = ResourceBlock {
///     uri: "dns:example.org",
///     time: "2026-11-26T12:00:00Z".parse()?,
///     address: None,
///     media_type: "text/dns",
///     record_id: &record_id([7; 16]),
///     block: b"example.org. 300 IN A 192.0.2.1\n",
/// };
/// let group = block.into_records(&pool)?;
/// let mut reader = WarcReader::new(group.bytes);
/// assert_eq!(reader.next_record()?.map(|record| record.kind()), Some(WarcType::Resource));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ResourceBlock<'a> {
    /// The URI of the record.
    pub uri: &'a str,
    /// The time at which the block was made.
    pub time: Timestamp,
    /// The address that the block came from.
    pub address: Option<IpAddr>,
    /// The media type of the block.
    pub media_type: &'a str,
    /// The id of the record.
    pub record_id: &'a str,
    /// The bytes of the block.
    pub block: &'a [u8],
}

impl ResourceBlock<'_> {
    /// Makes the `resource` record of the block.
    ///
    /// # Errors
    ///
    /// As [`CapturedExchange::into_records`].
    pub fn into_records(self, scratch: &RecordWriterPool) -> Result<RecordGroup, CaptureError> {
        let date = WarcDate::from_time(self.time, Precision::Second);
        let block_digest = digest_bytes(Algorithm::Sha1, self.block).to_string();
        let mut builder = Builder::new(WarcType::Resource, self.record_id, date.as_str())
            .target_uri(self.uri)
            .content_type(self.media_type)
            .with_field("WARC-Block-Digest", &block_digest);
        if let Some(address) = self.address {
            builder = builder.with_field("WARC-IP-Address", &address.to_string());
        }
        let length = self.block.len() as u64;
        let head = builder.render_head(length);
        let head = head.map_err(|source| CaptureError::Header {
            uri: self.uri.to_owned(),
            source,
        })?;
        let mut writer = scratch.take(false);
        let written = writer.write_record(&head, length, &mut Cursor::new(self.block))?;
        let mut bytes = scratch.recycle(writer, false);
        bytes.seek(SeekFrom::Start(0)).map_err(storage_error)?;
        Ok(RecordGroup {
            bytes,
            length: written.length,
            response: MemberPlace {
                offset: written.offset,
                length: written.length,
            },
        })
    }
}

impl CapturedExchange<'_> {
    /// Makes the records.
    ///
    /// # Errors
    ///
    /// [`CaptureError::Header`] if a field has control characters, [`CaptureError::Storage`] if the disk fails.
    pub fn into_records(mut self, scratch: &RecordWriterPool) -> Result<RecordGroup, CaptureError> {
        let stores = is_dense(self.response);
        let mut writer = scratch.take(stores);
        let response = self.write_response(&mut writer)?;
        let [response_id, request_id, metadata_id] = self.record_ids.clone();
        let digested = |builder: Builder, block: &[u8]| {
            let block_digest = (!scratch.compresses).then(|| digest_bytes(Algorithm::Sha1, block));
            match block_digest {
                Some(digest) => builder.with_field("WARC-Block-Digest", &digest.to_string()),
                None => builder,
            }
        };
        let request = self
            .builder(WarcType::Request, &request_id)
            .concurrent_to(&response_id)
            .content_type("application/http; msgtype=request");
        self.write(&mut writer, &digested(request, self.request), self.request)?;
        let lines = self.metadata.iter();
        let lines = lines.map(|(name, value)| format!("{name}: {value}\r\n"));
        let lines = lines.collect::<String>();
        let metadata = self
            .builder(WarcType::Metadata, &metadata_id)
            .concurrent_to(&response_id)
            .content_type("application/warc-fields");
        let metadata = digested(metadata, lines.as_bytes());
        self.write(&mut writer, &metadata, lines.as_bytes())?;
        let length = writer.position();
        let mut bytes = scratch.recycle(writer, stores);
        bytes.seek(SeekFrom::Start(0)).map_err(storage_error)?;
        Ok(RecordGroup {
            bytes,
            length,
            response,
        })
    }

    /// Returns a record beside the response, which names the address for all of them (ISO 28500:2017 §5.11 leaves that
    /// open). Nor have they a digest of their block where they are compressed: each gzip member has a checksum, and
    /// small records would be digests for the most part.
    fn builder(&self, kind: WarcType, id: &str) -> Builder {
        let builder = Builder::new(kind, id, self.date().as_str());
        self.with_protocol(builder).target_uri(self.uri)
    }

    /// Adds a note to an exchange over HTTP/2 that its messages were not sent as their records have them, in the form
    /// of HTTP/1.1.
    fn with_protocol(&self, builder: Builder) -> Builder {
        match self.protocol {
            HttpProtocol::Http1 => builder,
            HttpProtocol::Http2 => builder.with_field("WARC-Protocol", "h2"),
        }
    }

    fn date(&self) -> WarcDate {
        WarcDate::from_time(self.began, Precision::Second)
    }

    fn write_response(
        &mut self,
        writer: &mut WarcWriter<SpooledTempFile>,
    ) -> Result<MemberPlace, CaptureError> {
        let id = self.record_ids.first().cloned().unwrap_or_default();
        let date = self.date();
        let payload_digest = self.response.payload_digest.to_string();
        let earlier = |builder: Builder, earlier: &RevisitTarget| {
            let time = WarcDate::from_time(earlier.time, Precision::Second);
            let builder = builder.refers_to_capture(&earlier.uri, time.as_str());
            match &earlier.record_id {
                Some(id) => builder.refers_to(id),
                None => builder,
            }
        };
        let mut builder = match &self.novelty {
            Novelty::New => {
                let builder = Builder::new(WarcType::Response, &id, date.as_str());
                builder.with_field("WARC-Payload-Digest", &payload_digest)
            }
            Novelty::SamePayload(capture) => earlier(
                Builder::identical_payload(&id, date.as_str(), &payload_digest),
                capture,
            ),
            Novelty::NotModified(capture) => {
                earlier(Builder::not_modified(&id, date.as_str()), capture)
            }
        };
        builder = self
            .with_protocol(builder)
            .target_uri(self.uri)
            .content_type("application/http; msgtype=response");
        if let Some(address) = self.address {
            builder = builder.with_field("WARC-IP-Address", &address.to_string());
        }
        if let Novelty::SamePayload(_) = self.novelty {
            let head = self.response.head.as_ref();
            let head = head.map(|head| head.raw().to_vec()).unwrap_or_default();
            let block_digest = digest_bytes(Algorithm::Sha1, &head).to_string();
            let builder = builder.with_field("WARC-Block-Digest", &block_digest);
            return self.write(writer, &builder, &head);
        }
        if let Some(truncation) = self.response.truncation {
            builder = builder.with_field("WARC-Truncated", truncation.as_str());
        }
        let builder =
            builder.with_field("WARC-Block-Digest", &self.response.block_digest.to_string());
        let length = self.response.block_length;
        let head = self.head(&builder, length)?;
        self.response
            .block
            .seek(SeekFrom::Start(0))
            .map_err(storage_error)?;
        let written = writer.write_record(&head, length, &mut self.response.block)?;
        Ok(MemberPlace {
            offset: written.offset,
            length: written.length,
        })
    }

    fn head(&self, builder: &Builder, length: u64) -> Result<Vec<u8>, CaptureError> {
        let head = builder.render_head(length);
        head.map_err(|source| CaptureError::Header {
            uri: self.uri.to_owned(),
            source,
        })
    }

    /// Writes a record whose block is at hand.
    fn write(
        &self,
        writer: &mut WarcWriter<SpooledTempFile>,
        builder: &Builder,
        block: &[u8],
    ) -> Result<MemberPlace, CaptureError> {
        let length = block.len() as u64;
        let head = self.head(builder, length)?;
        let written =
            writer.write_record(&head, length, &mut Cursor::new(block) as &mut dyn Read)?;
        Ok(MemberPlace {
            offset: written.offset,
            length: written.length,
        })
    }
}

/// Returns whether a response is large and does not shrink: it is stored as it is, in the form of gzip.
fn is_dense(response: &HttpResponse) -> bool {
    const TYPES: [&str; 14] = [
        "image/jpeg",
        "image/png",
        "image/gif",
        "image/webp",
        "image/avif",
        "application/zip",
        "application/gzip",
        "application/x-gzip",
        "application/x-7z-compressed",
        "application/x-rar-compressed",
        "application/x-xz",
        "application/zstd",
        "font/woff",
        "font/woff2",
    ];
    let Some(head) = response
        .head
        .as_ref()
        .filter(|_| response.block_length >= DENSE)
    else {
        return false;
    };
    if head
        .list_values("content-encoding")
        .any(|coding| coding != b"identity")
    {
        return true;
    }
    let media_type = head.get("content-type").and_then(MediaType::read_media);
    media_type.is_some_and(|media_type| {
        let essence = media_type.essence.as_str();
        let class = essence.split('/').next();
        matches!(class, Some("video" | "audio")) || TYPES.contains(&essence)
    })
}

fn storage_error(error: io::Error) -> CaptureError {
    CaptureError::Storage(WriteError::Io(error))
}

#[cfg(test)]
mod tests;
