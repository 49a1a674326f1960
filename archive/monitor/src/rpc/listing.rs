//! A listing under way: nodes' messages in, merged messages out.
//!
//! Its reader draws it: nothing runs, and nothing is held beyond the buffers of the nodes' connections, while nobody
//! asks for more. Entries that are ready are sent before anything is waited for, so that one slow node does not make
//! the reader believe that the monitor stalls.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use archive_model::ReplicaId;
use archive_rpc::{CallErrorKind, Page};
use futures_util::Stream;
use proto_archive::wire;
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;
use tonic::Status;

use super::convert;
use super::nodes_client::{Messages, Reason};
use crate::listing::Merge;
use crate::metrics::Instruments;
use crate::nodes::Address;

/// A listing, from its first entry to its end.
pub(super) struct Listing {
    pub(super) replica: ReplicaId,
    pub(super) merge: Merge<wire::FileEntry>,
    /// The nodes that are listing, by their index in the merge.
    pub(super) sources: Vec<(Address, Option<Messages>)>,
    pub(super) instruments: Instruments,
    pub(super) stop: CancellationToken,
    /// The entries of the next message.
    pub(super) page: Page<wire::FileEntry>,
    /// The number of names that the nodes have compared with their disks, each as it said last.
    pub(super) looked: Vec<u64>,
    pub(super) _permit: OwnedSemaphorePermit,
}

/// The result of waiting.
enum Event {
    /// A message, or the end of them, from a node.
    Message(usize, Option<Result<wire::FilesResponse, Status>>),
    /// No message has come yet: entries that are ready go out first.
    NotYet,
    /// The monitor stops.
    Stopped,
}

impl Listing {
    /// Returns the next message, and the listing unless that was the last.
    pub(super) async fn next(mut self) -> (Result<wire::FilesResponse, Status>, Option<Self>) {
        loop {
            while let Some(entry) = self.merge.pull_entry() {
                self.instruments.listing_entries.inc();
                if let Some(entries) = self.page.push(entry) {
                    return (Ok(files(entries)), Some(self));
                }
            }
            if self.merge.is_finished() {
                let mut message = files(self.page.take_page());
                message.end = Some(self.end());
                return (Ok(message), None);
            }
            match self.wait(self.page.is_empty()).await {
                Event::Message(index, Some(Ok(said))) if is_looking(&said) => {
                    // The caller that waits hears of it, or would take a long look for a stall.
                    if let Some(looked) = self.looked.get_mut(index) {
                        *looked = said.looked;
                    }
                    let mut message = files(self.page.take_page());
                    message.looked = self.looked.iter().sum();
                    return (Ok(message), Some(self));
                }
                Event::Message(index, message) => self.take(index, message),
                Event::NotYet => return (Ok(files(self.page.take_page())), Some(self)),
                Event::Stopped => {
                    let status = CallErrorKind::Unavailable
                        .to_status("the monitor is stopping; ask again when it is back");
                    return (Err(status), None);
                }
            }
        }
    }

    /// Waits for a message from a node without which the merge cannot continue; unless `patient`, only looks.
    async fn wait(&mut self, patient: bool) -> Event {
        let sources = &mut self.sources;
        let hungry = self.merge.hungry_nodes();
        let message = poll_fn(|cx| {
            for &index in hungry {
                let Some((_, Some(messages))) = sources.get_mut(index) else {
                    return Poll::Ready(Event::Message(index, None));
                };
                if let Poll::Ready(message) = Pin::new(messages).poll_next(cx) {
                    return Poll::Ready(Event::Message(index, message));
                }
            }
            if patient {
                Poll::Pending
            } else {
                Poll::Ready(Event::NotYet)
            }
        });
        tokio::select! {
            biased;
            () = self.stop.cancelled() => Event::Stopped,
            event = message => event,
        }
    }

    /// Adds what a node sent to the merge.
    fn take(&mut self, index: usize, message: Option<Result<wire::FilesResponse, Status>>) {
        let Some((address, messages)) = self.sources.get_mut(index) else {
            return;
        };
        let node = &address.node;
        match message {
            Some(Ok(wire::FilesResponse { entries, end, .. })) => {
                if !entries.is_empty() || end.is_none() {
                    self.merge.feed_entries(
                        index,
                        entries
                            .into_iter()
                            .map(|entry| convert::wire_listed(node, entry)),
                    );
                }
                if let Some(wire::files_response::End { count, gaps }) = end {
                    self.merge.end_node(
                        index,
                        count,
                        gaps.iter()
                            .map(|gap| convert::read_gap(node, gap))
                            .collect(),
                    );
                    *messages = None;
                }
            }
            Some(Err(status)) => {
                self.merge.fail_node(index, &Reason(&status));
                *messages = None;
            }
            None => {
                self.merge.fail_node(index, &"its listing broke off");
                *messages = None;
            }
        }
    }

    fn end(&self) -> wire::files_response::End {
        let gaps = self.merge.gaps();
        for gap in gaps {
            tracing::info!(replica = %self.replica, %gap, "a listing is partial");
        }
        match gaps {
            [] => self.instruments.listings_complete.inc(),
            _ => self.instruments.listings_partial.inc(),
        };
        wire::files_response::End {
            count: self.merge.count_entries(),
            gaps: convert::wire_gaps(&self.replica, gaps),
        }
    }
}

/// Makes a message of entries that is not the last.
const fn files(entries: Vec<wire::FileEntry>) -> wire::FilesResponse {
    wire::FilesResponse {
        entries,
        end: None,
        looked: 0,
    }
}

/// Whether a node says no more than that it still looks at its disks.
const fn is_looking(said: &wire::FilesResponse) -> bool {
    said.looked > 0 && said.entries.is_empty() && said.end.is_none()
}
