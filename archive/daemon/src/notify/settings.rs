//! The section `[notify]`: the recipients, the channels, and the times of notifications.
//!
//! Owns the check that its settings go together. No password stands in settings: they are printed, copied and sent
//! around.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;

use documented::DocumentedFields;
use lettre::message::Mailbox;
use serde::{Deserialize, Serialize};

use crate::settings::{InvalidSettings, Period};

/// The section `[notify]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields, default)]
pub struct NotifySettings {
    /// The command that is run for each message: its words, without a shell. It reads the message, a JSON document, on
    /// its standard input. If the list is empty, no command is run.
    pub command: Vec<String>,
    /// The time that something must be wrong before it is announced, and right before it is announced to be over.
    pub delay: Period,
    /// The time between two reminders while it lasts.
    pub remind: Period,
    /// The most time that one channel may take for one message. A command that takes longer is killed, and the
    /// connection to a mail server is closed.
    pub limit: Period,
    /// The mail server and the recipients. Without it no mail is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smtp: Option<SmtpSettings>,
}

/// The section `[notify.smtp]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields)]
pub struct SmtpSettings {
    /// The name of the mail server, as in its certificate.
    pub server: String,
    /// The port of the server. Without it: 465 for `wrapper`, 587 for `starttls`, 25 for `none`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// The encryption of the connection: `wrapper` (from its first byte on), `starttls` (after the greeting; a server
    /// without it is not used), or `none`, for a mail server on this machine only.
    #[serde(default)]
    pub tls: SmtpTls,
    /// The authorities of which one must have signed the certificate of the server, PEM. Without it: those that this
    /// machine trusts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authorities: Option<PathBuf>,
    /// The name of the user to log in. Without it: no login.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The file whose first line is the password; read for each message. Only its owner may change it, and only its
    /// owner and its group may read it: mode 0600, or 0640.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password_file: Option<PathBuf>,
    /// The sender of the mail: `holdfast@example.org` or `Holdfast <holdfast@example.org>`.
    pub from: MailAddress,
    /// The recipients.
    pub to: Vec<MailAddress>,
}

/// The encryption of the connection to a mail server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SmtpTls {
    /// Encryption from the first byte on.
    #[default]
    Wrapper,
    /// Encryption after a few words in the clear; without it nothing is sent.
    Starttls,
    /// No encryption.
    None,
}

/// A mail address, with or without a name before it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct MailAddress(pub(super) Mailbox);

/// The reason why a text is not a mail address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidAddress {
    /// The text does not have the form of a mail address.
    #[error("`{0}` is not a mail address: write `name@example.org` or `Name <name@example.org>`")]
    Form(String),
    /// The address has characters that not every mail server accepts.
    #[error(
        "`{0}` has other than ASCII characters in the address itself: write its domain as `xn--…`"
    )]
    Ascii(String),
}

impl Default for NotifySettings {
    fn default() -> Self {
        Self {
            command: Vec::new(),
            delay: Period::from_secs(5 * 60),
            remind: Period::from_secs(24 * 60 * 60),
            limit: Period::from_secs(30),
            smtp: None,
        }
    }
}

impl NotifySettings {
    /// Checks whether the settings can work together.
    ///
    /// # Errors
    ///
    /// [`InvalidSettings`] with the first setting that does not fit the others.
    pub fn check(&self) -> Result<(), InvalidSettings> {
        let Some(smtp) = &self.smtp else {
            return Ok(());
        };
        if smtp.to.is_empty() {
            return Err(InvalidSettings::new(
                "notify.smtp.to names nobody: name at least one address",
            ));
        }
        if smtp.tls == SmtpTls::None && !smtp.is_local() {
            let server = &smtp.server;
            return Err(InvalidSettings::new(format!(
                "notify.smtp.tls = \"none\" is for a mail server on this machine only (localhost), and {server} is not: \
                 set \"wrapper\" or \"starttls\""
            )));
        }
        if smtp.user.is_some() != smtp.password_file.is_some() {
            return Err(InvalidSettings::new(
                "notify.smtp.user and notify.smtp.password_file go together: set both or none",
            ));
        }
        Ok(())
    }
}

impl SmtpSettings {
    /// Returns the port to connect to.
    pub fn port(&self) -> u16 {
        self.port.unwrap_or(match self.tls {
            SmtpTls::Wrapper => 465,
            SmtpTls::Starttls => 587,
            SmtpTls::None => 25,
        })
    }

    /// Returns whether the name of the server is that of this machine; the address of the name is checked at the
    /// connection.
    fn is_local(&self) -> bool {
        let address = self.server.parse::<IpAddr>();
        address.is_ok_and(|address| address.is_loopback())
            || self.server.eq_ignore_ascii_case("localhost")
    }
}

impl TryFrom<String> for MailAddress {
    type Error = InvalidAddress;

    fn try_from(text: String) -> Result<Self, InvalidAddress> {
        match text.parse::<Mailbox>() {
            Ok(mailbox) if mailbox.email.to_string().is_ascii() => Ok(Self(mailbox)),
            Ok(_) => Err(InvalidAddress::Ascii(text)),
            Err(_) => Err(InvalidAddress::Form(text)),
        }
    }
}

impl From<MailAddress> for String {
    fn from(address: MailAddress) -> Self {
        address.to_string()
    }
}

impl fmt::Display for MailAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::print_settings;

    const TOML: &str = "command = []\ndelay = \"5 min\"\nremind = \"1 d\"\nlimit = \"30 s\"\n\n[smtp]\nserver = \"mail.example.org\"\n\
                        from = \"Archivwächter <holdfast@example.org>\"\nto = [\"a@example.org\"]\n";

    fn read(text: &str) -> Result<NotifySettings, String> {
        toml::from_str(text).map_err(|error| error.message().to_owned())
    }

    /// Fails if settings of notifications are printed so that they are read as others, or the port does not follow from
    /// the encryption.
    #[test]
    fn printed_settings_are_read_back_unchanged() {
        let settings = read(TOML).unwrap();
        let smtp = settings.smtp.as_ref().unwrap();
        assert_eq!((smtp.tls, smtp.port()), (SmtpTls::Wrapper, 465));
        assert_eq!(settings.check(), Ok(()));
        assert_eq!(read(&print_settings(&settings).unwrap()), Ok(settings));
        let old = read("command = [\"/bin/tell\"]").unwrap();
        assert!(!print_settings(&old).unwrap().contains("smtp"));
    }

    /// Fails if an address that adds a header, or is not in ASCII, is accepted as a recipient.
    #[test]
    fn invalid_mail_addresses_are_refused_with_their_place() {
        for (address, says) in [
            ("nobody", "is not a mail address"),
            ("a@b\\r\\nBcc: c@d", "is not a mail address"),
            ("", "is not a mail address"),
            ("wächter@example.org", "ASCII"),
            ("a@bücher.example", "xn--"),
        ] {
            let error = read(&TOML.replace("a@example.org", address)).unwrap_err();
            assert!(error.contains(says), "{address}: {error}");
        }
    }

    /// Fails if settings are accepted that send mail to another machine in the clear, to no recipient, or with half a
    /// login.
    #[test]
    fn unsafe_or_incomplete_settings_are_refused() {
        let with = |lines: &str| read(&format!("{TOML}{lines}")).unwrap().check();
        let refusal = |lines: &str| with(lines).unwrap_err().to_string();
        assert!(refusal("user = \"u\"\n").contains("set both or none"));
        assert!(refusal("password_file = \"/p\"\n").contains("set both or none"));
        assert_eq!(with("user = \"u\"\npassword_file = \"/p\"\n"), Ok(()));
        assert!(refusal("tls = \"none\"\n").contains("set \"wrapper\""));
        let nobody = read(&TOML.replace("[\"a@example.org\"]", "[]")).unwrap();
        let nobody = nobody.check().unwrap_err().to_string();
        assert!(nobody.contains("notify.smtp.to names nobody"), "{nobody}");
        for (server, is_local) in [
            ("localhost", true),
            ("127.0.0.1", true),
            ("127.9.9.9", true),
            ("::1", true),
            ("localhost.example.org", false),
            ("10.0.0.1", false),
        ] {
            let text = format!("{TOML}tls = \"none\"\n").replace("mail.example.org", server);
            assert_eq!(read(&text).unwrap().check().is_ok(), is_local, "{server}");
        }
    }

    /// Fails if a password is accepted in the settings, or the refusal does not point to `password_file`.
    #[test]
    fn a_password_has_no_place_in_settings() {
        let error = read(&format!("{TOML}password = \"secret\"\n")).unwrap_err();
        assert!(error.contains("password_file"), "{error}");
    }
}
