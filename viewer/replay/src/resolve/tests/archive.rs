//! A small archive for tests: captures, the records behind them, and the answers to every step.

use std::cell::RefCell;

use archive_formats::date::Fill;
use archive_formats::http::Head;
use archive_formats::warc::{Header, WarcType};

use super::super::*;
use super::{DIGEST, SAME};
use crate::access::{AccessPolicy, AccessSubject, RuleFile, RuleSet, Visitor};

/// Captures, and the records behind them.
#[derive(Default)]
pub(super) struct TestArchive {
    pub(super) captures: Vec<Capture>,
    pub(super) records: Vec<(Header, Option<Head>)>,
    pub(super) policy: AccessPolicy,
    pub(super) steps: RefCell<Vec<String>>,
    pub(super) is_digest_search_slow: bool,
}

fn stamp(digits: &str) -> Stamp {
    Stamp::from_query(digits, Fill::First).unwrap()
}

pub(super) fn shown_of(outcome: &ResolveOutcome) -> ShownCapture {
    let ResolveOutcome::Shown(shown) = outcome else {
        panic!("{outcome:?}");
    };
    (**shown).clone()
}

pub(super) fn refusal_of(outcome: &ResolveOutcome) -> String {
    let ResolveOutcome::Refused(decision) = outcome else {
        panic!("{outcome:?}");
    };
    decision.to_string()
}

impl TestArchive {
    pub(super) fn with_rules(rules: &'static str) -> Self {
        let file = RuleFile {
            name: "rules",
            text: rules.as_bytes(),
        };
        Self {
            policy: AccessPolicy {
                rules: RuleSet::parse([file]).unwrap(),
                ..AccessPolicy::default()
            },
            ..Self::default()
        }
    }

    /// Adds a record, with the fields of its WARC header and the HTTP head of its block.
    pub(super) fn add(
        &mut self,
        url: &str,
        time: &str,
        kind: WarcType,
        fields: &[(&str, &str)],
        head: &str,
    ) -> &mut Capture {
        let mut header = format!("WARC/1.1\r\nWARC-Type: {kind}\r\n");
        for (name, value) in fields {
            let line = format!("{name}: {value}\r\n");
            header.push_str(&line);
        }
        let header = Header::parse(format!("{header}\r\n").as_bytes());
        let head = (!head.is_empty())
            .then(|| Head::read_head(&mut format!("{head}\r\n\r\n").as_bytes(), 1000).unwrap());
        let mut capture = Capture::new(UrlKey::parse(url).as_str(), stamp(time));
        capture.original = Some(url.to_owned());
        capture.status = head.as_ref().and_then(Head::status);
        capture.digest = header.text_of("WARC-Payload-Digest").map(String::from);
        capture.mime = (kind == WarcType::Revisit).then(|| "warc/revisit".to_owned());
        capture.file = Some("x.warc.gz".to_owned());
        capture.offset = Some(self.records.len() as u64);
        self.records.push((header, head));
        self.captures.push(capture);
        self.captures.last_mut().unwrap()
    }

    pub(super) fn response(&mut self, url: &str, time: &str, digest: &str) -> &mut Capture {
        self.add(
            url,
            time,
            WarcType::Response,
            &[("WARC-Payload-Digest", digest)],
            "HTTP/1.1 200 OK",
        )
    }

    pub(super) fn redirect(&mut self, url: &str, time: &str, location: &str) -> &mut Capture {
        let head = format!("HTTP/1.1 301 Moved\r\nLocation: {location}");
        let capture = self.add(url, time, WarcType::Response, &[], &head);
        capture.redirect = Some(location.to_owned());
        capture
    }

    pub(super) fn revisit(
        &mut self,
        url: &str,
        time: &str,
        profile: &str,
        refers_to: Option<(&str, &str)>,
    ) -> &mut Capture {
        let mut fields = vec![("WARC-Profile", profile)];
        if let Some((uri, date)) = refers_to {
            fields.extend([
                ("WARC-Refers-To-Target-URI", uri),
                ("WARC-Refers-To-Date", date),
            ]);
        }
        let is_same = profile == SAME;
        if is_same {
            fields.push(("WARC-Payload-Digest", DIGEST));
        }
        let head = if is_same {
            "HTTP/1.1 200 OK"
        } else {
            "HTTP/1.1 304 Not Modified"
        };
        self.add(url, time, WarcType::Revisit, &fields, head)
    }

    fn nearest(&self, key: &str, time: Stamp) -> Vec<Capture> {
        let mut found: Vec<Capture> = self
            .captures
            .iter()
            .filter(|c| c.key == key)
            .cloned()
            .collect();
        found.sort_by_key(|c| c.timestamp.time().duration_since(time.time()).abs());
        found
    }

    pub(super) fn access(&self, capture: &Capture) -> AccessDecision {
        let subject = AccessSubject::Capture {
            key: &capture.key,
            time: capture.timestamp,
        };
        self.policy
            .decide_access(&Visitor::anonymous(), subject, stamp("2026").time())
    }

    fn answer(&self, step: &ResolveStep) -> StepAnswer {
        match step {
            ResolveStep::Read(capture) => {
                let at = usize::try_from(capture.offset.unwrap_or(u64::MAX)).unwrap();
                self.steps.borrow_mut().push(format!("read {at}"));
                match self.records.get(at) {
                    None if at == 404 => StepAnswer::Missing,
                    None => StepAnswer::Unavailable,
                    Some((header, head)) => {
                        let kind = WarcType::from_bytes(&header.get("WARC-Type").unwrap());
                        StepAnswer::Record(RecordFacts::read_facts(kind, header, head.as_ref()))
                    }
                }
            }
            ResolveStep::FindByUrl { key, time, .. } => {
                self.steps.borrow_mut().push(format!("url {key}"));
                StepAnswer::Captures(self.nearest(key.as_str(), *time))
            }
            ResolveStep::FindByDigest { digest } => {
                self.steps.borrow_mut().push("digest".to_owned());
                if self.is_digest_search_slow {
                    return StepAnswer::Unavailable;
                }
                let same = |c: &&Capture| c.digest.as_ref() == Some(digest);
                StepAnswer::Captures(self.captures.iter().filter(same).cloned().collect())
            }
            ResolveStep::Finished(outcome) => panic!("nothing answers {outcome:?}"),
        }
    }

    pub(super) fn resolve(&self, url: &str, time: &str) -> ResolveOutcome {
        let access = |capture: &Capture| self.access(capture);
        let mut resolver = Resolver::new();
        let captures = self.nearest(UrlKey::parse(url).as_str(), stamp(time));
        let mut step = resolver.take_answer(StepAnswer::Captures(captures), &access);
        for _ in 0..100 {
            if let ResolveStep::Finished(outcome) = step {
                // The end stays the end.
                let again = resolver.take_answer(StepAnswer::Missing, &access);
                assert_eq!(again, ResolveStep::Finished(outcome.clone()));
                return outcome;
            }
            step = resolver.take_answer(self.answer(&step), &access);
        }
        panic!("no end after {:?}", self.steps.borrow());
    }

    /// Returns the offsets of what is shown: of the capture, and of its original.
    pub(super) fn shown(&self, url: &str, time: &str) -> (u64, Option<u64>) {
        let shown = shown_of(&self.resolve(url, time));
        let original = shown.original.map(|c| c.offset.unwrap());
        (shown.capture.offset.unwrap(), original)
    }
}
