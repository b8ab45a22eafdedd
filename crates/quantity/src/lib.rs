//! Amounts of resources as Kubernetes writes them: `1500m`, `2Gi`, `1e3`.
//!
//! The rules are those of `k8s.io/apimachinery/pkg/api/resource`, including which amounts are held as a 64-bit
//! integer with a scale and which as a decimal of any size: [`Quantity::as_i64`] answers for the former only.
//!
//! ```
//! use quantity::Quantity;
//!
//! let memory = Quantity::parse("1.5Gi").unwrap();
//! assert!(memory > Quantity::parse("1500M").unwrap());
//! assert_eq!(memory.to_string(), "1536Mi");
//! ```

use std::cmp::Ordering;
use std::fmt;

/// Most decimal digits (numerator and denominator together) that are held as an integer.
const MAX_INTEGER_DIGITS: i64 = 18;
/// The finest scale: quantities are rounded away from zero to nanounits.
const NANO: i64 = -9;
/// Beyond this many digits an addition keeps the larger amount only, rather than write out all zeros between.
const MAX_DIGITS: i64 = 100_000;

/// An amount.
#[derive(Clone, Debug)]
pub struct Quantity {
    amount: Amount,
    format: Format,
}

#[derive(Clone, Debug)]
enum Amount {
    /// `value × 10^scale`
    Integer { value: i64, scale: i64 },
    /// Of any size.
    Decimal(Decimal),
}

/// How a quantity was written, and is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `12e6`
    DecimalExponent,
    /// `12Mi`
    BinarySi,
    /// `12M`
    DecimalSi,
}

/// Why a text is no quantity. Prints as Kubernetes does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParseError {
    /// The text as a whole has the wrong form.
    Format,
    /// The number cannot be read.
    Numeric,
    /// The suffix is unknown.
    Suffix,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ParseError::Format => {
                "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
            }
            ParseError::Numeric => "unable to parse numeric part of quantity",
            ParseError::Suffix => "unable to parse quantity's suffix",
        })
    }
}

impl std::error::Error for ParseError {}

/// A text taken apart: `± whole.fraction × base^exponent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts<'t> {
    /// Whether there is a minus sign.
    pub negative: bool,
    /// The digits before the point, without zeros in front; may be empty, for zero.
    pub whole: &'t str,
    /// The digits behind the point.
    pub fraction: &'t str,
    /// 2 or 10.
    pub base: u32,
    /// The power of the base that the suffix stands for.
    pub exponent: i64,
    /// How the text is written.
    pub format: Format,
}

impl<'t> Parts<'t> {
    /// Takes a text apart. A suffix alone is zero, as upstream.
    pub fn read(text: &'t str) -> Result<Self, ParseError> {
        if text.is_empty() {
            return Err(ParseError::Format);
        }
        let (negative, unsigned) = match text.as_bytes().first() {
            Some(b'-') => (true, &text[1..]),
            Some(b'+') => (false, &text[1..]),
            _ => (false, text),
        };
        let stripped = unsigned.trim_start_matches('0');
        let digits_end = |s: &str| s.find(|c: char| !c.is_ascii_digit()).unwrap_or(s.len());
        let (whole, rest) = stripped.split_at(digits_end(stripped));
        let (fraction, suffix) = match rest.strip_prefix('.') {
            Some(tail) => tail.split_at(digits_end(tail)),
            None => ("", rest),
        };
        let letters_end = suffix.find(|c: char| !"eEinumkKMGTP".contains(c)).unwrap_or(suffix.len());
        let exponent_part = suffix.get(letters_end..).unwrap_or_default();
        let exponent_part = exponent_part.strip_prefix(['-', '+']).unwrap_or(exponent_part);
        if !exponent_part.bytes().all(|b| b.is_ascii_digit()) {
            return Err(ParseError::Format);
        }
        let (base, exponent, format) = read_suffix(suffix).ok_or(ParseError::Suffix)?;
        let parts = Parts { negative, whole, fraction, base, exponent, format };
        if !unsigned.starts_with('0') && whole.is_empty() && fraction.is_empty() && parts.as_integer().is_none() {
            return Err(ParseError::Numeric);
        }
        Ok(parts)
    }

    /// The scale (a power of ten) and multiplier with which upstream holds the digits as an integer, if it does.
    fn as_integer(&self) -> Option<(i64, i64)> {
        let (n, d) = (self.whole.len().max(1) as i64, self.fraction.len() as i64);
        let (room, scale, multiplier) = match self.format {
            Format::BinarySi if d == 0 => (15 - n - self.exponent * 3 / 10 - 1, 0, 1i64 << self.exponent),
            Format::BinarySi => return None,
            _ => (MAX_INTEGER_DIGITS - n - d, self.exponent - d, 1),
        };
        (room >= 0 && scale >= NANO).then_some((scale, multiplier))
    }

    /// Whether upstream remembers the text and prints the quantity as it was written (`+1`, `1.500`), although that may
    /// not be the canonical form: it takes numbers for canonical by their last digits.
    pub fn keeps_text(&self) -> bool {
        let Some((scale, _)) = self.as_integer() else { return false };
        match self.format {
            Format::BinarySi => {
                let end = self.whole.get(self.whole.len().saturating_sub(3)..).unwrap_or_default();
                end.parse::<u32>().is_ok_and(|last| last % 8 != 0)
            }
            _ => {
                let last = || self.whole.bytes().chain(self.fraction.bytes()).rev().take(3);
                let shiftable = last().count() == 3 && last().all(|digit| digit == b'0');
                scale % 3 == 0 && !self.whole.is_empty() && !shiftable
            }
        }
    }
}

impl Quantity {
    /// Reads a quantity.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let parts = Parts::read(text)?;
        let Parts { negative, whole: numerator, fraction: denominator, base, exponent, mut format } = parts;
        let numerator = if numerator.is_empty() { "0" } else { numerator };
        if let Some((scale, multiplier)) = parts.as_integer() {
            let value: i64 = [numerator, denominator].concat().parse().map_err(|_| ParseError::Numeric)?;
            if let Some(value) = value.checked_mul(multiplier) {
                let value = if negative { -value } else { value };
                return Ok(Quantity { amount: Amount::Integer { value, scale }, format });
            }
        }

        let mut amount =
            Decimal::new(negative, [numerator, denominator].concat().as_bytes(), -(denominator.len() as i64));
        if base == 2 {
            for _ in 0..exponent / 10 {
                amount = amount.times(1024);
            }
        } else {
            amount.exponent += exponent;
        }
        amount.round_up(NANO);
        let cap = Decimal::new(negative, i64::MAX.to_string().as_bytes(), 0);
        if format == Format::BinarySi {
            if amount.cmp_magnitude(&cap) == Ordering::Greater {
                amount = cap;
            }
            let one = Decimal::new(false, b"1", 0);
            if !amount.is_zero() && amount.cmp_magnitude(&one) == Ordering::Less {
                format = Format::DecimalSi;
            }
        }
        Ok(Quantity { amount: Amount::Decimal(amount), format })
    }

    /// A whole number of units.
    pub fn from_i64(value: i64, format: Format) -> Self {
        Quantity { amount: Amount::Integer { value, scale: 0 }, format }
    }

    /// The amount as a whole number of units, if it is held as an integer and is one. As upstream, amounts that are
    /// whole but were read with a fraction (`1.0`) or are held as decimals (`1Ei`) give `None`.
    pub fn as_i64(&self) -> Option<i64> {
        match self.amount {
            Amount::Integer { value, scale } if scale >= 0 => scaled(value, scale),
            _ => None,
        }
    }

    /// The nearest double, reached by one multiplication, as upstream.
    pub fn as_approximate_f64(&self) -> f64 {
        let (base, exponent) = match &self.amount {
            Amount::Integer { value, scale } => (*value as f64, *scale),
            Amount::Decimal(decimal) => (decimal.mantissa_f64(), decimal.exponent),
        };
        if exponent == 0 {
            return base;
        }
        let power: f64 = format!("1e{exponent}").parse().unwrap_or(f64::INFINITY);
        base * power
    }

    /// The sign: -1, 0 or 1.
    pub fn signum(&self) -> i64 {
        match &self.amount {
            Amount::Integer { value, .. } => value.signum(),
            Amount::Decimal(decimal) if decimal.is_zero() => 0,
            Amount::Decimal(decimal) => {
                if decimal.negative {
                    -1
                } else {
                    1
                }
            }
        }
    }

    /// How the quantity prints.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The sum.
    pub fn add(&self, other: &Quantity) -> Quantity {
        let format = if self.signum() == 0 { other.format } else { self.format };
        if let (Amount::Integer { value: a, scale: sa }, Amount::Integer { value: b, scale: sb }) =
            (&self.amount, &other.amount)
            && let Some((value, scale)) = add_scaled((*a, *sa), (*b, *sb))
        {
            return Quantity { amount: Amount::Integer { value, scale }, format };
        }
        Quantity { amount: Amount::Decimal(self.decimal().plus(&other.decimal())), format }
    }

    /// The difference.
    pub fn sub(&self, other: &Quantity) -> Quantity {
        self.add(&other.negated())
    }

    /// The amount with the other sign.
    pub fn negated(&self) -> Quantity {
        let amount = match &self.amount {
            Amount::Integer { value, scale } => match value.checked_neg() {
                Some(value) => Amount::Integer { value, scale: *scale },
                None => Amount::Decimal(self.decimal().negated()),
            },
            Amount::Decimal(decimal) => Amount::Decimal(decimal.clone().negated()),
        };
        Quantity { amount, format: self.format }
    }

    fn decimal(&self) -> Decimal {
        match &self.amount {
            Amount::Integer { value, scale } => {
                Decimal::new(*value < 0, value.unsigned_abs().to_string().as_bytes(), *scale)
            }
            Amount::Decimal(decimal) => decimal.clone(),
        }
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    /// Amounts compare whatever their formats.
    fn cmp(&self, other: &Self) -> Ordering {
        if let (Amount::Integer { value: a, scale: sa }, Amount::Integer { value: b, scale: sb }) =
            (&self.amount, &other.amount)
            && sa == sb
        {
            return a.cmp(b);
        }
        self.decimal().compare(&other.decimal())
    }
}

impl fmt::Display for Quantity {
    /// The canonical form: the largest suffix that leaves a whole number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut decimal = self.decimal();
        if decimal.is_zero() {
            return f.write_str("0");
        }
        decimal.trim();
        let sign = if decimal.negative { "-" } else { "" };
        if self.format == Format::BinarySi && decimal.exponent >= 0 {
            let bound = Decimal::new(false, b"1024", 0);
            if decimal.cmp_magnitude(&bound) != Ordering::Less {
                let mut power = 0usize;
                let mut whole = decimal.whole_digits();
                while power < 6
                    && let Some(quotient) = divided_by_1024(&whole)
                {
                    whole = quotient;
                    power += 1;
                }
                let suffix = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"].get(power).copied().unwrap_or_default();
                return write!(f, "{sign}{}{suffix}", String::from_utf8_lossy(&whole));
            }
        }
        let mut digits = decimal.digits.clone();
        let mut exponent = decimal.exponent;
        while exponent.rem_euclid(3) != 0 {
            digits.push(b'0');
            exponent -= 1;
        }
        let suffix = match (self.format, exponent) {
            (_, 0) => String::new(),
            (Format::DecimalExponent, exponent) => format!("e{exponent}"),
            (_, exponent) => match DECIMAL_SUFFIXES.iter().find(|(_, e)| *e == exponent) {
                Some((suffix, _)) => (*suffix).to_owned(),
                None => format!("e{exponent}"),
            },
        };
        write!(f, "{sign}{}{suffix}", String::from_utf8_lossy(&digits))
    }
}

const DECIMAL_SUFFIXES: [(&str, i64); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];

/// The base (10 or 2), the exponent and the format a suffix stands for.
fn read_suffix(suffix: &str) -> Option<(u32, i64, Format)> {
    if let Some((_, exponent)) = DECIMAL_SUFFIXES.iter().find(|(name, _)| *name == suffix) {
        return Some((10, *exponent, Format::DecimalSi));
    }
    let binary = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"].iter().position(|name| *name == suffix);
    if let Some(position) = binary {
        return Some((2, 10 * (position as i64 + 1), Format::BinarySi));
    }
    let digits = suffix.strip_prefix(['e', 'E']).filter(|digits| !digits.is_empty())?;
    let exponent = digits.parse::<i32>().ok()?;
    Some((10, i64::from(exponent), Format::DecimalExponent))
}

fn scaled(value: i64, scale: i64) -> Option<i64> {
    if value == 0 {
        return Some(0);
    }
    let factor = 10i64.checked_pow(u32::try_from(scale).ok()?)?;
    value.checked_mul(factor)
}

fn add_scaled(a: (i64, i64), b: (i64, i64)) -> Option<(i64, i64)> {
    match (a, b) {
        (a, (0, _)) => Some(a),
        ((0, _), b) => Some(b),
        ((a, sa), (b, sb)) if sa >= sb => Some((scaled(a, sa - sb)?.checked_add(b)?, sb)),
        ((a, sa), (b, sb)) => Some((a.checked_add(scaled(b, sb - sa)?)?, sa)),
    }
}

/// `± digits × 10^exponent`; the digits are ASCII, without leading zeros, empty for zero.
#[derive(Clone, Debug)]
struct Decimal {
    negative: bool,
    digits: Vec<u8>,
    exponent: i64,
}

impl Decimal {
    fn new(negative: bool, digits: &[u8], exponent: i64) -> Self {
        let zeros = digits.iter().take_while(|digit| **digit == b'0').count();
        Decimal { negative, digits: digits.get(zeros..).unwrap_or_default().to_vec(), exponent }
    }

    fn is_zero(&self) -> bool {
        self.digits.is_empty()
    }

    fn negated(mut self) -> Self {
        self.negative = !self.negative;
        self
    }

    /// The power of ten just above the amount.
    fn magnitude(&self) -> i64 {
        self.digits.len() as i64 + self.exponent
    }

    /// Moves trailing zeros of the digits to the exponent.
    fn trim(&mut self) {
        while self.digits.last() == Some(&b'0') {
            self.digits.pop();
            self.exponent += 1;
        }
    }

    fn times(&self, factor: u32) -> Self {
        let mut carry = 0u32;
        let mut digits: Vec<u8> = Vec::with_capacity(self.digits.len() + 4);
        for digit in self.digits.iter().rev() {
            let product = u32::from(digit - b'0') * factor + carry;
            digits.push(b'0' + (product % 10) as u8);
            carry = product / 10;
        }
        while carry > 0 {
            digits.push(b'0' + (carry % 10) as u8);
            carry /= 10;
        }
        digits.reverse();
        Decimal { negative: self.negative, digits, exponent: self.exponent }
    }

    /// Rounds away from zero to multiples of `10^scale`.
    fn round_up(&mut self, scale: i64) {
        if self.is_zero() || self.exponent >= scale {
            return;
        }
        let drop = usize::try_from(scale - self.exponent).unwrap_or(usize::MAX);
        let keep = self.digits.len().saturating_sub(drop);
        let inexact = self.digits.iter().skip(keep).any(|digit| *digit != b'0');
        self.digits.truncate(keep);
        self.exponent = scale;
        if inexact {
            let one = Decimal::new(self.negative, b"1", scale);
            *self = self.plus(&one);
        }
    }

    fn cmp_magnitude(&self, other: &Decimal) -> Ordering {
        if self.is_zero() || other.is_zero() {
            return (!self.is_zero()).cmp(&!other.is_zero());
        }
        self.magnitude().cmp(&other.magnitude()).then_with(|| {
            let longest = self.digits.len().max(other.digits.len());
            let padded = |d: &Decimal, at: usize| d.digits.get(at).copied().unwrap_or(b'0');
            (0..longest)
                .map(|at| padded(self, at).cmp(&padded(other, at)))
                .find(|o| o.is_ne())
                .unwrap_or(Ordering::Equal)
        })
    }

    fn compare(&self, other: &Decimal) -> Ordering {
        let sign = |d: &Decimal| i32::from(!d.is_zero()) * if d.negative { -1 } else { 1 };
        sign(self).cmp(&sign(other)).then_with(|| {
            let order = self.cmp_magnitude(other);
            if self.negative { order.reverse() } else { order }
        })
    }

    fn plus(&self, other: &Decimal) -> Decimal {
        if other.is_zero() {
            return self.clone();
        }
        if self.is_zero() {
            return other.clone();
        }
        let exponent = self.exponent.min(other.exponent);
        if self.magnitude().max(other.magnitude()) - exponent > MAX_DIGITS {
            return if self.cmp_magnitude(other).is_lt() { other.clone() } else { self.clone() };
        }
        let (large, small) = if self.cmp_magnitude(other).is_lt() { (other, self) } else { (self, other) };
        let aligned = |d: &Decimal| {
            let mut digits: Vec<u8> = d.digits.iter().map(|digit| digit - b'0').collect();
            digits.resize(digits.len() + usize::try_from(d.exponent - exponent).unwrap_or(0), 0);
            digits.reverse();
            digits
        };
        let (mut digits, small_digits) = (aligned(large), aligned(small));
        let subtract = large.negative != small.negative;
        let mut carry = 0i8;
        for at in 0..digits.len() {
            let addend = small_digits.get(at).map_or(0, |digit| *digit as i8);
            let Some(digit) = digits.get_mut(at) else { break };
            let sum = *digit as i8 + if subtract { -addend } else { addend } + carry;
            carry = sum.div_euclid(10);
            *digit = sum.rem_euclid(10) as u8;
        }
        if carry > 0 {
            digits.push(carry as u8);
        }
        let ascii: Vec<u8> = digits.iter().rev().map(|digit| digit + b'0').collect();
        Decimal::new(large.negative, &ascii, exponent)
    }

    /// The digits of a whole amount, zeros of a positive exponent written out.
    fn whole_digits(&self) -> Vec<u8> {
        let mut digits = self.digits.clone();
        digits.resize(digits.len() + usize::try_from(self.exponent.clamp(0, MAX_DIGITS)).unwrap_or(0), b'0');
        digits
    }

    fn mantissa_f64(&self) -> f64 {
        let text = format!("{}{}", if self.negative { "-" } else { "" }, String::from_utf8_lossy(&self.digits));
        if self.is_zero() { 0.0 } else { text.parse().unwrap_or(f64::INFINITY) }
    }
}

/// The quotient if `digits` is a multiple of 1024.
fn divided_by_1024(digits: &[u8]) -> Option<Vec<u8>> {
    let mut remainder = 0u32;
    let mut quotient = Vec::with_capacity(digits.len());
    for digit in digits {
        remainder = remainder * 10 + u32::from(digit - b'0');
        let next = (remainder / 1024) as u8;
        if next > 0 || !quotient.is_empty() {
            quotient.push(b'0' + next);
        }
        remainder %= 1024;
    }
    (remainder == 0 && !quotient.is_empty()).then_some(quotient)
}

#[cfg(test)]
mod tests;
