//! The index against the rows, after random changes, a cut and a lie.

use archive_model::{NodeKey, ReplicaState, StoreFailure, VolumeKey};
use tools_testing::Random;

use super::super::{AdminRow, FileWalk, PageLimits};
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
    let mut changes = admin.begin_changes();
    for _ in 0..=random.below(3) {
        let number = u8::try_from(random.below(u64::from(NAMES))).unwrap();
        if random.below(5) == 0 {
            admin.forget_file(&mut changes, &name(number)).unwrap();
        } else {
            let row = random_row(random, number);
            admin.put_row(&mut changes, &row).unwrap();
        }
    }
    admin.commit_changes(changes).unwrap();
}

/// Returns the rows of the index that follow from those of the files.
fn expected(admin: &Admin) -> BTreeSet<Key> {
    let rows = admin.list_files(None).unwrap().map(Result::unwrap);
    rows.flat_map(|row| {
        let places: Vec<_> = places_of(&row.record).collect();
        let keys = places.into_iter();
        keys.map(move |place| key(&place, &row.record.name))
    })
    .collect()
}

fn indexed(admin: &Admin) -> BTreeSet<Key> {
    admin
        .places
        .scan_places()
        .unwrap()
        .map(Result::unwrap)
        .collect()
}

fn scopes() -> Vec<WalkScope> {
    let mut scopes = vec![WalkScope::Archive];
    for replica in ["one", "two", "three"] {
        let replica = ReplicaId::new(replica).unwrap();
        for number in 0..4 {
            scopes.push(WalkScope::Node(NodeKey {
                replica: replica.clone(),
                node: node(number),
            }));
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
    assert_eq!(admin.count_rows(drop).unwrap(), 0);
    for scope in scopes() {
        let rows = admin.list_files(None).unwrap().map(Result::unwrap);
        let there: Vec<AdminRow> = rows.filter(|row| scope.has_record(&row.record)).collect();
        let limits = PageLimits {
            rows: 1 + random.index(7),
            picks: 1 + random.index(5),
        };
        let mut walk = FileWalk::over_scope(scope.clone());
        let mut walked = Vec::new();
        loop {
            let page = walk.next_page(&admin, limits, Some).unwrap();
            assert!(page.picked.len() <= limits.rows.min(limits.picks));
            walked.extend(page.picked);
            if page.is_last {
                break;
            }
        }
        assert_eq!(walked, there, "{scope:?}");
    }
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

/// Fails if an index that lacks a file, or has one that is gone, needs a second start, is believed before it is
/// corrected, or the number of its differing entries is not reported.
#[test]
fn differing_index_is_corrected_when_rows_are_counted() {
    let directory = tempfile::tempdir().unwrap();
    let admin = Admin::init(directory.path()).unwrap();
    let mut random = Random::new(14);
    (0..60).for_each(|_| change(&admin, &mut random));
    let is_right = indexed(&admin);
    let lost = is_right.first().unwrap();
    let (replica, node, volume, name) = is_right.last().unwrap().clone();
    let beside = format!("{volume}-2");
    let stale = [
        (replica.clone(), node.clone(), beside, name),
        (replica, node, volume, Text(FileName::new("gone").unwrap())),
    ];
    let mut batch = admin.database.batch();
    batch.delete(&admin.places.rows, lost).unwrap();
    for key in &stale {
        batch.put(&admin.places.rows, key, &()).unwrap();
    }
    batch.commit().unwrap();
    drop(admin);

    let admin = Admin::open(directory.path()).unwrap();
    let (Text(replica), Text(node), _, Text(name)) = lost;
    let there = || {
        let scope = WalkScope::Node(NodeKey {
            replica: replica.clone(),
            node: node.clone(),
        });
        let mut rows = admin.files_in(&scope, None).unwrap().map(Result::unwrap);
        rows.any(|row| row.record.name == *name)
    };
    assert!(there(), "the index is believed before it was compared");
    assert_eq!(admin.count_rows(drop).unwrap(), 3);
    assert_eq!(indexed(&admin), is_right);
    assert!(there());
    assert_eq!(admin.count_rows(drop).unwrap(), 0);
    drop(admin);
    let admin = Admin::open(directory.path()).unwrap();
    assert_eq!(admin.count_rows(drop).unwrap(), 0);
}
