//! The words in which people are shown a crawl: notices while it runs, and its report.

use std::path::Path;
use std::time::Duration;

use archive_model::Period;
use harvest_controller::{
    CrawlOutcomeKind, DomainOutcome, FailedSeed, HarvestJobEnd, JobNotice, JobReport,
};
use harvest_crawler::crawl::CrawlNotice;
use harvest_policy::quarantine::COMMON;
use tools_terminal::context::CommandContext;
use tools_terminal::exit::{Exit, Failure};
use tools_terminal::output::{size_text, tell_user};

/// The most seeds that are named.
const MOST_SEEDS: usize = 10;

/// The most lines about domains, patterns and files each.
const MOST_LINES: usize = 20;

/// Returns the words of a notice; `root` is the directory of the job.
pub(super) fn describe_notice(notice: JobNotice<'_>, root: &Path) -> String {
    match notice {
        JobNotice::Stored(name) => format!("{name}: stored"),
        JobNotice::Waiting { name, error, pause } => {
            format!("{name}: {error} (tried again in {})", period(pause))
        }
        JobNotice::NotStored { name, why } => format!("{name}: not stored: {why}"),
        JobNotice::Action { name, done } => format!("{name}: {done}"),
        JobNotice::ActionRefused { name, why } => {
            format!(
                "{name}: refused: {why}; the file is kept in {}",
                root.join("done").display()
            )
        }
        JobNotice::ActionsUnread(why) => {
            format!(
                "requests in {} are not taken: {why}; the crawl goes on",
                root.join("action").display()
            )
        }
        JobNotice::Crawl(notice) => of_crawl(notice, root),
        JobNotice::Salvaged { name, what } => format!("{name}: {what}"),
        JobNotice::NothingHarvested => {
            "the crawl has written no archive file: look into logs/crawl.log for the reason"
                .to_owned()
        }
        JobNotice::MetadataNameTaken { taken, name } => format!(
            "{taken} is in the archive already, of another job with this number; the metadata file of this one is {name}"
        ),
        JobNotice::NoViewDoor(why) => {
            format!("`holdfast crawl status` cannot show this crawl: {why}; it goes on")
        }
        JobNotice::TakenBack(count) => format!(
            "{count} URIs are fetched again: their records had not reached the disk when the job ended"
        ),
    }
}

fn of_crawl(notice: &CrawlNotice, root: &Path) -> String {
    match notice {
        CrawlNotice::Resumed {
            fetched,
            queued,
            running,
            is_paused,
        } => {
            let mut words = format!(
                "{fetched} URIs were fetched in {}, and {queued} wait",
                period(*running)
            );
            if *is_paused {
                let action = root.join("action").join("resume");
                let how = format!(
                    "; the crawl is paused: make the file {} to resume it",
                    action.display()
                );
                words.push_str(&how);
            }
            words
        }
        CrawlNotice::Quarantined(pattern) => format!(
            "{pattern}: under quarantine: its pages only lead to more of their kind; a trial of them comes last (the line {pattern} \
             in a file NAME.free in {} frees all)",
            root.join("action").display()
        ),
        CrawlNotice::SameWords(page, name) => format!(
            "{page}: its host says the same under {COMMON} kinds of paths: perhaps it answers with 200 where a page is missing; \
             what is first found behind such pages is under quarantine; a trial of it comes last (the line {name} in a file \
             NAME.free in {} frees all)",
            root.join("action").display()
        ),
        CrawlNotice::SeedFailed {
            seed,
            status,
            again: Some((delay, tries)),
            idle,
        } => format!(
            "{seed}: {}; it is tried again in {}, at most {tries} times in all; the crawl goes on meanwhile, and ends when \
             nothing but such tries is left for {}",
            status.reason(),
            period(*delay),
            period(*idle)
        ),
        CrawlNotice::SeedFailed { seed, status, .. } => {
            format!("{seed}: {}; it is not tried again", status.reason())
        }
        CrawlNotice::HostGivenUp {
            host,
            unreachable,
            is_busy,
            waiting,
        } => format!(
            "{host}: given up, for it {} for {}; {}",
            if *is_busy {
                "has asked for patience (429, 503)"
            } else {
                "could not be reached"
            },
            period(*unreachable),
            match waiting {
                0 => "no other URI waits for it".to_owned(),
                1 => "the URI that waits for it is recorded as failed".to_owned(),
                waiting => format!("the {waiting} URIs that wait for it are recorded as failed"),
            }
        ),
        CrawlNotice::NoNameServer(why) => format!(
            "no name server answers ({why}): hosts whose addresses are not known wait until one does, and are asked for every 30 \
             seconds; the order names other ones by `dns.servers`"
        ),
        CrawlNotice::NoProxy(why) => format!(
            "{why}: everything waits, and it is tried again every 30 seconds; the order names another one by `http.proxy`"
        ),
        CrawlNotice::LacksSpace => format!(
            "the disk of {} is nearly full: nothing is fetched until there is room again; without it the job is suspended, and --resume continues it",
            root.display()
        ),
    }
}

/// Returns the words about URIs that were found and not fetched.
fn left_text(remaining: u64) -> String {
    match remaining {
        0 => String::new(),
        remaining => format!("; {} left", uris_are(remaining)),
    }
}

/// Returns a number of URIs as the beginning of a sentence.
pub(super) fn uris_are(count: u64) -> String {
    match count {
        1 => "1 URI is".to_owned(),
        count => format!("{count} URIs are"),
    }
}

/// Returns a duration in the largest unit that says it exactly, to the second.
fn period(duration: Duration) -> String {
    let rounded = duration.as_secs() + u64::from(duration.subsec_millis() >= 500);
    Period::from_secs(rounded).to_string()
}

/// Names the seeds that were not had. The exit code of a crawl that has fetched nothing is that of hosts that cannot be
/// reached, where all could not; of one that leaves URIs behind though no limit has ended it, that of a failure.
fn tell_seeds(report: &JobReport) -> Exit {
    let failed = &report.failed_seeds;
    if !failed.is_empty() {
        let seeds = failed.iter().take(MOST_SEEDS);
        let seeds = seeds.map(|FailedSeed { seed, reason, .. }| format!("{seed}: {reason}"));
        let seeds: Vec<String> = seeds.collect();
        let more = match failed.len().saturating_sub(MOST_SEEDS) {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        let which = match (report.objects, failed.len()) {
            (0, _) => "no seed was fetched".to_owned(),
            (_, 1) => "one seed was not fetched well".to_owned(),
            (_, count) => format!("{count} seeds were not fetched well"),
        };
        tell_user(&format!("{which}: {}{more}", seeds.join("; ")));
    }
    if report.outcome == CrawlOutcomeKind::Idle && report.remaining > 0 {
        tell_user(&format!(
            "{} left, whose hosts could not be reached; the lines of their domains above count them",
            uris_are(report.remaining)
        ));
        Exit::Failed
    } else if report.objects > 0 || failed.is_empty() {
        Exit::Done
    } else if failed.iter().all(FailedSeed::is_unreachable) {
        Exit::Unreachable
    } else {
        Exit::Failed
    }
}

/// Returns the words about how a job may go on whose crawl is over.
fn continuation(report: &JobReport) -> Vec<String> {
    let directory = &report.directory;
    let higher = match report.outcome {
        CrawlOutcomeKind::Limit => ", by a higher limit, such as --max-objects",
        _ => "",
    };
    let left = (report.remaining > 0)
        .then(|| format!("to fetch what is left{higher}: holdfast crawl --resume {directory}"));
    let failed = (report.failed > 0).then(|| {
        let uris = if report.failed == 1 { "URI" } else { "URIs" };
        let count = report.failed;
        format!("{count} {uris} could not be had; to try again: holdfast crawl --retry-failed {directory}")
    });
    left.into_iter().chain(failed).collect()
}

fn held_text(report: &JobReport) -> String {
    let uris: u64 = report.quarantined.iter().map(|held| held.uris).sum();
    match report.quarantined.len() {
        0 => String::new(),
        1 => format!("; 1 pattern is under quarantine, with {uris} URIs"),
        count => format!("; {count} patterns are under quarantine, with {uris} URIs"),
    }
}

/// Returns how many of a list are not shown, if some are not.
fn further(count: usize) -> Option<usize> {
    count.checked_sub(MOST_LINES).filter(|more| *more > 0)
}

/// Returns the lines of the domains of a job: those first of which something is left, or that failed.
fn domain_lines(domains: &[DomainOutcome]) -> Vec<String> {
    let (complete, others): (Vec<_>, Vec<_>) =
        domains.iter().partition(|domain| domain.is_complete());
    let shown = others.iter().chain(&complete).take(MOST_LINES);
    let mut lines: Vec<String> = shown
        .map(|domain| {
            let bytes = size_text(domain.bytes);
            let left = left_text(domain.remaining);
            format!(
                "  {}: {} objects, {bytes}; {}{left}",
                domain.domain, domain.objects, domain.stop_reason
            )
        })
        .collect();
    lines.extend(further(domains.len()).map(|more| {
        let others = others.len().saturating_sub(MOST_LINES);
        let others = match others {
            0 => "all of them complete".to_owned(),
            others => format!("{others} of them not complete"),
        };
        format!("  {more} more domains, {others}: reports/hosts-report.txt has their hosts")
    }));
    lines
}

/// Prints the report of a job that has ended; gives the exit code.
pub(super) fn report_crawl(context: &CommandContext, report: &JobReport) -> Result<Exit, Failure> {
    if context.output.is_json() {
        context.output.write_document(report)?;
    } else {
        let bytes = size_text(report.bytes);
        let output = &context.output;
        let left = left_text(report.remaining);
        output.write_line(&format!(
            "job {}: {} objects, {bytes}; {}{left}{}",
            report.job,
            report.objects,
            report.stop_reason,
            held_text(report)
        ))?;
        domain_lines(&report.domains)
            .iter()
            .try_for_each(|line| output.write_line(line))?;
        for held in report.quarantined.iter().take(MOST_LINES) {
            output.write_line(&format!(
                "  {}: under quarantine, {} URIs are held back; to fetch them, write this pattern into a file NAME.free in {}, and \
                 continue the job with `holdfast crawl --resume`",
                held.pattern, held.uris, Path::new(&report.directory).join("action").display()
            ))?;
        }
        if let Some(more) = further(report.quarantined.len()) {
            output.write_line(&format!(
                "  {more} more patterns under quarantine: --json shows them"
            ))?;
        }
        let (stored, kept): (Vec<_>, Vec<_>) = report.files.iter().partition(|file| file.stored);
        for file in kept.iter().chain(&stored).take(MOST_LINES) {
            let state = if file.stored { "stored" } else { "kept here" };
            output.write_line(&format!("  {}: {state}", file.name))?;
        }
        if let Some(more) = further(report.files.len()) {
            let unstored = kept.len().saturating_sub(MOST_LINES);
            output.write_line(&format!(
                "  {more} more files, of which {unstored} are kept here"
            ))?;
        }
        output.write_line(&format!("logs and reports: {}", report.directory))?;
        if report.status == HarvestJobEnd::Done {
            continuation(report)
                .iter()
                .try_for_each(|line| output.write_line(line))?;
        }
    }
    Ok(match report.status {
        HarvestJobEnd::Done => tell_seeds(report),
        HarvestJobEnd::Failed => {
            let unstored = report.files.iter().filter(|file| !file.stored).count();
            if unstored > 0 {
                tell_user(&format!(
                    "{unstored} files are not stored; continue with `holdfast crawl --resume {}`",
                    report.directory
                ));
            } else {
                tell_user("the crawl broke off, and what it had recorded is stored");
            }
            Exit::Failed
        }
        HarvestJobEnd::Suspended => {
            tell_user(&format!(
                "continue with `holdfast crawl --resume {}`",
                report.directory
            ));
            Exit::Interrupted
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a job of many domains prints them all, hides one of which something is left behind those that are complete,
    /// or does not say how many are not shown.
    #[test]
    fn few_domains_are_shown_unfinished_ones_first() {
        let domains = |complete: usize, others: usize| -> Vec<DomainOutcome> {
            let domain = |number: usize, stop_reason| DomainOutcome {
                domain: format!("d{number}.dk"),
                objects: 3,
                bytes: 1000,
                stop_reason,
                remaining: 0,
            };
            let complete = (0..complete).map(|number| domain(number, "download complete"));
            let others = (0..others).map(|number| domain(1000 + number, "download unfinished"));
            complete.chain(others).collect()
        };
        assert_eq!(
            domain_lines(&domains(1, 1)),
            [
                "  d1000.dk: 3 objects, 1.0 kB; download unfinished",
                "  d0.dk: 3 objects, 1.0 kB; download complete"
            ]
        );
        let last = |complete, others| domain_lines(&domains(complete, others)).pop().unwrap();
        assert_eq!(domain_lines(&domains(20, 0)).len(), 20);
        assert_eq!(
            last(500, 3),
            "  483 more domains, all of them complete: reports/hosts-report.txt has their hosts"
        );
        assert_eq!(
            last(500, 23),
            "  503 more domains, 3 of them not complete: reports/hosts-report.txt has their hosts"
        );
    }
}
