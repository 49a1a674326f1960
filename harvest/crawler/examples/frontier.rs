//! Fills the frontier of a crawl, hands part of it out, closes it and opens it again; prints the time and the memory of
//! each part.
//!
//! `cargo run --release -p harvest-crawler --example frontier -- URIS QUEUES DIRECTORY`: a small number of queues has
//! most of the URIs, as in the web, and each URI is found twice. Batches are as large as those of a crawl.

use std::io::{Write as _, stdout};
use std::path::Path;
use std::time::Instant;

use harvest_crawler::frontier::{
    CandidateUri, Frontier, FrontierSettings, FrontierUri, LeaseOutcome, NextStep, NextUri,
    RecordedPlace, Urgency,
};
use harvest_policy::account::QueueLimits;
use harvest_policy::status::FetchStatus;
use harvest_policy::turns::CrawlMoment;
use jiff::Timestamp;

/// The URIs of one batch: the links of a page.
const LINKS: u64 = 100;

/// The outcomes of one batch.
const BATCH: u64 = 256;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(uris), Some(queues), Some(directory)) =
        (arguments.next(), arguments.next(), arguments.next())
    else {
        return Err("say how many URIs, in how many queues, and where the frontier lies".into());
    };
    let uris: u64 = uris.parse()?;
    let queues: u64 = queues.parse()?;
    let directory = Path::new(&directory);

    let begin = Instant::now();
    let mut frontier = open(directory)?;
    let mut new = 0;
    for first in (0..uris).step_by(usize::try_from(LINKS)?) {
        let mut changes = frontier.begin_changes();
        for number in (first..uris.min(first + LINKS)).flat_map(|number| [number, number]) {
            let candidate = candidate(&frontier, number, queues);
            new += u64::from(frontier.schedule_uri(&mut changes, candidate)?);
        }
        frontier.commit_changes(changes)?;
    }
    frontier.sync_to(&RecordedPlace::default())?;
    tell("filled", 2 * uris, begin)?;
    if new != uris {
        return Err(format!("{new} of {uris} URIs were new").into());
    }

    let begin = Instant::now();
    let taken = uris / 10;
    take(&mut frontier, taken)?;
    frontier.sync_to(&RecordedPlace::default())?;
    tell("fetched", taken, begin)?;
    drop(frontier);

    let begin = Instant::now();
    let frontier = open(directory)?;
    tell("opened again", frontier.waiting_uris(), begin)?;
    if frontier.waiting_uris() != uris - taken {
        return Err(format!("{} URIs wait", frontier.waiting_uris()).into());
    }
    Ok(())
}

fn open(directory: &Path) -> Result<Frontier, Box<dyn std::error::Error>> {
    let settings = FrontierSettings {
        limits: QueueLimits::default().into(),
        cost: harvest_policy::cost::CostPolicy::Unit,
        connections: 1,
        fresh_key: [7; 32],
        begin: Timestamp::UNIX_EPOCH,
    };
    let (frontier, _) = Frontier::open_frontier(directory, &settings, |_, _| true)?;
    Ok(frontier)
}

/// Returns the URI of a number. Half of all are in one queue of a thousand.
fn candidate(frontier: &Frontier, number: u64, queues: u64) -> CandidateUri {
    let queue = if number.is_multiple_of(2) {
        number / 2 % queues.div_ceil(1000)
    } else {
        number / 2 % queues
    };
    let uri = format!(
        "https://www.site-{queue}.example/section/{}/page-{number}.html",
        number % 97
    );
    CandidateUri {
        key: frontier.uri_hasher().key_of_text(&uri),
        queue: format!("site-{queue}.example"),
        cost: 1,
        uri: FrontierUri {
            via: Some(format!("https://www.site-{queue}.example/section/")),
            source: Some(format!("https://www.site-{queue}.example/")),
            uri,
            hops: "LLL".to_owned(),
            urgency: Urgency::Normal,
            tries: 0,
        },
    }
}

/// Hands URIs out and records them as fetched, each batch as one.
fn take(frontier: &mut Frontier, count: u64) -> Result<(), Box<dyn std::error::Error>> {
    let mut left = count;
    while left > 0 {
        let mut leases = Vec::new();
        while u64::try_from(leases.len())? < left.min(BATCH) {
            match frontier.next(CrawlMoment::ZERO)? {
                NextUri::Fetch(lease) => leases.push(*lease),
                NextUri::Later(_) | NextUri::Waiting | NextUri::Over => break,
            }
        }
        if leases.is_empty() {
            return Err(format!("nothing is left to fetch; {left} are missing").into());
        }
        left -= u64::try_from(leases.len())?;
        let mut changes = frontier.begin_changes();
        for lease in leases {
            let outcome = LeaseOutcome {
                status: FetchStatus::from_http(200),
                bytes: 10_000,
                next: NextStep::Finish,
                rests_until: CrawlMoment::ZERO,
            };
            frontier.finish_uri(&mut changes, lease, outcome, RecordedPlace::default())?;
        }
        frontier.commit_changes(changes)?;
    }
    Ok(())
}

/// Prints a count, its rate, and the most memory that the process has had.
fn tell(what: &str, count: u64, begin: Instant) -> Result<(), Box<dyn std::error::Error>> {
    let seconds = begin.elapsed().as_secs_f64();
    writeln!(
        stdout(),
        "{what}: {count} in {seconds:.1} s; at most {} MB so far",
        tools_testing::peak_memory("self") / 1000
    )?;
    Ok(())
}
