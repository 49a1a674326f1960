//! A page of an answer that a node or monitor sends in many messages.

use archive_model::Gap;

/// A page of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerPage<T> {
    /// The items, in the order of the answer.
    pub items: Vec<T>,
    /// The parts that the answer lacks, in the last page; `None` in the pages before.
    pub end: Option<Vec<Gap>>,
}
