//! Lines and sections of frontier reports.

use super::*;

fn queue(name: &str, state: QueueState) -> QueueReport {
    QueueReport {
        name: name.to_owned(),
        state,
        precedence: 1,
        current_size: 2,
        total_enqueues: Some(3),
        session_balance: -4,
        last_cost: 1,
        average_cost: Hundredths(150),
        last_dequeue: Some("2021-07-05T15:20:39.3789Z".parse().unwrap()),
        total_spend: 7,
        total_budget: None,
        error_count: 8,
        last_peeked: Some("http://a.dk/x y".to_owned()),
        last_queued: None,
    }
}

fn now() -> ReportMoment {
    ReportMoment {
        time: "2021-07-05T15:20:40Z".parse().unwrap(),
        since_begin: Duration::from_secs(10),
    }
}

/// Fails if a line has more or fewer than its 12 fields, or a missing value is left empty.
#[test]
fn lines_have_twelve_fields() {
    let snoozed = queue("a.dk", QueueState::Snoozed(Duration::from_millis(11_500)));
    assert_eq!(
        snoozed.report_line(now().since_begin),
        "a.dk 1 2 3 -4 1(1.5) 2021-07-05T15:20:39.378Z 1s500ms 7/-1 8 http://a.dk/x%20y -"
    );
    let new = QueueReport {
        name: "a b".to_owned(),
        last_dequeue: None,
        total_budget: Some(100),
        last_peeked: None,
        ..queue("", QueueState::Ready)
    };
    let line = new.report_line(now().since_begin);
    assert_eq!(line, "a%20b 1 2 3 -4 1(1.5) - - 7/100 8 - -");
    assert_eq!(line.split(' ').count(), LEGEND.split(' ').count());
}

/// Fails if a queue stands under another state, or an exhausted one is listed.
#[test]
fn queues_stand_under_their_state() {
    let queues = [
        queue("ready.dk", QueueState::Ready),
        queue("over.dk", QueueState::Exhausted),
        queue("retired.dk", QueueState::Retired),
        queue("ready2.dk", QueueState::Ready),
    ];
    let rest = "1 2 3 -4 1(1.5) 2021-07-05T15:20:39.378Z - 7/-1 8 http://a.dk/x%20y -";
    let sections = format!(
        "\n -----===== IN-PROCESS QUEUES =====-----\n\
         \n -----===== READY QUEUES =====-----\n{LEGEND}\nready.dk {rest}\nready2.dk {rest}\n\
         \n -----===== SNOOZED QUEUES =====-----\n\
         \n -----===== INACTIVE QUEUES =====-----\n\
         \n -----===== RETIRED QUEUES =====-----\n{LEGEND}\nretired.dk {rest}\n"
    );
    let head = "Frontier report - 20210705152040\n Job being crawled: 7-1\n";
    assert_eq!(
        frontier_nonempty_report("7-1", now(), &queues),
        format!("{head}{sections}")
    );
    let stats = "\n -----===== STATS =====-----\n   queues: 4\n   in-process queues: 0\n   ready queues: 2\n   \
                 snoozed queues: 0\n   inactive queues: 0\n   retired queues: 1\n   exhausted queues: 1\n";
    assert_eq!(
        frontier_summary_report("7-1", now(), &queues),
        format!("{head}{stats}{sections}")
    );
}

/// Fails if the summary of a large crawl lists all queues, or does not say that it left some out.
#[test]
fn summary_says_what_it_left_out() {
    let queues = vec![queue("a.dk", QueueState::Inactive); MAX_SUMMARY_ROWS + 3];
    let summary = frontier_summary_report("7-1", now(), &queues);
    assert_eq!(summary.matches("a.dk 1 2").count(), MAX_SUMMARY_ROWS);
    assert!(summary.contains("\n...and 3 more.\n"));
    let all = frontier_nonempty_report("7-1", now(), &queues);
    assert_eq!(all.matches("a.dk 1 2").count(), MAX_SUMMARY_ROWS + 3);
}
