//! Refusals of calls and connections, reported to the part that counts them.

use std::fmt;
use std::sync::{Arc, OnceLock};

/// The kind of refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalKind {
    /// A call that no rule allows, or of an unknown caller.
    Call,
    /// A connection without a handshake, or without a valid certificate.
    Connection,
}

impl RefusalKind {
    /// Returns the value of two that belongs to this kind, such as its counter.
    pub fn choose_by_kind<T>(self, call: T, connection: T) -> T {
        match self {
            Self::Call => call,
            Self::Connection => connection,
        }
    }
}

type Hear = Box<dyn Fn(RefusalKind) + Send + Sync>;

/// Reports refusals. Clones share one listener.
#[derive(Clone, Default)]
pub(crate) struct Refusals(Arc<OnceLock<Hear>>);

impl Refusals {
    /// Sets `hear` as the listener; only the first call of this has an effect.
    pub(crate) fn set_listener(&self, hear: impl Fn(RefusalKind) + Send + Sync + 'static) {
        self.0.get_or_init(|| Box::new(hear));
    }

    pub(crate) fn report_refusal(&self, kind: RefusalKind) {
        if let Some(hear) = self.0.get() {
            hear(kind);
        }
    }
}

impl fmt::Debug for Refusals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Refusals").finish_non_exhaustive()
    }
}
