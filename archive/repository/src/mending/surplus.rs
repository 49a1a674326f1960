//! Surplus copies: a second good copy within one replica, left by an interrupted drain, is moved into the attic when a
//! person orders a repair.
//!
//! Owns the order: the recorded copy is read whole first, and stays. Only copies of the admitted content are moved,
//! into the attic of their volume. Nothing is done while some volume of the replica is silent, and nothing
//! automatically.

use archive_decisions::store::{Content, ReplicaRecord};
use archive_ledger::anomalies::AnomalyRow;
use archive_model::{Cause, CopyPlace, FileContent, FileCopy, Root};
use archive_rpc::CallError;

use super::{RepairContext, RepairOutcome, RepairReport};
use crate::preserver::Preserver;

impl Preserver {
    /// Moves every copy in the replica into the attic except the recorded one.
    pub(super) async fn put_surplus_aside(
        &self,
        row: &AnomalyRow,
        content: &Content,
        repair_context: &RepairContext,
    ) -> Result<RepairReport, CallError> {
        let file = &row.file;
        let replica = &row.replica;
        let look_context = self.look_context(repair_context);
        let (seen, _) = self.look_and_file(replica, file, &look_context).await?;
        if let Some(silent) = &seen.located.silent {
            let what = format!("the other copies are left alone while a part is silent: {silent}");
            return Ok(RepairReport::new(RepairOutcome::Waiting, what));
        }
        let record = self.file_record(file).await?;
        let copy = record
            .as_ref()
            .and_then(|record| record.replicas.get(replica));
        let copy = copy.filter(|copy| copy.state.is_completed());
        let Some(kept) = copy.and_then(ReplicaRecord::copy_place) else {
            return Ok(RepairReport::new(
                RepairOutcome::Waiting,
                "it is on its way into the replica",
            ));
        };
        let surplus = match surplus(&seen.located.copies, content.root, &kept) {
            Ok(surplus) if surplus.is_empty() => {
                return Ok(RepairReport::new(
                    RepairOutcome::Nothing,
                    "the replica has one copy",
                ));
            }
            Ok(surplus) => surplus,
            Err(why) => return Ok(RepairReport::new(RepairOutcome::Officer, why)),
        };
        let places: Vec<String> = surplus.iter().map(ToString::to_string).collect();
        let places = places.join(" and ");
        if repair_context.is_dry {
            let what = format!("would read {kept} whole, then put aside {places}");
            return Ok(RepairReport::new(RepairOutcome::Planned, what));
        }
        let admitted = FileContent::from(content);
        let selector = kept.copy_selector(replica);
        let reading = self.verify_or_file(selector, file, admitted, &look_context);
        if !reading.await? {
            let what = format!("{kept} is damaged; repair it first");
            return Ok(RepairReport::new(RepairOutcome::Failed, what));
        }
        let cause = Cause {
            approval: None,
            who: repair_context.who.to_string(),
            why: format!("a good copy is on {kept}; {}", repair_context.why),
        };
        let what =
            format!("{places} of replica {replica} to be put aside: a good copy is on {kept}");
        // Recorded before it is done: no act may be missing from the trail.
        self.note_repair(file, repair_context, what).await?;
        for place in &surplus {
            let calls = &self.archive.calls;
            // As it is now: it may have rotted, and leaves all the same.
            let selector = place.copy_selector(replica);
            let reading = calls.verify_copy(selector, file, calls.stall, |_| {});
            let Some(root) = reading.await?.root else {
                let what = format!("{place} cannot be read completely; {kept} is good");
                return Ok(RepairReport::new(RepairOutcome::Officer, what));
            };
            let volume = place.in_replica(replica);
            let moving = calls.replicas.put_aside(&volume, file, &root, &cause);
            let aside = match calls.reading_call(content.size, moving).await {
                Ok(aside) => aside,
                Err(error) => {
                    let what = format!("the node did not move it into the attic: {}", error.reason);
                    return Ok(RepairReport::new(RepairOutcome::Failed, what));
                }
            };
            let what = format!(
                "the surplus copy in replica {replica} on {place} is in the attic there as {}",
                aside.place.id
            );
            self.note_repair(file, repair_context, what).await?;
        }
        self.look_and_file(replica, file, &look_context).await?;
        let what = format!("put aside {places}; the copy on {kept} was read, and is good");
        Ok(RepairReport::new(RepairOutcome::Repaired, what))
    }
}

/// Returns the copies of the admitted content besides the recorded one, or why people must look. Pure.
fn surplus(
    copies: &[FileCopy],
    root: Root,
    kept: &CopyPlace,
) -> Result<Vec<CopyPlace>, &'static str> {
    let there = copies.iter().filter(|copy| copy.is_readable());
    let places: Vec<(CopyPlace, bool)> = there
        .map(|copy| (copy.place.clone(), copy.root == Some(root)))
        .collect();
    if places.iter().any(|(_, is_right)| !is_right) {
        return Err("the replica has other content under this name as well");
    }
    if !places.iter().any(|(place, _)| place == kept) {
        return Err("the recorded copy is missing; check the file, then repair it again");
    }
    let others = places.into_iter().map(|(place, _)| place);
    Ok(others.filter(|place| place != kept).collect())
}

#[cfg(test)]
mod tests {
    use archive_model::CopyCondition;
    use jiff::Timestamp;

    use super::*;

    fn place(node: &str) -> CopyPlace {
        CopyPlace {
            node: node.parse().unwrap(),
            volume: "v".parse().unwrap(),
        }
    }

    fn copy(node: &str, root: u8, condition: CopyCondition) -> FileCopy {
        FileCopy {
            name: "a".parse().unwrap(),
            place: place(node),
            size: 7,
            root: Some(Root::from_bytes([root; 32])),
            stored: Timestamp::UNIX_EPOCH,
            verified: None,
            condition,
        }
    }

    /// Fails if the recorded copy goes, if the only copy goes, or if one of other content is taken for a second copy.
    #[test]
    fn only_unrecorded_copies_of_admitted_content_are_surplus() {
        let root = Root::from_bytes([1; 32]);
        let good = |node| copy(node, 1, CopyCondition::Present);
        let surplus = |copies: &[FileCopy]| surplus(copies, root, &place("n"));
        assert_eq!(surplus(&[good("n")]), Ok(vec![]));
        assert_eq!(surplus(&[good("m"), good("n")]), Ok(vec![place("m")]));
        let missing = copy("m", 1, CopyCondition::Missing);
        assert_eq!(surplus(&[missing.clone(), good("n")]), Ok(vec![]));
        assert!(
            surplus(&[good("m")]).is_err(),
            "the recorded one is not there"
        );
        assert!(surplus(&[good("m"), copy("n", 1, CopyCondition::Missing)]).is_err());
        let other = copy("m", 2, CopyCondition::Present);
        assert!(surplus(&[good("n"), other]).is_err());
    }
}
