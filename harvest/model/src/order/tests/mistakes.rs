//! Mistakes of people who write orders.

use super::*;

/// Returns a login form with other keys.
fn login(form: &str) -> String {
    format!("[[credential]]\nhost = \"a.dk\"\nuser = \"x\"\npassword = \"y\"\nform = {{ {form} }}")
}

/// Fails if a mistake is taken, its line or key is another one, or it is not said what to write instead.
#[test]
fn mistakes_say_what_to_write() {
    for (text, line, key, message) in [
        // Numbers.
        (
            "[scope]\nmax_hops = -1",
            2,
            "scope.max_hops",
            "`-1`, expected a whole number from 0 on",
        ),
        (
            "[scope]\nmax_hops = 1.5",
            2,
            "scope.max_hops",
            "whole number",
        ),
        (
            "[scope]\nmax_hops = 99999999999999999999",
            2,
            "scope.max_hops",
            "`99999999999999999999`, expected a whole number from 0 on",
        ),
        (
            "[queues]\nmax_objects = -5",
            2,
            "queues.max_objects",
            "from 0 on",
        ),
        (
            "[queues]\nconnections = 70000",
            2,
            "queues.connections",
            "from 1 to 65535",
        ),
        (
            "[retry]\nmax_tries = 99999999999",
            2,
            "retry.max_tries",
            "from 1 to 4294967295",
        ),
        (
            "[politeness]\ndelay_factor = \"5\"",
            2,
            "politeness.delay_factor",
            "such as 2.5",
        ),
        (
            "[queues]\nprecedence = 256",
            2,
            "queues.precedence",
            "from 0 to 255",
        ),
        (
            "[http]\nuser_agent = \"holdfast\"",
            2,
            "http.user_agent",
            "has `{contact}` in it",
        ),
        // Times and sizes.
        (
            "[limits]\nmax_time = \"3\"",
            2,
            "limits.max_time",
            "the units are ms, s, min, h, d",
        ),
        (
            "[limits]\nmax_time = 3",
            2,
            "limits.max_time",
            "such as \"15 min\"",
        ),
        (
            "[limits]\nmax_time = \"-3 s\"",
            2,
            "limits.max_time",
            "write for example `15 min`",
        ),
        (
            "[limits]\nmax_time = \"3 weeks\"",
            2,
            "limits.max_time",
            "the units are",
        ),
        (
            "[limits]\nmax_time = \"9999999999999999999 d\"",
            2,
            "limits.max_time",
            "too large",
        ),
        (
            "[limits]\nmax_bytes = -1",
            2,
            "limits.max_bytes",
            "such as \"10 GB\"",
        ),
        (
            "[limits]\nmax_bytes = \"99999999999 TB\"",
            2,
            "limits.max_bytes",
            "too large",
        ),
        // Texts and lists.
        (
            "[http]\ncookies = \"no\"",
            2,
            "http.cookies",
            "`true` or `false`",
        ),
        (
            "[robots]\nagent = 5",
            2,
            "robots.agent",
            "text between quotation marks",
        ),
        (
            "[http]\ncontact = \"a.dk\"",
            2,
            "http.contact",
            "such as `https://www.example.dk/`",
        ),
        (
            "[scope]\naccept = \"http://(dk,\"",
            2,
            "scope.accept",
            "a list of texts",
        ),
        (
            "[scope]\ntraps = [1]",
            2,
            "scope.traps",
            "text between quotation marks",
        ),
        (
            "[queues]\ncost = \"zero\"",
            2,
            "queues.cost",
            "expected `unit` or `surplus`",
        ),
        (
            "[queues]\nfirst = \"new\"",
            2,
            "queues.first",
            "expected `cost` or `hops`",
        ),
        (
            "[networks]\nallow = [\"10.0.0.0/40\"]",
            2,
            "networks.allow",
            "from 0 to 32",
        ),
        // Sections.
        (
            "scope = 1",
            1,
            "scope",
            "write `[scope]`, and its keys below it",
        ),
        (
            "[[scope]]\nmax_hops = 1",
            2,
            "scope.0.max_hops",
            "write `[scope]`",
        ),
        (
            "[overlay]\nsurt = \"http://(dk,\"",
            1,
            "overlay",
            "write `[[overlay]]`",
        ),
        (
            "[credential]\nhost = \"a.dk\"",
            1,
            "credential",
            "write `[[credential]]`",
        ),
        // TOML.
        ("[scope]\nmax_hops 3", 2, "", "expected `=`"),
        ("[scope]\ntraps = [\"a\"", 2, "", "expected `]`"),
        ("[scope]\nkind = 'domain", 2, "", "expected `'`"),
        (
            "\u{feff}[scope]\nmax_hops = -1",
            2,
            "scope.max_hops",
            "from 0 on",
        ),
        (
            "[scope]\r\nmax_hops = 1\r\nmax_hop = 2",
            3,
            "scope.max_hop",
            "`max_hops`",
        ),
        ("a\0b", 1, "", ""),
        // Overlays.
        (
            "[[overlay]]\nsurt = \"\"",
            2,
            "overlay.0.surt",
            "write for example",
        ),
        (
            "[[overlay]]\nsurt = \"http://(dk,example,www)/\"",
            2,
            "overlay.0.surt",
            "write `http://(dk,example,www,)/`",
        ),
        (
            "[[overlay]]\nsurt = \"http://(dk,\"\nkind = \"host\"",
            3,
            "overlay.0.kind",
            "expected one of `surt`, `delay_factor`",
        ),
        (
            "[[overlay]]\nsurt = \"http://(dk,\"\n\n[[overlay]]\nsurt = \"http://(dk,\"\ntraps = [\"(\"]",
            6,
            "overlay.1.traps",
            "unclosed group",
        ),
        (
            "[[overlay]]\nsurt = \"http://(dk,a,)/b\"\nmax_objects = 1",
            3,
            "overlay.0.max_objects",
            "without a path and a port",
        ),
        (
            "[[overlay]]\nsurt = \"http://(dk,a,:81)\"\nmax_bytes = 1",
            3,
            "overlay.0.max_bytes",
            "write for example `http://(dk,example,`",
        ),
        // Credentials.
        (
            &login("action = \"in\", user_field = \"u\", password_field = \"p\""),
            5,
            "credential.0.form.action",
            "write a whole URI",
        ),
        (
            &login("action = \"http://a.dk/\", user_field = \"u\""),
            5,
            "credential.0.form",
            "missing field `password_field`",
        ),
        (
            &login("action = \"http://a.dk/\", user_field = \"u\", password_field = \"u\""),
            5,
            "credential.0.form",
            "a name each",
        ),
        (
            &login("action = \"http://a.dk/\", user_field = \"\", password_field = \"p\""),
            5,
            "credential.0.form",
            "a name each",
        ),
        (
            &login("action = \"ftp://a.dk/\", user_field = \"u\", password_field = \"p\""),
            5,
            "credential.0.form",
            "`http` or `https`",
        ),
        (
            &login(
                "action = \"http://a.dk/\", user_field = \"u\", password_field = \"p\", fields = { p = \"1\" }",
            ),
            5,
            "credential.0.form",
            "fields of their own",
        ),
        (
            &format!(
                "{}\nrealm = \"r\"",
                login("action = \"http://a.dk/\", user_field = \"u\", password_field = \"p\"")
            ),
            6,
            "credential.0.realm",
            "leave the key out",
        ),
        (
            &format!(
                "http.cookies = false\n{}",
                login("action = \"http://a.dk/\", user_field = \"u\", password_field = \"p\"")
            ),
            6,
            "credential.0.form",
            "lasts by its cookies",
        ),
    ] {
        let error = CrawlOrder::parse(text).expect_err(text);
        let key = Some(key.to_owned()).filter(|key| !key.is_empty());
        assert_eq!(
            (error.line, &error.key),
            (Some(line), &key),
            "{text}: {error}"
        );
        assert!(error.message.contains(message), "{text}: {error}");
        for type_name in [
            "usize", "u64", "u32", "u16", "f64", "i128", "struct ", "sequence",
        ] {
            assert!(!error.message.contains(type_name), "{text}: {error}");
        }
    }
}

/// Fails if an overlay for a whole domain, host or address is refused, or one that covers queues covers none.
#[test]
fn overlays_of_queues_cover_hosts() {
    for (prefix, queue) in [
        ("http://(dk,example,", "example.dk"),
        ("http://(dk,", "example.dk"),
        ("http://(dk,example,)", "example.dk"),
        ("https://(dk,example,)/", "example.dk"),
        ("http://(127.0.0.1", "127.0.0.1"),
        ("http://(127.0.0.1)/", "127.0.0.1"),
        ("http://([::1])", "[::1]"),
        ("http://([2001:db8:", "[2001:db8::1]"),
    ] {
        let text = format!("[[overlay]]\nsurt = {prefix:?}\nmax_objects = 7");
        let order = parse(&text);
        assert_eq!(order.queue_limits(queue).successes, Some(7), "{prefix}");
        assert_eq!(order.queue_limits("other.com").successes, None, "{prefix}");
    }
}
