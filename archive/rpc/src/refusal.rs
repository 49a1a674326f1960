//! Refusals of calls and connections, told to the part that counts them.

use std::fmt;
use std::sync::{Arc, OnceLock};

/// The kind of thing that was turned away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// A call that no rule allows, or of nobody who is known.
    Call,
    /// A connection: no handshake, or no certificate that is good.
    Connection,
}

impl Refused {
    /// Returns the one of two values that stands for it, such as its counter.
    pub fn choose<T>(self, call: T, connection: T) -> T {
        match self {
            Self::Call => call,
            Self::Connection => connection,
        }
    }
}

type Hear = Box<dyn Fn(Refused) + Send + Sync>;

/// Tells of refusals. Clones share one listener.
#[derive(Clone, Default)]
pub(crate) struct Refusals(Arc<OnceLock<Hear>>);

impl Refusals {
    /// From now on `hear` is told; only the first listener is.
    pub(crate) fn told_to(&self, hear: impl Fn(Refused) + Send + Sync + 'static) {
        self.0.get_or_init(|| Box::new(hear));
    }

    pub(crate) fn tell(&self, refused: Refused) {
        if let Some(hear) = self.0.get() {
            hear(refused);
        }
    }
}

impl fmt::Debug for Refusals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Refusals").finish_non_exhaustive()
    }
}
