//! A small mail server: it speaks SMTP as far as we use it, and behaves as badly as it is told to.

use std::sync::Arc;

use parking_lot::Mutex;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivatePkcs8KeyDer;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// A mail that the server was given.
#[derive(Clone, Debug, Default)]
pub(super) struct Mail {
    pub(super) from: String,
    pub(super) to: Vec<String>,
    /// The mail as it came over the wire, up to the last dot.
    pub(super) raw: String,
    pub(super) login: String,
    pub(super) is_encrypted: bool,
}

/// The behaviour of a test's mail server.
#[derive(Clone, Default)]
pub(super) struct ServerBehavior {
    pub(super) tls: Option<Arc<ServerConfig>>,
    /// Whether the server encrypts from the first byte on.
    pub(super) wraps: bool,
    /// The recipients that the server refuses.
    pub(super) refuses: Vec<&'static str>,
    /// The user and password that the server expects, in base64.
    pub(super) login: Option<String>,
    /// A command, and the words with which the server answers it in place of the right ones.
    pub(super) instead: Option<(&'static str, &'static str)>,
    /// The command at which the server falls silent.
    pub(super) hangs: Option<&'static str>,
}

/// A mail server, which runs as long as the test.
pub(super) struct Server {
    pub(super) port: u16,
    mail: Arc<Mutex<Vec<Mail>>>,
}

/// A stream of either kind.
trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

impl Server {
    pub(super) async fn start(manner: ServerBehavior) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let mail: Arc<Mutex<Vec<Mail>>> = Arc::default();
        let taken = Arc::clone(&mail);
        #[expect(clippy::disallowed_methods, reason = "it ends with the test's runtime")]
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                // A client that leaves in the middle does not concern the others.
                drop(talk(stream, &manner, &taken).await);
            }
        });
        Self { port, mail }
    }

    pub(super) fn mail(&self) -> Vec<Mail> {
        self.mail.lock().clone()
    }
}

/// Returns an authority, as PEM, and the configuration of a server with a certificate of it.
pub(super) fn certified(name: &str) -> (String, Arc<ServerConfig>) {
    let mut authority = CertificateParams::new(vec![]).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let signed = authority.self_signed(&key).unwrap();
    let issuer = Issuer::new(authority, key);
    let own = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    let certificate = params.signed_by(&own, &issuer).unwrap();
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivatePkcs8KeyDer::from(own.serialize_der()).into(),
        )
        .unwrap();
    (signed.pem(), Arc::new(config))
}

async fn talk(
    stream: TcpStream,
    manner: &ServerBehavior,
    taken: &Mutex<Vec<Mail>>,
) -> std::io::Result<()> {
    let acceptor = manner.tls.clone().map(TlsAcceptor::from);
    let mut mail = Mail::default();
    let mut stream: BufReader<Box<dyn Stream>> = match (&acceptor, manner.wraps) {
        (Some(acceptor), true) => {
            mail.is_encrypted = true;
            BufReader::new(Box::new(acceptor.accept(stream).await?))
        }
        _ => BufReader::new(Box::new(stream)),
    };
    let mut line = "GREETING".to_owned();
    loop {
        let word = line
            .split([' ', ':'])
            .next()
            .unwrap_or_default()
            .to_ascii_uppercase();
        if manner.hangs == Some(word.as_str()) {
            std::future::pending::<()>().await;
        }
        let right = match word.as_str() {
            "GREETING" => "220 mail.example.org ESMTP\r\n",
            "EHLO" if acceptor.is_some() && !mail.is_encrypted => {
                "250-mail.example.org\r\n250-STARTTLS\r\n250 8BITMIME\r\n"
            }
            "EHLO" => "250-mail.example.org\r\n250-AUTH PLAIN LOGIN\r\n250 8BITMIME\r\n",
            "STARTTLS" => "220 go ahead\r\n",
            "AUTH" => {
                mail.login = line.rsplit(' ').next().unwrap_or_default().to_owned();
                if manner.login.as_ref() == Some(&mail.login) {
                    "235 2.7.0 welcome\r\n"
                } else {
                    "535 5.7.8 bad credentials\r\n"
                }
            }
            "MAIL" => {
                line.clone_into(&mut mail.from);
                "250 2.1.0 fine\r\n"
            }
            "RCPT" if manner.refuses.iter().any(|to| line.contains(to)) => {
                "550-5.1.1 no such\r\n550 5.1.1 person\r\n"
            }
            "RCPT" => {
                mail.to.push(line.clone());
                "250 2.1.5 fine\r\n"
            }
            "DATA" => "354 end with a dot\r\n",
            "TEXT" => "250 2.0.0 taken\r\n",
            "QUIT" => "221 2.0.0 bye\r\n",
            _ => "500 5.5.1 what?\r\n",
        };
        let answer = match manner.instead {
            Some((command, answer)) if command == word => answer,
            _ => right,
        };
        stream.write_all(answer.as_bytes()).await?;
        stream.flush().await?;
        if answer.is_empty() {
            return Ok(());
        }
        if word == "TEXT" && answer == right {
            taken.lock().push(mail.clone());
        }
        if word == "STARTTLS"
            && let Some(acceptor) = &acceptor
        {
            mail.is_encrypted = true;
            let inner = stream.into_inner();
            stream = BufReader::new(Box::new(acceptor.accept(inner).await?));
        }
        line.clear();
        if word == "DATA" && answer == right {
            mail.raw.clear();
            while stream.read_line(&mut mail.raw).await? > 0 && !mail.raw.ends_with("\r\n.\r\n") {}
            mail.raw.truncate(mail.raw.len().saturating_sub(3));
            "TEXT".clone_into(&mut line);
        } else if stream.read_line(&mut line).await? == 0 {
            return Ok(());
        }
        line = line.trim_end().to_owned();
    }
}
