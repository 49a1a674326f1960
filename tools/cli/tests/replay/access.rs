//! One rule, and every way to a capture: what it blocks is blocked in all of them.

use crate::archive::wait;
use crate::support::chain::{Chain, endpoint, text};
use crate::support::curl::{Answer, curl, curl_through};
use crate::support::made::{Response, warc};

const OPEN: &str = "http://open.example/page";
const CLOSED: &str = "http://closed.example/page";
const CONTENT: &str = "a sentence that nobody shall read";

/// A way to a capture: a path with `{url}` for the URL.
struct Way {
    path: &'static str,
    door: Door,
    /// Whether the way lists captures. A list leaves out what is blocked; everything else is refused with 451.
    is_list: bool,
}

/// The listener that is asked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Door {
    /// The replay listener.
    Replay,
    /// The pages for people.
    Pages,
    /// The proxy, which is asked for the URL itself.
    Proxy,
}

const fn list(path: &'static str) -> Way {
    Way {
        path,
        door: Door::Replay,
        is_list: true,
    }
}

const fn content(path: &'static str) -> Way {
    Way {
        path,
        door: Door::Replay,
        is_list: false,
    }
}

const WAYS: [Way; 23] = [
    list("/all/cdx?url={url}"),
    list("/all/cdx?url={url}&output=json"),
    list("/all/cdx?url={url}&output=link"),
    list("/all/index?url={url}&closest=2020&sort=closest"),
    list("/all/cdx?url=example&matchType=domain&filter=original:{url}"),
    list("/cdx/search/cdx?url={url}"),
    list("/cdx/search/cdx?url={url}&output=json"),
    list("/all?url={url}"),
    list("/all?q=type:urlquery%20url:{url}"),
    content("/all/timemap/link/{url}"),
    content("/all/timemap/json/{url}"),
    content("/all/timemap/cdxj/{url}"),
    content("/all/{url}"),
    content("/all/2020/{url}"),
    content("/all/20200201000000id_/{url}"),
    content("/all/20200201000000ir_/{url}"),
    content("/all/20200201000000im_/{url}"),
    content("/all/20200201000000js_/{url}"),
    content("/all/id_/{url}"),
    content("/all/getRecord?arcFile=pages.warc.gz&arcOffset={offset}"),
    Way {
        path: "/all/*/{url}",
        door: Door::Pages,
        is_list: true,
    },
    Way {
        path: "/replay/all/20200201000000/{url}",
        door: Door::Pages,
        is_list: false,
    },
    Way {
        path: "{url}",
        door: Door::Proxy,
        is_list: false,
    },
];

/// The chain with its two captures, and where their records begin.
struct RuledChain {
    chain: Chain,
    offsets: [(&'static str, String); 2],
}

impl RuledChain {
    fn ask(&self, way: &Way, url: &str, words: &[&str]) -> Answer {
        let own = self.offsets.iter().find(|(known, _)| *known == url);
        let offset = own.map_or("0", |(_, offset)| offset.as_str());
        let path = way.path.replace("{url}", url).replace("{offset}", offset);
        match way.door {
            Door::Replay => self.chain.ask(&path, words),
            Door::Pages => {
                let web = endpoint(&self.chain.archive, "web");
                curl(&format!("{web}{path}"), words)
            }
            Door::Proxy => {
                let proxy = endpoint(&self.chain.archive, "proxy");
                curl_through(&proxy, &path, words)
            }
        }
    }

    /// Returns the ways on which something of a URL is revealed, or its content is shown.
    fn ways_to(&self, url: &str, words: &[&str]) -> Vec<&'static str> {
        let leads = |way: &&Way| {
            let answer = self.ask(way, url, words);
            let said = answer.text();
            if way.is_list {
                // Some lists begin with a head, and some answers repeat the question.
                return said.contains("pages.warc.gz") || said.contains("20200201000000");
            }
            answer.status == 200 || said.contains(CONTENT)
        };
        WAYS.iter().filter(leads).map(|way| way.path).collect()
    }
}

fn every_way() -> Vec<&'static str> {
    WAYS.iter().map(|way| way.path).collect()
}

/// Fails if a rule leaves one way to a capture open, closes another capture too, or holds for those whom it names as
/// exceptions.
#[test]
fn one_rule_blocks_every_way() {
    let mut chain = Chain::start(&[]);
    let page = |letter: &str| format!("<p>{CONTENT}: {letter}</p>").into_bytes();
    let open = page("open");
    let closed = page("closed");
    let captured = |url, body| Response {
        url,
        date: "2020-02-01T00:00:00Z",
        fields: "Content-Type: text/html\r\n",
        body,
    };
    let rules = chain.archive.path("rules.aclj");
    std::fs::write(&rules, "").unwrap();
    let settings = format!(
        "[access]\ntrusted_proxies = [\"127.0.0.1\"]\n[[collection]]\nname = \"all\"\nfile_groups = [\"staff\"]\nrules = [\"{}\"]\n",
        text(&rules)
    );
    chain.set_viewer(&settings);
    let file = warc(&[captured(OPEN, &open), captured(CLOSED, &closed)]);
    chain.store_bytes("pages.warc.gz", &file);
    let offset = |url: &str| {
        let said = chain
            .get(&format!("/all/cdx?url={url}&output=json"))
            .expect(200);
        let row: serde_json::Value = serde_json::from_str(said.text().trim()).unwrap();
        row["offset"].as_str().unwrap().to_owned()
    };
    let offsets = [OPEN, CLOSED].map(|url| (url, offset(url)));
    let closed_site = RuledChain { chain, offsets };
    let staff = ["--header", "X-Pywb-ACL-User: staff"];
    assert_eq!(closed_site.ways_to(CLOSED, &[]), every_way());

    // The staff of the library see it.
    let rule = "example,closed)/page - {\"access\": \"block\"}\nexample,closed)/page - {\"access\": \"allow\", \"user\": \"staff\"}\n";
    std::fs::write(&rules, rule).unwrap();
    wait("the rule counts", || {
        let status = closed_site
            .chain
            .get(&format!("/all/2020id_/{CLOSED}"))
            .status;
        if status == 451 { Ok(()) } else { Err(status) }
    });
    assert_eq!(closed_site.ways_to(CLOSED, &[]), Vec::<&str>::new());
    assert_eq!(closed_site.ways_to(OPEN, &[]), every_way());
    // In the proxy a page could say of itself that it is staff.
    let of_staff = WAYS.iter().filter(|way| way.door != Door::Proxy);
    let of_staff: Vec<&str> = of_staff.map(|way| way.path).collect();
    assert_eq!(closed_site.ways_to(CLOSED, &staff), of_staff);
    for way in WAYS.iter().filter(|way| !way.is_list) {
        for words in [&[][..], &["--head"]] {
            let answer = closed_site.ask(way, CLOSED, words);
            assert_eq!(answer.status, 451, "{} {words:?}", way.path);
            assert_eq!(answer.field("Memento-Datetime"), None, "{}", way.path);
        }
    }
    // A list of the whole domain has the other capture alone.
    let domain = closed_site
        .chain
        .get("/all/cdx?url=example&matchType=domain")
        .expect(200);
    assert!(
        domain.text().contains(OPEN) && !domain.text().contains("closed"),
        "{}",
        domain.text()
    );

    // A whole file has all of its captures: it is for those whom the collection names, and for no other visitor.
    let whole = "/all/getFile?arcFile=pages.warc.gz";
    assert!(closed_site.chain.ask(whole, &staff).expect(200).body == file);
    let refused = closed_site.chain.get(whole);
    assert!(matches!(refused.status, 404 | 451), "{refused:?}");
    assert!(refused.body.len() < file.len() || refused.body != file);

    // Without the rule everything is shown: nothing else has refused it.
    std::fs::write(&rules, "\n").unwrap();
    wait("the rule is removed", || {
        let status = closed_site
            .chain
            .get(&format!("/all/2020id_/{CLOSED}"))
            .status;
        if status == 200 { Ok(()) } else { Err(status) }
    });
    assert_eq!(closed_site.ways_to(CLOSED, &[]), every_way());
    closed_site.chain.archive.stop();
}
