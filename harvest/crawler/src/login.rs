//! Users and passwords for hosts that ask for them.
//!
//! Owns which challenge is answered, and with which credential of the order: a password goes to the host that it is for, and to no
//! other one. A host that has asked once is told at once with the next requests. When a form is sent is not decided here.

use std::borrow::Cow;
use std::collections::HashMap;
use std::mem::discriminant;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use archive_daemon::clock::{Chance, NoChance};
use archive_formats::http::Head;
use harvest_model::Job;
use harvest_model::order::Credential;
use harvest_policy::credential::{Challenge, Login, SignedRequest, parse_challenges, strongest};
use url::{Url, form_urlencoded};

use crate::fetch::FilledForm;

/// The most challenges of hosts that are remembered.
const MOST_REMEMBERED: usize = 1024;

/// A host's demand, and how often it was answered.
#[derive(Debug)]
struct AnsweredChallenge {
    challenge: Challenge,
    count: AtomicU32,
}

/// The directories that a URI lies in, the nearest first and the root of its host last.
fn directories(url: &Url) -> impl Iterator<Item = String> {
    let origin = url.origin().ascii_serialization();
    let path = url.path();
    path.rmatch_indices('/').map(move |(at, _)| {
        let directory = path.get(..=at).unwrap_or_default();
        format!("{origin}{directory}")
    })
}

/// The credentials of a crawl.
#[derive(Debug)]
pub struct Logins {
    job: Arc<Job>,
    chance: Chance,
    /// By scheme, host and port.
    answered: Mutex<HashMap<String, Arc<AnsweredChallenge>>>,
}

impl Logins {
    /// The credentials of a job's order.
    pub fn new(job: Arc<Job>, chance: Chance) -> Self {
        Self {
            job,
            chance,
            answered: Mutex::default(),
        }
    }

    /// The value of `Authorization` for a host that has asked before.
    ///
    /// # Errors
    ///
    /// [`NoChance`] if there is no randomness for a nonce.
    pub fn authorization(&self, url: &Url) -> Result<Option<String>, NoChance> {
        let Some(known) = self.known(url) else {
            return Ok(None);
        };
        let count = known.count.fetch_add(1, Ordering::Relaxed);
        self.sign(&known.challenge, count.saturating_add(1), url)
    }

    /// The demand that holds for a URI: that of its directory, or of the nearest one above it (RFC 7617, 2.2).
    fn known(&self, url: &Url) -> Option<Arc<AnsweredChallenge>> {
        let answered = self.answered.lock().unwrap_or_else(PoisonError::into_inner);
        directories(url).find_map(|directory| answered.get(&directory).map(Arc::clone))
    }

    /// Whether the next request for a URI can answer a response with status 401, which is remembered. Not if no credential of the
    /// order does, or the one that was sent was refused.
    ///
    /// # Errors
    ///
    /// [`NoChance`] if there is no randomness for a nonce.
    pub fn can_answer(&self, url: &Url, head: &Head, was_sent: bool) -> Result<bool, NoChance> {
        let fields = head.all("www-authenticate").map(String::from_utf8_lossy);
        let fields: Vec<String> = fields.map(Cow::into_owned).collect();
        let challenges = parse_challenges(&fields.join(", ")).into_iter();
        let answerable = challenges.filter(|challenge| self.credential(url, challenge).is_some());
        let Some(challenge) = strongest(answerable.collect()) else {
            return Ok(false);
        };
        // Its nonce was too old, which says nothing of the password.
        let is_stale = matches!(&challenge, Challenge::Digest(challenge) if challenge.is_stale);
        // A host may have several realms, or several schemes: only for the same one a password was refused.
        let is_same = self.known(url).is_some_and(|known| {
            discriminant(&known.challenge) == discriminant(&challenge)
                && known.challenge.realm() == challenge.realm()
        });
        let is_refused = was_sent && is_same && !is_stale;
        if is_refused || self.sign(&challenge, 1, url)?.is_none() {
            return Ok(false);
        }
        let known = Arc::new(AnsweredChallenge {
            challenge,
            count: AtomicU32::new(0),
        });
        let mut answered = self.answered.lock().unwrap_or_else(PoisonError::into_inner);
        if answered.len() >= MOST_REMEMBERED {
            answered.clear();
        }
        // The whole host is told as well, until another directory of it asks.
        let mut directories = directories(url);
        let places = [directories.next(), directories.last()];
        for place in places.into_iter().flatten() {
            answered.insert(place, Arc::clone(&known));
        }
        Ok(true)
    }

    /// The login form of a credential of the order, by its number. The password stands at its end.
    pub fn form(&self, number: usize) -> Option<FilledForm> {
        let credential = self.job.order.credentials.get(number)?;
        let form = credential.form.as_ref()?;
        let mut body = form_urlencoded::Serializer::new(String::new());
        body.extend_pairs(&form.fields)
            .append_pair(&form.user_field, &credential.user)
            .append_pair(&form.password_field, "");
        let mut body = body.finish().into_bytes();
        let begin = body.len();
        let password = credential.password.expose().as_bytes();
        body.extend(form_urlencoded::byte_serialize(password).flat_map(str::bytes));
        let secret = begin..body.len();
        Some(FilledForm { body, secret })
    }

    fn credential(&self, url: &Url, challenge: &Challenge) -> Option<&Credential> {
        let mut credentials = self.job.order.credentials_for(url);
        credentials.find(|credential| credential.answers(challenge.realm()))
    }

    fn sign(
        &self,
        challenge: &Challenge,
        nonce_count: u32,
        url: &Url,
    ) -> Result<Option<String>, NoChance> {
        let Some(credential) = self.credential(url, challenge) else {
            return Ok(None);
        };
        let client_nonce = hex::encode(self.chance.bytes::<16>()?);
        let target = url.query().map_or_else(
            || url.path().to_owned(),
            |query| format!("{}?{query}", url.path()),
        );
        let login = Login {
            user: &credential.user,
            password: credential.password.expose(),
        };
        let request = SignedRequest {
            method: "GET",
            target: &target,
            client_nonce: &client_nonce,
            nonce_count,
        };
        // A login that no field can carry is left unanswered: the host's 401 is what is archived.
        Ok(challenge.authorization(&login, &request).ok())
    }
}
