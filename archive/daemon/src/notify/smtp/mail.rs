//! A message as a mail: headers and text in the forms of mail, in ASCII for any content.

use std::time::SystemTime;

use lettre::address::Envelope;
use lettre::message::header::{ContentType, HeaderName, HeaderValue, MIME_VERSION_1_0};

use crate::notify::message::Message;
use crate::notify::settings::SmtpSettings;

/// A mail and its envelope.
pub(super) struct OutgoingMail {
    pub(super) envelope: Envelope,
    pub(super) bytes: Vec<u8>,
}

pub(super) fn write_mail(
    settings: &SmtpSettings,
    message: &Message,
) -> Result<OutgoingMail, String> {
    let from = &settings.from.0;
    let id = format!("<{}@{}>", message.id, from.email.domain());
    let mut mail = lettre::Message::builder()
        .from(from.clone())
        .subject(message.subject.as_str())
        .date(SystemTime::from(message.at))
        .message_id(Some(id))
        // Automatic replies are not wanted (RFC 3834).
        .raw_header(HeaderValue::new(
            HeaderName::new_from_ascii_str("Auto-Submitted"),
            "auto-generated".to_owned(),
        ))
        .header(MIME_VERSION_1_0)
        .header(ContentType::TEXT_PLAIN);
    for to in &settings.to {
        mail = mail.to(to.0.clone());
    }
    let text = message.mail_text().replace('\n', "\r\n");
    let mail = mail
        .body(text)
        .map_err(|error| format!("the mail cannot be written: {error}"))?;
    Ok(OutgoingMail {
        envelope: mail.envelope().clone(),
        bytes: mail.formatted(),
    })
}
