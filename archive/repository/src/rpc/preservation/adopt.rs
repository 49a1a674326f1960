//! Adoption of an unexpected file of a replica into the archive.

use std::sync::Arc;

use archive_ledger::admin::AdminRow;
use archive_model::{FileCopy, FileName, Finder, ReplicaId};
use archive_rpc::CallErrorKind;
use proto_archive::{convert as fields, wire};
use tonic::{Request, Status};

use super::super::Door;
use super::people::{OFFICER, caller_name, join_volume};
use crate::claims::NameAct;
use crate::people::reinstate::refuse_withdrawn;
use crate::preserver::LookContext;

pub(super) async fn adopt_copy(
    door: &Door,
    request: Request<wire::AdoptFileRequest>,
) -> Result<wire::AdoptFileResponse, Status> {
    let who = caller_name(&request, OFFICER)?;
    let request = request.into_inner();
    let name = fields::file_name("name", &request.name)?;
    let replica = fields::replica_id(&request.replica)?;
    let people = &door.people;
    people.check_configured(&replica)?;
    let _acting = people.acting.read().await;
    let _claim = people.archive.claim_in_turn(&name, NameAct::Adopt).await?;
    let known = people.row_of(&name).await?;
    let is_known = known.is_some();
    if let Some(row) = known {
        refuse_withdrawn(&row.record, &replica)?;
    }
    if !is_known {
        // The admin data do not know it: its own admission decides.
        let archive = door.settings.archive.as_str();
        people
            .adopt_unexpected(&name, archive, &door.trust, &who)
            .await?;
    }
    let row = people.known_row(&name).await?;
    let copy = choose(door, &row, &name, &replica, !is_known).await?;
    let what = format!(
        "the file that {replica} has on volume {} to be adopted",
        copy.place.volume
    );
    // Recorded before it is done: no act may be missing from the trail.
    people
        .archive
        .note_line(who.clone(), Some(name.clone()), what)
        .await?;
    let adopted = if copy.is_unexpected() {
        let admission = row.admission.clone().unwrap_or_default();
        let size = row.record.content.as_ref();
        let size = size.map_or(0, |content| content.size);
        let volume = copy.place.in_replica(&replica);
        let adopting = door
            .archive
            .calls
            .replicas
            .adopt_file(&volume, &name, &admission);
        people.archive.calls.reading_call(size, adopting).await?
    } else {
        copy
    };
    let what = format!(
        "the file that {replica} had on volume {} is adopted",
        adopted.place.volume
    );
    people
        .archive
        .note_line(who.clone(), Some(name.clone()), what)
        .await?;
    join_volume(door, &row.record, &replica, &who).await?;
    people
        .await_restored(&name, &replica, &adopted, &who)
        .await?;
    // The anomalies of this file, in any replica, are resolved.
    let look_context = LookContext {
        who: Arc::from(who),
        finder: Finder::Check,
        is_second: false,
    };
    for row in door.preserver.filed_anomalies(&name).await? {
        let looking = door
            .preserver
            .look_and_file(&row.replica, &name, &look_context);
        Box::pin(looking).await?;
    }
    Ok(wire::AdoptFileResponse {
        entry: Some(fields::file_entry(adopted)),
    })
}

/// Chooses the file to adopt: without a valid sidecar, or with the admission that the archive has, if it does not count
/// yet.
async fn choose(
    door: &Door,
    row: &AdminRow,
    name: &FileName,
    replica: &ReplicaId,
    is_new: bool,
) -> Result<FileCopy, Status> {
    let root = row.record.content.as_ref().map(|content| content.root);
    let copy = row.record.replicas.get(replica);
    let counts = !is_new && copy.is_some_and(|copy| copy.state.is_completed());
    let mut found = door.people.existing_copies(replica, name).await?;
    found
        .retain(|copy| copy.is_unexpected() || (copy.is_present() && !counts && copy.root == root));
    match found.len() {
        0 => Err(CallErrorKind::NotFound.to_status(format!("replica {replica} has no unexpected file {name}"))),
        1 => found
            .pop()
            .ok_or_else(|| CallErrorKind::Internal.to_status("the only unexpected file is not in the list any more")),
        _ => Err(CallErrorKind::Mismatch.to_status(format!(
            "replica {replica} has {name} unexpectedly on several volumes; remove all but one, by their checksums"
        ))),
    }
}
