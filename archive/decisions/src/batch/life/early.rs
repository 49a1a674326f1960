//! Jobs that end early: files that nobody has read are counted and named first, and only then the job has ended.

use archive_model::FileName;

use super::{JobEnding, JobGap, JobLife, JobPhase, JobStep, UnreadFiles, place, shorten_words};

impl JobLife {
    /// Ends a job early. If there may be unread files that nobody has counted, they are counted first.
    pub(super) fn end_early(&mut self, ending: JobEnding, reason: String) -> JobStep {
        match self.phase {
            JobPhase::Reading | JobPhase::Comparing => {}
            JobPhase::Waiting => {
                return self.end(
                    ending,
                    format!("{reason}; the job had not begun and read no file"),
                );
            }
            JobPhase::Reducing | JobPhase::Closing(_) | JobPhase::Ended(_) => {
                return self.end(ending, reason);
            }
        }
        self.settle();
        self.phase = JobPhase::Closing(ending);
        self.reason = reason;
        self.silent = false;
        JobStep::Close
    }

    /// Ends a job whose unread files are counted: each node that has some of them becomes a gap.
    pub(super) fn close_early(
        &mut self,
        ending: JobEnding,
        unread: UnreadFiles,
        after: Option<&FileName>,
    ) -> JobStep {
        self.unread = unread.total;
        let place = place(after);
        for (node, files) in unread.by_node {
            let reason =
                format!("{files} of its files were not read: the job ended early, {place}");
            self.add_gap(JobGap::node_gap(&node, reason));
        }
        let reason = std::mem::take(&mut self.reason);
        self.end(ending, reason)
    }

    /// Ends a job whose unread files cannot be counted: the whole replica becomes a gap.
    pub(super) fn end_uncounted(&mut self, ending: JobEnding, why: &str) -> JobStep {
        let why = shorten_words(why);
        let reason = format!("the job ended early, and its unread files cannot be counted: {why}");
        // This gap is kept in any case: it says that nothing was counted.
        self.gaps.push(JobGap::replica_gap(reason));
        let reason = std::mem::take(&mut self.reason);
        self.end(ending, reason)
    }
}
