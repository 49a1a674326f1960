//! Requests for acts that want a second person.

use crate::closed_set::closed_set;

closed_set! {
    /// The kinds of act that want a second person.
    ActKind {
        /// Moves a copy into the attic.
        Remove = "remove",
        /// Destroys an item of an attic.
        Purge = "purge",
        /// Takes a volume, node or replica out of service for good.
        Retire = "retire",
        /// Accepts an anomaly that nobody will repair.
        Accept = "accept",
        /// Takes content of another root under a name.
        NewRoot = "new-root",
        /// Takes a retired volume or node back into service.
        Reinstate = "reinstate",
    }
}

closed_set! {
    /// The state of a request.
    RequestState {
        /// The request waits for a second person.
        Open = "open",
        /// The request was approved and is being carried out.
        Approved = "approved",
        /// The request was approved and carried out.
        Done = "done",
        /// The request was approved and could not be carried out.
        Failed = "failed",
        /// The request was taken back.
        Withdrawn = "withdrawn",
        /// The request was not approved in time.
        Expired = "expired",
    }
}
