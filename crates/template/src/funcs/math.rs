//! Sprig's arithmetic.

use super::convert::{to_float, to_int};
use super::{Table, arg, int};
use crate::value::{Result, Val};
use crate::world::World;

pub(super) const TABLE: Table = &[
    ("add1", "a", |_, a| Ok(Val::int64(to_int(&arg(a, 0)).wrapping_add(1)))),
    ("add", "a*", |_, a| Ok(Val::int64(a.iter().map(to_int).fold(0, i64::wrapping_add)))),
    ("sub", "aa", |_, a| Ok(Val::int64(to_int(&arg(a, 0)).wrapping_sub(to_int(&arg(a, 1)))))),
    ("mul", "aa*", |_, a| Ok(Val::int64(a.iter().map(to_int).fold(1, i64::wrapping_mul)))),
    ("div", "aa", |_, a| divide(a, i64::wrapping_div)),
    ("mod", "aa", |_, a| divide(a, i64::wrapping_rem)),
    ("max", "aa*", |_, a| extreme(a, |x, y| x > y)),
    ("biggest", "aa*", |_, a| extreme(a, |x, y| x > y)),
    ("min", "aa*", |_, a| extreme(a, |x, y| x < y)),
    ("maxf", "aa*", |_, a| Ok(Val::Float(a.iter().map(to_float).fold(f64::NEG_INFINITY, f64::max)))),
    ("minf", "aa*", |_, a| Ok(Val::Float(a.iter().map(to_float).fold(f64::INFINITY, f64::min)))),
    ("add1f", "a", |_, a| Ok(Val::Float(decimal(&[to_float(&arg(a, 0)), 1.0], Op::Add)))),
    ("addf", "a*", |_, a| floats(a, Op::Add)),
    ("subf", "aa*", |_, a| floats(a, Op::Sub)),
    ("mulf", "aa*", |_, a| floats(a, Op::Mul)),
    ("divf", "aa*", |_, a| floats(a, Op::Div)),
    ("ceil", "a", |_, a| Ok(Val::Float(to_float(&arg(a, 0)).ceil()))),
    ("floor", "a", |_, a| Ok(Val::Float(to_float(&arg(a, 0)).floor()))),
    ("round", "aif*", |_, a| round(a)),
    ("randInt", "ii", random),
];

fn divide<'a>(a: &[Val<'a>], op: fn(i64, i64) -> i64) -> Result<Val<'a>> {
    match to_int(&arg(a, 1)) {
        0 => Err("runtime error: integer divide by zero".to_owned()),
        by => Ok(Val::int64(op(to_int(&arg(a, 0)), by))),
    }
}

fn extreme<'a>(a: &[Val<'a>], better: fn(i64, i64) -> bool) -> Result<Val<'a>> {
    let best = a.iter().map(to_int).reduce(|x, y| if better(y, x) { y } else { x });
    Ok(Val::int64(best.unwrap_or(0)))
}

#[derive(Clone, Copy)]
enum Op {
    Add,
    Sub,
    Mul,
    Div,
}

fn floats<'a>(a: &[Val<'a>], op: Op) -> Result<Val<'a>> {
    let operands: Vec<f64> = a.iter().map(to_float).collect();
    if matches!(op, Op::Div) && operands.iter().skip(1).any(|f| *f == 0.0) {
        return Err("decimal division by 0".to_owned());
    }
    Ok(Val::Float(decimal(&operands, op)))
}

/// Arithmetic in decimal digits, so that 0.1 and 0.2 are 0.3, where the digits fit; in binary where they do not.
fn decimal(operands: &[f64], op: Op) -> f64 {
    let binary = |a: f64, b: f64| match op {
        Op::Add => a + b,
        Op::Sub => a - b,
        Op::Mul => a * b,
        Op::Div => a / b,
    };
    let mut iter = operands.iter().copied();
    let Some(first) = iter.next() else { return 0.0 };
    iter.fold(first, |a, b| exact(a, b, op).unwrap_or_else(|| binary(a, b)))
}

/// The digits of a float and the power of ten that they are divided by.
fn scaled(f: f64) -> Option<(i128, u32)> {
    let text = format!("{f}");
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    if text.len() > 20 {
        return None;
    }
    Some((format!("{whole}{fraction}").parse().ok()?, fraction.len() as u32))
}

fn exact(a: f64, b: f64, op: Op) -> Option<f64> {
    let ((x, p), (y, q)) = (scaled(a)?, scaled(b)?);
    let scale = p.max(q);
    let (digits, scale) = match op {
        Op::Add | Op::Sub => {
            let x = x.checked_mul(10i128.checked_pow(scale - p)?)?;
            let y = y.checked_mul(10i128.checked_pow(scale - q)?)?;
            (if matches!(op, Op::Add) { x.checked_add(y)? } else { x.checked_sub(y)? }, scale)
        }
        Op::Mul => (x.checked_mul(y)?, p + q),
        Op::Div => return None,
    };
    let sign = if digits < 0 { "-" } else { "" };
    let width = scale as usize + 1;
    let text = format!("{:0>width$}", digits.unsigned_abs());
    let (whole, fraction) = text.split_at(text.len() - scale as usize);
    format!("{sign}{whole}.{fraction}0").parse().ok()
}

fn round<'a>(a: &[Val<'a>]) -> Result<Val<'a>> {
    let on = match a.get(2) {
        Some(Val::Float(f)) => *f,
        _ => 0.5,
    };
    let value = to_float(&arg(a, 0));
    let places = int(a, 1).clamp(-400, 400) as i32;
    let pow = 10f64.powi(places);
    let digit = pow * value;
    let fraction = digit.fract();
    let rounded =
        if digit >= 0.0 && fraction >= on || digit < 0.0 && fraction.abs() < on { digit.ceil() } else { digit.floor() };
    Ok(Val::Float(rounded / pow))
}

fn random<'a>(w: &mut World<'a>, a: &[Val<'a>]) -> Result<Val<'a>> {
    let (from, to) = (int(a, 0), int(a, 1));
    if to <= from {
        return Err("invalid argument to Intn".to_owned());
    }
    let offset = w.below(from.abs_diff(to));
    Ok(Val::int(from.wrapping_add_unsigned(offset)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_add_up() {
        assert_eq!(decimal(&[0.1, 0.2], Op::Add), 0.3);
        assert_eq!(decimal(&[1.1, 1.1], Op::Mul), 1.21);
        assert_eq!(decimal(&[0.3, 0.1], Op::Sub), 0.2);
        assert_eq!(decimal(&[-0.5, 0.25], Op::Add), -0.25);
    }
}
