//! Plain substitution: `{{name}}` is replaced by a value, and nothing else is understood.
//!
//! ```
//! let names = |name: &str| (name == "namespace").then(|| "solar-test".to_owned());
//! assert_eq!(template::fast::render("{{ namespace }}-cm {{other}}!", &names), "solar-test-cm !");
//! ```

use object::{Map, Value};

/// What stands for a name; none is the same as nothing.
pub trait Lookup {
    /// The text for `name`.
    fn lookup(&self, name: &str) -> Option<String>;
}

impl<F: Fn(&str) -> Option<String>> Lookup for F {
    fn lookup(&self, name: &str) -> Option<String> {
        self(name)
    }
}

/// Replaces every `{{name}}` in a text, once: what is put in is not looked at again. Spaces in the braces do not count; an
/// unknown name becomes nothing; braces that are not closed stay.
pub fn render(text: &str, names: &impl Lookup) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        let Some((name, next)) = after.split_once("}}") else { break };
        out.push_str(before);
        out.push_str(&names.lookup(name.trim()).unwrap_or_default());
        rest = next;
    }
    out.push_str(rest);
    out
}

/// Replaces in every string and every key of a value. Numbers, booleans and the shape of the value stay as they are.
pub fn tree(value: &Value, names: &impl Lookup) -> Value {
    match value {
        Value::String(s) if s.contains("{{") => Value::from(render(s, names)),
        Value::Array(items) => Value::Array(items.iter().map(|i| tree(i, names)).collect()),
        Value::Object(members) => {
            let members = members.iter().map(|(k, v)| {
                let key = if k.contains("{{") { render(k, names) } else { k.to_owned() };
                (key, tree(v, names))
            });
            Value::Object(members.collect::<Map>())
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(name: &str) -> Option<String> {
        match name {
            "tenant.name" => Some("solar".to_owned()),
            "evil" => Some("{{tenant.name}}\", \"x\": \"".to_owned()),
            _ => None,
        }
    }

    #[test]
    fn names_are_replaced_once() {
        for (text, expected) in [
            ("", ""),
            ("plain", "plain"),
            ("{{tenant.name}}", "solar"),
            ("a-{{ tenant.name }}-{{nothing}}-b", "a-solar--b"),
            ("{{tenant.name", "{{tenant.name"),
            ("{{evil}}", "{{tenant.name}}\", \"x\": \""),
            ("}}{{}}", "}}"),
        ] {
            assert_eq!(render(text, &names), expected);
        }
    }

    #[test]
    fn a_value_keeps_its_shape() {
        let value = Value::Object(object::map! { "{{tenant.name}}" => vec!["{{evil}}", "x"], "n" => 1 });
        let expected = Value::Object(object::map! { "solar" => vec!["{{tenant.name}}\", \"x\": \"", "x"], "n" => 1 });
        assert_eq!(tree(&value, &names), expected);
    }
}
