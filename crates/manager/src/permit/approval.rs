//! Who may approve a permit, and when.

use crate::block::list;
use crate::condition::ApprovalCondition;
use object::Value;

/// Checks an approval against the rules of a template, as a permit recorded them: `reviewer` has `name`, `type`, `groups`;
/// without one the system approves.
///
/// # Errors
///
/// Why it may not be approved.
pub fn check(approvals: &Value, permit: &Value, reviewer: Option<&Value>) -> Result<(), String> {
    let approvers = list(approvals, &["approvers"]);
    if let Some(reviewer) = reviewer
        && !approvers.is_empty()
        && !approvers.iter().any(|a| is_approver(a, reviewer))
    {
        let name = reviewer.str_at(&["name"]).unwrap_or_default();
        return Err(format!("{name:?} is not an approver of this request"));
    }
    let conditions = list(approvals, &["conditions"]);
    if conditions.is_empty() {
        return Ok(());
    }
    let nobody = Value::Null;
    let requester = permit.at(&["spec", "requester"]).unwrap_or(&nobody);
    let mut problem = None;
    for condition in conditions.iter().filter_map(Value::as_str) {
        match ApprovalCondition::new(condition).and_then(|c| c.evaluate(permit, requester, reviewer)) {
            Ok(true) => return Ok(()),
            Ok(false) => {}
            Err(error) => problem = Some(error),
        }
    }
    Err(problem.map_or_else(
        || "no approval condition is met".to_owned(),
        |error| format!("no approval condition is met: {error}"),
    ))
}

fn is_approver(approver: &Value, reviewer: &Value) -> bool {
    let text = |v: &Value, key: &str| v.str_at(&[key]).unwrap_or_default().to_owned();
    let (name, who) = (text(approver, "name"), text(reviewer, "name"));
    if name.is_empty() {
        return false;
    }
    match approver.str_at(&["kind"]) {
        Some("Group") => list(reviewer, &["groups"]).iter().any(|g| g.as_str() == Some(&name)),
        Some("ServiceAccount") => {
            let short = who.strip_prefix("system:serviceaccount:");
            who == name || short.is_some_and(|s| s == name || s.replace(':', "/") == name)
        }
        _ => who == name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::yaml;

    #[test]
    fn approvers_and_conditions_must_both_agree() {
        let permit = "{spec: {reason: fire, requester: {name: bob, groups: [dev]}}}";
        let alice = Some("{name: alice, type: User, groups: [ops]}");
        for (rules, reviewer, expected) in [
            ("{}", alice, true),
            ("{approvers: [{kind: User, name: alice}]}", alice, true),
            ("{approvers: [{kind: User, name: carol}, {kind: Group, name: ops}]}", alice, true),
            ("{approvers: [{kind: User, name: carol}]}", alice, false),
            ("{approvers: [{kind: User, name: carol}]}", None, true),
            (
                "{approvers: [{kind: ServiceAccount, name: 'system:serviceaccount:a:b'}]}",
                Some("{name: 'system:serviceaccount:a:b'}"),
                true,
            ),
            ("{conditions: ['reviewer.name != requester.name']}", alice, true),
            ("{conditions: ['reviewer.name != requester.name']}", Some("{name: bob}"), false),
            ("{conditions: ['false', \"request.spec.reason == 'fire'\"]}", None, true),
            ("{conditions: ['reviewer.name == \"x\"']}", None, false),
            ("{approvers: [{kind: User, name: alice}], conditions: ['false']}", alice, false),
        ] {
            let read = |t: &str| yaml::parse(t.as_bytes()).unwrap();
            let got = check(&read(rules), &read(permit), reviewer.map(read).as_ref());
            assert_eq!(got.is_ok(), expected, "{rules} {reviewer:?}: {got:?}");
        }
    }
}
