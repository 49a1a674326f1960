//! Users and passwords for hosts that ask for them.
//!
//! Owns which challenge is answered, and with which credential of the order: a password goes to the host that it is
//! for, and to no other one. A host that has asked once is told at once with the next requests. When a form is sent is
//! not decided here.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use archive_daemon::clock::{Chance, NoChance};
use archive_formats::http::Head;
use harvest_model::HarvestJob;
use harvest_model::order::Credential;
use harvest_policy::credential::{
    Challenge, Login, SignedRequest, parse_challenges, strongest_challenge,
};
use parking_lot::Mutex;
use url::{Url, form_urlencoded};

use crate::fetch::FilledForm;

/// The most challenges of hosts that are remembered.
const MOST_REMEMBERED: usize = 1024;

/// A host's demand, and how often it was answered.
#[derive(Clone, Debug)]
struct AnsweredChallenge {
    challenge: Challenge,
    count: u32,
}

/// A realm: scheme, host and port, and the name that the host gave it.
type Realm = (String, String);

/// The demands of hosts, which may have several realms.
#[derive(Debug, Default)]
struct KnownDemands {
    by_realm: HashMap<Realm, AnsweredChallenge>,
    /// The realms of URIs and of their directories, and the last one of each host.
    realms: HashMap<String, Realm>,
}

impl KnownDemands {
    /// Returns the demand that a request for a URI has to expect.
    fn challenge_for(&mut self, url: &Url) -> Option<&mut AnsweredChallenge> {
        let mut places = places(url).into_iter();
        let realm = places.find_map(|place| self.realms.get(&place))?;
        self.by_realm.get_mut(realm)
    }

    fn insert(&mut self, url: &Url, challenge: Challenge) {
        if self.realms.len().max(self.by_realm.len()) >= MOST_REMEMBERED {
            *self = Self::default();
        }
        let origin = url.origin().ascii_serialization();
        let realm = (origin, challenge.realm().to_owned());
        for place in places(url) {
            self.realms.insert(place, realm.clone());
        }
        let count = 0;
        let known = AnsweredChallenge { challenge, count };
        self.by_realm.insert(realm, known);
    }
}

/// Returns a URI, its directory and its host: the first one of which a realm is known says which one it is.
fn places(url: &Url) -> [String; 3] {
    let origin = url.origin().ascii_serialization();
    let directory = url.path().rsplit_once('/').map_or("", |(before, _)| before);
    let directory = format!("{origin}{directory}/");
    [format!("{origin}{}", url.path()), directory, origin]
}

/// The credentials of a crawl.
#[derive(Debug)]
pub struct CrawlLogins {
    job: Arc<HarvestJob>,
    chance: Chance,
    answered: Mutex<KnownDemands>,
}

impl CrawlLogins {
    /// Returns the credentials of a job's order.
    pub fn new(job: Arc<HarvestJob>, chance: Chance) -> Self {
        Self {
            job,
            chance,
            answered: Mutex::default(),
        }
    }

    /// Returns the value of `Authorization` for a host that has asked before.
    ///
    /// # Errors
    ///
    /// [`NoChance`] if there is no randomness for a nonce.
    pub fn authorization_field(&self, url: &Url) -> Result<Option<String>, NoChance> {
        let mut answered = self.answered.lock();
        let Some(known) = answered.challenge_for(url) else {
            return Ok(None);
        };
        known.count = known.count.saturating_add(1);
        let challenge = known.challenge.clone();
        let count = known.count;
        drop(answered);
        self.sign(&challenge, count, url)
    }

    /// Returns whether the next request for a URI can answer a response with status 401, which is remembered. Not if no
    /// credential of the order does, or the one that was sent was refused.
    ///
    /// # Errors
    ///
    /// [`NoChance`] if there is no randomness for a nonce.
    pub fn can_answer(&self, url: &Url, head: &Head, was_sent: bool) -> Result<bool, NoChance> {
        let fields = head
            .all_values("www-authenticate")
            .map(String::from_utf8_lossy);
        let fields: Vec<String> = fields.map(Cow::into_owned).collect();
        let challenges = parse_challenges(&fields.join(", ")).into_iter();
        let answerable = challenges.filter(|challenge| self.credential(url, challenge).is_some());
        let Some(challenge) = strongest_challenge(answerable.collect()) else {
            return Ok(false);
        };
        // The nonce of a stale challenge was too old, which says nothing of the password.
        let is_stale = matches!(&challenge, Challenge::Digest(challenge) if challenge.is_stale);
        if self.sign(&challenge, 1, url)?.is_none() {
            return Ok(false);
        }
        let mut answered = self.answered.lock();
        // What was sent may have been for another realm of the host.
        let expected = answered.challenge_for(url);
        let was_expected =
            expected.is_some_and(|known| is_same_challenge(&known.challenge, &challenge));
        if was_sent && was_expected && !is_stale {
            return Ok(false);
        }
        answered.insert(url, challenge);
        Ok(true)
    }

    /// Returns the login form of a credential of the order, by its number. The password stands at its end.
    pub fn filled_form(&self, number: usize) -> Option<FilledForm> {
        let credential = self.job.order.credentials.get(number)?;
        let form = credential.form.as_ref()?;
        let mut body = form_urlencoded::Serializer::new(String::new());
        body.extend_pairs(&form.fields)
            .append_pair(&form.user_field, &credential.user)
            .append_pair(&form.password_field, "");
        let mut body = body.finish().into_bytes();
        let begin = body.len();
        let password = credential.password.expose_text().as_bytes();
        body.extend(form_urlencoded::byte_serialize(password).flat_map(str::bytes));
        let secret = begin..body.len();
        Some(FilledForm { body, secret })
    }

    fn credential(&self, url: &Url, challenge: &Challenge) -> Option<&Credential> {
        let mut credentials = self.job.order.credentials_for(url);
        credentials.find(|credential| credential.answers_realm(challenge.realm()))
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
        let client_nonce = hex::encode(self.chance.random_bytes::<16>()?);
        let target = url.query().map_or_else(
            || url.path().to_owned(),
            |query| format!("{}?{query}", url.path()),
        );
        let login = Login {
            user: &credential.user,
            password: credential.password.expose_text(),
        };
        let request = SignedRequest {
            method: "GET",
            target: &target,
            client_nonce: &client_nonce,
            nonce_count,
        };
        // A login that no field can carry is left unanswered: the host's 401 is what is archived.
        Ok(challenge.authorization_field(&login, &request).ok())
    }
}

/// Returns whether two challenges ask for the same password in the same way.
fn is_same_challenge(one: &Challenge, other: &Challenge) -> bool {
    std::mem::discriminant(one) == std::mem::discriminant(other) && one.realm() == other.realm()
}
