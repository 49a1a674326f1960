//! A listing as it comes: sorted, counted, ended.

use std::collections::VecDeque;

use archive_model::{FileCopy, FileName};
use archive_rpc::{InvalidMessage, StepReader};
use proto_archive::{convert, wire};

use super::{Completeness, ListEntry, ListItem, Selection};
use crate::error::ClientError;
use crate::file_status::read_replicas;

/// A reader of entries. A stream without an end, out of order or miscounted is an error, never a short listing.
pub(super) struct Entries {
    end: Option<wire::list_response::End>,
    count: u64,
    last: Option<FileName>,
    /// Whether the copies of one replica are listed: two of its nodes may have the same file.
    of_replica: bool,
}

impl Entries {
    pub(super) fn new(selection: &Selection) -> Self {
        Self {
            end: None,
            count: 0,
            last: selection.after.clone(),
            of_replica: selection.replica.is_some(),
        }
    }

    fn accept(&mut self, entry: ListEntry) -> Result<ListItem, ClientError> {
        let follows = match &self.last {
            Some(last) if self.of_replica && self.count > 0 => entry.name >= *last,
            Some(last) => entry.name > *last,
            None => true,
        };
        if !follows {
            let last = self.last.as_ref().map_or("", FileName::as_str);
            let name = &entry.name;
            return Err(ClientError::Untrusted(format!(
                "the listing is out of order: {name} after {last}"
            )));
        }
        self.last = Some(entry.name.clone());
        self.count += 1;
        Ok(ListItem::Entry(Box::new(entry)))
    }

    /// Returns the end of the listing; fails if the stream ended without one, or miscounted.
    fn complete(&mut self) -> Result<Completeness, ClientError> {
        let count = self.count;
        let Some(end) = self.end.take() else {
            return Err(ClientError::Unavailable(format!(
                "the listing was cut after {count} entries; it is not complete"
            )));
        };
        if end.count != count {
            let said = end.count;
            return Err(ClientError::Untrusted(format!(
                "the listing should have {said} entries, and has {count}"
            )));
        }
        let gaps = end
            .gaps
            .iter()
            .map(convert::read_gap)
            .collect::<Result<_, _>>()?;
        Ok(Completeness { count, gaps })
    }
}

impl StepReader for Entries {
    type Message = wire::ListResponse;
    type Item = ListItem;
    type Error = ClientError;

    const KEEPS_STEPS_BEFORE_ERROR: bool = true;

    fn read(
        &mut self,
        message: wire::ListResponse,
        out: &mut VecDeque<ListItem>,
    ) -> Result<(), ClientError> {
        if self.end.is_some() {
            let what = "the listing continues after its end";
            return Err(ClientError::Untrusted(what.to_owned()));
        }
        let files = message.entries;
        let copies = message.copies;
        let is_other = if self.of_replica {
            !files.is_empty()
        } else {
            !copies.is_empty()
        };
        if is_other {
            let what = "the listing is another one than was asked for";
            return Err(ClientError::Untrusted(what.to_owned()));
        }
        self.end = message.end;
        for file in files {
            out.push_back(self.accept(ListEntry::try_from(file)?)?);
        }
        for copy in copies {
            out.push_back(self.accept(ListEntry::from(convert::file_copy(&copy)?))?);
        }
        Ok(())
    }

    fn end(&mut self, out: &mut VecDeque<ListItem>) -> Result<(), ClientError> {
        out.push_back(ListItem::End(self.complete()?));
        Ok(())
    }
}

impl TryFrom<wire::ListEntry> for ListEntry {
    type Error = InvalidMessage;

    fn try_from(message: wire::ListEntry) -> Result<Self, InvalidMessage> {
        Ok(Self {
            name: convert::file_name("name", &message.name)?,
            size: message.size,
            root: convert::optional_root("root", &message.root)?,
            found: None,
            replicas: read_replicas(&message.replicas)?,
        })
    }
}

impl From<FileCopy> for ListEntry {
    /// Makes the entry of a copy in a listing of one replica.
    fn from(copy: FileCopy) -> Self {
        Self {
            name: copy.name.clone(),
            size: copy.size,
            root: copy.root,
            found: Some(copy),
            replicas: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use archive_rpc::StepStream;
    use tokio_stream::StreamExt;
    use tonic::Status;
    use wire::list_response::End;

    use super::*;

    fn message(names: &[&str], end: Option<u64>) -> wire::ListResponse {
        let entry = |name: &&str| wire::ListEntry {
            name: (*name).to_owned(),
            size: 1,
            root: vec![1; 32].into(),
            ..wire::ListEntry::default()
        };
        let end = end.map(|count| End {
            count,
            gaps: Vec::new(),
        });
        wire::ListResponse {
            entries: names.iter().map(entry).collect(),
            end,
            ..wire::ListResponse::default()
        }
    }

    /// Returns the message with a copy of each file in place of the file.
    fn of_copies(message: wire::ListResponse) -> wire::ListResponse {
        let copy = |file: wire::ListEntry| wire::FileEntry {
            name: file.name,
            node: "n-1".to_owned(),
            volume: "v-1".to_owned(),
            size: file.size,
            root: file.root,
            condition: wire::CopyCondition::Present.into(),
            stored: "2026-01-01T00:00:01Z".parse().ok(),
            ..wire::FileEntry::default()
        };
        wire::ListResponse {
            copies: message.entries.into_iter().map(copy).collect(),
            entries: Vec::new(),
            ..message
        }
    }

    fn one() -> Selection {
        Selection {
            replica: Some("one".parse().unwrap()),
            ..Selection::default()
        }
    }

    /// Returns the names that come, and how the listing ended.
    async fn read(
        messages: Vec<Result<wire::ListResponse, Status>>,
        selection: &Selection,
    ) -> (Vec<String>, Result<u64, String>) {
        let messages = tokio_stream::iter(messages);
        let mut entries = StepStream::new(messages, Entries::new(selection));
        let mut names = Vec::new();
        loop {
            match entries.next().await {
                Some(Ok(ListItem::Entry(entry))) => names.push(entry.name.as_str().to_owned()),
                Some(Ok(ListItem::End(end))) => {
                    assert!(entries.next().await.is_none());
                    return (names, Ok(end.count));
                }
                Some(Err(error)) => {
                    assert!(entries.next().await.is_none());
                    return (names, Err(error.to_string()));
                }
                None => panic!("a listing ended without saying so"),
            }
        }
    }

    /// Fails if a complete listing is refused because its end comes with entries, in a message of its own or after an
    /// empty one.
    #[tokio::test]
    async fn a_whole_listing_says_that_it_is() {
        for messages in [
            vec![message(&["a", "b"], None), message(&["c"], Some(3))],
            vec![message(&["a", "b", "c"], None), message(&[], Some(3))],
            vec![message(&[], None), message(&["a", "b", "c"], Some(3))],
        ] {
            let messages = messages.into_iter().map(Ok).collect();
            let (names, end) = read(messages, &Selection::default()).await;
            assert_eq!((names.concat().as_str(), end), ("abc", Ok(3)));
        }
        assert_eq!(
            read(vec![Ok(message(&[], Some(0)))], &Selection::default())
                .await
                .1,
            Ok(0)
        );
    }

    /// Fails if a listing that is cut, out of order or of another number of entries than it says counts as complete.
    #[tokio::test]
    async fn cut_or_wrong_listing_is_refused() {
        let broken = || Err(Status::unavailable("the monitor is gone"));
        for (messages, names, reason) in [
            (vec![], "", "cut after 0"),
            (vec![Ok(message(&["a"], None))], "a", "cut after 1"),
            (
                vec![Ok(message(&["a"], None)), broken()],
                "a",
                "monitor is gone",
            ),
            (
                vec![Ok(message(&["a"], Some(1))), broken()],
                "a",
                "monitor is gone",
            ),
            (
                vec![Ok(message(&["a"], Some(2)))],
                "a",
                "should have 2 entries",
            ),
            (
                vec![Ok(message(&["a"], Some(1))), Ok(message(&[], None))],
                "a",
                "after its end",
            ),
            (vec![Ok(message(&["b", "a"], Some(2)))], "b", "out of order"),
            (
                vec![Ok(message(&["a"], None)), Ok(message(&["a"], Some(2)))],
                "a",
                "out of order",
            ),
            (vec![Ok(message(&["a", "../b"], Some(2)))], "a", "`name`"),
        ] {
            let (came, end) = read(messages, &Selection::default()).await;
            assert_eq!(came.concat(), names);
            let error = end.unwrap_err();
            assert!(error.contains(reason), "{reason}: {error}");
        }
    }

    /// Fails if a listing that begins at or before the name behind which it should begin is believed.
    #[tokio::test]
    async fn a_listing_begins_where_it_was_asked_to() {
        let after = Selection {
            after: Some(FileName::new("b").unwrap()),
            ..Selection::default()
        };
        for (name, good) in [("a", false), ("b", false), ("c", true)] {
            let files = message(&[name], Some(1));
            let (_, end) = read(vec![Ok(files.clone())], &after).await;
            assert_eq!(end.is_ok(), good, "{name}");
            let replica = Selection {
                after: after.after.clone(),
                ..one()
            };
            let (_, end) = read(vec![Ok(of_copies(files))], &replica).await;
            assert_eq!(end.is_ok(), good, "{name}");
        }
    }

    /// Fails if a file that two nodes of one replica have is taken for a repeated entry, so that the listing is
    /// refused.
    #[tokio::test]
    async fn two_nodes_may_have_one_file() {
        let copies = of_copies(message(&["a", "a", "b"], Some(3)));
        let (names, end) = read(vec![Ok(copies)], &one()).await;
        assert_eq!((names.concat().as_str(), end), ("aab", Ok(3)));
    }

    /// Fails if files of the admin data pass for copies that a replica has, or the other way round.
    #[tokio::test]
    async fn listing_of_another_kind_is_refused() {
        let files = message(&["a"], Some(1));
        let copies = of_copies(files.clone());
        for (message, selection) in [(files, one()), (copies, Selection::default())] {
            let (names, end) = read(vec![Ok(message)], &selection).await;
            assert_eq!(names.len(), 0);
            let error = end.unwrap_err();
            assert!(error.contains("another one than was asked"), "{error}");
        }
    }
}
