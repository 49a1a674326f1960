//! Failures of the index and of the archive, in words for a visitor. Their own words are for the log.

use archive_client::ClientError;
use archive_rpc::CallErrorKind;
use axum::http::StatusCode;
use index_client::IndexCallError;

use crate::answer::Notice;
use crate::records::RecordError;

/// Returns the notice for a visitor when the index does not answer. Its own words are for the log.
pub(super) fn index_failed(error: &IndexCallError) -> Notice {
    tracing::warn!(%error, "the index does not answer");
    match error.kind {
        CallErrorKind::Invalid => Notice::bad_request(error.message.clone()),
        CallErrorKind::Internal | CallErrorKind::Damaged | CallErrorKind::Storage => {
            Notice::unavailable_notice(
                "The index of captures has failed; its operator has to look at it.",
            )
            .again_after(60)
        }
        _ => Notice::unavailable_notice(
            "The index of captures does not answer now; try again in a moment.",
        ),
    }
}

/// Returns the notice for a visitor when a record or file cannot be had.
pub(super) fn record_failed(error: &RecordError) -> Notice {
    let again = "try again in a moment";
    match error {
        RecordError::Archive(error) => {
            tracing::warn!(%error, "the archive does not serve a record");
            match error {
                ClientError::NotFound(_) => gone_notice(),
                // The offset lies behind the end of the file, or no record begins there.
                ClientError::Invalid(_) => Notice::not_found(
                    "The index names a place in the archive where no such record is; tell the people who run the archive.",
                ),
                ClientError::Damaged(_) | ClientError::Untrusted(_) | ClientError::Mismatch(_) => {
                    Notice::damaged_notice(
                        "The archive has this record, and no replica can give it intact now. Its operators have been told.",
                    )
                }
                ClientError::Storage(_) | ClientError::Bug(_) => Notice::unavailable_notice(
                    "The archive has failed to read this record; its operators have been told.",
                )
                .again_after(60),
                _ => {
                    Notice::unavailable_notice(format!("The archive does not answer now; {again}."))
                }
            }
        }
        RecordError::Broken(words) => {
            tracing::warn!(%words, "a record is broken as it was archived");
            Notice::damaged_notice(format!(
                "The record is damaged as it was archived: {words}."
            ))
        }
        RecordError::Unfit(words) => {
            tracing::info!(%words, "a record is not shown as a part of a page");
            Notice::new(
                StatusCode::BAD_GATEWAY,
                "This record is not shown on pages",
                format!(
                    "The record is whole, but {words}. `id_` behind the date in its address gives it as it is archived."
                ),
            )
        }
        RecordError::Unread(_) | RecordError::Stopped => {
            Notice::unavailable_notice(format!("The server stops; {again}."))
        }
    }
}

pub(super) fn gone_notice() -> Notice {
    Notice::not_found("The index knows this capture, and its file is not in the archive any more.")
}
