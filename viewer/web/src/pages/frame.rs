//! The frame page: a capture of the replay host in a frame that can reach nothing, below a banner that says what it is.
//!
//! Owns the policy that keeps the frame in: it loads from the replay host and from nowhere else, and scripts in it
//! cannot navigate this page. Does not read the capture: which one is shown is chosen by the index, as the replay host
//! chooses it.

use archive_formats::date::Stamp;
use askama::Template;
use axum::body::Body;
use axum::http::header::CONTENT_SECURITY_POLICY;
use axum::http::{HeaderValue, Response, StatusCode};
use viewer_replay::request::{Addresses, Modifier, ReplayTarget, RequestedTime, TargetMatch};

use super::address::{PageAddress, PagePath};
use super::layout::Layout;
use super::lookup::{NearestCapture, url_of};
use super::problem::{PageProblem, nothing_visible};
use super::shown_url::ShownUrl;
use super::texts::machine_time;
use super::{PageHost, PageVisit, page_answer, redirect};

/// A link to a capture before or after the one that is shown.
#[derive(Debug)]
struct Neighbour {
    href: String,
    /// The time of the capture.
    moment: String,
    machine: String,
}

#[derive(Template)]
#[template(path = "frame.html")]
struct FramePage {
    layout: Layout,
    url: ShownUrl,
    moment: String,
    machine: String,
    previous: Option<Neighbour>,
    next: Option<Neighbour>,
    calendar: String,
    /// The capture on the replay host, for a frame.
    framed: String,
    /// The capture on the replay host, as a page of its own without scripts.
    plain: String,
}

impl PageHost {
    /// Returns the page that frames a capture. Its address has the time of the capture: others lead there.
    pub(super) async fn frame_page(
        &self,
        visit: &PageVisit,
        time: Option<&RequestedTime>,
        target: &ReplayTarget,
    ) -> Result<Response<Body>, PageProblem> {
        let collection = visit.collection.name();
        let wanted = time.map(RequestedTime::stamp);
        let capture = match self.find_nearest(visit, target.key(), wanted).await? {
            NearestCapture::Visible(capture) => *capture,
            NearestCapture::Blocked => return Err(PageProblem::Blocked),
            NearestCapture::Nothing => {
                let matching = TargetMatch::Exact;
                return Err(nothing_visible(false, collection, target.url(), matching));
            }
        };
        let this = capture.timestamp;
        let url = url_of(&capture, target);
        let is_here = time.is_some_and(|time| time.digits() == this.to_string());
        if !is_here {
            return Ok(redirect(StatusCode::FOUND, &visit.frame(this, url)));
        }
        let url = url.to_owned();
        let found = self.times_beside(visit, &capture).await?;
        let words = &visit.words;
        let neighbour = |stamp: Stamp| Neighbour {
            href: visit.frame(stamp, &url),
            moment: words.moment(stamp),
            machine: machine_time(stamp),
        };
        let addresses = Addresses::new(&self.parts.replay, collection);
        let here = PageAddress::new(PagePath::Frame {
            collection: collection.to_owned(),
            time: Some(this),
            url: url.clone(),
        });
        let layout = self.layout(words, visit.chosen, &here);
        let page = FramePage {
            layout: layout.with_search(&url, Some(collection), "exact"),
            moment: words.moment(this),
            machine: machine_time(this),
            previous: found.previous.map(neighbour),
            next: found.next.map(neighbour),
            calendar: visit.link(&visit.calendar("", &url, TargetMatch::Exact)),
            framed: addresses.memento_address(this, Some(Modifier::Main), &url),
            plain: addresses.memento_address(this, None, &url),
            url: ShownUrl::new(&url),
        };
        let mut response = page_answer(StatusCode::OK, words, &page);
        let policy = format!("{}; frame-src {}", super::POLICY, self.parts.replay);
        // An origin of the settings is visible ASCII; without a policy of its own the page has the one that allows no
        // frame.
        if let Ok(policy) = HeaderValue::from_str(&policy) {
            let headers = response.headers_mut();
            headers.insert(CONTENT_SECURITY_POLICY, policy);
        }
        Ok(response)
    }
}
