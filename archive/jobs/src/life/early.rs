//! The end of a job before its end: what nobody has read is counted and named first, and only then it has ended.

use archive_model::FileName;

use super::{Ending, Gap, Life, Phase, Step, UnreadFiles, place, shortened};

impl Life {
    /// Ends a job before its end. Where files may be unread that nobody has counted, they are counted first.
    pub(super) fn end_early(&mut self, ending: Ending, reason: String) -> Step {
        match self.phase {
            Phase::Reading | Phase::Comparing => {}
            Phase::Waiting => {
                return self.end(
                    ending,
                    format!("{reason}; it had not begun and read no file"),
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

    /// The unread files of a job that ends early are counted: each node that has some of them is a gap.
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
            self.add(Gap::node(&node, reason));
        }
        let reason = std::mem::take(&mut self.reason);
        self.end(ending, reason)
    }

    /// The unread files cannot be counted: the whole replica is a gap.
    pub(super) fn end_uncounted(&mut self, ending: Ending, why: &str) -> Step {
        let why = shortened(why);
        let reason =
            format!("the job ended early, and which files were not read cannot be said: {why}");
        // Whatever else is kept: this one says that nothing was counted.
        self.gaps.push(Gap::replica(reason));
        let reason = std::mem::take(&mut self.reason);
        self.end(ending, reason)
    }
}
