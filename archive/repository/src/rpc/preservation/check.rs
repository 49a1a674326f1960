//! Checks that a person asked for: reads the request, and sends the steps.

use std::collections::BTreeSet;
use std::sync::Arc;

use archive_model::{CheckStep, Finder};
use proto_archive::{convert as fields, wire};
use tokio::sync::mpsc;
use tonic::Status;

use super::super::{admin_failed, send_answer};
use super::anomalies::filed_anomaly;
use super::{Answers, Door};
use crate::checking::{CheckScope, CheckSelection};
use crate::preserver::LookContext;

/// Reads the request.
pub(super) fn check_scope(
    request: &wire::CheckRequest,
    who: Arc<str>,
) -> Result<CheckScope, Status> {
    let names = request
        .names
        .iter()
        .map(|name| fields::file_name("names", name));
    let replica = match request.replica.as_str() {
        "" => None,
        id => Some(fields::replica_id(id)?),
    };
    Ok(CheckScope {
        kind: fields::check_kind("kind", request.kind)?,
        challenges: request.challenge,
        selection: CheckSelection {
            names: names.collect::<Result<BTreeSet<_>, _>>()?,
            matching: fields::name_pattern("match", &request.r#match)?,
        },
        replica,
        look_context: LookContext {
            who,
            finder: Finder::Check,
            is_second: false,
        },
    })
}

/// Runs a check, and sends each of its steps. The check ends when the caller goes away.
pub(super) async fn run_check(
    door: &Door,
    scope: &CheckScope,
    answers: &Answers<wire::CheckResponse>,
) -> Result<(), Status> {
    let (steps, mut told) = mpsc::channel(16);
    let checking = async {
        let checked = Box::pin(door.preserver.check_replica(scope, &steps)).await;
        drop(steps);
        checked
    };
    let telling = async {
        while let Some(step) = told.recv().await {
            let step = match step {
                CheckStep::Progress(progress) => CheckStep::Progress(progress),
                CheckStep::Anomaly(row) => {
                    let anomaly =
                        filed_anomaly(door, &row).map_err(|error| admin_failed(&error))?;
                    CheckStep::Anomaly(Box::new(anomaly))
                }
                CheckStep::Report(report) => CheckStep::Report(report),
            };
            send_answer(answers, fields::check_response(step)).await?;
        }
        Ok(())
    };
    tokio::try_join!(checking, telling)?;
    Ok(())
}
