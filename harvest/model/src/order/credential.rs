//! Credentials for hosts that ask for a password.
//!
//! Owns that a password is shown by nothing that prints an order or a job: it has neither `Display` nor `Serialize`,
//! and its `Debug` is empty. Does not log in.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use url::Url;

use super::section::entry;

/// The text in place of a password that is forgotten.
const FORGOTTEN: &str = "(forgotten when the job ended)";

/// A password. Only [`Password::expose_text`] gives it away.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Password(String);

impl Password {
    /// Makes a password.
    pub const fn new(password: String) -> Self {
        Self(password)
    }

    /// Returns what stands for a password that was forgotten when its job had ended.
    pub fn forgotten() -> Self {
        Self(FORGOTTEN.to_owned())
    }

    /// Returns whether the password was forgotten when its job had ended.
    pub fn is_forgotten(&self) -> bool {
        self.0 == FORGOTTEN
    }

    /// Returns the password itself, for the request that needs it. It belongs into no log, no record and no error.
    pub fn expose_text(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password")
    }
}

/// A login page (Heritrix' HTML form credential).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoginForm {
    /// The address to which the form is sent.
    pub action: Url,
    /// The name of the field for the user.
    pub user_field: String,
    /// The name of the field for the password.
    pub password_field: String,
    /// Other fields, with their values. They are documented: no secret belongs here.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub fields: BTreeMap<String, String>,
}

entry! {
    /// A user and a password for one host. They are sent to no other one, and the password is never documented.
    Credential {
        /// The host, such as "www.example.dk".
        host: String,
        /// The realm that the host names (Basic and Digest); without one every realm of the host.
        realm: Option<String>,
        /// The user.
        user: String,
        /// The password.
        #[serde(skip_serializing)]
        password: Password,
        /// A login page: `{ action = "https://…", user_field = "…", password_field = "…", fields = { … } }`.
        form: Option<LoginForm>,
    }
}

impl Credential {
    /// Returns whether the credential may be sent with a request for a URI: the host is the same, whatever its case.
    pub fn is_for(&self, url: &Url) -> bool {
        url.host_str()
            .is_some_and(|host| host.eq_ignore_ascii_case(&self.host))
    }

    /// Returns whether the credential answers a realm of its host: it names this realm or none, and is for no login
    /// page.
    pub fn answers_realm(&self, realm: &str) -> bool {
        self.form.is_none() && self.realm.as_ref().is_none_or(|own| own == realm)
    }
}
