//! Bodies, and the keys that cdxj-indexer 1.5.0 makes of them.

use super::*;

const FORM: &str = "application/x-www-form-urlencoded";

fn post(content_type: &str, body: &[u8]) -> String {
    append_post_query("http://a.b/c", "POST", Some(content_type.as_bytes()), body)
        .unwrap()
        .body
}

/// Fails if an escape or a plus sign of a posted form is left as it is, or a form that is not UTF-8 loses its bytes.
#[test]
fn forms_are_decoded() {
    assert_eq!(post(FORM, b"foo=bar&dir=%2Fbaz"), "foo=bar&dir=/baz");
    assert_eq!(
        post(
            "application/x-www-form-urlencoded; charset=utf-8",
            b"a b+c=d%20e&x"
        ),
        "a b c=d e&x"
    );
    assert_eq!(post(FORM, b""), "");
    assert_eq!(post(FORM, b"a=%ff&b=%zz%4"), "a=\u{fffd}&b=%zz%4");
    assert_eq!(post(FORM, b"\xff\xfe=1"), "__wb_post_data=//49MQ==");
}

/// Fails if the text of a posted body goes behind the fragment, where the key loses it, or GET changes its URL.
#[test]
fn post_query_is_appended_where_key_reads_it() {
    let url =
        |url, method| append_post_query(url, method, Some(FORM.as_bytes()), b"a=1").map(|a| a.url);
    assert_eq!(
        url("http://a.b/c", "POST").as_deref(),
        Some("http://a.b/c?__wb_method=POST&a=1")
    );
    assert_eq!(
        url("http://a.b/c?q=1", "PUT").as_deref(),
        Some("http://a.b/c?q=1&__wb_method=PUT&a=1")
    );
    assert_eq!(
        url("http://a.b/c?", "POST").as_deref(),
        Some("http://a.b/c?&__wb_method=POST&a=1")
    );
    assert_eq!(
        url("http://a.b/c#f", "POST").as_deref(),
        Some("http://a.b/c?__wb_method=POST&a=1#f")
    );
    assert_eq!(
        url("http://a.b/c", "DELETE").as_deref(),
        Some("http://a.b/c?__wb_method=DELETE")
    );
    assert_eq!(
        url("http://a.b/c", "HEAD").as_deref(),
        Some("http://a.b/c?__wb_method=HEAD")
    );
    assert_eq!(url("http://a.b/c", "GET"), None);
    let key = crate::surt::UrlKey::parse(url("http://httpbin.org/post", "POST").unwrap());
    assert_eq!(key.as_str(), "org,httpbin)/post?__wb_method=post&a=1");
}

/// Fails if a name that occurs twice in posted JSON is not numbered, or a float or boolean is not written as pywb
/// writes it.
#[test]
fn json_is_flattened() {
    let check = |body: &str, expected| {
        assert_eq!(
            post("application/json", body.as_bytes()),
            expected,
            "{body}"
        );
    };
    check(r#"{"foo":"bar"}"#, "foo=bar");
    check(
        r#"{"a":1,"b":2.5,"c":true,"d":null,"e":false}"#,
        "a=1&b=2.5&c=True&d=None&e=False",
    );
    check(
        r#"{"a":{"b":1,"a":2},"b":[1,2,{"b":3}]}"#,
        "b=1&a=2&b.2_=1&b.3_=2&b.4_=3",
    );
    check(
        r#"{"a":"x&y=z d","é":"é/+~*-_.()"}"#,
        "a=x%26y%3Dz+d&%C3%A9=%C3%A9%2F%2B~%2A-_.%28%29",
    );
    check(
        r#"{"a":"1","c":{"a":"2","a.2_":"3"},"a.2_":"4"}"#,
        "a=1&a.2_=2&a.2_.2_=3&a.2_.3_=4",
    );
    check(r#"[{"a":1},{"a":1},{"a":2}]"#, "a=1&a.2_=1&a.3_=2");
    check(r#"{"a":1,"a":2}"#, "a=2");
    check("\u{feff}{\"a\":1}", "a=1");
    check("{\"a\":1}\n{\"b\":2}", "a=1&b=2");
    check("[1]\n{\"a\":1}\r\n{\"a\":2}", "a=1&a.2_=2");
    check("{\"a\":1}\n\n{\"b\":2}\n", "");
    check(r#"{"a":"\u00e9\ud83d\ude00"}"#, "a=%C3%A9%F0%9F%98%80");
    for nothing in [
        "[1,2]",
        "\"s\"",
        "5",
        "null",
        "true",
        "{}",
        "[]",
        "{\"a\":[]}",
        "{\"\":1}",
        "{bad",
        "",
        "{\"a\":1}{\"b\":2}",
    ] {
        check(nothing, "");
    }
    check(
        r#"{"a":1e10,"b":1E-7,"e":-0.0,"f":1.0}"#,
        "a=10000000000.0&b=1e-07&e=-0.0&f=1.0",
    );
    check(
        r#"{"a":1.10,"c":100000000000000000000.0,"d":1e16,"e":0.00001,"f":123456789.123456789}"#,
        "a=1.1&c=1e%2B20&d=1e%2B16&e=1e-05&f=123456789.12345679",
    );
}

/// Fails if JSON that is posted as plain text is not flattened, or other text is taken for JSON.
#[test]
fn plain_text_may_be_json() {
    assert_eq!(post("text/plain", b"{\"a\":1}"), "a=1");
    assert_eq!(post("text/plain", b"5\n6"), "");
    assert_eq!(post("text/plain", b""), "__wb_post_data=");
    assert_eq!(post("text/plain; x", b"hello"), "__wb_post_data=aGVsbG8=");
}

/// Fails if a multipart body is not read as a form, or one that is cut gives only some of its fields.
#[test]
fn multipart_is_a_form() {
    let body = b"--X\r\nContent-Disposition: form-data; name=\"foo\"\r\n\r\nbar baz\r\n--X\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a.txt\"\r\nContent-Type: text/plain\r\n\r\nfile\ndata\r\n--X--\r\n";
    for boundary in ["X", "\"X\""] {
        assert_eq!(
            post(&format!("multipart/form-data; boundary={boundary}"), body),
            "foo=bar+baz&f=file%0Adata"
        );
    }
    for broken in ["multipart/form-data", "multipart/form-data; boundary=Y"] {
        assert!(post(broken, body).starts_with("__wb_post_data=LS1YDQpDb250"));
    }
    let file = b"pre\r\n--X\r\nContent-Disposition: form-data; name=a\r\nContent-Type: image/png\r\n\r\n\x89PNG\xff\r\n--X\r\nA: b\r\n\r\n1\r\n--X--\r\npost";
    assert_eq!(
        post("multipart/form-data; boundary=X", file),
        "a=%89PNG%FF&=1"
    );
    for cut in 0..body.len() {
        let read = post("multipart/form-data; boundary=X", &body[..cut]);
        assert!(
            read.starts_with("__wb_post_data=") || read.ends_with("data"),
            "{cut}"
        );
    }
}

/// Fails if a body of another media type, or of none, is read as a form instead of written in Base64.
#[test]
fn other_bodies_are_written_in_base64() {
    assert_eq!(post("image/png", b"\x89PNG\0"), "__wb_post_data=iVBORwA=");
    assert_eq!(post("", b"foo=bar"), "__wb_post_data=Zm9vPWJhcg==");
    assert_eq!(
        append_post_query("u", "POST", None, b"x").unwrap().body,
        "__wb_post_data=eA=="
    );
}

/// Fails if a posted body of megabytes makes a URL of megabytes.
#[test]
fn long_posted_body_is_cut() {
    assert_eq!(post(FORM, &b"a".repeat(1 << 21)).len(), MAX_QUERY);
}

/// Fails if deeply nested JSON exhausts the stack, or a changed byte of a posted body makes the reader panic.
#[test]
fn nothing_panics() {
    let deep = "[".repeat(4000);
    assert_eq!(post("application/json", deep.as_bytes()), "");
    let good = br#"{"a":{"b":[1,2.5e3,"\u00e9"]}}"#;
    for at in 0..good.len() {
        for byte in 0..=255_u8 {
            let mut changed = good.to_vec();
            changed[at] = byte;
            for kind in [
                FORM,
                "application/json",
                "text/plain",
                "multipart/form-data; boundary=a",
            ] {
                let _taken = post(kind, &changed).len();
            }
        }
    }
}
