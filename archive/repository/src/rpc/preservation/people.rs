//! The acts of people: requests and their approval, attics, disks, nodes, and the filling of a replica.

use std::sync::Arc;

use archive_decisions::store::StoringEvent;
use archive_ledger::requests::{
    Person, PersonRequest as Asked, RequestRefusal, RequestStatus, plain_reason,
};
use archive_model::{AtticPlace, Cause, DiskOrder, NodeKey, NodeState, ReplicaId};
use archive_replicas::admitted_content;
use archive_rpc::{CallError, CallErrorKind, Grant, Identity, InvalidMessage, Role};
use proto_archive::{convert as fields, wire};
use tonic::{Request, Status};

use super::super::Door;
use crate::claims::NameAct;
use crate::fill::lacking_files;
use crate::people::not_allowed;
use crate::people::reinstate::refuse_withdrawn;
use crate::tables::with_tables;

/// The roles under which acts of an officer are recorded in the audit trail.
pub(super) const OFFICER: &[Role] = &[Role::Officer];
const OPERATOR: &[Role] = &[Role::Operator];

/// Returns the person that a certificate names. Certificates of parts of the archive are refused.
fn person(identity: &Identity) -> Result<Person, Status> {
    let name = identity.person_name();
    let name = name.ok_or_else(|| not_allowed(RequestRefusal::Nobody))?;
    let roles = identity.grants().iter().map(Grant::role);
    let personal: Vec<Role> = roles.filter(|role| role.is_personal()).collect();
    Ok(Person::new(name, &personal))
}

/// Returns the caller, as `role/name`.
pub(super) fn caller_name<T>(
    request: &Request<T>,
    roles: &'static [Role],
) -> Result<String, Status> {
    let person = person(&*Identity::from_request(request)?)?;
    let refused = || not_allowed(RequestRefusal::Nobody);
    Ok(person.acting_name(roles).ok_or_else(refused)?)
}

/// Reads the reason, which must not be empty.
pub(super) fn read_reason(text: &str) -> Result<String, Status> {
    let plain = plain_reason(text).map_err(not_allowed)?;
    Ok(plain.to_owned())
}

pub(super) async fn ask_request(
    door: &Door,
    request: Request<wire::AskRequest>,
) -> Result<wire::RequestState, Status> {
    let person = person(&*Identity::from_request(&request)?)?;
    let request = request.into_inner();
    let act = fields::read_act(request.act)?;
    let asked = door.people.ask_request(act, request.reason, person).await?;
    Ok(state(&asked))
}

pub(super) async fn approve_request(
    door: &Door,
    request: Request<wire::RequestRef>,
) -> Result<wire::RequestState, Status> {
    let person = person(&*Identity::from_request(&request)?)?;
    let ended = door
        .people
        .approve_request(request.into_inner().id, person)
        .await?;
    Ok(state(&ended))
}

pub(super) async fn withdraw_request(
    door: &Door,
    request: Request<wire::RequestRef>,
) -> Result<wire::RequestState, Status> {
    let person = person(&*Identity::from_request(&request)?)?;
    let withdrawn = door
        .people
        .withdraw_request(request.into_inner().id, person)
        .await?;
    Ok(state(&withdrawn))
}

pub(super) async fn list_requests(
    door: &Door,
    all: bool,
) -> Result<wire::RequestsResponse, Status> {
    let requests = door.people.all_requests().await?;
    let is_shown = |request: &&Asked| {
        all || matches!(
            request.state,
            RequestStatus::Open | RequestStatus::Approved { .. }
        )
    };
    let requests = requests.iter().filter(is_shown).map(state).collect();
    Ok(wire::RequestsResponse { requests })
}

fn state(request: &Asked) -> wire::RequestState {
    let (ended_by, ended, outcome) = match &request.state {
        RequestStatus::Open => (String::new(), String::new(), String::new()),
        RequestStatus::Approved { by, at } | RequestStatus::Withdrawn { by, at } => {
            (by.clone(), at.to_string(), String::new())
        }
        RequestStatus::Ended {
            by, at, outcome, ..
        } => (by.clone(), at.to_string(), outcome.clone()),
        RequestStatus::Expired { at } => (String::new(), at.to_string(), String::new()),
    };
    wire::RequestState {
        id: request.id(),
        act: wire::request_state::Act::from(request.act.act.kind()).into(),
        what: request.act.to_string(),
        reason: request.reason.clone(),
        asked_by: request.asked_by.clone(),
        asked: request.asked.to_string(),
        expires: request.expires.to_string(),
        state: wire::request_state::State::from(request.state.stage()).into(),
        ended_by,
        ended,
        outcome,
        approvers: request
            .act
            .approvers()
            .iter()
            .map(|role| wire::Role::from(*role).into())
            .collect(),
    }
}

/// Adds a replica to those of a file, if the file does not have it yet.
pub(super) async fn join_volume(
    door: &Door,
    record: &archive_decisions::store::FileRecord,
    replica: &ReplicaId,
    who: &str,
) -> Result<(), Status> {
    let spec = door.archive.specs.iter().find(|spec| spec.id == *replica);
    let Some(spec) = spec.filter(|_| !record.replicas.contains_key(replica)) else {
        return Ok(());
    };
    let event = StoringEvent::Wanted {
        replica: replica.clone(),
        kind: spec.kind,
        required: spec.required,
        gone: None,
    };
    door.people.order_event(&record.name, event, who).await?;
    Ok(())
}

pub(super) async fn restore_file(
    door: &Door,
    request: Request<wire::AtticsRef>,
) -> Result<wire::FileEntry, Status> {
    let who = caller_name(&request, OFFICER)?;
    let request = request.into_inner();
    let place = fields::attic_place(&request)?;
    let AtticPlace {
        replica,
        node,
        volume,
        id,
    } = &place;
    let cause = Cause {
        approval: None,
        who: who.clone(),
        why: read_reason(&request.reason)?,
    };
    let people = &door.people;
    let item = people.attic_item(&place).await?;
    let _acting = people.acting.read().await;
    let _claim = match &item.name {
        Some(name) => Some(people.archive.claim_in_turn(name, NameAct::Restore).await?),
        None => None,
    };
    if let Some(name) = &item.name
        && let Some(row) = people.row_of(name).await?
    {
        refuse_withdrawn(&row.record, replica)?;
    }
    let what = format!(
        "{id} to be restored from the attic of volume {volume} of node {node}: {}",
        cause.why
    );
    // Recorded before it is done: no act may be missing from the trail.
    door.archive.note_line(who.clone(), None, what).await?;
    let taking = door.archive.calls.replicas.restore_item(&place, &cause);
    let copy = people.archive.calls.reading_call(0, taking).await?;
    let name = copy.name.clone();
    let what = format!(
        "{id} was restored from the attic of volume {volume} of node {node}: {}",
        cause.why
    );
    people
        .archive
        .note_line(who.clone(), Some(name.clone()), what)
        .await?;
    let row = people.known_row(&name).await?;
    join_volume(door, &row.record, replica, &who).await?;
    people.await_restored(&name, replica, &copy, &who).await?;
    let root = row.record.content.as_ref().map(|content| content.root);
    if root != Some(admitted_content(&copy)?.0) {
        let said = format!(
            "{name} was restored from the attic, but is not the file that was admitted under this name; remove or replace it"
        );
        return Err(CallErrorKind::Mismatch.to_status(said));
    }
    Ok(fields::file_entry(copy))
}

pub(super) async fn order_volume(
    door: &Door,
    request: Request<wire::VolumeRequest>,
) -> Result<wire::NodeStatus, Status> {
    let who = caller_name(&request, OPERATOR)?;
    let request = request.into_inner();
    let message = request
        .order
        .ok_or_else(|| InvalidMessage::missing_field("order"))?;
    let order = fields::disk_order(&message)?;
    let word = match &order {
        DiskOrder::Retire(_) => {
            let said = "cannot retire a volume by an order: it needs a second person; ask for it with `holdfast volume retire`";
            return Err(CallErrorKind::Refused.to_status(said));
        }
        DiskOrder::Reinstate(_) => {
            let said = "cannot reinstate a volume by an order: it needs a second person; ask for it with `holdfast volume reinstate`";
            return Err(CallErrorKind::Refused.to_status(said));
        }
        DiskOrder::Init(..) => "labelled",
        DiskOrder::Adopt(..) => "adopted",
        DiskOrder::Clear(_) => "cleared",
        DiskOrder::ReadWrite(_) => "set to read and write",
        DiskOrder::ReadOnly(_) => "set to read only",
        DiskOrder::Drain(_) => "set to drain",
    };
    let (replica, node) = if matches!(order, DiskOrder::Init(..) | DiskOrder::Adopt(..)) {
        let named = fields::node_selector(&request.node, &request.replica)?;
        let NodeKey { replica, node } = door.people.named_node(&named).await?;
        if let DiskOrder::Init(_, volume) = &order {
            door.people.is_new_volume(volume).await?;
        }
        (replica, node)
    } else {
        let named = fields::volume_selector(&message.volume, &request.node, &request.replica)?;
        let found = door.people.named_volume(&named).await?;
        (found.replica, found.node)
    };
    let what = format!(
        "volume {} {} on node {node} of replica {replica}",
        message.volume, message.path
    );
    let ordering = door
        .archive
        .calls
        .replicas
        .order_disk(&replica, &node, order);
    ordered(door, who, &what, word, ordering).await
}

pub(super) async fn order_node(
    door: &Door,
    request: Request<wire::NodeRequest>,
) -> Result<wire::NodeStatus, Status> {
    let who = caller_name(&request, OPERATOR)?;
    let request = request.into_inner();
    let named = fields::node_selector(&request.node, &request.replica)?;
    let order = request
        .order
        .ok_or_else(|| InvalidMessage::missing_field("order"))?;
    let mode = fields::read_mode("mode", order.mode)?
        .ok_or_else(|| InvalidMessage::missing_field("mode"))?;
    let NodeKey { replica, node } = door.people.named_node(&named).await?;
    let what = format!("node {node} of replica {replica}");
    let setting = door.archive.calls.replicas.set_mode(&replica, &node, mode);
    ordered(door, who, &what, &mode.to_string(), setting).await
}

/// Gives an order to a node, and records it: before, since the answer may get lost, and once it is carried out.
async fn ordered(
    door: &Door,
    who: String,
    what: &str,
    word: &str,
    order: impl Future<Output = Result<NodeState, CallError>>,
) -> Result<wire::NodeStatus, Status> {
    let archive = &door.archive;
    let to_do = format!("{what}: to be {word}");
    archive.note_line(who.clone(), None, to_do).await?;
    let state = archive.calls.reading_call(0, order).await?;
    archive
        .note_line(who, None, format!("{what}: {word}"))
        .await?;
    Ok(fields::node_status(state))
}

pub(super) async fn bootstrap_replica(
    door: &Door,
    request: Request<wire::BootstrapRequest>,
) -> Result<wire::BootstrapResponse, Status> {
    let who = caller_name(&request, OPERATOR)?;
    let replica = fields::replica_id(&request.into_inner().replica)?;
    door.people.check_configured(&replica)?;
    let what = format!("replica {replica} is to be filled from the others");
    let line = door.archive.audit_line(who, None, what);
    let standing = Arc::clone(&door.archive.standing);
    let id = replica.clone();
    if !with_tables(move || standing.begin_filling(&id, line)).await? {
        let said = format!("replica {replica} is retired; set up a new one under another id");
        return Err(CallErrorKind::Mismatch.to_status(said));
    }
    let now = door.archive.standing.current_snapshot();
    let admin = door.archive.admin.clone();
    let (files, bytes) = with_tables(move || lacking_files(&admin, &now, &replica)).await?;
    Ok(wire::BootstrapResponse { files, bytes })
}
