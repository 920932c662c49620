//! [`is_public`]: which addresses a model may name. Pure.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether an address is one of the public internet. Addresses of this machine, of private and local
/// networks, for documentation, tests and multicast, and those that embed such an IPv4 address, are not.
///
/// ```
/// use gaia_agent::net::is_public;
///
/// assert!(is_public("93.184.215.14".parse().unwrap()));
/// assert!(!is_public("127.0.0.1".parse().unwrap()));
/// assert!(!is_public("::ffff:169.254.169.254".parse().unwrap()));
/// ```
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let is_special = address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_documentation()
        || a == 0
        // Shared by the customers of a provider.
        || (a == 100 && (64..128).contains(&b))
        // Protocol assignments, and the old anycast of 6to4.
        || (a == 192 && b == 0 && c == 0)
        || (a == 192 && b == 88 && c == 99)
        // Benchmarks.
        || (a == 198 && (18..20).contains(&b))
        // Reserved, and broadcast.
        || a >= 240;
    !is_special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let parts = address.segments();
    let v4_at = |at: usize| {
        let [a, b] = parts[at].to_be_bytes();
        let [c, d] = parts[at + 1].to_be_bytes();
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match parts {
        // Mapped, and translated.
        [0, 0, 0, 0, 0, 0xffff, ..] | [0x64, 0xff9b, 0, 0, 0, 0, ..] => v4_at(6),
        // 6to4 leads to the address in it.
        [0x2002, ..] => v4_at(1),
        // Teredo, benchmarks, ORCHID and other assignments of the registry's first block; documentation.
        [0x2001, 0..=0x1ff, ..] | [0x2001, 0x0db8, ..] | [0x3fff, 0..=0xfff, ..] => false,
        // All else that is assigned to the public internet.
        [first, ..] => (0x2000..0x4000).contains(&first),
    }
}
