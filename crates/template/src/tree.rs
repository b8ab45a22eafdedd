//! Values whose strings are templates.

use crate::{Data, Error, Functions, Settings, Template, is_literal};
use object::{Map, Value};

/// A value, read once, whose strings and keys are Go templates. Each is rendered by itself and stays one string, so that
/// no parameter, whatever quotes or line breaks it holds, can add a field or change a type.
///
/// ```
/// use template::{Data, Functions, Settings, Tree};
/// let target = object::json::parse(br#"{"data": {"who": "{{ .who }}"}}"#).unwrap();
/// let tree = Tree::parse("targets[0]", &target, Functions::Sprig)?;
/// let hostile = object::Value::Object(object::map! { "who" => "x\"}, \"evil\": {\"" });
/// let out = tree.render(&Data::from(&hostile), &Settings::default())?;
/// assert_eq!(out.str_at(&["data", "who"]), Some("x\"}, \"evil\": {\""));
/// assert_eq!(out.as_object().map(|o| o.len()), Some(1));
/// # Ok::<(), template::Error>(())
/// ```
#[derive(Debug)]
pub struct Tree(Node);

#[derive(Debug)]
enum Node {
    /// Without a template in it.
    Fixed(Value),
    Leaf(Template),
    Array(Vec<Node>),
    Object(Vec<(Key, Node)>),
}

#[derive(Debug)]
enum Key {
    Fixed(String),
    Template(Template),
}

impl Tree {
    /// Reads the templates in a value. Errors call a template by `name` and its path: `targets[0].metadata.name`.
    ///
    /// # Errors
    ///
    /// The first template that does not parse.
    pub fn parse(name: &str, value: &Value, functions: Functions) -> Result<Tree, Error> {
        node(name, value, functions).map(Tree)
    }

    /// Renders every template and gives the value with the results in place.
    ///
    /// # Errors
    ///
    /// The first template that fails, and two keys of one object that become the same.
    pub fn render(&self, data: &Data<'_>, settings: &Settings) -> Result<Value, Error> {
        render(&self.0, data, settings)
    }
}

fn node(name: &str, value: &Value, functions: Functions) -> Result<Node, Error> {
    Ok(match value {
        Value::String(s) if !is_literal(s) => Node::Leaf(Template::parse(name, s, functions)?),
        Value::Array(items) if !is_fixed(value) => {
            let nodes = items.iter().enumerate().map(|(i, item)| node(&format!("{name}[{i}]"), item, functions));
            Node::Array(nodes.collect::<Result<_, _>>()?)
        }
        Value::Object(members) if !is_fixed(value) => {
            let mut nodes = Vec::with_capacity(members.len());
            for (key, member) in members.iter() {
                let path = format!("{name}.{key}");
                let key = if is_literal(key) {
                    Key::Fixed(key.to_owned())
                } else {
                    Key::Template(Template::parse(&path, key, functions)?)
                };
                nodes.push((key, node(&path, member, functions)?));
            }
            Node::Object(nodes)
        }
        fixed => Node::Fixed(fixed.clone()),
    })
}

fn is_fixed(value: &Value) -> bool {
    match value {
        Value::String(s) => is_literal(s),
        Value::Array(items) => items.iter().all(is_fixed),
        Value::Object(members) => members.iter().all(|(k, v)| is_literal(k) && is_fixed(v)),
        _ => true,
    }
}

fn render(node: &Node, data: &Data<'_>, settings: &Settings) -> Result<Value, Error> {
    Ok(match node {
        Node::Fixed(value) => value.clone(),
        Node::Leaf(template) => Value::from(template.render(data, settings)?),
        Node::Array(items) => Value::Array(items.iter().map(|i| render(i, data, settings)).collect::<Result<_, _>>()?),
        Node::Object(members) => {
            let mut out = Map::new();
            for (key, member) in members {
                let key = match key {
                    Key::Fixed(key) => key.clone(),
                    Key::Template(template) => template.render(data, settings)?,
                };
                let member = render(member, data, settings)?;
                if out.insert(key.as_str(), member).is_some() {
                    return Err(Error(format!("two keys become {}", object::go::quote(&key))));
                }
            }
            Value::Object(out)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render(text: &str) -> Result<String, String> {
        let value = object::json::parse(text.as_bytes()).unwrap();
        let data = Value::Object(object::map! { "x" => "a\nb: c\n---\n", "k" => "key" });
        let tree = Tree::parse("t", &value, Functions::Sprig).map_err(|e| e.to_string())?;
        let out = tree.render(&Data::from(&data), &Settings::default()).map_err(|e| e.to_string())?;
        Ok(object::json::to_string(&out))
    }

    #[test]
    fn leaves_stay_single_strings() {
        assert_eq!(render(r#"{"a":["{{ .x }}",1]}"#).unwrap(), r#"{"a":["a\nb: c\n---\n",1]}"#);
        assert_eq!(render(r#"{"{{ .k }}":"{{ index $ \"k\" }}"}"#).unwrap(), r#"{"key":"key"}"#);
    }

    #[test]
    fn errors_name_the_leaf() {
        assert_eq!(render(r#"{"a":[0,"{{ end }}"]}"#).unwrap_err(), "template: t.a[1]:1: unexpected {{end}}");
        assert_eq!(render(r#"{"key":1,"{{ .k }}":2}"#).unwrap_err(), "two keys become \"key\"");
    }
}
