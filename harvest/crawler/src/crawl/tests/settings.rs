//! Settings of the order that change what a crawl does.

use std::net::Ipv4Addr;

use harvest_model::order::ScopeKind;
use tokio::net::UdpSocket;

use super::requests::{blocks, requests_for, serve_requests};
use super::*;

/// Serves as a name server that gives every name the address 127.0.0.1; returns its own address.
async fn one_address() -> String {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap().to_string();
    tokio::task::spawn(async move {
        let mut query = [0; 1500];
        loop {
            let (_, from) = socket.recv_from(&mut query).await.unwrap();
            let labels = query[12..].iter().position(|byte| *byte == 0).unwrap();
            let question = 12 + labels + 1..12 + labels + 5;
            let is_address = query[question.clone()] == [0, 1, 0, 1];
            let mut answer = query[..question.end].to_vec();
            // An answer, recursion available; one question, and no other sections but answers.
            answer[2] |= 0x80;
            answer[3] = 0x80;
            answer[4..12].copy_from_slice(&[0, 1, 0, u8::from(is_address), 0, 0, 0, 0]);
            if is_address {
                answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4]);
                answer.extend(Ipv4Addr::LOCALHOST.octets());
            }
            socket.send_to(&answer, from).await.unwrap();
        }
    });
    address
}

/// Fails if records are compressed although the order says no, or an uncompressed file cannot be read or resumed.
#[tokio::test]
async fn uncompressed_files_are_plain_warc() {
    let (base, _) = serve(&small_site()).await;
    let directory = tempfile::tempdir().unwrap();
    let order = "files.compress = false\nfiles.max_size = 3000";
    crawl(settings(
        directory.path(),
        std::slice::from_ref(&base),
        order,
    ))
    .await;
    let files = fs::read_dir(directory.path().join("warcs")).unwrap();
    let files: Vec<_> = files.map(|entry| entry.unwrap().path()).collect();
    assert!(files.len() > 1, "{files:?}");
    for path in &files {
        assert_eq!(path.extension().unwrap(), "warc");
        let bytes = fs::read(path).unwrap();
        assert!(bytes.starts_with(b"WARC/1.1\r\nWARC-Type: warcinfo\r\n"));
    }
    assert_eq!(recorded(directory.path(), WarcType::Response).len(), 6);
    assert_eq!(recorded(directory.path(), WarcType::Request).len(), 6);
}

/// Fails if an overlay changes another part of the web, or nothing.
#[tokio::test]
async fn overlay_limits_its_own_host() {
    let own =
        |_: &str| page("<a href=/1>1</a> <a href=/2>2</a> <a href=/trap>t</a> <a href=/3>3</a>");
    let (first, told) = serve_requests("127.0.0.1", own).await;
    let (second, told_second) = serve_requests("127.0.0.2", own).await;
    let directory = tempfile::tempdir().unwrap();
    let order = "
        [[overlay]]
        surt = \"http://(127.0.0.2\"
        traps = [\".*/trap\"]
        max_objects = 3
        ";
    let seeds = [first.clone(), second.clone()];
    crawl(settings(directory.path(), &seeds, order)).await;
    let count = |told: &requests::Requests| told.lock().len();
    // With robots.txt, which no quota counts.
    assert_eq!((count(&told), count(&told_second)), (6, 4));
    assert_eq!(requests_for(&told, "/trap").len(), 1);
    assert_eq!(requests_for(&told_second, "/trap").len(), 0);
    let quota = log(directory.path())
        .into_iter()
        .filter(|line| line.status == -5003);
    let quota: Vec<String> = quota.map(|line| line.uri).collect();
    assert_eq!(quota, [second.join("/3").unwrap().to_string()]);
}

/// Fails if a queue is not worked off in the order that its settings say, or a surplus does not use up a budget.
#[tokio::test]
async fn queue_is_worked_off_by_cost_or_hops() {
    let links = "<a href=/?a=1>1</a> <a href=/list?b=2>2</a> <a href=/plain>3</a>";
    for (order, expected) in [
        ("", "/ /?a=1 /list?b=2 /plain"),
        ("queues.cost = \"surplus\"", "/ /plain /list?b=2 /?a=1"),
        (
            "queues.cost = \"surplus\"\nqueues.first = \"hops\"",
            "/ /?a=1 /list?b=2 /plain",
        ),
        (
            "queues.cost = \"surplus\"\nqueues.total_budget = 4",
            "/ /plain /list?b=2",
        ),
        ("queues.total_budget = 4", "/ /?a=1 /list?b=2 /plain"),
    ] {
        let (base, told) = serve_requests("127.0.0.1", |_| page(links)).await;
        let directory = tempfile::tempdir().unwrap();
        crawl(settings(
            directory.path(),
            std::slice::from_ref(&base),
            order,
        ))
        .await;
        let told = told.lock();
        let paths = told
            .iter()
            .map(|request| request.split(' ').nth(1).unwrap());
        let paths: Vec<&str> = paths.filter(|path| *path != "/robots.txt").collect();
        assert_eq!(paths.join(" "), expected, "{order}");
    }
}

/// Fails if the list of public suffixes of the order does not say what a domain is, for the scope and the queues.
#[tokio::test]
async fn list_of_suffixes_says_what_domain_is() {
    let names = one_address().await;
    let (base, told) = serve_requests("127.0.0.1", |request| {
        let port = request.lines().find_map(|line| line.strip_prefix("Host: "));
        let (_, port) = port.unwrap().split_once(':').unwrap();
        page(&format!("<a href='http://b.shop.test:{port}/b'>b</a>"))
    })
    .await;
    let seed = Url::parse(&format!("http://a.shop.test:{}/a", base.port().unwrap())).unwrap();
    let files = tempfile::tempdir().unwrap();
    for (list, fetched) in [("test", 2), ("shop.test", 1), ("other", 2)] {
        told.lock().clear();
        let directory = tempfile::tempdir().unwrap();
        let file = files.path().join("suffixes.dat");
        fs::write(&file, list).unwrap();
        let order = format!(
            "dns.servers = [\"{names}\"]\nnetworks.allow = [\"127.0.0.1\"]\nqueues.public_suffixes = {file:?}"
        );
        let mut settings = settings(directory.path(), std::slice::from_ref(&seed), &order);
        let job = Arc::get_mut(&mut settings.job).unwrap();
        job.order.scope.kind = ScopeKind::Domain;
        let outcome = crawl(settings).await;
        assert_eq!(outcome.progress.fetched, fetched, "{list}");
        let warcinfo = blocks(directory.path(), WarcType::Warcinfo).into_values();
        let version = "\r\npublic-suffixes: without a version, sha256:";
        assert!(warcinfo.collect::<String>().contains(version));
    }
    for (text, mistake) in [
        (Some("dk\n<html>\n"), "line 2: `<html>`"),
        (None, "there is no file"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let file = files.path().join("bad.dat");
        _ = fs::remove_file(&file);
        if let Some(text) = text {
            fs::write(&file, text).unwrap();
        }
        let order = format!("queues.public_suffixes = {file:?}");
        let settings = settings(directory.path(), std::slice::from_ref(&seed), &order);
        let (crawl, _handle) = Crawl::new(settings, Clock::system_clock(), Chance::system_chance());
        let error = crawl.run_crawl().await.unwrap_err().to_string();
        assert!(
            error.contains("queues.public_suffixes") && error.contains(mistake),
            "{error}"
        );
    }
}

/// Fails if a seed that redirects takes the host along at which it ends after more than five redirects, or not after
/// fewer.
#[tokio::test]
async fn five_redirects_make_a_seed() {
    for (redirects, follows) in [(1, true), (5, true), (6, false)] {
        let (end, told) = serve_requests("127.0.0.1", |_| page("<a href=/next>next</a>")).await;
        let mut target = end.clone();
        for _ in 0..redirects {
            let location = target.to_string();
            let answer = move |request: &str| {
                if request.starts_with("GET /robots.txt ") {
                    page("")
                } else {
                    redirect(&location)
                }
            };
            (target, _) = serve_requests("127.0.0.1", answer).await;
        }
        let directory = tempfile::tempdir().unwrap();
        crawl(settings(
            directory.path(),
            std::slice::from_ref(&target),
            "",
        ))
        .await;
        assert_eq!(requests_for(&told, "/").len(), 1, "{redirects}");
        let next = requests_for(&told, "/next").len();
        assert_eq!(next, usize::from(follows), "{redirects}");
    }
}

/// Fails if a host does not get the fields of the order, a URI that an expression accepts is left, or a
/// page that asks not to follow its links is not heeded.
#[tokio::test]
async fn requests_and_links_are_as_the_order_says() {
    let (other, told_other) = serve_requests("127.0.0.2", |_| page("other")).await;
    let accepted = other.join("/take/1").unwrap();
    let left = other.join("/leave/1").unwrap();
    let links = format!(
        "<a href={accepted}>1</a> <a href={left}>2</a> <a href=/n rel=nofollow>3</a><a href=/m>4</a>"
    );
    let (base, told) = serve_requests("127.0.0.1", move |request| match path_of(request) {
        "/" => page(&links),
        "/m" => page("<meta name=robots content='noindex, nofollow'><a href=/k>k</a><img src=/i>"),
        _ => page("page"),
    })
    .await;
    let directory = tempfile::tempdir().unwrap();
    let order = "
        http.fields = [\"Accept-Language: da, en;q=0.5\", \"Accept: text/html\"]
        scope.accept_expressions = [\".*/take/.*\"]
        networks.allow = [\"127.0.0.0/8\"]
        extraction.obey_nofollow = true
        ";
    let seeds = std::slice::from_ref(&base);
    crawl(settings(directory.path(), seeds, order)).await;
    let request = &requests_for(&told, "/")[0];
    for part in [
        "\r\nAccept-Language: da, en;q=0.5\r\n",
        "\r\nAccept: text/html\r\n",
    ] {
        assert!(request.contains(part), "{request}");
    }
    assert_eq!(request.matches("\r\nAccept: ").count(), 1, "{request}");
    let asked = |told: &requests::Requests, path: &str| requests_for(told, path).len();
    assert_eq!(
        ["/", "/m", "/i", "/n", "/k"].map(|path| asked(&told, path)),
        [1, 1, 1, 0, 0]
    );
    assert_eq!(
        ["/take/1", "/leave/1"].map(|path| asked(&told_other, path)),
        [1, 0]
    );
}

/// Fails if a crawl takes more bytes a second than it may.
#[tokio::test]
async fn bandwidth_of_all_connections_is_limited() {
    let large = page(&"x".repeat(300_000));
    let pages = move |path: &str| match path {
        "/" => Some(page("<img src=/1><img src=/2><img src=/3>")),
        "/robots.txt" => None,
        _ => Some(large.clone()),
    };
    let (base, _) = serve_by(Arc::new(pages)).await;
    let directory = tempfile::tempdir().unwrap();
    let order = "limits.max_bandwidth = \"1 MB\"\nqueues.connections = 3";
    let begin = std::time::Instant::now();
    let seeds = std::slice::from_ref(&base);
    let outcome = crawl(settings(directory.path(), seeds, order)).await;
    assert_eq!(outcome.progress.fetched, 4);
    // 900 kB, of which 250 kB may come at once.
    assert!(
        begin.elapsed() >= Duration::from_millis(600),
        "{:?}",
        begin.elapsed()
    );
}

/// Fails if a body of a media type is kept beyond its limit, another one is cut, or a cut one passes for whole.
#[tokio::test]
async fn media_types_have_their_own_limits() {
    let (base, told) = serve_requests("127.0.0.1", |request| {
        let path = request.split(' ').nth(1).unwrap();
        let media_type = match path {
            "/film" => "Video/MP4; codecs=x",
            "/clip" => "video/webm",
            "/zip" => "application/zip",
            "/robots.txt" => "text/plain",
            _ => return page("<a href=/film>1</a> <a href=/clip>2</a> <a href=/zip>3</a> <a href=/page>4</a>"),
        };
        let body = if path == "/robots.txt" { "User-agent: *\nDisallow: /page\n".to_owned() } else { "x".repeat(5000) };
        let length = body.len();
        format!("HTTP/1.1 200 OK\r\nContent-Type: {media_type}\r\nContent-Length: {length}\r\n\r\n{body}")
    })
    .await;
    let directory = tempfile::tempdir().unwrap();
    let order = "limits.max_body_by_type = { \"video/*\" = \"1000 B\", \"video/webm\" = \"2000 B\", \
                 \"application/zip\" = \"0 B\", \"text/plain\" = \"5 B\" }";
    crawl(settings(
        directory.path(),
        std::slice::from_ref(&base),
        order,
    ))
    .await;
    let blocks = blocks(directory.path(), WarcType::Response);
    let body = |path: &str| {
        let block = &blocks[base.join(path).unwrap().as_str()];
        block.split_once("\r\n\r\n").unwrap().1.len()
    };
    assert_eq!(
        (body("/film"), body("/clip"), body("/zip")),
        (1000, 2000, 0)
    );
    // A robots.txt of which five bytes were read would exclude nothing.
    assert_eq!(requests_for(&told, "/page").len(), 0);
    for line in log(directory.path()) {
        let is_cut = line
            .annotations
            .iter()
            .any(|annotation| annotation == "lenTrunc");
        let has_limit = ["/film", "/clip", "/zip"]
            .iter()
            .any(|path| line.uri.ends_with(path));
        assert_eq!(is_cut, has_limit, "{line}");
    }
}

/// Fails if a part of the web is not told the user agent that an overlay has for it, is told both, or another part is.
#[tokio::test]
async fn overlay_has_its_own_user_agent() {
    let own = |_: &str| page("<a href=/1>1</a>");
    let (first, told) = serve_requests("127.0.0.1", own).await;
    let (second, told_second) = serve_requests("127.0.0.2", own).await;
    let directory = tempfile::tempdir().unwrap();
    let order = "
        http.contact = \"https://library.example/web\"
        [[overlay]]
        surt = \"http://(127.0.0.2\"
        user_agent = \"Mozilla/5.0 (X11) holdfast/{version} +{contact}\"
        ";
    crawl(settings(directory.path(), &[first, second], order)).await;
    let agents = |told: &requests::Requests| -> BTreeSet<String> {
        let requests = told.lock();
        let lines = requests.iter().flat_map(|request| request.lines());
        lines
            .filter(|line| line.to_ascii_lowercase().starts_with("user-agent:"))
            .map(str::to_owned)
            .collect()
    };
    let own = agents(&told_second);
    assert_eq!(own.len(), 1, "{own:?}");
    assert!(
        own.first()
            .unwrap()
            .ends_with(" +https://library.example/web"),
        "{own:?}"
    );
    assert!(own.first().unwrap().contains("(X11) holdfast/"), "{own:?}");
    assert!(agents(&told).iter().all(|line| !line.contains("X11")));
    let count = |told: &requests::Requests, what: &str| {
        told.lock()
            .iter()
            .filter(|request| request.contains(what))
            .count()
    };
    assert_eq!(count(&told_second, "X11"), told_second.lock().len());
}

/// Fails if a seed that an overlay covers stands for more than the overlay says, or another one for less than the order.
#[tokio::test]
async fn overlay_has_its_own_scope_of_seeds() {
    let own = |_: &str| page("<a href=/in/1>1</a> <a href=/out>2</a>");
    let (first, told) = serve_requests("127.0.0.1", own).await;
    let (second, told_second) = serve_requests("127.0.0.2", own).await;
    let directory = tempfile::tempdir().unwrap();
    let order = "
        [[overlay]]
        surt = \"http://(127.0.0.2\"
        seed_scope = \"prefix\"
        ";
    let seeds = [first, second].map(|base| base.join("/in/").unwrap());
    crawl(settings(directory.path(), &seeds, order)).await;
    let count =
        |told: &requests::Requests| ["/in/1", "/out"].map(|path| requests_for(told, path).len());
    assert_eq!((count(&told), count(&told_second)), ([1, 1], [1, 0]));
}

/// Fails if the icon that browsers show beside the name of a page is not fetched, is fetched twice, or though the page
/// names another one.
#[tokio::test]
async fn icon_is_fetched_as_browsers_do() {
    for (head, icons) in [
        ("", [1, 0]),
        ("<LINK REL='shortcut Icon' href=/own.png>", [0, 1]),
    ] {
        let (base, told) = serve_requests("127.0.0.1", move |_| {
            page(&format!("{head}<a href=/1>1</a> <a href=/2>2</a>"))
        })
        .await;
        let directory = tempfile::tempdir().unwrap();
        crawl(settings(
            directory.path(),
            &[base],
            "extraction.favicon = true",
        ))
        .await;
        assert_eq!(
            ["/favicon.ico", "/own.png"].map(|path| requests_for(&told, path).len()),
            icons
        );
    }
}
