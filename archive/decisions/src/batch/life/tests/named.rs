//! Jobs over files by their names.

use super::*;

/// Fails if a silent node makes a job partial that has read every file it names, or a name that nobody has read does
/// not.
#[test]
fn named_job_is_done_once_all_read() {
    for (unread, ending) in [(0, JobEnding::Done), (1, JobEnding::Partial)] {
        let mut history = JobHistory::running();
        history.is_by_name = true;
        history.say(looked(&["a"], &["b"]));
        history.say(JobEvent::Finished(vec![gap("b")]));
        history.say(compared(unread));
        history.say(JobEvent::Reduced);
        assert_eq!(history.life.ending(), Some(ending));
        assert_eq!(history.life.gaps.len(), 1, "it is still told");
    }
}
