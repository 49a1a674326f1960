//! Look-ups in the three dialects of CDX servers.
//!
//! Owns the stream from the index to the client: captures are asked about one by one, rows leave in pieces, and an
//! answer that cannot be finished breaks its connection off.

use std::io;

use archive_formats::date::Stamp;
use axum::body::{Body, Bytes};
use axum::http::header::{ACCESS_CONTROL_ALLOW_ORIGIN, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, Method, Response, StatusCode, request};
use futures_util::stream;
use index_client::CaptureStream;
use viewer_replay::cdx_server::{
    AnswerContext, AnswerForm, AnswerWriter, CdxRequest, DEFAULT_PAGE_SIZES, Dialect,
    DialectRefusal, PagePlace, PageRequest,
};

use super::{Server, Visit, index_failed};
use crate::answer::{Notice, put_header};

/// The wait before a client may ask again for what can be answered later, in seconds.
const AGAIN_AFTER: u32 = 1;

/// The number of bytes of rows that are sent at once.
const PIECE: usize = 32 * 1024;

/// An answer that is being written.
struct RowStream {
    captures: CaptureStream,
    /// `None` once it is finished.
    writer: Option<AnswerWriter<Vec<u8>>>,
    visit: Visit,
    count: u64,
}

impl Server {
    /// Reads the form of a query that came by POST.
    pub(super) async fn read_form(
        &self,
        head: &request::Parts,
        body: Body,
    ) -> Result<Option<Vec<u8>>, Notice> {
        if head.method != Method::POST {
            return Ok(None);
        }
        let is_form = head.headers.get(CONTENT_TYPE).is_some_and(|value| {
            let essence = value.as_bytes().split(|byte| *byte == b';').next();
            let essence = essence.unwrap_or_default().trim_ascii();
            essence.eq_ignore_ascii_case(b"application/x-www-form-urlencoded")
        });
        if !is_form {
            let words = "A query that comes by POST is application/x-www-form-urlencoded. Captures cannot be added here: the \
                         index follows the archive by itself.";
            let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
            return Err(Notice::new(status, "Not a query", words));
        }
        let largest = usize::try_from(self.settings.largest_query.bytes()).unwrap_or(usize::MAX);
        match axum::body::to_bytes(body, largest).await {
            Ok(form) => Ok(Some(form.into())),
            Err(_too_large) => {
                let words = format!("The query is cut, or larger than {largest} bytes.");
                Err(Notice::new(
                    StatusCode::PAYLOAD_TOO_LARGE,
                    "Too large",
                    words,
                ))
            }
        }
    }

    /// Answers a look-up.
    pub(super) async fn look_up(
        &self,
        visit: &Visit,
        dialect: Dialect,
        query: &str,
        form: Option<&[u8]>,
    ) -> Result<Response<Body>, Notice> {
        let parsed = CdxRequest::parse(dialect, query.as_bytes(), form, &DEFAULT_PAGE_SIZES);
        let request = match parsed {
            Ok(request) => request,
            Err(error) => return Ok(refusal_response(&error.refusal(dialect))),
        };
        match request.pages {
            PageRequest::Whole => self.rows(visit, &request, None).await,
            PageRequest::Count { size } => {
                let marks = self.walk_pages(visit, &request, u64::MAX).await?;
                Ok(refusal_response(&match marks.page_count(size) {
                    Some(count) => count.answer_count(dialect),
                    None => marks.unfinished().refusal(dialect),
                }))
            }
            PageRequest::Page { number, size } => {
                let end = number.saturating_add(1).saturating_mul(size);
                let captures = end
                    .saturating_mul(DEFAULT_PAGE_SIZES.block)
                    .saturating_add(1);
                let marks = self.walk_pages(visit, &request, captures).await?;
                match marks.page_place(number, size) {
                    PagePlace::Beyond { pages } => Ok(match request.page_beyond(pages) {
                        Some(error) => refusal_response(&error.refusal(dialect)),
                        None => with_type(&request.form, Body::empty()),
                    }),
                    PagePlace::NotWalked { .. } => {
                        Ok(refusal_response(&marks.unfinished().refusal(dialect)))
                    }
                    place @ PagePlace::Known { .. } => {
                        self.rows(visit, &request, Some(place)).await
                    }
                }
            }
        }
    }

    async fn rows(
        &self,
        visit: &Visit,
        request: &CdxRequest,
        place: Option<PagePlace>,
    ) -> Result<Response<Body>, Notice> {
        let mut query = request.index_query();
        let context = AnswerContext {
            memento_prefix: visit.addresses.time_gate(""),
            now: Stamp::from_time(visit.now),
        };
        let mut writer = AnswerWriter::new(request, &context, Vec::new());
        if let Some(place) = &place {
            writer = writer.within_page(request, place);
            if let PagePlace::Known {
                after: Some(after), ..
            } = place
            {
                query.cursor = Some(after.clone());
            }
        }
        let query = Self::in_collection(visit, query);
        let captures = self
            .parts
            .index
            .query(&query)
            .await
            .map_err(|error| index_failed(&error))?;
        let mut rows = RowStream {
            captures,
            writer: Some(writer),
            visit: visit.clone(),
            count: 0,
        };
        // The first piece decides what the answer is: after it nothing can be taken back.
        let first = match rows.next().await {
            Ok(first) => first,
            Err(RowsError::Index(error)) => return Err(index_failed(&error)),
            Err(RowsError::Answer(words)) => return Err(Notice::bad_request(words)),
        };
        if rows.writer.is_none()
            && rows.count == 0
            && let Some(refusal) = request.empty_refusal()
        {
            return Ok(refusal_response(&refusal));
        }
        let first = first.unwrap_or_default();
        let mut response = if rows.writer.is_none() {
            with_type(&request.form, Body::from(first))
        } else {
            let broken = self.parts.instruments.broken.clone();
            let rest = stream::unfold(Some(rows), move |rows| {
                let broken = broken.clone();
                async move {
                    let mut rows = rows?;
                    match rows.next().await {
                        Ok(Some(piece)) => Some((Ok(piece), Some(rows))),
                        Ok(None) => None,
                        Err(error) => {
                            broken.inc();
                            let error = error.into_io();
                            tracing::warn!(%error, "an answer to a query broke off");
                            Some((Err(error), None))
                        }
                    }
                }
            });
            let first = stream::once(std::future::ready(Ok::<_, io::Error>(first)));
            let pieces = futures_util::StreamExt::chain(first, rest);
            with_type(&request.form, Body::from_stream(pieces))
        };
        if request.dialect == Dialect::OutbackCdx {
            put_header(
                response.headers_mut(),
                "outbackcdx-urlkey",
                request.url_key(),
            );
        }
        Ok(response)
    }
}

/// The reason why there are no more rows.
enum RowsError {
    Index(index_client::IndexCallError),
    Answer(String),
}

impl RowsError {
    fn into_io(self) -> io::Error {
        match self {
            Self::Index(error) => io::Error::other(error),
            Self::Answer(words) => io::Error::other(words),
        }
    }
}

impl RowStream {
    /// Returns the next piece; `None` after the last one.
    async fn next(&mut self) -> Result<Option<Bytes>, RowsError> {
        let failed =
            |error: viewer_replay::cdx_server::AnswerError| RowsError::Answer(error.to_string());
        let Some(writer) = &mut self.writer else {
            return Ok(None);
        };
        while !writer.is_complete() {
            let Some(capture) = self.captures.next().await.map_err(RowsError::Index)? else {
                break;
            };
            if self.visit.decide(&capture).is_allowed() {
                writer.push_capture(capture).map_err(failed)?;
                if writer.output_mut().len() >= PIECE {
                    let piece = std::mem::take(writer.output_mut());
                    self.count = writer.rows();
                    return Ok(Some(piece.into()));
                }
            }
        }
        let Some(writer) = self.writer.take() else {
            return Ok(None);
        };
        let (summary, rest) = writer.finish_answer().map_err(failed)?;
        self.count = summary.rows;
        Ok((!rest.is_empty()).then(|| rest.into()))
    }
}

/// Returns a short answer that is no rows: a refusal, or a number of pages.
fn refusal_response(refusal: &DialectRefusal) -> Response<Body> {
    let mut response = Response::new(Body::from(refusal.body.clone()));
    *response.status_mut() =
        StatusCode::from_u16(refusal.status).unwrap_or(StatusCode::BAD_REQUEST);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(refusal.content_type));
    headers.insert(CONTENT_LENGTH, HeaderValue::from(refusal.body.len()));
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    if refusal.status == StatusCode::SERVICE_UNAVAILABLE.as_u16() {
        headers.insert(RETRY_AFTER, HeaderValue::from(AGAIN_AFTER));
    }
    response
}

fn with_type(form: &AnswerForm, body: Body) -> Response<Body> {
    let content_type = match form {
        AnswerForm::Cdxj => "text/x-cdxj",
        AnswerForm::JsonLines => "text/x-ndjson",
        AnswerForm::Text => "text/plain; charset=utf-8",
        AnswerForm::Link => "application/link-format",
        AnswerForm::JsonRows | AnswerForm::JsonObjects => "application/json",
        AnswerForm::Xml(_) => "application/xml; charset=utf-8",
    };
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    response
}
