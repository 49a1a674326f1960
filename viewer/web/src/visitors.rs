//! Visitors as requests show them: the one place in which a listener asks who is there.

use std::net::SocketAddr;

use axum::http::{HeaderMap, HeaderValue};
use viewer_replay::access::{PeerFacts, Visitor, VisitorSettings};

/// Returns the visitor behind a request.
pub(crate) fn visitor_of(
    settings: &VisitorSettings,
    peer: SocketAddr,
    headers: &HeaderMap,
) -> Visitor {
    let all = |name: &str| -> Vec<&[u8]> {
        headers
            .get_all(name)
            .iter()
            .map(HeaderValue::as_bytes)
            .collect()
    };
    let acl_user = all("x-pywb-acl-user");
    let forwarded_for = all("x-forwarded-for");
    settings.identify_visitor(&PeerFacts {
        address: Some(peer.ip().to_canonical()),
        acl_user: &acl_user,
        forwarded_for: &forwarded_for,
    })
}
