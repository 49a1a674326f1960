//! Clients, distinguished by address and user name: the view that each has chosen, and the URLs that were missing.
//!
//! Owns how much is remembered and for how long. A client that has chosen nothing and records nothing takes no room; of
//! too many the longest unused are forgotten, first those of the same address. The time is an argument.

use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use archive_formats::date::Stamp;
use parking_lot::{Mutex, MutexGuard};

use crate::missing::MissingUrls;

/// The most clients of one address that are remembered: user names cost nothing.
const MOST_OF_ADDRESS: usize = 100;

/// A client of the proxy.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ClientKey {
    pub(crate) address: IpAddr,
    pub(crate) user: Option<Box<str>>,
}

/// The limits of what is remembered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClientLimits {
    /// Clients.
    pub(crate) clients: usize,
    /// Missing URLs of one client.
    pub(crate) urls: usize,
    /// Bytes of missing URLs of all clients.
    pub(crate) bytes: usize,
    /// The longest time that a client may ask for nothing.
    pub(crate) idle: Duration,
}

/// The part of the archive that a client looks at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClientView {
    /// `None` for the default of the proxy.
    pub(crate) collection: Option<String>,
    /// `None` for the latest captures.
    pub(crate) date: Option<Stamp>,
    /// `None` for all jobs.
    pub(crate) jobs: Option<JobChoice>,
}

/// The harvest jobs that a client looks at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JobChoice {
    pub(crate) jobs: BTreeSet<u64>,
    /// The jobs of which the archive had no files when they were chosen.
    pub(crate) without_data: BTreeSet<u64>,
    /// The name that the client has given them.
    pub(crate) label: String,
}

/// The state of a client, as it is shown: its view, and how long its list is.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClientReport {
    pub(crate) view: Arc<ClientView>,
    pub(crate) is_recording: bool,
    pub(crate) missing: usize,
    /// URLs that were missing, and not recorded because the list was full.
    pub(crate) omitted: u64,
}

/// All clients of the proxy that are remembered.
#[derive(Debug)]
pub(crate) struct Clients {
    table: Mutex<ClientTable>,
    limits: ClientLimits,
}

#[derive(Debug, Default)]
struct ClientTable {
    clients: HashMap<ClientKey, ClientState>,
    /// Bytes of all lists.
    bytes: usize,
}

#[derive(Debug)]
struct ClientState {
    view: Arc<ClientView>,
    is_recording: bool,
    missing: MissingUrls,
    used: Instant,
}

impl Clients {
    pub(crate) fn new(limits: ClientLimits) -> Self {
        Self {
            table: Mutex::default(),
            limits,
        }
    }

    /// Returns the view of a client, which counts as used now.
    pub(crate) fn client_view(&self, key: &ClientKey, now: Instant) -> Arc<ClientView> {
        let mut table = self.table();
        table.touch(key, now, self.limits.idle);
        let state = table.clients.get(key);
        state
            .map(|state| Arc::clone(&state.view))
            .unwrap_or_default()
    }

    /// Returns the report on a client.
    pub(crate) fn client_report(&self, key: &ClientKey, now: Instant) -> ClientReport {
        let mut table = self.table();
        table.touch(key, now, self.limits.idle);
        let state = table.clients.get(key);
        state.map(ClientState::report).unwrap_or_default()
    }

    /// Changes the view of a client.
    pub(crate) fn set_view(&self, key: &ClientKey, now: Instant, view: ClientView) {
        let mut table = self.table();
        table.state(key, now, &self.limits).view = Arc::new(view);
    }

    /// Starts or stops the recording of missing URLs. The list stays as it is.
    pub(crate) fn set_recording(&self, key: &ClientKey, now: Instant, is_recording: bool) {
        let mut table = self.table();
        table.state(key, now, &self.limits).is_recording = is_recording;
    }

    /// Records that a URL was missing, if the client records. Returns whether the URL is in the list.
    pub(crate) fn record_missing(&self, key: &ClientKey, now: Instant, url: &str) -> bool {
        let mut table = self.table();
        table.touch(key, now, self.limits.idle);
        let room = self.limits.bytes.saturating_sub(table.bytes);
        let Some(state) = table
            .clients
            .get_mut(key)
            .filter(|state| state.is_recording)
        else {
            return false;
        };
        let before = state.missing.bytes();
        let is_listed = state.missing.add_url(url, self.limits.urls, room);
        let grown = state.missing.bytes() - before;
        table.bytes += grown;
        is_listed
    }

    /// Returns the missing URLs of a client, sorted.
    pub(crate) fn missing_urls(&self, key: &ClientKey, now: Instant) -> Vec<Arc<str>> {
        let mut table = self.table();
        table.touch(key, now, self.limits.idle);
        let state = table.clients.get(key);
        state
            .map(|state| state.missing.urls().cloned().collect())
            .unwrap_or_default()
    }

    /// Forgets the missing URLs of a client.
    pub(crate) fn clear_client(&self, key: &ClientKey, now: Instant) {
        let mut table = self.table();
        table.touch(key, now, self.limits.idle);
        if let Some(state) = table.clients.get_mut(key) {
            let list = std::mem::take(&mut state.missing);
            table.bytes = table.bytes.saturating_sub(list.bytes());
        }
    }

    /// Forgets the clients that have asked for nothing for too long.
    pub(crate) fn expire_clients(&self, now: Instant) {
        let idle = self.limits.idle;
        let mut table = self.table();
        let old: Vec<ClientKey> = table
            .clients
            .iter()
            .filter(|(_, state)| now.saturating_duration_since(state.used) >= idle)
            .map(|(key, _)| key.clone())
            .collect();
        for key in old {
            table.forget(&key);
        }
    }

    fn table(&self) -> MutexGuard<'_, ClientTable> {
        self.table.lock()
    }
}

impl ClientTable {
    /// Marks a client as used, unless it is to be forgotten.
    fn touch(&mut self, key: &ClientKey, now: Instant, idle: Duration) {
        let Some(state) = self.clients.get_mut(key) else {
            return;
        };
        if now.saturating_duration_since(state.used) >= idle {
            self.forget(key);
        } else {
            state.used = now;
        }
    }

    /// Returns the state of a client, and makes it for a new client.
    fn state(&mut self, key: &ClientKey, now: Instant, limits: &ClientLimits) -> &mut ClientState {
        self.touch(key, now, limits.idle);
        if !self.clients.contains_key(key) {
            let of_address = |other: &ClientKey| other.address == key.address;
            self.make_room(MOST_OF_ADDRESS, of_address);
            self.make_room(limits.clients, |_| true);
        }
        self.clients
            .entry(key.clone())
            .or_insert_with(|| ClientState {
                view: Arc::default(),
                is_recording: false,
                missing: MissingUrls::default(),
                used: now,
            })
    }

    /// Forgets the longest unused clients among some until there is room for one more.
    fn make_room(&mut self, most: usize, is_among: impl Fn(&ClientKey) -> bool) {
        loop {
            let among = self.clients.iter().filter(|(key, _)| is_among(key));
            let mut count = 0;
            let mut oldest = None::<(&ClientKey, Instant)>;
            for (key, state) in among {
                count += 1;
                if oldest.is_none_or(|(_, used)| state.used < used) {
                    oldest = Some((key, state.used));
                }
            }
            match oldest {
                Some((key, _)) if count >= most => {
                    let key = key.clone();
                    self.forget(&key);
                }
                _ => return,
            }
        }
    }

    fn forget(&mut self, key: &ClientKey) {
        if let Some(state) = self.clients.remove(key) {
            self.bytes = self.bytes.saturating_sub(state.missing.bytes());
        }
    }
}

impl ClientState {
    fn report(&self) -> ClientReport {
        ClientReport {
            view: Arc::clone(&self.view),
            is_recording: self.is_recording,
            missing: self.missing.urls().len(),
            omitted: self.missing.omitted(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_hours(1);

    fn clients() -> Clients {
        Clients::new(ClientLimits {
            clients: 200,
            urls: 3,
            bytes: 1000,
            idle: HOUR,
        })
    }

    fn key(number: u8, user: &str) -> ClientKey {
        ClientKey {
            address: IpAddr::from([10, 0, 0, number]),
            user: (!user.is_empty()).then(|| user.into()),
        }
    }

    fn view(collection: &str) -> ClientView {
        ClientView {
            collection: Some(collection.to_owned()),
            ..ClientView::default()
        }
    }

    /// Fails if one client changes what another client sees.
    #[test]
    fn clients_are_apart() {
        let clients = clients();
        let now = Instant::now();
        clients.set_view(&key(1, ""), now, view("a"));
        clients.set_view(&key(1, "anna"), now, view("b"));
        clients.set_recording(&key(2, ""), now, true);
        assert_eq!(*clients.client_view(&key(1, ""), now), view("a"));
        assert_eq!(*clients.client_view(&key(1, "anna"), now), view("b"));
        assert_eq!(
            *clients.client_view(&key(2, ""), now),
            ClientView::default()
        );
        assert!(clients.record_missing(&key(2, ""), now, "http://x/"));
        assert!(!clients.record_missing(&key(1, ""), now, "http://x/"));
        assert!(clients.missing_urls(&key(1, ""), now).is_empty());
    }

    /// Fails if a URL is recorded before recording begins, after it ends, twice, or if clearing ends the recording.
    #[test]
    fn missing_urls_are_recorded_while_asked() {
        let clients = clients();
        let now = Instant::now();
        let one = key(1, "");
        assert!(!clients.record_missing(&one, now, "http://early/"));
        clients.set_recording(&one, now, true);
        for url in ["http://b/", "http://a/", "http://b/"] {
            assert!(clients.record_missing(&one, now, url));
        }
        clients.set_recording(&one, now, false);
        assert!(!clients.record_missing(&one, now, "http://late/"));
        let urls = clients.missing_urls(&one, now);
        let urls: Vec<&str> = urls.iter().map(AsRef::as_ref).collect();
        assert_eq!(urls, ["http://a/", "http://b/"]);
        clients.set_recording(&one, now, true);
        clients.clear_client(&one, now);
        assert_eq!(clients.client_report(&one, now).missing, 0);
        assert!(clients.client_report(&one, now).is_recording);
    }

    /// Fails if the lists of clients grow without a limit, or what was left out is not said.
    #[test]
    fn lists_are_bounded() {
        let clients = clients();
        let now = Instant::now();
        let one = key(1, "");
        clients.set_recording(&one, now, true);
        for number in 0..5 {
            clients.record_missing(&one, now, &format!("http://{number}/"));
        }
        let report = clients.client_report(&one, now);
        assert_eq!((report.missing, report.omitted), (3, 2));
        let two = key(2, "");
        clients.set_recording(&two, now, true);
        assert!(!clients.record_missing(&two, now, &"x".repeat(2000)));
        clients.clear_client(&one, now);
        assert!(clients.record_missing(&one, now, "http://0/"));
        assert!(clients.table().bytes <= 1000);
    }

    /// Fails if clients are remembered beyond their number or their time, or an idle one comes back with its list.
    #[test]
    fn clients_are_forgotten() {
        let clients = clients();
        let now = Instant::now();
        for number in 0..=200 {
            clients.set_recording(&key(number, ""), now, true);
        }
        assert_eq!(clients.table().clients.len(), 200);
        let later = now + HOUR / 2;
        let kept = (0..=200).map(|number| key(number, ""));
        let kept = kept.filter(|key| clients.client_report(key, later).is_recording);
        assert_eq!(kept.count(), 200);
        clients.expire_clients(now + HOUR);
        assert_eq!(clients.table().clients.len(), 200, "they were used since");
        let late = later + HOUR;
        assert!(clients.missing_urls(&key(200, ""), late).is_empty());
        clients.expire_clients(late);
        assert_eq!(clients.table().clients.len(), 0);
        assert_eq!(clients.table().bytes, 0);
    }

    /// Fails if one address with ever new user names drives out the others.
    #[test]
    fn one_address_cannot_drive_out_others() {
        let clients = clients();
        let now = Instant::now();
        clients.set_view(&key(1, ""), now, view("mine"));
        let later = now + HOUR / 2;
        for number in 0..300 {
            clients.set_recording(&key(2, &number.to_string()), later, true);
        }
        assert_eq!(*clients.client_view(&key(1, ""), later), view("mine"));
        assert_eq!(clients.table().clients.len(), 101);
    }
}
