//! Tests of challenges and answers, with the examples of the RFCs.

use super::*;

/// The challenges and the request of RFC 7616 §3.9.1.
const RFC_7616: &str = r#"Digest
    realm="http-auth@example.org", qop="auth, auth-int", algorithm=SHA-256,
    nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v",
    opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS",
    Digest realm="http-auth@example.org", qop="auth, auth-int", algorithm=MD5,
    nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v",
    opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS""#;

const MUFASA: Login<'static> = Login {
    user: "Mufasa",
    password: "Circle of Life",
};

const REQUEST: SignedRequest<'static> = SignedRequest {
    method: "GET",
    target: "/dir/index.html",
    client_nonce: "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ",
    nonce_count: 1,
};

fn answer(challenge: &Challenge) -> String {
    challenge.authorization_field(&MUFASA, &REQUEST).unwrap()
}

/// Fails if a host that follows RFC 7616 refuses the answer.
#[test]
fn digest_answers_as_in_rfc_7616() {
    let challenges = parse_challenges(RFC_7616);
    let expected = [
        (
            "SHA-256",
            "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1",
        ),
        ("MD5", "8ca523f5e9506fed4657c9700eebdbec"),
    ];
    assert_eq!(challenges.len(), 2);
    for (challenge, (algorithm, response)) in challenges.iter().zip(expected) {
        assert_eq!(
            answer(challenge),
            format!(
                "Digest username=\"Mufasa\", realm=\"http-auth@example.org\", \
                 nonce=\"7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v\", uri=\"/dir/index.html\", response=\"{response}\", \
                 opaque=\"FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS\", \
                 cnonce=\"f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ\", algorithm={algorithm}, qop=auth, nc=00000001"
            )
        );
    }
}

/// Fails if a host of RFC 2617 or RFC 2069 refuses the answer.
#[test]
fn older_digest_is_answered() {
    let login = Login {
        user: "Mufasa",
        password: "Circle Of Life",
    };
    let request = SignedRequest {
        client_nonce: "0a4f113b",
        ..REQUEST
    };
    let base = r#"Digest realm="testrealm@host.com", nonce="dcd98b7102dd2f0e8b11d0f600bfb0c093""#;
    for (rest, response) in [
        // The example of RFC 2617 §3.5.
        (
            r#", qop="auth,auth-int""#,
            "6629fae49393a05397450978507c4ef1",
        ),
        // Computed by definition, below.
        ("", "670fd8c2df070c60b045671b8b24ff02"),
    ] {
        let challenge = strongest_challenge(parse_challenges(&format!("{base}{rest}"))).unwrap();
        let value = challenge.authorization_field(&login, &request).unwrap();
        assert!(
            value.contains(&format!("response=\"{response}\"")),
            "{value}"
        );
        assert_eq!(value.contains("nc="), !rest.is_empty(), "{value}");
        assert!(!value.contains("algorithm"), "{value}");
    }
}

/// Fails if a session hashes the password without the nonces, or a hidden user is shown.
#[test]
fn session_and_hidden_user_are_hashed() {
    let field = r#"Digest realm="r", nonce="n", algorithm=sha-256-sess, qop=auth, userhash=true, stale=TRUE"#;
    let Some(Challenge::Digest(challenge)) = strongest_challenge(parse_challenges(field)) else {
        panic!("no challenge");
    };
    assert!(challenge.is_stale && challenge.algorithm.is_session && challenge.hides_user);
    let hash = |text: &str| hex::encode(Sha256::digest(text));
    let request = SignedRequest {
        client_nonce: "c",
        nonce_count: 0x1a2b,
        ..REQUEST
    };
    let value = challenge.authorization(&MUFASA, &request);
    let secret = hash(&format!("{}:n:c", hash("Mufasa:r:Circle of Life")));
    let response = hash(&format!(
        "{secret}:n:00001a2b:c:auth:{}",
        hash("GET:/dir/index.html")
    ));
    assert!(value.contains(&response), "{value}");
    assert!(
        value.contains(&hash("Mufasa:r")) && !value.contains("Mufasa"),
        "{value}"
    );
    assert!(
        value.contains("algorithm=sha-256-sess, qop=auth, nc=00001a2b, userhash=true"),
        "{value}"
    );
}

/// Fails if the Basic example of RFC 7617 is answered in another way, or a login that it cannot carry is sent.
#[test]
fn basic_answers_as_in_rfc_7617() {
    let challenge =
        strongest_challenge(parse_challenges("basic realm=\"foo\", charset=\"UTF-8\"")).unwrap();
    let answer =
        |user, password| challenge.authorization_field(&Login { user, password }, &REQUEST);
    assert_eq!(
        answer("Aladdin", "open sesame").unwrap(),
        "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="
    );
    assert_eq!(answer("test", "123£").unwrap(), "Basic dGVzdDoxMjPCow==");
    assert_eq!(
        answer("a:b", "c"),
        Err(InvalidLogin::Colon("a:b".to_owned()))
    );
    assert_eq!(
        answer("a", "c\r\nX: y"),
        Err(InvalidLogin::ControlCharacter)
    );
}

/// Fails if a weaker challenge is answered than the host offers, or one that is not understood.
#[test]
fn strongest_known_challenge_is_answered() {
    let basic = "Basic realm=\"b\"";
    let md5 = "Digest realm=\"m\", nonce=\"1\"";
    let sha = "Digest realm=\"s\", nonce=\"2\", algorithm=SHA-256";
    let unknown = "Negotiate, NTLM TlRMTVNTUAAB==, Digest realm=\"u\", nonce=\"3\", algorithm=SHA-1024, Bearer realm=\"t\"";
    for (fields, expected) in [
        (vec![basic, md5, sha], Some("s")),
        (vec![sha, md5, basic], Some("s")),
        (vec![unknown, basic, md5], Some("m")),
        (vec![basic, "Basic realm=\"c\"", unknown], Some("b")),
        (vec![unknown], None),
        (
            vec!["Digest realm=\"i\", nonce=\"4\", qop=\"auth-int\""],
            None,
        ),
        (vec!["Digest realm=\"without a nonce\""], None),
        (vec!["Basic realm=\"a\tb\""], None),
        (vec![], None),
    ] {
        let challenge = strongest_challenge(parse_challenges(&fields.join(", ")));
        assert_eq!(
            challenge.as_ref().map(Challenge::realm),
            expected,
            "{fields:?}"
        );
    }
}

/// Fails if a quotation mark, a comma or a letter of another script breaks the answer.
#[test]
fn odd_texts_stay_in_their_quotes() {
    let field = r#"Digest nonce="a\"b, c=\\d" , REALM = "x=""#;
    let challenge = strongest_challenge(parse_challenges(field)).unwrap();
    assert_eq!(challenge.realm(), "x=");
    let login = Login {
        user: "J\u{e4}s\u{f8}n Doe",
        password: "x",
    };
    let value = challenge.authorization_field(&login, &REQUEST).unwrap();
    assert!(value.contains(r#"nonce="a\"b, c=\\d""#), "{value}");
    assert!(
        value.contains("username*=UTF-8''J%C3%A4s%C3%B8n%20Doe"),
        "{value}"
    );
    assert!(!format!("{login:?}").contains("password"), "{login:?}");
}

/// Fails if a cut, repeated or endless field takes a long time or ends the process.
#[test]
fn hostile_field_is_read_once() {
    for end in 0..RFC_7616.len() {
        assert!(parse_challenges(&RFC_7616[..end]).len() <= 2);
    }
    for piece in [
        "\"",
        ",",
        "=",
        "a=",
        "a=\"",
        "Basic ",
        "Digest nonce=\"",
        "\\",
        "å",
        "a b",
        "\u{0}",
    ] {
        let field = piece.repeat(1 << 20);
        assert!(parse_challenges(&field).len() <= 16 << 10, "{piece}");
    }
}
