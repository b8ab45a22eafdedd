//! The functions of strings (cel-go's strings extension, version 2). Positions count code points.

use crate::value::{Error, List, Result, Text, Value};

/// The longest text a function makes: many times what a request holds. Prices do not count what `replace`, `join` and
/// `format` make before it is made.
pub(super) const MAX_TEXT: usize = 16 << 20;

fn index_out_of_range(index: i64) -> Error {
    Error::new(format!("index out of range: {index}"))
}

/// The byte offset of the code point at `index`, the end of the text included.
fn offset_of(text: &str, index: i64) -> Option<usize> {
    let index = usize::try_from(index).ok()?;
    if text.is_ascii() {
        return (index <= text.len()).then_some(index);
    }
    text.char_indices().map(|(at, _)| at).chain(std::iter::once(text.len())).nth(index)
}

fn code_points(text: &str) -> i64 {
    i64::try_from(text.chars().count()).unwrap_or(i64::MAX)
}

/// A part of `text`, borrowed where the text is.
fn slice<'a>(text: &Text<'a>, from: usize, to: usize) -> Value<'a> {
    match text {
        Text::Borrowed(text) => Value::borrowed(text.get(from..to).unwrap_or_default()),
        Text::Shared(text) if from == 0 && to == text.len() => Value::String(Text::Shared(text.clone())),
        Text::Shared(text) => Value::shared(text.get(from..to).unwrap_or_default()),
    }
}

/// `text.charAt(index)`
pub(crate) fn char_at<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    let [Value::String(text), Value::Int(index)] = args else { return Err(Error::mismatch()) };
    let from = offset_of(text, *index).ok_or_else(|| index_out_of_range(*index))?;
    let len = text.get(from..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
    Ok(slice(text, from, from + len))
}

/// `text.contains(part)`
pub(crate) fn contains<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    match args {
        [Value::String(text), Value::String(part)] => Ok(Value::Bool(text.contains(&**part))),
        _ => Err(Error::no_such_overload()),
    }
}

/// `text.startsWith(part)`
pub(crate) fn starts_with<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    match args {
        [Value::String(text), Value::String(part)] => Ok(Value::Bool(text.starts_with(&**part))),
        _ => Err(Error::no_such_overload()),
    }
}

/// `text.endsWith(part)`
pub(crate) fn ends_with<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    match args {
        [Value::String(text), Value::String(part)] => Ok(Value::Bool(text.ends_with(&**part))),
        _ => Err(Error::no_such_overload()),
    }
}

/// `text.indexOf(part[, from])`, and `list.indexOf(element)`
pub(crate) fn index_of<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    let (text, part, from) = match args {
        [Value::String(text), Value::String(part)] => (text, part, 0),
        [Value::String(text), Value::String(part), Value::Int(from)] => (text, part, *from),
        [Value::List(list), element] => return super::lists::index_of(list, element),
        _ => return Err(Error::mismatch()),
    };
    if part.is_empty() {
        return Ok(Value::Int(from));
    }
    if from < 0 {
        return Err(index_out_of_range(from));
    }
    let found = offset_of(text, from)
        .and_then(|start| text.get(start..)?.find(&**part).map(|at| start + at))
        .map_or(-1, |at| code_points(text.get(..at).unwrap_or_default()));
    Ok(Value::Int(found))
}

/// `text.lastIndexOf(part[, from])`, and `list.lastIndexOf(element)`
pub(crate) fn last_index_of<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    let (text, part, from) = match args {
        [Value::String(text), Value::String(part)] if part.is_empty() => return Ok(Value::Int(code_points(text))),
        [Value::String(text), Value::String(part)] => (text, part, (code_points(text) - 1).max(0)),
        [Value::String(text), Value::String(part), Value::Int(from)] => (text, part, *from),
        [Value::List(list), element] => return super::lists::last_index_of(list, element),
        _ => return Err(Error::mismatch()),
    };
    if part.is_empty() {
        return Ok(Value::Int(from));
    }
    if from < 0 {
        return Err(index_out_of_range(from));
    }
    if from >= code_points(text) {
        return Ok(Value::Int(-1));
    }
    // A match may start at `from` at the latest.
    let latest = offset_of(text, from).unwrap_or(text.len());
    let end = (latest + part.len()).min(text.len());
    let end = (0..=end).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let found = text
        .get(..end)
        .and_then(|head| head.rfind(&**part))
        .map_or(-1, |at| code_points(text.get(..at).unwrap_or_default()));
    Ok(Value::Int(found))
}

/// `list.join([separator])`
pub(crate) fn join<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    let (list, separator) = match args {
        [Value::List(list)] => (list, ""),
        [Value::List(list), Value::String(separator)] => (list, &**separator),
        _ => return Err(Error::mismatch()),
    };
    let mut joined = String::new();
    for (index, element) in list.iter().enumerate() {
        if index > 0 {
            joined.push_str(separator);
        }
        match element? {
            Value::String(text) if joined.len() + text.len() > MAX_TEXT => return Err(Error::cost_limit()),
            Value::String(text) => joined.push_str(&text),
            // The first element decides whether there is an overload for the list.
            _ if index == 0 => return Err(Error::mismatch()),
            _ => return Err(Error::no_such_overload()),
        }
    }
    Ok(Value::shared(joined))
}

/// `text.lowerAscii()`
pub(crate) fn lower_ascii<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    let [Value::String(text)] = args else { return Err(Error::mismatch()) };
    if text.bytes().any(|b| b.is_ascii_uppercase()) {
        return Ok(Value::shared(text.to_ascii_lowercase()));
    }
    Ok(Value::String(text.clone()))
}

/// `text.upperAscii()`
pub(crate) fn upper_ascii<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    let [Value::String(text)] = args else { return Err(Error::mismatch()) };
    if text.bytes().any(|b| b.is_ascii_lowercase()) {
        return Ok(Value::shared(text.to_ascii_uppercase()));
    }
    Ok(Value::String(text.clone()))
}

/// `text.replace(old, new[, limit])`; a negative limit is none.
pub(crate) fn replace<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    let (text, old, new, limit) = match args {
        [Value::String(text), Value::String(old), Value::String(new)] => (text, old, new, -1),
        [Value::String(text), Value::String(old), Value::String(new), Value::Int(limit)] => (text, old, new, *limit),
        _ => return Err(Error::mismatch()),
    };
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    if new.len() > old.len() {
        let places = if old.is_empty() { text.len() + 1 } else { text.len() / old.len() };
        if places.saturating_mul(new.len()) > MAX_TEXT
            && text.matches(&**old).take(limit).count().saturating_mul(new.len()) > MAX_TEXT
        {
            return Err(Error::cost_limit());
        }
    }
    Ok(Value::shared(text.replacen(&**old, new, limit)))
}

/// `text.split(separator[, limit])`; a negative limit is none, zero gives no parts.
pub(crate) fn split<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    let (text, separator, limit) = match args {
        [Value::String(text), Value::String(separator)] => (text, separator, -1),
        [Value::String(text), Value::String(separator), Value::Int(limit)] => (text, separator, *limit),
        _ => return Err(Error::mismatch()),
    };
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut parts = Vec::new();
    let mut from = 0;
    if limit == 0 {
        return Ok(Value::List(List::new(parts)));
    }
    loop {
        let rest = text.get(from..).unwrap_or_default();
        let (part, skip) = if separator.is_empty() {
            match rest.chars().next() {
                None => break,
                Some(_) if parts.len() + 1 >= limit => (rest.len(), 0),
                Some(c) => (c.len_utf8(), 0),
            }
        } else {
            match rest.find(&**separator) {
                Some(at) if parts.len() + 1 < limit => (at, separator.len()),
                _ => (rest.len(), 0),
            }
        };
        parts.push(slice(text, from, from + part));
        from += part + skip;
        let at_end = if separator.is_empty() { from >= text.len() } else { skip == 0 };
        if at_end {
            break;
        }
    }
    Ok(Value::List(List::new(parts)))
}

/// `text.substring(from[, to])`
pub(crate) fn substring<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    match args {
        [Value::String(text), Value::Int(from)] => {
            let start = offset_of(text, *from).ok_or_else(|| index_out_of_range(*from))?;
            Ok(slice(text, start, text.len()))
        }
        [Value::String(text), Value::Int(from), Value::Int(to)] => {
            if from > to {
                return Err(Error::new(format!("invalid substring range. start: {from}, end: {to}")));
            }
            let start = offset_of(text, *from).ok_or_else(|| index_out_of_range(*from))?;
            let end = offset_of(text, *to).ok_or_else(|| index_out_of_range(*to))?;
            Ok(slice(text, start, end))
        }
        _ => Err(Error::mismatch()),
    }
}

/// `text.trim()`
pub(crate) fn trim<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    let [Value::String(text)] = args else { return Err(Error::mismatch()) };
    let from = text.len() - text.trim_start().len();
    Ok(slice(text, from, from + text.trim().len()))
}

/// `strings.quote(text)`
pub(crate) fn quote<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    let [Value::String(text)] = args else { return Err(Error::mismatch()) };
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{c}' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{b}' => quoted.push_str("\\v"),
            '\\' => quoted.push_str("\\\\"),
            '"' => quoted.push_str("\\\""),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    Ok(Value::shared(quoted))
}

/// `jsonpatch.escapeKey(text)`: a part of a JSON pointer.
pub(crate) fn escape_json_pointer<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    let [Value::String(text)] = args else { return Err(Error::mismatch()) };
    Ok(Value::shared(text.replace('~', "~0").replace('/', "~1")))
}

#[cfg(test)]
mod tests {
    use super::*;

    type Function = for<'a> fn(&[Value<'a>]) -> Result<Value<'a>>;

    fn call(function: Function, text: &str, rest: &[Value<'static>]) -> String {
        let mut args = vec![Value::shared(text)];
        args.extend_from_slice(rest);
        match function(&args) {
            Ok(Value::List(list)) => {
                let parts: Vec<String> = list
                    .iter()
                    .map(|part| format!("{:?}", part.as_ref().map_or("", |p| p.as_str().unwrap_or(""))))
                    .collect();
                format!("[{}]", parts.join(", "))
            }
            Ok(value) => value.to_string(),
            Err(error) => error.to_string(),
        }
    }

    fn s(text: &'static str) -> Value<'static> {
        Value::borrowed(text)
    }

    #[test]
    fn positions_count_code_points() {
        let cases: &[(Function, &str, Vec<Value<'static>>, &str)] = &[
            (char_at, "日本", vec![Value::Int(1)], "本"),
            (char_at, "日本", vec![Value::Int(2)], ""),
            (char_at, "日本", vec![Value::Int(3)], "index out of range: 3"),
            (index_of, "😀a😀", vec![s("😀"), Value::Int(1)], "2"),
            (index_of, "hello", vec![s("l"), Value::Int(6)], "-1"),
            (index_of, "hello", vec![s(""), Value::Int(6)], "6"),
            (index_of, "hello", vec![s("l"), Value::Int(-1)], "index out of range: -1"),
            (last_index_of, "hello", vec![s("l")], "3"),
            (last_index_of, "hello", vec![s("l"), Value::Int(2)], "2"),
            (last_index_of, "hello", vec![s("l"), Value::Int(1)], "-1"),
            (last_index_of, "hello", vec![s("hello!")], "-1"),
            (last_index_of, "hello", vec![s("")], "5"),
            (last_index_of, "", vec![s("a")], "-1"),
            (last_index_of, "ta©o©αT", vec![s("©"), Value::Int(3)], "2"),
            (last_index_of, "日本日本", vec![s("日本"), Value::Int(1)], "0"),
            (last_index_of, "日本日本", vec![s("日本"), Value::Int(3)], "2"),
            (substring, "日本語", vec![Value::Int(1), Value::Int(2)], "本"),
            (substring, "abc", vec![Value::Int(4)], "index out of range: 4"),
            (substring, "abc", vec![Value::Int(2), Value::Int(1)], "invalid substring range. start: 2, end: 1"),
        ];
        for (function, text, rest, expected) in cases {
            assert_eq!(call(*function, text, rest), *expected, "{text} {rest:?}");
        }
    }

    #[test]
    fn replacing_and_splitting_follow_go() {
        let cases: &[(Function, &str, Vec<Value<'static>>, &str)] = &[
            (replace, "hello", vec![s(""), s("-"), Value::Int(2)], "-h-ello"),
            (replace, "hello", vec![s(""), s("-")], "-h-e-l-l-o-"),
            (replace, "", vec![s(""), s("x")], "x"),
            (replace, "hello", vec![s("l"), s("L"), Value::Int(0)], "hello"),
            (replace, "hello", vec![s("l"), s("L"), Value::Int(-1)], "heLLo"),
            (split, "a,b,c", vec![s(",")], r#"["a", "b", "c"]"#),
            (split, "a,b,c", vec![s(","), Value::Int(2)], r#"["a", "b,c"]"#),
            (split, "a,b,c", vec![s(","), Value::Int(0)], "[]"),
            (split, "a,", vec![s(",")], r#"["a", ""]"#),
            (split, "", vec![s(",")], r#"[""]"#),
            (split, "", vec![s("")], "[]"),
            (split, "日本語", vec![s("")], r#"["日", "本", "語"]"#),
            (split, "日本語", vec![s(""), Value::Int(2)], r#"["日", "本語"]"#),
            (trim, " \u{a0}\t a b \n", vec![], "a b"),
            (quote, "a\n\"\\\u{0}", vec![], "\"a\\n\\\"\\\\\u{0}\""),
            (escape_json_pointer, "a/b~c", vec![], "a~1b~0c"),
        ];
        for (function, text, rest, expected) in cases {
            assert_eq!(call(*function, text, rest), *expected, "{text} {rest:?}");
        }
    }
}
