//! Hosts in trouble: how long each of them rests, and when it is given up.
//!
//! Owns what a failed try costs besides the URI itself: its host and port rest, and nothing else of its domain does. A
//! host that cannot be reached is asked again after seconds, then at the pace of the order, and given up when that has
//! gone on for as long as one URI may be tried. One that asks for patience (429, 503) rests for as long as it says, and
//! is given up if it has answered nothing else for longer than one URI may be tried. Takes time as a value. Bounded in memory: a host that is forgotten counts as one without trouble.

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use url::Url;

use crate::status::RetryRules;
use crate::turns::CrawlMoment;

/// The connections in a row that a host may leave without an answer until it counts as one that cannot be reached.
const UNANSWERED: u32 = 5;

/// The most hosts in trouble that are remembered.
const MOST: usize = 1 << 17;

/// The hosts in a row without an answer of a name server or a proxy from which on that is at fault.
const UNRESOLVED: usize = 3;

/// The rest of a name server that does not answer, and of a proxy that cannot be used.
const SERVICE_REST: Duration = Duration::from_secs(30);

/// A host and its port: `example.dk:80`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostPort(String);

impl HostPort {
    /// Returns the host and port of a URI; `None` if it has none.
    pub fn of_url(url: &Url) -> Option<Self> {
        let port = url.port_or_known_default()?;
        Some(Self(format!("{}:{port}", url.host_str()?)))
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a host may be asked now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostStanding {
    /// The host may be asked.
    Open,
    /// The host rests until a moment.
    Rests(CrawlMoment),
    /// The host is not asked any more.
    GivenUp,
}

/// The trouble that a try has met at a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostTrouble {
    /// No connection can be made to this address, where one is known, or what goes before every URI of the host cannot
    /// be had: its address, its robots.txt.
    Unreachable(Option<IpAddr>),
    /// The host has taken a request and not answered it.
    NoAnswer,
    /// The host asks for patience, for a time if it says one.
    Busy(Option<Duration>),
}

/// A host that is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GivenUpHost {
    /// The number of URIs that wait for it.
    pub waiting: u64,
    /// The time for which it could not be reached, or has asked for patience.
    pub unreachable: Duration,
    /// Whether it has asked for patience.
    pub is_busy: bool,
}

#[derive(Clone, Debug, Default)]
struct HostState {
    /// The tries in a row that have met trouble.
    strikes: u32,
    unanswered: u32,
    /// The moment of the first one of them.
    since: CrawlMoment,
    /// The moment of the last one.
    last: CrawlMoment,
    rests_until: CrawlMoment,
    is_given_up: bool,
    is_busy: bool,
    waiting: u64,
    /// The addresses that cannot be connected to while others of the host can, or were not tried; each until a moment.
    dead: Vec<(IpAddr, CrawlMoment)>,
}

impl HostState {
    fn is_dead(&self, address: IpAddr, now: CrawlMoment) -> bool {
        self.dead
            .iter()
            .any(|(dead, until)| *dead == address && *until > now)
    }
}

/// The hosts of a crawl that are in trouble.
#[derive(Clone, Debug)]
pub struct HostRests {
    rules: RetryRules,
    hosts: HashMap<HostPort, HostState>,
    name_server: SharedService,
    proxy: SharedService,
}

/// A service that all hosts are reached by.
#[derive(Clone, Debug, Default)]
struct SharedService {
    /// The hosts in a row for which it has failed.
    failed_for: Vec<String>,
    /// The moment since which it is at fault.
    lost_since: CrawlMoment,
    rests_until: CrawlMoment,
}

impl SharedService {
    fn is_lost(&self) -> bool {
        self.failed_for.len() >= UNRESOLVED
    }

    /// Takes note that the service has failed for a host; returns whether it was lost before.
    fn note_failure(&mut self, host: &str, now: CrawlMoment) -> bool {
        let was_lost = self.is_lost();
        if !was_lost {
            if !self.failed_for.iter().any(|other| other == host) {
                self.failed_for.push(host.to_owned());
            }
            self.lost_since = now;
        }
        was_lost
    }

    const fn rest(&mut self, was_lost: bool, now: CrawlMoment) -> ServiceLoss {
        self.rests_until = now.saturating_add(SERVICE_REST);
        ServiceLoss {
            until: self.rests_until,
            is_news: !was_lost,
        }
    }

    fn rest_at(&self, now: CrawlMoment) -> Option<CrawlMoment> {
        (self.rests_until > now).then_some(self.rests_until)
    }
}

impl HostRests {
    /// Makes a memory without hosts in trouble.
    pub fn new(rules: RetryRules) -> Self {
        Self {
            rules,
            hosts: HashMap::new(),
            name_server: SharedService::default(),
            proxy: SharedService::default(),
        }
    }

    /// Returns whether no host is in trouble.
    pub fn is_quiet(&self) -> bool {
        self.hosts.is_empty()
    }

    /// Returns what a host may be asked now.
    pub fn standing(&self, host: &HostPort, now: CrawlMoment) -> HostStanding {
        match self.hosts.get(host) {
            Some(state) if state.is_given_up => HostStanding::GivenUp,
            Some(state) if state.rests_until > now => HostStanding::Rests(state.rests_until),
            _ => HostStanding::Open,
        }
    }

    /// Returns the address at which a host is asked: the first of `addresses` that is not known to be dead, beginning
    /// with the one of this number.
    pub fn pick_address(
        &self,
        host: &HostPort,
        addresses: &[IpAddr],
        number: usize,
        now: CrawlMoment,
    ) -> Option<IpAddr> {
        let state = self.hosts.get(host);
        let is_dead = |address| state.is_some_and(|state| state.is_dead(address, now));
        let count = addresses.len();
        let in_turn = (0..count).map(|at| addresses[(at + number) % count]);
        let mut living = in_turn.filter(|address| !is_dead(*address));
        living.next().or(addresses.first().copied())
    }

    /// Takes note that a URI waits for the rest of its host to end.
    pub fn count_waiting(&mut self, host: &HostPort) {
        if let Some(state) = self.hosts.get_mut(host) {
            state.waiting += 1;
        }
    }

    /// Takes note that a host has answered: its troubles are over. Addresses of it that are dead are still not asked.
    pub fn note_answer(&mut self, host: &HostPort) {
        if let Some(state) = self.hosts.remove(host)
            && !state.dead.is_empty()
        {
            let state = HostState {
                dead: state.dead,
                ..HostState::default()
            };
            self.hosts.insert(host.clone(), state);
        }
    }

    /// Takes note of the trouble that a try has met which began at `began`; `addresses`: those of the host. Returns the
    /// host if it is given up by that.
    pub fn note_trouble(
        &mut self,
        host: &HostPort,
        trouble: HostTrouble,
        addresses: &[IpAddr],
        began: CrawlMoment,
        now: CrawlMoment,
    ) -> Option<GivenUpHost> {
        self.make_room(now);
        let rules = self.rules;
        let state = self.hosts.entry(host.clone()).or_default();
        match trouble {
            HostTrouble::NoAnswer => {
                state.unanswered += 1;
                if state.unanswered < UNANSWERED {
                    return None;
                }
            }
            HostTrouble::Unreachable(Some(address)) => {
                state.dead.retain(|(other, _)| *other != address);
                state.dead.push((address, now.saturating_add(rules.delay)));
                if addresses.iter().any(|other| !state.is_dead(*other, now)) {
                    // Another address is tried first.
                    return None;
                }
            }
            HostTrouble::Unreachable(None) | HostTrouble::Busy(_) => {}
        }
        // Tries that were under way together are one.
        if state.strikes > 0 && began < state.last {
            return None;
        }
        if state.strikes == 0 {
            state.since = now;
        }
        state.strikes += 1;
        state.last = now;
        state.dead.clear();
        state.is_busy = matches!(trouble, HostTrouble::Busy(_));
        let pause = match trouble {
            HostTrouble::Busy(Some(asked)) => asked.min(rules.max_retry_after),
            _ => rules.delay_after(state.strikes),
        };
        state.rests_until = state.rests_until.max(now.saturating_add(pause));
        let waiting = std::mem::take(&mut state.waiting);
        let unreachable = now.saturating_sub(state.since);
        let is_busy = state.is_busy;
        // The last try of a URI is recorded as a busy host has answered it.
        let most = rules.max_tries.saturating_add(u32::from(is_busy));
        state.is_given_up =
            state.strikes >= most && unreachable >= rules.delay.saturating_mul(rules.max_tries);
        state.is_given_up.then_some(GivenUpHost {
            waiting,
            unreachable,
            is_busy,
        })
    }

    /// Returns the moment until which the name server is not asked; `None` if it may be asked.
    pub fn name_server_rest(&self, now: CrawlMoment) -> Option<CrawlMoment> {
        self.name_server.rest_at(now)
    }

    /// Takes note that the name server has answered.
    pub fn note_name_server(&mut self) {
        self.name_server.failed_for.clear();
    }

    /// Takes note that no name server has answered for a host. Returns the loss of the name server if that is at fault:
    /// then the host is not. That is believed for as long as one URI may be tried; from then on hosts are at fault, whose
    /// own name servers are down.
    pub fn note_unresolved(&mut self, host: &str, now: CrawlMoment) -> Option<ServiceLoss> {
        let patience = self.rules.delay.saturating_mul(self.rules.max_tries);
        let service = &mut self.name_server;
        let was_lost = service.note_failure(host, now);
        let is_believed = service.is_lost() && now < service.lost_since.saturating_add(patience);
        is_believed.then(|| service.rest(was_lost, now))
    }

    /// Returns the moment until which the proxy is not used; `None` if it may be.
    pub fn proxy_rest(&self, now: CrawlMoment) -> Option<CrawlMoment> {
        self.proxy.rest_at(now)
    }

    /// Returns whether the proxy was at fault when it was last used.
    pub fn is_proxy_lost(&self) -> bool {
        self.proxy.is_lost()
    }

    /// Takes note that the proxy has led to a host, by a fetch that began at `began`.
    pub fn note_proxy(&mut self, began: CrawlMoment) {
        // What it led to before it was lost may come to its end long after.
        if began >= self.proxy.lost_since {
            self.proxy.failed_for.clear();
        }
    }

    /// Takes note that the proxy has not led to a host. Returns its loss if it is at fault, and no host is: it cannot be
    /// used at all, or has refused several hosts in a row.
    pub fn note_proxy_failure(
        &mut self,
        host: &str,
        is_unusable: bool,
        now: CrawlMoment,
    ) -> Option<ServiceLoss> {
        let service = &mut self.proxy;
        let was_lost = service.note_failure(host, now);
        if is_unusable && !was_lost {
            service.failed_for = vec![host.to_owned(); UNRESOLVED];
        }
        service.is_lost().then(|| service.rest(was_lost, now))
    }

    /// Returns the number of hosts that rest, and of those that are given up.
    pub fn count_troubled(&self, now: CrawlMoment) -> (u64, u64) {
        let mut resting = 0;
        let mut given_up = 0;
        for state in self.hosts.values() {
            given_up += u64::from(state.is_given_up);
            resting += u64::from(!state.is_given_up && state.rests_until > now);
        }
        (resting, given_up)
    }

    /// Returns the hosts that rest or are given up.
    pub fn list_troubled(&self, now: CrawlMoment) -> Vec<TroubledHost> {
        let troubled = self
            .hosts
            .iter()
            .filter(|(_, state)| state.is_given_up || state.rests_until > now);
        let troubled = troubled.map(|(host, state)| TroubledHost {
            host: host.clone(),
            until: (!state.is_given_up).then_some(state.rests_until),
            is_busy: state.is_busy,
            strikes: state.strikes,
            waiting: state.waiting,
        });
        troubled.collect()
    }

    /// Forgets the troubles of all hosts that a condition names: they may be asked again.
    pub fn forgive_hosts(&mut self, mut is_forgiven: impl FnMut(&HostPort) -> bool) {
        self.hosts.retain(|host, _| !is_forgiven(host));
    }

    /// Returns whether the last trouble of a host was that it has asked for patience.
    pub fn is_busy(&self, host: &HostPort) -> bool {
        self.hosts.get(host).is_some_and(|state| state.is_busy)
    }

    /// Returns whether a host rests that has asked for patience.
    pub fn has_busy_hosts(&self, now: CrawlMoment) -> bool {
        self.hosts
            .values()
            .any(|state| state.is_busy && !state.is_given_up && state.rests_until > now)
    }

    /// Forgets hosts of a memory that is full: those that do not rest, or else all.
    fn make_room(&mut self, now: CrawlMoment) {
        if self.hosts.len() < MOST {
            return;
        }
        self.hosts
            .retain(|_, state| state.is_given_up || state.rests_until > now);
        if self.hosts.len() >= MOST {
            self.hosts.clear();
        }
    }
}

/// A host that rests or is given up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TroubledHost {
    /// The host and its port.
    pub host: HostPort,
    /// The moment until which it rests; `None`: it is given up.
    pub until: Option<CrawlMoment>,
    /// Whether it asks for patience; else it cannot be reached.
    pub is_busy: bool,
    /// The tries in a row that have met trouble.
    pub strikes: u32,
    /// The number of URIs that were told to wait since the last of them.
    pub waiting: u64,
}

/// The loss of a name server, or of a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServiceLoss {
    /// The moment until which it rests.
    pub until: CrawlMoment,
    /// Whether it had worked until now.
    pub is_news: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str) -> HostPort {
        HostPort::of_url(&Url::parse(&format!("http://{name}/")).unwrap()).unwrap()
    }

    const fn second(number: u64) -> CrawlMoment {
        Duration::from_secs(number)
    }

    const UNREACHABLE: HostTrouble = HostTrouble::Unreachable(None);

    /// Fails if a host in trouble is asked before its rest is over, another host or port rests with it, one is given up
    /// too early or never, or an answer does not end its troubles.
    #[test]
    fn dead_host_rests_and_is_given_up() {
        let dead = host("a.dk");
        let mut rests = HostRests::new(RetryRules::default());
        let mut now = second(10);
        let mut pauses = Vec::new();
        let given_up = loop {
            let given_up = rests.note_trouble(&dead, UNREACHABLE, &[], now, now);
            // What was under way with it is no further try.
            assert_eq!(
                rests.note_trouble(&dead, UNREACHABLE, &[], second(9), now),
                None
            );
            rests.count_waiting(&dead);
            rests.count_waiting(&dead);
            if let Some(given_up) = given_up {
                break given_up;
            }
            let HostStanding::Rests(until) = rests.standing(&dead, now) else {
                panic!("the host does not rest");
            };
            assert_eq!(rests.standing(&dead, until), HostStanding::Open);
            pauses.push(until.checked_sub(now).unwrap().as_secs());
            now = until;
        };
        assert_eq!(pauses, [5, 300, 300, 300]);
        assert_eq!((given_up.waiting, given_up.unreachable), (2, second(905)));
        assert_eq!(rests.standing(&dead, now * 100), HostStanding::GivenUp);
        let other = HostPort::of_url(&Url::parse("http://a.dk:81/").unwrap()).unwrap();
        assert_eq!(rests.standing(&other, now), HostStanding::Open);
        rests.note_trouble(&other, UNREACHABLE, &[], now, now);
        assert_ne!(rests.standing(&other, now), HostStanding::Open);
        rests.note_answer(&other);
        assert_eq!(rests.standing(&other, now), HostStanding::Open);
        assert_eq!(rests.count_troubled(now), (0, 1));
    }

    /// Fails if a host that asks for patience rests for longer or shorter than it says and the order allows, or is given up
    /// before it has rested as often as a URI is tried, or never.
    #[test]
    fn busy_host_rests_as_long_as_it_says() {
        let busy = host("a.dk");
        let mut rests = HostRests::new(RetryRules::default());
        let mut now = second(0);
        for (asked, expected) in [(Some(7), 7), (Some(100_000), 3600), (None, 300)] {
            let trouble = HostTrouble::Busy(asked.map(second));
            assert_eq!(rests.note_trouble(&busy, trouble, &[], now, now), None);
            assert_eq!(
                rests.standing(&busy, now),
                HostStanding::Rests(now + second(expected))
            );
            now += second(expected);
        }
        assert!(rests.has_busy_hosts(second(7)));
        let last = HostTrouble::Busy(Some(second(5)));
        let given_up = rests.note_trouble(&busy, last, &[], now, now).unwrap();
        assert_eq!((given_up.unreachable, given_up.is_busy), (now, true));
        assert_eq!(rests.standing(&busy, now), HostStanding::GivenUp);
        assert!(!rests.has_busy_hosts(now));
        // One that is overloaded for minutes is asked more often, and given the time.
        let mut now = second(0);
        for _ in 0..100 {
            let trouble = HostTrouble::Busy(Some(second(5)));
            let other = host("b.dk");
            assert_eq!(rests.note_trouble(&other, trouble, &[], now, now), None);
            now += second(5);
        }
    }

    /// Fails if a proxy that is lost passes for one that works because of what it has led to before, does not after it has
    /// led to a host, or is at fault for what one host does.
    #[test]
    fn lost_proxy_is_known_until_it_leads_to_a_host() {
        let mut rests = HostRests::new(RetryRules::default());
        for host in ["a.dk", "a.dk", "b.dk"] {
            assert_eq!(rests.note_proxy_failure(host, false, second(1)), None);
        }
        assert!(!rests.is_proxy_lost());
        let loss = rests.note_proxy_failure("c.dk", false, second(9)).unwrap();
        assert_eq!((loss.until, loss.is_news), (second(39), true));
        assert_eq!(rests.proxy_rest(second(38)), Some(second(39)));
        assert_eq!(rests.proxy_rest(second(39)), None);
        rests.note_proxy(second(8));
        let again = rests.note_proxy_failure("c.dk", true, second(40)).unwrap();
        assert!(!again.is_news && rests.is_proxy_lost());
        rests.note_proxy(second(70));
        assert!(!rests.is_proxy_lost());
        assert!(
            rests
                .note_proxy_failure("c.dk", true, second(80))
                .unwrap()
                .is_news
        );
    }

    /// Fails if one request without an answer stops its host, or many of them do not.
    #[test]
    fn unanswered_requests_are_counted() {
        let silent = host("a.dk");
        let mut rests = HostRests::new(RetryRules::default());
        for number in 1..UNANSWERED {
            rests.note_trouble(
                &silent,
                HostTrouble::NoAnswer,
                &[],
                second(0),
                second(number.into()),
            );
            assert_eq!(
                rests.standing(&silent, second(number.into())),
                HostStanding::Open
            );
        }
        rests.note_trouble(&silent, HostTrouble::NoAnswer, &[], second(5), second(5));
        assert_eq!(
            rests.standing(&silent, second(5)),
            HostStanding::Rests(second(10))
        );
    }

    /// Fails if a host rests while one of its addresses was not tried, or a dead address is asked again before the
    /// others.
    #[test]
    fn living_address_is_found() {
        let [one, two]: [IpAddr; 2] = [[10, 0, 0, 1].into(), [10, 0, 0, 2].into()];
        let both = [one, two];
        let mixed = host("a.dk");
        let mut rests = HostRests::new(RetryRules::default());
        assert_eq!(rests.pick_address(&mixed, &both, 0, second(0)), Some(one));
        assert_eq!(rests.pick_address(&mixed, &both, 3, second(0)), Some(two));
        assert_eq!(rests.pick_address(&mixed, &[], 3, second(0)), None);
        let at = |address| HostTrouble::Unreachable(Some(address));
        rests.note_trouble(&mixed, at(one), &both, second(0), second(0));
        assert_eq!(rests.standing(&mixed, second(0)), HostStanding::Open);
        assert_eq!(rests.pick_address(&mixed, &both, 0, second(0)), Some(two));
        // An answer of the other one does not bring it back, and time does.
        rests.note_answer(&mixed);
        assert_eq!(rests.pick_address(&mixed, &both, 0, second(1)), Some(two));
        assert_eq!(rests.pick_address(&mixed, &both, 0, second(300)), Some(one));
        rests.note_trouble(&mixed, at(two), &both, second(1), second(1));
        assert_eq!(
            rests.standing(&mixed, second(1)),
            HostStanding::Rests(second(6))
        );
    }

    /// Fails if a name server that fails for one host counts as lost, or one that answers nobody does not.
    #[test]
    fn lost_name_server_is_told_from_odd_hosts() {
        let mut rests = HostRests::new(RetryRules::default());
        for _ in 0..9 {
            assert_eq!(rests.note_unresolved("a.dk", second(0)), None);
        }
        assert_eq!(rests.note_unresolved("b.dk", second(0)), None);
        let until = second(31);
        let lost = |is_news| Some(ServiceLoss { until, is_news });
        assert_eq!(rests.note_unresolved("c.dk", second(1)), lost(true));
        assert_eq!(rests.note_unresolved("c.dk", second(1)), lost(false));
        assert_eq!(rests.name_server_rest(second(30)), Some(until));
        assert_eq!(rests.name_server_rest(until), None);
        assert_eq!(rests.note_unresolved("d.dk", second(1000)), None);
        rests.note_name_server();
        assert_eq!(rests.note_unresolved("d.dk", until), None);
    }
}
