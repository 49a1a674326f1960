//! Tests of the order as a file.

use super::*;

mod mistakes;

fn parse(text: &str) -> CrawlOrder {
    CrawlOrder::parse(text).unwrap()
}

/// An order in which no key has its default, but for the cookies that its login form needs.
pub(super) const FULL: &str = r#"
[scope]
kind = "host"
max_hops = 3
max_embed_hops = 4
max_speculative_hops = 2
max_path_segments = 9
max_path_repeats = 5
accept = ["http://(dk,other,"]
reject = ["http://(dk,example,www,)/private"]
traps = ['.*\?sid=\d+', ".*/calendar/.*"]
[politeness]
delay_factor = 1
min_delay = "300 ms"
max_delay = "1 s"
max_crawl_delay = "1 min"
max_bandwidth = "500 kB"
[robots]
policy = "ignore"
agent = "netarkivet"
validity = "1 h"
[queues]
by = "seed"
public_suffixes = "suffixes.dat"
connections = 2
cost = "surplus"
first = "hops"
precedence = 5
session_budget = 10
error_penalty = 1
total_budget = 1000
max_objects = 100
max_bytes = "10 MB"
objects_by_quota = false
[limits]
max_objects = 1
max_bytes = "1 GB"
max_time = "7 d"
max_fetches = 25
connect = "1 s"
stall = "2 s"
total = "3 s"
max_head = "1 MiB"
max_body = "2 MiB"
max_body_by_type = { "video/*" = "1 MB", "application/zip" = "0 B" }
[retry]
max_tries = 3
delay = "300 s"
max_retry_after = "10 min"
[http]
user_agent = "netarkivet/{version} (+{contact})"
contact = "https://example.dk/about"
from = "harvest@example.dk"
accept_compression = true
http2 = "never"
cookies = true
[extraction]
favicon = false
scripts = false
max_links = 10
[quarantine]
after_pages = 50
trial_pages = 10
[files]
max_size = "1 MB"
compress = false
[dedup]
file = "dedup.idx"
all = true
[networks]
allow = ["10.0.0.0/8", "fd00::/8"]
[dns]
servers = ["127.0.0.1", "[::1]:5353"]
validity = "5 min"
[[credential]]
host = "www.example.dk"
realm = "members"
user = "me"
password = "hush-hush"
[[credential]]
host = "login.example.dk"
user = "me"
password = "hush-too"
form = { action = "https://login.example.dk/in", user_field = "u", password_field = "p", fields = { stay = "1" } }
[[overlay]]
surt = "http://(dk,example,"
delay_factor = 2.5
min_delay = "5 s"
max_delay = "50 s"
max_crawl_delay = "10 s"
max_bandwidth = "1 kB"
user_agent = "netarkivet for one ({contact})"
robots = "obey"
max_body = "3 MiB"
seed_scope = "prefix"
max_hops = 1
max_embed_hops = 2
max_speculative_hops = 3
max_path_segments = 5
max_path_repeats = 6
traps = [".*pit"]
precedence = 6
session_budget = 20
error_penalty = 2
total_budget = 7
max_objects = 8
max_bytes = "1 MB"
[[overlay]]
surt = "http://(dk,example,www,)/"
min_delay = "7 s"
max_objects = 3
"#;

/// Fails if a default changes when an order is printed and read, or a key is forgotten in the documented file.
#[test]
fn documented_order_reads_back_equal() {
    let printed = CrawlOrder::default().to_toml().unwrap();
    assert_eq!(parse(&printed), CrawlOrder::default(), "{printed}");
    assert_eq!(parse(""), CrawlOrder::default());
    let full = parse(FULL);
    let printed = full.to_toml_with_passwords().unwrap();
    assert_eq!(parse(&printed), full, "{printed}");
}

/// Fails if a key of the order has no comment in the documented file, or is not in it at all.
#[test]
fn every_key_is_explained() {
    let order: toml::Table = FULL.parse().unwrap();
    let printed = CrawlOrder::default().to_toml().unwrap();
    let lines: Vec<&str> = printed.lines().collect();
    let mut explained = 0;
    for (section, value) in &order {
        let header = [format!("[{section}]"), format!("# [[{section}]]")];
        let begin = lines
            .iter()
            .position(|line| header.iter().any(|header| header == line));
        let begin = begin.unwrap_or_else(|| panic!("{section} is not in the file"));
        assert!(lines[begin - 1].starts_with("# "), "{section}");
        let keys = lines[begin + 1..]
            .iter()
            .take_while(|line| !line.is_empty());
        let keys: Vec<&&str> = keys.collect();
        let one = std::slice::from_ref(value);
        let tables = value.as_array().map_or(one, Vec::as_slice);
        for key in tables
            .iter()
            .flat_map(|table| table.as_table().unwrap().keys())
        {
            let forms = [
                format!("{key} = "),
                format!("# {key} is not set"),
                format!("# {key} = "),
            ];
            let at = keys
                .iter()
                .position(|line| forms.iter().any(|form| line.starts_with(form)));
            let at = at.unwrap_or_else(|| panic!("{section}.{key} is not in the file"));
            assert!(at > 0 && keys[at - 1].starts_with("# "), "{section}.{key}");
            explained += 1;
        }
    }
    assert!(explained > 60, "{explained}");
}

/// Fails if a mistake is taken, or its line, its key or the way out is not said.
#[test]
fn mistakes_are_named_by_line_and_key() {
    for (text, line, key, message) in [
        (
            "[scope]\nmax_hop = 3",
            2,
            "scope.max_hop",
            "unknown field `max_hop`, expected one of",
        ),
        ("\n\n[scopes]", 3, "scopes", "unknown field `scopes`"),
        (
            "[scope]\nkind = \"site\"",
            2,
            "scope.kind",
            "expected one of `domain`, `host`, `prefix`",
        ),
        ("[scope]\nmax_hops = -1", 2, "scope.max_hops", "-1"),
        (
            "[scope]\nmax_hops = \"3\"",
            2,
            "scope.max_hops",
            "invalid type",
        ),
        (
            "[scope]\ntraps = [\n  \"fine\",\n  \"(open\",\n]",
            4,
            "scope.traps",
            "unclosed group",
        ),
        ("[scope]\ntraps = [\"a\\nb\"]", 2, "scope.traps", "one line"),
        (
            "[scope]\naccept = [\"example.dk\"]",
            2,
            "scope.accept",
            "write `http://(dk,example,)/`",
        ),
        (
            "[networks]\nallow = [\"10.0.0.1/8\"]",
            2,
            "networks.allow",
            "write `10.0.0.0/8`",
        ),
        (
            "[dns]\nservers = [\"dns.example.dk\"]",
            2,
            "dns.servers",
            "127.0.0.1:53",
        ),
        (
            "[politeness]\ndelay_factor = nan",
            2,
            "politeness.delay_factor",
            "from 0 to 1000",
        ),
        (
            "[politeness]\ndelay_factor = -0.5",
            2,
            "politeness.delay_factor",
            "from 0 to 1000",
        ),
        (
            "[politeness]\nmin_delay = \"1 h\"",
            2,
            "politeness.min_delay",
            "longer than",
        ),
        (
            "[politeness]\nmin_delay = 3",
            2,
            "politeness.min_delay",
            "15 min",
        ),
        (
            "[politeness]\nmax_bandwidth = 0",
            2,
            "politeness.max_bandwidth",
            "leave the key out",
        ),
        (
            "[robots]\npolicy = \"no\"",
            2,
            "robots.policy",
            "`obey` or `ignore`",
        ),
        (
            "[robots]\nagent = \"hold fast\"",
            2,
            "robots.agent",
            "RFC 9309",
        ),
        (
            "[robots]\nagent = \"other\"\n[http]\nuser_agent = \"x\"",
            4,
            "http.user_agent",
            "`other`",
        ),
        (
            "[http]\nuser_agent = \"holdfast\\r\\nX: y\"",
            2,
            "http.user_agent",
            "visible ASCII",
        ),
        (
            "[http]\ncontact = \"example.dk\"",
            2,
            "http.contact",
            "relative URL",
        ),
        (
            "[http]\ncontact = \"ftp://example.dk/\"",
            2,
            "http.contact",
            "https://",
        ),
        (
            "[http]\ncontact = \"http://a:b@c.dk/\"",
            2,
            "http.contact",
            "[[credential]]",
        ),
        ("[http]\nfrom = \"me\"", 2, "http.from", "name@example.org"),
        ("[http]\nhttp2 = \"yes\"", 2, "http.http2", "`when-needed`"),
        (
            "[queues]\nconnections = 0",
            2,
            "queues.connections",
            "a whole number from 1",
        ),
        (
            "[retry]\nmax_tries = 0",
            2,
            "retry.max_tries",
            "a whole number from 1",
        ),
        ("[limits]\nstall = \"0 s\"", 2, "limits.stall", "no time"),
        ("[files]\nmax_size = 0", 2, "files.max_size", "no room"),
        (
            "[limits]\nmax_bytes = \"10 GBit\"",
            2,
            "limits.max_bytes",
            "the units are",
        ),
        (
            "[[overlay]]\nmin_delay = \"1 s\"",
            1,
            "overlay.0",
            "missing field `surt`",
        ),
        (
            "[[overlay]]\nsurt = \"dk\"",
            2,
            "overlay.0.surt",
            "in SURT form",
        ),
        (
            "[[overlay]]\nsurt = \"http://(dk,\"\ndelay_factor = inf",
            3,
            "overlay.0.delay_factor",
            "1000",
        ),
        (
            "[[credential]]\nhost = \"a.dk\"\nuser = \"x\"",
            1,
            "credential.0",
            "missing field `password`",
        ),
        (
            "[[credential]]\nhost = \"a/b\"\nuser = \"x\"\npassword = \"y\"",
            2,
            "credential.0.host",
            "name of a host",
        ),
        (
            "[[credential]]\nhost = \"a.dk\"\nuser = \"x\"\npassword = \"y\"\n\
             form = { action = \"http://b.dk/\", user_field = \"u\", password_field = \"p\" }",
            5,
            "credential.0.form",
            "another host",
        ),
        ("[scope", 1, "", "unclosed"),
        ("[scope]\nmax_hops = 3\nmax_hops = 4", 3, "", "duplicate"),
    ] {
        let error = CrawlOrder::parse(text).expect_err(text);
        let key = Some(key.to_owned()).filter(|key| !key.is_empty());
        assert_eq!(
            (error.line, &error.key),
            (Some(line), &key),
            "{text}: {error}"
        );
        assert!(error.message.contains(message), "{text}: {error}");
    }
}

/// Fails if an order of any length or depth is read, or ends the process.
#[test]
fn hostile_order_is_refused() {
    let long = " ".repeat(MAX_ORDER + 1);
    assert!(
        CrawlOrder::parse(&long)
            .unwrap_err()
            .message
            .contains("64 MiB")
    );
    let deep = format!("a = {}", "[".repeat(100_000));
    assert!(CrawlOrder::parse(&deep).is_err());
    let dotted = format!("{}a = 1", "a.".repeat(10_000));
    assert!(CrawlOrder::parse(&dotted).is_err());
}

/// Fails if a password can be read from anything but the job's own file.
#[test]
fn passwords_are_not_shown() {
    let order = parse(FULL);
    let shown = [format!("{order:?}"), order.to_toml().unwrap()];
    for text in shown {
        assert!(text.contains("members") && !text.contains("hush"), "{text}");
    }
    assert!(order.to_toml_with_passwords().unwrap().contains("hush-too"));
    let error = CrawlOrder::parse(&order.to_toml().unwrap()).unwrap_err();
    assert!(error.message.contains("password"), "{error}");
    let broken = FULL.replace("user = \"me\"", "user = 1");
    let error = CrawlOrder::parse(&broken).unwrap_err().to_string();
    assert!(!error.contains("hush"), "{error}");
}
