//! Turns at addresses: how many requests an address has at a time, and when it has the next one.
//!
//! Owns politeness by address, whichever queues the requests come from: many hosts of many domains may live at one
//! address. An address has a number of places; each takes one request at a time, and rests after it. A request asks with
//! a ticket; it may go at once, or its ticket comes up when a place is free. Takes time as a value.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::net::IpAddr;
use std::num::NonZeroU16;

use crate::turns::CrawlMoment;

/// The number by which a request is known.
pub type RequestTicket = u64;

#[derive(Debug, Default)]
struct AddressState {
    in_process: usize,
    /// The places that rest, by the end of their rest.
    resting: Vec<CrawlMoment>,
    waiting: VecDeque<RequestTicket>,
}

impl AddressState {
    /// Returns whether a place is free now.
    fn is_free(&mut self, now: CrawlMoment, places: usize) -> bool {
        self.resting.retain(|until| *until > now);
        self.in_process + self.resting.len() < places
    }
}

/// The addresses of a crawl that have requests under way, waiting ones, or rest.
#[derive(Debug)]
pub struct AddressTurns {
    /// The places of an address.
    places: usize,
    addresses: HashMap<IpAddr, AddressState>,
    /// The addresses at which a place rests, by the end of its rest.
    resting: BTreeSet<(CrawlMoment, IpAddr)>,
}

impl AddressTurns {
    /// Makes turns without requests; each address will have at most `places` of them at a time.
    pub fn new(places: NonZeroU16) -> Self {
        Self {
            places: places.get().into(),
            addresses: HashMap::new(),
            resting: BTreeSet::new(),
        }
    }

    /// Gives each address another number of places from now on. Requests under way go on.
    pub fn set_places(&mut self, places: NonZeroU16) {
        self.places = places.get().into();
    }

    /// Asks for a request to an address. Returns whether it may go now, and counts as under way; else its ticket comes
    /// up later.
    pub fn ask_turn(&mut self, address: IpAddr, ticket: RequestTicket, now: CrawlMoment) -> bool {
        let state = self.addresses.entry(address).or_default();
        let may_go = state.waiting.is_empty() && state.is_free(now, self.places);
        if may_go {
            state.in_process += 1;
        } else {
            state.waiting.push_back(ticket);
        }
        may_go
    }

    /// Takes note that a request to an address has ended; its place rests until a moment.
    pub fn end_request(&mut self, address: IpAddr, rests_until: CrawlMoment) {
        let Some(state) = self.addresses.get_mut(&address) else {
            return;
        };
        state.in_process = state.in_process.saturating_sub(1);
        state.resting.push(rests_until);
        self.resting.insert((rests_until, address));
    }

    /// Returns the tickets that may go now; they count as under way.
    pub fn take_due(&mut self, now: CrawlMoment) -> Vec<(RequestTicket, IpAddr)> {
        let mut due = Vec::new();
        while let Some((moment, address)) = self.resting.first().copied() {
            if moment > now {
                break;
            }
            self.resting.pop_first();
            let Some(state) = self.addresses.get_mut(&address) else {
                continue;
            };
            while state.is_free(now, self.places) {
                let Some(ticket) = state.waiting.pop_front() else {
                    break;
                };
                state.in_process += 1;
                due.push((ticket, address));
            }
            if state.in_process == 0 && state.resting.is_empty() && state.waiting.is_empty() {
                self.addresses.remove(&address);
            }
        }
        due
    }

    /// Returns the moment at which tickets may come up; `None` before a request ends.
    pub fn next_due(&self) -> Option<CrawlMoment> {
        self.resting.first().map(|(moment, _)| *moment)
    }

    /// Returns the number of tickets that wait for one address.
    pub fn waiting_at(&self, address: IpAddr) -> usize {
        let state = self.addresses.get(&address);
        state.map_or(0, |state| state.waiting.len())
    }

    /// Returns the number of tickets that wait.
    pub fn count_waiting(&self) -> usize {
        self.addresses
            .values()
            .map(|state| state.waiting.len())
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(number: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, number])
    }

    fn places(number: u16) -> NonZeroU16 {
        NonZeroU16::new(number).unwrap()
    }

    fn second(number: u64) -> CrawlMoment {
        CrawlMoment::from_secs(number)
    }

    /// Fails if an address is asked while it rests or is busy, or another address waits for it.
    #[test]
    fn address_is_asked_once_and_after_its_rest() {
        let mut turns = AddressTurns::new(places(1));
        assert!(turns.ask_turn(address(1), 1, second(0)));
        assert!(!turns.ask_turn(address(1), 2, second(0)));
        assert_eq!(
            [1, 2].map(|number| turns.waiting_at(address(number))),
            [1, 0]
        );
        assert!(turns.ask_turn(address(2), 3, second(0)));
        assert_eq!(turns.take_due(second(9)), []);
        turns.end_request(address(1), second(12));
        assert_eq!(turns.next_due(), Some(second(12)));
        assert_eq!(turns.take_due(second(11)), []);
        assert_eq!(turns.take_due(second(12)), [(2, address(1))]);
        turns.end_request(address(1), second(20));
        assert!(!turns.ask_turn(address(1), 4, second(19)));
        assert_eq!(turns.take_due(second(20)), [(4, address(1))]);
    }

    /// Fails if an address has more requests in a time than its places give, or one that rests keeps the others waiting.
    #[test]
    fn places_rest_one_by_one() {
        let mut turns = AddressTurns::new(places(2));
        assert!(turns.ask_turn(address(1), 1, second(0)));
        turns.end_request(address(1), second(9));
        assert!(turns.ask_turn(address(1), 2, second(1)));
        assert!(!turns.ask_turn(address(1), 3, second(1)));
        turns.end_request(address(1), second(5));
        assert_eq!(turns.take_due(second(4)), []);
        assert_eq!(turns.take_due(second(5)), [(3, address(1))]);
        assert!(!turns.ask_turn(address(1), 4, second(8)));
        assert_eq!(turns.take_due(second(9)), [(4, address(1))]);
    }

    /// Fails if a ticket is lost, comes up twice or out of its order, or an idle address stays in memory.
    #[test]
    fn every_ticket_comes_up_once_in_order() {
        for connections in 1..4 {
            let mut turns = AddressTurns::new(places(connections));
            let mut under_way = VecDeque::new();
            let mut went = Vec::new();
            for ticket in 0..50 {
                if turns.ask_turn(address(1), ticket, second(0)) {
                    under_way.push_back(ticket);
                }
            }
            let mut now = 0;
            while let Some(ticket) = under_way.pop_front() {
                assert!(under_way.len() < usize::from(connections));
                went.push(ticket);
                now += 1;
                turns.end_request(address(1), second(now + 3));
                now += 3;
                let due = turns.take_due(second(now));
                under_way.extend(due.into_iter().map(|(ticket, _)| ticket));
            }
            assert_eq!(went, (0..50).collect::<Vec<_>>(), "{connections}");
            assert_eq!((turns.count_waiting(), turns.addresses.len()), (0, 0));
        }
    }
}
