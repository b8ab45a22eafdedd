//! Semantic versions (blang/semver v4) and the comparisons they share with quantities.

use std::any::Any;
use std::cmp::Ordering;

use super::number::quote;
use crate::quantity::Quantity;
use crate::value::{Error, Opaque, Result, Value};

/// A version: type `kubernetes.Semver`. Build metadata does not count in comparisons.
#[derive(Clone, Debug)]
pub struct Semver {
    major: u64,
    minor: u64,
    patch: u64,
    pre: Vec<PreRelease>,
}

/// A part of a pre-release; numbers come before text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum PreRelease {
    Number(u64),
    Text(String),
}

impl Semver {
    fn parse(text: &str) -> std::result::Result<Self, String> {
        if text.is_empty() {
            return Err("Version string empty".to_owned());
        }
        let mut parts = text.splitn(3, '.');
        let (Some(major), Some(minor), Some(rest)) = (parts.next(), parts.next(), parts.next()) else {
            return Err("No Major.Minor.Patch elements found".to_owned());
        };
        let (major, minor) = (number("major", major)?, number("minor", minor)?);
        let (rest, build) = match rest.split_once('+') {
            Some((rest, build)) => (rest, Some(build)),
            None => (rest, None),
        };
        let (patch, pre) = match rest.split_once('-') {
            Some((patch, pre)) => (patch, Some(pre)),
            None => (rest, None),
        };
        let patch = number("patch", patch)?;
        let pre = pre.map_or(Ok(Vec::new()), |pre| pre.split('.').map(PreRelease::parse).collect())?;
        for part in build.into_iter().flat_map(|build| build.split('.')) {
            if part.is_empty() {
                return Err("Build meta data is empty".to_owned());
            }
            if !part.bytes().all(is_identifier) {
                return Err(format!("Invalid character(s) found in build meta data {}", quote(part)));
            }
        }
        Ok(Semver { major, minor, patch, pre })
    }

    fn compare(&self, other: &Semver) -> Ordering {
        (self.major, self.minor, self.patch).cmp(&(other.major, other.minor, other.patch)).then_with(|| {
            match (self.pre.is_empty(), other.pre.is_empty()) {
                (true, true) => Ordering::Equal,
                (true, false) => Ordering::Greater,
                (false, true) => Ordering::Less,
                (false, false) => self.pre.cmp(&other.pre),
            }
        })
    }
}

impl PreRelease {
    fn parse(text: &str) -> std::result::Result<Self, String> {
        if text.is_empty() {
            return Err("Prerelease is empty".to_owned());
        }
        if text.bytes().all(|b| b.is_ascii_digit()) {
            if text.len() > 1 && text.starts_with('0') {
                return Err(format!("Numeric PreRelease version must not contain leading zeroes {}", quote(text)));
            }
            return text.parse().map(PreRelease::Number).map_err(|_| out_of_range(text));
        }
        if !text.bytes().all(is_identifier) {
            return Err(format!("Invalid character(s) found in prerelease {}", quote(text)));
        }
        Ok(PreRelease::Text(text.to_owned()))
    }
}

fn is_identifier(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-'
}

fn out_of_range(text: &str) -> String {
    format!("strconv.ParseUint: parsing {}: value out of range", quote(text))
}

fn number(part: &str, text: &str) -> std::result::Result<u64, String> {
    let title = match part {
        "major" => "Major",
        "minor" => "Minor",
        _ => "Patch",
    };
    if !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(format!("Invalid character(s) found in {part} number {}", quote(text)));
    }
    if text.len() > 1 && text.starts_with('0') {
        return Err(format!("{title} number must not contain leading zeroes {}", quote(text)));
    }
    if text.is_empty() {
        return Err("strconv.ParseUint: parsing \"\": invalid syntax".to_owned());
    }
    text.parse().map_err(|_| out_of_range(text))
}

/// Makes `v1.2` and `01.2.3` strict: no leading `v`, no leading zeros, three numbers.
fn normalize(text: &str) -> String {
    let text = text.strip_prefix('v').unwrap_or(text);
    let mut parts: Vec<String> = text
        .splitn(3, '.')
        .map(|part| {
            let digits = part.bytes().take_while(u8::is_ascii_digit).count();
            let zeros = part.bytes().take_while(|b| *b == b'0').count();
            let cut = if zeros >= digits { digits.saturating_sub(1) } else { zeros };
            part.get(cut..).unwrap_or_default().to_owned()
        })
        .collect();
    let short = parts.len() < 3 && parts.last().is_some_and(|last| last.contains(['+', '-']));
    while parts.len() < 3 && !short {
        parts.push("0".to_owned());
    }
    parts.join(".")
}

impl Opaque for Semver {
    fn type_name(&self) -> &'static str {
        "kubernetes.Semver"
    }
    fn equals(&self, other: &dyn Opaque) -> bool {
        other.as_any().downcast_ref::<Semver>().is_some_and(|other| self.compare(other).is_eq())
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn read(args: &[Value<'_>]) -> Result<std::result::Result<Semver, String>> {
    match args {
        [Value::String(text)] | [Value::String(text), Value::Bool(false)] => Ok(Semver::parse(text)),
        [Value::String(text), Value::Bool(true)] => Ok(Semver::parse(&normalize(text))),
        _ => Err(Error::mismatch()),
    }
}

/// `semver(text[, normalize])`
pub(crate) fn semver<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    read(args)?.map(Value::opaque).map_err(Error::new)
}

/// `isSemver(text[, normalize])`
pub(crate) fn is_semver<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    Ok(Value::Bool(read(args)?.is_ok()))
}

fn only<'s>(args: &'s [Value<'_>]) -> Result<&'s Semver> {
    match args {
        [value] => value.downcast().ok_or_else(Error::mismatch),
        _ => Err(Error::mismatch()),
    }
}

fn int<'a>(number: u64) -> Value<'a> {
    Value::Int(i64::try_from(number).unwrap_or(i64::MAX))
}

/// `semver.major()`
pub(crate) fn major<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    Ok(int(only(args)?.major))
}

/// `semver.minor()`
pub(crate) fn minor<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    Ok(int(only(args)?.minor))
}

/// `semver.patch()`
pub(crate) fn patch<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    Ok(int(only(args)?.patch))
}

fn order(args: &[Value<'_>]) -> Result<Ordering> {
    let [a, b] = args else { return Err(Error::mismatch()) };
    if let (Some(a), Some(b)) = (a.downcast::<Quantity>(), b.downcast::<Quantity>()) {
        return Ok(a.cmp(b));
    }
    match (a.downcast::<Semver>(), b.downcast::<Semver>()) {
        (Some(a), Some(b)) => Ok(a.compare(b)),
        _ => Err(Error::mismatch()),
    }
}

/// `a.compareTo(b)` of quantities or versions
pub(crate) fn compare_to<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    Ok(Value::Int(order(args)? as i64))
}

/// `a.isLessThan(b)` of quantities or versions
pub(crate) fn is_less_than<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    Ok(Value::Bool(order(args)?.is_lt()))
}

/// `a.isGreaterThan(b)` of quantities or versions
pub(crate) fn is_greater_than<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    Ok(Value::Bool(order(args)?.is_gt()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_strictly() {
        for (text, expected) in [
            ("1.2.3", Ok(())),
            ("1.2.3-alpha.1+build.5", Ok(())),
            ("", Err("Version string empty")),
            ("1.2", Err("No Major.Minor.Patch elements found")),
            ("01.2.3", Err("Major number must not contain leading zeroes \"01\"")),
            ("v1.2.3", Err("Invalid character(s) found in major number \"v1\"")),
            ("1.2.x", Err("Invalid character(s) found in patch number \"x\"")),
            ("1.2.3-01", Err("Numeric PreRelease version must not contain leading zeroes \"01\"")),
            ("1.2.3-a_b", Err("Invalid character(s) found in prerelease \"a_b\"")),
        ] {
            let got = Semver::parse(text).map(|_| ());
            assert_eq!(got.as_ref().map_err(String::as_str), expected.as_ref().map_err(|why| *why), "{text}");
        }
        assert_eq!(normalize("v01.2"), "1.2.0");
        assert_eq!(normalize("1"), "1.0.0");
        assert_eq!(normalize("00.0.0"), "0.0.0");
    }

    #[test]
    fn order_follows_the_specification() {
        let versions = ["1.0.0-1", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-beta", "1.0.0", "1.0.1", "1.1.0", "2.0.0"];
        let parsed: Vec<Semver> = versions.iter().filter_map(|text| Semver::parse(text).ok()).collect();
        assert_eq!(parsed.len(), versions.len());
        assert!(parsed.windows(2).all(|pair| pair[0].compare(&pair[1]).is_lt()));
    }
}
