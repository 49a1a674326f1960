//! Which addresses a crawl may connect to.
//!
//! Owns the addresses that are no place of the public web (IANA's special-purpose address registries, RFC 6890): a page
//! of the public web must not lead the crawler to the machines of the institution. They are reached only if the job
//! allows their network. Looks at addresses and not at names, because anybody's name server may answer with any
//! address: it is asked for each address right before it is connected to.
//!
//! ```
//! use harvest_policy::address::{AddressNetwork, decide_address};
//!
//! let intranet: AddressNetwork = "10.20.0.0/16".parse()?;
//! assert!(decide_address("93.184.216.34".parse()?, &[]).is_ok());
//! assert!(decide_address("10.20.1.1".parse()?, &[]).is_err());
//! assert!(decide_address("10.20.1.1".parse()?, &[intranet]).is_ok());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// Stands for the address of a host which only a proxy knows.
pub const BEHIND_PROXY: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

/// The reason why an address is no place of the public web.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SpecialPurpose {
    /// No address yet (RFC 1122 §3.2.1.3, RFC 4291 §2.5.2).
    Unspecified,
    /// The crawler's own machine.
    Loopback,
    /// A network of one organisation (RFC 1918, RFC 4193, RFC 3879).
    Private,
    /// A network between a provider and its customers (RFC 6598).
    Shared,
    /// The crawler's own link (RFC 3927, RFC 4291 §2.5.6).
    LinkLocal,
    /// Several machines at once (RFC 1112, RFC 4291 §2.7, RFC 919).
    Multicast,
    /// Examples in documents (RFC 5737, RFC 3849, RFC 9637).
    Documentation,
    /// Measurements of devices (RFC 2544).
    Benchmarking,
    /// Protocols of their own, or no use yet.
    Reserved,
}

impl SpecialPurpose {
    /// Returns the adjective for the purpose in a sentence.
    const fn adjective(self) -> &'static str {
        match self {
            Self::Unspecified => "an unspecified",
            Self::Loopback => "a loopback",
            Self::Private => "a private",
            Self::Shared => "a shared (carrier-grade NAT)",
            Self::LinkLocal => "a link-local",
            Self::Multicast => "a multicast",
            Self::Documentation => "a documentation",
            Self::Benchmarking => "a benchmarking",
            Self::Reserved => "a reserved",
        }
    }
}

/// An address that a crawl may not connect to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{address} is {} address, where pages of the public web must not lead; allow its network in the order if it shall be \
     crawled",
    .purpose.adjective()
)]
pub struct ForbiddenAddress {
    /// The address that is not connected to.
    pub address: IpAddr,
    /// The purpose that forbids the address.
    pub purpose: SpecialPurpose,
}

/// Decides whether a crawl may connect to an address. `allowed`: the networks that the job allows whatever they are.
///
/// An IPv6 address that only stands for an IPv4 address (IPv4-mapped, 6to4, NAT64) is decided by that one.
///
/// # Errors
///
/// [`ForbiddenAddress`] says what kind of address it is.
pub fn decide_address(address: IpAddr, allowed: &[AddressNetwork]) -> Result<(), ForbiddenAddress> {
    let reached = embedded_ipv4(address).map_or(address, IpAddr::V4);
    let is_allowed =
        |network: &AddressNetwork| network.contains(address) || network.contains(reached);
    match special_purpose(reached) {
        Some(purpose) if !allowed.iter().any(is_allowed) => {
            Err(ForbiddenAddress { address, purpose })
        }
        _ => Ok(()),
    }
}

/// Returns the IPv4 address that an IPv6 address stands for: IPv4-mapped (RFC 4291 §2.5.5.2), 6to4 (RFC 3056), NAT64
/// (RFC 6052).
fn embedded_ipv4(address: IpAddr) -> Option<Ipv4Addr> {
    let IpAddr::V6(address) = address else {
        return None;
    };
    let [first, second, a, b, c, d, ..] = address.octets();
    if [first, second] == [0x20, 0x02] {
        return Some(Ipv4Addr::new(a, b, c, d));
    }
    let [.., a, b, c, d] = address.octets();
    let is_nat64 = NAT64.contains(IpAddr::V6(address));
    (is_nat64 || address.to_ipv4_mapped().is_some()).then_some(Ipv4Addr::new(a, b, c, d))
}

const NAT64: AddressNetwork = v6(0x0064_ff9b << 96, 96);

/// The blocks of the IPv4 registry that are not globally reachable. Of two that overlap the narrower one stands first.
const SPECIAL_V4: [(AddressNetwork, SpecialPurpose); 17] = [
    (v4([0, 0, 0, 0], 8), SpecialPurpose::Unspecified),
    (v4([10, 0, 0, 0], 8), SpecialPurpose::Private),
    (v4([100, 64, 0, 0], 10), SpecialPurpose::Shared),
    (v4([127, 0, 0, 0], 8), SpecialPurpose::Loopback),
    (v4([169, 254, 0, 0], 16), SpecialPurpose::LinkLocal),
    (v4([172, 16, 0, 0], 12), SpecialPurpose::Private),
    // With two anycast services (RFC 7723, RFC 8155) that are no web servers.
    (v4([192, 0, 0, 0], 24), SpecialPurpose::Reserved),
    (v4([192, 0, 2, 0], 24), SpecialPurpose::Documentation),
    // Relays of 6to4, withdrawn by RFC 7526.
    (v4([192, 88, 99, 0], 24), SpecialPurpose::Reserved),
    (v4([192, 168, 0, 0], 16), SpecialPurpose::Private),
    (v4([198, 18, 0, 0], 15), SpecialPurpose::Benchmarking),
    (v4([198, 51, 100, 0], 24), SpecialPurpose::Documentation),
    (v4([203, 0, 113, 0], 24), SpecialPurpose::Documentation),
    (v4([233, 252, 0, 0], 24), SpecialPurpose::Documentation),
    (v4([224, 0, 0, 0], 4), SpecialPurpose::Multicast),
    (v4([255, 255, 255, 255], 32), SpecialPurpose::Multicast),
    (v4([240, 0, 0, 0], 4), SpecialPurpose::Reserved),
];

/// The blocks of the IPv6 registry that are not globally reachable. Of two that overlap the narrower one stands first.
const SPECIAL_V6: [(AddressNetwork, SpecialPurpose); 10] = [
    (v6(0, 128), SpecialPurpose::Unspecified),
    (v6(1, 128), SpecialPurpose::Loopback),
    // Teredo, ORCHID and other protocols; the services in it that are reachable are no web servers.
    (v6(0x2001_0000 << 96, 23), SpecialPurpose::Reserved),
    (v6(0x2001_0db8 << 96, 32), SpecialPurpose::Documentation),
    (v6(0x3fff_0000 << 96, 20), SpecialPurpose::Documentation),
    (v6(0xfc00_0000 << 96, 7), SpecialPurpose::Private),
    (v6(0xfe80_0000 << 96, 10), SpecialPurpose::LinkLocal),
    (v6(0xfec0_0000 << 96, 10), SpecialPurpose::Private),
    (v6(0xff00_0000 << 96, 8), SpecialPurpose::Multicast),
    (v6(0, 0), SpecialPurpose::Reserved),
];

/// All addresses of IPv6 that are given to hosts (RFC 4291 §2.4). The rest is special or has no use yet.
const GLOBAL_UNICAST: AddressNetwork = v6(0x2000_0000 << 96, 3);

/// Returns the special purpose of an address that stands for itself.
fn special_purpose(address: IpAddr) -> Option<SpecialPurpose> {
    let special: &[_] = match address {
        IpAddr::V4(_) => &SPECIAL_V4,
        IpAddr::V6(_) => &SPECIAL_V6,
    };
    let (network, purpose) = special
        .iter()
        .find(|(network, _)| network.contains(address))?;
    let is_global = network.length == 0 && GLOBAL_UNICAST.contains(address);
    (!is_global).then_some(*purpose)
}

const fn v4(octets: [u8; 4], length: u8) -> AddressNetwork {
    let [a, b, c, d] = octets;
    AddressNetwork {
        address: IpAddr::V4(Ipv4Addr::new(a, b, c, d)),
        length,
    }
}

const fn v6(address: u128, length: u8) -> AddressNetwork {
    AddressNetwork {
        address: IpAddr::V6(Ipv6Addr::from_bits(address)),
        length,
    }
}

/// A network to which a crawl may or may not connect, in the notation of CIDR (RFC 4632, RFC 4291 §2.3): `10.0.0.0/8`,
/// `fd00::/8`. An address by itself is a network of one.
///
/// The `AddressNetwork` of `viewer-replay` is another type: it says where visitors come from, and takes an IPv4 address within
/// IPv6 for the IPv4 address. Here an address is taken as it stands, and [`decide_address`] looks for both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AddressNetwork {
    address: IpAddr,
    length: u8,
}

/// The reason why a text is no network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidAddressNetwork {
    /// The text in front of the slash is no address.
    #[error("`{0}` is no network; write for example `10.0.0.0/8` or `fd00::/8`")]
    Address(String),
    /// The text behind the slash is no number, or too large a one.
    #[error("`{text}` is no network; write a number from 0 to {most} behind the slash")]
    Length {
        /// The text that should be a network.
        text: String,
        /// The most bits of a prefix.
        most: u8,
    },
    /// Bits are set behind the prefix: it is not clear which network is meant.
    #[error("`{text}` is an address in a network, and not the network; write `{network}`")]
    HostBits {
        /// The text that should be a network.
        text: String,
        /// The network that this address belongs to.
        network: AddressNetwork,
    },
}

impl AddressNetwork {
    /// Returns the network of one address.
    pub const fn of_one(address: IpAddr) -> Self {
        Self {
            address,
            length: bits(address),
        }
    }

    /// Returns whether an address is in the network. An IPv4 address is in no IPv6 network.
    pub fn contains(&self, address: IpAddr) -> bool {
        bits(self.address) == bits(address)
            && number(self.address) & self.mask() == number(address) & self.mask()
    }

    /// Returns the bits of the prefix, at the low end of the number for IPv4.
    fn mask(&self) -> u128 {
        let host_bits = u32::from(bits(self.address).saturating_sub(self.length));
        u128::MAX.checked_shl(host_bits).unwrap_or(0)
    }
}

/// Returns the number of bits of an address.
const fn bits(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(address.to_bits()),
        IpAddr::V6(address) => address.to_bits(),
    }
}

impl FromStr for AddressNetwork {
    type Err = InvalidAddressNetwork;

    fn from_str(text: &str) -> Result<Self, InvalidAddressNetwork> {
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        let no_address = |_| InvalidAddressNetwork::Address(text.to_owned());
        let address: IpAddr = address.parse().map_err(no_address)?;
        let most = bits(address);
        let length = match length.map(str::parse) {
            None => most,
            Some(Ok(length)) if length <= most => length,
            Some(_) => {
                let text = text.to_owned();
                return Err(InvalidAddressNetwork::Length { text, most });
            }
        };
        let network = Self { address, length };
        let first = number(address) & network.mask();
        if first == number(address) {
            return Ok(network);
        }
        let first = match address {
            IpAddr::V4(_) => {
                u32::try_from(first).map_or(address, |bits| Ipv4Addr::from_bits(bits).into())
            }
            IpAddr::V6(_) => Ipv6Addr::from_bits(first).into(),
        };
        Err(InvalidAddressNetwork::HostBits {
            text: text.to_owned(),
            network: Self {
                address: first,
                length,
            },
        })
    }
}

impl fmt::Display for AddressNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

#[cfg(test)]
mod tests;
