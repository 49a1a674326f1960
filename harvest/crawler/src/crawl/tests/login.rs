//! A host that asks for a user and a password.

use super::*;

/// Asks for a user of the realm `members`, unless `me` with the password `hush` is told.
const CHALLENGE: &str = "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"members\"\r\nContent-Length: 0\r\n\r\n";

/// The Authorization field that opens the site: `me:hush`.
const OPEN: &str = "Authorization: Basic bWU6aHVzaA==";

async fn members() -> (Url, AskedPaths) {
    let open = |request: &str| request.contains(OPEN);
    closed_site(CHALLENGE, open).await
}

/// Serves a site whose pages want an answer to a challenge.
async fn closed_site(challenge: &'static str, opens: fn(&str) -> bool) -> (Url, AskedPaths) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/", listener.local_addr().unwrap());
    let asked = AskedPaths::default();
    let told = Arc::clone(&asked);
    tokio::task::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let told = Arc::clone(&told);
            tokio::task::spawn(async move {
                loop {
                    let Some(request) = read_head(&mut stream).await else {
                        return;
                    };
                    let response = if opens(&request) {
                        page("<a href=/a>a</a> <a href=/b>b</a>")
                    } else if request.contains("robots") {
                        "HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n".to_owned()
                    } else {
                        challenge.to_owned()
                    };
                    told.lock().push(request);
                    stream.write_all(response.as_bytes()).await.unwrap();
                }
            });
        }
    });
    (Url::parse(&base).unwrap(), asked)
}

/// Fails if a password does not open its host, goes to another one, is asked for with every page, or gets into a
/// record.
#[tokio::test]
async fn password_opens_its_host_and_is_not_recorded() {
    let (base, asked) = members().await;
    for (realm, opened) in [("members", true), ("others", false)] {
        asked.lock().clear();
        let directory = tempfile::tempdir().unwrap();
        let order = format!(
            "
            [[credential]]
            host = \"127.0.0.1\"
            realm = \"{realm}\"
            user = \"me\"
            password = \"hush\"
            "
        );
        crawl(settings(
            directory.path(),
            std::slice::from_ref(&base),
            &order,
        ))
        .await;
        let lines = log(directory.path());
        let of_page = lines.iter().filter(|line| line.uri == base.as_str());
        let statuses: Vec<_> = of_page.map(|line| line.status).collect();
        assert_eq!(statuses, if opened { vec![401, 200] } else { vec![401] });
        assert_eq!(lines.len(), if opened { 5 } else { 2 });
        // Both exchanges are recorded.
        let responses = recorded(directory.path(), WarcType::Response);
        assert_eq!(responses.len(), lines.len());
        assert_eq!(
            recorded(directory.path(), WarcType::Request).len(),
            lines.len()
        );
        let asked = asked.lock();
        let with_login = asked
            .iter()
            .filter(|request| request.contains("Authorization"));
        assert_eq!(
            (asked.len(), with_login.count()),
            if opened { (5, 3) } else { (2, 0) }
        );
        let warcs = fs::read_dir(directory.path().join("warcs")).unwrap();
        for entry in warcs {
            let bytes = fs::read(entry.unwrap().path()).unwrap();
            let mut reader = WarcReader::new(bytes.as_slice());
            while let Some(mut record) = reader.next_record().unwrap() {
                let mut block = Vec::new();
                record.read_to_end(&mut block).unwrap();
                let text = String::from_utf8_lossy(&block);
                assert!(!text.contains("Authorization:"), "{text}");
            }
        }
    }
}

/// Returns the milliseconds of the day at which the request of a line began.
fn milliseconds(line: &CrawlLogLine) -> u64 {
    let stamp = line.begun.as_ref().unwrap().to_string();
    let part = |range: std::ops::Range<usize>| stamp[range].parse::<u64>().unwrap();
    ((part(8..10) * 60 + part(10..12)) * 60 + part(12..14)) * 1000 + part(14..17)
}

/// Fails if the request with a user follows the demand for one without the pause of the host, the first answer to a
/// nonce does not say that it is the first, or a host that always asks anew is asked without an end.
#[tokio::test]
async fn answer_to_challenge_waits_its_turn() {
    const DIGEST: &str = "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Digest realm=\"r\", nonce=\"n\", qop=\"auth\", stale=true\r\nContent-Length: 0\r\n\r\n";
    let credential = "
        retry.max_tries = 3
        [[credential]]
        host = \"127.0.0.1\"
        realm = \"r\"
        user = \"me\"
        password = \"hush\"
    ";
    let pause = Duration::from_millis(400);
    let opens: fn(&str) -> bool =
        |request| request.contains("Authorization: Digest ") && request.contains("nc=00000001");
    let never: fn(&str) -> bool = |_| false;
    for (opens, expected) in [(opens, vec![401, 200]), (never, vec![401, 401, 401])] {
        let (base, _) = closed_site(DIGEST, opens).await;
        let order = format!(
            "scope.kind = \"prefix\"
            politeness = {{ delay_factor = 0.0, min_delay = \"400 ms\", max_delay = \"400 ms\" }}
            {credential}"
        );
        let directory = tempfile::tempdir().unwrap();
        let mut settings = settings(directory.path(), std::slice::from_ref(&base), "");
        Arc::get_mut(&mut settings.job).unwrap().order = CrawlOrder::parse(&order).unwrap();
        crawl(settings).await;
        let lines = log(directory.path());
        let of_page: Vec<_> = lines
            .iter()
            .filter(|line| line.uri == base.as_str())
            .collect();
        let statuses: Vec<_> = of_page.iter().map(|line| line.status).collect();
        assert_eq!(statuses, expected);
        for pair in of_page.windows(2) {
            let begun = pair.iter().map(|line| milliseconds(line));
            let begun: Vec<u64> = begun.collect();
            let rest = begun[1] - begun[0] - pair[0].milliseconds;
            // Both times are cut to milliseconds.
            assert!(
                rest + 2 >= u64::try_from(pause.as_millis()).unwrap(),
                "{rest}"
            );
        }
        assert_eq!(
            recorded(directory.path(), WarcType::Response).len(),
            lines.len()
        );
    }
}

/// Fails if a password for one realm of a host counts as refused by another realm, or a refused one is sent again and
/// again.
#[tokio::test]
async fn host_may_have_several_realms() {
    let demand = |realm: &str| {
        let field = format!("WWW-Authenticate: Basic realm=\"{realm}\"");
        format!("HTTP/1.1 401 No\r\n{field}\r\nContent-Length: 0\r\n\r\n")
    };
    let (base, _) = super::requests::serve_requests("127.0.0.1", move |request| {
        let path = request.split(' ').nth(1).unwrap();
        let has = |login: &str| request.contains(&format!("Authorization: Basic {login}\r\n"));
        match path {
            "/" => {
                page("<a href=/a/1>1</a> <a href=/b/1>2</a> <a href=/a/2>3</a> <a href=/c>4</a>")
            }
            "/c" => demand("c"),
            // `me:a` and `me:b`.
            _ if path.starts_with("/a/") && !has("bWU6YQ==") => demand("a"),
            _ if path.starts_with("/b/") && !has("bWU6Yg==") => demand("b"),
            _ => page("come in"),
        }
    })
    .await;
    let directory = tempfile::tempdir().unwrap();
    let credential = |realm: &str| {
        format!(
            "[[credential]]\nhost = \"127.0.0.1\"\nrealm = \"{realm}\"\nuser = \"me\"\npassword = \"{realm}\"\n"
        )
    };
    let order = ["\n", &credential("a"), &credential("b"), &credential("c")].concat();
    crawl(settings(
        directory.path(),
        std::slice::from_ref(&base),
        &order,
    ))
    .await;
    let lines = log(directory.path());
    let statuses = |path: &str| {
        let uri = base.join(path).unwrap();
        let of_uri = lines.iter().filter(|line| line.uri == uri.as_str());
        of_uri.map(|line| line.status).collect::<Vec<i32>>()
    };
    // At first without a password for this realm, and once with it.
    assert_eq!(statuses("/a/1"), [401, 200]);
    assert_eq!(statuses("/b/1"), [401, 200]);
    assert_eq!(statuses("/a/2").last(), Some(&200));
    assert_eq!(statuses("/c"), [401, 401]);
}
