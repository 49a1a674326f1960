//! Captures in the form in which a client may have them.
//!
//! Owns the fields that go with each form: policies, types, caches. The form itself is decided in
//! `viewer_replay::delivery`, and the texts of policies in `viewer_replay::policy`.

use archive_formats::post;
use axum::body::Body;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, request};
use url::Url;
use viewer_replay::banner::CaptureFault;
use viewer_replay::content::{ContentKind, document_type, names_kind};
use viewer_replay::delivery::{DeliveryForm, FetchFacts};
use viewer_replay::html::escape_html;
use viewer_replay::policy::{self, HostFacts};
use viewer_replay::request::{Addresses, Modifier, ReplayTarget};
use viewer_replay::response::{Redirects, ReplyHead, ReplyMethod, ReplyOptions};
use viewer_replay::rewrite::refresh_value;

use super::document::{DocumentForm, DocumentPlan};
use super::facts::fetch_facts;
use super::raw::{RawRequest, add_faults, stored_response};
use super::shown::{CaptureContent, OutgoingCapture};
use super::{Server, Visit, record_failed};
use crate::answer::Notice;
use crate::records::{AnswerSender, DocumentStart, PayloadVerdict, RecordBody, StoredBody};

/// A mark on an answer whose bytes a browser may look at to learn their type, as it did when they were live.
#[derive(Clone, Copy, Debug)]
pub(super) struct SniffMarker;

/// The request for a capture, as far as it decides about the form of the answer.
#[derive(Debug)]
pub(super) struct CaptureRequest<'a> {
    pub(super) modifier: Option<Modifier>,
    pub(super) headers: &'a HeaderMap,
    pub(super) facts: FetchFacts<'a>,
}

impl<'a> CaptureRequest<'a> {
    pub(super) fn new(modifier: Option<Modifier>, headers: &'a HeaderMap) -> Self {
        Self {
            modifier,
            headers,
            facts: fetch_facts(headers),
        }
    }

    pub(super) fn answer_form(&self) -> DeliveryForm {
        self.facts.choose_form(self.modifier)
    }
}

/// Returns the target of a request that is no GET: its method and its body are in the key.
pub(super) async fn posted_target(
    target: ReplayTarget,
    head: &request::Parts,
    body: Body,
) -> Result<ReplayTarget, Notice> {
    let read = axum::body::to_bytes(body, post::MAX_BODY).await;
    let body = read.map_err(|_too_large| {
        let words = format!("The body is cut, or larger than {} bytes.", post::MAX_BODY);
        Notice::new(StatusCode::PAYLOAD_TOO_LARGE, "Too large", words)
    })?;
    let content_type = head.headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    Ok(target.with_request(head.method.as_str(), content_type, &body))
}

impl Server {
    /// Answers with a capture.
    pub(super) async fn deliver_capture(
        &self,
        visit: &Visit,
        asked: &CaptureRequest<'_>,
        answer: OutgoingCapture,
    ) -> Result<Response<Body>, Notice> {
        let delivery = asked.answer_form();
        let content_type = content_type(&answer.content);
        let kind = ContentKind::read_kind(content_type.as_deref(), b"");
        let names_kind = names_kind(content_type.as_deref());
        let calendar = || self.calendar(visit, &answer.url);
        let form = match delivery {
            DeliveryForm::FramedPage if kind == ContentKind::Page || !names_kind => {
                DocumentForm::Framed
            }
            DeliveryForm::NoScript if kind == ContentKind::Page || !names_kind => {
                DocumentForm::NoScript {
                    calendar: calendar(),
                }
            }
            DeliveryForm::NoScript | DeliveryForm::StyleSheet
                if kind == ContentKind::StyleSheet =>
            {
                DocumentForm::Sheet
            }
            _ => return Ok(self.serve_unchanged(visit, asked, answer)),
        };
        let Ok(base) = Url::parse(&answer.url) else {
            return Ok(self.serve_unchanged(visit, asked, answer));
        };
        self.serve_rewritten(visit, asked, answer, form, base).await
    }

    /// Answers with bytes as they are.
    fn serve_unchanged(
        &self,
        visit: &Visit,
        asked: &CaptureRequest<'_>,
        answer: OutgoingCapture,
    ) -> Response<Body> {
        let content_type = content_type(&answer.content);
        let kind = ContentKind::read_kind(content_type.as_deref(), b"");
        let delivery = asked.answer_form();
        let is_page = matches!(delivery, DeliveryForm::FramedPage | DeliveryForm::RawPage)
            || (delivery == DeliveryForm::NoScript && asked.facts.is_navigation());
        let is_redirect = |response: &Response<Body>| {
            response.status().is_redirection()
                || response.headers().contains_key("x-redirect-status")
        };
        if is_page && kind == ContentKind::Drawing && delivery != DeliveryForm::RawPage {
            return self.drawing(visit, &answer.content);
        }
        let raw = RawRequest::new(visit, asked.modifier, asked.headers);
        let mut response = self.answer_raw(visit, &raw, answer);
        let headers = response.headers_mut();
        let around = self.host_facts();
        let policy = if delivery == (DeliveryForm::WorkerResource { is_thread: true }) {
            policy::THREAD.to_owned()
        } else if matches!(delivery, DeliveryForm::FramedPage | DeliveryForm::NoScript) {
            around.framed_resource()
        } else {
            policy::RAW.to_owned()
        };
        set_header(headers, CONTENT_SECURITY_POLICY, &policy);
        if is_page {
            set_header(
                headers,
                CONTENT_TYPE,
                &document_type(kind, content_type.as_deref()),
            );
        }
        if delivery == DeliveryForm::FramedPage {
            secure_headers(headers);
        }
        // The worker of an operator is not distinguished from programs: to its pages types mean what they meant.
        let is_for_other = delivery == DeliveryForm::Raw && !self.parts.worker.is_own();
        let is_for_worker = matches!(delivery, DeliveryForm::WorkerResource { .. });
        if is_for_worker || is_for_other || is_redirect(&response) {
            response.extensions_mut().insert(SniffMarker);
        }
        response
    }

    /// Answers with a document that is rewritten on its way.
    async fn serve_rewritten(
        &self,
        visit: &Visit,
        asked: &CaptureRequest<'_>,
        answer: OutgoingCapture,
        form: DocumentForm,
        base: Url,
    ) -> Result<Response<Body>, Notice> {
        let OutgoingCapture {
            content: shown,
            url: _,
            fields,
        } = answer;
        let content_type = content_type(&shown);
        let is_framed = matches!(form, DocumentForm::Framed);
        let media = content_type.as_deref();
        let mut reply = document_reply(visit, asked, &shown, media, &form, &base);
        for (name, value) in fields {
            reply.add_field(name, value);
        }
        let (mut reply, extent) = reply.with_extent(visit.method, &[], None);
        let CaptureContent {
            capture,
            message: _,
            payload,
        } = shown;
        let plan = DocumentPlan {
            form,
            head: payload.message.head().cloned(),
            content_type: content_type.clone(),
            addresses: Addresses::new("", visit.collection.name()),
            time: capture.capture.timestamp,
            url: base,
            problems: known_faults(&payload.body, capture.is_self_redirect && !is_framed),
        };
        let watched = self.watch_payload(visit, &capture.capture);
        let work = Box::new(move |body: StoredBody<'_>, answer: &AnswerSender| {
            plan.write_document(body, answer)
        });
        let document = payload.body.begin_document(work).await;
        let document = document.map_err(|error| record_failed(&error))?;
        let media = document_media(document.start, content_type.as_deref());
        reply.set_field("Content-Type", media);
        let body = match extent.take {
            Some(0) => Body::empty(),
            _ => Body::from_stream(watched.watch_body(document.body)),
        };
        let mut response = stored_response(&reply, body);
        let is_page = document.start.kind == ContentKind::Page;
        let policy = self.document_policy(is_page, is_framed);
        let headers = response.headers_mut();
        set_header(headers, CONTENT_SECURITY_POLICY, &policy);
        if is_framed || is_page {
            secure_headers(headers);
        }
        if is_framed {
            // The download of a rewritten page would not be what was captured.
            headers.remove(CONTENT_DISPOSITION);
        }
        Ok(response)
    }

    /// Returns the policy of a rewritten document.
    fn document_policy(&self, is_page: bool, is_framed: bool) -> String {
        let around = self.host_facts();
        match (is_page, is_framed) {
            (true, true) => around.framed_page(),
            (true, false) => around.no_script(),
            (false, _) => around.framed_resource(),
        }
    }

    /// Returns a page around a drawing: in it, nothing of the drawing acts.
    fn drawing(&self, visit: &Visit, shown: &CaptureContent) -> Response<Body> {
        let capture = &shown.capture.capture;
        let url = capture.original.as_deref().unwrap_or_default();
        let addresses = Addresses::new("", visit.collection.name());
        let image = addresses.memento_address(capture.timestamp, Some(Modifier::Image), url);
        let image = escape_html(&image);
        let html = format!(
            "<!doctype html><meta charset=\"utf-8\"><title>{title}</title><style>html,body{{margin:0}}img{{display:block;\
             max-width:100%}}</style><img src=\"{image}\" alt=\"\">",
            title = escape_html(url)
        );
        let mut response = Response::new(match visit.method {
            ReplyMethod::Get => Body::from(html),
            ReplyMethod::Head => Body::empty(),
        });
        let headers = response.headers_mut();
        set_header(headers, CONTENT_TYPE, "text/html; charset=utf-8");
        let policy = format!(
            "{}; style-src 'unsafe-inline'",
            self.host_facts().framed_resource()
        );
        set_header(headers, CONTENT_SECURITY_POLICY, &policy);
        secure_headers(headers);
        response
    }

    /// Returns the facts about this host and the page host that policies need.
    pub(super) fn host_facts(&self) -> HostFacts<'_> {
        HostFacts {
            page_host: self.parts.page_host.as_deref(),
            is_encrypted: self.settings.certificate.is_some()
                || self
                    .settings
                    .url
                    .as_ref()
                    .is_some_and(|url| url.starts_with("https:")),
        }
    }

    /// Returns the address of the list of all captures of a URL: at the page host, or else the TimeMap.
    fn calendar(&self, visit: &Visit, url: &str) -> String {
        let collection = visit.collection.name();
        match &self.parts.page_host {
            Some(host) => format!("{host}/{collection}/*/{url}"),
            None => format!("/{collection}/timemap/link/{url}"),
        }
    }
}

/// Returns the head of a rewritten document, without the type that its bytes decide.
fn document_reply(
    visit: &Visit,
    asked: &CaptureRequest<'_>,
    shown: &CaptureContent,
    media: Option<&[u8]>,
    form: &DocumentForm,
    base: &Url,
) -> ReplyHead {
    let is_framed = matches!(form, DocumentForm::Framed);
    let is_sheet = matches!(form, DocumentForm::Sheet);
    let time = shown.capture.capture.timestamp;
    let options = ReplyOptions {
        url: base.as_str(),
        time,
        media,
        redirects: if is_framed {
            Redirects::ToWorker
        } else {
            Redirects::InArchive {
                addresses: &visit.addresses,
                modifier: asked.modifier,
            }
        },
        is_decoded: true,
    };
    let head = shown.message.head();
    let mut reply = ReplyHead::new(head, &options);
    add_faults(&mut reply, &shown.payload.body);
    if let Some(value) = head.and_then(|head| head.get("refresh")) {
        let addresses = Addresses::new("", visit.collection.name());
        let modifier = is_framed.then_some(Modifier::Main);
        let value = String::from_utf8_lossy(value);
        let refresh = refresh_value(&value, &addresses, modifier, time, base);
        if let Some(refresh) = refresh.filter(|_| !is_sheet) {
            reply.add_field("Refresh", refresh);
        }
    }
    reply
}

/// Returns the faults of a capture that are known before its body is read.
fn known_faults(body: &RecordBody, is_self_redirect: bool) -> Vec<CaptureFault> {
    let mut faults = Vec::new();
    if let Some(whole) = body.whole() {
        if whole.verdict == PayloadVerdict::Differs {
            faults.push(CaptureFault::Digest);
        }
        faults.extend(whole.fault.clone().map(CaptureFault::Cut));
    }
    if is_self_redirect {
        faults.push(CaptureFault::SelfRedirect);
    }
    faults
}

/// Returns the `Content-Type` of a rewritten document.
fn document_media(start: DocumentStart, content_type: Option<&[u8]>) -> String {
    match (start.kind, start.charset) {
        (ContentKind::Page, Some(charset)) => format!("text/html; charset={charset}"),
        (ContentKind::StyleSheet, Some(charset)) => format!("text/css; charset={charset}"),
        (kind, _) => document_type(kind, content_type),
    }
}

/// Returns the `Content-Type` of a capture, from its head or from its WARC header.
fn content_type(shown: &CaptureContent) -> Option<Vec<u8>> {
    let named = |message: &viewer_replay::response::StoredMessage| {
        let field = message.head().and_then(|head| head.get("content-type"));
        field.or(message.media()).map(<[u8]>::to_vec)
    };
    match shown.message.head() {
        Some(_) => named(&shown.message),
        None => named(&shown.message).or_else(|| named(&shown.payload.message)),
    }
}

/// Sets the fields of pages: no feature that a page could misuse, no referrer to others, no cache in which it would lie
/// under the address of the loader.
pub(super) fn secure_headers(headers: &mut HeaderMap) {
    for (name, value) in [
        ("permissions-policy", policy::PERMISSIONS),
        ("referrer-policy", "same-origin"),
        ("x-dns-prefetch-control", "off"),
        ("origin-agent-cluster", "?1"),
    ] {
        headers.insert(
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        );
    }
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
}

/// Sets a field whose value is ours.
pub(super) fn set_header(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    match HeaderValue::from_str(value) {
        Ok(value) => drop(headers.insert(name, value)),
        // Without its policy an archived page would be free.
        Err(_unwritable) => drop(headers.insert(
            CONTENT_SECURITY_POLICY,
            HeaderValue::from_static(policy::RAW),
        )),
    }
}
