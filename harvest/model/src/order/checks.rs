//! Mistakes of an order that no single type sees: limits that contradict each other, names that hosts would not
//! understand.
//!
//! Owns these rules. They hold for an order from a file and for one that the command line made.

use archive_model::{ByteSize, Period};
use harvest_policy::queue_name::QueueKind;
use harvest_policy::traps::TrapList;
use url::{Host, Url};

use super::{CrawlOrder, InvalidOrder, LoginForm};

/// The largest factor of a delay that is no slip of the pen.
const MAX_FACTOR: f64 = 1000.0;

impl CrawlOrder {
    /// Checks what the types of the keys do not. [`CrawlOrder::parse`] has done so already.
    ///
    /// # Errors
    ///
    /// [`InvalidOrder`] names the key of the first mistake.
    pub fn check(&self) -> Result<(), InvalidOrder> {
        self.check_scope()?;
        self.check_pauses()?;
        self.check_overlays()?;
        self.check_names()?;
        self.check_proxy()?;
        self.check_limits()?;
        self.check_credentials()
    }

    /// Checks that hosts are told whom to ask: nothing but this machine is fetched from without a contact. A name may
    /// stand for this machine too; it is asked for a contact unless it is `localhost`.
    ///
    /// # Errors
    ///
    /// [`InvalidOrder`] names the seed that needs a contact.
    pub fn check_contact(&self, seeds: &[Url]) -> Result<(), InvalidOrder> {
        match seeds.iter().find(|seed| !is_this_machine(seed)) {
            Some(seed) if self.http.contact.is_none() => Err(InvalidOrder::at_key(
                "http.contact",
                format!(
                    "{seed} is not on this machine: set a page about the harvest, or `mailto:` and an address, where its \
                     owner can ask about the visit"
                ),
            )),
            _ => Ok(()),
        }
    }

    fn check_scope(&self) -> Result<(), InvalidOrder> {
        let own = [
            ("scope.traps".to_owned(), &self.scope.traps),
            (
                "scope.accept_expressions".to_owned(),
                &self.scope.accept_expressions,
            ),
        ];
        let overlays = self.overlays.iter().zip(0..);
        let overlays =
            overlays.map(|(overlay, number)| (format!("overlay.{number}.traps"), &overlay.traps));
        for (key, traps) in own.into_iter().chain(overlays) {
            let traps = TrapList::new(traps).map(|_| ());
            traps.map_err(|error| InvalidOrder::at_key(&key, error.to_string()))?;
        }
        Ok(())
    }

    fn check_overlays(&self) -> Result<(), InvalidOrder> {
        for (overlay, number) in self.overlays.iter().zip(0..) {
            let queue_keys = [
                ("precedence", overlay.precedence.is_some()),
                ("session_budget", overlay.session_budget.is_some()),
                ("error_penalty", overlay.error_penalty.is_some()),
                ("total_budget", overlay.total_budget.is_some()),
                ("max_objects", overlay.max_objects.is_some()),
                ("max_bytes", overlay.max_bytes.is_some()),
            ];
            let first = queue_keys.into_iter().find(|(_, is_set)| *is_set);
            if let Some((key, _)) = first.filter(|_| !may_cover_queue(overlay.surt.as_str())) {
                return Err(InvalidOrder::at_key(
                    &format!("overlay.{number}.{key}"),
                    format!(
                        "a queue is a domain or a host, without a path and a port, and the prefix `{}` covers none; write \
                         for example `http://(dk,example,`",
                        overlay.surt
                    ),
                ));
            }
        }
        Ok(())
    }

    fn check_pauses(&self) -> Result<(), InvalidOrder> {
        let settings = &self.politeness;
        check_factor("politeness.delay_factor", settings.delay_factor)?;
        check_order("politeness", settings.min_delay, settings.max_delay)?;
        check_rate("politeness.max_bandwidth", settings.max_bandwidth)?;
        for (overlay, number) in self.overlays.iter().zip(0..) {
            let section = format!("overlay.{number}");
            if let Some(factor) = overlay.delay_factor {
                check_factor(&format!("{section}.delay_factor"), factor)?;
            }
            if let (Some(min), Some(max)) = (overlay.min_delay, overlay.max_delay) {
                check_order(&section, min, max)?;
            }
            check_rate(&format!("{section}.max_bandwidth"), overlay.max_bandwidth)?;
        }
        Ok(())
    }

    fn check_user_agent(&self, key: &str, user_agent: &str) -> Result<(), InvalidOrder> {
        let agent = &self.robots.agent;
        if !user_agent.chars().all(|c| c.is_ascii_graphic() || c == ' ') || user_agent.is_empty() {
            return Err(InvalidOrder::at_key(
                key,
                "a user agent has visible ASCII characters and blanks only",
            ));
        }
        if !user_agent
            .to_ascii_lowercase()
            .contains(&agent.to_ascii_lowercase())
        {
            return Err(InvalidOrder::at_key(
                key,
                format!(
                    "a user agent contains the name of robots.agent, `{agent}`, so that hosts know which rules of their \
                     robots.txt are meant (RFC 9309 §2.2.1)"
                ),
            ));
        }
        if !user_agent.contains("{contact}") && self.http.from.is_none() {
            return Err(InvalidOrder::at_key(
                key,
                "a user agent has `{contact}` in it, so that hosts know whom to ask; or set `http.from`",
            ));
        }
        Ok(())
    }

    fn check_names(&self) -> Result<(), InvalidOrder> {
        let agent = &self.robots.agent;
        let user_agent = &self.http.user_agent;
        let is_token = |c: char| c.is_ascii_alphabetic() || matches!(c, '-' | '_');
        if agent.is_empty() || !agent.chars().all(is_token) {
            return Err(InvalidOrder::at_key(
                "robots.agent",
                "a name in robots.txt has letters, `-` and `_` only (RFC 9309 §2.2.1)",
            ));
        }
        self.check_user_agent("http.user_agent", user_agent)?;
        for (overlay, number) in self.overlays.iter().zip(0..) {
            if let Some(own) = &overlay.user_agent {
                self.check_user_agent(&format!("overlay.{number}.user_agent"), own)?;
            }
        }
        let contact = self.http.contact.as_ref();
        if contact.is_some_and(|url| !matches!(url.scheme(), "http" | "https" | "mailto")) {
            return Err(InvalidOrder::at_key(
                "http.contact",
                "a contact begins with `https://`, `http://` or `mailto:`",
            ));
        }
        if let Some(contact) = contact {
            check_no_user("http.contact", contact)?;
        }
        let is_address =
            |from: &String| from.contains('@') && from.chars().all(|c| c.is_ascii_graphic());
        if !self.http.from.as_ref().is_none_or(is_address) {
            return Err(InvalidOrder::at_key(
                "http.from",
                "a mail address is written `name@example.org`",
            ));
        }
        Ok(())
    }

    fn check_proxy(&self) -> Result<(), InvalidOrder> {
        if self.http.proxy.is_some() && self.queues.by == QueueKind::Seed {
            return Err(InvalidOrder::at_key(
                "http.proxy",
                "queues by seed meet at the addresses of hosts to be polite, and only a proxy would know these: set \
                 `queues.by` to \"host\" or \"domain\"",
            ));
        }
        Ok(())
    }

    fn check_limits(&self) -> Result<(), InvalidOrder> {
        let limits = &self.limits;
        for (key, period) in [
            ("limits.connect", limits.connect),
            ("limits.stall", limits.stall),
            ("limits.total", limits.total),
            ("robots.validity", self.robots.validity),
            ("dns.validity", self.dns.validity),
        ] {
            if period.is_zero() {
                return Err(InvalidOrder::at_key(
                    key,
                    "a time of zero leaves no time at all",
                ));
            }
        }
        let is_range = |text: &str| {
            let parts = text.split_once('/');
            let is_name = |name: &str| {
                !name.is_empty()
                    && name.bytes().all(|byte| {
                        byte.is_ascii_alphanumeric() && !byte.is_ascii_uppercase()
                            || b"!#$&-^_.+".contains(&byte)
                    })
            };
            text == "*/*"
                || parts.is_some_and(|(kind, own)| is_name(kind) && (own == "*" || is_name(own)))
        };
        if let Some(text) = limits.max_body_by_type.keys().find(|text| !is_range(text)) {
            return Err(InvalidOrder::at_key(
                "limits.max_body_by_type",
                format!(
                    "`{text}` is no media type; write `video/mp4`, `video/*` or `*/*`, in small letters"
                ),
            ));
        }
        for (key, size) in [
            ("limits.max_head", limits.max_head),
            ("files.max_size", self.files.max_size),
        ] {
            if size.is_zero() {
                return Err(InvalidOrder::at_key(
                    key,
                    "a size of zero leaves no room at all",
                ));
            }
        }
        Ok(())
    }

    fn check_credentials(&self) -> Result<(), InvalidOrder> {
        for (credential, number) in self.credentials.iter().zip(0..) {
            let key = |name: &str| format!("credential.{number}.{name}");
            let is_host = |url: Url| url.host_str() == Some(&credential.host.to_ascii_lowercase());
            if !Url::parse(&format!("http://{}/", credential.host)).is_ok_and(is_host) {
                return Err(InvalidOrder::at_key(
                    &key("host"),
                    "the name of a host is meant, such as `www.example.dk`, international ones as `xn--`",
                ));
            }
            if let Some(form) = &credential.form {
                check_no_user(&key("form"), &form.action)?;
                self.check_form(form, &key("form"))?;
                if credential.realm.is_some() {
                    return Err(InvalidOrder::at_key(
                        &key("realm"),
                        "a login page has no realm; leave the key out, or write a [[credential]] for each",
                    ));
                }
                if !credential.is_for(&form.action) {
                    return Err(InvalidOrder::at_key(
                        &key("form"),
                        "the login page is on another host, to which the password is not sent; name that host",
                    ));
                }
            }
        }
        Ok(())
    }

    fn check_form(&self, form: &LoginForm, key: &str) -> Result<(), InvalidOrder> {
        let names = [&form.user_field, &form.password_field];
        let is_taken = |name: &&String| form.fields.contains_key(*name);
        let message = if !matches!(form.action.scheme(), "http" | "https") {
            "a form is sent to a page of `http` or `https`"
        } else if names.iter().any(|name| name.is_empty()) || form.user_field == form.password_field
        {
            "the fields for the user and the password have a name each, as in the form of the page"
        } else if names.iter().any(is_taken) {
            "the user and the password have fields of their own; leave them out of `fields`"
        } else if !self.http.cookies {
            "a login lasts by its cookies; leave `http.cookies` out, or the form"
        } else {
            return Ok(());
        };
        Err(InvalidOrder::at_key(key, message))
    }
}

/// Returns whether a prefix in SURT form can cover a domain or a host as a whole: `http://(dk,example,` or
/// `http://(dk,example,)/`.
fn may_cover_queue(prefix: &str) -> bool {
    let Some(host) = prefix.strip_prefix("http://(") else {
        return false;
    };
    let (host, path) = host.split_once(')').unwrap_or((host, ""));
    let has_port = host
        .rsplit(']')
        .next()
        .is_some_and(|behind| behind.contains(':'));
    matches!(path, "" | "/") && (host.contains('[') && !host.contains(']') || !has_port)
}

fn check_factor(key: &str, factor: f64) -> Result<(), InvalidOrder> {
    if (0.0..=MAX_FACTOR).contains(&factor) {
        return Ok(());
    }
    let message = format!("a factor is a number from 0 to {MAX_FACTOR}");
    Err(InvalidOrder::at_key(key, message))
}

fn check_order(section: &str, min: Period, max: Period) -> Result<(), InvalidOrder> {
    if min <= max {
        return Ok(());
    }
    let message = format!("the shortest pause, {min}, is longer than the longest one, {max}");
    Err(InvalidOrder::at_key(
        &format!("{section}.min_delay"),
        message,
    ))
}

fn check_rate(key: &str, rate: Option<ByteSize>) -> Result<(), InvalidOrder> {
    if rate.is_none_or(|rate| rate.bytes() > 0) {
        return Ok(());
    }
    let message = "no byte a second is no rate; leave the key out for no limit";
    Err(InvalidOrder::at_key(key, message))
}

fn check_no_user(key: &str, url: &Url) -> Result<(), InvalidOrder> {
    if url.username().is_empty() && url.password().is_none() {
        return Ok(());
    }
    let message = "a user or a password in a URI would be documented; write a [[credential]]";
    Err(InvalidOrder::at_key(key, message))
}

/// Returns whether the host of a URI is this machine, whatever a name server says.
pub(super) fn is_this_machine(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}
