//! Credentials exchanged while a server runs.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use archive_rpc::{
    CallErrorKind, ConnectError, CredentialFiles, CredentialPem, Credentials, CredentialsError,
    ExpectedIdentity, Grant, RpcLimits,
};
use tokio::task::JoinSet;
use tokio_stream::StreamExt;
use tools_testing::in_time;

use crate::echo::{call, give};
use crate::environment::{DoorEnvironment, SERVING, TestServer, health, now, years};

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("directory"))
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "a certificate of a test need not be durable"
    )]
    fn write(&self, pem: &CredentialPem) {
        let text = |name: &str, text: &str| {
            let path = self.0.path().join(name);
            fs::write(&path, text).expect("written");
            // As a private key is.
            fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("closed");
        };
        text("cert.pem", &pem.certificate);
        text("key.pem", &pem.key);
        text("ca.pem", &pem.authorities);
        text("revoked.pem", pem.revoked.as_deref().unwrap_or_default());
    }

    fn files(&self, revoked: bool) -> CredentialFiles {
        let path = |name: &str| self.0.path().join(name);
        CredentialFiles {
            certificate: path("cert.pem"),
            key: path("key.pem"),
            authorities: path("ca.pem"),
            revoked: revoked.then(|| path("revoked.pem")),
        }
    }
}

/// Fails if a private key is loaded that every account of the machine can read, or refused because a group can, or if
/// the operator is not told the file, its mode and the remedy.
#[test]
fn exposed_private_key_is_not_loaded() {
    let world = DoorEnvironment::new("lab");
    let folder = Folder::new();
    folder.write(&world.pem(&world.issue(&["node/a"], years(2000, 2200)), None));
    let files = folder.files(false);
    for (mode, is_loaded) in [(0o600, true), (0o640, true), (0o644, false), (0o660, false)] {
        fs::set_permissions(&files.key, Permissions::from_mode(mode)).expect("chmod");
        let loaded = Credentials::from_files(files.clone(), now());
        assert_eq!(loaded.is_ok(), is_loaded, "{mode:o}");
        if let Err(error) = loaded {
            let said = error.to_string();
            let key = files.key.display();
            assert!(said.contains(&format!("{mode:04o}")), "{said}");
            assert!(said.contains(&format!("`chmod 600 {key}`")), "{said}");
        }
    }
}

/// Fails if new connections get the old certificate after a reload, or the reload cuts a call that is under way.
#[tokio::test]
async fn certificate_is_exchanged_during_calls() {
    let world = DoorEnvironment::new("lab");
    let folder = Folder::new();
    folder.write(&world.pem(&world.issue(&["node/old"], years(2000, 2200)), None));
    let credentials = Credentials::from_files(folder.files(false), now()).expect("credentials");
    let server = TestServer::start(credentials.clone(), RpcLimits::default()).await;
    let anna = world.credentials(&["reader/anna"]);
    let named = |text: &str| ExpectedIdentity::named_grant(&text.parse::<Grant>().expect("grant"));
    let before = server
        .channel_to(&anna, &named("node/old"))
        .await
        .expect("connected");
    assert!(server.channel_to(&anna, &named("node/new")).await.is_err());
    let waiting = before.clone();
    let mut calls = JoinSet::new();
    calls.spawn(async move { call(&waiting, "Wait").await });
    let begun = server.echo.begun.acquire();
    in_time(begun).await.expect("begun").forget();

    folder.write(&world.pem(&world.issue(&["node/new"], years(2000, 2200)), None));
    credentials.reload_files(now()).expect("reloaded");
    assert_eq!(credentials.identity().to_string(), "node/new");
    let after = server
        .channel_to(&anna, &named("node/new"))
        .await
        .expect("connected");
    assert!(matches!(
        server.channel_to(&anna, &named("node/old")).await,
        Err(ConnectError::WrongServer { .. })
    ));
    for channel in [before, after] {
        assert_eq!(health(&channel).await.expect("healthy"), SERVING);
    }
    server.echo.open.add_permits(1);
    let ended = in_time(calls.join_next()).await.expect("a call");
    let answer = ended.expect("no panic").expect("answered");
    assert_eq!(answer, "reader/anna");
}

/// Fails if credentials that are cut, expired, revoked or of two owners replace the good ones, or an error shows a
/// private key.
#[tokio::test]
async fn bad_credentials_do_not_replace_good_ones() {
    let world = DoorEnvironment::new("lab");
    let folder = Folder::new();
    let good = world.pem(&world.issue(&["node/a"], years(2000, 2200)), None);
    folder.write(&good);
    let credentials = Credentials::from_files(folder.files(false), now()).expect("credentials");
    let other = world.pem(&world.issue(&["node/b"], years(2000, 2200)), None);
    let expired = world.pem(&world.issue(&["node/a"], years(2000, 2001)), None);
    let stranger = DoorEnvironment::new("lab");
    let with = |change: &dyn Fn(&mut CredentialPem)| {
        let mut pem = other.clone();
        change(&mut pem);
        pem
    };
    let cut = |text: &str| text[..text.len() - 30].to_owned();
    let serial = archive_rpc::Serial::of_certificate(&other.certificate).expect("serial");
    let own_revoked = world
        .authority
        .revoke_serials(None, &[serial], years(2025, 2026).not_before, now())
        .expect("list");
    let foreign_list = stranger
        .authority
        .revoke_serials(None, &[], years(2025, 2026).not_before, now())
        .expect("list");
    for (what, pem) in [
        ("another's key", with(&|pem| pem.key.clone_from(&good.key))),
        (
            "a cut certificate",
            with(&|pem| pem.certificate = cut(&pem.certificate)),
        ),
        ("a cut key", with(&|pem| pem.key = cut(&pem.key))),
        (
            "cut authorities",
            with(&|pem| pem.authorities = cut(&pem.authorities)),
        ),
        ("an empty certificate", with(&|pem| pem.certificate.clear())),
        ("no authority", with(&|pem| pem.authorities.clear())),
        (
            "a stranger's authority",
            with(&|pem| pem.authorities = stranger.authority.certificate().to_owned()),
        ),
        (
            "the authority itself",
            with(&|pem| {
                pem.certificate = world.authority.certificate().to_owned();
                pem.key = world.authority.key();
            }),
        ),
        ("expired", expired),
        (
            "revoked",
            with(&|pem| pem.revoked = Some(own_revoked.clone())),
        ),
        (
            "an empty list",
            with(&|pem| pem.revoked = Some(String::new())),
        ),
        (
            "a cut list",
            with(&|pem| pem.revoked = Some(cut(&own_revoked))),
        ),
        (
            "a text that is not a list",
            with(&|pem| pem.revoked = Some(pem.certificate.clone())),
        ),
        (
            "a foreign list",
            with(&|pem| pem.revoked = Some(foreign_list.clone())),
        ),
    ] {
        let error = credentials.replace_pem(&pem, now()).expect_err(what);
        println!("{what}: {error}");
        assert!(
            !format!("{error} {error:?} {pem:?}").contains("PRIVATE KEY"),
            "{what}"
        );
        assert_eq!(credentials.identity().to_string(), "node/a", "{what}");
    }
    fs::remove_file(folder.files(false).key).expect("removed");
    match credentials.reload_files(now()) {
        Err(CredentialsError::Read { path, .. }) => assert!(path.ends_with("key.pem")),
        other => panic!("taken up: {other:?}"),
    }
    let server = TestServer::start(credentials, RpcLimits::default()).await;
    let named = ExpectedIdentity::named_grant(&"node/a".parse().expect("grant"));
    let channel = server
        .channel_to(&world.credentials(&["reader/r"]), &named)
        .await
        .expect("connected");
    assert_eq!(health(&channel).await.expect("healthy"), SERVING);
}

/// Fails if an endless file is read into memory as a list of authorities.
#[tokio::test]
async fn endless_file_of_authorities_is_refused() {
    let world = DoorEnvironment::new("lab");
    let folder = Folder::new();
    folder.write(&world.pem(&world.issue(&["node/a"], years(2000, 2200)), None));
    let files = CredentialFiles {
        authorities: "/dev/zero".into(),
        ..folder.files(false)
    };
    assert!(matches!(
        Credentials::from_files(files, now()),
        Err(CredentialsError::Read { .. })
    ));
}

/// Fails if a missing revocation list counts as an empty one.
#[tokio::test]
async fn missing_revocation_list_is_refused() {
    let world = DoorEnvironment::new("lab");
    let folder = Folder::new();
    folder.write(&world.pem(&world.issue(&["node/a"], years(2000, 2200)), None));
    let files = CredentialFiles {
        revoked: Some("/nowhere/revoked.pem".into()),
        ..folder.files(false)
    };
    assert!(matches!(
        Credentials::from_files(files, now()),
        Err(CredentialsError::Read { .. })
    ));
}

/// Fails if a caller keeps its open stream after it was revoked, or the streams of other callers are cut with it.
#[tokio::test]
async fn revoked_caller_is_cut_off_within_calls() {
    let world = DoorEnvironment::new("lab");
    let folder = Folder::new();
    let none = world
        .authority
        .revoke_serials(None, &[], years(2024, 2025).not_before, now())
        .expect("list");
    let own = world.issue(&["repository/main"], years(2000, 2200));
    folder.write(&world.pem(&own, Some(none.clone())));
    let credentials = Credentials::from_files(folder.files(true), now()).expect("credentials");
    let server = TestServer::start(credentials.clone(), RpcLimits::default()).await;
    let anna = world.issue(&["reader/anna"], years(2000, 2200));
    let anna_credentials =
        Credentials::from_pem(&world.pem(&anna, None), now()).expect("credentials");
    let hers = server.channel(&anna_credentials).await;
    let bens = server.channel(&world.credentials(&["reader/ben"])).await;
    let hers = hers.expect("connected");
    let bens = bens.expect("connected");
    let mut her_stream = give(&hers).await.expect("given");
    let mut his_stream = give(&bens).await.expect("given");
    her_stream.next().await.expect("a message").expect("good");

    let list = world
        .authority
        .revoke_serials(
            Some(&none),
            &[anna.serial],
            years(2025, 2026).not_before,
            now(),
        )
        .expect("list");
    folder.write(&world.pem(&own, Some(list)));
    credentials.reload_files(now()).expect("reloaded");
    let end = async {
        loop {
            match her_stream.next().await {
                Some(Ok(_)) => {}
                end => return end,
            }
        }
    };
    let end = in_time(end).await.expect("an error").expect_err("an error");
    assert_eq!(
        CallErrorKind::from_status(&end),
        CallErrorKind::Unavailable,
        "{end:?}"
    );
    // The channel connects again by itself, and gets the reason why it cannot.
    let refused = call(&hers, "Who").await.expect_err("refused");
    assert_eq!(
        CallErrorKind::from_status(&refused),
        CallErrorKind::Refused,
        "{refused:?}"
    );
    assert!(
        refused.message().contains("CertificateRevoked"),
        "{refused}"
    );
    his_stream.next().await.expect("a message").expect("good");
    assert_eq!(call(&bens, "Who").await.expect("answered"), "reader/ben");
}

/// Fails if a caller goes on believing a server whose certificate was revoked, because their connection was made before.
#[tokio::test]
async fn revoked_server_is_left_within_calls() {
    let world = DoorEnvironment::new("lab");
    let folder = Folder::new();
    let none = world
        .authority
        .revoke_serials(None, &[], years(2024, 2025).not_before, now())
        .expect("list");
    let anna = world.issue(&["reader/anna"], years(2000, 2200));
    folder.write(&world.pem(&anna, Some(none.clone())));
    let hers = Credentials::from_files(folder.files(true), now()).expect("credentials");
    let theirs = world.issue(&["repository/main"], years(2000, 2200));
    let own = Credentials::from_pem(&world.pem(&theirs, None), now()).expect("credentials");
    let server = TestServer::start(own, RpcLimits::default()).await;
    let channel = server.channel(&hers).await.expect("connected");
    let mut stream = give(&channel).await.expect("given");
    stream.next().await.expect("a message").expect("good");

    let list = world
        .authority
        .revoke_serials(
            Some(&none),
            &[theirs.serial],
            years(2025, 2026).not_before,
            now(),
        )
        .expect("list");
    folder.write(&world.pem(&anna, Some(list)));
    hers.reload_files(now()).expect("reloaded");
    let end = async {
        loop {
            match stream.next().await {
                Some(Ok(_)) => {}
                end => return end,
            }
        }
    };
    let end = in_time(end).await;
    end.expect("an error").expect_err("an error");
    let refused = call(&channel, "Who").await.expect_err("refused");
    assert_eq!(
        CallErrorKind::from_status(&refused),
        CallErrorKind::Refused,
        "{refused:?}"
    );
}
