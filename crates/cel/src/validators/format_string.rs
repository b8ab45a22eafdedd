//! `'literal'.format([...])`: each clause of the literal must fit the argument at its place.

use crate::ast::{Call, Expr, ExprId, ExprKind, Literal};
use crate::checked::CheckedAst;
use crate::types::{Kind, Type};

/// What is wrong with a call, if it is one of `format` on a literal with a list literal as its argument.
pub(super) fn check(checked: &CheckedAst, id: ExprId, call: &Call) -> Option<(ExprId, String)> {
    if &*call.function != "format" || !checked.overloads(id).iter().any(|overload| &*overload.id == "string_format") {
        return None;
    }
    let ExprKind::Literal(Literal::String(format)) = &call.target.as_ref()?.kind else { return None };
    let [Expr { kind: ExprKind::List(list), .. }] = call.args.as_slice() else { return None };
    match check_clauses(checked, format.as_bytes(), &list.elements) {
        Ok(seen) if list.elements.len() > seen => {
            let given = list.elements.len();
            Some((id, format!("too many arguments supplied to string.format (expected {seen}, got {given})")))
        }
        Ok(_) => None,
        Err((blamed, message)) => Some((blamed.unwrap_or(id), message)),
    }
}

/// What is wrong, with the argument to blame if there is one.
type Finding = (Option<ExprId>, String);

/// The number of arguments the clauses take.
fn check_clauses(checked: &CheckedAst, format: &[u8], args: &[Expr]) -> Result<usize, Finding> {
    let mut rest = format;
    let mut seen = 0;
    while let Some((byte, tail)) = rest.split_first() {
        rest = tail;
        if *byte != b'%' {
            continue;
        }
        if let Some(tail) = rest.strip_prefix(b"%") {
            rest = tail;
            continue;
        }
        if rest.is_empty() {
            return Err((None, "unexpected end of string".to_owned()));
        }
        let Some(arg) = args.get(seen) else { return Err((None, format!("index {seen} out of range"))) };
        let clause = read_clause(&mut rest)
            .map_err(|message| (None, format!("could not parse formatting clause: {message}")))?;
        check_argument(checked, clause, arg)
            .map_err(|(id, message)| (Some(id), format!("error during formatting: {message}")))?;
        seen += 1;
    }
    Ok(seen)
}

/// The letter of the clause at the front, after its precision.
fn read_clause(rest: &mut &[u8]) -> Result<u8, String> {
    if let Some(tail) = rest.strip_prefix(b".") {
        let digits = tail.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (precision, tail) = tail.split_at(digits);
        *rest = tail;
        let precision_error = |message: String| Err(format!("error while parsing precision: {message}"));
        if rest.is_empty() {
            return precision_error("could not find end of precision specifier".to_owned());
        }
        let text = String::from_utf8_lossy(precision);
        if text.parse::<i64>().is_err() {
            let reason = if text.is_empty() { "invalid syntax" } else { "value out of range" };
            return precision_error(format!(
                "error while converting precision to integer: strconv.Atoi: parsing \"{text}\": {reason}"
            ));
        }
    }
    let Some((letter, tail)) = rest.split_first() else { return Err("unexpected end of string".to_owned()) };
    *rest = tail;
    match letter {
        b's' | b'd' | b'f' | b'e' | b'b' | b'x' | b'X' | b'o' => Ok(*letter),
        // cel-go looks at bytes: the first byte of a longer character is printed as a character of its own.
        other => Err(format!("unrecognized formatting clause \"{}\"", char::from(*other))),
    }
}

fn check_argument(checked: &CheckedAst, clause: u8, arg: &Expr) -> Result<(), (ExprId, String)> {
    let (kinds, complaint): (&[Kind], &str) = match clause {
        b's' => return check_string(checked, arg),
        b'd' => (&[Kind::Int, Kind::Uint], "decimal clause can only be used on integers"),
        b'f' => (&[Kind::Double, Kind::String], "fixed-point clause can only be used on doubles"),
        b'e' => (&[Kind::Double, Kind::String], "scientific clause can only be used on doubles"),
        b'b' => (&[Kind::Int, Kind::Uint, Kind::Bool], "only integers and bools can be formatted as binary"),
        b'o' => (&[Kind::Int, Kind::Uint], "octal clause can only be used on integers"),
        _ => (
            &[Kind::Int, Kind::Uint, Kind::String, Kind::Bytes],
            "only integers, byte buffers, and strings can be formatted as hex",
        ),
    };
    expect_kind(checked, arg, kinds, complaint)
}

/// `%s` takes nearly everything; literals of lists and maps are looked into.
fn check_string(checked: &CheckedAst, arg: &Expr) -> Result<(), (ExprId, String)> {
    const KINDS: [Kind; 12] = [
        Kind::List,
        Kind::Map,
        Kind::Int,
        Kind::Uint,
        Kind::Double,
        Kind::Bool,
        Kind::String,
        Kind::Timestamp,
        Kind::Bytes,
        Kind::Duration,
        Kind::Type,
        Kind::Null,
    ];
    let complaint = "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, \
                     durations, and timestamps";
    expect_kind(checked, arg, &KINDS, complaint)?;
    match &arg.kind {
        ExprKind::List(list) => list.elements.iter().try_for_each(|element| check_string(checked, element)),
        ExprKind::Map(entries) => entries.iter().try_for_each(|entry| {
            check_string(checked, &entry.key)?;
            check_string(checked, &entry.value)
        }),
        _ => Ok(()),
    }
}

fn expect_kind(checked: &CheckedAst, arg: &Expr, kinds: &[Kind], complaint: &str) -> Result<(), (ExprId, String)> {
    let ty = checked.type_of(arg.id);
    if matches!(ty, Type::Dyn) || kinds.contains(&ty.kind()) {
        return Ok(());
    }
    Err((arg.id, format!("{complaint}, was given {}", ty.runtime_name())))
}

#[cfg(test)]
mod tests {
    use crate::env::Env;
    use crate::library::ExpressionSet;
    use crate::parse::{ParserOptions, parse};

    fn complaint(text: &str) -> Option<String> {
        let ast = parse(text, &ParserOptions::default()).expect("the text parses");
        let issues = crate::check::check(Env::kubernetes(ExpressionSet::New), ast).err()?;
        issues.iter().next().map(|issue| issue.message.clone())
    }

    #[test]
    fn clauses_and_arguments_must_fit() {
        let parsing = "could not parse formatting clause: ";
        let formatting = "error during formatting: ";
        for (text, message) in [
            ("'%s%%'.format([1])", None),
            ("'%s'.format([[1, 'a', {'k': duration('1s')}]])", None),
            ("'%.3f %e'.format([1.0, 'NaN'])", None),
            ("'%x'.format([dyn(1.0)])", None),
            ("'%s'.format([])", Some("index 0 out of range".to_owned())),
            ("'x'.format([1])", Some("too many arguments supplied to string.format (expected 0, got 1)".to_owned())),
            ("'%q'.format([1])", Some(format!("{parsing}unrecognized formatting clause \"q\""))),
            ("'%'.format([1])", Some("unexpected end of string".to_owned())),
            (
                "'%.'.format([1])",
                Some(format!("{parsing}error while parsing precision: could not find end of precision specifier")),
            ),
            (
                "'%b'.format([1.5])",
                Some(format!("{formatting}only integers and bools can be formatted as binary, was given double")),
            ),
            (
                "'%s'.format([[ip('::1')]])",
                Some(format!(
                    "{formatting}string clause can only be used on strings, bools, bytes, ints, doubles, maps, \
                     lists, types, durations, and timestamps, was given net.IP"
                )),
            ),
        ] {
            assert_eq!(complaint(text), message, "{text}");
        }
    }
}
