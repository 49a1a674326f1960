//! Answers to hosts that ask for a user and a password: Basic (RFC 7617) and Digest (RFC 7616, RFC 2069).
//!
//! Owns the reading of challenges, the choice among them, and the value of `Authorization`. Does not know which
//! password is for which host, and has no randomness: the caller picks client nonces and counts how often it used a
//! nonce of the host.
//!
//! ```
//! use harvest_policy::credential::{Login, SignedRequest, parse_challenges, strongest_challenge};
//!
//! let field = r#"Basic realm="members", Digest realm="members", nonce="abc", qop="auth", algorithm=SHA-256"#;
//! let challenge = strongest_challenge(parse_challenges(field)).ok_or("no challenge")?;
//! let login = Login { user: "me", password: "hush" };
//! let request = SignedRequest { method: "GET", target: "/", client_nonce: "f00d", nonce_count: 1 };
//! let value = challenge.authorization_field(&login, &request)?;
//! assert!(value.starts_with(r#"Digest username="me", realm="members", nonce="abc", uri="/", response=""#));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod challenge;

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use md5::Md5;
use sha2::{Digest as _, Sha256};

pub use self::challenge::parse_challenges;

/// A hash function of the Digest scheme. The stronger one is greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DigestHash {
    /// MD5.
    Md5,
    /// SHA-256.
    Sha256,
}

impl DigestHash {
    /// Returns the hash of texts with colons between them, in hexadecimal digits.
    fn hash(self, texts: &[&str]) -> String {
        let text = texts.join(":");
        match self {
            Self::Md5 => hex::encode(Md5::digest(text)),
            Self::Sha256 => hex::encode(Sha256::digest(text)),
        }
    }
}

/// A demand for a user and a password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Challenge {
    /// The password is sent in the clear.
    Basic {
        /// The part of the host that the password is for.
        realm: String,
    },
    /// The password is proven by a hash.
    Digest(DigestChallenge),
}

/// An algorithm of the Digest scheme.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DigestAlgorithm {
    /// The name of the algorithm as the host wrote it; `None` if it named none, which means MD5.
    pub name: Option<String>,
    /// The hash function.
    pub hash: DigestHash,
    /// Whether the password is hashed with the nonces once (`-sess`). The client nonce then stays that of the first
    /// request.
    pub is_session: bool,
}

/// A demand of the Digest scheme.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DigestChallenge {
    /// The part of the host that the password is for.
    pub realm: String,
    /// The host's nonce.
    pub nonce: String,
    /// A text that the host expects to be returned.
    pub opaque: Option<String>,
    /// The algorithm of the hash.
    pub algorithm: DigestAlgorithm,
    /// Whether the host counts the uses of its nonce (`qop=auth`). Hosts of RFC 2069 do not.
    pub has_quality: bool,
    /// Whether the user's name is hashed too.
    pub hides_user: bool,
    /// Whether only the nonce of the request before was too old: the password may well be right.
    pub is_stale: bool,
}

impl Challenge {
    /// Returns the part of the host that the password is for.
    pub fn realm(&self) -> &str {
        match self {
            Self::Basic { realm } => realm,
            Self::Digest(challenge) => &challenge.realm,
        }
    }

    /// Returns the hash that protects the password; `None` sends it in the clear, which is the weakest.
    fn strength(&self) -> Option<DigestHash> {
        match self {
            Self::Basic { .. } => None,
            Self::Digest(challenge) => Some(challenge.algorithm.hash),
        }
    }
}

/// Returns the challenge that gives the least away, the first of several equal ones (RFC 7616 §5.1).
pub fn strongest_challenge(challenges: Vec<Challenge>) -> Option<Challenge> {
    // The last one of equal ones is the maximum, so that the first one has to come last.
    challenges.into_iter().rev().max_by_key(Challenge::strength)
}

/// A user and a password.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Login<'a> {
    /// The name of the user.
    pub user: &'a str,
    /// The password of the user.
    pub password: &'a str,
}

impl fmt::Debug for Login<'_> {
    /// Shows the user only.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login")
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

/// The request that an answer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignedRequest<'a> {
    /// The method of the request.
    pub method: &'a str,
    /// The target as the request line has it: path and query.
    pub target: &'a str,
    /// A nonce of the crawler's own: visible ASCII characters.
    pub client_nonce: &'a str,
    /// The number of requests that have used the nonce of the host, this one included.
    pub nonce_count: u32,
}

/// The reason why a login cannot be sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidLogin {
    /// Control characters cannot be sent in a field (RFC 7617 §2).
    #[error(
        "the user or the password has a control character in it, which no field of a request can carry"
    )]
    ControlCharacter,
    /// The Basic scheme ends the user at the first colon (RFC 7617 §2).
    #[error("the user `{0}` has a colon in it, which the Basic scheme cannot carry")]
    Colon(String),
}

impl Challenge {
    /// Returns the value of the field `Authorization` that answers it.
    ///
    /// # Errors
    ///
    /// [`InvalidLogin`].
    pub fn authorization_field(
        &self,
        login: &Login<'_>,
        request: &SignedRequest<'_>,
    ) -> Result<String, InvalidLogin> {
        let Login { user, password } = login;
        if user.contains(char::is_control) || password.contains(char::is_control) {
            return Err(InvalidLogin::ControlCharacter);
        }
        match self {
            Self::Basic { .. } if user.contains(':') => {
                Err(InvalidLogin::Colon((*user).to_owned()))
            }
            Self::Basic { .. } => {
                let pair = STANDARD.encode(format!("{user}:{password}"));
                Ok(format!("Basic {pair}"))
            }
            Self::Digest(challenge) => Ok(challenge.authorization(login, request)),
        }
    }
}

impl DigestChallenge {
    fn authorization(&self, login: &Login<'_>, request: &SignedRequest<'_>) -> String {
        let count = format!("{:08x}", request.nonce_count);
        let response = self.response(login, request, &count);
        let mut value = format!("Digest {}", self.user_parameter(login.user));
        let mut add_quoted = |name: &str, text: &str| {
            value.extend([", ", name, "=", &quote(text)]);
        };
        add_quoted("realm", &self.realm);
        add_quoted("nonce", &self.nonce);
        add_quoted("uri", request.target);
        add_quoted("response", &response);
        if let Some(opaque) = &self.opaque {
            add_quoted("opaque", opaque);
        }
        if self.has_quality || self.algorithm.is_session {
            add_quoted("cnonce", request.client_nonce);
        }
        if let Some(algorithm) = &self.algorithm.name {
            value.extend([", algorithm=", algorithm]);
        }
        if self.has_quality {
            value.extend([", qop=auth, nc=", &count]);
        }
        if self.hides_user {
            value.push_str(", userhash=true");
        }
        value
    }

    /// Returns the user as a parameter (RFC 7616 §3.4, §3.4.4): hashed, or escaped if it is not ASCII.
    fn user_parameter(&self, user: &str) -> String {
        if self.hides_user {
            return format!(
                "username={}",
                quote(&self.algorithm.hash.hash(&[user, &self.realm]))
            );
        }
        if user.is_ascii() {
            return format!("username={}", quote(user));
        }
        let mut escaped = "username*=UTF-8''".to_owned();
        for byte in user.bytes() {
            if byte.is_ascii_alphanumeric() {
                escaped.push(char::from(byte));
            } else {
                escaped.extend(["%", &hex::encode_upper([byte])]);
            }
        }
        escaped
    }

    /// Returns the proof that the password is known (RFC 7616 §3.4.1 to §3.4.3).
    fn response(&self, login: &Login<'_>, request: &SignedRequest<'_>, count: &str) -> String {
        let hash = |texts: &[&str]| self.algorithm.hash.hash(texts);
        let mut secret = hash(&[login.user, &self.realm, login.password]);
        if self.algorithm.is_session {
            secret = hash(&[&secret, &self.nonce, request.client_nonce]);
        }
        let subject = hash(&[request.method, request.target]);
        if self.has_quality {
            hash(&[
                &secret,
                &self.nonce,
                count,
                request.client_nonce,
                "auth",
                &subject,
            ])
        } else {
            hash(&[&secret, &self.nonce, &subject])
        }
    }
}

/// Returns a text as a quoted string (RFC 9110 §5.6.4).
fn quote(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{escaped}\"")
}

#[cfg(test)]
mod tests;
