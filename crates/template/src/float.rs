//! Floats as `strconv.FormatFloat` writes them.

use object::go;

/// A float in one of Go's formats: `e`, `E`, `f`, `g`, `G`, `x`, `X`, `b`. No precision means the shortest digits that
/// read back as the same number.
pub(crate) fn format(f: f64, verb: char, precision: Option<usize>) -> String {
    if f.is_nan() {
        return "NaN".to_owned();
    }
    if f.is_infinite() {
        return if f > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    match verb {
        'e' => scientific(f, precision, 'e'),
        'E' => scientific(f, precision, 'E'),
        'f' => match precision {
            Some(p) => format!("{f:.p$}"),
            None => format!("{f}"),
        },
        'g' => general(f, precision, 'e'),
        'G' => general(f, precision, 'E'),
        'x' => hexadecimal(f, precision),
        'X' => hexadecimal(f, precision).to_uppercase(),
        'b' => binary(f),
        _ => go::float(f),
    }
}

fn scientific(f: f64, precision: Option<usize>, e: char) -> String {
    let text = match precision {
        Some(p) => format!("{f:.p$e}"),
        None => format!("{f:e}"),
    };
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    format!("{mantissa}{e}{}", exponent_text(exponent))
}

/// An exponent with its sign and at least two digits.
fn exponent_text(exponent: &str) -> String {
    match exponent.strip_prefix('-') {
        Some(digits) => format!("-{digits:0>2}"),
        None => format!("+{exponent:0>2}"),
    }
}

fn general(f: f64, precision: Option<usize>, e: char) -> String {
    let Some(precision) = precision else {
        return go::float(f).replace('e', &e.to_string());
    };
    let precision = precision.max(1);
    let rounded = format!("{f:.*e}", precision - 1);
    let (mantissa, exponent) = rounded.split_once('e').unwrap_or((&rounded, "0"));
    let exponent_value: i64 = exponent.parse().unwrap_or(0);
    let trimmed = if mantissa.contains('.') { mantissa.trim_end_matches('0').trim_end_matches('.') } else { mantissa };
    let digits = trimmed.chars().filter(char::is_ascii_digit).count() as i64;
    let limit = if precision as i64 > digits && digits > exponent_value { digits } else { precision as i64 };
    if exponent_value < -4 || exponent_value >= limit {
        return format!("{trimmed}{e}{}", exponent_text(exponent));
    }
    let decimals = usize::try_from(digits - 1 - exponent_value).unwrap_or(0);
    format!("{f:.decimals$}")
}

/// Mantissa and exponent of two, so that `f = mantissa * 2^exponent`.
fn parts(f: f64) -> (u64, i64) {
    let bits = f.to_bits();
    let fraction = bits & ((1 << 52) - 1);
    match bits >> 52 & 0x7ff {
        0 => (fraction, -1074),
        e => (fraction | 1 << 52, e as i64 - 1075),
    }
}

fn sign(f: f64) -> &'static str {
    if f.is_sign_negative() { "-" } else { "" }
}

fn binary(f: f64) -> String {
    let (mantissa, exponent) = parts(f);
    format!("{}{mantissa}p{exponent:+}", sign(f))
}

fn hexadecimal(f: f64, precision: Option<usize>) -> String {
    let (mut mantissa, mut exponent) = parts(f);
    if mantissa == 0 {
        exponent = 0;
    } else {
        // The first digit is 1; 60 bits follow.
        let shift = mantissa.leading_zeros() as i64 - 3;
        mantissa <<= shift;
        exponent += 60 - shift;
    }
    if let Some(p) = precision.filter(|p| *p < 15) {
        let shift = 60 - p * 4;
        let rest = mantissa & ((1 << shift) - 1);
        mantissa >>= shift;
        let half = 1 << (shift - 1);
        if rest > half || rest == half && mantissa & 1 == 1 {
            mantissa += 1;
        }
        mantissa <<= shift;
        if mantissa >> 61 != 0 {
            mantissa >>= 1;
            exponent += 1;
        }
    }
    let digits = format!("{:015x}", mantissa & ((1 << 60) - 1));
    let digits = match precision {
        Some(p) if p <= 15 => digits[..p].to_owned(),
        Some(p) => format!("{digits:0<p$}"),
        None => digits.trim_end_matches('0').to_owned(),
    };
    let point = if digits.is_empty() { "" } else { "." };
    let exponent = exponent_text(&exponent.to_string());
    format!("{}0x{}{point}{digits}p{exponent}", sign(f), mantissa >> 60)
}
