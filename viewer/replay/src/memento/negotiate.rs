//! Negotiation by date: which capture is nearest, and which are beside it.

use archive_formats::date::Stamp;

use super::Neighbours;

/// The nearest capture and its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nearest {
    /// The index of the nearest capture.
    pub index: usize,
    /// The nearest capture, and those around it.
    pub neighbours: Neighbours,
}

/// Returns the capture that is nearest to a time, of captures in the order of time; the latest one if no time is
/// wanted. `None` if there are no captures.
///
/// Beyond the first or last capture that one is nearest. Of two at the same distance it is the earlier one, which was
/// there already. Several captures of one time are one memento; the index is that of the first of them.
pub fn nearest_capture(captures: &[Stamp], wanted: Option<Stamp>) -> Option<Nearest> {
    let first = *captures.first()?;
    let last = *captures.last()?;
    let this = match wanted {
        None => last,
        Some(wanted) => {
            let split = captures.partition_point(|capture| *capture <= wanted);
            let before = split.checked_sub(1).and_then(|at| captures.get(at));
            let distance = |capture: &Stamp| wanted.time().duration_since(capture.time()).abs();
            match (before, captures.get(split)) {
                (Some(before), Some(after)) if distance(after) < distance(before) => *after,
                (Some(before), _) => *before,
                (None, after) => *after.unwrap_or(&last),
            }
        }
    };
    let index = captures.partition_point(|capture| *capture < this);
    let behind = captures.partition_point(|capture| *capture <= this);
    let neighbours = Neighbours {
        this,
        first: Some(first),
        previous: index
            .checked_sub(1)
            .and_then(|at| captures.get(at))
            .copied(),
        next: captures.get(behind).copied(),
        last: Some(last),
    };
    Some(Nearest { index, neighbours })
}
