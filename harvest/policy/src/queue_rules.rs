//! The limits of each queue, by its name.
//!
//! Owns nothing but the question: who makes the rules, an order with its overlays, answers it.

use std::fmt;
use std::sync::Arc;

use crate::account::QueueLimits;

/// The answer to the question what a queue may fetch.
type LimitLookup = dyn Fn(&str) -> QueueLimits + Send + Sync;

/// The limits of queues.
#[derive(Clone)]
pub struct QueueRules(Arc<LimitLookup>);

impl fmt::Debug for QueueRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("QueueRules")
    }
}

impl QueueRules {
    /// Makes rules of a function of the name of a queue.
    pub fn new(limits: impl Fn(&str) -> QueueLimits + Send + Sync + 'static) -> Self {
        Self(Arc::new(limits))
    }

    /// Returns the limits of the queue of a name.
    pub fn limits_of(&self, queue: &str) -> QueueLimits {
        (self.0)(queue)
    }
}

impl From<QueueLimits> for QueueRules {
    /// Returns the same limits for all queues.
    fn from(limits: QueueLimits) -> Self {
        Self::new(move |_| limits)
    }
}
