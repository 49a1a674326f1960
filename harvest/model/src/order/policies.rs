//! An order as the policies that carry it out.
//!
//! Owns which key becomes which limit of `harvest-policy`, the rule of NetarchiveSuite for the two ways to count
//! objects included.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use archive_model::ByteSize;
use harvest_policy::account::QueueLimits;
use harvest_policy::address::AddressNetwork;
use harvest_policy::politeness::Politeness;
use harvest_policy::quarantine::{Quarantine, QuarantineRules};
use harvest_policy::queue_name::QueueNaming;
use harvest_policy::queue_rules::QueueRules;
use harvest_policy::scope::Scope;
use harvest_policy::status::RetryRules;
use harvest_policy::suffixes::SuffixList;
use harvest_policy::surt::{SurtPrefixes, url_surt};
use harvest_policy::traps::{InvalidTrap, TrapList};
use url::{Host, Url};

use super::checks::is_this_machine;
use super::{CrawlOrder, Credential, LoginForm, Overlay, RobotsPolicy, ScopeKind};

impl CrawlOrder {
    /// Returns the scope of a crawl from `seeds`, with the domains of a list of public suffixes.
    ///
    /// # Errors
    ///
    /// [`InvalidTrap::Large`]; [`CrawlOrder::check`] has found it before.
    pub fn scope_for(&self, seeds: &[Url], suffixes: &SuffixList) -> Result<Scope, InvalidTrap> {
        let mut accepted = SurtPrefixes::default();
        for seed in seeds {
            self.accept_seed(seed, suffixes, &mut accepted);
        }
        for prefix in &self.scope.accept {
            accepted.add(prefix.as_str());
        }
        let mut rejected = SurtPrefixes::default();
        for prefix in &self.scope.reject {
            rejected.add(prefix.as_str());
        }
        let overlays = self.overlays.iter().map(Overlay::scope_overlay);
        Ok(Scope {
            accepted,
            accepted_expressions: TrapList::new(&self.scope.accept_expressions)?,
            rejected,
            traps: TrapList::new(&self.scope.traps)?,
            max_hops: self.scope.max_hops,
            max_hops_in_page: self.scope.max_embed_hops,
            max_speculative_hops: self.scope.max_speculative_hops,
            max_segments: self.scope.max_path_segments,
            max_repeats: self.scope.max_path_repeats,
            overlays: overlays.collect::<Result<_, _>>()?,
        })
    }

    /// Adds the part of a site that a seed stands for; also for seeds that come while the crawl runs.
    pub fn accept_seed(&self, seed: &Url, suffixes: &SuffixList, accepted: &mut SurtPrefixes) {
        match self.scope_kind_for(seed) {
            ScopeKind::Domain => match domain_root(seed, suffixes) {
                Some(root) => accepted.add_domain(&root),
                // `10.0.0.1` would cover `10.0.0.10`, and `github.io` the sites of everyone who has one there.
                None => accepted.add_host(seed),
            },
            ScopeKind::Host => accepted.add_host(seed),
            ScopeKind::Prefix => accepted.add_directory(seed),
        }
    }

    /// Adds what a URI stands for that a seed redirects to: its host at most, whatever the seed stands for.
    pub fn accept_redirected_seed(&self, target: &Url, accepted: &mut SurtPrefixes) {
        match self.scope_kind_for(target) {
            ScopeKind::Domain | ScopeKind::Host => accepted.add_host(target),
            ScopeKind::Prefix => accepted.add_directory(target),
        }
    }

    /// Returns the part of a site that a seed stands for, overlays included.
    fn scope_kind_for(&self, seed: &Url) -> ScopeKind {
        let kinds = self
            .overlays_for(seed)
            .filter_map(|overlay| overlay.seed_scope);
        kinds.last().unwrap_or(self.scope.kind)
    }

    /// Returns the rule by which queues get their names, with a list of public suffixes.
    pub const fn queue_names(&self, suffixes: Arc<SuffixList>) -> QueueNaming {
        QueueNaming {
            kind: self.queues.by,
            suffixes,
        }
    }

    /// Returns the limits of the queue of a name, overlays included: those apply that cover the domain or host of this
    /// name. Objects are counted by a quota or by the total budget (NetarchiveSuite's
    /// `objectLimitIsSetByQuotaEnforcer`); a total budget that is smaller stands.
    pub fn queue_limits(&self, name: &str) -> QueueLimits {
        let root = Some(name).filter(|_| !self.overlays.is_empty());
        let root = root.and_then(|name| Url::parse(&format!("http://{name}/")).ok());
        let overlays = root.iter().flat_map(|root| self.overlays_for(root));
        let queues = overlays.fold(self.queues.clone(), |below, overlay| {
            overlay.apply_to_queues(&below)
        });
        let (quota, budget) = if queues.objects_by_quota {
            (queues.max_objects, None)
        } else {
            (None, queues.max_objects)
        };
        QueueLimits {
            precedence: queues.precedence,
            session: queues.session_budget,
            error_penalty: queues.error_penalty,
            total: [queues.total_budget, budget].into_iter().flatten().min(),
            successes: quota,
            bytes: queues.max_bytes.map(ByteSize::bytes),
        }
    }

    /// Returns the limits of each queue by its name.
    pub fn queue_rules(&self) -> QueueRules {
        let order = Self {
            queues: self.queues.clone(),
            overlays: self.overlays.clone(),
            ..Self::default()
        };
        QueueRules::new(move |name| order.queue_limits(name))
    }

    /// Returns the pauses between the fetches of a URI's host, overlays included.
    pub fn politeness_for(&self, url: &Url) -> Politeness {
        let settings = &self.politeness;
        let politeness = Politeness {
            delay_factor: settings.delay_factor,
            min_delay: settings.min_delay.duration(),
            max_delay: settings.max_delay.duration(),
            max_crawl_delay: settings.max_crawl_delay.duration(),
            max_bytes_per_second: settings.max_bandwidth.map(ByteSize::bytes),
        };
        let overlays = self.overlays_for(url);
        overlays.fold(politeness, |below, overlay| {
            overlay.apply_to_politeness(below)
        })
    }

    /// Returns whether robots.txt excludes anything for a URI, overlays included.
    pub fn robots_policy_for(&self, url: &Url) -> RobotsPolicy {
        let overlays = self.overlays_for(url).filter_map(|overlay| overlay.robots);
        overlays.last().unwrap_or(self.robots.policy)
    }

    /// Returns the most bytes of the body of a response, overlays included; `None` for no limit.
    pub fn max_body_for(&self, url: &Url) -> Option<u64> {
        let overlays = self
            .overlays_for(url)
            .filter_map(|overlay| overlay.max_body);
        overlays
            .last()
            .or(self.limits.max_body)
            .map(ByteSize::bytes)
    }

    /// Returns the overlays that cover a URI, in their order.
    fn overlays_for(&self, url: &Url) -> impl Iterator<Item = &Overlay> {
        let surt = if self.overlays.is_empty() {
            None
        } else {
            url_surt(url)
        };
        let covers =
            move |overlay: &&Overlay| surt.as_ref().is_some_and(|surt| overlay.surt.covers(surt));
        self.overlays.iter().filter(covers)
    }

    /// Returns the quarantine of a crawl, with nothing in it.
    pub fn quarantine(&self) -> Quarantine {
        Quarantine::new(QuarantineRules {
            after_pages: self.quarantine.after_pages,
            trial_pages: self.quarantine.trial_pages,
        })
    }

    /// Returns the rules by which a URI is tried again.
    pub const fn retry_rules(&self) -> RetryRules {
        RetryRules {
            max_tries: self.retry.max_tries.get(),
            first_delay: self.retry.first_delay.duration(),
            delay: self.retry.delay.duration(),
            max_retry_after: self.retry.max_retry_after.duration(),
        }
    }

    /// Returns the user agent of a crawler of some version.
    pub fn user_agent(&self, version: &str) -> String {
        self.fill_user_agent(&self.http.user_agent, version)
    }

    /// Returns the user agent that an overlay has for a URI, if one has.
    pub fn overlaid_user_agent(&self, url: &Url, version: &str) -> Option<String> {
        let own = self
            .overlays_for(url)
            .filter_map(|overlay| overlay.user_agent.as_ref());
        own.last().map(|text| self.fill_user_agent(text, version))
    }

    fn fill_user_agent(&self, text: &str, version: &str) -> String {
        let contact = self.http.contact.as_ref().map_or("no contact", Url::as_str);
        text.replace("{version}", version)
            .replace("{contact}", contact)
    }

    /// Returns the networks that may be crawled whatever they are: those of the order, and the addresses of seeds that
    /// are addresses, or `localhost`.
    pub fn allowed_networks(&self, seeds: &[Url]) -> Vec<AddressNetwork> {
        let mut allowed = self.networks.allow.clone();
        for seed in seeds {
            match seed.host() {
                Some(Host::Ipv4(address)) => allowed.push(AddressNetwork::of_one(address.into())),
                Some(Host::Ipv6(address)) => allowed.push(AddressNetwork::of_one(address.into())),
                Some(Host::Domain(_)) if is_this_machine(seed) => {
                    let loopback = [IpAddr::V4(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()];
                    allowed.extend(loopback.map(AddressNetwork::of_one));
                }
                Some(Host::Domain(_)) | None => {}
            }
        }
        allowed.sort_unstable();
        allowed.dedup();
        allowed
    }

    /// Returns the credentials that may be sent with a request for a URI.
    pub fn credentials_for(&self, url: &Url) -> impl Iterator<Item = &Credential> {
        self.credentials
            .iter()
            .filter(|credential| credential.is_for(url))
    }

    /// Returns the login forms that are sent before the pages of a host, each with the number of its credential.
    pub fn login_forms(&self, url: &Url) -> impl Iterator<Item = (usize, &LoginForm)> {
        let credentials = self.credentials.iter().enumerate();
        let own = credentials.filter(|(_, credential)| credential.is_for(url));
        own.filter_map(|(number, credential)| Some((number, credential.form.as_ref()?)))
    }
}

/// Returns the root page of the domain of a URI, without its port. `None` if its host is an address or a public suffix.
fn domain_root(url: &Url, suffixes: &SuffixList) -> Option<Url> {
    let Some(Host::Domain(name)) = url.host() else {
        return None;
    };
    let domain = suffixes.registered_domain(name.trim_end_matches('.'));
    let root = Url::parse(&format!("http://{domain}/")).ok();
    root.filter(|_| !suffixes.is_suffix(domain))
}

#[cfg(test)]
mod tests;
