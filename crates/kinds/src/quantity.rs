//! Quantities: numbers with a unit (`500m`, `1.5Gi`, `1e3`), and their canonical form.

use quantity::{Format, Parts};
use std::cmp::Ordering;

const NANO: i128 = 1_000_000_000;
const MAX: i128 = i64::MAX as i128 * NANO;

/// A quantity, exact to the nano; larger ones than an int64 holds are cut to it, as upstream does.
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    nanos: i128,
    format: Format,
}

impl Quantity {
    /// Reads a quantity.
    ///
    /// ```
    /// use kinds::quantity::Quantity;
    /// let canonical = |s: &str| Quantity::parse(s).map(|q| q.to_string());
    /// assert_eq!(canonical("0.5").unwrap(), "500m");
    /// assert_eq!(canonical("1.5Gi").unwrap(), "1536Mi");
    /// assert_eq!(canonical("1e3").unwrap(), "1e3");
    /// assert!(canonical("abc").unwrap_err().starts_with("quantities must match"));
    /// ```
    pub fn parse(text: &str) -> Result<Self, String> {
        Ok(Quantity::of_parts(Parts::read(text).map_err(|e| e.to_string())?))
    }

    fn of_parts(parts: Parts<'_>) -> Self {
        let Parts { negative, whole, fraction, base, exponent, format } = parts;
        let magnitude = magnitude(whole, fraction, base, exponent);
        Quantity { nanos: if negative { -magnitude } else { magnitude }, format }
    }

    /// Reads a quantity and prints it as upstream does that has not computed with it: mostly in canonical form.
    ///
    /// # Errors
    /// As those of [`Quantity::parse`].
    pub fn printed(text: &str) -> Result<String, String> {
        let parts = Parts::read(text).map_err(|e| e.to_string())?;
        Ok(if parts.keeps_text() { text.to_owned() } else { Quantity::of_parts(parts).to_string() })
    }

    /// An integer, written as a decimal number.
    pub fn of_integer(value: i64) -> Self {
        Quantity { nanos: i128::from(value) * NANO, format: Format::DecimalSi }
    }

    /// Rounded up (away from zero) to an integer.
    pub fn rounded_to_integer(self) -> Self {
        Quantity { nanos: round_up(self.nanos, NANO), ..self }
    }

    /// Rounded up (away from zero) to thousandths, as lists of resources are when they are read.
    pub fn rounded_to_milli(self) -> Self {
        Quantity { nanos: round_up(self.nanos, NANO / 1000), ..self }
    }

    /// Less than, equal to or greater than zero.
    pub fn sign(self) -> Ordering {
        self.nanos.cmp(&0)
    }

    /// Whether there is nothing behind the decimal point.
    pub fn is_integer(self) -> bool {
        self.nanos % NANO == 0
    }

    /// The value rounded up to an integer.
    pub fn value(self) -> i64 {
        (round_up(self.nanos, NANO) / NANO).try_into().unwrap_or(i64::MAX)
    }

    /// The value in thousandths, rounded up.
    pub fn milli_value(self) -> i64 {
        (round_up(self.nanos, NANO / 1000) / (NANO / 1000)).try_into().unwrap_or(i64::MAX)
    }

    /// The sum; it is written as this one is.
    pub fn plus(self, other: Quantity) -> Self {
        Quantity { nanos: (self.nanos + other.nanos).clamp(-MAX, MAX), ..self }
    }

    /// The difference; it is written as this one is.
    pub fn minus(self, other: Quantity) -> Self {
        Quantity { nanos: (self.nanos - other.nanos).clamp(-MAX, MAX), ..self }
    }

    /// The quantity as Go's `%#v` prints it, which some messages carry.
    pub fn go_syntax(self) -> String {
        self.syntax("")
    }

    /// The same for a quantity that was printed before, and remembers its text.
    pub fn go_syntax_with_text(self) -> String {
        self.syntax(&self.to_string())
    }

    fn syntax(self, text: &str) -> String {
        let (mut value, mut scale) = (self.nanos, -9);
        while scale < 0 && value % 10 == 0 {
            value /= 10;
            scale += 1;
        }
        let format = match self.format {
            Format::DecimalSi => "DecimalSI",
            Format::BinarySi => "BinarySI",
            Format::DecimalExponent => "DecimalExponent",
        };
        format!(
            "resource.Quantity{{i:resource.int64Amount{{value:{value}, scale:{scale}}}, \
             d:resource.infDecAmount{{Dec:(*inf.Dec)(nil)}}, s:\"{text}\", Format:\"{format}\"}}"
        )
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.nanos.cmp(&other.nanos))
    }
}

/// The canonical form: no fraction, the largest unit that divides the value.
impl std::fmt::Display for Quantity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.nanos == 0 {
            return f.write_str("0");
        }
        // Small binary quantities are written as decimal ones, so that nothing is rounded.
        if self.format == Format::BinarySi && self.nanos.abs() >= 1024 * NANO {
            let mut value = round_up(self.nanos, NANO) / NANO;
            let mut unit = 0;
            while value % 1024 == 0 && unit < 6 {
                value /= 1024;
                unit += 1;
            }
            return write!(f, "{value}{}", ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"][unit]);
        }
        let mut value = self.nanos;
        let mut thousands = 0;
        while value % 1000 == 0 && thousands < 9 {
            value /= 1000;
            thousands += 1;
        }
        match self.format {
            Format::DecimalExponent if thousands == 3 => write!(f, "{value}"),
            Format::DecimalExponent => write!(f, "{value}e{}", thousands as i32 * 3 - 9),
            _ => write!(f, "{value}{}", ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"][thousands]),
        }
    }
}

/// The digits times `base` to the `power`, in nanos, rounded up and cut to the largest quantity.
fn magnitude(whole: &str, fraction: &str, base: u32, power: i64) -> i128 {
    let mut digits = String::with_capacity(whole.len() + fraction.len());
    digits.push_str(whole);
    digits.push_str(fraction);
    let digits = digits.trim_start_matches('0');
    let mut scale = -(fraction.len() as i64) + 9;
    let mut factor = 1i128;
    if base == 10 {
        scale += power;
    } else {
        factor <<= power;
    }
    if digits.is_empty() {
        return 0;
    }
    // What is left of the last nano only matters for rounding up.
    let integral = digits.len() as i64 + scale;
    if integral > 29 {
        return MAX;
    }
    if base == 10 && scale < 0 {
        let keep = integral.clamp(0, digits.len() as i64) as usize;
        let (kept, dropped) = digits.split_at(keep);
        let value: i128 = kept.parse().unwrap_or(0);
        let up = dropped.bytes().any(|b| b != b'0');
        return (value + i128::from(up)).min(MAX);
    }
    // Digits beyond what 128 bits hold cannot matter once they are behind the nano.
    let value: i128 = match digits.get(..36).unwrap_or(digits).parse() {
        Ok(value) if digits.len() <= 36 => value,
        Ok(value) => {
            scale += digits.len() as i64 - 36;
            value
        }
        Err(_) => return MAX,
    };
    let Some(mut value) = value.checked_mul(factor) else { return MAX };
    while scale > 0 {
        match value.checked_mul(10) {
            Some(v) => value = v,
            None => return MAX,
        }
        scale -= 1;
    }
    let mut up = false;
    while scale < 0 && value != 0 {
        up |= value % 10 != 0;
        value /= 10;
        scale += 1;
    }
    (value + i128::from(up)).min(MAX)
}

fn round_up(value: i128, unit: i128) -> i128 {
    let rest = value % unit;
    if rest == 0 { value } else { value - rest + rest.signum() * unit }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_written_in_canonical_form() {
        for (text, want) in [
            ("0", "0"),
            ("0Gi", "0"),
            ("1000m", "1"),
            ("1000", "1k"),
            ("1024", "1024"),
            ("1024Ki", "1Mi"),
            ("0.5Ki", "512"),
            ("1.5", "1500m"),
            ("-1", "-1"),
            ("12e6", "12e6"),
            ("100e-3", "100e-3"),
            ("1e2", "100"),
            ("0.0000000001", "1n"),
            ("123456789012345678901234567890", "9223372036854775807"),
            ("1E", "1E"),
            ("1Ei", "1Ei"),
            (".5", "500m"),
            ("5.", "5"),
            ("Mi", "0"),
            (".", "0"),
        ] {
            assert_eq!(Quantity::parse(text).unwrap().to_string(), want, "{text}");
        }
    }

    #[test]
    fn what_go_takes_for_canonical_is_printed_as_it_was_written() {
        for (text, want) in [
            ("+1024", "+1024"),
            ("1.500", "1.500"),
            ("1.5", "1500m"),
            ("1.000", "1"),
            ("0.500", "500m"),
            ("01", "01"),
            ("001Ki", "001Ki"),
            ("8Ki", "8Ki"),
            ("1024Ki", "1Mi"),
            ("1.5Gi", "1536Mi"),
            ("1e3", "1e3"),
            ("1E3", "1E3"),
        ] {
            assert_eq!(Quantity::printed(text).as_deref(), Ok(want), "{text}");
        }
    }

    #[test]
    fn resources_are_rounded_up_to_thousandths() {
        assert_eq!(Quantity::parse("1.0001").unwrap().rounded_to_milli().to_string(), "1001m");
        assert_eq!(Quantity::parse("1.0001").unwrap().value(), 2);
    }
}
