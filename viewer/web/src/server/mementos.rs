//! TimeGates and Mementos: a URL at a time, as RFC 7089 has it.

use archive_formats::date::Stamp;
use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode};
use viewer_replay::memento::{
    self, AnswerField, Preference, TimeGate, TimeGateStyle, accept_datetime, empty_time_gate,
};
use viewer_replay::request::{Modifier, ReplayTarget, RequestedTime};

use super::delivered::CaptureRequest;
use super::shown::{OutgoingCapture, no_capture_of};
use super::{Server, Visit, index_failed};
use crate::answer::{Notice, put_header};
use crate::settings::TimeGateAnswer;

/// The request for a capture of a URL, with what the client prefers.
#[derive(Clone, Copy, Debug)]
pub(super) struct MementoRequest<'a> {
    /// The modifier in its path.
    pub(super) modifier: Option<Modifier>,
    pub(super) target: &'a ReplayTarget,
    pub(super) headers: &'a HeaderMap,
}

impl<'a> MementoRequest<'a> {
    pub(super) const fn new(
        modifier: Option<Modifier>,
        target: &'a ReplayTarget,
        headers: &'a HeaderMap,
    ) -> Self {
        Self {
            modifier,
            target,
            headers,
        }
    }
}

impl Server {
    /// Answers a `TimeGate`: the capture nearest to `Accept-Datetime`, or the latest one.
    pub(super) async fn time_gate(
        &self,
        visit: &Visit,
        request: MementoRequest<'_>,
    ) -> Result<Response<Body>, Notice> {
        let MementoRequest {
            modifier,
            target,
            headers,
        } = request;
        let nothing = |notice: Notice| {
            let fields = empty_time_gate(&visit.addresses, target.url());
            notice.with_fields(fields)
        };
        let (modifier, applied) = preferred_modifier(modifier, headers);
        let asked = CaptureRequest::new(modifier, headers);
        let preferred = MementoRequest {
            modifier,
            ..request
        };
        if let Some(other) = self.instead_of_page(visit, asked.answer_form(), None, preferred) {
            return other;
        }
        let wanted = accept_datetime(values(headers, "accept-datetime"))
            .map_err(|error| nothing(Notice::bad_request(error.to_string())))?;
        let time = wanted.unwrap_or_else(|| Stamp::from_time(visit.now));
        let near = self.near_target(visit, target, time).await;
        let near = near.map_err(|error| index_failed(&error))?;
        if near.captures.is_empty() {
            return Err(nothing(no_capture_of(target)));
        }
        let shown = self.show_capture(visit, &near).await.map_err(nothing)?;
        let capture = &shown.capture.capture;
        let neighbours = self.find_neighbours(visit, capture, &near).await;
        let neighbours = neighbours.map_err(|error| index_failed(&error))?;
        let url = capture
            .original
            .as_deref()
            .unwrap_or(target.url())
            .to_owned();
        let style = match self.settings.timegate {
            TimeGateAnswer::Content => TimeGateStyle::Direct,
            TimeGateAnswer::Redirect => TimeGateStyle::Redirect,
        };
        let gate = TimeGate { style, modifier };
        let mut fields = gate.gate_fields(&visit.addresses, &url, &neighbours);
        fields.extend(applied.map(Preference::applied_field));
        if style == TimeGateStyle::Redirect {
            return Ok(redirect(fields));
        }
        let answer = OutgoingCapture {
            content: shown,
            url,
            fields,
        };
        Box::pin(self.deliver_capture(visit, &asked, answer)).await
    }

    /// Answers with the capture at a time, or the one nearest to it.
    pub(super) async fn answer_memento(
        &self,
        visit: &Visit,
        time: &RequestedTime,
        request: MementoRequest<'_>,
    ) -> Result<Response<Body>, Notice> {
        let MementoRequest {
            modifier,
            target,
            headers,
        } = request;
        let is_negotiable = modifier.is_none();
        let (modifier, applied) = preferred_modifier(modifier, headers);
        let asked = CaptureRequest::new(modifier, headers);
        let preferred = MementoRequest {
            modifier,
            ..request
        };
        if let Some(other) = self.instead_of_page(visit, asked.answer_form(), Some(time), preferred)
        {
            return other;
        }
        let near = self.near_target(visit, target, time.stamp()).await;
        let near = near.map_err(|error| index_failed(&error))?;
        if near.captures.is_empty() {
            return Err(no_capture_of(target));
        }
        let shown = self.show_capture(visit, &near).await?;
        let capture = &shown.capture.capture;
        let neighbours = self.find_neighbours(visit, capture, &near).await;
        let neighbours = neighbours.map_err(|error| index_failed(&error))?;
        let url = capture
            .original
            .as_deref()
            .unwrap_or(target.url())
            .to_owned();
        let mut fields = memento::memento_fields(&visit.addresses, &url, &neighbours);
        if capture.timestamp != time.stamp() || url != target.url() {
            let address = visit
                .addresses
                .memento_address(capture.timestamp, modifier, &url);
            fields.push(("Content-Location", address));
        }
        // Also where nothing was preferred: a cache must not give this answer to who prefers another one.
        if is_negotiable {
            fields.push(("Vary", "prefer".to_owned()));
        }
        fields.extend(applied.map(Preference::applied_field));
        let answer = OutgoingCapture {
            content: shown,
            url,
            fields,
        };
        Box::pin(self.deliver_capture(visit, &asked, answer)).await
    }
}

/// Returns the modifier of the path, or else the one that is preferred, with the preference that is met by it.
fn preferred_modifier(
    modifier: Option<Modifier>,
    headers: &HeaderMap,
) -> (Option<Modifier>, Option<Preference>) {
    if modifier.is_some() {
        return (modifier, None);
    }
    let preference = Preference::read_preference(values(headers, "prefer"));
    match preference {
        // Without a modifier pages are rewritten anyway.
        Some(Preference::Rewritten) => (None, preference),
        Some(raw) if raw.modifier().is_raw() => (Some(raw.modifier()), preference),
        _ => (None, None),
    }
}

fn values<'a>(headers: &'a HeaderMap, name: &str) -> impl Iterator<Item = &'a [u8]> + use<'a> {
    headers.get_all(name).into_iter().map(HeaderValue::as_bytes)
}

fn redirect(fields: Vec<AnswerField>) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::FOUND;
    for (name, value) in fields {
        put_header(response.headers_mut(), name, &value);
    }
    response
}
