//! IP addresses and networks.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::super::golang::quote;
use super::functions::Args;
use super::meter::Fail;
use super::value::Val;

type Found<'v> = Result<Val<'v>, Fail>;

/// A network: an address and the length of its prefix in bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cidr {
    address: IpAddr,
    bits: u8,
}

impl fmt::Display for Cidr {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.address, self.bits)
    }
}

impl Cidr {
    fn masked(self) -> Self {
        let address = match self.address {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.bits)).unwrap_or(0);
                IpAddr::V4(Ipv4Addr::from_bits(address.to_bits() & mask))
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.bits)).unwrap_or(0);
                IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & mask))
            }
        };
        Self { address, bits: self.bits }
    }

    fn contains(self, address: IpAddr) -> bool {
        address.is_ipv4() == self.address.is_ipv4()
            && Self { address, bits: self.bits }.masked().address == self.masked().address
    }
}

fn parse_ip(text: &str) -> Result<IpAddr, String> {
    if text.contains('%') && text.split('%').next().is_some_and(|ip| ip.parse::<Ipv6Addr>().is_ok()) {
        return Err(format!("IP address {} with zone value is not allowed", quote(text)));
    }
    let address = text.parse::<IpAddr>().map_err(|_| {
        let why = format!("ParseAddr({}): unable to parse IP", quote(text));
        format!("IP Address {} parse error during conversion from string: {why}", quote(text))
    })?;
    if matches!(address, IpAddr::V6(address) if address.to_ipv4_mapped().is_some()) {
        return Err(format!("IPv4-mapped IPv6 address {} is not allowed", quote(text)));
    }
    Ok(address)
}

fn parse_cidr(text: &str) -> Result<Cidr, String> {
    let wrong = |why: &str| {
        let parse = format!("netip.ParsePrefix({}): {why}", quote(text));
        format!("network address parse error during conversion from string: {parse}")
    };
    let (address, bits) = text.rsplit_once('/').ok_or_else(|| wrong("no '/'"))?;
    let address = address.parse::<IpAddr>().map_err(|_| wrong("unable to parse IP"))?;
    let is_count = !bits.is_empty() && bits.bytes().all(|byte| byte.is_ascii_digit());
    if !is_count || (bits.len() > 1 && bits.starts_with('0')) {
        return Err(wrong(&format!("bad bits after slash: {}", quote(bits))));
    }
    let most = if address.is_ipv4() { 32 } else { 128 };
    let bits = bits.parse::<u8>().ok().filter(|bits| *bits <= most);
    let bits = bits.ok_or_else(|| wrong("prefix length out of range"))?;
    if matches!(address, IpAddr::V6(address) if address.to_ipv4_mapped().is_some()) {
        return Err(format!("IPv4-mapped IPv6 address {} is not allowed", quote(text)));
    }
    Ok(Cidr { address, bits })
}

fn to_network(text: &str) -> Result<Cidr, Fail> {
    parse_cidr(text)
        .map_err(|why| Fail::error(format!("network address parse error during conversion from string: {why}")))
}

fn address(call: &Args<'_, '_>) -> Result<IpAddr, Fail> {
    match call.args {
        [Val::Ip(address)] => Ok(*address),
        _ => Err(Fail::no_overload()),
    }
}

fn network(call: &Args<'_, '_>) -> Result<Cidr, Fail> {
    match call.args {
        [Val::Cidr(cidr), ..] => Ok(*cidr),
        _ => Err(Fail::no_overload()),
    }
}

fn text<'c>(call: &'c mut Args<'_, '_>) -> Result<&'c str, Fail> {
    let [Val::String(text)] = call.args else {
        return Err(Fail::no_overload());
    };
    call.meter.traverse(text.len())?;
    Ok(text)
}

pub(crate) fn to_ip<'v>(mut call: Args<'_, 'v>) -> Found<'v> {
    if let [Val::Cidr(cidr)] = call.args {
        return Ok(Val::Ip(cidr.address));
    }
    parse_ip(text(&mut call)?).map(Val::Ip).map_err(Fail::Error)
}

pub(crate) fn is_ip<'v>(mut call: Args<'_, 'v>) -> Found<'v> {
    Ok(Val::Bool(parse_ip(text(&mut call)?).is_ok()))
}

pub(crate) fn is_canonical<'v>(mut call: Args<'_, 'v>) -> Found<'v> {
    let text = text(&mut call)?;
    parse_ip(text).map(|address| Val::Bool(address.to_string() == text)).map_err(Fail::Error)
}

pub(crate) fn family<'v>(call: Args<'_, 'v>) -> Found<'v> {
    Ok(Val::Int(if address(&call)?.is_ipv4() { 4 } else { 6 }))
}

pub(crate) fn is_unspecified<'v>(call: Args<'_, 'v>) -> Found<'v> {
    Ok(Val::Bool(address(&call)?.is_unspecified()))
}

pub(crate) fn is_loopback<'v>(call: Args<'_, 'v>) -> Found<'v> {
    Ok(Val::Bool(address(&call)?.is_loopback()))
}

fn link_local_multicast(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.octets()[..3] == [224, 0, 0],
        IpAddr::V6(address) => address.segments()[0] & 0xff0f == 0xff02,
    }
}

fn link_local_unicast(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.segments()[0] & 0xffc0 == 0xfe80,
    }
}

pub(crate) fn is_link_local_multicast<'v>(call: Args<'_, 'v>) -> Found<'v> {
    Ok(Val::Bool(link_local_multicast(address(&call)?)))
}

pub(crate) fn is_link_local_unicast<'v>(call: Args<'_, 'v>) -> Found<'v> {
    Ok(Val::Bool(link_local_unicast(address(&call)?)))
}

pub(crate) fn is_global_unicast<'v>(call: Args<'_, 'v>) -> Found<'v> {
    let address = address(&call)?;
    let is_broadcast = address == IpAddr::V4(Ipv4Addr::BROADCAST);
    let is_special = address.is_unspecified() || address.is_loopback() || address.is_multicast();
    Ok(Val::Bool(!is_broadcast && !is_special && !link_local_unicast(address)))
}

pub(crate) fn to_cidr<'v>(mut call: Args<'_, 'v>) -> Found<'v> {
    to_network(text(&mut call)?).map(Val::Cidr)
}

pub(crate) fn is_cidr<'v>(mut call: Args<'_, 'v>) -> Found<'v> {
    Ok(Val::Bool(parse_cidr(text(&mut call)?).is_ok()))
}

pub(crate) fn contains_ip<'v>(call: Args<'_, 'v>) -> Found<'v> {
    let address = match call.args {
        [_, Val::Ip(address)] => *address,
        // kube-apiserver gives no further details about an invalid address.
        [_, Val::String(text)] => {
            call.meter.copy(text.len())?;
            parse_ip(text).map_err(|_| Fail::no_overload())?
        }
        _ => return Err(Fail::no_overload()),
    };
    Ok(Val::Bool(network(&call)?.contains(address)))
}

pub(crate) fn contains_cidr<'v>(call: Args<'_, 'v>) -> Found<'v> {
    let other = match call.args {
        [_, Val::Cidr(cidr)] => *cidr,
        [_, Val::String(text)] => {
            call.meter.copy(text.len())?;
            to_network(text)?
        }
        _ => return Err(Fail::no_overload()),
    };
    let network = network(&call)?;
    Ok(Val::Bool(network.bits <= other.bits && network.contains(other.address)))
}

pub(crate) fn masked<'v>(call: Args<'_, 'v>) -> Found<'v> {
    Ok(Val::Cidr(network(&call)?.masked()))
}

pub(crate) fn prefix_length<'v>(call: Args<'_, 'v>) -> Found<'v> {
    Ok(Val::Int(i64::from(network(&call)?.bits)))
}
