//! The call `Replace`: receives the order, then the bytes of the new copy.

use archive_model::Cause;
use archive_rpc::{CallError, IdleTimeout, InvalidMessage};
use bytes::Bytes;
use proto_archive::wire::replace_request::Step;
use proto_archive::{convert as fields, wire};
use tokio_stream::StreamExt;
use tonic::{Request, Status, Streaming};

use super::super::Door;
use super::people::{OFFICER, caller_name, read_reason};
use crate::people::replace::{AsyncNext, Replacement};

pub(super) async fn replace_copy(
    door: &Door,
    request: Request<Streaming<wire::ReplaceRequest>>,
) -> Result<wire::ReplaceResponse, Status> {
    let who = caller_name(&request, OFFICER)?;
    let mut steps = IdleTimeout::new(request.into_inner(), door.settings.stall.duration());
    let first = steps.next().await;
    let first = first.ok_or_else(|| InvalidMessage::missing_field("open"))??;
    let Some(Step::Open(open)) = first.step else {
        return Err(InvalidMessage::missing_field("open").into());
    };
    let replacement = Replacement {
        name: fields::file_name("name", &open.name)?,
        replica: fields::replica_id(&open.replica)?,
        checksum: fields::read_root("checksum", &open.checksum)?,
        cause: Cause {
            approval: None,
            who,
            why: read_reason(&open.reason)?,
        },
    };
    let people = &door.people;
    people.check_configured(&replacement.replica)?;
    people.check_replaceable(&replacement).await?;
    let spooled = people
        .spool_copy(&replacement, ReplacementStream(steps))
        .await?;
    let replaced = people.replace_copy(replacement, spooled).await?;
    Ok(wire::ReplaceResponse {
        attic: Some(fields::attic_item_message(replaced.aside)),
        entry: Some(fields::file_entry(replaced.copy)),
    })
}

/// The messages after `open`.
struct ReplacementStream(IdleTimeout<Streaming<wire::ReplaceRequest>>);

impl AsyncNext for ReplacementStream {
    async fn next(&mut self) -> Result<Option<Bytes>, CallError> {
        match self.0.next().await.transpose()?.map(|message| message.step) {
            None => Ok(None),
            Some(Some(Step::Data(bytes))) => Ok(Some(bytes)),
            Some(Some(Step::Open(_)) | None) => Err(InvalidMessage::missing_field("data").into()),
        }
    }
}
