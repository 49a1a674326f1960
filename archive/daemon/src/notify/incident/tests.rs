//! Every short life of an incident, with restarts at any point, and floods and contradictory reports.

use super::*;

const MINUTE: Duration = Duration::from_mins(1);
const TIMING: IncidentTiming = IncidentTiming {
    delay: Duration::from_mins(5),
    remind: Duration::from_hours(24),
};

#[derive(Clone, Copy, Debug)]
enum Act {
    Raise,
    Resolve,
    Wait(u32),
}

const ACTS: [Act; 5] = [
    Act::Raise,
    Act::Resolve,
    Act::Wait(3),
    Act::Wait(5),
    Act::Wait(24 * 60),
];

/// The messages that were announced, each with its time.
type ToldMessages = Vec<(Timestamp, IncidentStage)>;
type Truth = Vec<(Timestamp, bool)>;

/// Writes what changed, as the task does.
fn write(incidents: &mut Incidents, rows: &mut BTreeMap<String, IncidentRow>) {
    for (key, row) in incidents.take_changes() {
        match row {
            Some(row) => drop(rows.insert(key, row)),
            None => drop(rows.remove(&key)),
        }
    }
}

/// Plays `acts` as the task does: whatever is due while time passes is taken when it is due. After each act whose bit
/// is set in `restarts` there is a restart, from nothing but the rows.
fn play(acts: &[Act], restarts: u32) -> (ToldMessages, Truth) {
    let mut incidents = Incidents::new(TIMING, []);
    let mut now = Timestamp::UNIX_EPOCH;
    let mut told = Vec::new();
    let mut truth = vec![(now, false)];
    let mut rows = BTreeMap::new();
    for (index, act) in acts.iter().enumerate() {
        match act {
            Act::Raise => {
                incidents.raise_incident("k", &Problem::begun_now("t"), now);
                truth.push((now, true));
            }
            Act::Resolve => {
                incidents.resolve_incident("k", now);
                truth.push((now, false));
            }
            Act::Wait(minutes) => {
                let end = now + MINUTE * *minutes;
                while let Some(due) = incidents.next_due().filter(|due| *due <= end) {
                    now = now.max(due);
                    let news = incidents.take_news(now);
                    assert_eq!(news.len(), 1, "what is due can be taken, once");
                    told.extend(news.iter().map(|news| (now, news.what)));
                    incidents.note_taken(&news, now);
                    assert!(incidents.next_due().is_none_or(|due| due > now));
                }
                now = end;
            }
        }
        write(&mut incidents, &mut rows);
        assert!(incidents.leaving.is_empty(), "all of it was taken");
        if restarts & (1 << index) != 0 {
            incidents = Incidents::new(TIMING, rows.clone());
        }
    }
    truth.push((now, truth.last().unwrap().1));
    (told, truth)
}

/// Returns whether the problem existed (`wrong`) during all of the time from `from` to `to`.
fn was(truth: &[(Timestamp, bool)], wrong: bool, from: Timestamp, to: Timestamp) -> bool {
    truth.windows(2).all(|pair| {
        let ((start, state), (end, _)) = (pair[0], pair[1]);
        end <= from || start >= to || state == wrong || start == end
    })
}

fn check(acts: &[Act]) {
    let (told, truth) = play(acts, 0);
    for restarts in [u32::MAX, 0b010_1010, 0b101_0101] {
        assert_eq!(
            play(acts, restarts).0,
            told,
            "a restart was noticed: {acts:?}"
        );
    }
    let mut before: Option<(Timestamp, IncidentStage)> = None;
    for (at, what) in &told {
        match what {
            IncidentStage::Began => {
                assert!(!matches!(
                    before,
                    Some((_, IncidentStage::Began | IncidentStage::Lasts))
                ));
                assert!(was(&truth, true, *at - TIMING.delay, *at), "{acts:?}");
            }
            IncidentStage::Lasts => {
                let (last, _) = before.expect("told before");
                assert!(*at - TIMING.remind >= last, "{acts:?}");
            }
            IncidentStage::Over => {
                assert!(matches!(
                    before,
                    Some((_, IncidentStage::Began | IncidentStage::Lasts))
                ));
                assert!(was(&truth, false, *at - TIMING.delay, *at), "{acts:?}");
            }
        }
        before = Some((*at, *what));
    }
    // If nothing has changed for the delay, the last message tells the state.
    let (end, wrong) = *truth.last().unwrap();
    let begin = end - TIMING.delay;
    let then = truth.iter().rfind(|(at, _)| *at <= begin);
    let is_calm = truth
        .iter()
        .all(|(at, state)| *at <= begin || *state == wrong);
    if is_calm && then.is_some_and(|(_, state)| *state == wrong) {
        let told = matches!(
            before,
            Some((_, IncidentStage::Began | IncidentStage::Lasts))
        );
        assert_eq!(told, wrong, "{acts:?}");
    }
}

/// Fails if some order of reports and pauses is announced too early, twice or not at all, or a restart changes what is
/// announced.
#[test]
fn every_short_history_is_reported_exactly() {
    for length in 0..=7_u32 {
        for number in 0..5_usize.pow(length) {
            let mut rest = number;
            let acts: Vec<Act> = (0..length)
                .map(|_| {
                    let act = ACTS[rest % 5];
                    rest /= 5;
                    act
                })
                .collect();
            check(&acts);
        }
    }
}

/// Fails if an incident that is reported often makes several messages or keeps its first text, or a huge text is
/// announced in full.
#[test]
fn many_reports_of_one_incident_are_one_message() {
    let mut incidents = Incidents::new(TIMING, []);
    let mut now = Timestamp::UNIX_EPOCH;
    for number in 0..10_000 {
        incidents.raise_incident(
            "damaged",
            &Problem::begun_now(format!("{number} files")),
            now,
        );
    }
    incidents.raise_incident("other", &Problem::begun_now("x".repeat(1_000_000)), now);
    now += TIMING.delay;
    let news = incidents.take_news(now);
    assert_eq!(news.len(), 2);
    assert_eq!(
        (news[0].count, news[0].text.as_str()),
        (10_000, "9999 files")
    );
    assert_eq!(news[1].text.len(), LONGEST);
    assert_eq!(incidents.take_news(now), []);
}

/// Fails if memory grows with the number of incidents, or the excess ones stay open after their end.
#[test]
fn excess_incidents_are_reported_as_one() {
    let mut incidents = Incidents::new(TIMING, []);
    let mut now = Timestamp::UNIX_EPOCH;
    for number in 0..10 * MOST {
        incidents.raise_incident(&number.to_string(), &Problem::begun_now("t"), now);
    }
    assert_eq!(incidents.open.len(), MOST + 1);
    now += TIMING.delay;
    assert_eq!(incidents.take_news(now).len(), MOST + 1);
    for number in 0..10 * MOST {
        incidents.resolve_incident(&number.to_string(), now);
    }
    now += TIMING.delay;
    let news = incidents.take_news(now);
    assert_eq!(news.len(), MOST + 1);
    assert_eq!((incidents.open.len(), incidents.next_due()), (0, None));
    incidents.note_taken(&news, now);
    assert!(incidents.leaving.is_empty());
    assert!(
        incidents
            .take_changes()
            .iter()
            .all(|(_, row)| row.is_none())
    );
}

/// Fails if a message counts as announced because it was made, or is announced twice although one channel has taken it.
#[test]
fn only_unsent_messages_are_repeated_after_restart() {
    let mut now = Timestamp::UNIX_EPOCH;
    let mut rows = BTreeMap::new();
    let mut incidents = Incidents::new(TIMING, []);
    incidents.raise_incident("lost", &Problem::begun_now("a"), now);
    incidents.raise_incident("told", &Problem::begun_now("b"), now);
    write(&mut incidents, &mut rows);
    now += TIMING.delay;
    let news = incidents.take_news(now);
    assert_eq!(news.len(), 2);
    let told: Vec<IncidentNews> = news.into_iter().filter(|news| news.key == "told").collect();
    incidents.note_taken(&told, now);
    write(&mut incidents, &mut rows);
    let mut incidents = Incidents::new(TIMING, rows.clone());
    let news = incidents.take_news(now);
    assert_eq!((news.len(), news[0].key.as_str()), (1, "lost"));
    // The row of an incident that is over stays, too, until a channel has taken the message.
    incidents.note_taken(&news, now);
    for key in ["lost", "told"] {
        incidents.resolve_incident(key, now);
    }
    now += TIMING.delay;
    let news = incidents.take_news(now);
    assert!(news.iter().all(|news| news.what == IncidentStage::Over) && news.len() == 2);
    incidents.note_taken(&news[..1], now);
    write(&mut incidents, &mut rows);
    assert_eq!(rows.keys().collect::<Vec<_>>(), ["told"]);
    let mut incidents = Incidents::new(TIMING, rows.clone());
    let news = incidents.take_news(now);
    assert_eq!((news.len(), news[0].what), (1, IncidentStage::Over));
    incidents.note_taken(&news, now);
    write(&mut incidents, &mut rows);
    assert!(rows.is_empty());
}

/// Fails if a late receipt for an incident that is over counts as a receipt for the next incident with its key.
#[test]
fn late_receipt_does_not_settle_next_incident() {
    let mut now = Timestamp::UNIX_EPOCH;
    let mut incidents = Incidents::new(TIMING, []);
    let mut lives = Vec::new();
    for _ in 0..2 {
        incidents.raise_incident("k", &Problem::begun_now("t"), now);
        now += TIMING.delay;
        lives.push(incidents.take_news(now));
        incidents.resolve_incident("k", now);
        now += TIMING.delay;
        lives.push(incidents.take_news(now));
    }
    incidents.raise_incident("k", &Problem::begun_now("t"), now);
    for news in &lives {
        assert_eq!(news.len(), 1);
        incidents.note_taken(news, now);
    }
    let rows = incidents.take_changes();
    assert_eq!(rows.len(), 1);
    assert_eq!(
        rows[0].1.as_ref().unwrap().told,
        None,
        "nobody was told of it"
    );
    assert!(incidents.leaving.is_empty());
}

/// Fails if a declaration closes an incident of another part or one that could not be seen, or leaves one from before a
/// restart open.
#[test]
fn declaration_closes_all_unnamed_except_unseen() {
    let mut now = Timestamp::UNIX_EPOCH;
    let declare = |incidents: &mut Incidents, wrong: &[&str], unclear: &[&str], now| {
        let wrong = wrong
            .iter()
            .map(|key| ((*key).to_owned(), Problem::begun_now("t")));
        let unclear = unclear.iter().map(|key| (*key).to_owned()).collect();
        incidents.declare_incidents("r/one", &wrong.collect(), &unclear, now);
    };
    let lasting = |incidents: &Incidents| {
        let lasting = incidents.open.iter().filter(|(_, it)| it.over.is_none());
        lasting.map(|(key, _)| key.clone()).collect::<Vec<_>>()
    };
    let mut incidents = Incidents::new(TIMING, []);
    incidents.raise_incident("r/other", &Problem::begun_now("t"), now);
    incidents.raise_incident("r/one-more", &Problem::begun_now("t"), now);
    declare(
        &mut incidents,
        &["r/one/n/a", "r/one/n/ab", "r/one"],
        &[],
        now,
    );
    now += TIMING.delay;
    assert_eq!(incidents.take_news(now).len(), 5);
    declare(&mut incidents, &[], &["r/one/n/a"], now);
    assert_eq!(lasting(&incidents), ["r/one-more", "r/one/n/a", "r/other"]);
    // Incidents that are known from before a restart are resolved as well.
    let rows: Vec<_> = incidents
        .take_changes()
        .into_iter()
        .filter_map(|(key, row)| Some((key, row?)))
        .collect();
    let mut incidents = Incidents::new(TIMING, rows);
    declare(&mut incidents, &[], &[], now);
    assert_eq!(lasting(&incidents), ["r/one-more", "r/other"]);
}

/// Fails if an incident that began long ago has to wait for the delay again, or one that began in the future is
/// announced at once.
#[test]
fn long_standing_incident_is_reported_at_once() {
    let now = Timestamp::UNIX_EPOCH + Duration::from_hours(9);
    let mut incidents = Incidents::new(TIMING, []);
    let wrong = |since| Problem {
        since: Some(since),
        ..Problem::begun_now("t")
    };
    incidents.raise_incident("old", &wrong(Timestamp::UNIX_EPOCH), now);
    incidents.raise_incident("future", &wrong(Timestamp::MAX), now);
    let news = incidents.take_news(now);
    assert_eq!((news.len(), news[0].key.as_str()), (1, "old"));
    assert_eq!(incidents.next_due(), Some(now + TIMING.delay));
}
