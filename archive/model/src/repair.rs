//! The outcome of the repair of an anomaly.

use crate::closed_set::closed_set;

closed_set! {
    /// The outcome of a repair, or how it stands.
    RepairOutcome {
        /// The repair would be done: the outcome of a dry run only.
        Planned = "planned",
        /// The repair is under way.
        Progress = "progress",
        /// The copy is intact again.
        Repaired = "repaired",
        /// Some bytes are good in no replica. Nothing was touched.
        Lost = "lost",
        /// The repair cannot be done now.
        Waiting = "waiting",
        /// The anomaly needs no repair.
        Nothing = "nothing",
        /// People must decide about the anomaly.
        Officer = "officer",
        /// The repair was tried and failed.
        Failed = "failed",
    }
}
