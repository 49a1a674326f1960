//! The archive as a proxy asks it: one trait, which the part `viewer` implements.
//!
//! Owns the questions. The proxy has no other way to a capture, so that every answer of it went through the one access
//! decision of the viewer, and no way at all to the web.

use std::collections::BTreeSet;
use std::net::IpAddr;

use archive_formats::date::Stamp;
use axum::body::Body;
use axum::http::{HeaderMap, Response};
use viewer_replay::request::ReplayTarget;
use viewer_replay::response::ReplyMethod;

/// A request for a capture.
#[derive(Clone, Debug)]
pub struct CaptureRequest<'a> {
    /// The address of the client.
    pub client: IpAddr,
    /// The collection that the client looks at; `None` for the one that is meant where none is named.
    pub collection: Option<&'a str>,
    /// The harvest jobs that the client looks at; `None` for all.
    pub jobs: Option<&'a BTreeSet<u64>>,
    /// The time to which the capture is nearest; `None` for now.
    pub time: Option<Stamp>,
    /// The URL. Its key has the method and the body of a request that is no GET.
    pub target: &'a ReplayTarget,
    /// Whether the bytes of the capture are wanted.
    pub method: ReplyMethod,
    /// The header of the request, for ranges and the language of errors.
    pub headers: &'a HeaderMap,
}

/// The answer to a request for a capture.
#[derive(Debug)]
pub enum CaptureAnswer {
    /// The capture, or a page that says why this client cannot have it now.
    Answered(Response<Body>),
    /// The archive has no capture that this client may know of, and these words say more.
    Missing(Vec<String>),
}

/// A request for an archive file, a record, or the metadata of a job.
#[derive(Clone, Debug)]
pub struct StoredRequest<'a> {
    /// The address of the client.
    pub client: IpAddr,
    /// The collection that the client looks at.
    pub collection: Option<&'a str>,
    /// `getFile`, `getRecord` or `getMetadata`, with its query.
    pub path_and_query: &'a str,
    /// Whether the bytes are wanted.
    pub method: ReplyMethod,
    /// The header of the request.
    pub headers: &'a HeaderMap,
}

/// The archive cannot answer now, or there is no such collection. The words are for people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoAnswer {
    /// The archive has no such collection, or the client names none and it is not clear which is meant.
    #[error("{0}")]
    Collection(String),
    /// A part of the archive does not answer.
    #[error("{0}")]
    Unavailable(String),
}

/// The archive behind a proxy.
pub trait ProxiedArchive: Send + Sync + 'static {
    /// Finds the capture that a client is shown.
    fn capture(&self, request: CaptureRequest<'_>) -> impl Future<Output = CaptureAnswer> + Send;

    /// Serves stored bytes: a file, a record, or metadata.
    fn serve_stored(
        &self,
        request: StoredRequest<'_>,
    ) -> impl Future<Output = Response<Body>> + Send;

    /// Returns the harvest jobs of which the archive has files in a collection, among some.
    ///
    /// # Errors
    ///
    /// Fails when the archive does not answer, or not as a whole.
    fn jobs_with_data(
        &self,
        collection: Option<&str>,
        jobs: &BTreeSet<u64>,
    ) -> impl Future<Output = Result<BTreeSet<u64>, NoAnswer>> + Send;

    /// Returns the names of the collections, sorted.
    fn collections(&self) -> Vec<String>;

    /// Returns the collection that is meant where none is named.
    fn sole_collection(&self) -> Option<String>;
}
