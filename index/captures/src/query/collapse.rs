//! Captures that follow each other and are alike in a field count as one.

use super::filter::Field;
use super::matches::Match;

/// Which capture of a group is given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keep {
    /// The first one that is met.
    #[default]
    First,
    /// The last one that is met.
    Last,
}

/// Makes one of neighbours that are alike in a field, or in the first characters of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collapse {
    /// The field.
    pub field: Field,
    /// How many characters are compared; none: all.
    pub characters: Option<usize>,
    /// Which of the captures is given.
    pub keep: Keep,
}

impl Collapse {
    /// The part of a capture that is compared.
    pub(crate) fn value(&self, found: &Match) -> String {
        let text = self.field.text(&found.capture);
        match self.characters {
            None => text.into_owned(),
            Some(count) => text.chars().take(count).collect(),
        }
    }
}

/// A step of collapsing, and the group that it is in.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    collapse: Collapse,
    value: Option<String>,
    held: Option<Match>,
}

impl Step {
    /// A step that is in the group of this value, if there is one.
    pub(crate) const fn new(collapse: Collapse, value: Option<String>) -> Self {
        Self {
            collapse,
            value,
            held: None,
        }
    }

    /// Takes a capture; gives the one that comes out, if one does.
    pub(crate) fn push(&mut self, found: Match) -> Option<Match> {
        let value = self.collapse.value(&found);
        let is_same = self.value.as_ref() == Some(&value);
        self.value = Some(value);
        match self.collapse.keep {
            Keep::First => (!is_same).then_some(found),
            Keep::Last => {
                let before = self.held.replace(found);
                if is_same { None } else { before }
            }
        }
    }

    /// The value of the group that the last capture came out of, where the first one of a group is given: the others of the
    /// group are left out when the query goes on. Where the last one is given, its group is over.
    pub(crate) fn first_value(&self) -> Option<&str> {
        match self.collapse.keep {
            Keep::First => self.value.as_deref(),
            Keep::Last => None,
        }
    }

    /// Gives the capture that is held back, at the end.
    pub(crate) const fn finish(&mut self) -> Option<Match> {
        self.held.take()
    }
}
