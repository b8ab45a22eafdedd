//! A template of pods in Go's syntax, as the complaint about its change shows it.

use super::types::{Shape, Struct, TEMPLATE};
use crate::check::quantity;
use crate::read::Read;
use object::{Value, go};
use std::fmt::Write;

/// A template of pods: `core.PodTemplateSpec{ObjectMeta:…, Spec:…}`.
pub(crate) fn pod_template(template: &Value) -> String {
    let mut out = String::new();
    structure(&TEMPLATE, template, &mut out);
    out
}

fn structure(kind: &Struct, value: &Value, out: &mut String) {
    out.push_str(kind.name);
    out.push('{');
    for (i, (name, key, shape)) in kind.fields.iter().enumerate() {
        if i > 0 {
            out.push_str(", ");
        }
        out.push_str(name);
        out.push(':');
        field(*shape, value, key, out);
    }
    out.push('}');
}

fn field(shape: Shape, parent: &Value, key: &str, out: &mut String) {
    match shape {
        Shape::Text => out.push_str(&go::quote(parent.text(key))),
        Shape::Int => {
            let _ = write!(out, "{}", parent.int(key));
        }
        Shape::Bool => {
            let _ = write!(out, "{}", parent.flag(key));
        }
        Shape::Pointer(name) => {
            let address = if parent.has(key) { go::ADDRESS } else { "nil" };
            let _ = write!(out, "(*{name})({address})");
        }
        Shape::Names(_) => match parent.strings(key) {
            list if list.is_empty() => out.push_str("[]string(nil)"),
            list => out.push_str(&go::string_list(&list)),
        },
        Shape::To(kind) => field(Shape::Pointer(kind.name), parent, key, out),
        Shape::Labels => match parent.members(key) {
            map if map.is_empty() => out.push_str("map[string]string(nil)"),
            map => out.push_str(&crate::check::go_string_map(map)),
        },
        Shape::Resources => match parent.members(key) {
            map if map.is_empty() => out.push_str("core.ResourceList(nil)"),
            map => {
                let amounts = map.iter().filter_map(|(name, value)| Some((name, quantity(value)?)));
                let pairs: Vec<String> =
                    amounts.map(|(name, amount)| format!("{}:{}", go::quote(name), amount.go_syntax())).collect();
                let _ = write!(out, "core.ResourceList{{{}}}", pairs.join(", "));
            }
        },
        Shape::Struct(kind) => structure(kind, parent.sub(key), out),
        Shape::List(name, kind) => match (parent.list(key), kind) {
            ([], _) => {
                let _ = write!(out, "[]{name}(nil)");
            }
            (items, Some(kind)) => {
                let _ = write!(out, "[]{name}{{");
                for (i, item) in items.iter().enumerate() {
                    if i > 0 {
                        out.push_str(", ");
                    }
                    structure(kind, item, out);
                }
                out.push('}');
            }
            (items, None) => {
                // What these hold is not spelled out; how many there are is.
                let _ = write!(out, "[]{name}{{{}}}", vec![format!("{name}{{}}"); items.len()].join(", "));
            }
        },
        Shape::Fixed(text) => out.push_str(text),
    }
}
