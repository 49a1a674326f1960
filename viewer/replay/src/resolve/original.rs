//! The way from a revisit to the record that has its payload.
//!
//! Owns the order in which originals are looked for, and that the way ends: every place is read once, a chain has at
//! most two links, and reads and look-ups are counted.

use std::collections::{HashSet, VecDeque};

use archive_formats::cdx::Capture;
use archive_formats::date::Stamp;
use archive_formats::digest::{Algorithm, Digest};
use archive_formats::surt::UrlKey;

use super::facts::{RecordFacts, RevisitFacts, RevisitProfile};
use super::{HeadSource, NotFoundReason, ResolveOutcome, ResolveStep, ShownCapture, StepAnswer};
use crate::access::AccessDecision;

/// The most links of a chain: a revisit of a revisit is followed, a third one is not.
const MOST_LINKS: usize = 2;

/// The most records that are read for one request: damaged indexes name many that are of no use.
const MOST_READS: usize = 8;

/// The most captures of one look-up that are considered.
const MOST_CANDIDATES: usize = 5;

/// The search for the original of a revisit.
#[derive(Clone, Debug)]
pub(super) struct OriginalSearch {
    shown: Capture,
    has_head: bool,
    is_self_redirect: bool,
    /// The look-ups that are left, the next one first.
    lookups: VecDeque<Lookup>,
    /// The originals that were found and not read yet, the next one first.
    candidates: VecDeque<Candidate>,
    waiting: Option<PendingAnswer>,
    /// The places of all records that were read or are the revisit itself.
    visited: HashSet<RecordName>,
    /// The visited records that are revisits.
    revisits: HashSet<RecordName>,
    reads: usize,
    refusal: Option<AccessDecision>,
    is_unavailable: bool,
    failure: NotFoundReason,
}

/// The place of a record; without a file and an offset, the name under which it is known.
type RecordName = (Option<String>, Option<u64>, String, Stamp);

/// A look-up for originals.
#[derive(Clone, Debug)]
struct Lookup {
    way: LookupKey,
    /// The conditions that an original has to meet.
    wanted: OriginalQuery,
}

#[derive(Clone, Debug)]
enum LookupKey {
    Url {
        url: String,
        key: UrlKey,
        time: Stamp,
    },
    Digest(String),
}

/// The facts of an original that are known before it is found.
#[derive(Clone, Debug)]
struct OriginalQuery {
    /// The number of links from the shown capture to it.
    links: usize,
    profile: RevisitProfile,
    /// The time at which the original must have been captured.
    date: Option<Stamp>,
    digest: Option<String>,
    /// The time of the revisit.
    until: Stamp,
}

#[derive(Clone, Debug)]
struct Candidate {
    capture: Capture,
    wanted: OriginalQuery,
}

#[derive(Clone, Debug)]
enum PendingAnswer {
    Captures(OriginalQuery),
    Record(Box<Candidate>),
}

impl OriginalSearch {
    pub(super) fn new(
        shown: &Capture,
        facts: &RecordFacts,
        revisit: RevisitFacts,
        is_self_redirect: bool,
    ) -> Self {
        let mut search = Self {
            has_head: facts.status.is_some() && revisit.profile == RevisitProfile::IdenticalPayload,
            is_self_redirect,
            lookups: VecDeque::new(),
            candidates: VecDeque::new(),
            waiting: None,
            visited: HashSet::from([place(shown)]),
            revisits: HashSet::new(),
            reads: 0,
            refusal: None,
            is_unavailable: false,
            failure: NotFoundReason::NoOriginal,
            shown: shown.clone(),
        };
        search.follow(shown, facts, revisit, 1);
        search
    }

    /// Adds what a revisit refers to, in front of everything else.
    fn follow(
        &mut self,
        capture: &Capture,
        facts: &RecordFacts,
        revisit: RevisitFacts,
        links: usize,
    ) {
        self.revisits.insert(place(capture));
        let wanted = OriginalQuery {
            links,
            profile: revisit.profile,
            date: revisit.date,
            digest: facts.digest.clone().or_else(|| capture.digest.clone()),
            until: capture.timestamp,
        };
        if let Some(digest) = &wanted.digest {
            self.lookups.push_front(Lookup {
                way: LookupKey::Digest(digest.clone()),
                wanted: wanted.clone(),
            });
        }
        // Not modified is a capture of the same URL, which needs no name.
        let is_named = revisit.profile == RevisitProfile::NotModified
            || revisit.target_uri.is_some()
            || revisit.date.is_some();
        let own = capture.original.clone();
        let url = revisit.target_uri.or(own).unwrap_or_default();
        let key = if url.is_empty() {
            UrlKey::from_index(&capture.key)
        } else {
            UrlKey::parse(&url)
        };
        if let Some(direct) = direct(capture, &key, &url, &wanted) {
            self.candidates.push_front(direct);
        } else if !is_named && self.failure == NotFoundReason::NoOriginal {
            self.failure = NotFoundReason::UnnamedOriginal;
        }
        let time = revisit.date.unwrap_or(capture.timestamp);
        self.lookups.push_front(Lookup {
            way: LookupKey::Url { url, key, time },
            wanted,
        });
    }

    /// Takes an answer, and returns the next step.
    pub(super) fn take_answer(
        &mut self,
        answer: StepAnswer,
        access: &impl Fn(&Capture) -> AccessDecision,
    ) -> ResolveStep {
        match (self.waiting.take(), answer) {
            (Some(PendingAnswer::Captures(wanted)), StepAnswer::Captures(captures)) => {
                self.take_captures(captures, &wanted);
            }
            (Some(PendingAnswer::Record(candidate)), StepAnswer::Record(facts)) => {
                if let Some(outcome) = self.take_record(*candidate, &facts) {
                    return ResolveStep::Finished(outcome);
                }
            }
            (_, StepAnswer::Missing) => {}
            (_, StepAnswer::Unavailable | StepAnswer::Captures(_) | StepAnswer::Record(_)) => {
                self.is_unavailable = true;
            }
        }
        self.next(access)
    }

    /// Returns the next read or look-up, or how the search ends.
    pub(super) fn next(&mut self, access: &impl Fn(&Capture) -> AccessDecision) -> ResolveStep {
        if self.reads >= MOST_READS {
            self.candidates.clear();
            self.lookups.clear();
        }
        while let Some(candidate) = self.candidates.pop_front() {
            let decision = access(&candidate.capture);
            if !decision.is_allowed() {
                let is_stricter = |known: &AccessDecision| decision.verdict > known.verdict;
                if self.refusal.as_ref().is_none_or(is_stricter) {
                    self.refusal = Some(decision);
                }
                continue;
            }
            if !self.visited.insert(place(&candidate.capture)) {
                // A known capture makes a circle where a revisit names it, and not where it merely has the same digest.
                let is_named = candidate.wanted.date == Some(second(candidate.capture.timestamp));
                if is_named && self.revisits.contains(&place(&candidate.capture)) {
                    self.failure = NotFoundReason::Circle;
                }
                continue;
            }
            self.reads += 1;
            let step = ResolveStep::Read(Box::new(candidate.capture.clone()));
            self.waiting = Some(PendingAnswer::Record(Box::new(candidate)));
            return step;
        }
        if let Some(lookup) = self.lookups.pop_front() {
            self.waiting = Some(PendingAnswer::Captures(lookup.wanted));
            return match lookup.way {
                LookupKey::Url { url, key, time } => ResolveStep::FindByUrl { url, key, time },
                LookupKey::Digest(digest) => ResolveStep::FindByDigest { digest },
            };
        }
        ResolveStep::Finished(if self.is_unavailable {
            ResolveOutcome::Unavailable
        } else if let Some(decision) = self.refusal.take() {
            ResolveOutcome::Refused(decision)
        } else {
            ResolveOutcome::NotFound(self.failure)
        })
    }

    /// Takes captures of a look-up that may be the original: the ones with a payload of their own first.
    fn take_captures(&mut self, captures: Vec<Capture>, wanted: &OriginalQuery) {
        let mut fitting: Vec<Capture> = captures
            .into_iter()
            .filter(|capture| wanted.fits(capture))
            .collect();
        // The order is that of the answer within each class.
        fitting.sort_by_key(|capture| {
            (
                is_revisit(capture),
                wanted.date != Some(second(capture.timestamp)),
            )
        });
        for capture in fitting.into_iter().take(MOST_CANDIDATES).rev() {
            self.candidates.push_front(Candidate {
                capture,
                wanted: wanted.clone(),
            });
        }
    }

    /// Takes the record of a candidate: the search ends there if it has the payload.
    fn take_record(&mut self, candidate: Candidate, facts: &RecordFacts) -> Option<ResolveOutcome> {
        let Candidate { capture, wanted } = candidate;
        if let Some(revisit) = facts.revisit.clone() {
            if wanted.links >= MOST_LINKS {
                self.failure = NotFoundReason::ChainTooLong;
            } else {
                self.follow(&capture, facts, revisit, wanted.links + 1);
            }
            return None;
        }
        let is_answer = facts.status != Some(304);
        if !is_answer || !wanted.has_digest(facts.digest.as_deref()) {
            return None;
        }
        let head = if self.has_head {
            HeadSource::Capture
        } else {
            HeadSource::Original
        };
        Some(ResolveOutcome::Shown(Box::new(ShownCapture {
            capture: self.shown.clone(),
            original: Some(capture),
            head,
            is_self_redirect: self.is_self_redirect,
        })))
    }
}

impl OriginalQuery {
    /// Returns whether a capture may be the original.
    fn fits(&self, capture: &Capture) -> bool {
        let has_date = self
            .date
            .is_some_and(|date| date == second(capture.timestamp));
        match self.profile {
            RevisitProfile::IdenticalPayload => {
                let is_known_same = self.digest.is_some()
                    && capture.digest.is_some()
                    && self.has_digest(capture.digest.as_deref());
                is_known_same || (has_date && self.has_digest(capture.digest.as_deref()))
            }
            RevisitProfile::NotModified => {
                has_date
                    || (self.date.is_none()
                        && capture.timestamp <= self.until
                        && (capture.status == Some(200) || is_revisit(capture)))
            }
        }
    }

    /// Returns whether a digest is not known to be another one.
    fn has_digest(&self, digest: Option<&str>) -> bool {
        match (self.profile, &self.digest, digest) {
            (RevisitProfile::IdenticalPayload, Some(wanted), Some(found)) => {
                are_equal(wanted, found)
            }
            (RevisitProfile::IdenticalPayload | RevisitProfile::NotModified, _, _) => true,
        }
    }
}

/// Returns the original whose place is in the index already, as CDX of 14 fields has it.
fn direct(capture: &Capture, key: &UrlKey, url: &str, wanted: &OriginalQuery) -> Option<Candidate> {
    let record = capture.original_record.clone()?;
    let file = record.file?;
    let offset = record.offset?;
    let mut original = Capture::new(key.as_str(), wanted.date.unwrap_or(capture.timestamp));
    original.original = Some(url.to_owned());
    original.file = Some(file);
    original.offset = Some(offset);
    original.length = record.length;
    Some(Candidate {
        capture: original,
        wanted: wanted.clone(),
    })
}

fn place(capture: &Capture) -> RecordName {
    match (&capture.file, capture.offset) {
        (Some(file), Some(offset)) => (
            Some(file.clone()),
            Some(offset),
            String::new(),
            Stamp::from_time(jiff::Timestamp::UNIX_EPOCH),
        ),
        _ => (None, None, capture.key.clone(), capture.timestamp),
    }
}

/// Returns revisits refer to a second, and indexes may know milliseconds.
fn second(stamp: Stamp) -> Stamp {
    Stamp::from_time(stamp.time())
}

fn is_revisit(capture: &Capture) -> bool {
    capture.mime.as_deref() == Some("warc/revisit")
}

/// Returns whether two digests say the same: with or without a label, in any spelling.
fn are_equal(one: &str, other: &str) -> bool {
    let read = |text: &str| -> Option<Digest> {
        let labelled = text.parse().ok();
        labelled.or_else(|| Digest::parse_unlabelled(text, Algorithm::Sha1).ok())
    };
    match (read(one), read(other)) {
        (Some(one), Some(other)) => one == other,
        _ => one.eq_ignore_ascii_case(other),
    }
}
