//! The search: a URL, a collection, and which URLs are meant. It leads to the page of the answer.

use askama::Template;
use axum::body::Body;
use axum::http::{Response, StatusCode};
use viewer_replay::request::{InvalidTarget, LONGEST_URL, ReplayTarget, TargetMatch};

use super::address::{PageAddress, PagePath};
use super::layout::Layout;
use super::problem::PageProblem;
use super::{PageHost, PageRequest, page_answer, redirect};

#[derive(Template)]
#[template(path = "search.html")]
struct SearchPage {
    layout: Layout,
    /// The fault of the URL in the field.
    fault: Option<String>,
}

impl PageHost {
    /// Returns the search, or the way to what was searched for.
    pub(super) fn answer_search(
        &self,
        asked: &PageRequest<'_>,
        collection: Option<&str>,
    ) -> Result<Response<Body>, PageProblem> {
        let parameters = &asked.parameters;
        let collection = parameters.get("collection").or(collection);
        if let Some(name) = collection
            && self.parts.collections.find_collection(name).is_none()
        {
            return Err(PageProblem::NoSuchCollection(name.to_owned()));
        }
        let matching = parameters.get("match").unwrap_or("exact");
        if !parameters.has_parameter("url") {
            return Ok(self.search_page(asked, collection, matching, None));
        }
        let unnamed = self
            .parts
            .collections
            .sole_collection()
            .map(|own| own.name());
        let first = || self.parts.collections.names().next();
        let name = collection.or(unnamed).or_else(first);
        let url = parameters.get("url").unwrap_or_default().trim();
        let words = &asked.words;
        match (read(url, matching), name) {
            (Ok((target, matching)), Some(name)) => {
                let address = PageAddress::new(PagePath::Calendar {
                    collection: name.to_owned(),
                    span: String::new(),
                    url: target.url().to_owned(),
                    matching,
                });
                Ok(redirect(
                    StatusCode::SEE_OTHER,
                    &address.link_to(asked.chosen),
                ))
            }
            (Err(error), _) => {
                let fault = match error {
                    InvalidTarget::Empty => words.text("search-empty"),
                    InvalidTarget::TooLong => words.count("url-too-long-text", LONGEST_URL as u64),
                    InvalidTarget::Control(at) => words.count("url-control", at as u64 + 1),
                };
                Ok(self.search_page(asked, collection, matching, Some(fault)))
            }
            (Ok(_), None) => Err(PageProblem::NoSuchPage),
        }
    }

    fn search_page(
        &self,
        asked: &PageRequest<'_>,
        collection: Option<&str>,
        matching: &str,
        fault: Option<String>,
    ) -> Response<Body> {
        let status = match fault {
            Some(_) => StatusCode::BAD_REQUEST,
            None => StatusCode::OK,
        };
        let url = asked.parameters.get("url").unwrap_or_default();
        let here = PageAddress::new(PagePath::Home);
        let layout = self.layout(&asked.words, asked.chosen, &here);
        let page = SearchPage {
            layout: layout.with_search(url, collection, matching),
            fault,
        };
        page_answer(status, &asked.words, &page)
    }
}

/// Returns the URL of the field. With `*` it says itself which URLs are meant.
fn read(url: &str, matching: &str) -> Result<(ReplayTarget, TargetMatch), InvalidTarget> {
    let (target, own) = ReplayTarget::parse_pattern(url)?;
    let wanted = match matching {
        "prefix" => TargetMatch::Prefix,
        "domain" => TargetMatch::Domain,
        _ => TargetMatch::Exact,
    };
    match own {
        TargetMatch::Exact => Ok((target, wanted)),
        TargetMatch::Prefix | TargetMatch::Domain => Ok((target, own)),
    }
}
