//! `replace`, `adopt`, `withdraw`, `remove`, `requests`, `approve` and `attic`: acts of persons.

use proto_archive::convert;
use proto_archive::wire::ask_request::Act;
use proto_archive::wire::replace_request::Step;
use proto_archive::wire::request_state::{Act as ActKind, State};
use proto_archive::wire::{
    AdoptFileResponse, AtticItem, AtticsResponse, CopyCondition, FileEntry, Gap, ReplaceResponse,
    RequestState, RequestsResponse, Role, attic_item, attics_response,
};
use tools_testing::noise;

use crate::holdfast::Place;

const PLACE: &str = "two/n-2/v/x-1";

fn checksum() -> String {
    "0a".repeat(32)
}

fn entry(file: &str, condition: CopyCondition) -> FileEntry {
    FileEntry {
        name: file.into(),
        node: "n-2".into(),
        volume: "v".into(),
        size: 3,
        root: vec![1; 32].into(),
        condition: condition.into(),
        stored: "2026-01-01T00:00:01Z".parse().ok(),
        ..FileEntry::default()
    }
}

fn put_aside(file: &str) -> AtticItem {
    AtticItem {
        node: "n-2".into(),
        volume: "v".into(),
        id: "x-1".into(),
        name: file.into(),
        at: "2026-01-02T03:04:05Z".into(),
        who: "officer/ora".into(),
        why: "bad\u{1b}[2J disk".into(),
        kind: attic_item::Kind::File.into(),
        bytes: 1500,
        ..AtticItem::default()
    }
}

fn request(act: ActKind, state: State) -> RequestState {
    let kind = convert::act_kind("act", act.into()).expect("a kind");
    RequestState {
        id: "17".into(),
        act: act.into(),
        what: format!("{kind} a in two"),
        reason: "why".into(),
        asked_by: "custodian/cus-1".into(),
        asked: "2026-01-02T03:04:05Z".into(),
        expires: "2026-01-09T03:04:05Z".into(),
        state: state.into(),
        approvers: vec![Role::Custodian.into()],
        ..RequestState::default()
    }
}

/// Fails if `replace` sends other bytes than those of the file, or can be typed without the checksum of the copy that
/// goes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_is_replaced_by_a_file() {
    let place = Place::new().await;
    let bytes = noise(300_000, 1);
    place.write("good.warc", &bytes);
    let answer = ReplaceResponse {
        attic: Some(put_aside("a")),
        entry: Some(entry("a", CopyCondition::Present)),
    };
    place.world.archive.state().keeping.replace.say([answer]);
    let checksum = checksum();
    let words = |with| {
        let words = [
            "replace",
            "a",
            "--replica",
            "two",
            "--checksum",
            &checksum,
            "--with",
            with,
        ];
        [&words[..], &["--reason", "from tape 7", "--as", "officer"]].concat()
    };
    let ran = place.holdfast(&words("good.warc")).expect(0);
    assert_eq!(
        ran.out,
        format!("a  replaced in two, 3 B; the wrong copy is in attic {PLACE}\n")
    );
    {
        let mut state = place.world.archive.state();
        assert_eq!(state.keeping.replaced, bytes);
        let asked = state.keeping.replace.asked.pop().unwrap().step;
        assert!(matches!(asked, Some(Step::Open(open)) if open.checksum == vec![10; 32]));
    }
    let said = place
        .holdfast(&[&words("good.warc")[..], &["--json"]].concat())
        .expect(0)
        .json();
    assert_eq!(said["attic"]["place"], PLACE);
    place.holdfast(&words("absent.warc")).usage();
    place.holdfast(&words(".")).usage();
    place
        .holdfast(&["replace", "a", "--replica", "two", "--with", "good.warc"])
        .usage();
    let refusal =
        archive_rpc::CallErrorKind::Mismatch.to_status("a in replica two has another checksum");
    place
        .world
        .archive
        .state()
        .keeping
        .replace
        .fail([], refusal);
    let ran = place.holdfast(&words("good.warc")).expect(5);
    assert_eq!(ran.err, "holdfast: a in replica two has another checksum\n");
}

/// Fails if `adopt` exits with 0 although the file is still unexpected, or if a new root can be had without a reason.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn adoption_takes_file_or_requests_new_root() {
    let place = Place::new().await;
    for (condition, code) in [(CopyCondition::Present, 0), (CopyCondition::Unexpected, 1)] {
        let entry = Some(entry("a", condition));
        place
            .world
            .archive
            .state()
            .keeping
            .adopt
            .say([AdoptFileResponse { entry }]);
        let ran = place.holdfast(&["adopt", "a", "--replica", "two", "--as", "officer"]);
        let ran = ran.expect(code);
        assert!(
            ran.out
                .starts_with("a  adopted, 3 B on node n-2, volume v: "),
            "{ran:?}"
        );
    }
    place
        .world
        .archive
        .state()
        .keeping
        .ask
        .say([request(ActKind::NewRoot, State::Open)]);
    let checksum = checksum();
    let words = ["adopt", "a", "--replica", "two", "--new-root", &checksum];
    place.holdfast(&words).usage();
    let words = [&words[..], &["--reason", "only copy", "--as", "custodian"]].concat();
    place.holdfast(&words).expect(0);
    let asked = place.world.archive.state().keeping.ask.asked.pop().unwrap();
    assert_eq!(asked.reason, "only copy");
    assert!(matches!(asked.act, Some(Act::NewRoot(asked)) if asked.root == vec![10; 32]));
}

/// Fails if a verb asks for another act than was typed, or if `approve` exits with 0 although the act was not done.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn destructive_request_needs_approval_of_second_person() {
    let place = Place::new().await;
    let checksum = checksum();
    let remove = [
        "remove",
        "a",
        "--replica",
        "two",
        "--checksum",
        &checksum,
        "--reason",
        "why",
    ];
    let purge = [
        "attic",
        "purge",
        PLACE,
        "--checksum",
        &checksum,
        "--last-copies",
        "--reason",
        "why",
    ];
    let accept = ["anomalies", "accept", "3", "--reason", "why"];
    let retire = |what: &'static str| [what, "retire", "x-1", "--reason", "why"];
    let ask = |act: ActKind, words: &[&str], who: &str| {
        place
            .world
            .archive
            .state()
            .keeping
            .ask
            .say([request(act, State::Open)]);
        let ran = place.holdfast(&[words, &["--as", who]].concat()).expect(0);
        let asked = place.world.archive.state().keeping.ask.asked.pop().unwrap();
        assert_eq!(asked.reason, "why");
        (ran, asked.act.unwrap())
    };
    let (ran, act) = ask(
        ActKind::Remove,
        &[&remove[..], &["--last-copies"]].concat(),
        "custodian",
    );
    let expected = "request 17 (open): remove a in two\n  \
                    asked by custodian/cus-1, 2026-01-02T03:04:05Z: why\n  \
                    not done yet: until 2026-01-09T03:04:05Z another person who is custodian can type\n    \
                    holdfast approve 17 --as custodian/NAME\n  \
                    withdraw it with `holdfast withdraw 17`\n";
    assert_eq!(ran.out, expected);
    assert!(matches!(act, Act::Remove(asked) if asked.last_copies && asked.replica == "two"));
    assert!(
        matches!(ask(ActKind::Purge, &purge, "custodian").1, Act::Purge(asked) if asked.id == "x-1" && asked.checksum.len() == 32 && asked.last_copies)
    );
    assert!(
        matches!(ask(ActKind::Accept, &accept, "custodian").1, Act::Accept(asked) if asked.anomaly == "3")
    );
    let retired = |what| ask(ActKind::Retire, &retire(what), "operator").1;
    assert!(matches!(retired("node"), Act::RetireNode(asked) if asked.node == "x-1"));
    assert!(matches!(retired("volume"), Act::RetireVolume(asked) if asked.volume == "x-1"));
    assert!(matches!(retired("replica"), Act::RetireReplica(asked) if asked.replica == "x-1"));

    for (state, word, code) in [
        (State::Done, "done", 0),
        (State::Failed, "failed", 1),
        (State::Open, "open", 1),
    ] {
        place
            .world
            .archive
            .state()
            .keeping
            .approve
            .say([request(ActKind::Remove, state)]);
        let ran = place
            .holdfast(&["approve", "17", "--as", "custodian/cus-1"])
            .expect(code);
        assert!(
            ran.out.starts_with(&format!("request 17 ({word})")),
            "{ran:?}"
        );
    }
    let own = archive_rpc::CallErrorKind::Refused.to_status("custodian/cus-1 asked for it");
    place.world.archive.state().keeping.approve.fail([], own);
    place
        .holdfast(&["approve", "17", "--as", "custodian"])
        .expect(5);
    place
        .world
        .archive
        .state()
        .keeping
        .withdraw
        .say([request(ActKind::Remove, State::Withdrawn)]);
    let ran = place
        .holdfast(&["withdraw", "17", "--as", "operator", "--json"])
        .expect(0);
    assert_eq!(ran.json()["state"], "withdrawn");
    // Not without a reason, and not without saying what goes.
    place.holdfast(&remove[..6]).usage();
    place
        .holdfast(&[&remove[..4], &["--reason", "why"]].concat())
        .usage();
    place
        .holdfast(&["attic", "purge", "x-1", "--reason", "why"])
        .usage();
}

/// Fails if a request that has expired is shown as one that can still be approved.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_are_listed() {
    let place = Place::new().await;
    let list = |requests: Vec<RequestState>, words: &[&str]| {
        place
            .world
            .archive
            .state()
            .keeping
            .requests
            .say([RequestsResponse { requests }]);
        place
            .holdfast(&[&["requests", "--as", "officer"], words].concat())
            .expect(0)
    };
    assert_eq!(list(vec![], &[]).out, "no request is open\n");
    let both = || {
        vec![
            request(ActKind::Purge, State::Open),
            request(ActKind::Remove, State::Expired),
        ]
    };
    let ran = list(both(), &["--all"]);
    assert!(ran.out.contains("request 17 (expired): remove"), "{ran:?}");
    assert_eq!(
        ran.out.matches("holdfast approve").count(),
        1,
        "only what is open"
    );
    assert_eq!(
        list(both(), &["--json"]).json()["requests"][1]["state"],
        "expired"
    );
}

/// Fails if a reason can steer the terminal, if a disk without a label hides the other disks, or if `restore` asks for
/// another item.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_attic_is_listed_and_gives_back() {
    let place = Place::new().await;
    let list = |gaps: Vec<Gap>, words: &[&str]| {
        let items = vec![attics_response::One {
            replica: "two".into(),
            item: Some(put_aside("a")),
        }];
        place
            .world
            .archive
            .state()
            .keeping
            .attics
            .say([AtticsResponse { items, gaps }]);
        place.holdfast(&[&["attic", "list", "--as", "officer"], words].concat())
    };
    let ran = list(vec![], &["--replica", "two", "--file", "a"]).expect(0);
    let expected = format!(
        "{PLACE}  file         1.5 kB  2026-01-02T03:04:05Z  a  officer/ora: bad [2J disk\n"
    );
    assert_eq!(ran.out, expected, "and nothing steers the terminal");
    // A disk without a label does not hide all the others.
    let gap = Gap {
        replica: "one".into(),
        node: "n-1".into(),
        volume: "/disks/1".into(),
        reason: "no label".into(),
    };
    let ran = list(vec![gap.clone()], &[]).expect(1);
    assert!(
        ran.err
            .contains("not listed: replica one, node n-1, volume /disks/1: no label"),
        "{ran:?}"
    );
    let said = list(vec![gap], &["--json"]).expect(1).json();
    assert_eq!(
        (&said["complete"], &said["items"][0]["place"]),
        (&false.into(), &PLACE.into())
    );
    assert_eq!(said["gaps"][0]["volume"], "/disks/1");

    place
        .world
        .archive
        .state()
        .keeping
        .restore
        .say([entry("a", CopyCondition::Present)]);
    let words = [
        "attic",
        "restore",
        PLACE,
        "--reason",
        "by mistake",
        "--as",
        "officer",
    ];
    let ran = place.holdfast(&words).expect(0);
    assert!(ran.out.starts_with("a  restored, 3 B"), "{ran:?}");
    let asked = place
        .world
        .archive
        .state()
        .keeping
        .restore
        .asked
        .pop()
        .unwrap();
    assert_eq!(
        (
            asked.volume.as_str(),
            asked.id.as_str(),
            asked.reason.as_str()
        ),
        ("v", "x-1", "by mistake")
    );
}
