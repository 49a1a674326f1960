//! Ports for the servers of a test, which no other test gets as long as it has them.
//!
//! A port that was free a moment ago may belong to another test by the time a server listens on it. A [`PortBlock`] is
//! claimed until it is dropped, whether its servers run or not, and by one process of the machine at a time.

use std::net::{Ipv4Addr, TcpListener, UdpSocket};

/// The lowest port of all blocks: `holdfast up` and the kernel choose higher ones by themselves.
const LOWEST: u16 = 10_000;

/// The number of ports of a block.
const SIZE: u16 = 32;

/// The number of blocks.
const BLOCKS: u16 = 62;

/// Ports on loopback that belong to a test.
#[derive(Debug)]
pub struct PortBlock {
    first: u16,
    /// Holds the claim: a socket for datagrams, which no server needs, on the first port.
    _claim: UdpSocket,
}

impl PortBlock {
    /// Claims a block whose ports are all free.
    ///
    /// # Panics
    ///
    /// Panics if somebody uses a port of each block.
    #[must_use]
    #[expect(clippy::panic, reason = "a test that has no ports fails")]
    pub fn claim() -> Self {
        let starts = (0..BLOCKS).map(|block| LOWEST.saturating_add(block.saturating_mul(SIZE)));
        let claimed = starts.filter_map(|first| {
            let claim = UdpSocket::bind((Ipv4Addr::LOCALHOST, first)).ok()?;
            let mut ports = first..first.saturating_add(SIZE);
            let is_free = |port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok();
            ports.all(is_free).then_some(Self {
                first,
                _claim: claim,
            })
        });
        let Some(block) = { claimed }.next() else {
            panic!("somebody uses a port of each of the {BLOCKS} blocks from {LOWEST} on");
        };
        block
    }

    /// Returns the first port; the others follow it.
    #[must_use]
    pub const fn first(&self) -> u16 {
        self.first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if two tests get the same ports, though the servers of the first do not run yet.
    #[test]
    fn claimed_blocks_differ() {
        let blocks = [PortBlock::claim(), PortBlock::claim()];
        assert!(blocks[0].first().abs_diff(blocks[1].first()) >= SIZE);
        for port in blocks[0].first()..blocks[0].first() + SIZE {
            TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
        }
    }

    /// Fails if a block is given out in which somebody listens.
    #[test]
    fn block_with_server_is_passed_over() {
        let block = PortBlock::claim();
        let first = block.first();
        let server = block.first() + SIZE - 1;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, server)).unwrap();
        drop(block);
        assert_ne!(PortBlock::claim().first(), first);
        drop(listener);
    }
}
