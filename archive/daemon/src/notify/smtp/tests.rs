//! Letters to a mail server of our own: honest, rude, lying, hanging.

mod rude;
mod server;

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tools_testing::PATIENCE;

use self::server::{Server, ServerBehavior, certified};
use super::super::incident::{IncidentNews, IncidentStage};
use super::super::settings::{MailAddress, SmtpTls};
use super::*;

const SOON: Duration = Duration::from_secs(20);

fn address(text: &str) -> MailAddress {
    text.to_owned().try_into().unwrap()
}

fn settings(port: u16, tls: SmtpTls) -> SmtpSettings {
    SmtpSettings {
        server: "localhost".to_owned(),
        port: Some(port),
        tls,
        authorities: None,
        user: None,
        password_file: None,
        from: address("Archivwächter <holdfast@example.org>"),
        to: vec![address("a@example.org"), address("Bé <b@example.org>")],
    }
}

fn message(source: &str, text: &str) -> Message {
    let news = IncidentNews {
        key: "export".to_owned(),
        what: IncidentStage::Began,
        since: Timestamp::UNIX_EPOCH,
        count: 1,
        text: text.to_owned(),
    };
    let at = "2026-01-02T03:04:05Z".parse().unwrap();
    Message::digest_message(source, "77ab".to_owned(), at, vec![news])
}

/// Makes a file with these permissions.
fn file(directory: &Path, text: &str, mode: u32) -> std::path::PathBuf {
    let path = directory.join(format!("{mode:o}-{}", text.len()));
    let mut file = OpenOptions::new()
        .create_new(true)
        .write(true)
        .open(&path)
        .unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file.set_permissions(std::fs::Permissions::from_mode(mode))
        .unwrap();
    path
}

/// Headers by name, and the text, both decoded.
fn decoded(raw: &str) -> (Vec<(String, String)>, String) {
    let (headers, body) = raw.split_once("\r\n\r\n").unwrap();
    let headers: Vec<(String, String)> = headers
        .replace("\r\n ", " ")
        .lines()
        .map(|line| line.split_once(": ").unwrap())
        .map(|(name, value)| (name.to_owned(), words(value)))
        .collect();
    let encoding = headers
        .iter()
        .find(|(name, _)| name == "Content-Transfer-Encoding");
    let body = match encoding.unwrap().1.as_str() {
        "7bit" => body.replace("\r\n..", "\r\n."),
        "base64" => {
            let text = STANDARD.decode(body.replace("\r\n", "")).unwrap();
            String::from_utf8(text).unwrap()
        }
        "quoted-printable" => quoted(&body.replace("=\r\n", "")),
        other => panic!("{other}"),
    };
    (headers, body)
}

/// Decodes the words of RFC 2047, base64 only.
fn words(value: &str) -> String {
    let mut text = String::new();
    for word in value.replace("?= =?", "?==?").split_inclusive("?=") {
        match word.split_once("=?utf-8?b?") {
            None => text.push_str(word),
            Some((before, word)) => {
                text.push_str(before);
                let word = STANDARD.decode(word.trim_end_matches("?=")).unwrap();
                text.push_str(std::str::from_utf8(&word).unwrap());
            }
        }
    }
    text
}

fn quoted(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'=' {
            let digits = [rest.next().unwrap(), rest.next().unwrap()];
            bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap());
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).unwrap()
}

/// Fails if text beyond ASCII, lone dots or long lines arrive changed, or a header is missing, wrong or there twice.
#[tokio::test]
async fn mail_arrives_as_it_was_written() {
    let server = Server::start(ServerBehavior::default()).await;
    let settings = settings(server.port, SmtpTls::None);
    let text = "Größe: 5 Dateien, 日本語\n.\n..dots\n".to_owned() + &"lang ".repeat(300);
    let sent = message("repository köb", &text);
    assert_eq!(send_mail(&settings, &sent, SOON).await, (true, None));
    let mail = server.mail().pop().unwrap();
    assert_eq!(mail.from, "MAIL FROM:<holdfast@example.org>");
    assert_eq!(
        mail.to,
        ["RCPT TO:<a@example.org>", "RCPT TO:<b@example.org>"]
    );
    assert!(!mail.is_encrypted && mail.raw.is_ascii());
    let lines = mail.raw.split("\r\n");
    assert!(
        lines
            .clone()
            .all(|line| line.len() <= 998 && !line.contains(['\r', '\n']))
    );
    let (headers, body) = decoded(&mail.raw);
    let header = |name: &str| {
        let mut found = headers.iter().filter(|(own, _)| own == name);
        let value = found.next().map(|(_, value)| value.as_str());
        assert!(found.next().is_none(), "{name} stands twice");
        value.unwrap_or_else(|| panic!("no {name}: {headers:?}"))
    };
    assert_eq!(header("Subject"), "repository köb: export began");
    assert_eq!(header("Date"), "Fri, 02 Jan 2026 03:04:05 +0000");
    assert_eq!(header("Message-ID"), "<77ab@example.org>");
    assert_eq!(header("Auto-Submitted"), "auto-generated");
    assert_eq!(header("MIME-Version"), "1.0");
    assert_eq!(header("Content-Type"), "text/plain; charset=utf-8");
    assert!(header("From").contains("Archivwächter") && header("To").contains("Bé"));
    assert_eq!(
        body.replace("\r\n", "\n").trim_end(),
        sent.mail_text().trim_end()
    );
}

/// Fails if a line that begins with a dot ends the mail, or loses its dot.
#[tokio::test]
async fn leading_dot_of_line_is_doubled_on_wire() {
    let server = Server::start(ServerBehavior::default()).await;
    let settings = settings(server.port, SmtpTls::None);
    let sent = message(".dot\n.\n", "plain");
    assert_eq!(send_mail(&settings, &sent, SOON).await, (true, None));
    let mail = server.mail().pop().unwrap();
    assert!(mail.raw.contains("\r\n\r\n..dot\r\n..\r\n"), "{}", mail.raw);
    let (_, body) = decoded(&mail.raw);
    assert_eq!(
        body.replace("\r\n", "\n").trim_matches(['.', '\n']),
        sent.mail_text().trim_matches(['.', '\n'])
    );
}

/// Fails if mail or password goes to a server whose certificate is not trusted or for another name, or a report repeats
/// the password.
#[tokio::test]
async fn both_ways_of_encryption_with_a_login() {
    let directory = tempfile::tempdir().unwrap();
    let (authority, tls) = certified("localhost");
    let authorities = file(directory.path(), &authority, 0o644);
    let password = file(directory.path(), "pass wörd\nnot this\n", 0o600);
    let login = STANDARD.encode("\0officer\0pass wörd");
    for (kind, wraps) in [(SmtpTls::Wrapper, true), (SmtpTls::Starttls, false)] {
        let manner = ServerBehavior {
            tls: Some(Arc::clone(&tls)),
            wraps,
            login: Some(login.clone()),
            ..ServerBehavior::default()
        };
        let server = Server::start(manner).await;
        let mut settings = SmtpSettings {
            authorities: Some(authorities.clone()),
            user: Some("officer".to_owned()),
            password_file: Some(password.clone()),
            ..settings(server.port, kind)
        };
        let sent = message("repository kb", "text");
        assert_eq!(
            send_mail(&settings, &sent, SOON).await,
            (true, None),
            "{kind:?}"
        );
        let mail = server.mail().pop().unwrap();
        assert!(mail.is_encrypted && mail.login == login, "{mail:?}");
        // The certificate is of another authority, or for another name: nothing is sent to it.
        let (other, _) = certified("localhost");
        let wrong = file(directory.path(), &format!("{other}\n{kind:?}"), 0o644);
        for (server_name, path) in [("localhost", &wrong), ("127.0.0.1", &authorities)] {
            settings.server = server_name.to_owned();
            settings.authorities = Some(path.clone());
            let (is_taken, why) = send_mail(&settings, &sent, SOON).await;
            assert!(
                !is_taken && why.as_ref().unwrap().contains("certificate"),
                "{why:?}"
            );
        }
        // The machine's own authorities do not know the certificate either.
        settings.authorities = None;
        settings.server = "localhost".to_owned();
        assert!(!send_mail(&settings, &sent, SOON).await.0);
        // A wrong password is reported, and not repeated in the report.
        settings.authorities = Some(authorities.clone());
        let secret = file(
            directory.path(),
            &format!("hunter2{}", "x".repeat(kind as usize)),
            0o600,
        );
        settings.password_file = Some(secret);
        let (is_taken, why) = send_mail(&settings, &sent, SOON).await;
        let why = why.unwrap();
        assert!(
            !is_taken && why.contains("the login") && why.contains("535"),
            "{why}"
        );
        assert!(!why.contains("hunter2"), "{why}");
        assert_eq!(server.mail().len(), 1);
    }
}

/// Fails if mail is sent although every account can read its password file or the group change it, although it is too
/// long or missing, or if the report does not say so, with the mode and the remedy.
#[tokio::test]
async fn exposed_password_file_is_not_used() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(ServerBehavior::default()).await;
    for (text, mode, says) in [
        ("open", 0o644, "its mode is 0644"),
        ("changed", 0o620, "run `chmod 600 /"),
        (&*"x".repeat(2 << 20), 0o600, "too long"),
    ] {
        let settings = SmtpSettings {
            user: Some("u".to_owned()),
            password_file: Some(file(directory.path(), text, mode)),
            ..settings(server.port, SmtpTls::None)
        };
        let (is_taken, why) = send_mail(&settings, &message("r", "t"), SOON).await;
        assert!(!is_taken && why.as_ref().unwrap().contains(says), "{why:?}");
    }
    let settings = SmtpSettings {
        user: Some("u".to_owned()),
        password_file: Some("/nowhere/password".into()),
        ..settings(server.port, SmtpTls::None)
    };
    let (_, why) = send_mail(&settings, &message("r", "t"), SOON).await;
    assert!(
        why.unwrap()
            .contains("notify.smtp.password_file: /nowhere/password")
    );
    assert!(server.mail().is_empty());
}

/// Fails if one refused recipient keeps the mail from the others, or a mail that every recipient refused counts as
/// taken.
#[tokio::test]
async fn refused_recipient_does_not_stop_the_others() {
    let manner = ServerBehavior {
        refuses: vec!["b@example.org"],
        ..ServerBehavior::default()
    };
    let server = Server::start(manner).await;
    let settings = settings(server.port, SmtpTls::None);
    let (is_taken, why) = send_mail(&settings, &message("r", "t"), SOON).await;
    let why = why.unwrap();
    assert!(
        is_taken && why.contains("it refuses b@example.org") && why.contains("550"),
        "{why}"
    );
    assert_eq!(server.mail()[0].to, ["RCPT TO:<a@example.org>"]);
    let all = ServerBehavior {
        refuses: vec!["example.org"],
        ..ServerBehavior::default()
    };
    let server = Server::start(all).await;
    let settings = SmtpSettings {
        port: Some(server.port),
        ..settings
    };
    let (is_taken, why) = send_mail(&settings, &message("r", "t"), SOON).await;
    assert!(!is_taken && why.unwrap().contains("it refuses a@example.org"));
}

/// Fails if a mail counts as taken although some answer of the server was a refusal, cut off or out of place, or a
/// whole answer is taken for silence.
#[tokio::test]
async fn misbehaving_server_is_reported_and_nothing_counts_sent() {
    for command in ["GREETING", "EHLO", "MAIL", "RCPT", "DATA", "TEXT"] {
        for answer in [
            "",
            "2",
            "421 4.3.2 closing\r\n",
            "554 5.7.1 go away\u{1b}[2J\r\n",
            "250-never ending\r\n",
            "250-one\r\n251 other\r\n",
            "hello\r\n",
            "999 x\r\n",
            "\r\n",
            "354 what?\r\n",
            "\u{fffd}\0\r\n",
        ] {
            let manner = ServerBehavior {
                instead: Some((command, answer)),
                ..ServerBehavior::default()
            };
            let server = Server::start(manner).await;
            let settings = settings(server.port, SmtpTls::None);
            // An answer that is begun, and never ended, looks like silence.
            let is_unended = ["2", "250-never ending\r\n"].contains(&answer);
            let limit = if is_unended {
                Duration::from_millis(200)
            } else {
                PATIENCE
            };
            let (is_taken, why) = send_mail(&settings, &message("r", "t"), limit).await;
            // Before the mail itself, any answer that is no refusal means to continue.
            if answer.starts_with("354") && !["DATA", "TEXT"].contains(&command) {
                assert_eq!((is_taken, why), (true, None), "{command}");
                assert_eq!(server.mail().len(), 1, "{command}");
                continue;
            }
            let why = why.unwrap_or_default();
            assert!(!is_taken && !why.is_empty(), "{command} {answer:?}");
            let is_left = why.contains("it was left");
            assert_eq!(is_left, is_unended, "{command} {answer:?}: {why}");
            assert!(!why.contains('\u{1b}') && why.len() < 2 * SAID, "{why}");
            assert!(why.starts_with("localhost:"), "{why}");
            assert!(server.mail().is_empty(), "{command} {answer:?}");
        }
    }
}

/// The time that a server may be silent here: all that comes before the silence must fit in, also on a busy machine.
const SILENT: Duration = Duration::from_secs(3);

/// Fails if a server that falls silent at some step holds the notifier without end, or the report does not name the
/// step.
#[tokio::test]
async fn silent_server_is_left_and_its_step_reported() {
    let mut conversations = JoinSet::new();
    for (command, step) in [
        ("GREETING", "its greeting"),
        ("EHLO", "its greeting"),
        ("MAIL", "the sender"),
        ("RCPT", "the recipients"),
        ("DATA", "the mail"),
        ("TEXT", "the mail"),
    ] {
        let manner = ServerBehavior {
            hangs: Some(command),
            ..ServerBehavior::default()
        };
        let server = Server::start(manner).await;
        conversations.spawn(async move {
            let settings = settings(server.port, SmtpTls::None);
            let begin = Instant::now();
            let (is_taken, why) = send_mail(&settings, &message("r", "t"), SILENT).await;
            let why = why.unwrap();
            assert!(
                !is_taken && why.contains(step) && why.contains("it was left"),
                "{why}"
            );
            assert!(begin.elapsed() < SOON);
        });
    }
    // The server falls silent in the middle of the encryption, too.
    let directory = tempfile::tempdir().unwrap();
    let (authority, _) = certified("localhost");
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let settings = SmtpSettings {
        authorities: Some(file(directory.path(), &authority, 0o644)),
        ..settings(silent.local_addr().unwrap().port(), SmtpTls::Wrapper)
    };
    let (_, why) = send_mail(&settings, &message("r", "t"), SILENT).await;
    let why = why.unwrap();
    assert!(
        why.contains("the encryption had not come to an end"),
        "{why}"
    );
    conversations.join_all().await;
}

/// Fails if a mail counts as not taken because the server does not say good-bye.
#[tokio::test]
async fn missing_goodbye_still_counts_as_taken() {
    let manner = ServerBehavior {
        instead: Some(("QUIT", "")),
        ..ServerBehavior::default()
    };
    let server = Server::start(manner).await;
    let settings = settings(server.port, SmtpTls::None);
    assert_eq!(
        send_mail(&settings, &message("r", "t"), SOON).await,
        (true, None)
    );
}
