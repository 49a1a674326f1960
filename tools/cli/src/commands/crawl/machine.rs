//! The name and the address of this machine, for the documentation of a crawl.

use std::net::{IpAddr, Ipv4Addr, UdpSocket};

/// Returns the name of this machine, as file names may have it.
pub(super) fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let allowed = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-');
    let name: String = name.trim().chars().filter(allowed).collect();
    if name.is_empty() {
        "localhost".to_owned()
    } else {
        name
    }
}

/// Returns the address that this machine has towards the public web; nothing is sent to find it.
pub(super) fn own_address() -> IpAddr {
    let address = || {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
        // An address for documentation (RFC 5737): the way to it is the way to all others.
        socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9)).ok()?;
        Some(socket.local_addr().ok()?.ip())
    };
    address().unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST))
}
