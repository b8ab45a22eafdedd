//! As whom an Application is carried out: written down when somebody declares it.

use super::Request;
use crate::application::names::{GROUP, SERVICE_ACCOUNT, USERNAME};
use object::Value;

/// Notes who declares an Application in the annotations that the controller follows. Whoever leaves what is declared as it
/// is changes nothing about that.
///
/// # Errors
///
/// It names a service account, as which it would be carried out instead.
pub(super) fn mutate(request: &Request<'_>, object: &mut Value) -> Result<bool, String> {
    if object.annotation(SERVICE_ACCOUNT).is_some_and(|account| !account.is_empty()) {
        return Err(format!("the annotation {SERVICE_ACCOUNT} is not permitted where Applications are authenticated"));
    }
    let before = object.at(&["metadata", "annotations"]).cloned();
    let kept = request.old.filter(|old| old.get("spec") == object.get("spec"));
    // Groups are written as a list with commas: one with a comma would become others.
    let groups = request.groups.iter().filter(|group| !group.contains(',')).map(String::as_str);
    let written = match kept {
        Some(old) => [old.annotation(USERNAME).map(str::to_owned), old.annotation(GROUP).map(str::to_owned)],
        None => [Some(request.user.to_owned()), Some(groups.collect::<Vec<_>>().join(","))],
    };
    for (key, value) in [USERNAME, GROUP].into_iter().zip(written) {
        match value {
            Some(value) => object.set_at(&["metadata", "annotations", key], value.into()),
            None => {
                object.remove_at(&["metadata", "annotations", key]);
            }
        }
    }
    Ok(before.as_ref() != object.at(&["metadata", "annotations"]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::yaml;

    #[test]
    fn whoever_declares_is_written_down_and_nobody_else() {
        let bob = "{metadata: {annotations: {app.oam.dev/username: bob, app.oam.dev/group: dev}}, spec: {a: 1}}";
        for (old, new, expected) in [
            (None, "{spec: {a: 1}}", Ok(("eve", "ops"))),
            (None, "{metadata: {annotations: {app.oam.dev/username: root}}, spec: {a: 1}}", Ok(("eve", "ops"))),
            (Some(bob), "{metadata: {labels: {x: y}}, spec: {a: 1}}", Ok(("bob", "dev"))),
            (Some(bob), "{metadata: {annotations: {app.oam.dev/username: root}}, spec: {a: 1}}", Ok(("bob", "dev"))),
            (Some(bob), "{spec: {a: 2}}", Ok(("eve", "ops"))),
            (None, "{metadata: {annotations: {app.oam.dev/service-account-name: x}}}", Err(())),
        ] {
            let read = |text: &str| yaml::parse(text.as_bytes()).unwrap();
            let (old, mut object) = (old.map(read), read(new));
            let groups = ["ops".to_owned(), "system:masters,x".to_owned()];
            let request = Request {
                operation: if old.is_some() { "UPDATE" } else { "CREATE" },
                group: "core.oam.dev",
                resource: "applications",
                kind: "Application",
                subresource: "",
                namespace: "n",
                name: "a",
                user: "eve",
                groups: &groups,
                old: old.as_ref(),
                now: jiff::Timestamp::UNIX_EPOCH,
            };
            let outcome = mutate(&request, &mut object).map_err(|_| ()).map(|_| {
                let text = |key| object.annotation(key).unwrap_or_default();
                (text(USERNAME), text(GROUP))
            });
            assert_eq!(outcome, expected, "{new}");
        }
    }
}
