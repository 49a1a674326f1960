//! One conversation with a mail server: connect, encrypt, log in, hand over the mail, leave.

use std::net::SocketAddr;

use lettre::transport::smtp::authentication::{Credentials, Mechanism};
#[expect(
    deprecated,
    reason = "the only way to encrypt a stream of ours from its first byte on"
)]
use lettre::transport::smtp::client::AsyncNetworkStream;
use lettre::transport::smtp::client::{
    AsyncSmtpConnection, Certificate, CertificateStore, TlsParameters,
};
use lettre::transport::smtp::commands::{Data, Mail, Rcpt};
use lettre::transport::smtp::extension::ClientId;
use lettre::transport::smtp::response::Severity;
use parking_lot::Mutex;
use tokio::net::TcpStream;
use tokio::task::spawn_blocking;
use tokio_util::compat::FuturesAsyncReadCompatExt;

use super::mail::OutgoingMail;
use super::stream::{EncryptedStream, Lines};
use super::{lock, read};
use crate::notify::settings::{SmtpSettings, SmtpTls};

/// The name of the step under way, for errors.
type Step = Mutex<&'static str>;

/// Sends a mail. Returns the refusals, each with its reason. Fails if no recipient got the mail.
pub(super) async fn talk_smtp(
    settings: &SmtpSettings,
    mail: &OutgoingMail,
    step: &Step,
) -> Result<Vec<String>, String> {
    let stream = connect(settings, step).await?;
    let hello = stream.local_addr().map_or_else(
        |_unbound| ClientId::default(),
        |own| match own {
            SocketAddr::V4(own) => ClientId::Ipv4(*own.ip()),
            SocketAddr::V6(own) => ClientId::Ipv6(*own.ip()),
        },
    );
    let mut connection = greet(settings, stream, &hello, step).await?;
    let handed = hand_over(settings, &mut connection, mail, step).await;
    if handed.is_ok() {
        *lock(step) = "leaving";
        // A server that has taken the mail may fail to say good-bye.
        _ = connection.quit().await;
    }
    handed
}

async fn connect(settings: &SmtpSettings, step: &Step) -> Result<TcpStream, String> {
    let looked_up = tokio::net::lookup_host((settings.server.as_str(), settings.port())).await;
    let addresses = looked_up.map_err(|error| format!("its address is not known: {error}"))?;
    *lock(step) = "connecting";
    let mut failure = "it has no address".to_owned();
    for address in addresses {
        if settings.tls == SmtpTls::None && !address.ip().is_loopback() {
            failure = format!("{address} is not this machine: nothing is sent there in the clear");
            continue;
        }
        match TcpStream::connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => failure = format!("{address}: {error}"),
        }
    }
    Err(failure)
}

/// Connects up to the point where the server knows the sender, and has proven its own name.
async fn greet(
    settings: &SmtpSettings,
    stream: TcpStream,
    hello: &ClientId,
    step: &Step,
) -> Result<AsyncSmtpConnection, String> {
    let peer = stream.peer_addr().map_err(|error| error.to_string())?;
    let stream = Box::new(Lines::new(stream));
    let at = |step: &'static str| move |error| format!("{step}: {error}");
    let connection = match settings.tls {
        SmtpTls::None => {
            *lock(step) = "its greeting";
            AsyncSmtpConnection::connect_with_transport(stream, hello).await
        }
        SmtpTls::Wrapper => {
            let parameters = parameters(settings, step).await?;
            *lock(step) = "the encryption";
            #[expect(deprecated, reason = "see above")]
            let mut stream = AsyncNetworkStream::use_existing_tokio1(stream);
            stream
                .upgrade_tls(parameters)
                .await
                .map_err(at("the encryption"))?;
            *lock(step) = "its greeting";
            let inner = stream.compat();
            let stream = Box::new(EncryptedStream { inner, peer });
            AsyncSmtpConnection::connect_with_transport(stream, hello).await
        }
        SmtpTls::Starttls => {
            let parameters = parameters(settings, step).await?;
            *lock(step) = "its greeting";
            let mut connection = AsyncSmtpConnection::connect_with_transport(stream, hello)
                .await
                .map_err(at("its greeting"))?;
            if !connection.can_starttls() {
                return Err(
                    "it offers no STARTTLS, and nothing is sent in the clear; set \
                            notify.smtp.tls = \"wrapper\" and its port"
                        .to_owned(),
                );
            }
            *lock(step) = "the encryption";
            connection
                .starttls(parameters, hello)
                .await
                .map_err(at("the encryption"))?;
            Ok(connection)
        }
    };
    let mut connection = connection.map_err(at("its greeting"))?;
    if let (Some(user), Some(path)) = (&settings.user, &settings.password_file) {
        *lock(step) = "the login";
        let password = read("notify.smtp.password_file", path, true).await?;
        let password = String::from_utf8(password)
            .map_err(|_binary| "notify.smtp.password_file is no text".to_owned())?;
        let password = password.lines().next().unwrap_or_default().to_owned();
        let credentials = Credentials::new(user.clone(), password);
        connection
            .auth(&[Mechanism::Plain, Mechanism::Login], &credentials)
            .await
            .map_err(at("the login"))?;
    }
    Ok(connection)
}

/// Returns the authorities that may vouch for the server.
async fn parameters(settings: &SmtpSettings, step: &Step) -> Result<TlsParameters, String> {
    *lock(step) = "the list of authorities";
    let mut builder = TlsParameters::builder(settings.server.clone());
    if let Some(path) = &settings.authorities {
        let pem = read("notify.smtp.authorities", path, false).await?;
        let authorities = Certificate::from_pem(&pem)
            .map_err(|error| format!("notify.smtp.authorities: {}: {error}", path.display()))?;
        builder = builder
            .certificate_store(CertificateStore::None)
            .add_root_certificate(authorities);
    }
    // Without a list of ours, the list of the machine is read.
    let built = spawn_blocking(move || builder.build_rustls()).await;
    built
        .map_err(|bug| bug.to_string())?
        .map_err(|error| error.to_string())
}

async fn hand_over(
    settings: &SmtpSettings,
    connection: &mut AsyncSmtpConnection,
    mail: &OutgoingMail,
    step: &Step,
) -> Result<Vec<String>, String> {
    *lock(step) = "the sender";
    let from = mail.envelope.from().cloned();
    connection
        .command(Mail::new(from, Vec::new()))
        .await
        .map_err(|error| format!("it refuses the sender {}: {error}", settings.from))?;
    *lock(step) = "the recipients";
    let mut refused = Vec::new();
    for to in mail.envelope.to() {
        let answer = connection.command(Rcpt::new(to.clone(), Vec::new())).await;
        match answer {
            Ok(_accepted) => {}
            // An answer of the server is a refusal; any other error ends the conversation.
            Err(error) if error.status().is_some() => {
                refused.push(format!("it refuses {to}: {error}"));
            }
            Err(error) => return Err(format!("the recipients: {error}")),
        }
    }
    if refused.len() == mail.envelope.to().len() {
        return Err(refused.join("; "));
    }
    *lock(step) = "the mail";
    let said = |error| format!("it does not take the mail: {error}");
    let ready = connection.command(Data).await.map_err(said)?;
    if !ready.has_code(354) {
        return Err(format!(
            "it does not take the mail: it says {} to DATA",
            ready.code()
        ));
    }
    let taken = connection.message(&mail.bytes).await.map_err(said)?;
    if taken.code().severity != Severity::PositiveCompletion {
        return Err(format!("it says {} to the mail", taken.code()));
    }
    Ok(refused)
}
