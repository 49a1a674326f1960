//! The choice of the capture that is shown, and the place of its payload.
//!
//! Owns the choice among captures that are near in time, and the way from a revisit to its original, both as a state
//! machine that asks for one look-up after the other: a shell does them, and returns the answers. Access is asked about
//! each capture whose content might be shown. Does not say how a capture is shown.
//!
//! Chosen is the nearest capture that the visitor may know of. Captures that lead to themselves (`http` to `https`,
//! with or without `www`), that are a part (206) or say "not modified" (304) without being revisits are chosen only if
//! there is nothing else. If the nearest one is blocked, that is the answer: another one would hide it.
//!
//! The original of a revisit is looked for where the index or the record says (file and offset, URL and date), then
//! under its digest, as far as the shell can search by digests: the index has no order of them, so that it searches the
//! captures of one host. An original at another host that nothing names is not found, and the outcome says so. A
//! revisit may lead to a revisit, and that to the original; longer chains and circles end with a word about it. An
//! original that the visitor may not see is not shown under another name.
//!
//! ```
//! use archive_formats::cdx::Capture;
//! use archive_formats::warc::WarcType;
//! use viewer_replay::access::{AccessPolicy, AccessSubject, Visitor};
//! use viewer_replay::resolve::{ResolveOutcome, RecordFacts, ResolveStep, Resolver, StepAnswer};
//!
//! let policy = AccessPolicy::default();
//! let access = |capture: &Capture| {
//!     let subject = AccessSubject::Capture { key: &capture.key, time: capture.timestamp };
//!     policy.decide_access(&Visitor::anonymous(), subject, jiff::Timestamp::UNIX_EPOCH)
//! };
//! let capture = Capture::new("dk,a)/", "20200101000000".parse()?);
//! let mut resolver = Resolver::new();
//! let ResolveStep::Read(chosen) = resolver.take_answer(StepAnswer::Captures(vec![capture]), &access) else {
//!     panic!("the capture is read first");
//! };
//! let facts = RecordFacts::new(WarcType::Response);
//! let ResolveStep::Finished(outcome) = resolver.take_answer(StepAnswer::Record(facts), &access) else {
//!     panic!("a response is its own original");
//! };
//! assert!(matches!(outcome, ResolveOutcome::Shown(shown) if shown.capture == *chosen));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod choose;
mod facts;
mod original;

use archive_formats::cdx::Capture;
use archive_formats::date::Stamp;
use archive_formats::surt::UrlKey;

use crate::access::AccessDecision;

pub use choose::is_second_choice;
pub use facts::{RecordFacts, RevisitFacts, RevisitProfile};

use choose::Candidates;
use original::OriginalSearch;

/// The next thing to do.
#[derive(Clone, Debug, PartialEq)]
pub enum ResolveStep {
    /// Read the head of this capture's record, and answer with [`StepAnswer::Record`].
    Read(Box<Capture>),
    /// Look up the captures of a URL, the nearest to a time first; answer with [`StepAnswer::Captures`].
    FindByUrl {
        /// The URL whose captures are looked up.
        url: String,
        /// The key of the URL.
        key: UrlKey,
        /// The time that the captures are to be near to.
        time: Stamp,
    },
    /// Look up captures with a payload digest, at the URLs that can be searched, a few of them that are no revisits;
    /// answer with [`StepAnswer::Captures`].
    FindByDigest {
        /// The digest, as the revisit has it.
        digest: String,
    },
    /// Nothing more has to be done: the request ends so.
    Finished(ResolveOutcome),
}

/// The answer to a step.
#[derive(Clone, Debug)]
pub enum StepAnswer {
    /// Captures, in the order that was asked for. The first answer of all has those of the request.
    Captures(Vec<Capture>),
    /// The record of a capture.
    Record(RecordFacts),
    /// The archive does not have the file, or it has no record there.
    Missing,
    /// The record cannot be read now.
    Unavailable,
}

/// The end of a request.
#[derive(Clone, Debug, PartialEq)]
pub enum ResolveOutcome {
    /// A capture is shown.
    Shown(Box<ShownCapture>),
    /// The visitor may not see the capture.
    Refused(AccessDecision),
    /// Nothing can be shown: 404.
    NotFound(NotFoundReason),
    /// A capture could be shown, but not now: 503.
    Unavailable,
}

/// A capture that is shown.
#[derive(Clone, Debug, PartialEq)]
pub struct ShownCapture {
    /// The capture: its URL and time are those of the memento.
    pub capture: Capture,
    /// The capture whose record has the payload, if that is another one.
    pub original: Option<Capture>,
    /// The record whose HTTP head is shown.
    pub head: HeadSource,
    /// Whether the capture redirects to its own URL and nothing else is there.
    pub is_self_redirect: bool,
}

/// The record whose HTTP head is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadSource {
    /// The head of the capture.
    Capture,
    /// The head of the original: the capture has no head, or one that only says "not modified".
    Original,
}

/// The reason why there is nothing to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotFoundReason {
    /// The archive has no captures that the visitor may know of.
    NoCapture,
    /// The index has the capture, and the archive does not have its record.
    NoRecord,
    /// The capture is a revisit, and nothing that it refers to is there.
    NoOriginal,
    /// The capture is a revisit that refers to nothing, and its content was not found where it was searched. It may be
    /// at another host.
    UnnamedOriginal,
    /// The capture is a revisit of a revisit of a revisit.
    ChainTooLong,
    /// The capture is a revisit that leads back to itself.
    Circle,
}

/// The search for the capture that is shown.
///
/// [`take_answer`](Self::take_answer) is called with the captures of the request first, and then with what each step asked for.
#[derive(Clone, Debug)]
pub struct Resolver {
    state: ResolverState,
}

#[derive(Clone, Debug)]
enum ResolverState {
    /// The captures of the request are awaited.
    Beginning,
    /// The head of a chosen capture is awaited.
    Reading {
        chosen: Box<Capture>,
        candidates: Candidates,
    },
    /// The original of a revisit is looked for.
    Searching(Box<OriginalSearch>),
    /// The outcome has been returned.
    Finished(ResolveOutcome),
}

impl Default for Resolver {
    fn default() -> Self {
        Self::new()
    }
}

impl Resolver {
    /// Makes a resolver that awaits the captures of the request.
    pub const fn new() -> Self {
        Self {
            state: ResolverState::Beginning,
        }
    }

    /// Takes an answer, and returns the next step. An answer that was not asked for ends the request as unavailable;
    /// behind the end the outcome is returned once more.
    pub fn take_answer(
        &mut self,
        answer: StepAnswer,
        access: &impl Fn(&Capture) -> AccessDecision,
    ) -> ResolveStep {
        let state = std::mem::replace(
            &mut self.state,
            ResolverState::Finished(ResolveOutcome::Unavailable),
        );
        let (state, step) = match (state, answer) {
            (ResolverState::Beginning, StepAnswer::Captures(captures)) => {
                choose(Candidates::new(captures), access)
            }
            (ResolverState::Reading { chosen, candidates }, answer) => {
                read(*chosen, candidates, answer, access)
            }
            (ResolverState::Searching(mut search), answer) => {
                let step = search.take_answer(answer, access);
                (ResolverState::Searching(search), step)
            }
            (ResolverState::Finished(outcome), _) => finished(outcome),
            (ResolverState::Beginning, _) => finished(ResolveOutcome::Unavailable),
        };
        self.state = match &step {
            ResolveStep::Finished(outcome) => ResolverState::Finished(outcome.clone()),
            _ => state,
        };
        step
    }
}

fn finished(outcome: ResolveOutcome) -> (ResolverState, ResolveStep) {
    (
        ResolverState::Finished(outcome.clone()),
        ResolveStep::Finished(outcome),
    )
}

fn choose(
    mut candidates: Candidates,
    access: &impl Fn(&Capture) -> AccessDecision,
) -> (ResolverState, ResolveStep) {
    let next = candidates.next(access);
    read_next(next, candidates)
}

fn read_next(
    next: Result<Capture, ResolveOutcome>,
    candidates: Candidates,
) -> (ResolverState, ResolveStep) {
    match next {
        Ok(chosen) => {
            let chosen = Box::new(chosen);
            let step = ResolveStep::Read(chosen.clone());
            (ResolverState::Reading { chosen, candidates }, step)
        }
        Err(outcome) => finished(outcome),
    }
}

/// Decides the next step once the head of the chosen capture is read.
fn read(
    chosen: Capture,
    mut candidates: Candidates,
    answer: StepAnswer,
    access: &impl Fn(&Capture) -> AccessDecision,
) -> (ResolverState, ResolveStep) {
    let facts = match answer {
        StepAnswer::Record(facts) => facts,
        // An imported list may name a file that the archive never had, beside the archive's own row.
        StepAnswer::Missing => {
            let twin = candidates.next_twin(&chosen, access);
            return read_next(twin, candidates);
        }
        StepAnswer::Unavailable | StepAnswer::Captures(_) => {
            return finished(ResolveOutcome::Unavailable);
        }
    };
    let is_self_redirect =
        choose::leads_to_itself(&chosen, facts.status, facts.location.as_deref());
    if is_self_redirect && candidates.put_aside(&chosen) {
        return choose(candidates, access);
    }
    match facts.revisit.clone() {
        None => finished(ResolveOutcome::Shown(Box::new(ShownCapture {
            capture: chosen,
            original: None,
            head: HeadSource::Capture,
            is_self_redirect,
        }))),
        Some(revisit) => {
            let mut search = OriginalSearch::new(&chosen, &facts, revisit, is_self_redirect);
            let step = search.next(access);
            (ResolverState::Searching(Box::new(search)), step)
        }
    }
}

#[cfg(test)]
mod tests;
