//! The choice among captures that are near in time.

use std::collections::VecDeque;

use archive_formats::cdx::Capture;
use archive_formats::surt::UrlKey;
use url::Url;

use super::{NotFoundReason, ResolveOutcome};
use crate::access::{AccessDecision, AccessVerdict};

/// The captures of a request that were not chosen yet, the nearest first.
#[derive(Clone, Debug)]
pub(super) struct Candidates {
    left: VecDeque<Capture>,
    /// Captures that are shown only if there is nothing else, the nearest first.
    second_choice: VecDeque<Capture>,
    /// Whether the second choice is what is left.
    is_second_choice: bool,
}

impl Candidates {
    pub(super) fn new(captures: Vec<Capture>) -> Self {
        Self {
            left: captures.into(),
            second_choice: VecDeque::new(),
            is_second_choice: false,
        }
    }

    /// Returns the next capture to read, or how the request ends without one.
    pub(super) fn next(
        &mut self,
        access: &impl Fn(&Capture) -> AccessDecision,
    ) -> Result<Capture, ResolveOutcome> {
        while let Some(capture) = self.left.pop_front() {
            let decision = access(&capture);
            match decision.verdict {
                AccessVerdict::Exclude => {}
                AccessVerdict::Block => return Err(ResolveOutcome::Refused(decision)),
                AccessVerdict::Allow if is_second_choice(&capture) => {
                    self.second_choice.push_back(capture);
                }
                AccessVerdict::Allow => return Ok(capture),
            }
        }
        self.is_second_choice = true;
        let nothing = ResolveOutcome::NotFound(NotFoundReason::NoCapture);
        self.second_choice.pop_front().ok_or(nothing)
    }

    /// Returns the next capture of the same key and second, or how the request ends without one: it is the same capture
    /// as it lies in another file, or as somebody else has listed it.
    pub(super) fn next_twin(
        &mut self,
        capture: &Capture,
        access: &impl Fn(&Capture) -> AccessDecision,
    ) -> Result<Capture, ResolveOutcome> {
        let second = |capture: &Capture| capture.timestamp.time().as_second();
        let is_twin =
            |other: &Capture| other.key == capture.key && second(other) == second(capture);
        while let Some(twin) = take_first(&mut self.left, is_twin)
            .or_else(|| take_first(&mut self.second_choice, is_twin))
        {
            let decision = access(&twin);
            match decision.verdict {
                AccessVerdict::Exclude => {}
                AccessVerdict::Block => return Err(ResolveOutcome::Refused(decision)),
                AccessVerdict::Allow => return Ok(twin),
            }
        }
        Err(ResolveOutcome::NotFound(NotFoundReason::NoRecord))
    }

    /// Keeps a capture for the case that there is nothing else, and returns whether to continue with the next one.
    pub(super) fn put_aside(&mut self, capture: &Capture) -> bool {
        if self.is_second_choice {
            return false;
        }
        self.second_choice.push_back(capture.clone());
        true
    }
}

fn take_first(
    captures: &mut VecDeque<Capture>,
    is_wanted: impl Fn(&Capture) -> bool,
) -> Option<Capture> {
    let at = captures.iter().position(is_wanted)?;
    captures.remove(at)
}

/// Returns whether a capture is shown only where there is nothing else: a part, or a redirect to its own URL.
pub fn is_second_choice(capture: &Capture) -> bool {
    let is_revisit = capture.mime.as_deref() == Some("warc/revisit");
    let is_poor = match capture.status {
        Some(206) => true,
        Some(304) => !is_revisit,
        Some(status) => status < 200,
        None => false,
    };
    is_poor || leads_to_itself(capture, capture.status, capture.redirect.as_deref())
}

/// Returns whether a capture is a redirect to its own key: following it would lead to it again.
pub(super) fn leads_to_itself(
    capture: &Capture,
    status: Option<u16>,
    location: Option<&str>,
) -> bool {
    let is_redirect = status.is_some_and(|status| (300..400).contains(&status) && status != 304);
    let (true, Some(location), Some(own)) = (is_redirect, location, &capture.original) else {
        return false;
    };
    let location = location.trim();
    if location.is_empty() || location == "-" {
        return false;
    }
    let key = match Url::parse(own).and_then(|own| own.join(location)) {
        Ok(url) => UrlKey::parse(url.as_str()),
        Err(_) => UrlKey::parse(location),
    };
    key.as_str() == capture.key
}
