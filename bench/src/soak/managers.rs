//! Managers that apply to the same objects, each its own fields.

use super::kinds::{CONFIG_MAP, DEPLOYMENT, KINDS, WIDGET};
use super::run::{Answer, Caller, Run};
use compat::client::Request;
use object::Value;
use std::time::Duration;

/// The namespace of the shared objects; nobody else changes anything there.
pub const NAMESPACE: &str = "soak-shared";
/// How many objects of each kind are shared.
const OBJECTS: usize = 2;

/// What a manager applies to an object of a kind.
fn configuration(kind: usize, name: &str, manager: usize, mark: usize) -> String {
    let head = format!(
        r#""apiVersion":"{}","kind":"{}","metadata":{{"name":"{name}"}}"#,
        KINDS[kind].api_version, KINDS[kind].kind
    );
    match kind {
        CONFIG_MAP => format!(r#"{{{head},"data":{{"m{manager}":"{mark}"}}}}"#),
        DEPLOYMENT => format!(
            r#"{{{head},"spec":{{"selector":{{"matchLabels":{{"app":"a"}}}},"template":{{"metadata":{{"labels":{{"app":"a"}}}},
                "spec":{{"containers":[{{"name":"c","image":"nginx:1","env":[{{"name":"M{manager}","value":"{mark}"}}]}}]}}}}}}}}"#
        ),
        _ => format!(r#"{{{head},"spec":{{"size":1,"parts":[{{"name":"m{manager}","count":{mark}}}]}}}}"#),
    }
}

/// The mark that an object has of a manager.
fn mark_of(kind: usize, object: &Value, manager: usize) -> Option<usize> {
    let named = |list: Option<&Value>, name: String, key: &str| {
        let item = list?.as_array()?.iter().find(|item| item.str_at(&["name"]) == Some(&name))?;
        let value = item.get(key)?;
        value.as_str().map_or_else(|| value.as_int().and_then(|i| usize::try_from(i).ok()), |text| text.parse().ok())
    };
    match kind {
        CONFIG_MAP => object.str_at(&["data", &format!("m{manager}")])?.parse().ok(),
        DEPLOYMENT => {
            let containers = object.at(&["spec", "template", "spec", "containers"])?.as_array()?;
            named(containers.first()?.get("env"), format!("M{manager}"), "value")
        }
        _ => named(object.at(&["spec", "parts"]), format!("m{manager}"), "count"),
    }
}

/// Applies until the end; then what was acknowledged last must be there still.
pub async fn manager(run: &Run, number: usize, pace: Duration) {
    let mut caller = Caller::new(run);
    let subjects: Vec<(usize, String)> = [CONFIG_MAP, DEPLOYMENT, WIDGET]
        .iter()
        .flat_map(|kind| (0..OBJECTS).map(|object| (*kind, format!("shared-{object}"))))
        .collect();
    let mut acknowledged = vec![None; subjects.len()];
    let mut mark = 0;
    while !run.is_over() {
        for ((kind, name), acknowledged) in subjects.iter().zip(&mut acknowledged) {
            mark += 1;
            let path = format!("{}/{name}?fieldManager=manager-{number}", KINDS[*kind].collection(NAMESPACE));
            let body = configuration(*kind, name, number, mark);
            let request = Request::new("PATCH", path).body("application/apply-patch+yaml", body);
            // Two may meet five times in a row. Nobody owns what another applies, so there are no other conflicts.
            let Some(answer) = caller.write("shared apply", *kind, &request, &[200, 201, 409]).await else { continue };
            if answer.code == 409 {
                if !answer.message().contains("the object has been modified") {
                    run.fault(format!("manager {number} of {name}: {}", answer.message()));
                }
                continue;
            }
            check(run, &answer, *kind, number, mark);
            *acknowledged = Some(mark);
            run.pause(pace).await;
        }
    }
    for ((kind, name), acknowledged) in subjects.iter().zip(&acknowledged) {
        let request = Request::new("GET", format!("{}/{name}", KINDS[*kind].collection(NAMESPACE)));
        let Some(answer) = caller.send("get", &request, &[200]).await else { continue };
        let held = mark_of(*kind, &answer.object, number);
        if acknowledged.is_some() && held != *acknowledged {
            run.fault(format!("{name} has {held:?} of manager {number}, {acknowledged:?} was acknowledged"));
        }
    }
}

/// The answer has what was applied, owned by who applied it.
fn check(run: &Run, answer: &Answer, kind: usize, manager: usize, mark: usize) {
    let owners = answer.object.at(&["metadata", "managedFields"]).and_then(Value::as_array).unwrap_or_default();
    let name = format!("manager-{manager}");
    let owns = owners.iter().filter(|entry| entry.str_at(&["manager"]) == Some(&name)).count();
    let held = mark_of(kind, &answer.object, manager);
    if held != Some(mark) || owns != 1 {
        run.fault(format!("the answer to {name} has {held:?} in place of {mark}, and {owns} entries of it"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_found_where_they_are_applied() {
        for kind in [CONFIG_MAP, DEPLOYMENT, WIDGET] {
            let object = object::json::parse(configuration(kind, "n", 3, 7).as_bytes()).unwrap();
            assert_eq!(mark_of(kind, &object, 3), Some(7));
            assert_eq!(mark_of(kind, &object, 4), None);
        }
    }
}
