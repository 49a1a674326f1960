//! The calls that each caller has under way: no caller may keep others from working.
//!
//! A caller is the identity in the certificate, not the connection: one that connects twice is counted once. People and
//! harvesters are limited. Parts of the archive are not: the certificate of a part stands for all who ask that part,
//! and a limit on a viewer would refuse one reader for what others read. A part limits those who ask it by itself: by
//! this table or, where they have no certificate, by its settings (`replay.requests` and `replay.records` of a viewer).

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http_body::{Body as HttpBody, Frame, SizeHint};
use parking_lot::{Mutex, MutexGuard};
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::Bytes;

use crate::identity::Identity;
use crate::kind::CallErrorKind;

/// The setting of the most calls of one caller.
const SETTING: &str = "rpc.calls_per_caller";

/// The calls under way, by caller.
#[derive(Clone, Debug)]
pub(crate) struct Callers {
    most: usize,
    under_way: Arc<Mutex<HashMap<Arc<str>, usize>>>,
}

/// The place of a call under way; it is free again when this is dropped. Calls of parts of the archive are not counted.
#[derive(Debug)]
pub(crate) struct CallPlace {
    counted: Option<(Callers, Arc<str>)>,
}

impl Callers {
    pub(crate) fn new(most: usize) -> Self {
        Self {
            most,
            under_way: Arc::default(),
        }
    }

    /// Counts one more call of the caller; refuses it if the caller has too many.
    pub(crate) fn enter_call(&self, caller: &Identity) -> Result<CallPlace, Status> {
        let mut grants = caller.grants().iter();
        if grants.any(|grant| !grant.role().is_personal()) {
            return Ok(CallPlace { counted: None });
        }
        let name: Arc<str> = caller.to_string().into();
        let mut under_way = self.lock();
        let count = under_way.entry(Arc::clone(&name)).or_default();
        if *count >= self.most {
            let most = self.most;
            return Err(CallErrorKind::Unavailable.to_status(format!(
                "{name} has {most} calls under way here, and may have no more at once (`{SETTING}`); let some end, then \
                 ask again"
            )));
        }
        *count += 1;
        drop(under_way);
        Ok(CallPlace {
            counted: Some((self.clone(), name)),
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, usize>> {
        self.under_way.lock()
    }
}

impl CallPlace {
    /// Keeps the place until the answer was sent to its end, or is dropped.
    pub(crate) fn until_sent(self, answer: Body) -> Body {
        if self.counted.is_none() {
            return answer;
        }
        Body::new(CountedBody {
            answer,
            _place: self,
        })
    }
}

impl Drop for CallPlace {
    fn drop(&mut self) {
        let Some((callers, name)) = self.counted.take() else {
            return;
        };
        let mut under_way = callers.lock();
        if let Some(count) = under_way.get_mut(&name) {
            *count -= 1;
            if *count == 0 {
                under_way.remove(&name);
            }
        }
    }
}

/// An answer that holds the place of its call.
struct CountedBody {
    answer: Body,
    _place: CallPlace,
}

impl HttpBody for CountedBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        Pin::new(&mut self.answer).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.answer.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.answer.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pki::tests::identity;
    use crate::role::Role;

    /// Fails if one caller's calls count against another, or a call that ended still counts.
    #[test]
    fn each_caller_has_its_own_places() {
        let callers = Callers::new(2);
        let anna = identity(&["reader/anna"]);
        let ben = identity(&["reader/ben"]);
        let one = callers.enter_call(&anna).unwrap();
        let _two = callers.enter_call(&anna).unwrap();
        let refused = callers.enter_call(&anna).unwrap_err();
        assert_eq!(
            CallErrorKind::from_status(&refused),
            CallErrorKind::Unavailable
        );
        for said in ["reader/anna", "2 calls", "`rpc.calls_per_caller`"] {
            assert!(refused.message().contains(said), "{refused}");
        }
        let _bens = callers.enter_call(&ben).unwrap();
        drop(one);
        let _again = callers.enter_call(&anna).unwrap();
        assert!(callers.enter_call(&anna).is_err());
    }

    /// Fails if the table of callers keeps those who have gone.
    #[test]
    fn callers_without_calls_are_forgotten() {
        let callers = Callers::new(1);
        drop(callers.enter_call(&identity(&["reader/anna"])).unwrap());
        assert!(callers.lock().is_empty());
    }

    /// Fails if a part has no more calls than one of its callers, as a viewer with many readers, or if a person has.
    #[test]
    fn people_are_limited_and_parts_are_not() {
        let callers = Callers::new(1);
        for role in Role::ALL {
            let caller = identity(&[&format!("{role}/one")]);
            let _first = callers.enter_call(&caller).unwrap();
            let second = callers.enter_call(&caller);
            assert_eq!(second.is_err(), role.is_personal(), "{role}");
        }
    }
}
