//! Jobs that end early: files that nobody has read are counted and named first, and only then the job has ended.

use archive_model::FileName;

use super::{Ending, JobGap, Life, Phase, Step, UnreadFiles, place, shortened};

impl Life {
    /// Ends a job early. If there may be unread files that nobody has counted, they are counted first.
    pub(super) fn end_early(&mut self, ending: Ending, reason: String) -> Step {
        match self.phase {
            Phase::Reading | Phase::Comparing => {}
            Phase::Waiting => {
                return self.end(
                    ending,
                    format!("{reason}; the job had not begun and read no file"),
                );
            }
            Phase::Reducing | Phase::Closing(_) | Phase::Ended(_) => {
                return self.end(ending, reason);
            }
        }
        self.settle();
        self.phase = Phase::Closing(ending);
        self.reason = reason;
        self.silent = false;
        Step::Close
    }

    /// Ends a job whose unread files are counted: each node that has some of them becomes a gap.
    pub(super) fn close(
        &mut self,
        ending: Ending,
        unread: UnreadFiles,
        after: Option<&FileName>,
    ) -> Step {
        self.unread = unread.total;
        let place = place(after);
        for (node, files) in unread.by_node {
            let reason =
                format!("{files} of its files were not read: the job ended early, {place}");
            self.add(JobGap::node(&node, reason));
        }
        let reason = std::mem::take(&mut self.reason);
        self.end(ending, reason)
    }

    /// Ends a job whose unread files cannot be counted: the whole replica becomes a gap.
    pub(super) fn end_uncounted(&mut self, ending: Ending, why: &str) -> Step {
        let why = shortened(why);
        let reason = format!("the job ended early, and its unread files cannot be counted: {why}");
        // This gap is kept in any case: it says that nothing was counted.
        self.gaps.push(JobGap::replica(reason));
        let reason = std::mem::take(&mut self.reason);
        self.end(ending, reason)
    }
}
