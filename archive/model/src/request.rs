//! Requests for acts that want a second person.

use crate::closed_set::closed_set;

closed_set! {
    /// The kinds of act that want a second person.
    ActKind {
        /// A copy goes into the attic.
        Remove = "remove",
        /// An item of an attic is destroyed.
        Purge = "purge",
        /// A volume, node or replica is out of service for good.
        Retire = "retire",
        /// An anomaly is lived with.
        Accept = "accept",
        /// Content of another root is taken under a name.
        NewRoot = "new-root",
        /// A retired volume or node is in service again.
        Reinstate = "reinstate",
    }
}

closed_set! {
    /// The state of a request.
    RequestState {
        /// It waits for a second person.
        Open = "open",
        /// It was approved and is being done.
        Approved = "approved",
        /// It was approved and done.
        Done = "done",
        /// It was approved and could not be done.
        Failed = "failed",
        /// It was taken back.
        Withdrawn = "withdrawn",
        /// Nobody approved it in time.
        Expired = "expired",
    }
}
