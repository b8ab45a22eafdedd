//! Merge patches and JSON patches.

use object::{Map, Value};

pub fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(changes) = patch else {
        *target = patch.clone();
        return;
    };
    if !matches!(target, Value::Object(_)) {
        *target = Value::Object(Map::new());
    }
    let Some(members) = target.as_object_mut() else { return };
    for (key, change) in changes.iter() {
        if change.is_null() {
            members.remove(key);
        } else {
            merge(members.get_or_insert(key, Value::default), change);
        }
    }
}

pub fn apply_json(target: &mut Value, patch: &Value) -> Result<(), String> {
    for op in patch.as_array().unwrap_or_default() {
        let path = op.str_at(&["path"]).unwrap_or_default();
        let steps: Vec<String> = path.split('/').skip(1).map(|s| s.replace("~1", "/").replace("~0", "~")).collect();
        let (last, parents) = steps.split_last().ok_or("a JSON patch of the root")?;
        let mut at = &mut *target;
        for step in parents {
            at = match at {
                Value::Object(m) => m.get_mut(step),
                Value::Array(a) => step.parse::<usize>().ok().and_then(|i| a.get_mut(i)),
                _ => None,
            }
            .ok_or("a path of a JSON patch leads nowhere")?;
        }
        let value = op.get("value").cloned().unwrap_or_default();
        let name = op.str_at(&["op"]).unwrap_or_default();
        match (name, at) {
            ("add" | "replace", Value::Object(m)) => {
                m.insert(last.as_str(), value);
            }
            ("remove", Value::Object(m)) => {
                m.remove(last);
            }
            ("add", Value::Array(a)) if last == "-" => a.push(value),
            (op, Value::Array(a)) => {
                let i: usize = last.parse().map_err(|_| "a JSON patch with a bad index")?;
                match op {
                    "add" => a.insert(i, value),
                    "replace" => a[i] = value,
                    "remove" => {
                        a.remove(i);
                    }
                    _ => {}
                }
            }
            ("test", _) => {}
            _ => return Err("a JSON patch of another kind".to_owned()),
        }
    }
    Ok(())
}
