//! `holdfast requests`, `approve`, `withdraw`: what destroys is asked for by one person and approved by another.

use archive_client::Preservation;
use archive_client::preservation::RequestRecord;
use archive_model::{Act, RequestState, Role};
use clap::Args;
use tools_terminal::context::CommandContext;
use tools_terminal::describe;
use tools_terminal::exit::{Exit, Failure};
use tools_terminal::output::{Output, tell_user};
use tools_terminal::reason::ReasonText;
use tools_terminal::session::Session;

/// List the requests that wait for a second person
///
/// To remove a copy, purge an attic, retire or reinstate a volume, node or replica, accept an anomaly or take a new
/// root, one person makes a request, and another person approves it within 7 days. Needs the role custodian, officer or
/// operator. The exit code is 0, whatever is listed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  holdfast requests
  holdfast requests --all --json")]
pub(crate) struct Requests {
    /// Also list requests that are done, failed, withdrawn or expired
    #[arg(long)]
    all: bool,
}

/// Approve the request of another person: the act is done now
///
/// Read the request first (`holdfast requests`): a removed file goes to the attic, and a purged one is destroyed
/// permanently. Nobody approves a request of their own. Needs a role that the request names, mostly custodian. The exit
/// code is 0 if the act was done, 1 if it could not be done, and 5 if you may not approve it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  holdfast approve r17 --as custodian/custodian-2")]
pub(crate) struct Approve {
    /// The id of the request, as `holdfast requests` prints it: `r` and a number
    #[arg(value_name = "ID")]
    id: String,
}

/// Withdraw a request: it can no longer be approved
///
/// Nothing changes in any replica. Only the person who made the request may withdraw it, with the role custodian,
/// officer or operator. The exit code is 0 if it was withdrawn, and 5 if it is no longer open or another person made
/// it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  holdfast withdraw r17 --as custodian/custodian-1")]
pub(crate) struct Withdraw {
    /// The id of the request, as `holdfast requests` prints it: `r` and a number
    #[arg(value_name = "ID")]
    id: String,
}

impl Requests {
    pub(crate) async fn run(self, context: &CommandContext) -> Result<Exit, Failure> {
        let session = Session::open(&context.global)?;
        let requests = session.keeper().requests(self.all).await;
        let requests = requests.map_err(|error| session.failure(error))?;
        if context.output.is_json() {
            context
                .output
                .write_document(&serde_json::json!({ "requests": requests }))?;
            return Ok(Exit::Done);
        }
        for request in &requests {
            show(&context.output, request)?;
        }
        if requests.is_empty() {
            context.output.write_line("no request is open")?;
        }
        Ok(Exit::Done)
    }
}

impl Approve {
    pub(crate) async fn run(self, context: &CommandContext) -> Result<Exit, Failure> {
        let session = Session::open(&context.global)?;
        let request = session.keeper().approve(&self.id).await;
        let request = request.map_err(|error| session.failure(error))?;
        ended(context, &request, RequestState::Done)
    }
}

impl Withdraw {
    pub(crate) async fn run(self, context: &CommandContext) -> Result<Exit, Failure> {
        let session = Session::open(&context.global)?;
        let request = session.keeper().withdraw(&self.id).await;
        let request = request.map_err(|error| session.failure(error))?;
        ended(context, &request, RequestState::Withdrawn)
    }
}

/// Asks for an act, and says what the second person has to type.
pub(super) async fn ask_for_act(
    context: &CommandContext,
    act: &Act,
    reason: &ReasonText,
) -> Result<Exit, Failure> {
    let session = Session::open(&context.global)?;
    let request = session.keeper().ask(act, reason.as_str()).await;
    let request = request.map_err(|error| session.failure(error))?;
    if context.output.is_json() {
        context.output.write_document(&request)?;
    } else {
        show(&context.output, &request)?;
    }
    Ok(Exit::Done)
}

fn ended(
    context: &CommandContext,
    request: &RequestRecord,
    wanted: RequestState,
) -> Result<Exit, Failure> {
    if context.output.is_json() {
        context.output.write_document(request)?;
    } else {
        show(&context.output, request)?;
    }
    if request.state == wanted {
        return Ok(Exit::Done);
    }
    let RequestRecord { id, state, .. } = request;
    tell_user(&format!(
        "request {id} is {state}, not {wanted}; see `holdfast requests --all`"
    ));
    Ok(Exit::Failed)
}

fn show(output: &Output, request: &RequestRecord) -> Result<(), Failure> {
    text(request)
        .iter()
        .try_for_each(|line| output.write_line(line))
}

/// Returns the lines that tell people of a request.
fn text(request: &RequestRecord) -> Vec<String> {
    let RequestRecord {
        id,
        what,
        reason,
        asked_by,
        asked,
        expires,
        state,
        approvers,
        ..
    } = request;
    let mut lines = vec![
        format!("request {id} ({state}): {what}"),
        format!(
            "  asked by {asked_by}, {}: {reason}",
            describe::describe_time(*asked)
        ),
    ];
    if let Some(by) = &request.ended_by {
        lines.push(format!(
            "  {state} by {by}, {}",
            describe::time_or_dash(request.ended)
        ));
    }
    if let Some(outcome) = &request.outcome {
        lines.push(format!("  {outcome}"));
    }
    if *state == RequestState::Open {
        let role = approvers.first().copied().unwrap_or(Role::Custodian);
        let roles = if approvers.is_empty() {
            role.to_string()
        } else {
            let roles: Vec<_> = approvers.iter().map(|role| role.as_str()).collect();
            roles.join(" or ")
        };
        lines.push(format!(
            "  not done yet: until {} another person who is {roles} can type",
            describe::describe_time(*expires)
        ));
        lines.push(format!("    holdfast approve {id} --as {role}/NAME"));
        lines.push(format!("  withdraw it with `holdfast withdraw {id}`"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use archive_model::ActKind;

    use super::*;

    /// Fails if an open request does not show the command that approves it, or one that has ended still does.
    #[test]
    fn second_person_gets_command_to_type() {
        let request = RequestRecord {
            id: "r17".into(),
            act: ActKind::Remove,
            what: "remove a.warc.gz from replica two".into(),
            reason: "taken down by court order".into(),
            asked_by: "custodian/custodian-1".into(),
            asked: "2026-01-02T03:04:05Z".parse().unwrap(),
            expires: "2026-01-09T03:04:05Z".parse().unwrap(),
            state: RequestState::Open,
            ended_by: None,
            ended: None,
            outcome: None,
            approvers: vec![Role::Custodian],
        };
        let shown = text(&request).join("\n");
        assert_eq!(
            shown,
            "request r17 (open): remove a.warc.gz from replica two\n  \
             asked by custodian/custodian-1, 2026-01-02T03:04:05Z: taken down by court order\n  \
             not done yet: until 2026-01-09T03:04:05Z another person who is custodian can type\n    \
             holdfast approve r17 --as custodian/NAME\n  \
             withdraw it with `holdfast withdraw r17`"
        );
        let done = RequestRecord {
            state: RequestState::Done,
            ended_by: Some("custodian/custodian-2".into()),
            ended: Some("2026-01-03T00:00:00Z".parse().unwrap()),
            outcome: Some("in attic one/n/v/x".into()),
            ..request
        };
        let shown = text(&done).join("\n");
        assert!(!shown.contains("approve r17"), "{shown}");
        assert!(
            shown.contains("done by custodian/custodian-2, 2026-01-03T00:00:00Z\n  in attic"),
            "{shown}"
        );
    }
}
