//! Paths to fields as rules (`fieldPath`) and selectable fields write them: `.spec.a`, `['b.c']`.

use crate::structural::Node;

/// Where a path leads.
#[derive(Debug)]
pub(crate) struct Found<'s> {
    /// The field as errors write it: `spec.a[key]`.
    pub(crate) field: String,
    /// Its schema.
    pub(crate) node: &'s Node,
}

const NO_FIELD: &str = "does not refer to a valid field";
const END: &str = "unexpected end of JSON path";

/// Follows `path` from `node`. With `brackets` false `['a']` is refused. The error is upstream's.
pub(crate) fn resolve<'s>(path: &str, node: &'s Node, brackets: bool) -> Result<Found<'s>, String> {
    let mut found = Found { field: String::new(), node };
    let mut tokens = Tokens { rest: path };
    while let Some(token) = tokens.next() {
        match token {
            "[" => {
                if !brackets {
                    return Err("array notation is not allowed".to_owned());
                }
                let name = tokens.next().ok_or(END)?;
                let inner = name.strip_prefix('\'').and_then(|name| name.strip_suffix('\''));
                let inner = inner.ok_or_else(|| format!("expected single quoted string but got {name}"))?;
                let name = unescape(inner).ok_or_else(|| format!("invalid string literal: {inner}"))?;
                found.step(&name)?;
                match tokens.next() {
                    Some("]") => {}
                    Some(other) => return Err(format!("expected ] but got {other}")),
                    None => return Err(END.to_owned()),
                }
            }
            "." => found.step(tokens.next().ok_or(END)?)?,
            other => return Err(format!("expected [ or . but got: {other}")),
        }
    }
    Ok(found)
}

impl Found<'_> {
    fn step(&mut self, name: &str) -> Result<(), String> {
        if self.node.properties().len() > 0 {
            self.node = self.node.property(name).ok_or(NO_FIELD)?;
            if !self.field.is_empty() {
                self.field.push('.');
            }
            self.field.push_str(name);
        } else {
            self.node = self.node.additional_schema().ok_or(NO_FIELD)?;
            self.field.push_str(&format!("[{name}]"));
        }
        Ok(())
    }
}

/// Single delimiters (`.`, `[`, `]`), quoted strings, and what stands between.
struct Tokens<'t> {
    rest: &'t str,
}

impl<'t> Iterator for Tokens<'t> {
    type Item = &'t str;

    fn next(&mut self) -> Option<&'t str> {
        let bytes = self.rest.as_bytes();
        let size = match bytes.first()? {
            b'.' | b'[' | b']' => 1,
            b'\'' => {
                let end = (1..bytes.len()).find(|i| bytes[*i] == b'\'' && bytes[*i - 1] != b'\\');
                end.map_or(bytes.len(), |i| i + 1)
            }
            _ => bytes.iter().position(|b| matches!(b, b'.' | b'[' | b']')).unwrap_or(bytes.len()),
        };
        let (token, rest) = self.rest.split_at(size);
        self.rest = rest;
        Some(token)
    }
}

fn unescape(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        out.push(match c {
            '\\' => match chars.next()? {
                'a' => '\u{7}',
                'b' => '\u{8}',
                'f' => '\u{c}',
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                'v' => '\u{b}',
                c @ ('\'' | '"' | '\\') => c,
                _ => return None,
            },
            '\'' => return None,
            c => c,
        });
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Structural;

    #[test]
    fn paths_lead_to_fields_or_say_why_not() {
        let schema = r#"{"type":"object","properties":{"spec":{"type":"object","properties":{"a.b":{"type":"string"},"m":{"type":"object","additionalProperties":{"type":"integer"}}}}}}"#;
        let schema = Structural::new(&object::json::parse(schema.as_bytes()).unwrap()).unwrap();
        for (path, want) in [
            (".spec['a.b']", Ok("spec.a.b")),
            (".spec.m.k", Ok("spec.m[k]")),
            (".spec.m['k']", Ok("spec.m[k]")),
            (".spec.", Err(END)),
            (".spec.zz", Err(NO_FIELD)),
            ("spec", Err("expected [ or . but got: spec")),
            (".spec[0]", Err("expected single quoted string but got 0")),
        ] {
            let got = resolve(path, schema.root(), true).map(|found| found.field);
            assert_eq!(got.as_deref().map_err(String::as_str), want, "{path}");
        }
        assert_eq!(resolve(".spec['a']", schema.root(), false).unwrap_err(), "array notation is not allowed");
    }
}
