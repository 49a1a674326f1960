//! Delivery: the form in which a capture leaves the replay host, by who asks for it and how.
//!
//! Owns the rule that archived HTML is given as a page only where it cannot harm: to our own service worker, and then
//! for a frame; or rewritten without scripts. Every other request for a page gets the loader, which installs the
//! worker, or is led to the page that frames it. Nothing here trusts a request to be honest: a field that is missing
//! decides for the loader.
//!
//! ```
//! use viewer_replay::delivery::{DeliveryForm, FetchFacts};
//! use viewer_replay::request::Modifier;
//!
//! let of_worker = FetchFacts { worker: Some(b"iframe"), ..FetchFacts::default() };
//! assert_eq!(of_worker.choose_form(Some(Modifier::Main)), DeliveryForm::FramedPage);
//! assert_eq!(FetchFacts::default().choose_form(Some(Modifier::Main)), DeliveryForm::Loader);
//! ```

use crate::request::Modifier;

/// The field by which our service worker says what the request is for that it stands for: the destination of that
/// request, such as `iframe` or `image`, and `empty` where it has none.
pub const WORKER_FIELD: &str = "x-replay-worker";

/// The destinations that make a page within another page.
const FRAMES: [&[u8]; 4] = [b"iframe", b"frame", b"object", b"embed"];

/// The destinations that make a thread, which has a policy of its own.
const THREADS: [&[u8]; 2] = [b"worker", b"sharedworker"];

/// The facts about a request that browsers and our worker put into its header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FetchFacts<'a> {
    /// [`WORKER_FIELD`].
    pub worker: Option<&'a [u8]>,
    /// `Service-Worker`: the request is for the script of a service worker.
    pub service_worker: Option<&'a [u8]>,
    /// `Sec-Fetch-Mode`.
    pub mode: Option<&'a [u8]>,
    /// `Sec-Fetch-Dest`.
    pub destination: Option<&'a [u8]>,
    /// `Sec-Fetch-Site`.
    pub site: Option<&'a [u8]>,
}

/// The form of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryForm {
    /// A page for a frame, with its scripts, in the hands of our worker.
    FramedPage,
    /// The bytes as they are, in the hands of our worker.
    WorkerResource {
        /// Whether the bytes become a thread of their own.
        is_thread: bool,
    },
    /// The bytes as they are.
    Raw,
    /// The bytes as they are, which a browser is about to show as a page: as text where they would act.
    RawPage,
    /// A style sheet whose references lead to captures.
    StyleSheet,
    /// A page without scripts, or the bytes of anything else.
    NoScript,
    /// The page that installs our worker, and loads itself again.
    Loader,
    /// A way to the page of the other host that frames the capture.
    FramePage,
    /// Nothing: archived service workers are not run.
    ServiceWorker,
}

impl<'a> FetchFacts<'a> {
    /// Reads the facts from a header.
    pub fn read_facts(field: impl Fn(&'static str) -> Option<&'a [u8]>) -> Self {
        Self {
            worker: field(WORKER_FIELD),
            service_worker: field("service-worker"),
            mode: field("sec-fetch-mode"),
            destination: field("sec-fetch-dest"),
            site: field("sec-fetch-site"),
        }
    }

    /// Returns the form of the answer to a request with a modifier.
    pub fn choose_form(&self, modifier: Option<Modifier>) -> DeliveryForm {
        if self.is_service_worker() || modifier == Some(Modifier::ServiceWorker) {
            return DeliveryForm::ServiceWorker;
        }
        let worker = self.worker_destination();
        let is_frame = worker.is_some_and(|worker| FRAMES.contains(&worker));
        match modifier {
            Some(Modifier::Main | Modifier::InnerFrame | Modifier::Frame | Modifier::Banner) => {
                if is_frame {
                    DeliveryForm::FramedPage
                } else if worker.is_none() && is(self.destination, b"document") {
                    DeliveryForm::FramePage
                } else {
                    DeliveryForm::Loader
                }
            }
            Some(
                Modifier::Identity
                | Modifier::IdentityRedirect
                | Modifier::Script
                | Modifier::Style
                | Modifier::Image
                | Modifier::Object,
            ) => match worker {
                Some(worker) => DeliveryForm::WorkerResource {
                    is_thread: THREADS.contains(&worker),
                },
                None if self.is_navigation() => DeliveryForm::RawPage,
                None if modifier == Some(Modifier::Style) => DeliveryForm::StyleSheet,
                None => DeliveryForm::Raw,
            },
            None => DeliveryForm::NoScript,
            Some(Modifier::ServiceWorker) => DeliveryForm::ServiceWorker,
        }
    }

    /// Returns whether our worker asks.
    pub fn is_of_worker(&self) -> bool {
        self.worker_destination().is_some()
    }

    /// Returns whether the request is for the script of a service worker.
    pub fn is_service_worker(&self) -> bool {
        self.service_worker.is_some() || is(self.destination, b"serviceworker")
    }

    /// Returns whether a browser shows the answer as a page.
    pub fn is_navigation(&self) -> bool {
        is(self.mode, b"navigate")
    }

    /// Returns the destination that our worker names. A navigation is never the worker's, and neither is a request of
    /// another site: the worker asks for itself, at its own host.
    fn worker_destination(&self) -> Option<&'a [u8]> {
        let is_own = self.site.is_none() || is(self.site, b"same-origin");
        self.worker.filter(|_| is_own && !self.is_navigation())
    }
}

fn is(value: Option<&[u8]>, word: &[u8]) -> bool {
    value.is_some_and(|value| value.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGES: [Modifier; 4] = [
        Modifier::Main,
        Modifier::InnerFrame,
        Modifier::Frame,
        Modifier::Banner,
    ];

    fn facts(text: &[(&'static str, &'static str)]) -> FetchFacts<'static> {
        let text: Vec<(&str, &str)> = text.to_vec();
        FetchFacts::read_facts(|name| {
            let found = text.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| value.as_bytes())
        })
    }

    /// Fails if any request but that of our worker for a frame gets an archived page with its scripts.
    #[test]
    fn only_framed_worker_gets_pages() {
        let workers = [
            None,
            Some("iframe"),
            Some("document"),
            Some("empty"),
            Some(""),
        ];
        let modes = [None, Some("navigate"), Some("cors"), Some("same-origin")];
        let destinations = [
            None,
            Some("document"),
            Some("iframe"),
            Some("empty"),
            Some("serviceworker"),
        ];
        let sites = [None, Some("same-origin"), Some("cross-site"), Some("none")];
        let mut pages = 0;
        for worker in workers {
            for mode in modes {
                for destination in destinations {
                    for site in sites {
                        let bytes = |text: Option<&'static str>| text.map(str::as_bytes);
                        let facts = FetchFacts {
                            worker: bytes(worker),
                            service_worker: None,
                            mode: bytes(mode),
                            destination: bytes(destination),
                            site: bytes(site),
                        };
                        let may = worker == Some("iframe")
                            && mode != Some("navigate")
                            && destination != Some("serviceworker")
                            && matches!(site, None | Some("same-origin"));
                        for modifier in Modifier::NAMES.map(Modifier::from_name) {
                            let is_page = modifier.is_some_and(|own| PAGES.contains(&own));
                            let is_given = facts.choose_form(modifier) == DeliveryForm::FramedPage;
                            assert_eq!(is_given, may && is_page, "{facts:?} {modifier:?}");
                            pages += usize::from(is_given);
                        }
                        assert_ne!(facts.choose_form(None), DeliveryForm::FramedPage);
                    }
                }
            }
        }
        assert!(pages > 0);
    }

    /// Fails if a visitor without the worker gets something else than the loader, or the way to the frame page.
    #[test]
    fn pages_without_worker_get_the_loader() {
        for (fields, expected) in [
            (vec![], DeliveryForm::Loader),
            (vec![("sec-fetch-dest", "iframe")], DeliveryForm::Loader),
            (vec![("sec-fetch-dest", "empty")], DeliveryForm::Loader),
            (
                vec![("sec-fetch-dest", "document")],
                DeliveryForm::FramePage,
            ),
            (
                vec![("x-replay-worker", "document"), ("sec-fetch-dest", "empty")],
                DeliveryForm::Loader,
            ),
            (
                vec![("service-worker", "script")],
                DeliveryForm::ServiceWorker,
            ),
        ] {
            for modifier in PAGES {
                assert_eq!(
                    facts(&fields).choose_form(Some(modifier)),
                    expected,
                    "{fields:?}"
                );
            }
        }
    }

    /// Fails if raw bytes are rewritten, or a page without scripts is not.
    #[test]
    fn other_modifiers_have_their_own_forms() {
        let thread = [("x-replay-worker", "worker")];
        for (fields, modifier, expected) in [
            (&[][..], Some(Modifier::Identity), DeliveryForm::Raw),
            (&[], Some(Modifier::Style), DeliveryForm::StyleSheet),
            (&[], Some(Modifier::Image), DeliveryForm::Raw),
            (
                &[],
                Some(Modifier::ServiceWorker),
                DeliveryForm::ServiceWorker,
            ),
            (&[], None, DeliveryForm::NoScript),
            (
                &[("sec-fetch-mode", "navigate")],
                None,
                DeliveryForm::NoScript,
            ),
            (
                &[("sec-fetch-mode", "navigate")],
                Some(Modifier::Identity),
                DeliveryForm::RawPage,
            ),
            (
                &thread,
                Some(Modifier::Identity),
                DeliveryForm::WorkerResource { is_thread: true },
            ),
            (
                &[("x-replay-worker", "image")],
                Some(Modifier::Style),
                DeliveryForm::WorkerResource { is_thread: false },
            ),
            (
                &[("service-worker", "script")],
                Some(Modifier::Script),
                DeliveryForm::ServiceWorker,
            ),
        ] {
            assert_eq!(
                facts(fields).choose_form(modifier),
                expected,
                "{fields:?} {modifier:?}"
            );
        }
    }
}
