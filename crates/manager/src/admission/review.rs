//! AdmissionReviews (`admission.k8s.io/v1`): what an API server asks a webhook, and the answers.

use super::{Admission, Request};
use base64::{Engine, engine::general_purpose::STANDARD};
use jiff::Timestamp;
use object::{Map, Value, json, map};

/// What a webhook is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// What is to change in the object.
    Mutate,
    /// Whether the write may happen.
    Validate,
}

/// Answers a review.
///
/// # Errors
///
/// What was sent is no review, or the manager is not ready yet; the caller shall be told so, and its server then does as the
/// registration's failure policy says.
pub fn answer(admission: &Admission, step: Step, review: &Value, now: Timestamp) -> Result<Value, String> {
    let Some(asked) = review.get("request").filter(|r| r.as_object().is_some()) else {
        return Err("this is no AdmissionReview with a request".to_owned());
    };
    if !admission.is_ready() {
        return Err("the manager is starting; try again".to_owned());
    }
    let mut response = map! { "uid" => text(asked, &["uid"]) };
    match judge(admission, step, asked, now) {
        Ok(patch) => {
            response.insert("allowed", true);
            if !patch.is_empty() {
                response.insert("patchType", "JSONPatch");
                response.insert("patch", STANDARD.encode(json::to_vec(&Value::Array(patch))));
            }
        }
        Err(why) => {
            response.insert("allowed", false);
            response.insert("status", map! { "code" => 403, "reason" => "Forbidden", "message" => why });
        }
    }
    let answer = map! { "apiVersion" => "admission.k8s.io/v1", "kind" => "AdmissionReview", "response" => response };
    Ok(answer.into())
}

/// Who asks for the write that a review is about.
pub fn user(review: &Value) -> &str {
    text(review, &["request", "userInfo", "username"])
}

/// Whether an answer refuses the write.
pub fn is_refusal(answer: &Value) -> bool {
    answer.at(&["response", "allowed"]).and_then(Value::as_bool) == Some(false)
}

fn judge(admission: &Admission, step: Step, asked: &Value, now: Timestamp) -> Result<Vec<Value>, String> {
    let there = |key: &str| asked.get(key).filter(|v| !v.is_null());
    let groups = asked.at(&["userInfo", "groups"]).and_then(Value::as_array).unwrap_or_default();
    let groups: Vec<String> = groups.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    let request = Request {
        operation: text(asked, &["operation"]),
        group: text(asked, &["resource", "group"]),
        resource: text(asked, &["resource", "resource"]),
        kind: text(asked, &["kind", "kind"]),
        subresource: text(asked, &["subResource"]),
        namespace: text(asked, &["namespace"]),
        name: text(asked, &["name"]),
        user: text(asked, &["userInfo", "username"]),
        groups: &groups,
        old: there("oldObject"),
        now,
    };
    let object = there("object");
    match (step, object) {
        (Step::Validate, object) => admission.validate(&request, object).map(|()| Vec::new()),
        (Step::Mutate, None) => Ok(Vec::new()),
        (Step::Mutate, Some(object)) => {
            let mut changed = object.clone();
            let mut patch = Vec::new();
            if admission.mutate(&request, &mut changed)? {
                operations("", object, &changed, &mut patch);
            }
            Ok(patch)
        }
    }
}

fn text<'a>(value: &'a Value, path: &[&str]) -> &'a str {
    value.str_at(path).unwrap_or_default()
}

/// The operations of a JSON patch that make one value of another.
fn operations(path: &str, from: &Value, to: &Value, out: &mut Vec<Value>) {
    let mut put = |op: &str, path: String, value: Option<&Value>| {
        let mut operation = map! { "op" => op, "path" => path };
        if let Some(value) = value {
            operation.insert("value", value.clone());
        }
        out.push(operation.into());
    };
    match (from, to) {
        (from, to) if from == to => {}
        (Value::Object(from), Value::Object(to)) => {
            for (key, _) in from.iter().filter(|(key, _)| !to.contains_key(key)) {
                put("remove", below(path, key), None);
            }
            for (key, value) in to.iter().filter(|(key, _)| !from.contains_key(key)) {
                put("add", below(path, key), Some(value));
            }
            each(path, from, to, out);
        }
        (Value::Array(from), Value::Array(to)) if from.len() == to.len() => {
            for (i, (from, to)) in from.iter().zip(to).enumerate() {
                operations(&format!("{path}/{i}"), from, to, out);
            }
        }
        (_, to) => put("replace", path.to_owned(), Some(to)),
    }
}

fn each(path: &str, from: &Map, to: &Map, out: &mut Vec<Value>) {
    for (key, old) in from.iter() {
        if let Some(new) = to.get(key) {
            operations(&below(path, key), old, new, out);
        }
    }
}

fn below(path: &str, key: &str) -> String {
    format!("{path}/{}", key.replace('~', "~0").replace('/', "~1"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::yaml;

    fn read(text: &str) -> Value {
        yaml::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn changes_are_narrow_patches() {
        for (from, to, expected) in [
            ("{a: 1}", "{a: 1}", "[]"),
            (
                "{a: 1, b: 2}",
                "{a: 3, c: {d: 4}}",
                r#"[{"op":"remove","path":"/b"},{"op":"add","path":"/c","value":{"d":4}},{"op":"replace","path":"/a","value":3}]"#,
            ),
            ("{l: [{}, {x: 1}]}", "{l: [{p: {q: 1}}, {x: 1}]}", r#"[{"op":"add","path":"/l/0/p","value":{"q":1}}]"#),
            ("{l: [1]}", "{l: [1, 2]}", r#"[{"op":"replace","path":"/l","value":[1,2]}]"#),
            ("{m: {}}", "{m: {a/b~c: x}}", r#"[{"op":"add","path":"/m/a~1b~0c","value":"x"}]"#),
        ] {
            let mut out = Vec::new();
            operations("", &read(from), &read(to), &mut out);
            assert_eq!(json::to_string(&Value::Array(out)), expected, "{from} {to}");
        }
    }

    #[test]
    fn nothing_is_answered_before_the_manager_knows_anything() {
        let now = Timestamp::UNIX_EPOCH;
        let admission = Admission::default();
        let review = read("{request: {uid: u, operation: DELETE, userInfo: {username: bob}}}");
        let answer = |review| answer(&admission, Step::Validate, review, now);
        assert_eq!(answer(&review), Err("the manager is starting; try again".to_owned()));
        assert_eq!(answer(&read("{}")), Err("this is no AdmissionReview with a request".to_owned()));
        assert_eq!(user(&review), "bob");
    }
}
