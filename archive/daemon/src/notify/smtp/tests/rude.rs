//! Servers that flood, inject words, or are not there.

use super::*;

/// Fails if memory grows with what a server says, or a line may continue without end.
#[tokio::test]
async fn a_flood_ends() {
    for flood in [
        &b"220-again\r\n"[..],
        b"220 no end of line ",
        b"\0\xff\xfe",
        b"\n",
    ] {
        for tls in [SmtpTls::None, SmtpTls::Starttls, SmtpTls::Wrapper] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let port = listener.local_addr().unwrap().port();
            let flooding = async {
                let (mut stream, _) = listener.accept().await.unwrap();
                let piece = flood.repeat(1000);
                let mut sent = 0_usize;
                while stream.write_all(&piece).await.is_ok() {
                    sent += piece.len();
                }
                sent
            };
            let settings = settings(port, tls);
            let message = message("r", "t");
            // The limit is against hanging: the amount has to end the flood, on the slowest machine, too.
            let sending = send_mail(&settings, &message, PATIENCE);
            let (sent, (is_taken, why)) = tokio::join!(flooding, sending);
            // The bytes in the buffers of the system are not ours.
            assert!(sent < 64 << 20, "{sent} bytes were read of {flood:?}");
            let why = why.unwrap();
            let is_ended_by_amount = !why.contains("it was left");
            assert!(!is_taken && is_ended_by_amount, "{flood:?} {tls:?}: {why}");
        }
    }
}

/// Fails if mail is sent in the clear where STARTTLS is not offered, or an answer added before the encryption counts as
/// one behind it.
#[tokio::test]
async fn absent_or_injected_starttls_sends_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let plain = Server::start(ServerBehavior::default()).await;
    let settings = settings(plain.port, SmtpTls::Starttls);
    let (is_taken, why) = send_mail(&settings, &message("r", "t"), SOON).await;
    assert!(!is_taken && why.unwrap().contains("offers no STARTTLS"));
    // An attacker between us and the server adds an answer in the clear: it must not be taken for one behind the
    // encryption.
    let (authority, tls) = certified("localhost");
    let manner = ServerBehavior {
        tls: Some(tls),
        instead: Some(("STARTTLS", "220 go ahead\r\n250-evil\r\n250 AUTH PLAIN\r\n")),
        ..ServerBehavior::default()
    };
    let server = Server::start(manner).await;
    let settings = SmtpSettings {
        port: Some(server.port),
        authorities: Some(file(directory.path(), &authority, 0o644)),
        ..settings
    };
    let (is_taken, why) = send_mail(&settings, &message("r", "t"), SOON).await;
    assert!(
        !is_taken && why.as_ref().unwrap().contains("the encryption"),
        "{why:?}"
    );
    assert!(server.mail().is_empty() && plain.mail().is_empty());
}

/// Fails if a mail server that refuses the connection, or has no address, is reported without that reason.
#[tokio::test]
async fn unreachable_server_is_reported() {
    let free = TcpListener::bind("127.0.0.1:0")
        .await
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let (is_taken, why) = send_mail(&settings(free, SmtpTls::None), &message("r", "t"), SOON).await;
    assert!(!is_taken && why.unwrap().contains("refused"));
    let settings = SmtpSettings {
        // The name is too long, so that no resolver is asked for it.
        server: "x".repeat(64),
        ..settings(25, SmtpTls::Wrapper)
    };
    let (_, why) = send_mail(&settings, &message("r", "t"), SOON).await;
    assert!(why.unwrap().contains("its address is not known"));
}
