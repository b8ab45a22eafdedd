//! Fields of answers: `status.conditions[type=Ready].status`, and what a predicate says of them.

use crate::case::{body_text, python_text};
use object::Value;

/// A step on the way to a field.
#[derive(Clone, Debug, PartialEq)]
enum Part {
    Key(String),
    /// Elements of which some value of the field has this text (any text when none).
    Filter(String, Option<String>),
    Index(usize),
    All,
}

/// All values that a field selects.
pub(crate) fn select<'v>(object: &'v Value, field: &str) -> Vec<&'v Value> {
    let mut values = vec![object];
    for part in parts(field) {
        let mut next = Vec::new();
        for value in values {
            match (&part, value) {
                (Part::Key(key), value) => next.extend(value.get(key)),
                (Part::All, Value::Array(items)) => next.extend(items),
                (Part::Index(i), Value::Array(items)) => next.extend(items.get(*i)),
                (Part::Filter(field, text), Value::Array(items)) => next.extend(items.iter().filter(|item| {
                    let found = select(item, field);
                    found.iter().any(|v| text.as_ref().is_none_or(|text| python_text(v) == *text))
                })),
                _ => {}
            }
        }
        values = next;
    }
    values
}

/// Whether `[FIELD, OP, VALUE]` holds of an answer.
pub(crate) fn holds(object: &Value, predicate: &Value) -> Result<bool, String> {
    let items = predicate.as_array().unwrap_or_default();
    let text = |i: usize| items.get(i).and_then(Value::as_str).unwrap_or_default();
    let found = select(object, text(0));
    let null = Value::Null;
    let mut want = items.get(2).unwrap_or(&null);
    if let Some(field) = want.str_at(&["field"]) {
        want = select(object, field).first().copied().unwrap_or(&null);
    }
    let zero = matches!(want, Value::Int(0));
    Ok(match text(1) {
        "exists" => !found.is_empty(),
        "absent" => found.is_empty(),
        "count" => want.as_int() == i64::try_from(found.len()).ok(),
        "==" => !found.is_empty() && found.iter().all(|v| *v == want) || zero && found.is_empty(),
        "!=" => found.iter().all(|v| *v != want),
        ">=" => !found.is_empty() && found.iter().all(|v| number(v) >= number(want)),
        "<=" => found.iter().all(|v| number(v) <= number(want)),
        "has" => !found.is_empty() && found.iter().all(|v| contains(v, want)),
        other => return Err(format!("unknown predicate {other}")),
    })
}

fn contains(value: &Value, want: &Value) -> bool {
    match value {
        Value::Array(items) => items.contains(want),
        Value::String(s) => want.as_str().is_some_and(|w| s.contains(w)),
        other => want.as_str().is_some_and(|w| body_text(other).contains(w)),
    }
}

fn number(value: &Value) -> f64 {
    match value {
        Value::Int(i) => *i as f64,
        Value::Float(f) => *f,
        _ => 0.0,
    }
}

fn parts(field: &str) -> Vec<Part> {
    let mut out = Vec::new();
    let mut rest = field;
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('.') {
            rest = after;
        } else if rest.starts_with('[') {
            let end = closing(rest);
            out.push(bracket(rest.get(1..end).unwrap_or_default()));
            rest = rest.get(end + 1..).unwrap_or_default();
        } else {
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            out.push(Part::Key(rest[..end].to_owned()));
            rest = &rest[end..];
        }
    }
    out
}

/// Where the bracket that opens the text is closed.
fn closing(text: &str) -> usize {
    let mut depth = 0;
    for (i, c) in text.char_indices() {
        match c {
            '[' => depth += 1,
            ']' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return i;
        }
    }
    text.len()
}

fn bracket(inside: &str) -> Part {
    if let Some(quoted) = inside.strip_prefix('\'') {
        return Part::Key(quoted.trim_end_matches('\'').to_owned());
    }
    if inside == "*" {
        return Part::All;
    }
    if let Ok(index) = inside.parse() {
        return Part::Index(index);
    }
    // The first `=` outside of inner brackets parts field and text.
    let mut depth = 0;
    for (i, c) in inside.char_indices() {
        match c {
            '[' => depth += 1,
            ']' => depth -= 1,
            '=' if depth == 0 => return Part::Filter(inside[..i].to_owned(), Some(inside[i + 1..].to_owned())),
            _ => {}
        }
    }
    Part::Filter(inside.to_owned(), None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn fields_select_members_elements_and_filtered_elements() {
        let object = json::parse(br#"{"a":{"b.c/d":1},"l":[{"t":"x","v":1},{"t":"y","v":true,"m":{"k":0}}]}"#).unwrap();
        for (field, want) in [
            ("a['b.c/d']", "[1]"),
            ("l[*].t", r#"["x","y"]"#),
            ("l[1].v", "[true]"),
            ("l[t=x].v", "[1]"),
            ("l[v=True].t", r#"["y"]"#),
            ("l[m.k].t", r#"["y"]"#),
            ("l[9].t", "[]"),
            ("a.x", "[]"),
        ] {
            let found: Vec<Value> = select(&object, field).into_iter().cloned().collect();
            assert_eq!(json::to_string(&Value::Array(found)), want, "{field}");
        }
    }

    #[test]
    fn predicates_read_as_they_are_written() {
        let object = json::parse(br#"{"n":2,"m":2,"l":["a","b"],"s":"hello"}"#).unwrap();
        for (predicate, want) in [
            (r#"["n","==",2]"#, true),
            (r#"["n","==",{"field":"m"}]"#, true),
            (r#"["x","==",0]"#, true),
            (r#"["x","==",1]"#, false),
            (r#"["x","!=",1]"#, true),
            (r#"["n",">=",3]"#, false),
            (r#"["x","<=",3]"#, true),
            (r#"["l[*]","count",2]"#, true),
            (r#"["l","has","b"]"#, true),
            (r#"["s","has","ell"]"#, true),
            (r#"["x","absent"]"#, true),
        ] {
            let predicate = json::parse(predicate.as_bytes()).unwrap();
            assert_eq!(holds(&object, &predicate), Ok(want), "{predicate:?}");
        }
        assert!(holds(&object, &json::parse(br#"["n","~",2]"#).unwrap()).is_err());
    }
}
