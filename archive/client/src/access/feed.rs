//! The feed as it comes: first a listing where it is due, then changes without holes.
//!
//! A position is handed out only once everything before it was: a caller who keeps the last position misses nothing.

use std::collections::VecDeque;
use std::time::Duration;

use archive_model::{FeedChange, FeedFile, FeedPosition, FileName};
use archive_rpc::{InvalidMessage, StepReader};
use proto_archive::wire;
use proto_archive::wire::changes_response::Step;

use crate::error::ClientError;

/// The time that the archive may be silent at least: it says every 10 seconds how far it is.
pub(super) const LONGEST_SILENCE: Duration = Duration::from_secs(30);

/// A step of the feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FeedStep {
    /// A full listing begins: the reader gave no position, or one that the archive does not know. A file that the
    /// reader has and that is not listed is no longer in the archive. Only the first step can be this one.
    Listing,
    /// A file that the archive has; sorted by name. Only within a listing.
    File(FeedFile),
    /// The listing is complete. Keep the position: the changes after it follow. The first of them may be about a file
    /// as it was listed already.
    Listed(FeedPosition),
    /// The next change. Keep its position once the change is dealt with.
    Change(FeedChange),
    /// The reader has every change up to this position. Comes again and again while nothing changes.
    CaughtUp(FeedPosition),
}

/// Checks that the steps of the feed keep its rules.
pub(super) struct Feed {
    phase: FeedPhase,
}

/// The position up to which the feed has come.
enum FeedPhase {
    /// At the beginning: no step has come. Holds the position to begin behind.
    Begin(Option<FeedPosition>),
    /// Within the listing: the last name, and the number of names so far.
    Listing(Option<FileName>, u64),
    /// Behind this change, or at the end of the listing.
    Behind(FeedPosition),
}

impl Feed {
    pub(super) const fn after_position(position: Option<&FeedPosition>) -> Self {
        let position = match position {
            Some(position) => Some(*position),
            None => None,
        };
        Self {
            phase: FeedPhase::Begin(position),
        }
    }

    /// Returns the position that changes have to follow.
    fn position(&self) -> Result<FeedPosition, ClientError> {
        match &self.phase {
            FeedPhase::Begin(Some(position)) | FeedPhase::Behind(position) => Ok(*position),
            FeedPhase::Begin(None) => Err(untrusted("the feed does not begin with a listing")),
            FeedPhase::Listing(..) => {
                Err(untrusted("the feed continues before its listing has ended"))
            }
        }
    }

    /// Reads files of the listing, which begins with the first of them.
    fn list(
        &mut self,
        files: Vec<wire::FeedFile>,
        out: &mut VecDeque<FeedStep>,
    ) -> Result<(), ClientError> {
        let (mut last, mut count) = match &mut self.phase {
            FeedPhase::Begin(_) => {
                out.push_back(FeedStep::Listing);
                (None, 0)
            }
            FeedPhase::Listing(last, count) => (last.take(), *count),
            FeedPhase::Behind(_) => return Err(untrusted("the feed lists files after changes")),
        };
        for file in files {
            let file = FeedFile::try_from(file)?;
            if let Some(last) = last.filter(|last| file.name <= *last) {
                let said = format!("the feed lists {} after {last}", file.name);
                return Err(ClientError::Untrusted(said));
            }
            last = Some(file.name.clone());
            count += 1;
            out.push_back(FeedStep::File(file));
        }
        self.phase = FeedPhase::Listing(last, count);
        Ok(())
    }
}

impl StepReader for Feed {
    type Message = wire::ChangesResponse;
    type Item = FeedStep;
    type Error = ClientError;

    fn read(
        &mut self,
        message: wire::ChangesResponse,
        out: &mut VecDeque<FeedStep>,
    ) -> Result<(), ClientError> {
        match message.step {
            Some(Step::Files(page)) => self.list(page.files, out),
            Some(Step::Listed(end)) => {
                self.list(Vec::new(), out)?;
                let position = end.position;
                let position = position.ok_or_else(|| InvalidMessage::missing_field("position"))?;
                if let FeedPhase::Listing(_, count) = self.phase
                    && count != end.count
                {
                    let said = end.count;
                    return Err(ClientError::Untrusted(format!(
                        "the feed should list {said} files, and lists {count}"
                    )));
                }
                let position = FeedPosition::from(position);
                self.phase = FeedPhase::Behind(position);
                out.push_back(FeedStep::Listed(position));
                Ok(())
            }
            Some(Step::Changes(page)) => {
                let mut position = self.position()?;
                for change in page.changes {
                    let change = FeedChange::try_from(change)?;
                    let number = change.position.number;
                    if position.number.checked_add(1) != Some(number) {
                        let last = position.number;
                        return Err(ClientError::Untrusted(format!(
                            "the feed has a hole: change {number} follows change {last}"
                        )));
                    }
                    position = change.position;
                    out.push_back(FeedStep::Change(change));
                }
                self.phase = FeedPhase::Behind(position);
                Ok(())
            }
            Some(Step::CaughtUp(said)) => {
                let position = self.position()?;
                let said = FeedPosition::from(said);
                if position != said {
                    return Err(ClientError::Untrusted(format!(
                        "the feed is at {said}, and has sent changes up to {position}"
                    )));
                }
                self.phase = FeedPhase::Behind(position);
                out.push_back(FeedStep::CaughtUp(position));
                Ok(())
            }
            None => Err(untrusted(
                "the feed has a step that this build does not know",
            )),
        }
    }

    fn end(&mut self, _out: &mut VecDeque<FeedStep>) -> Result<(), ClientError> {
        Err(ClientError::Unavailable("the feed was cut".to_owned()))
    }
}

fn untrusted(said: &str) -> ClientError {
    ClientError::Untrusted(said.to_owned())
}

#[cfg(test)]
mod tests {
    use archive_model::{ChangeKind, Root};
    use wire::ChangesResponse;
    use wire::changes_response::{Changes, Files, Listed};

    use super::*;

    const START: FeedPosition = at(5);

    const fn at(number: u64) -> FeedPosition {
        FeedPosition {
            number,
            lineage: number * 1000,
        }
    }

    fn file(name: &str) -> FeedFile {
        FeedFile {
            name: FileName::new(name).unwrap(),
            size: 7,
            root: Root::from_bytes([1; 32]),
        }
    }

    fn change(number: u64) -> FeedChange {
        FeedChange {
            position: at(number),
            kind: ChangeKind::Stored,
            file: file("a"),
        }
    }

    const fn message(step: Step) -> ChangesResponse {
        ChangesResponse { step: Some(step) }
    }

    /// Returns the steps that come of whole messages, and how the feed ended.
    async fn read(
        feed: Feed,
        messages: Vec<ChangesResponse>,
    ) -> (Vec<FeedStep>, Result<(), String>) {
        archive_rpc::testing::read_steps(feed, messages.into_iter().map(Ok).collect()).await
    }

    fn files(names: &[&str]) -> ChangesResponse {
        let files = names.iter().map(|name| file(name).into()).collect();
        message(Step::Files(Files { files }))
    }

    fn listed(count: u64) -> ChangesResponse {
        message(Step::Listed(Listed {
            count,
            position: Some(START.into()),
        }))
    }

    fn changes(numbers: &[u64]) -> ChangesResponse {
        let changes = numbers.iter().map(|number| change(*number).into());
        message(Step::Changes(Changes {
            changes: changes.collect(),
        }))
    }

    fn caught_up(number: u64) -> ChangesResponse {
        message(Step::CaughtUp(at(number).into()))
    }

    /// Fails if a listing or a change is lost on its way, or a position is handed out before what it stands for.
    #[tokio::test]
    async fn listing_and_changes_come_in_order() {
        let messages = vec![
            files(&["a", "b"]),
            files(&["c"]),
            listed(3),
            caught_up(5),
            caught_up(5),
            changes(&[6, 7]),
            caught_up(7),
        ];
        let (steps, end) = read(Feed::after_position(None), messages).await;
        let expected = vec![
            FeedStep::Listing,
            FeedStep::File(file("a")),
            FeedStep::File(file("b")),
            FeedStep::File(file("c")),
            FeedStep::Listed(START),
            FeedStep::CaughtUp(START),
            FeedStep::CaughtUp(START),
            FeedStep::Change(change(6)),
            FeedStep::Change(change(7)),
            FeedStep::CaughtUp(at(7)),
        ];
        assert_eq!(steps, expected);
        assert!(end.unwrap_err().contains("cut"), "a feed has no good end");
    }

    /// Fails if an archive without files is taken for a cut listing, or a known position for an unknown one.
    #[tokio::test]
    async fn feed_begins_with_listing_or_at_position() {
        let (steps, _) = read(Feed::after_position(None), vec![listed(0)]).await;
        assert_eq!(steps, [FeedStep::Listing, FeedStep::Listed(START)]);
        let (steps, _) = read(Feed::after_position(Some(&at(9))), vec![listed(0)]).await;
        assert_eq!(steps, [FeedStep::Listing, FeedStep::Listed(START)]);
        let (steps, _) = read(Feed::after_position(Some(&START)), vec![changes(&[6])]).await;
        assert_eq!(steps, [FeedStep::Change(change(6))]);
        let (steps, _) = read(Feed::after_position(Some(&START)), vec![caught_up(5)]).await;
        assert_eq!(steps, [FeedStep::CaughtUp(START)]);
    }

    /// Fails if a feed with a hole, out of order or miscounted is believed.
    #[tokio::test]
    async fn lying_feed_is_refused() {
        for (messages, why) in [
            (vec![changes(&[6])], "does not begin with a listing"),
            (vec![caught_up(0)], "does not begin with a listing"),
            (vec![files(&["b"]), files(&["a"])], "lists a after b"),
            (vec![files(&["a", "a"])], "lists a after a"),
            (vec![files(&["a"]), listed(2)], "should list 2"),
            (vec![files(&["a"]), changes(&[6])], "before its listing"),
            (vec![listed(0), files(&["a"])], "after changes"),
            (vec![listed(0), listed(0)], "after changes"),
            (vec![listed(0), changes(&[7])], "change 7 follows change 5"),
            (
                vec![listed(0), changes(&[6, 6])],
                "change 6 follows change 6",
            ),
            (vec![listed(0), changes(&[5])], "change 5 follows change 5"),
            (vec![listed(0), caught_up(6)], "sent changes up to 5-"),
            (vec![ChangesResponse { step: None }], "does not know"),
            (vec![message(Step::Listed(Listed::default()))], "`position`"),
        ] {
            let (_, end) = read(Feed::after_position(None), messages).await;
            let error = end.unwrap_err();
            assert!(error.contains(why), "{why}: {error}");
        }
        let another = FeedPosition {
            lineage: 1,
            ..START
        };
        let (_, end) = read(Feed::after_position(Some(&another)), vec![caught_up(5)]).await;
        assert!(end.unwrap_err().contains("sent changes up to 5-"));
    }
}
