//! The attic over the wire: its listing, moves into it and out of it, and purges; also admissions.

use archive_model::{AtticItem, AtticPlace, FileName, VolumeId, VolumeName};
use archive_proof::Envelope;
use archive_rpc::{InvalidMessage, Page};
use proto_archive::wire::files_response::End;
use proto_archive::{convert as fields, wire};
use tonic::Status;

use super::{Answers, convert, listing, send};
use crate::attic::{self, AtticId, ItemPlace, ItemReference, LocalAtticItem, RemovalOrder};
use crate::catalog::{CatalogEntry, Condition};
use crate::layout::Layout;
use crate::node::{Node, admission_in};

/// Reads the reference to an item.
pub(crate) fn item_reference(request: &wire::AtticRef) -> Result<ItemReference, InvalidMessage> {
    Ok(ItemReference {
        volume: fields::volume_id(&request.volume)?,
        id: AtticId::new(&request.id)
            .map_err(|error| InvalidMessage::invalid_field("id", error.to_string()))?,
        checksum: fields::optional_root("checksum", &request.checksum)?,
        cause: fields::read_cause(&request.who, &request.why)?,
    })
}

/// Reads the copy that is to be put aside.
pub(crate) fn removal_order(
    request: &wire::PutAsideRequest,
) -> Result<RemovalOrder, InvalidMessage> {
    Ok(RemovalOrder {
        name: fields::file_name("name", &request.name)?,
        volume: fields::volume_id(&request.volume)?,
        checksum: fields::read_root("checksum", &request.checksum)?,
        cause: fields::read_cause(&request.who, &request.why)?
            .with_approval(fields::read_approval(request.approval.clone())?),
    })
}

/// An unexpected file, and its admission.
pub(crate) struct Adoption {
    pub(crate) name: FileName,
    pub(crate) volume: VolumeId,
    pub(crate) admission: Envelope,
}

/// Reads the file that is to be adopted.
pub(crate) fn adoption_order(request: &wire::AdoptRequest) -> Result<Adoption, InvalidMessage> {
    Ok(Adoption {
        name: fields::file_name("name", &request.name)?,
        volume: fields::volume_id(&request.volume)?,
        admission: Envelope::parse(request.admission.as_bytes())
            .map_err(|error| InvalidMessage::invalid_field("admission", error.to_string()))?,
    })
}

/// Reads the name that items must belong to.
pub(crate) fn only_name(name: &str) -> Result<Option<FileName>, InvalidMessage> {
    (!name.is_empty())
        .then(|| fields::file_name("name", name))
        .transpose()
}

/// Writes an item, with the admission of a whole file where a listing shows it.
pub(crate) fn wire_item(
    node: &Node,
    item: LocalAtticItem,
    admission: Option<String>,
) -> wire::AtticItem {
    fields::attic_item_message(AtticItem {
        place: AtticPlace {
            replica: node.replica.clone(),
            node: node.id.clone(),
            volume: item.volume,
            id: item.id,
        },
        name: item.name,
        at: Some(item.at),
        who: item.who,
        why: item.why,
        kind: item.kind.into(),
        bytes: item.bytes,
        admission,
        approval: item.approval,
    })
}

/// Sends the items in the attics of all volumes, by time and then by id.
pub(crate) fn list_attic(
    node: &Node,
    only: Option<&FileName>,
    answers: &Answers<wire::AtticResponse>,
) -> Result<(), Status> {
    let mut gaps = convert::wire_gaps(node);
    let mut all: Vec<(ItemPlace, Layout)> = Vec::new();
    for (volume, layout) in node.disks.volumes.online_layouts() {
        match attic::list_items(&layout, &volume) {
            Ok(listed) => all.extend(listed.into_iter().map(|one| (one, layout.clone()))),
            Err(error) => gaps.push(convert::volume_gap(node, VolumeName::Id(volume), &error)),
        }
    }
    all.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    let mut count = 0;
    let mut page = Page::new();
    for (listed, layout) in all {
        let found = attic::read_item(&layout, &listed);
        if only.is_some() && found.name.as_ref() != only {
            continue;
        }
        let admission = admission(&layout, &found);
        let shown = wire_item(node, found, admission);
        count += 1;
        if let Some(items) = page.push(shown) {
            send(answers, wire::AtticResponse { items, end: None })?;
        }
    }
    let items = page.take_page();
    let end = Some(End { count, gaps });
    send(answers, wire::AtticResponse { items, end })
}

/// Returns the admission in the sidecar that went aside with a whole file, or `None` if it cannot be read.
fn admission(layout: &Layout, found: &LocalAtticItem) -> Option<String> {
    let is_file = found.kind == attic::AtticItemKind::File;
    let name = found.name.as_ref().filter(|_| is_file)?;
    let target = layout.target_paths(name);
    let place = layout.attic().join(&found.id);
    let sidecar = target.sidecar.file_name().map(attic::kept_name);
    sidecar.and_then(|sidecar| admission_in(&place.join(sidecar), name))
}

/// Sends the admission of every copy, sorted by name.
pub(crate) fn attic_admissions(
    node: &Node,
    after: Option<&FileName>,
    only_findings: bool,
    answers: &Answers<wire::AdmissionsResponse>,
) -> Result<(), Status> {
    let all = node
        .files
        .list_entries(after)
        .map_err(|error| convert::error_status(&error))?;
    let wanted = all.filter(|entry| {
        let is_present = |entry: &CatalogEntry| entry.row.condition == Condition::Present;
        !(only_findings && entry.as_ref().is_ok_and(is_present))
    });
    let admissions = wanted.map(|entry| {
        let entry = entry.map_err(|error| convert::error_status(&error))?;
        Ok(wire::admissions_response::One {
            admission: node.files.read_admission(&entry).unwrap_or_default(),
            entry: Some(convert::wire_entry(node, entry)),
        })
    });
    listing::send_admissions(admissions, || convert::wire_gaps(node), answers)
}
