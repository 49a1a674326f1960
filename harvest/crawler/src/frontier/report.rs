//! The queues of a frontier as a report lists them, when no URI is under way.

use archive_db::DbError;
use harvest_policy::account::QueueAccount;

use super::{Frontier, QueueNumber};

/// A queue of a frontier at rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueAtRest {
    /// Its name.
    pub name: String,
    /// The number of URIs in it.
    pub waiting: u64,
    /// Its sums.
    pub account: QueueAccount,
    /// Whether a limit has retired it.
    pub is_retired: bool,
    /// The URI that it would give next.
    pub next: Option<String>,
}

impl Frontier {
    /// Gives all queues by their numbers, those without URIs too.
    ///
    /// # Errors
    ///
    /// [`DbError`] if a queue cannot be read.
    pub fn queues_at_rest(&self) -> Result<Vec<QueueAtRest>, DbError> {
        let mut queues = Vec::new();
        for (number, queue) in (0..).map(QueueNumber).zip(&self.queues) {
            let mut next = None;
            if let Some((&(urgency, cost), &(_, from))) = queue.lanes.first_key_value() {
                let lane_of = |from| (number.0, urgency, cost, from);
                let mut rows = self.uris.range(lane_of(from)..=lane_of(u64::MAX))?;
                next = rows.next().transpose()?.map(|(_, uri)| uri.uri);
            }
            queues.push(QueueAtRest {
                name: queue.name.clone(),
                waiting: queue.lanes.values().map(|(count, _)| count).sum(),
                account: queue.account,
                is_retired: queue.is_retired,
                next,
            });
        }
        Ok(queues)
    }
}
