//! Ports for the parts, once and for all: they are written into the settings files, and not held while the archive
//! is stopped.
//!
//! So none is taken from the range out of which the kernel gives ports to outgoing connections: one of these would
//! sooner or later keep a part from starting again. Where to look first follows from the directory, so that several
//! archives on one machine look in different places.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::net::TcpListener;
use std::ops::Range;
use std::path::Path;

use archive_durable::read_state;
use tools_terminal::exit::Failure;

/// The file in which the kernel says from which ports it serves outgoing connections.
const OUTGOING: &str = "/proc/sys/net/ipv4/ip_local_port_range";

/// The lowest port that is used: below lie those of well-known services.
const LOWEST: u16 = 12_000;

/// The ports that an archive may take, in the order in which they are tried.
#[derive(Clone, Debug)]
pub(super) struct Ports {
    range: Range<u16>,
    /// Chooses the port of the range that is tried first.
    anywhere: u64,
}

impl Ports {
    /// Returns the ports for the archive of a data directory, beside those of outgoing connections.
    pub(super) fn for_directory(data: &Path) -> Self {
        let outgoing = read_state(Path::new(OUTGOING)).ok().flatten();
        let mut hasher = DefaultHasher::new();
        data.hash(&mut hasher);
        Self {
            range: listening_range(&String::from_utf8_lossy(&outgoing.unwrap_or_default())),
            anywhere: hasher.finish(),
        }
    }

    /// Returns the ports from one on that the operator names.
    pub(super) fn starting_at(first: u16) -> Self {
        Self {
            range: first..u16::MAX,
            anywhere: 0,
        }
    }
}

/// Returns addresses that are free now. All are held until all are found, so that they differ.
///
/// # Errors
///
/// Fails if fewer than `N` of the ports are free.
pub(super) fn free_addresses<const N: usize>(ports: &Ports) -> Result<[String; N], Failure> {
    let range = &ports.range;
    let mut held = Vec::new();
    for port in from(range, ports.anywhere) {
        if held.len() == N {
            break;
        }
        let address = format!("127.0.0.1:{port}");
        if let Ok(listener) = TcpListener::bind(&address) {
            held.push((address, listener));
        }
    }
    let addresses: Vec<String> = held.into_iter().map(|(address, _)| address).collect();
    addresses.try_into().map_err(|found: Vec<_>| {
        Failure::because_failed(format!(
            "of the ports {} to {} on 127.0.0.1 only {} are free, and {N} are needed",
            range.start,
            range.end,
            found.len()
        ))
    })
}

/// Returns the longer range of ports outside that of outgoing connections, as the kernel writes it; the usual one where
/// that is not known.
fn listening_range(outgoing: &str) -> Range<u16> {
    let mut words = outgoing.split_whitespace().map(str::parse);
    let (first, last) = match (words.next(), words.next()) {
        (Some(Ok(first)), Some(Ok(last))) => (first, last),
        _ => (32_768, 60_999),
    };
    let below = LOWEST..first.max(LOWEST);
    let above = last.saturating_add(1).max(LOWEST)..u16::MAX;
    if below.len() >= above.len() {
        below
    } else {
        above
    }
}

/// Returns all ports of a range, each once, beginning anywhere.
fn from(range: &Range<u16>, anywhere: u64) -> impl Iterator<Item = u16> + use<> {
    let length = u64::from(range.end.saturating_sub(range.start)).max(1);
    let skipped =
        u16::try_from(anywhere % length).expect("a range of ports has fewer than 65536 of them");
    let middle = range.start.saturating_add(skipped).min(range.end);
    (middle..range.end).chain(range.start..middle)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a part gets a port that the kernel may give to an outgoing connection, which would keep the part from
    /// starting again.
    #[test]
    fn outgoing_connections_are_kept_out_of_the_way() {
        for (outgoing, range) in [
            ("32768\t60999\n", 12_000..32_768),
            ("1024 65535", 12_000..12_000),
            ("10000 20000", 20_001..65_535),
            ("12001 65000", 65_001..65_535),
            ("", 12_000..32_768),
            ("none at all", 12_000..32_768),
        ] {
            assert_eq!(listening_range(outgoing), range, "{outgoing}");
        }
    }

    /// Fails if the search for a port skips one of its range, tries one for a second time, or does not end.
    #[test]
    fn every_port_is_tried_once() {
        for anywhere in [0, 1, 7, 9, 10, u64::MAX] {
            let mut tried: Vec<u16> = from(&(100..110), anywhere).collect();
            tried.sort_unstable();
            assert!(tried.into_iter().eq(100..110), "{anywhere}");
        }
        assert_eq!(from(&(5..5), 3).count(), 0);
    }

    /// Fails if two parts of a new archive get one address, or a part gets one that is in use.
    #[test]
    fn addresses_differ_and_are_free() {
        let addresses: [String; 6] =
            free_addresses(&Ports::for_directory(Path::new("somewhere"))).unwrap();
        let listeners: Vec<_> = addresses.iter().map(TcpListener::bind).collect();
        assert!(listeners.iter().all(Result::is_ok), "{addresses:?}");
    }
}
