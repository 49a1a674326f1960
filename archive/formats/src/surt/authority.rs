//! The host of a key, turned round, with its port.

use std::net::Ipv4Addr;

use idna::uts46::{AsciiDenyList, DnsLength, Hyphens, Uts46};

use super::escape;

/// Returns `user@www.Example.org:8080` as `org,example:8080`; empty if there is no host.
pub(super) fn canonical_authority(scheme: &str, authority: &[u8]) -> String {
    let place = match authority.iter().rposition(|b| *b == b'@') {
        Some(at) => authority.get(at + 1..).unwrap_or_default(),
        None => authority,
    };
    let (host, port) = split_port(place);
    let mut key = reversed(host);
    if !key.is_empty()
        && let Some(port) = port_key(scheme, port)
    {
        key.push(':');
        key.push_str(&port);
    }
    key
}

/// Returns the host without brackets, and the text behind its colon.
fn split_port(place: &[u8]) -> (&[u8], &[u8]) {
    if let Some(inner) = place.strip_prefix(b"[") {
        let end = inner.iter().position(|b| *b == b']').unwrap_or(inner.len());
        let behind = inner.get(end + 1..).unwrap_or_default();
        return (
            inner.get(..end).unwrap_or_default(),
            behind.strip_prefix(b":").unwrap_or_default(),
        );
    }
    let mut colons = place
        .iter()
        .enumerate()
        .filter(|(_, b)| **b == b':')
        .map(|(at, _)| at);
    match (colons.next(), colons.next()) {
        (Some(at), None) => (
            place.get(..at).unwrap_or_default(),
            place.get(at + 1..).unwrap_or_default(),
        ),
        // An IPv6 address without its brackets, or nonsense, is a host as a whole.
        _ => (place, b""),
    }
}

/// Returns the port, unless it is missing or the scheme's own. Text that is not a number is kept.
fn port_key(scheme: &str, port: &[u8]) -> Option<String> {
    let text = escape::canonical_escapes(port);
    let digits = text.bytes().all(|b| b.is_ascii_digit());
    let number = text.trim_start_matches('0');
    match (scheme, number) {
        (_, "") if digits => None,
        ("http", "80") | ("https", "443") => None,
        _ if digits => Some(number.to_owned()),
        _ => Some(text),
    }
}

fn reversed(raw: &[u8]) -> String {
    let host = ascii(escape::unescape_bytes(raw)).to_ascii_lowercase();
    let labels: Vec<&str> = host.split('.').filter(|label| !label.is_empty()).collect();
    if let Some(address) = ipv4(&labels) {
        let mut octets = address.octets();
        octets.reverse();
        return octets.map(|octet| octet.to_string()).join(",");
    }
    let labels = match labels.as_slice() {
        [first, rest @ ..] if !rest.is_empty() && is_www(first) => rest,
        all => all,
    };
    let mut key = String::with_capacity(host.len());
    for label in labels.iter().rev() {
        if !key.is_empty() {
            key.push(',');
        }
        key.push_str(label);
    }
    key
}

/// Returns whether a label is `www`, `www2`, `www34` and so on.
pub(super) fn is_www(label: &str) -> bool {
    label.split_at_checked(3).is_some_and(|(www, number)| {
        www.eq_ignore_ascii_case("www") && number.bytes().all(|b| b.is_ascii_digit())
    })
}

/// Returns the host in ASCII: in Punycode if possible, else escaped.
fn ascii(host: Vec<u8>) -> String {
    if host.is_ascii() {
        return escape::escape_bytes(&host);
    }
    let text = match String::from_utf8(host) {
        Ok(text) => text,
        Err(error) => return escape::escape_bytes(error.as_bytes()),
    };
    // The keys of the field are made with the mappings of IDNA 2003; UTS 46 without its transition lacks them.
    let mut mapped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            'ß' | 'ẞ' => mapped.push_str("ss"),
            'ς' => mapped.push('σ'),
            '\u{200c}' | '\u{200d}' => {}
            '。' | '．' | '｡' => mapped.push('.'),
            other => mapped.push(other),
        }
    }
    let labels: Vec<&str> = mapped
        .split('.')
        .filter(|label| !label.is_empty())
        .collect();
    let mut out = String::new();
    for label in labels {
        let punycode = Uts46::new().to_ascii(
            label.as_bytes(),
            AsciiDenyList::EMPTY,
            Hyphens::Allow,
            DnsLength::Verify,
        );
        if !out.is_empty() {
            out.push('.');
        }
        let label = punycode.unwrap_or(label.into());
        out.push_str(&escape::escape_bytes(label.as_bytes()));
    }
    out
}

/// Returns the address that one number, or two to four of them, mean in the notation of old resolvers.
///
/// Numbers behind a leading `0` are octal, but not a number alone, which wraps: the keys of the field have always been
/// so.
fn ipv4(labels: &[&str]) -> Option<Ipv4Addr> {
    if labels.len() > 4
        || labels
            .iter()
            .any(|l| !l.bytes().all(|b| b.is_ascii_digit()))
    {
        return None;
    }
    if let [alone] = labels {
        let number = alone.bytes().fold(0_u32, |n, b| {
            n.wrapping_mul(10).wrapping_add(u32::from(b - b'0'))
        });
        return Some(number.into());
    }
    let (last, first) = labels.split_last()?;
    let mut address: u32 = 0;
    let mut shift = 24;
    for label in first {
        address |= u32::from(u8::try_from(part(label)?).ok()?) << shift;
        shift -= 8;
    }
    let room = 1_u64 << (shift + 8);
    let last = u64::from(part(last)?);
    if last >= room {
        return None;
    }
    Some((address | u32::try_from(last).ok()?).into())
}

fn part(label: &str) -> Option<u32> {
    if label.len() > 1 && label.starts_with('0') {
        u32::from_str_radix(label, 8).ok()
    } else {
        label.parse().ok()
    }
}

#[cfg(test)]
pub(super) fn dotted_address(host: &str) -> Option<String> {
    let labels: Vec<&str> = host.split('.').filter(|label| !label.is_empty()).collect();
    ipv4(&labels).map(|address| address.to_string())
}
