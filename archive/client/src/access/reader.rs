//! Access over gRPC. Everything that is handed out was checked in `segments` and `listing`.

use std::ops::Range;
use std::sync::Arc;

use archive_model::{FeedPosition, FileName};
use archive_proof::{Admission, Envelope, TrustFile};
use archive_rpc::limits::LARGEST_MESSAGE;
use archive_rpc::{IdleTimeout, StepStream};
use proto_archive::wire::access_client::AccessClient;
use proto_archive::wire::get_response::{Head, Step};
use proto_archive::wire::{
    ChangesRequest, GetRequest, GetResponse, ListRequest, ReceiptRequest, StatusRequest,
};
use tokio_stream::StreamExt;
use tonic::transport::Channel;
use tonic::{Status, Streaming};

use super::feed::{self, Feed, FeedStep};
use super::listing::Entries;
use super::salvage::{self, Parts, Salvage};
use super::segments::ExpectedRange;
use super::slices::{Slice, Slices};
use super::{Access, FileRange, FileStream, HeldReceipt, Listing, Selection};
use crate::CallFuture;
use crate::archive_status::ArchiveStatus;
use crate::error::{ARCHIVE, ClientError};
use crate::limits::ClientLimits;
use crate::steps::ArchiveSteps;

/// A reader at the door of a repository. Cheap to clone; clones share the connection.
///
/// ```
/// use std::error::Error;
/// use std::sync::Arc;
/// use std::time::SystemTime;
///
/// use archive_client::{ClientFile, ClientLimits, ArchiveReader};
///
/// fn reader(file: &ClientFile) -> Result<ArchiveReader, Box<dyn Error>> {
///     let credentials = file.load_credentials(None, SystemTime::now())?;
///     let trust = Arc::new(file.trust_file()?);
///     Ok(ArchiveReader::new(file.connect_repository(&credentials)?, trust, ClientLimits::default()))
/// }
/// ```
#[derive(Clone, Debug)]
pub struct ArchiveReader {
    client: AccessClient<Channel>,
    trust: Arc<TrustFile>,
    limits: ClientLimits,
}

/// A call of `get` whose answer has begun.
struct BegunReading {
    admission: Admission,
    envelope: Envelope,
    range: Range<u64>,
    pieces: StepStream<IdleTimeout<Streaming<GetResponse>>, ExpectedRange>,
}

impl ArchiveReader {
    /// Takes a channel to the repository and the keys whose admissions count.
    pub fn new(channel: Channel, trust: Arc<TrustFile>, limits: ClientLimits) -> Self {
        let client = AccessClient::new(channel).max_decoding_message_size(LARGEST_MESSAGE);
        Self {
            client,
            trust,
            limits,
        }
    }

    async fn begin_reading(&self, wanted: &FileRange) -> Result<FileStream, ClientError> {
        let begun = self.begin(wanted).await?;
        let bytes = begun.pieces.map(|piece| piece.map(|piece| piece.bytes));
        Ok(FileStream::new(
            begun.admission,
            begun.envelope,
            begun.range,
            bytes,
        ))
    }

    async fn begin_slices(&self, wanted: &FileRange) -> Result<Slices, ClientError> {
        let begun = self.begin(wanted).await?;
        let slices = begun.pieces.map(|piece| {
            piece.map(|piece| Slice {
                range: piece.range,
                encoded: piece.encoded,
            })
        });
        Ok(Slices::new(begun.admission, begun.envelope, slices))
    }

    async fn begin(&self, wanted: &FileRange) -> Result<BegunReading, ClientError> {
        let name = &wanted.name;
        let request = request(wanted)?;
        let mut client = self.client.clone();
        let stream = self.answer(client.get(request)).await?;
        let mut stream = IdleTimeout::new(stream, self.limits.answer_limit());
        let untrusted = |reason: String| ClientError::Untrusted(format!("{name}: {reason}"));
        let head = match stream.next().await {
            Some(Ok(message)) => match message.step {
                Some(Step::Head(head)) => head,
                _ => {
                    return Err(untrusted(
                        "the archive does not begin with the admission".to_owned(),
                    ));
                }
            },
            Some(Err(status)) => return Err(ClientError::from_status(&status)),
            None => {
                return Err(ClientError::Unavailable(format!(
                    "{name}: the archive ended the call at once"
                )));
            }
        };
        let (admission, envelope, range) = self.believe(wanted, &head)?;
        Ok(BegunReading {
            pieces: StepStream::new(stream, ExpectedRange::new(&admission, range.clone())),
            admission,
            envelope,
            range,
        })
    }

    async fn begin_salvage(&self, wanted: &FileRange) -> Result<Salvage, ClientError> {
        let request = request(wanted)?;
        let mut client = self.client.clone();
        let stream = self.answer(client.salvage(request)).await?;
        let mut stream = IdleTimeout::new(stream, self.limits.answer_limit());
        let head = salvage::read_salvage_head(&wanted.name, stream.next().await)?;
        let (admission, envelope, range) = self.believe(wanted, &head)?;
        let parts = StepStream::new(stream, Parts::new(&admission, range.clone()));
        Ok(Salvage::new(admission, envelope, range, parts))
    }

    /// Reads the head of an answer, if a trusted key signed it for this name and it has the range that was asked for.
    fn believe(
        &self,
        wanted: &FileRange,
        head: &Head,
    ) -> Result<(Admission, Envelope, Range<u64>), ClientError> {
        let name = &wanted.name;
        let untrusted = |reason: String| ClientError::Untrusted(format!("{name}: {reason}"));
        let envelope = Envelope::parse(head.admission.as_bytes())
            .map_err(|error| untrusted(error.to_string()))?;
        let admission = Admission::verify(&envelope, &self.trust)
            .map_err(|error| untrusted(error.to_string()))?;
        if admission.name != wanted.name {
            return Err(untrusted(format!(
                "the archive sends {} instead",
                admission.name
            )));
        }
        let range = wanted.range_within(admission.size)?;
        if (head.start, head.end) != (range.start, range.end) {
            let Head { start, end, .. } = *head;
            let Range {
                start: first,
                end: last,
            } = range;
            return Err(untrusted(format!(
                "the archive sends bytes {start}..{end}, not {first}..{last}"
            )));
        }
        Ok((admission, envelope, range))
    }

    async fn begin_listing(&self, selection: &Selection) -> Result<Listing, ClientError> {
        let Selection {
            replica,
            matching,
            after,
        } = selection;
        let request = ListRequest {
            replica: replica
                .as_ref()
                .map_or_else(String::new, |id| id.as_str().to_owned()),
            r#match: matching.clone().unwrap_or_default(),
            after: after
                .as_ref()
                .map_or_else(String::new, |name| name.as_str().to_owned()),
        };
        let mut client = self.client.clone();
        let stream = self.answer(client.list(request)).await?;
        let stream = IdleTimeout::new(stream, self.limits.answer_limit());
        Ok(Listing::new(StepStream::new(
            stream,
            Entries::new(selection),
        )))
    }

    async fn ask_receipt(&self, name: &FileName) -> Result<HeldReceipt, ClientError> {
        let mut client = self.client.clone();
        let call = client.receipt(ReceiptRequest {
            name: name.to_string(),
        });
        let answer = self.answer(call).await?;
        HeldReceipt::believe_receipt(answer.receipt, name, &self.trust)
    }

    async fn begin_changes(
        &self,
        after: Option<&FeedPosition>,
    ) -> Result<ArchiveSteps<FeedStep>, ClientError> {
        let request = ChangesRequest {
            after: after.copied().map(Into::into),
        };
        let mut client = self.client.clone();
        let stream = self.answer(client.changes(request)).await?;
        let stream = IdleTimeout::new(
            stream,
            self.limits.answer_limit().max(feed::LONGEST_SILENCE),
        );
        Ok(ArchiveSteps::new(StepStream::of_optional_call(
            stream,
            Feed::after_position(after),
            "the feed of its files",
        )))
    }

    async fn ask_status(&self) -> Result<ArchiveStatus, ClientError> {
        let mut client = self.client.clone();
        Ok(ArchiveStatus::try_from(
            self.answer(client.status(StatusRequest {})).await?,
        )?)
    }

    /// Waits for the answer to a call, within the limit for answers.
    async fn answer<T>(
        &self,
        call: impl Future<Output = Result<tonic::Response<T>, Status>>,
    ) -> Result<T, ClientError> {
        let limit = self.limits.answer_limit();
        match tokio::time::timeout(limit, call).await {
            Ok(Ok(response)) => Ok(response.into_inner()),
            Ok(Err(status)) => Err(ClientError::from_status(&status)),
            Err(_elapsed) => Err(ClientError::TimedOut(ARCHIVE.silence_text(limit))),
        }
    }
}

fn request(wanted: &FileRange) -> Result<GetRequest, ClientError> {
    wanted.check_range()?;
    let FileRange {
        name,
        start,
        end,
        replica,
    } = wanted;
    Ok(GetRequest {
        name: name.as_str().to_owned(),
        start: *start,
        end: end.unwrap_or(0),
        replica: replica
            .as_ref()
            .map_or_else(String::new, |id| id.as_str().to_owned()),
    })
}

impl Access for ArchiveReader {
    fn get<'a>(&'a self, wanted: &'a FileRange) -> CallFuture<'a, FileStream> {
        Box::pin(self.begin_reading(wanted))
    }

    fn slices<'a>(&'a self, wanted: &'a FileRange) -> CallFuture<'a, Slices> {
        Box::pin(self.begin_slices(wanted))
    }

    fn salvage<'a>(&'a self, wanted: &'a FileRange) -> CallFuture<'a, Salvage> {
        Box::pin(self.begin_salvage(wanted))
    }

    fn list<'a>(&'a self, selection: &'a Selection) -> CallFuture<'a, Listing> {
        Box::pin(self.begin_listing(selection))
    }

    fn receipt<'a>(&'a self, name: &'a FileName) -> CallFuture<'a, HeldReceipt> {
        Box::pin(self.ask_receipt(name))
    }

    fn changes<'a>(
        &'a self,
        after: Option<&'a FeedPosition>,
    ) -> CallFuture<'a, ArchiveSteps<FeedStep>> {
        Box::pin(self.begin_changes(after))
    }

    fn status(&self) -> CallFuture<'_, ArchiveStatus> {
        Box::pin(self.ask_status())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a range reaches beyond the end of its file, or a range that begins there is accepted as an empty one.
    #[test]
    fn range_ends_where_file_ends() {
        let check = |start, end, size, expected: Option<Range<u64>>| {
            let name = FileName::new("a").unwrap();
            let wanted = FileRange {
                start,
                end,
                ..FileRange::whole_file(name)
            };
            assert_eq!(
                wanted.range_within(size).ok(),
                expected,
                "{start} {end:?} {size}"
            );
        };
        check(0, None, 0, Some(0..0));
        check(0, None, 10, Some(0..10));
        check(3, Some(7), 10, Some(3..7));
        check(3, Some(u64::MAX), 10, Some(3..10));
        check(9, None, 10, Some(9..10));
        check(10, None, 10, None);
        check(1, None, 0, None);
    }
}
