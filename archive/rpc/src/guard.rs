//! The guard of every RPC: no handler sees a call unless the caller is known and allowed.
//!
//! The guard decides by the path, the certificate and the calls that the caller has under way, before any argument is
//! read, so that a refusal reveals nothing about what exists. A handler finds the caller with
//! [`Identity::from_request`].

use std::future::ready;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tonic::body::Body;
use tonic::codegen::http::{Request, Response};
use tonic::{Code, Status};
use tower::{Layer, Service};
use tracing::Instrument;

use crate::callers::{CallPlace, Callers};
use crate::identity::{Identity, InvalidIdentity};
use crate::kind::CallErrorKind;
use crate::refusal::{RefusalKind, Refusals};
use crate::rules::Rules;

/// The identity at the other end of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    pub(crate) address: SocketAddr,
    pub(crate) identity: Result<Arc<Identity>, InvalidIdentity>,
}

/// The layer that puts a [`Guard`] before the services.
#[derive(Clone, Debug)]
pub(crate) struct GuardLayer {
    environment: Arc<str>,
    rules: Arc<Rules>,
    callers: Callers,
    refusals: Refusals,
}

impl GuardLayer {
    pub(crate) fn new(
        environment: &str,
        rules: Rules,
        calls_per_caller: usize,
        refusals: Refusals,
    ) -> Self {
        Self {
            environment: environment.into(),
            rules: Arc::new(rules),
            callers: Callers::new(calls_per_caller),
            refusals,
        }
    }

    fn admit(&self, request: &Request<Body>) -> Result<(Arc<Identity>, CallPlace), Status> {
        let unknown = |reason: String| Status::new(Code::Unauthenticated, reason);
        let peer = request
            .extensions()
            .get::<Peer>()
            .ok_or_else(|| unknown("who asks is not known".to_owned()))?;
        let identity = peer.identity.as_ref().map_err(|e| unknown(e.to_string()))?;
        if identity.environment() != &*self.environment {
            let theirs = identity.environment();
            let ours = &self.environment;
            return Err(unknown(format!(
                "this is environment {ours:?}; the certificate is of {theirs:?}"
            )));
        }
        let refused =
            |e: crate::rules::CallRefusal| CallErrorKind::Refused.to_status(e.to_string());
        self.rules
            .check_call(request.uri().path(), identity)
            .map_err(refused)?;
        let place = self.callers.enter_call(identity)?;
        Ok((Arc::clone(identity), place))
    }
}

impl<S> Layer<S> for GuardLayer {
    type Service = Guard<S>;

    fn layer(&self, inner: S) -> Guard<S> {
        Guard {
            guard: self.clone(),
            inner,
        }
    }
}

/// A guard, which lets calls through to the services, or refuses them.
#[derive(Clone, Debug)]
pub(crate) struct Guard<S> {
    guard: GuardLayer,
    inner: S,
}

impl<S> Service<Request<Body>> for Guard<S>
where
    S: Service<Request<Body>, Response = Response<Body>>,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        match self.guard.admit(&request) {
            Ok((identity, place)) => {
                let span =
                    tracing::info_span!("rpc", path = request.uri().path(), caller = %identity);
                request.extensions_mut().insert(identity);
                let answering = self.inner.call(request).instrument(span);
                Box::pin(async move {
                    let answer = answering.await?;
                    Ok(answer.map(|body| place.until_sent(body)))
                })
            }
            Err(status) => {
                let address = request.extensions().get::<Peer>().map(|peer| peer.address);
                let address = address.map(tracing::field::display);
                tracing::info!(address, reason = status.message(), "refused");
                self.guard.refusals.report_refusal(RefusalKind::Call);
                Box::pin(ready(Ok(status.into_http())))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use tower::{ServiceExt, service_fn};

    use super::*;
    use crate::pki::tests::identity;
    use crate::role::Role;

    /// Returns the status of a call by this peer, and the caller that the handler saw.
    async fn called(peer: Option<Result<Identity, InvalidIdentity>>) -> (Code, String) {
        let rules = Rules::new().allow_call("/a.B/C", &[Role::Reader]);
        let handler = service_fn(|request: Request<Body>| async move {
            let caller = request
                .extensions()
                .get::<Arc<Identity>>()
                .map(ToString::to_string);
            Ok::<_, Infallible>(Status::new(Code::Ok, caller.unwrap_or_default()).into_http())
        });
        let mut request = Request::new(Body::empty());
        *request.uri_mut() = "https://lab:1/a.B/C".parse().unwrap();
        if let Some(identity) = peer {
            let address = SocketAddr::from(([127, 0, 0, 1], 1));
            request.extensions_mut().insert(Peer {
                address,
                identity: identity.map(Arc::new),
            });
        }
        let response = GuardLayer::new("lab", rules, 1, Refusals::default())
            .layer(handler)
            .oneshot(request)
            .await
            .unwrap();
        let status = Status::from_header_map(response.headers()).unwrap();
        (status.code(), status.message().to_owned())
    }

    /// Fails if the handler of an admitted call does not get the identity of its caller.
    #[tokio::test]
    async fn the_handler_sees_the_caller() {
        let outcome = called(Some(Ok(identity(&["officer/anna"])))).await;
        assert_eq!(outcome, (Code::Ok, "officer/anna".to_owned()));
    }

    /// Fails if a call with no certificate, an unreadable one or one of a wrong role reaches a handler.
    #[tokio::test]
    async fn nobody_gets_past() {
        assert_eq!(called(None).await.0, Code::Unauthenticated);
        assert_eq!(
            called(Some(Err(InvalidIdentity::Nobody))).await.0,
            Code::Unauthenticated
        );
        assert_eq!(
            called(Some(Ok(identity(&["harvester/h"])))).await.0,
            Code::PermissionDenied
        );
    }

    /// Fails if a caller of another environment is admitted, or the refusal does not name both environments.
    #[tokio::test]
    async fn refusal_names_both_environments() {
        let stranger = crate::pki::tests::identity_in("field", &["officer/anna"]);
        let (code, reason) = called(Some(Ok(stranger))).await;
        assert_eq!(code, Code::Unauthenticated);
        assert_eq!(
            reason,
            "this is environment \"lab\"; the certificate is of \"field\""
        );
    }
}
