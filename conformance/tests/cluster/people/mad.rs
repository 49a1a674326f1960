//! Clients gone mad who hold the certificates of people: thousands of removals, by one person and then by two.

use archive_durable::directory;
use proto_archive::wire::request_state::State as RequestStage;
use proto_archive::wire::{AtticsRef, Mode};
use tokio::task::JoinSet;

use super::super::visits::deposit;
use super::super::world::NODES;
use super::*;

/// The number of files that a node lets go within an hour here.
const AN_HOUR: usize = 25;

/// The number of files that are stored, and the number of names that nobody has.
const FILES: usize = 60;
const NOBODYS: usize = 10_000;

/// The number of lanes that act at once.
const LANES: usize = 16;

fn file(number: usize) -> FileName {
    name(&format!("f-{number}"))
}

fn bytes(number: usize) -> Vec<u8> {
    noise(100, number as u64)
}

fn removal(name: &FileName, replica: &str, content: &[u8], last_copies: bool) -> Act {
    Act::Remove(Remove {
        name: name.to_string(),
        replica: replica.to_owned(),
        checksum: root(content).as_bytes().to_vec().into(),
        last_copies,
    })
}

/// Returns the checksum of a file, as a purge names it.
fn root_of(file: &str) -> bytes::Bytes {
    let number = file.strip_prefix("f-").unwrap().parse().unwrap();
    root(&bytes(number)).as_bytes().to_vec().into()
}

/// Does something for each, some at once; what came of each, in no order.
async fn for_each<T, R, F>(all: Vec<T>, act: impl Fn(T) -> F + Clone + Send + 'static) -> Vec<R>
where
    T: Send + 'static,
    R: Send + 'static,
    F: Future<Output = R> + Send + 'static,
{
    let mut lanes: Vec<Vec<T>> = std::iter::repeat_with(Vec::new).take(LANES).collect();
    for (number, one) in all.into_iter().enumerate() {
        lanes[number % LANES].push(one);
    }
    let mut tasks = JoinSet::new();
    for lane in lanes {
        let act = act.clone();
        tasks.spawn(async move {
            let mut said = Vec::new();
            for one in lane {
                said.push(act(one).await);
            }
            said
        });
    }
    tasks.join_all().await.into_iter().flatten().collect()
}

/// Lets every node put no more than [`AN_HOUR`] files aside within an hour.
async fn brake_all(cluster: &mut Cluster) {
    cluster.node_settings = format!("[attic]\nremovals_per_hour = {AN_HOUR}\n");
    for node in NODES {
        cluster.stop(node).await;
        cluster.start(node).await;
    }
    cluster.until_all_nodes_live().await;
}

/// Sets the node of replica one to drain.
async fn drain(cluster: &Cluster) {
    let request = NodeRequest {
        node: "one-1".to_owned(),
        order: Some(SetModeRequest {
            mode: Mode::Draining.into(),
        }),
        replica: String::new(),
    };
    let mode = people(cluster, "operator/otto").node(request).await;
    assert_eq!(mode.unwrap().into_inner().mode(), Mode::Draining);
}

async fn store_all(cluster: &Cluster) {
    let depositor = std::sync::Arc::new(cluster.depositor());
    let stored = for_each((0..FILES).collect(), move |number| {
        let depositor = std::sync::Arc::clone(&depositor);
        async move {
            let deposit = deposit(&file(number), &bytes(number));
            depositor.store(&deposit, &|_| {}).await.map(drop)
        }
    });
    for stored in stored.await {
        stored.unwrap();
    }
}

async fn ask_all(people: People, acts: Vec<Act>) -> Vec<Result<RequestState, Status>> {
    let asked = for_each(acts, move |act| {
        let mut people = people.clone();
        async move {
            let request = AskRequest {
                act: Some(act),
                reason: "it told me to".to_owned(),
            };
            people.ask(request).await.map(tonic::Response::into_inner)
        }
    });
    asked.await
}

async fn approve_all(people: People, ids: Vec<String>) -> Vec<Result<RequestState, Status>> {
    let approved = for_each(ids, move |id| {
        let mut people = people.clone();
        async move {
            let approved = people.approve(RequestRef { id }).await;
            approved.map(tonic::Response::into_inner)
        }
    });
    approved.await
}

/// Returns the number of files that a replica has under their names, and the number in its attic.
fn counts(cluster: &Cluster, replica: &str) -> (usize, usize) {
    let is_there = |number: &usize| cluster.copy(replica, &file(*number)).try_exists().unwrap();
    let attic = cluster.path(replica).join("volume/attic");
    let aside = directory::list_directory(&attic).unwrap().len();
    ((0..FILES).filter(is_there).count(), aside)
}

/// Two persons approve all of these: as many as within an hour are done, and the rest says why not.
async fn two_persons(cluster: &Cluster, ids: Vec<String>) {
    let ended = approve_all(people(cluster, "custodian/bert"), ids).await;
    let ended: Vec<RequestState> = ended.into_iter().map(Result::unwrap).collect();
    let (done, failed): (Vec<_>, Vec<_>) = ended
        .iter()
        .partition(|one| one.state() == RequestStage::Done);
    assert_eq!(done.len(), AN_HOUR, "{:?}", failed.first());
    for one in failed {
        assert_is_braked(one);
    }
}

/// Asserts that a removal failed because its node has removed as much as it may within an hour, and for no other
/// reason.
fn assert_is_braked(ended: &RequestState) {
    assert_eq!(ended.state(), RequestStage::Failed, "{ended:?}");
    let brake = format!("at most {AN_HOUR} files an hour");
    assert!(ended.outcome.contains(&brake), "{ended:?}");
}

/// Fails if who drains a node first may then remove more of its files within an hour.
#[test]
fn draining_first_does_not_release_the_brake() {
    on_a_cluster(async |cluster: &mut Cluster| {
        brake_all(cluster).await;
        store_all(cluster).await;
        drain(cluster).await;
        let acts = (0..FILES).map(|n| removal(&file(n), "one", &bytes(n), false));
        let asked = ask_all(people(cluster, "custodian/anna"), acts.collect()).await;
        let ids = asked.into_iter().map(|one| one.unwrap().id).collect();
        two_persons(cluster, ids).await;
        assert_eq!(counts(cluster, "one"), (FILES - AN_HOUR, AN_HOUR));
    });
}

/// Fails if a person alone can remove anything with thousands of requests, or if two persons together get past the
/// hourly brake, by a restart for example.
#[test]
fn mass_removal_needs_second_person_and_is_braked() {
    on_a_cluster(async |cluster: &mut Cluster| {
        brake_all(cluster).await;
        store_all(cluster).await;
        let anna = || people(cluster, "custodian/anna");
        let nobodys = (0..NOBODYS).map(|n| removal(&name(&format!("n-{n}")), "one", b"", true));
        let known = (0..FILES).map(|n| removal(&file(n), "one", &bytes(n), false));
        let acts = known.chain(nobodys).collect();
        let (asked, refused): (Vec<_>, Vec<_>) = ask_all(anna(), acts)
            .await
            .into_iter()
            .partition(Result::is_ok);
        assert_eq!((asked.len(), refused.len()), (FILES, NOBODYS));
        let unknown = |one: &Result<_, Status>| one.as_ref().unwrap_err().code() == Code::NotFound;
        assert!(refused.iter().all(unknown));
        let ids: Vec<String> = asked.into_iter().map(|one| one.unwrap().id).collect();

        // Alone, in whatever role.
        for grant in ["custodian/anna", "officer/anna", "officer/olga"] {
            for said in approve_all(people(cluster, grant), ids.clone()).await {
                assert_eq!(said.unwrap_err().code(), Code::PermissionDenied, "{grant}");
            }
        }
        assert_eq!(counts(cluster, "one"), (FILES, 0));

        two_persons(cluster, ids).await;
        assert_eq!(counts(cluster, "one"), (FILES - AN_HOUR, AN_HOUR));
        assert_eq!(counts(cluster, "two"), (FILES, 0));

        // The other replica, last copies or not; and what lies in the attic is too young to be destroyed.
        let acts = (0..FILES).map(|n| removal(&file(n), "two", &bytes(n), true));
        let asked = ask_all(anna(), acts.collect()).await;
        let ids = asked.into_iter().map(|one| one.unwrap().id).collect();
        two_persons(cluster, ids).await;
        assert_eq!(counts(cluster, "two"), (FILES - AN_HOUR, AN_HOUR));
        let mut attics = people(cluster, "officer/olga")
            .attics(AtticsRequest::default())
            .await
            .unwrap()
            .into_inner();
        let mut purges = Vec::new();
        while let Some(page) = attics.message().await.unwrap() {
            for item in page.items {
                let replica = item.replica;
                let item = item.item.unwrap();
                purges.push(Act::Purge(AtticsRef {
                    replica,
                    node: item.node,
                    volume: item.volume,
                    id: item.id,
                    reason: String::new(),
                    checksum: root_of(&item.name),
                    last_copies: true,
                }));
            }
        }
        assert_eq!(purges.len(), 2 * AN_HOUR);
        purges.truncate(10);
        let without = |act: &Act| {
            let Act::Purge(purge) = act else {
                panic!("{act:?}")
            };
            Act::Purge(AtticsRef {
                checksum: Vec::new().into(),
                ..purge.clone()
            })
        };
        for asked in ask_all(anna(), purges.iter().map(without).collect()).await {
            let refused = asked.unwrap_err();
            assert!(refused.message().contains("--checksum"), "{refused}");
        }
        let asked = ask_all(anna(), purges).await;
        let ids = asked.into_iter().map(|one| one.unwrap().id).collect();
        for ended in approve_all(people(cluster, "custodian/bert"), ids).await {
            let ended = ended.unwrap();
            assert_eq!(ended.state(), RequestStage::Failed, "{ended:?}");
            assert!(ended.outcome.contains("`attic.min_age`"), "{ended:?}");
        }
        for replica in ["one", "two"] {
            assert_eq!(counts(cluster, replica), (FILES - AN_HOUR, AN_HOUR));
        }
        // Over a restart of everything that could forget it.
        for part in [REPOSITORY, NODES[0]] {
            cluster.stop(part).await;
            cluster.start(part).await;
        }
        cluster.until_all_nodes_live().await;
        let is_left = |n: &usize| cluster.copy("one", &file(*n)).try_exists().unwrap();
        let left = (0..FILES).find(is_left).unwrap();
        let act = removal(&file(left), "one", &bytes(left), true);
        let asked = ask(cluster, "custodian/anna", act, "once more")
            .await
            .unwrap();
        let ended = approve(cluster, "custodian/bert", &asked.id).await.unwrap();
        assert_is_braked(&ended);
    });
}
