//! Semantic versions and constraints, as Masterminds' semver reads them.

use super::{Table, arg, int, text};
use crate::value::{IntType, Result, Special, Val};
use std::cmp::Ordering;
use std::fmt;

pub(super) const TABLE: Table = &[
    ("semver", "s", |_, a| Ok(Val::special(Special::Version(Version::parse(&text(a, 0))?)))),
    ("semverCompare", "ss", |_, a| {
        let constraint = Constraint::parse(&text(a, 0))?;
        Ok(Val::Bool(constraint.allows(&Version::parse(&text(a, 1))?)))
    }),
];

pub(super) const METHODS: Table = &[
    ("Major", "", |_, a| number(a, |v| v.numbers[0])),
    ("Minor", "", |_, a| number(a, |v| v.numbers[1])),
    ("Patch", "", |_, a| number(a, |v| v.numbers[2])),
    ("Prerelease", "", |_, a| part(a, |v| v.pre.clone())),
    ("Metadata", "", |_, a| part(a, |v| v.metadata.clone())),
    ("Original", "", |_, a| part(a, |v| v.original.clone())),
    ("String", "", |_, a| part(a, Version::to_string)),
    ("Compare", "a", |_, a| match (version(a, 0), version(a, 1)) {
        (Some(x), Some(y)) => Ok(Val::int(x.order(&y) as i64 + int(a, 2))),
        _ => Err("wrong type for value; expected *semver.Version".to_owned()),
    }),
];

fn version(a: &[Val<'_>], i: usize) -> Option<Version> {
    match arg(a, i) {
        Val::Special(s) => match &*s {
            Special::Version(v) => Some(v.clone()),
            _ => None,
        },
        _ => None,
    }
}

fn number<'a>(a: &[Val<'a>], of: fn(&Version) -> u64) -> Result<Val<'a>> {
    let n = version(a, 0).map_or(0, |v| of(&v));
    Ok(Val::Int(i64::try_from(n).unwrap_or(i64::MAX), IntType::Uint64))
}

fn part<'a>(a: &[Val<'a>], of: fn(&Version) -> String) -> Result<Val<'a>> {
    Ok(Val::str(version(a, 0).map(|v| of(&v)).unwrap_or_default()))
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Version {
    numbers: [u64; 3],
    pre: String,
    metadata: String,
    original: String,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch] = self.numbers;
        write!(f, "{major}.{minor}.{patch}")?;
        if !self.pre.is_empty() {
            write!(f, "-{}", self.pre)?;
        }
        if !self.metadata.is_empty() {
            write!(f, "+{}", self.metadata)?;
        }
        Ok(())
    }
}

const INVALID: &str = "Invalid Semantic Version";

/// Numbers with how many of them are given, pre-release, metadata. A part `x`, `X` or `*` ends the numbers.
fn split(text: &str) -> Option<(Vec<Option<u64>>, String, String)> {
    let body = text.strip_prefix('v').unwrap_or(text);
    let (body, metadata) = body.split_once('+').map_or((body, ""), |(b, m)| (b, m));
    let (numbers, pre) = body.split_once('-').map_or((body, ""), |(n, p)| (n, p));
    let identifiers =
        |s: &str| s.split('.').all(|p| !p.is_empty() && p.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-'));
    let ended = |sign: char| text.ends_with(sign);
    if !pre.is_empty() && !identifiers(pre)
        || !metadata.is_empty() && !identifiers(metadata)
        || ended('+')
        || ended('-')
    {
        return None;
    }
    let mut out = Vec::new();
    for part in numbers.split('.') {
        out.push(match part {
            "x" | "X" | "*" => None,
            digits if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) => Some(digits.parse().ok()?),
            _ => return None,
        });
    }
    (out.len() <= 3).then(|| (out, pre.to_owned(), metadata.to_owned()))
}

impl Version {
    /// Reads a version; missing parts are 0, a leading `v` is passed over.
    pub fn parse(text: &str) -> Result<Version> {
        let (parts, pre, metadata) = split(text).ok_or(INVALID)?;
        let mut numbers = [0; 3];
        for (place, part) in numbers.iter_mut().zip(&parts) {
            *place = part.ok_or(INVALID)?;
        }
        Ok(Version { numbers, pre, metadata, original: text.to_owned() })
    }

    /// The order of versions: a pre-release comes before its release.
    fn order(&self, other: &Version) -> Ordering {
        self.numbers.cmp(&other.numbers).then_with(|| match (self.pre.is_empty(), other.pre.is_empty()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => pre_order(&self.pre, &other.pre),
        })
    }
}

fn pre_order(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a.split('.'), b.split('.'));
    loop {
        let order = match (a.next(), b.next()) {
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => Ordering::Less,
            (Some(_), None) => Ordering::Greater,
            (Some(x), Some(y)) => match (x.parse::<u64>(), y.parse::<u64>()) {
                (Ok(x), Ok(y)) => x.cmp(&y),
                (Ok(_), Err(_)) => Ordering::Less,
                (Err(_), Ok(_)) => Ordering::Greater,
                (Err(_), Err(_)) => x.cmp(y),
            },
        };
        if order != Ordering::Equal {
            return order;
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Op {
    Equal,
    NotEqual,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
    Tilde,
    Caret,
}

struct Test {
    op: Op,
    version: Version,
    /// How many of the numbers are given; what is missing may be anything.
    given: usize,
}

/// Alternatives, each a list of tests that must all hold.
struct Constraint(Vec<Vec<Test>>);

impl Constraint {
    fn parse(text: &str) -> Result<Constraint> {
        let improper = || format!("improper constraint: {text}");
        let mut alternatives = Vec::new();
        for alternative in text.split("||") {
            let tests = alternative_tests(alternative).ok_or_else(improper)?;
            alternatives.push(tests);
        }
        Ok(Constraint(alternatives))
    }

    fn allows(&self, version: &Version) -> bool {
        self.0.iter().any(|tests| tests.iter().all(|t| t.holds(version)))
    }
}

/// The tests of one alternative: `>= 1.2, < 2`, `1.2 - 1.4`, `^1 ~1.2`.
fn alternative_tests(text: &str) -> Option<Vec<Test>> {
    if let Some((from, to)) = text.split_once(" - ") {
        return Some(vec![test(Op::GreaterOrEqual, from.trim())?, test(Op::LessOrEqual, to.trim())?]);
    }
    let mut out = Vec::new();
    let mut rest = text.trim();
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let symbols = rest.find(|c| !"=!<>~^".contains(c)).unwrap_or(rest.len());
        let op = match &rest[..symbols] {
            "" | "=" => Op::Equal,
            "!=" => Op::NotEqual,
            ">" => Op::Greater,
            ">=" | "=>" => Op::GreaterOrEqual,
            "<" => Op::Less,
            "<=" | "=<" => Op::LessOrEqual,
            "~" | "~>" => Op::Tilde,
            "^" => Op::Caret,
            _ => return None,
        };
        rest = rest[symbols..].trim_start();
        let end = rest.find(|c: char| c == ',' || c.is_whitespace()).unwrap_or(rest.len());
        out.push(test(op, &rest[..end])?);
        rest = rest[end..].trim_start_matches(|c: char| c == ',' || c.is_whitespace());
    }
    Some(out)
}

fn test(op: Op, text: &str) -> Option<Test> {
    let (parts, pre, metadata) = split(text)?;
    let given = parts.iter().take_while(|p| p.is_some()).count();
    let mut numbers = [0; 3];
    for (place, part) in numbers.iter_mut().zip(parts.iter().take(given)) {
        *place = part.unwrap_or(0);
    }
    Some(Test { op, version: Version { numbers, pre, metadata, original: text.to_owned() }, given })
}

impl Test {
    fn holds(&self, v: &Version) -> bool {
        // A pre-release is only allowed by a constraint that names one.
        if !v.pre.is_empty() && self.version.pre.is_empty() && self.op != Op::NotEqual {
            return false;
        }
        let order = v.order(&self.version);
        let same_up_to = |n: usize| v.numbers.iter().zip(&self.version.numbers).take(n).all(|(a, b)| a == b);
        let open = self.given < 3;
        match self.op {
            Op::Equal if open => same_up_to(self.given),
            Op::Equal => order == Ordering::Equal,
            Op::NotEqual if open => !same_up_to(self.given),
            Op::NotEqual => order != Ordering::Equal,
            Op::Greater if open => order == Ordering::Greater && !same_up_to(self.given),
            Op::Greater => order == Ordering::Greater,
            Op::GreaterOrEqual => order != Ordering::Less,
            Op::Less => order == Ordering::Less,
            Op::LessOrEqual => order != Ordering::Greater || open && same_up_to(self.given),
            Op::Tilde => order != Ordering::Less && same_up_to(self.given.min(2)),
            Op::Caret => {
                // What is left of the first number that is not 0 stays.
                let nonzero = self.version.numbers.iter().position(|n| *n != 0).unwrap_or(2);
                let kept = (nonzero + 1).min(self.given);
                order != Ordering::Less && same_up_to(kept)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constraints_allow_what_they_say() {
        for (constraint, version, allowed) in [
            ("1.2.3", "1.2.3", true),
            ("1.2", "1.2.9", true),
            ("1.2.x", "1.3.0", false),
            ("^1.2.0", "1.9.0", true),
            ("^1.2.0", "2.0.0", false),
            ("^0.2.3", "0.3.0", false),
            ("^0.0.3", "0.0.4", false),
            ("^0", "0.9.0", true),
            ("~1.2.3", "1.2.9", true),
            ("~1.2.3", "1.3.0", false),
            ("~1", "1.9.0", true),
            (">=1.2, <2", "1.9.0", true),
            (">= 1.2 < 2", "2.0.0", false),
            ("1.2 - 1.4.5", "1.4.5", true),
            ("<1 || >2.0.0", "2.0.1", true),
            (">1.2", "1.2.5", false),
            ("<=1.2", "1.2.5", true),
            ("!=1.2", "1.2.5", false),
            (">=1.0.0", "1.1.0-rc.1", false),
            (">=1.0.0-0", "1.1.0-rc.1", true),
            ("*", "3.0.0", true),
            (">=1.31.0-0", "v1.33.13", true),
        ] {
            let got = Constraint::parse(constraint).unwrap().allows(&Version::parse(version).unwrap());
            assert_eq!(got, allowed, "{constraint} {version}");
        }
        assert!(Constraint::parse("=>>1").is_err() && Version::parse("1.x").is_err() && Version::parse("a").is_err());
    }

    #[test]
    fn versions_are_ordered() {
        let order = ["1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-beta.2", "1.0.0-beta.11", "1.0.0-rc.1", "1.0.0", "v2"];
        for pair in order.windows(2) {
            let (a, b) = (Version::parse(pair[0]).unwrap(), Version::parse(pair[1]).unwrap());
            assert_eq!(a.order(&b), Ordering::Less, "{pair:?}");
        }
    }
}
