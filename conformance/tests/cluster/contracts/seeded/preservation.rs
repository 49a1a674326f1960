//! Doors of a real archive that break every promise to those who look after it. A suite is run once on an archive: the
//! bugs are seeded together.

use archive_client::preservation::{
    AnomalySelection, AtticEntry, AtticSelection, AuditSelection, Bootstrap, CheckOrder,
    CopyReplacement, HeldAuditLine, NotifyOutcome, Repair, RepairOrder, ReplacedCopy,
    RequestRecord, ScrubSelection, Scrubs, VolumeOrder,
};
use archive_client::{ArchiveSteps, CallFuture, ClientError, Keeper, Preservation};
use archive_model::{
    Act, AtticPlace, CheckStep, FileCopy, FileName, FiledAnomaly, Mode, NodeSelector, NodeState,
    ReplicaId, ScrubOrder,
};
use bytes::Bytes;
use conformance::contract::preservation::{self, People};
use tokio_stream::StreamExt;

use crate::cluster::visits::limits;
use crate::cluster::world::{Cluster, on_a_cluster};

/// The door of one person.
struct SeededKeeper(Keeper);

impl SeededKeeper {
    /// Turns a refusal into a success, with any request as its result.
    async fn obey(
        &self,
        answer: Result<RequestRecord, ClientError>,
    ) -> Result<RequestRecord, ClientError> {
        match answer {
            Err(refused) => self.0.requests(true).await?.pop().ok_or(refused),
            done => done,
        }
    }
}

impl Preservation for SeededKeeper {
    /// A replica is left out of the reports.
    fn check<'a>(&'a self, order: &'a CheckOrder) -> CallFuture<'a, ArchiveSteps<CheckStep>> {
        Box::pin(async move {
            let steps = self.0.check(order).await?;
            let is_of_two = |step: &CheckStep| match step {
                CheckStep::Report(report) => report.replica.as_str() == "two",
                CheckStep::Progress(_) | CheckStep::Anomaly(_) => false,
            };
            let steps = steps.filter(move |step| !step.as_ref().is_ok_and(is_of_two));
            Ok(ArchiveSteps::new(steps))
        })
    }

    fn anomalies<'a>(
        &'a self,
        selection: &'a AnomalySelection,
    ) -> CallFuture<'a, ArchiveSteps<FiledAnomaly>> {
        self.0.anomalies(selection)
    }

    fn repair<'a>(&'a self, order: &'a RepairOrder) -> CallFuture<'a, ArchiveSteps<Repair>> {
        self.0.repair(order)
    }

    fn scrubs<'a>(
        &'a self,
        selection: &'a ScrubSelection,
        order: ScrubOrder,
    ) -> CallFuture<'a, Scrubs> {
        self.0.scrubs(selection, order)
    }

    fn replace<'a>(
        &'a self,
        replacement: &'a CopyReplacement,
        watch: &'a (dyn Fn(u64) + Send + Sync),
    ) -> CallFuture<'a, ReplacedCopy> {
        self.0.replace(replacement, watch)
    }

    fn adopt<'a>(&'a self, name: &'a FileName, replica: &'a ReplicaId) -> CallFuture<'a, FileCopy> {
        self.0.adopt(name, replica)
    }

    fn attics<'a>(
        &'a self,
        selection: &'a AtticSelection,
    ) -> CallFuture<'a, ArchiveSteps<AtticEntry>> {
        self.0.attics(selection)
    }

    fn restore<'a>(&'a self, place: &'a AtticPlace, reason: &'a str) -> CallFuture<'a, FileCopy> {
        self.0.restore(place, reason)
    }

    fn ask<'a>(&'a self, act: &'a Act, reason: &'a str) -> CallFuture<'a, RequestRecord> {
        self.0.ask(act, reason)
    }

    fn requests(&self, all: bool) -> CallFuture<'_, Vec<RequestRecord>> {
        self.0.requests(all)
    }

    /// Everybody approves everything.
    fn approve<'a>(&'a self, id: &'a str) -> CallFuture<'a, RequestRecord> {
        Box::pin(async move { self.obey(self.0.approve(id).await).await })
    }

    fn withdraw<'a>(&'a self, id: &'a str) -> CallFuture<'a, RequestRecord> {
        self.0.withdraw(id)
    }

    fn volume<'a>(&'a self, order: &'a VolumeOrder) -> CallFuture<'a, NodeState> {
        self.0.volume(order)
    }

    fn node<'a>(&'a self, node: &'a NodeSelector, mode: Mode) -> CallFuture<'a, NodeState> {
        self.0.node(node, mode)
    }

    fn bootstrap<'a>(&'a self, replica: &'a ReplicaId) -> CallFuture<'a, Bootstrap> {
        self.0.bootstrap(replica)
    }

    /// The lines of depositors are left out.
    fn audit<'a>(
        &'a self,
        selection: &'a AuditSelection,
    ) -> CallFuture<'a, ArchiveSteps<HeldAuditLine>> {
        Box::pin(async move {
            let lines = self.0.audit(selection).await?;
            let is_theirs = |line: &HeldAuditLine| line.who.starts_with("harvester/");
            let lines = lines.filter(move |line| !line.as_ref().is_ok_and(is_theirs));
            Ok(ArchiveSteps::new(lines))
        })
    }

    fn export(&self) -> CallFuture<'_, ArchiveSteps<Bytes>> {
        self.0.export()
    }

    fn notify_test(&self) -> CallFuture<'_, NotifyOutcome> {
        self.0.notify_test()
    }
}

/// Fails if the suite of `Preservation` passes a door that breaks one of its promises, or does not name that promise.
#[test]
fn broken_promise_of_preservation_is_found_and_named() {
    on_a_cluster(async |cluster: &mut Cluster| {
        let depositor = cluster.depositor();
        let seeded = |grant| SeededKeeper(Keeper::new(cluster.channel(grant), limits()));
        let people = People {
            depositor: &depositor,
            officer: &seeded("officer/ole"),
            custodian: &seeded("custodian/cora"),
            second: &seeded("custodian/carl"),
        };
        let outcome = preservation::all(people).await;
        for expected in [
            "a_check_of_intact_copies_finds_nothing",
            "an_act_that_destroys_is_only_asked_for",
            "a_request_that_is_none_is_not_found",
            "the_trail_says_who_stored_what",
        ] {
            super::assert_named(&"all bugs", outcome.broken(), expected);
        }
    });
}
