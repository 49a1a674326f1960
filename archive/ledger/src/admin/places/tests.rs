//! The index against the rows, after random changes, a cut and a lie.

use archive_model::{ReplicaState, StoreFailure, VolumeKey};
use testing::Random;

use super::super::{AdminRow, PageLimits, Walk};
use super::*;
use crate::restore::testing::row;

const NAMES: u8 = 40;

fn name(number: u8) -> FileName {
    FileName::new(&format!("file-{number:02}")).unwrap()
}

fn node(number: u64) -> NodeId {
    NodeId::new(&format!("n-{number}")).unwrap()
}

/// Returns a row whose copies are anywhere, in any state.
fn random_row(random: &mut Random, number: u8) -> AdminRow {
    let mut row = row(name(number).as_str(), number + 1);
    for copy in row.record.replicas.values_mut() {
        copy.state = match random.below(6) {
            0 => ReplicaState::UploadStarted,
            1 => ReplicaState::Withdrawn("r1".to_owned()),
            2 => ReplicaState::UploadFailed(StoreFailure::Unreachable("no".to_owned())),
            _ => ReplicaState::UploadCompleted,
        };
        copy.node = (random.below(6) > 0).then(|| node(random.below(3)));
        let volume = format!("v-{}", random.below(3));
        copy.volume = (random.below(6) > 0).then(|| volume.parse().unwrap());
    }
    row
}

/// Commits a few random changes.
fn change(admin: &Admin, random: &mut Random) {
    let mut changes = admin.change();
    for _ in 0..=random.below(3) {
        let number = u8::try_from(random.below(u64::from(NAMES))).unwrap();
        if random.below(5) == 0 {
            admin.forget(&mut changes, &name(number)).unwrap();
        } else {
            let row = random_row(random, number);
            admin.put(&mut changes, &row).unwrap();
        }
    }
    admin.commit(changes).unwrap();
}

/// Returns the rows of the index that follow from those of the files.
fn expected(admin: &Admin) -> BTreeSet<Key> {
    let rows = admin.files(None).unwrap().map(Result::unwrap);
    rows.flat_map(|row| {
        let places: Vec<_> = places_of(&row.record).collect();
        let keys = places.into_iter();
        keys.map(move |place| key(&place, &row.record.name))
    })
    .collect()
}

fn indexed(admin: &Admin) -> BTreeSet<Key> {
    admin.places.scan().unwrap().map(Result::unwrap).collect()
}

fn scopes() -> Vec<WalkScope> {
    let mut scopes = vec![WalkScope::Archive];
    for replica in ["one", "two", "three"] {
        let replica = ReplicaId::new(replica).unwrap();
        for number in 0..4 {
            scopes.push(WalkScope::Node(replica.clone(), node(number)));
            scopes.extend((0..4).map(|volume| {
                WalkScope::Volume(VolumeKey {
                    replica: replica.clone(),
                    node: node(number),
                    volume: format!("v-{volume}").parse().unwrap(),
                })
            }));
        }
    }
    scopes
}

/// Fails if a change of rows does not change the index, or a walk over a place shows other files than those whose rows
/// are there, twice, or in another order.
#[test]
fn random_changes_keep_index_and_rows_alike() {
    let directory = tempfile::tempdir().unwrap();
    let admin = Admin::init(directory.path()).unwrap();
    let mut random = Random::new(12);
    for round in 0..60 {
        change(&admin, &mut random);
        assert_eq!(indexed(&admin), expected(&admin), "round {round}");
    }
    for scope in scopes() {
        let rows = admin.files(None).unwrap().map(Result::unwrap);
        let there: Vec<AdminRow> = rows.filter(|row| scope.has(&row.record)).collect();
        let limits = PageLimits {
            rows: 1 + random.index(7),
            picks: 1 + random.index(5),
        };
        let (mut walk, mut walked) = (Walk::over(scope.clone()), Vec::new());
        loop {
            let page = walk.page(&admin, limits, Some).unwrap();
            assert!(page.picked.len() <= limits.rows.min(limits.picks));
            walked.extend(page.picked);
            if page.is_last {
                break;
            }
        }
        assert_eq!(walked, there, "{scope:?}");
    }
    admin.count(drop).unwrap();
}

/// Fails if an index that was not made to its end, or that is of older rows, is believed.
#[test]
fn absent_or_cut_index_of_places_is_rebuilt() {
    let directory = tempfile::tempdir().unwrap();
    let admin = Admin::init(directory.path()).unwrap();
    let mut random = Random::new(13);
    (0..60).for_each(|_| change(&admin, &mut random));
    let is_whole = indexed(&admin);
    let mut batch = admin.database.batch();
    let Places { rows, numbers } = &admin.places;
    batch.delete(numbers, &WHOLE.to_owned()).unwrap();
    batch.delete(rows, is_whole.first().unwrap()).unwrap();
    let (replica, node, volume, _) = is_whole.last().unwrap().clone();
    let stale = (replica, node, volume, Text(FileName::new("gone").unwrap()));
    batch.put(rows, &stale, &()).unwrap();
    batch.commit().unwrap();
    drop(admin);
    let admin = Admin::open(directory.path()).unwrap();
    assert_eq!(indexed(&admin), is_whole);
}

/// Fails if an index that lacks a file is not noticed when the rows are counted, or stays so.
#[test]
fn wrong_index_is_refused_and_rebuilt() {
    let directory = tempfile::tempdir().unwrap();
    let admin = Admin::init(directory.path()).unwrap();
    let mut changes = admin.change();
    admin.put(&mut changes, &row("a", 1)).unwrap();
    admin.commit(changes).unwrap();
    let mut batch = admin.database.batch();
    let lost = indexed(&admin).pop_first().unwrap();
    batch.delete(&admin.places.rows, &lost).unwrap();
    batch.commit().unwrap();
    let error = admin.count(drop).unwrap_err();
    assert!(matches!(&error, AdminError::Places(_)), "{error}");
    drop(admin);
    let admin = Admin::open(directory.path()).unwrap();
    admin.count(drop).unwrap();
    assert_eq!(indexed(&admin).len(), 2);
}
