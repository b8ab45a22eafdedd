//! IP addresses and networks, read and printed as Go's `net/netip` does.

use std::any::Any;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::number::quote;
use crate::value::{Error, Opaque, Result, Value};

/// An address: type `net.IP`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ip(
    /// The address.
    pub IpAddr,
);

/// A network, with the host bits it was written with: type `net.CIDR`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cidr {
    /// The address before the slash.
    pub address: IpAddr,
    /// The prefix length.
    pub bits: u8,
}

impl Opaque for Ip {
    fn type_name(&self) -> &'static str {
        "net.IP"
    }
    fn equals(&self, other: &dyn Opaque) -> bool {
        other.as_any().downcast_ref() == Some(self)
    }
    fn size(&self) -> Option<u64> {
        Some(if self.0.is_ipv4() { 4 } else { 16 })
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Opaque for Cidr {
    fn type_name(&self) -> &'static str {
        "net.CIDR"
    }
    fn equals(&self, other: &dyn Opaque) -> bool {
        other.as_any().downcast_ref() == Some(self)
    }
    fn size(&self) -> Option<u64> {
        Some(u64::from(self.bits).div_ceil(8))
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Cidr {
    fn masked(self) -> Cidr {
        let bits = u32::from(self.bits);
        let address = match self.address {
            IpAddr::V4(v4) => {
                IpAddr::V4(Ipv4Addr::from_bits(v4.to_bits() & u32::MAX.checked_shl(32 - bits).unwrap_or(0)))
            }
            IpAddr::V6(v6) => {
                IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & u128::MAX.checked_shl(128 - bits).unwrap_or(0)))
            }
        };
        Cidr { address, bits: self.bits }
    }

    fn contains(self, address: IpAddr) -> bool {
        self.address.is_ipv4() == address.is_ipv4() && Cidr { address, bits: self.bits }.masked() == self.masked()
    }

    fn to_text(self) -> String {
        format!("{}/{}", self.address, self.bits)
    }
}

/// Reads an address as Go's `netip.ParseAddr`; the second part tells whether it has a zone.
fn parse_addr(text: &str) -> std::result::Result<(IpAddr, bool), String> {
    let fail = |why: &str| Err(format!("ParseAddr({}): {why}", quote(text)));
    match text.bytes().find(|b| matches!(b, b'.' | b':' | b'%')) {
        Some(b'.') => parse_ipv4(text, text).map(|v4| (IpAddr::V4(v4), false)),
        Some(b':') => parse_ipv6(text).map(|(v6, zone)| (IpAddr::V6(v6), zone)),
        Some(_) => fail("missing IPv6 address"),
        None => fail("unable to parse IP"),
    }
}

/// Reads the dotted address `part` of `whole`, which errors show.
fn parse_ipv4(whole: &str, part: &str) -> std::result::Result<Ipv4Addr, String> {
    let fail = |why: &str| Err(format!("ParseAddr({}): {why}", quote(whole)));
    let fail_at = |why: &str, at: &str| Err(format!("ParseAddr({}): {why} (at {})", quote(whole), quote(at)));
    let mut fields = [0u8; 4];
    let (mut position, mut value, mut digits) = (0usize, 0u32, 0);
    let mut previous = b'.';
    for (at, byte) in part.bytes().enumerate() {
        let rest = part.get(at..).unwrap_or_default();
        match byte {
            b'0'..=b'9' => {
                if digits == 1 && value == 0 {
                    return fail("IPv4 field has octet with leading zero");
                }
                value = value * 10 + u32::from(byte - b'0');
                digits += 1;
                if value > 255 {
                    return fail("IPv4 field has value >255");
                }
            }
            b'.' => {
                if previous == b'.' || at + 1 == part.len() {
                    return fail_at("IPv4 field must have at least one digit", rest);
                }
                if position == 3 {
                    return fail("IPv4 address too long");
                }
                if let Some(field) = fields.get_mut(position) {
                    *field = u8::try_from(value).unwrap_or(u8::MAX);
                }
                position += 1;
                (value, digits) = (0, 0);
            }
            _ => return fail_at("unexpected character", rest),
        }
        previous = byte;
    }
    if position < 3 {
        return fail("IPv4 address too short");
    }
    fields[3] = u8::try_from(value).unwrap_or(u8::MAX);
    Ok(Ipv4Addr::from(fields))
}

fn parse_ipv6(whole: &str) -> std::result::Result<(Ipv6Addr, bool), String> {
    let fail = |why: &str| Err(format!("ParseAddr({}): {why}", quote(whole)));
    let fail_at = |why: &str, at: &str| Err(format!("ParseAddr({}): {why} (at {})", quote(whole), quote(at)));
    let (mut rest, zone) = match whole.split_once('%') {
        Some((_, "")) => return fail("zone must be a non-empty string"),
        Some((address, _)) => (address, true),
        None => (whole, false),
    };
    let mut octets: Vec<u8> = Vec::with_capacity(16);
    let mut ellipsis = None;
    if let Some(tail) = rest.strip_prefix("::") {
        ellipsis = Some(0);
        rest = tail;
        if rest.is_empty() {
            return Ok((Ipv6Addr::UNSPECIFIED, zone));
        }
    }
    while octets.len() < 16 {
        let mut digits = 0;
        let mut value = 0u32;
        for byte in rest.bytes() {
            let Some(digit) = char::from(byte).to_digit(16) else { break };
            value = (value << 4) + digit;
            if digits > 3 {
                return fail_at("each group must have 4 or less digits", rest);
            }
            digits += 1;
        }
        if digits == 0 {
            return fail_at("each colon-separated field must have at least one digit", rest);
        }
        let tail = rest.get(digits..).unwrap_or_default();
        if tail.starts_with('.') {
            if ellipsis.is_none() && octets.len() != 12 {
                return fail_at("embedded IPv4 address must replace the final 2 fields of the address", rest);
            }
            if octets.len() + 4 > 16 {
                return fail_at("too many hex fields to fit an embedded IPv4 at the end of the address", rest);
            }
            octets.extend(parse_ipv4(whole, rest)?.octets());
            rest = "";
            break;
        }
        octets.extend(u16::try_from(value).unwrap_or(u16::MAX).to_be_bytes());
        rest = tail;
        if rest.is_empty() {
            break;
        }
        match rest.strip_prefix(':') {
            None => return fail_at("unexpected character, want colon", rest),
            Some("") => return fail_at("colon must be followed by more characters", rest),
            Some(tail) => rest = tail,
        }
        if let Some(tail) = rest.strip_prefix(':') {
            if ellipsis.is_some() {
                return fail_at("multiple :: in address", rest);
            }
            ellipsis = Some(octets.len());
            rest = tail;
            if rest.is_empty() {
                break;
            }
        }
    }
    if !rest.is_empty() {
        return fail_at("trailing garbage after address", rest);
    }
    match ellipsis {
        None if octets.len() < 16 => return fail("address string too short"),
        Some(_) if octets.len() == 16 => return fail("the :: must expand to at least one field of zeros"),
        Some(at) => {
            let missing = 16 - octets.len();
            octets.splice(at..at, std::iter::repeat_n(0, missing));
        }
        None => {}
    }
    let mut address = [0u8; 16];
    address.copy_from_slice(&octets);
    Ok((Ipv6Addr::from(address), zone))
}

fn is_mapped(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some())
}

fn parse_ip(text: &str) -> Result<Ip> {
    let (address, zone) = parse_addr(text).map_err(|why| {
        Error::new(format!("IP Address {} parse error during conversion from string: {why}", quote(text)))
    })?;
    if zone {
        return Err(Error::new(format!("IP address {} with zone value is not allowed", quote(text))));
    }
    if is_mapped(address) {
        return Err(Error::new(format!("IPv4-mapped IPv6 address {} is not allowed", quote(text))));
    }
    Ok(Ip(address))
}

fn parse_prefix(text: &str) -> std::result::Result<Cidr, String> {
    let fail = |why: &str| format!("netip.ParsePrefix({}): {why}", quote(text));
    let (address, bits) = text.rsplit_once('/').ok_or_else(|| fail("no '/'"))?;
    let (address, zone) = parse_addr(address).map_err(|why| fail(&why))?;
    if zone {
        return Err(fail("IPv6 zones cannot be present in a prefix"));
    }
    let bad_bits = || fail(&format!("bad bits after slash: {}", quote(bits)));
    if bits.len() > 1 && !matches!(bits.as_bytes().first(), Some(b'1'..=b'9')) {
        return Err(bad_bits());
    }
    let length = super::number::parse_int(bits).ok_or_else(bad_bits)?;
    let limit = if address.is_ipv4() { 32 } else { 128 };
    let bits = u8::try_from(length).ok().filter(|bits| *bits <= limit);
    Ok(Cidr { address, bits: bits.ok_or_else(|| fail("prefix length out of range"))? })
}

fn parse_cidr(text: &str) -> Result<Cidr> {
    let prefix = "network address parse error during conversion from string: ";
    // The prefix is put on twice, except before the second error.
    let cidr = parse_prefix(text).map_err(|why| Error::new(format!("{prefix}{prefix}{why}")))?;
    if is_mapped(cidr.address) {
        return Err(Error::new(format!("{prefix}IPv4-mapped IPv6 address {} is not allowed", quote(text))));
    }
    Ok(cidr)
}

/// The text of an address or a network.
pub(crate) fn to_text(value: &Value<'_>) -> Option<String> {
    if let Some(Ip(address)) = value.downcast() {
        return Some(address.to_string());
    }
    value.downcast::<Cidr>().map(|cidr| cidr.to_text())
}

/// `ip(text)`, and `cidr.ip()`
pub(crate) fn ip<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    match args {
        [Value::String(text)] => Ok(Value::opaque(parse_ip(text)?)),
        [value] => match value.downcast::<Cidr>() {
            Some(cidr) => Ok(Value::opaque(Ip(cidr.address))),
            None => Err(Error::mismatch()),
        },
        _ => Err(Error::mismatch()),
    }
}

/// `isIP(text)`
pub(crate) fn is_ip<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    match args {
        [Value::String(text)] => Ok(Value::Bool(parse_ip(text).is_ok())),
        _ => Err(Error::mismatch()),
    }
}

/// `ip.isCanonical(text)`
pub(crate) fn is_canonical<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    match args {
        [Value::String(text)] => Ok(Value::Bool(parse_ip(text)?.0.to_string() == **text)),
        _ => Err(Error::mismatch()),
    }
}

/// `cidr(text)`
pub(crate) fn cidr<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    match args {
        [Value::String(text)] => Ok(Value::opaque(parse_cidr(text)?)),
        _ => Err(Error::mismatch()),
    }
}

/// `isCIDR(text)`
pub(crate) fn is_cidr<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    match args {
        [Value::String(text)] => Ok(Value::Bool(parse_cidr(text).is_ok())),
        _ => Err(Error::mismatch()),
    }
}

fn address<'a>(args: &[Value<'a>]) -> Result<IpAddr> {
    match args {
        [value] => value.downcast::<Ip>().map(|ip| ip.0).ok_or_else(Error::mismatch),
        _ => Err(Error::mismatch()),
    }
}

/// `ip.family()`
pub(crate) fn family<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    Ok(Value::Int(if address(args)?.is_ipv4() { 4 } else { 6 }))
}

/// `ip.isUnspecified()`
pub(crate) fn is_unspecified<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    Ok(Value::Bool(address(args)?.is_unspecified()))
}

/// `ip.isLoopback()`
pub(crate) fn is_loopback<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    Ok(Value::Bool(address(args)?.is_loopback()))
}

/// `ip.isLinkLocalMulticast()`
pub(crate) fn is_link_local_multicast<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    Ok(Value::Bool(match address(args)? {
        IpAddr::V4(v4) => matches!(v4.octets(), [224, 0, 0, _]),
        IpAddr::V6(v6) => v6.segments().first().is_some_and(|first| first & 0xff0f == 0xff02),
    }))
}

fn link_local_unicast(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.segments().first().is_some_and(|first| first & 0xffc0 == 0xfe80),
    }
}

/// `ip.isLinkLocalUnicast()`
pub(crate) fn is_link_local_unicast<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    Ok(Value::Bool(link_local_unicast(address(args)?)))
}

/// `ip.isGlobalUnicast()`: private addresses count as global.
pub(crate) fn is_global_unicast<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    let address = address(args)?;
    Ok(Value::Bool(
        !address.is_unspecified()
            && address != IpAddr::V4(Ipv4Addr::BROADCAST)
            && !address.is_loopback()
            && !address.is_multicast()
            && !link_local_unicast(address),
    ))
}

/// `cidr.containsIP(ip)`, where the address may be text.
pub(crate) fn contains_ip<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    let [cidr, other] = args else { return Err(Error::mismatch()) };
    let cidr = cidr.downcast::<Cidr>().ok_or_else(Error::mismatch)?;
    // Text that is no address is a missing overload upstream.
    let Ip(address) = match other {
        Value::String(text) => parse_ip(text).map_err(|_| Error::no_such_overload())?,
        other => *other.downcast().ok_or_else(Error::mismatch)?,
    };
    Ok(Value::Bool(cidr.contains(address)))
}

/// `cidr.containsCIDR(cidr)`, where the other network may be text.
pub(crate) fn contains_cidr<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    let [cidr, other] = args else { return Err(Error::mismatch()) };
    let cidr = cidr.downcast::<Cidr>().ok_or_else(Error::mismatch)?;
    let other = match other {
        Value::String(text) => parse_cidr(text)?,
        other => *other.downcast().ok_or_else(Error::mismatch)?,
    };
    Ok(Value::Bool(cidr.bits <= other.bits && cidr.contains(other.address)))
}

fn network<'a>(args: &[Value<'a>]) -> Result<Cidr> {
    match args {
        [value] => value.downcast().copied().ok_or_else(Error::mismatch),
        _ => Err(Error::mismatch()),
    }
}

/// `cidr.prefixLength()`
pub(crate) fn prefix_length<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    Ok(Value::Int(i64::from(network(args)?.bits)))
}

/// `cidr.masked()`
pub(crate) fn masked<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    Ok(Value::opaque(network(args)?.masked()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_read_with_gos_error_texts() {
        for (text, expected) in [
            ("1.2.3.4", "1.2.3.4"),
            ("2001:DB8::0:1", "2001:db8::1"),
            ("::", "::"),
            ("1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"),
            ("::1.2.3.4", "::102:304"),
            ("", "ParseAddr(\"\"): unable to parse IP"),
            ("1.2.3.256", "ParseAddr(\"1.2.3.256\"): IPv4 field has value >255"),
            ("01.2.3.4", "ParseAddr(\"01.2.3.4\"): IPv4 field has octet with leading zero"),
            ("1.2.3", "ParseAddr(\"1.2.3\"): IPv4 address too short"),
            ("1.2.3.4.5", "ParseAddr(\"1.2.3.4.5\"): IPv4 address too long"),
            ("1..2.3", "ParseAddr(\"1..2.3\"): IPv4 field must have at least one digit (at \".2.3\")"),
            ("1.2.3.4/8", "ParseAddr(\"1.2.3.4/8\"): unexpected character (at \"/8\")"),
            (":1", "ParseAddr(\":1\"): each colon-separated field must have at least one digit (at \":1\")"),
            ("1::2::3", "ParseAddr(\"1::2::3\"): multiple :: in address (at \":3\")"),
            ("12345::", "ParseAddr(\"12345::\"): each group must have 4 or less digits (at \"12345::\")"),
            ("1:2", "ParseAddr(\"1:2\"): address string too short"),
            ("1:2:3:4:5:6:7:8:9", "ParseAddr(\"1:2:3:4:5:6:7:8:9\"): trailing garbage after address (at \"9\")"),
            ("%eth0", "ParseAddr(\"%eth0\"): missing IPv6 address"),
        ] {
            let got = parse_addr(text).map_or_else(|why| why, |(address, _)| address.to_string());
            assert_eq!(got, expected);
        }
    }

    #[test]
    fn networks_keep_their_host_bits() {
        for (text, expected) in [
            ("10.1.2.3/8", Ok("10.1.2.3/8 10.0.0.0/8")),
            ("2001:DB8::1/32", Ok("2001:db8::1/32 2001:db8::/32")),
            ("1.2.3.4/0", Ok("1.2.3.4/0 0.0.0.0/0")),
            ("10.0.0.0/33", Err("netip.ParsePrefix(\"10.0.0.0/33\"): prefix length out of range")),
            ("10.0.0.0/08", Err("netip.ParsePrefix(\"10.0.0.0/08\"): bad bits after slash: \"08\"")),
            ("bad", Err("netip.ParsePrefix(\"bad\"): no '/'")),
        ] {
            let got = parse_prefix(text).map(|cidr| format!("{} {}", cidr.to_text(), cidr.masked().to_text()));
            assert_eq!(got.as_deref().map_err(String::as_str), expected);
        }
    }
}
