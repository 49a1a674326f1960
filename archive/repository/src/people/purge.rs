//! Destruction of attic items, named by their content: a whole file by its checksum, and never the last good copy of a
//! file by mistake.
//!
//! Owns the rule; the node compares the item with the checksum before it destroys it, and keeps `attic.min_age` and its
//! brake.

use archive_ledger::requests::PurgedItem;
use archive_model::{AtticKind, AtticPlace, Cause, Root};
use archive_rpc::{CallError, CallErrorKind};

use super::People;
use super::refusal::{changed_meanwhile, recorded_content, unnamed};

/// The terms on which people have an item of an attic destroyed.
#[derive(Clone, Copy, Debug)]
pub(super) struct PurgeTerms<'a> {
    /// The checksum by which they name a whole file.
    pub(super) checksum: Option<&'a Root>,
    /// Whether it may be the last good copy of the file.
    pub(super) last_copies: bool,
}

impl People {
    /// Returns the item at a place of an attic.
    pub(crate) async fn attic_item(&self, place: &AtticPlace) -> Result<PurgedItem, CallError> {
        self.check_configured(&place.replica)?;
        let looking = self.archive.calls.replicas.attic_item(place);
        let item = self.archive.calls.reading_call(0, looking).await?;
        let none =
            || CallErrorKind::NotFound.to_error(format!("there is no {place}; list the attic"));
        let item = item.ok_or_else(none)?;
        Ok(PurgedItem {
            name: item.name,
            kind: item.kind,
            bytes: item.bytes,
        })
    }

    /// Checks that an item may be destroyed as it is asked for.
    pub(super) async fn check_destroyable(
        &self,
        place: &AtticPlace,
        terms: PurgeTerms<'_>,
        asked_for: Option<&PurgedItem>,
    ) -> Result<(), CallError> {
        let item = self.attic_item(place).await?;
        if asked_for.is_some_and(|asked_for| *asked_for != item) {
            return Err(changed_meanwhile(format!(
                "it is not what was asked for, but {item}; look at it, and ask again"
            )));
        }
        let row = match &item.name {
            Some(name) => self.row_of(name).await?,
            None => None,
        };
        let Some(row) = row else {
            return decide(&item, terms, None);
        };
        let root = recorded_content(&row.record)?.root;
        let is_good = self.is_good_anywhere(&row).await?;
        decide(&item, terms, Some((root, is_good)))?;
        if terms.checksum == Some(&root) && !terms.last_copies {
            self.check_other_copy(&row, None).await?;
        }
        Ok(())
    }

    /// Destroys an item.
    pub(super) async fn destroy_item(
        &self,
        place: &AtticPlace,
        terms: PurgeTerms<'_>,
        asked_for: Option<&PurgedItem>,
        cause: &Cause,
    ) -> Result<String, CallError> {
        let asked_for = asked_for.ok_or_else(unnamed)?;
        self.check_destroyable(place, terms, Some(asked_for))
            .await?;
        let replicas = &self.archive.calls.replicas;
        let purging = replicas.purge_item(place, terms.checksum, cause);
        let bytes = self
            .archive
            .calls
            .reading_call(asked_for.bytes, purging)
            .await?;
        Ok(format!("{bytes} bytes of {asked_for} were destroyed"))
    }
}

/// Decides whether an item may be destroyed. `meant` is the root that the archive has for its name, and whether there
/// is a good copy of that.
fn decide(
    item: &PurgedItem,
    terms: PurgeTerms<'_>,
    meant: Option<(Root, bool)>,
) -> Result<(), CallError> {
    let is_part = item.name.is_some() && item.kind != AtticKind::File;
    match (is_part, terms.checksum) {
        (true, None) => Ok(()),
        (true, Some(_)) => Err(changed_meanwhile(format!(
            "{item} is no whole file; ask without a checksum"
        ))),
        (false, None) => Err(changed_meanwhile(format!(
            "{item} may be a whole file: name its BLAKE3 checksum (`--checksum`)"
        ))),
        (false, Some(named)) => {
            // An unknown file may be the last copy of it; a wrong copy of a known file is not.
            let is_last = meant.is_none_or(|(root, is_good)| root == *named && !is_good);
            if is_last && !terms.last_copies {
                return Err(changed_meanwhile(format!(
                    "the archive knows no good copy besides {item}; add `--last-copies` if it shall be lost"
                )));
            }
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use archive_daemon::Chance;
    use archive_decisions::store::ReplicaSpec;
    use archive_ledger::admin::Admin;
    use archive_ledger::anomalies::Anomalies;
    use archive_ledger::requests::table::Requests;
    use archive_ledger::requests::{ActSubject, PersonRequest, RequestStatus, RequestedAct};
    use archive_ledger::standing::Standing;
    use archive_model::{Act, FileName};

    use super::*;
    use crate::archive::Archive;
    use crate::claims::NameClaims;
    use archive_stores::scripted::{ScriptedReplicas, attic_file, id};

    fn item(name: Option<&str>, kind: AtticKind) -> PurgedItem {
        PurgedItem {
            name: name.map(|name| FileName::new(name).unwrap()),
            kind,
            bytes: 7,
        }
    }

    /// Fails if a whole file is destroyed by its place alone, or the last good copy without saying so.
    #[test]
    fn destroying_names_content_and_last_copies() {
        let right = Root::from_bytes([1; 32]);
        let other = Root::from_bytes([2; 32]);
        let file = item(Some("a"), AtticKind::File);
        let decide = |item: &PurgedItem, checksum: Option<&Root>, last_copies, meant| {
            let terms = PurgeTerms {
                checksum,
                last_copies,
            };
            decide(item, terms, meant).map_err(|error| {
                assert_eq!(error.kind, CallErrorKind::Mismatch);
                let words = ["--checksum", "--last-copies", "without a checksum"];
                words
                    .into_iter()
                    .find(|word| error.reason.contains(word))
                    .unwrap()
            })
        };
        let good = Some((right, true));
        assert_eq!(decide(&file, None, true, good), Err("--checksum"));
        assert_eq!(decide(&file, Some(&right), false, good), Ok(()));
        for meant in [None, Some((right, false))] {
            let refused = decide(&file, Some(&right), false, meant);
            assert_eq!(refused, Err("--last-copies"), "{meant:?}");
            assert_eq!(decide(&file, Some(&right), true, meant), Ok(()));
        }
        // A wrong copy is never the last good one.
        let wrong = decide(&file, Some(&other), false, Some((right, false)));
        assert_eq!(wrong, Ok(()));
        for kind in [AtticKind::Groups, AtticKind::Leftover] {
            let part = item(Some("a"), kind);
            assert_eq!(decide(&part, None, false, None), Ok(()));
            let named = decide(&part, Some(&right), true, None);
            assert_eq!(named, Err("without a checksum"));
        }
        let unreadable = item(None, AtticKind::Leftover);
        assert_eq!(decide(&unreadable, None, true, None), Err("--checksum"));
    }

    fn people(scripted: &ScriptedReplicas, admin: &Admin) -> People {
        let (transfers, _) = scripted.transfers();
        let specs = scripted.specs.iter().map(|spec| ReplicaSpec {
            id: spec.id.clone(),
            kind: spec.kind,
            required: spec.required,
        });
        let clock = transfers.calls.clock.clone();
        let archive = Archive {
            admin: admin.clone(),
            anomalies: Arc::new(Anomalies::open(admin, clock).unwrap()),
            standing: Arc::new(Standing::open(admin.clone()).unwrap()),
            specs: Arc::new(scripted.specs.clone()),
            calls: transfers.calls.clone(),
            assembler: scripted.assembler(),
            mail: transfers.mail.clone(),
            claims: NameClaims::default(),
            tasks: transfers.tasks.clone(),
            chance: Chance::system_chance(),
        };
        People {
            archive,
            requests: Requests::new(admin.clone()).unwrap(),
            transfers,
            specs: specs.collect(),
            spool: "none".into(),
            acting: tokio::sync::RwLock::default(),
        }
    }

    /// Fails if another item at the same place is destroyed than two persons decided, or one by a request that does not
    /// name it.
    #[tokio::test]
    async fn only_the_named_attic_item_is_destroyed() {
        let directory = tempfile::tempdir().unwrap();
        let admin = Admin::init(directory.path()).unwrap();
        let scripted = ScriptedReplicas::start().await;
        scripted.script().attic = vec![attic_file("v", "x1", "a")];
        let people = people(&scripted, &admin);
        let place = AtticPlace {
            replica: id("one"),
            node: "one-1".parse().unwrap(),
            volume: "v".parse().unwrap(),
            id: "x1".to_owned(),
        };
        let purge = |checksum: Option<Root>, subject| RequestedAct {
            act: Act::Purge {
                place: place.clone(),
                checksum,
                last_copies: checksum.is_some(),
            },
            subject,
        };
        let destroy = |subject| purge(Some(Root::from_bytes([1; 32])), subject);
        let right = item(Some("a"), AtticKind::File);
        let other = item(Some("b"), AtticKind::File);
        for (act, why) in [
            (
                destroy(ActSubject::Item(other)),
                "it is not what was asked for",
            ),
            (
                destroy(ActSubject::None),
                "does not name what it would destroy",
            ),
            (
                purge(None, ActSubject::None),
                "does not name what it would destroy",
            ),
            (destroy(ActSubject::Item(right)), ""),
        ] {
            let now = people.archive.now();
            let request = PersonRequest {
                number: 1,
                act,
                reason: "space".to_owned(),
                asked_by: "custodian/otto".to_owned(),
                asked: now,
                expires: now,
                state: RequestStatus::Approved {
                    by: "custodian/carl".to_owned(),
                    at: now,
                },
            };
            let told = people.perform_act(&request).await.map_err(|error| {
                assert!(error.reason.contains(why), "{error}");
            });
            let is_destroyed = why.is_empty();
            assert_eq!(told.is_ok(), is_destroyed, "{why}");
            let acts = scripted.script().acts.clone();
            assert_eq!(acts.len(), usize::from(is_destroyed), "{acts:?}");
        }
    }
}
