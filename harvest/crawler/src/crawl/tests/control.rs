//! Requests to crawls: each is answered, counts at once, and holds when the crawl is resumed.

use harvest_policy::account::QueueBudget;
use tokio::sync::oneshot;

use super::*;

/// Goes on with a crawl to which requests were sent before it began; returns the answers, too.
async fn crawl_with(
    settings: CrawlSettings,
    controls: Vec<CrawlCommand>,
) -> (CrawlOutcome, Vec<ControlAnswer>) {
    let (crawl, handle) = Crawl::new(settings, Clock::system_clock(), Chance::system_chance());
    let mut answers = Vec::new();
    for control in controls {
        let (answer, told) = oneshot::channel();
        handle
            .requests
            .send(ControlRequest { control, answer })
            .unwrap();
        answers.push(told);
    }
    let outcome = crawl.run_crawl().await.unwrap();
    let mut told = Vec::new();
    for answer in answers {
        told.push(answer.await.unwrap());
    }
    (outcome, told)
}

fn reject(rule: &str) -> CrawlCommand {
    CrawlCommand::Reject(vec![rule.parse().unwrap()])
}

/// Fails if a rejected URI is fetched, one that waited has no line, or the rule is forgotten by the next process.
#[tokio::test]
async fn rejected_uris_are_logged_and_left() {
    let links = "<a href=/cal/1>1</a> <a href=/cal/2>2</a> <a href=/a>a</a>";
    let more = page("<a href=/cal/3>3</a> <a href=/b>b</a>");
    let (base, asked) = serve(&[("/", page(links)), ("/a", more), ("/b", page("b"))]).await;
    let directory = tempfile::tempdir().unwrap();
    let settings = |order: &str| settings(directory.path(), std::slice::from_ref(&base), order);
    crawl(settings("limits.max_objects = 1")).await;
    let rule = base.join("cal/").unwrap();
    let controls = vec![reject(rule.as_str())];
    let (outcome, told) = crawl_with(settings("limits.max_objects = 2"), controls).await;
    assert!(told[0].as_ref().unwrap().contains("/cal/"), "{told:?}");
    assert_eq!(outcome.end, CrawlEnd::ObjectLimit);
    let outcome = crawl(settings("")).await;
    assert_eq!(
        (outcome.end, outcome.progress.fetched),
        (CrawlEnd::Finished, 3)
    );
    let statuses = statuses(directory.path(), &base);
    let of = |path: &str| statuses.get(path).copied();
    assert_eq!(
        [of("/cal/1"), of("/cal/2"), of("/cal/3")],
        [Some(-5001), Some(-5001), None]
    );
    assert_eq!((of("/a"), of("/b")), (Some(200), Some(200)));
    let asked = asked.lock();
    assert!(
        asked.iter().all(|path| !path.starts_with("/cal")),
        "{asked:?}"
    );
}

/// Fails if a rule that is taken back holds on, what it has held back is lost, or another rule passes for it.
#[tokio::test]
async fn accepted_uris_come_back() {
    let links = "<a href=/cal/1>1</a> <a href=/cal/2>2</a> <a href=/a>a</a>";
    let more = page("<a href=/cal/3>3</a>");
    let (base, asked) = serve(&[
        ("/", page(links)),
        ("/a", more),
        ("/cal/1", page("1")),
        ("/cal/2", page("2")),
        ("/cal/3", page("3")),
    ])
    .await;
    let directory = tempfile::tempdir().unwrap();
    let settings = |order: &str| settings(directory.path(), std::slice::from_ref(&base), order);
    crawl(settings("limits.max_objects = 1")).await;
    let rule = base.join("cal/").unwrap();
    let accept = |rule: &str| CrawlCommand::Accept(vec![rule.parse().unwrap()]);
    let (outcome, _) = crawl_with(settings(""), vec![reject(rule.as_str())]).await;
    assert_eq!(outcome.progress.fetched, 2);
    let controls = vec![accept("http://a.dk/"), accept(rule.as_str())];
    let (outcome, told) = crawl_with(settings(""), controls).await;
    let refused = told[0].as_ref().unwrap_err();
    assert!(refused.contains("/cal/"), "{refused}");
    let done = told[1].as_ref().unwrap();
    assert!(done.ends_with("again: 3"), "{done}");
    assert_eq!(outcome.progress.fetched, 5);
    let mut fetched = asked.lock().clone();
    fetched.retain(|path| path.starts_with("/cal/"));
    fetched.sort();
    assert_eq!(fetched, ["/cal/1", "/cal/2", "/cal/3"]);
}

/// Fails if an order that a person changes does not hold from then on, or it forgets seeds that came later.
#[tokio::test]
async fn changed_order_holds_at_once() {
    let home = page("<a href=/a>a</a> <a href=/b>b</a>");
    let (base, asked) = serve(&[("/", home), ("/a", page("<a href=/c>c</a>"))]).await;
    let (other, others) = serve(&small_site()).await;
    let directory = tempfile::tempdir().unwrap();
    let settings = settings(directory.path(), std::slice::from_ref(&base), "");
    let mut order = settings.job.order.clone();
    order.scope.reject = vec![
        base.join("b")
            .unwrap()
            .as_str()
            .parse()
            .unwrap_or_else(|_| {
                let surt = harvest_policy::surt::url_surt(&base.join("b").unwrap()).unwrap();
                surt.parse().unwrap()
            }),
    ];
    order.scope.max_hops = 1;
    let controls = vec![
        CrawlCommand::AddSeeds(vec![other.clone()]),
        CrawlCommand::Change(Box::new(order)),
    ];
    let (outcome, told) = crawl_with(settings, controls).await;
    assert!(told.iter().all(Result::is_ok), "{told:?}");
    assert_eq!(outcome.end, CrawlEnd::Finished);
    let asked = asked.lock().clone();
    assert_eq!(asked, ["/robots.txt", "/", "/a"]);
    assert!(
        others.lock().len() > 2,
        "the seed that came later is in the scope"
    );
}

/// Fails if a raised budget does not revive its queue, a lowered one does not end it, or the next process forgets it.
#[tokio::test]
async fn budget_of_a_queue_is_changed() {
    let links = (1..9).map(|number| format!("<a href=/{number}>{number}</a> "));
    let home = page(&links.collect::<String>());
    let site = move |path: &str| (path == "/").then(|| home.clone());
    let (base, _) = serve_by(Arc::new(site)).await;
    let directory = tempfile::tempdir().unwrap();
    let order = "queues.max_objects = 2";
    let settings = || settings(directory.path(), std::slice::from_ref(&base), order);
    assert_eq!(crawl(settings()).await.progress.fetched, 2);
    let queue = base.host_str().unwrap();
    let budget = |objects| {
        let budget = QueueBudget {
            objects: Some(objects),
            bytes: None,
        };
        CrawlCommand::Budget(vec![(queue.to_owned(), budget)])
    };
    let (outcome, told) = crawl_with(settings(), vec![budget(4)]).await;
    assert_eq!(outcome.progress.fetched, 4, "{told:?}");
    let unknown = CrawlCommand::Budget(vec![("nobody.dk".to_owned(), QueueBudget::default())]);
    let (outcome, told) = crawl_with(settings(), vec![unknown]).await;
    assert_eq!(outcome.progress.fetched, 4);
    assert!(told[0].as_ref().unwrap().contains("nobody.dk"), "{told:?}");
    let (outcome, _) = crawl_with(settings(), vec![budget(50), budget(1)]).await;
    assert_eq!(outcome.progress.fetched, 4);
    let (outcome, _) = crawl_with(settings(), vec![budget(50)]).await;
    assert_eq!(
        (outcome.end, outcome.progress.fetched),
        (CrawlEnd::Finished, 9)
    );
    let retired = log(directory.path());
    let quotas = retired.iter().filter(|line| line.status == -5003);
    assert!(quotas.count() >= 1);
}

/// Fails if a pattern that nobody holds passes for freed, or the person is not told which ones there are.
#[tokio::test]
async fn unknown_pattern_is_not_freed() {
    let (base, _) = serve(&small_site()).await;
    let directory = tempfile::tempdir().unwrap();
    let settings = settings(directory.path(), std::slice::from_ref(&base), "");
    let free = CrawlCommand::Free(vec!["a.dk/cal/#".to_owned()]);
    let (outcome, told) = crawl_with(settings, vec![free]).await;
    assert_eq!(outcome.end, CrawlEnd::Finished);
    let why = told[0].as_ref().unwrap_err();
    assert!(why.contains("a.dk/cal/# is not under quarantine"), "{why}");
}

/// Fails if a seed is added that hosts have no contact for, or one that is added later is not crawled like the others.
#[tokio::test]
async fn added_seed_needs_a_contact_too() {
    let (base, _) = serve(&[]).await;
    let (other, asked) = serve(&small_site()).await;
    let directory = tempfile::tempdir().unwrap();
    let settings = || settings(directory.path(), std::slice::from_ref(&base), "");
    let add = |url: &str| CrawlCommand::AddSeeds(vec![Url::parse(url).unwrap()]);
    let controls = vec![add("https://example.org/"), add(other.as_str())];
    let (_, told) = crawl_with(settings(), controls).await;
    assert!(
        told[0].as_ref().unwrap_err().contains("contact"),
        "{told:?}"
    );
    assert!(
        told[1].as_ref().unwrap().starts_with("new seeds: 1;"),
        "{told:?}"
    );
    assert_eq!(asked.lock().len(), 6);
    let (_, told) = crawl_with(settings(), vec![add(other.as_str())]).await;
    assert!(
        told[0].as_ref().unwrap().starts_with("new seeds: 0;"),
        "{told:?}"
    );
    assert_eq!(asked.lock().len(), 6);
}

/// Fails if a pause or an end that a person has asked for is forgotten by the next process, or cannot be taken back.
#[tokio::test]
async fn desired_state_holds_for_next_process() {
    let (base, asked) = serve(&small_site()).await;
    let directory = tempfile::tempdir().unwrap();
    let settings = |order: &str| settings(directory.path(), std::slice::from_ref(&base), order);
    crawl(settings("limits.max_objects = 1")).await;
    let before = asked.lock().len();
    let pause = vec![CrawlCommand::Pause, CrawlCommand::Suspend];
    let (outcome, _) = crawl_with(settings(""), pause).await;
    assert_eq!(outcome.end, CrawlEnd::Suspended);
    let (paused, mut handle) =
        Crawl::new(settings(""), Clock::system_clock(), Chance::system_chance());
    handle.control.send(CrawlCommand::Suspend).unwrap();
    assert_eq!(paused.run_crawl().await.unwrap().end, CrawlEnd::Suspended);
    let notice = handle.notices.try_recv().unwrap();
    let is_paused = matches!(
        notice,
        CrawlNotice::Resumed {
            is_paused: true,
            ..
        }
    );
    assert!(is_paused, "{notice:?}");
    assert_eq!(asked.lock().len(), before);
    let (outcome, _) = crawl_with(
        settings("limits.max_objects = 2"),
        vec![CrawlCommand::Resume],
    )
    .await;
    assert_eq!(
        (outcome.end, outcome.progress.fetched),
        (CrawlEnd::ObjectLimit, 2)
    );
    let before = asked.lock().len();
    let (outcome, _) = crawl_with(settings(""), vec![CrawlCommand::Terminate]).await;
    assert_eq!(outcome.end, CrawlEnd::Terminated);
    assert_eq!(crawl(settings("")).await.end, CrawlEnd::Terminated);
    assert_eq!(asked.lock().len(), before);
}
