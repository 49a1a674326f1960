//! The outcome of the repair of an anomaly.

use crate::closed_set::closed_set;

closed_set! {
    /// The outcome of a repair, or how it stands.
    RepairOutcome {
        /// Only of a dry run: this would be done.
        Planned = "planned",
        /// It is being done.
        Progress = "progress",
        /// It is as it should be again.
        Repaired = "repaired",
        /// Some of it is good nowhere. Nothing was touched.
        Lost = "lost",
        /// It cannot be done now.
        Waiting = "waiting",
        /// There is nothing to do.
        Nothing = "nothing",
        /// People must decide.
        Officer = "officer",
        /// It was tried, and did not work.
        Failed = "failed",
    }
}
