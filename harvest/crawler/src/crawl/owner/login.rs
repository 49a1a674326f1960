//! Login forms before the first page of their host.
//!
//! Owns that each form of the order is sent once in a process, and that the pages of its host wait for it, whatever
//! comes of it: a login that fails stands in the crawl log, and the crawl continues. It lasts as long as the cookies
//! that it sets, so that a crawl that is resumed logs in again.

use std::sync::Arc;

use harvest_policy::address_turns::RequestTicket;
use harvest_policy::status::FetchStatus;
use harvest_policy::turns::CrawlMoment;
use url::Url;

use super::{CrawlOwner, InFlightSubject};
use crate::crawl::CrawlError;
use crate::crawl::log_line::crawl_log_line;
use crate::frontier::FrontierUri;
use crate::process::ProcessedUri;
use crate::recorder::{FinishedTry, TrySubject};

/// The annotation of a login that its host answered well: what it thinks of the password stands in the response.
const SENT: &str = "login";

/// The annotation of a login that came to nothing.
const FAILED: &str = "login:failed";

impl CrawlOwner {
    /// Returns whether the login forms of a host were sent, so that a URI in flight may go on to its fetch.
    pub(super) fn is_logged_in(
        &mut self,
        ticket: RequestTicket,
        url: &Url,
    ) -> Result<bool, CrawlError> {
        let flight = self.in_flight.get(&ticket);
        let is_uri = flight.is_some_and(|flight| matches!(flight.subject, InFlightSubject::Uri(_)));
        if !is_uri {
            return Ok(true);
        }
        let job = Arc::clone(&self.job);
        let mut forms = job.order.login_forms(url);
        let Some((number, form)) = forms.find(|(number, _)| !self.sent_logins.contains(number))
        else {
            return Ok(true);
        };
        let waiting = self.asking.entry(login_name(number)).or_default();
        waiting.push(ticket);
        if waiting.len() == 1 {
            let action = form.action.clone();
            let subject = InFlightSubject::Login { number };
            let login = self.add_prerequisite(ticket, subject, action);
            self.advance_request(login)?;
        }
        Ok(false)
    }

    /// Ends a login that could not be sent.
    pub(super) fn fail_login(
        &mut self,
        number: usize,
        uri: &FrontierUri,
        status: FetchStatus,
        annotation: Option<String>,
    ) {
        let mut line = crawl_log_line(uri, status, self.clock.now());
        line.annotations.extend(annotation);
        line.annotations.push(FAILED.to_owned());
        self.finished.push(FinishedTry {
            subject: TrySubject::Prerequisite {
                uri: uri.uri.clone(),
                answer: None,
            },
            records: Vec::new(),
            lines: vec![line],
            candidates: Vec::new(),
            content: None,
        });
        self.end_login(number, CrawlMoment::ZERO);
    }

    /// Takes note of a login that was sent, and answered or not.
    pub(super) fn handle_login(
        &mut self,
        number: usize,
        uri: String,
        processed: ProcessedUri,
        rests_until: CrawlMoment,
    ) {
        let is_good = matches!(processed.status.number(), 200..=399);
        let mut lines = processed.lines;
        for line in &mut lines {
            let annotation = if is_good { SENT } else { FAILED };
            line.annotations.push(annotation.to_owned());
        }
        self.finished.push(FinishedTry {
            subject: TrySubject::Prerequisite { uri, answer: None },
            records: processed.records,
            lines,
            candidates: processed.candidates,
            content: None,
        });
        self.end_login(number, rests_until);
    }

    fn end_login(&mut self, number: usize, rests_until: CrawlMoment) {
        self.sent_logins.insert(number);
        let waiting = self.asking.remove(&login_name(number));
        self.continue_after(waiting.unwrap_or_default(), rests_until);
    }
}

/// Returns the name under which URIs in flight wait for a login.
pub(super) fn login_name(number: usize) -> String {
    format!("login:{number}")
}
