//! Visitors: who asks, as far as the network and trusted proxies say.
//!
//! Owns how the address of a peer and the headers of a request become groups. Nobody is anyone before this says so:
//! headers of a peer that is no trusted proxy have no meaning. People with names come with login, elsewhere.

use std::collections::BTreeSet;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use serde::Deserialize;
use thiserror::Error;

/// A group of visitors, as rules name it in `user`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(try_from = "String")]
pub struct Group(Box<str>);

/// A text that cannot be the name of a group.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{}` is not the name of a group; use 1 to 100 characters without control characters, and without blanks around them", .0.escape_debug())]
pub struct InvalidGroup(String);

impl Group {
    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Group {
    type Err = InvalidGroup;

    fn from_str(text: &str) -> Result<Self, InvalidGroup> {
        let is_sound = !text.is_empty()
            && text.chars().count() <= 100
            && text.trim() == text
            && !text.contains(char::is_control);
        if is_sound {
            Ok(Self(text.into()))
        } else {
            Err(InvalidGroup(text.chars().take(120).collect()))
        }
    }
}

impl TryFrom<String> for Group {
    type Error = InvalidGroup;

    fn try_from(text: String) -> Result<Self, InvalidGroup> {
        text.parse()
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A visitor: anonymous, and in any number of groups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Visitor {
    groups: BTreeSet<Group>,
}

impl Visitor {
    /// Returns a visitor of whom nothing is known.
    pub fn anonymous() -> Self {
        Self::default()
    }

    /// Returns a visitor in these groups.
    pub fn of_groups(groups: impl IntoIterator<Item = Group>) -> Self {
        Self {
            groups: groups.into_iter().collect(),
        }
    }

    /// Returns whether nothing is known of the visitor.
    pub fn is_anonymous(&self) -> bool {
        self.groups.is_empty()
    }

    /// Returns the groups, sorted.
    pub fn groups(&self) -> impl Iterator<Item = &Group> {
        self.groups.iter()
    }
}

/// A network from which visitors come, as a range of addresses: `192.0.2.0/24`, `2001:db8::/32`, or one address.
///
/// The `VisitorNetwork` of `harvest-policy` is another type: it says where a crawl may connect to, can be written back, and
/// takes an address as it stands. Neither crate depends on the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(try_from = "String")]
pub struct VisitorNetwork {
    first: u128,
    last: u128,
    is_v4: bool,
}

/// The reason why a text is no network.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InvalidVisitorNetwork {
    /// The text has no address, or no number behind the slash.
    #[error("`{0}` is not a network; write 192.0.2.0/24, 2001:db8::/32 or one address")]
    Syntax(String),
    /// More bits than an address has.
    #[error("`{0}` has a longer prefix than an address has bits")]
    Prefix(String),
    /// Bits behind the prefix are set: a mistake in the address or in the prefix.
    #[error("`{0}` has bits set behind its prefix; one of the two is a mistake")]
    HostBits(String),
    /// An IPv4 address that is written as one of IPv6.
    #[error("`{0}` is an IPv4 network within IPv6; write it as IPv4, such as 192.0.2.0/24")]
    Mapped(String),
}

impl VisitorNetwork {
    /// Returns whether an address lies in the network. An IPv4 address within IPv6 (`::ffff:192.0.2.1`) is the IPv4
    /// address.
    pub fn contains(&self, address: IpAddr) -> bool {
        let (bits, is_v4) = bits(address.to_canonical());
        is_v4 == self.is_v4 && (self.first..=self.last).contains(&bits)
    }
}

fn bits(address: IpAddr) -> (u128, bool) {
    match address {
        IpAddr::V4(address) => (u128::from(address.to_bits()), true),
        IpAddr::V6(address) => (address.to_bits(), false),
    }
}

impl FromStr for VisitorNetwork {
    type Err = InvalidVisitorNetwork;

    fn from_str(text: &str) -> Result<Self, InvalidVisitorNetwork> {
        let syntax = || InvalidVisitorNetwork::Syntax(text.to_owned());
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => {
                let is_number = !prefix.is_empty() && prefix.bytes().all(|b| b.is_ascii_digit());
                let prefix = is_number.then(|| prefix.parse::<u32>());
                let prefix = prefix.and_then(Result::ok).ok_or_else(syntax)?;
                (address, Some(prefix))
            }
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_error| syntax())?;
        // Clients of version 4 are compared as such, however a socket writes them: it would match no client.
        if address.to_canonical() != address {
            return Err(InvalidVisitorNetwork::Mapped(text.to_owned()));
        }
        let (bits, is_v4) = bits(address);
        let width = if is_v4 {
            Ipv4Addr::BITS
        } else {
            Ipv6Addr::BITS
        };
        let prefix = prefix.unwrap_or(width);
        let host = width
            .checked_sub(prefix)
            .ok_or_else(|| InvalidVisitorNetwork::Prefix(text.to_owned()))?;
        let mask = 1_u128
            .checked_shl(host)
            .map_or(u128::MAX, |size| size.wrapping_sub(1));
        if bits & mask != 0 {
            return Err(InvalidVisitorNetwork::HostBits(text.to_owned()));
        }
        Ok(Self {
            first: bits,
            last: bits | mask,
            is_v4,
        })
    }
}

impl TryFrom<String> for VisitorNetwork {
    type Error = InvalidVisitorNetwork;

    fn try_from(text: String) -> Result<Self, InvalidVisitorNetwork> {
        text.parse()
    }
}

/// The facts of a request that may say who a visitor is.
#[derive(Clone, Copy, Debug, Default)]
pub struct PeerFacts<'a> {
    /// The address of the other end of the connection; `None` where there is no address, as with a socket in the file
    /// system.
    pub address: Option<IpAddr>,
    /// The values of all `X-Pywb-ACL-User` fields.
    pub acl_user: &'a [&'a [u8]],
    /// The values of all `X-Forwarded-For` fields.
    pub forwarded_for: &'a [&'a [u8]],
}

/// The settings that give visitors their groups.
#[derive(Clone, Debug, Default)]
pub struct VisitorSettings {
    /// Groups by network: a reading room, an office.
    pub networks: Vec<(VisitorNetwork, Group)>,
    /// The proxies whose headers are believed.
    pub trusted_proxies: Vec<VisitorNetwork>,
}

impl VisitorSettings {
    /// Returns the visitor behind a request.
    ///
    /// A trusted proxy speaks for the client: `X-Pywb-ACL-User` names a group, and the last address of
    /// `X-Forwarded-For` that is no trusted proxy is the client's. Where the proxy does not say it, no network is
    /// assumed: the proxy stands in the house, and its own network would make every stranger a member of it. Several
    /// different users in one request come from a client that sent the header itself, so that none of them is believed.
    pub fn identify_visitor(&self, facts: &PeerFacts<'_>) -> Visitor {
        let Some(peer) = facts.address else {
            return Visitor::anonymous();
        };
        if !self.is_trusted(peer) {
            return Visitor::of_groups(self.groups_at(peer));
        }
        let client = self.client(facts.forwarded_for);
        let network_groups = client
            .into_iter()
            .flat_map(|address| self.groups_at(address));
        Visitor::of_groups(network_groups.chain(named_group(facts.acl_user)))
    }

    fn is_trusted(&self, address: IpAddr) -> bool {
        self.trusted_proxies
            .iter()
            .any(|network| network.contains(address))
    }

    fn groups_at(&self, address: IpAddr) -> impl Iterator<Item = Group> {
        let inside = self
            .networks
            .iter()
            .filter(move |(network, _)| network.contains(address));
        inside.map(|(_, group)| group.clone())
    }

    /// Returns the address of the client: the last one that is no trusted proxy, if nothing unreadable stands behind
    /// it.
    fn client(&self, forwarded_for: &[&[u8]]) -> Option<IpAddr> {
        let lines = forwarded_for.iter().rev();
        for member in lines.flat_map(|line| line.rsplit(|byte| *byte == b',')) {
            let member = str::from_utf8(member.trim_ascii()).ok()?;
            let address = address_of(member)?;
            if !self.is_trusted(address) {
                return Some(address);
            }
        }
        None
    }
}

/// Returns an address, also in brackets or with a port, as proxies write them.
fn address_of(text: &str) -> Option<IpAddr> {
    let direct = text.parse().ok();
    let with_port = || {
        text.parse()
            .ok()
            .map(|socket: std::net::SocketAddr| socket.ip())
    };
    let bare = || text.strip_prefix('[')?.strip_suffix(']')?.parse().ok();
    direct.or_else(with_port).or_else(bare)
}

fn named_group(values: &[&[u8]]) -> Option<Group> {
    let mut values = values.iter().map(|value| value.trim_ascii());
    let first = values.next()?;
    if values.any(|value| value != first) {
        return None;
    }
    str::from_utf8(first).ok()?.parse().ok()
}
