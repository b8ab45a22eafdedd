//! Templates whose strings have CEL in them: `${parameter.replicas * 2}`.

use std::sync::LazyLock;

use cel::env::Env;
use object::{Map, Value, json};

use super::super::expression::{Expression, environment};
use super::{Renderer, SPREAD};

static NAMES: LazyLock<Env> = LazyLock::new(|| environment(&["parameter", "context"]));

/// How deep a template may nest.
const DEEPEST: usize = 200;

/// `schematic.cel`: its strings have CEL in `${}`; `$${` stands for `${` itself.
pub(super) struct Expressions;

impl Renderer for Expressions {
    fn fill(&self, place: &str, tree: &Value, parameter: &Value, context: &Value) -> Result<Value, String> {
        filled(place, tree, &[("parameter", parameter), ("context", context)], 0)
    }
}

fn filled(place: &str, tree: &Value, variables: &[(&str, &Value)], depth: usize) -> Result<Value, String> {
    if depth > DEEPEST {
        return Err(format!("{place}: nests too deeply"));
    }
    Ok(match tree {
        Value::String(text) => value(place, text, variables)?,
        Value::Array(items) => {
            let mut all = Vec::with_capacity(items.len());
            for (index, item) in items.iter().enumerate() {
                let new = filled(&format!("{place}[{index}]"), item, variables, depth + 1)?;
                if !new.is_null() || item.is_null() {
                    all.push(new);
                }
            }
            Value::Array(all)
        }
        Value::Object(members) => {
            let mut all = match members.get(SPREAD) {
                Some(tree) => spread(&format!("{place}.{SPREAD}"), tree, variables, depth + 1)?,
                None => Map::new(),
            };
            for (key, member) in members.iter().filter(|(key, _)| *key != SPREAD) {
                let place = format!("{place}.{key}");
                let new = filled(&place, member, variables, depth + 1)?;
                if new.is_null() && !member.is_null() {
                    continue;
                }
                match value(&place, key, variables)? {
                    Value::String(key) => _ = all.insert(key.as_str(), new),
                    other => return Err(format!("{place}: a key must be a string, not a {}", other.type_name())),
                }
            }
            all.into()
        }
        fixed => fixed.clone(),
    })
}

/// The members that an object takes from another.
fn spread(place: &str, tree: &Value, variables: &[(&str, &Value)], depth: usize) -> Result<Map, String> {
    match filled(place, tree, variables, depth)? {
        Value::Object(members) => Ok(members),
        Value::Null => Ok(Map::new()),
        other => Err(format!("{place}: must be an object, not a {}", other.type_name())),
    }
}

/// A part of a string.
#[derive(Debug, PartialEq)]
enum Part<'a> {
    Text(&'a str),
    Expression(&'a str),
}

/// What a string comes to: the value of an expression that is all of it, or the text with the values put in.
fn value(place: &str, text: &str, variables: &[(&str, &Value)]) -> Result<Value, String> {
    if !text.contains("${") {
        return Ok(text.into());
    }
    let told = |error: String| format!("{place}: {error}");
    let evaluated = |expression: &str| Expression::new(expression, &NAMES)?.value(variables);
    let parts = parts(text).map_err(told)?;
    if let [Part::Expression(expression)] = parts.as_slice() {
        return evaluated(expression).map_err(told);
    }
    let mut out = String::with_capacity(text.len());
    for part in parts {
        match part {
            Part::Text(text) => out += text,
            Part::Expression(expression) => match evaluated(expression).map_err(told)? {
                Value::String(text) => out += text.as_str(),
                scalar @ (Value::Bool(_) | Value::Int(_) | Value::Float(_)) => out += &json::to_string(&scalar),
                other => return Err(told(format!("a {} cannot be part of a string", other.type_name()))),
            },
        }
    }
    Ok(out.into())
}

/// Splits a string at its expressions, which may have braces and strings in them.
fn parts(text: &str) -> Result<Vec<Part<'_>>, String> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let (before, from) = rest.split_at(at);
        if let Some(before) = before.strip_suffix('$') {
            parts.extend([before, "${"].into_iter().filter(|text| !text.is_empty()).map(Part::Text));
            rest = &from[2..];
            continue;
        }
        if !before.is_empty() {
            parts.push(Part::Text(before));
        }
        let begin = text.len() - from.len() + 1;
        let end = end(&from[2..]).ok_or_else(|| format!("there is no end of the expression that begins at {begin}"))?;
        parts.push(Part::Expression(&from[2..2 + end]));
        rest = &from[2 + end + 1..];
    }
    if !rest.is_empty() {
        parts.push(Part::Text(rest));
    }
    Ok(parts)
}

/// Where the brace is that ends an expression.
fn end(text: &str) -> Option<usize> {
    let (mut depth, mut quote, mut is_escaped) = (0_usize, None, false);
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(_), _) if is_escaped => is_escaped = false,
            (Some(_), '\\') => is_escaped = true,
            (Some(open), _) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, '{') => depth += 1,
            (None, '}') if depth == 0 => return Some(at),
            (None, '}') => depth -= 1,
            (None, _) => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_end_at_their_own_brace() {
        use Part::{Expression, Text};
        for (text, expected) in [
            ("a", vec![Text("a")]),
            ("${a}", vec![Expression("a")]),
            ("x${ {'}': a} }y${b}", vec![Text("x"), Expression(" {'}': a} "), Text("y"), Expression("b")]),
            ("a$${b}", vec![Text("a"), Text("${"), Text("b}")]),
            (r#"${"\"}"}"#, vec![Expression(r#""\"}""#)]),
        ] {
            assert_eq!(parts(text), Ok(expected), "{text}");
        }
        assert!(parts("${'}").is_err());
    }
}
