//! Archive files and their records as they are archived: `getFile`, `getRecord` and `getMetadata`.
//!
//! Owns who may have them: whole files are for named groups; a record that has a URL and a date is a capture like any
//! other, and is decided by the same rules.

use std::collections::VecDeque;
use std::sync::Arc;

use archive_client::{Access, ClientError, FileRange, FileStream, ListItem, Selection};
use archive_formats::cdx::Capture;
use archive_formats::date::{DateReading, WarcDate};
use archive_formats::surt::UrlKey;
use archive_formats::warc::Header;
use archive_model::FileName;
use axum::body::{Body, Bytes};
use axum::http::header::RANGE;
use axum::http::{HeaderMap, HeaderValue, Response};
use futures_util::{Stream, StreamExt, TryStreamExt, stream};
use tokio::sync::OwnedSemaphorePermit;
use viewer_replay::access::{AccessDecision, AccessVerdict};
use viewer_replay::response::ReplyHead;

use super::raw::stored_response;
use super::{Server, Visit, record_failed};
use crate::answer::Notice;
use crate::records::{RecordError, RecordPlace};

/// The most metadata files of one job.
const MOST_METADATA: usize = 1_000;

impl Server {
    /// Answers with a whole archive file, or a range of it.
    pub(super) async fn whole_file(
        &self,
        visit: &Visit,
        file: &str,
        headers: &HeaderMap,
    ) -> Result<Response<Body>, Notice> {
        let name = file_name(file)?;
        refuse(
            &visit
                .collection
                .decide_file(&visit.visitor, file, visit.now),
        )?;
        let turn = self.turn().await?;
        let archive = self.parts.records.archive();
        let whole = FileRange::whole_file(name.clone());
        let reading = archive.get(&whole).await.map_err(file_failed)?;
        let length = reading.admission.size;
        let mut reply = ReplyHead {
            status: 200,
            fields: Vec::new(),
        };
        reply.add_field("Content-Type", media(file));
        reply.add_field("Content-Disposition", attachment(file));
        let ranges: Vec<&[u8]> = headers
            .get_all(RANGE)
            .iter()
            .map(HeaderValue::as_bytes)
            .collect();
        let (reply, extent) = reply.with_extent(visit.method, &ranges, Some(length));
        let body = match extent.take {
            Some(0) => Body::empty(),
            _ if extent.is_whole(Some(length)) => {
                begun_body(PermittedReading(reading, turn)).await?
            }
            take => {
                drop(reading);
                let part = FileRange {
                    start: extent.skip,
                    end: take.map(|take| extent.skip.saturating_add(take)),
                    ..whole
                };
                let reading = archive.get(&part).await.map_err(file_failed)?;
                begun_body(PermittedReading(reading, turn)).await?
            }
        };
        Ok(stored_response(&reply, body))
    }

    /// Answers with one record, byte for byte as it is archived.
    pub(super) async fn stored_record(
        &self,
        visit: &Visit,
        file: &str,
        offset: u64,
    ) -> Result<Response<Body>, Notice> {
        let place = RecordPlace {
            file: file_name(file)?,
            offset,
            length: None,
        };
        if !visit.collection.has_file(file) {
            return Err(no_file());
        }
        let opened = self.parts.records.open_record(&place).await;
        let header = opened.map_err(|error| record_failed(&error))?.header;
        refuse(&match capture(&header, file) {
            Some(capture) => visit.decide(&capture),
            None => visit
                .collection
                .decide_file(&visit.visitor, file, visit.now),
        })?;
        let stored = self.parts.records.open_stored(&place).await;
        let stored = stored.map_err(|error| record_failed(&error))?;
        let mut reply = ReplyHead {
            status: 200,
            fields: Vec::new(),
        };
        reply.add_field("Content-Type", "application/octet-stream");
        reply.add_field(
            "Content-Disposition",
            attachment(&format!("{offset}-{file}")),
        );
        Ok(stored_response(&reply, Body::from_stream(stored)))
    }

    /// Answers with the metadata files of a harvest job, one after the other.
    pub(super) async fn job_metadata(
        &self,
        visit: &Visit,
        job: &str,
    ) -> Result<Response<Body>, Notice> {
        if job.is_empty() || job.len() > 18 || !job.bytes().all(|byte| byte.is_ascii_digit()) {
            let words = "`jobID` is the number of a harvest job.";
            return Err(Notice::bad_request(words));
        }
        let turn = self.turn().await?;
        let mut names = VecDeque::new();
        let mut refusal = None;
        for name in self.metadata_files(job).await? {
            let decision = visit
                .collection
                .decide_file(&visit.visitor, name.as_str(), visit.now);
            if decision.is_allowed() {
                names.push_back(name);
            } else {
                refusal = refuse(&decision).err();
            }
        }
        let nothing = || {
            let words = format!("The archive has no metadata files of job {job}.");
            Notice::not_found(words)
        };
        let first = names
            .pop_front()
            .ok_or_else(|| refusal.unwrap_or_else(nothing))?;
        let archive = Arc::clone(self.parts.records.archive());
        let begun = archive
            .get(&FileRange::whole_file(first.clone()))
            .await
            .map_err(file_failed)?;
        let files = FilesInTurn {
            archive,
            current: Some(begun),
            names,
            _turn: turn,
        };
        let pieces = stream::unfold(Some(files), |files| async move {
            let mut files = files?;
            match files.next().await {
                Ok(Some(bytes)) => Some((Ok(bytes), Some(files))),
                Ok(None) => None,
                Err(error) => Some((Err(error), None)),
            }
        });
        let mut reply = ReplyHead {
            status: 200,
            fields: Vec::new(),
        };
        reply.add_field("Content-Type", media(first.as_str()));
        reply.add_field(
            "Content-Disposition",
            attachment(&format!("{job}-metadata")),
        );
        Ok(stored_response(&reply, begun_body(pieces).await?))
    }

    async fn metadata_files(&self, job: &str) -> Result<Vec<FileName>, Notice> {
        let selection = Selection {
            matching: Some(format!(r"{job}-metadata-[0-9]+\.w?arc(\.gz)?")),
            ..Selection::default()
        };
        let archive = self.parts.records.archive();
        let mut listing = archive.list(&selection).await.map_err(file_failed)?;
        let mut names = Vec::new();
        while let Some(listed) = listing.next().await.map_err(file_failed)? {
            match listed {
                ListItem::Entry(entry) => names.push(entry.name),
                ListItem::End(end) if end.gaps.is_empty() => {}
                ListItem::End(_) => {
                    let words = "A part of the archive does not answer, so that files of this job may be missing; try again.";
                    return Err(Notice::unavailable_notice(words));
                }
            }
            if names.len() > MOST_METADATA {
                let words = format!("Job {job} has more than {MOST_METADATA} metadata files.");
                return Err(Notice::bad_request(words));
            }
        }
        Ok(names)
    }

    async fn turn(&self) -> Result<OwnedSemaphorePermit, Notice> {
        let turn = self.parts.records.take_turn().await;
        turn.map_err(|error| record_failed(&error))
    }
}

/// Files that are sent one after the other.
struct FilesInTurn {
    archive: Arc<dyn Access>,
    current: Option<FileStream>,
    names: VecDeque<FileName>,
    _turn: OwnedSemaphorePermit,
}

impl FilesInTurn {
    async fn next(&mut self) -> Result<Option<Bytes>, ClientError> {
        loop {
            if let Some(reading) = &mut self.current {
                if let Some(bytes) = reading.next().await? {
                    return Ok(Some(bytes));
                }
                self.current = None;
            }
            let Some(name) = self.names.pop_front() else {
                return Ok(None);
            };
            self.current = Some(self.archive.get(&FileRange::whole_file(name)).await?);
        }
    }
}

/// A reading of a file, with its permit.
struct PermittedReading(
    FileStream,
    #[expect(dead_code, reason = "held until the reading ends")] OwnedSemaphorePermit,
);

impl Stream for PermittedReading {
    type Item = Result<Bytes, ClientError>;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Self::Item>> {
        std::pin::Pin::new(&mut self.0).poll_next(cx)
    }
}

/// Returns a body whose first piece is there already: a file that no node can give is refused, instead of an answer
/// begun that breaks off.
async fn begun_body(
    pieces: impl Stream<Item = Result<Bytes, ClientError>> + Send + 'static,
) -> Result<Body, Notice> {
    let mut pieces = Box::pin(pieces.fuse());
    let first = pieces.try_next().await.map_err(file_failed)?;
    let first = stream::iter(first.map(Ok));
    Ok(Body::from_stream(first.chain(pieces)))
}

/// Returns the capture that a record is, as far as rules look: a URL at a time.
fn capture(header: &Header, file: &str) -> Option<Capture> {
    let url = header
        .read_uri("WARC-Target-URI")
        .filter(|url| !url.is_empty())?;
    let date = header.text_of("WARC-Date")?;
    let date = WarcDate::read_date(date.trim(), DateReading::Lenient).ok()?;
    let mut capture = Capture::new(UrlKey::parse(url.as_bytes()).as_str(), date.stamp());
    capture.file = Some(file.to_owned());
    Some(capture)
}

fn file_name(file: &str) -> Result<FileName, Notice> {
    FileName::new(file).map_err(|error| Notice::bad_request(format!("`arcFile`: {error}.")))
}

fn refuse(decision: &AccessDecision) -> Result<(), Notice> {
    match decision.verdict {
        AccessVerdict::Allow => Ok(()),
        AccessVerdict::Block => Err(Notice::blocked_notice()),
        AccessVerdict::Exclude => Err(no_file()),
    }
}

fn no_file() -> Notice {
    Notice::not_found("The archive has no such file or record in this collection.")
}

fn file_failed(error: ClientError) -> Notice {
    if matches!(error, ClientError::NotFound(_)) {
        return no_file();
    }
    record_failed(&RecordError::Archive(error))
}

fn media(file: &str) -> &'static str {
    let kind = std::path::Path::new(file).extension();
    if kind.is_some_and(|kind| kind.eq_ignore_ascii_case("warc")) {
        "application/warc"
    } else {
        "application/octet-stream"
    }
}

/// Returns the name under which a browser keeps it. Names of archive files have neither quotes nor control characters
/// that are left.
fn attachment(name: &str) -> String {
    let plain = |c: char| match c {
        c if c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '+' | '=' | '@' | ',') => c,
        _ => '_',
    };
    let name: String = name.chars().map(plain).collect();
    format!("attachment; filename=\"{name}\"")
}
