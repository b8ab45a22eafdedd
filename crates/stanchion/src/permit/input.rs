//! What a request says on the command line.

use object::{Map, Value, json, yaml};

/// The parameters of a file with those of the command line put in.
///
/// # Errors
///
/// What is wrong with which of them.
pub fn params(file: Option<&[u8]>, single: &[String]) -> Result<Value, String> {
    let mut params = match file {
        None => Value::Object(Map::new()),
        Some(text) => match yaml::parse(text)? {
            params @ Value::Object(_) => params,
            Value::Null => Value::Object(Map::new()),
            _ => return Err("the parameters of the file are no object".to_owned()),
        },
    };
    for text in single {
        let (key, value) = text.split_once('=').ok_or_else(|| format!("--param {text}: it has to be KEY=VALUE"))?;
        let path: Vec<&str> = key.split('.').collect();
        if path.iter().any(|part| part.is_empty()) {
            return Err(format!("--param {text}: the key is not complete"));
        }
        // `3` and `true` are what they look like; what is no JSON is a text.
        let value = json::parse(value.as_bytes()).unwrap_or_else(|_| value.into());
        for end in 1..path.len() {
            let within = path.get(..end).and_then(|path| params.at(path));
            if within.is_some_and(|v| v.as_object().is_none()) {
                return Err(format!("--param {text}: {} is no object", path.get(..end).unwrap_or_default().join(".")));
            }
        }
        params.set_at(&path, value);
    }
    Ok(params)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_json_or_texts_by_dotted_keys() {
        for (file, single, expected) in [
            (
                None,
                &["a=x", "b.c=3", "b.d=true", "e=\"3\"", "f=", "g=[1, 2]", "h=a: b: c", "i=y"][..],
                Ok(r#"{"a":"x","b":{"c":3,"d":true},"e":"3","f":"","g":[1,2],"h":"a: b: c","i":"y"}"#),
            ),
            (Some("{a: 1, b: {c: 2}}"), &["b.c=5"], Ok(r#"{"a":1,"b":{"c":5}}"#)),
            (Some(""), &[], Ok("{}")),
            (Some("[1]"), &[], Err("the parameters of the file are no object")),
            (None, &["a"], Err("--param a: it has to be KEY=VALUE")),
            (None, &["a..b=1"], Err("--param a..b=1: the key is not complete")),
            (None, &["a=1", "a.b=2"], Err("--param a.b=2: a is no object")),
        ] {
            let single: Vec<String> = single.iter().map(|&s| s.to_owned()).collect();
            let got = params(file.map(str::as_bytes), &single).map(|v| json::to_string(&v));
            assert_eq!(got.as_deref().map_err(String::as_str), expected);
        }
    }
}
