//! `spec.podFailurePolicy` and `spec.successPolicy`.

use super::indexes::Indexes;
use kinds::read::Read;
use object::Value;

/// What a rule of a failure policy does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The failure does not count.
    Ignore,
    /// It counts as without a policy.
    Count,
    /// The Job fails.
    FailJob,
    /// The index fails.
    FailIndex,
}

/// The rule that a failed pod matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Match {
    /// What happens.
    pub action: Action,
    /// Why, for the Job's condition.
    pub message: String,
}

/// The first rule of a failure policy (null: no policy) that a failed pod matches.
pub fn match_failure(policy: &Value, pod: &Value) -> Option<Match> {
    policy.list("rules").iter().enumerate().find_map(|(i, rule)| {
        let name = rule.text("action");
        let action = match name {
            "Ignore" => Action::Ignore,
            "Count" => Action::Count,
            "FailJob" => Action::FailJob,
            "FailIndex" => Action::FailIndex,
            _ => return None,
        };
        let who = || format!("{}/{}", pod.namespace(), pod.name());
        let message = if rule.has("onExitCodes") {
            let container = match_exit_code(pod, rule.sub("onExitCodes"))?;
            let code = container.sub("state").sub("terminated").int("exitCode");
            format!(
                "Container {} for pod {} failed with exit code {code} matching {name} rule at index {i}",
                container.text("name"),
                who()
            )
        } else {
            let condition = match_condition(pod, rule.list("onPodConditions"))?;
            format!("Pod {} has condition {} matching {name} rule at index {i}", who(), condition.text("type"))
        };
        Some(Match { action, message })
    })
}

fn match_exit_code<'p>(pod: &'p Value, wanted: &Value) -> Option<&'p Value> {
    let status = pod.sub("status");
    let of = |list: &str| {
        status.list(list).iter().find(|container| {
            let ended = container.sub("state").sub("terminated");
            let code = ended.int("exitCode");
            let listed = wanted.list("values").iter().any(|v| v.as_int() == Some(code));
            let matches = match wanted.text("operator") {
                "In" => listed,
                "NotIn" => !listed,
                _ => false,
            };
            let named = !wanted.has("containerName") || wanted.text("containerName") == container.text("name");
            !ended.is_null() && named && code != 0 && matches
        })
    };
    of("containerStatuses").or_else(|| of("initContainerStatuses"))
}

fn match_condition<'p>(pod: &'p Value, patterns: &[Value]) -> Option<&'p Value> {
    pod.sub("status").list("conditions").iter().find(|condition| {
        let same = |pattern: &Value, key: &str| pattern.text(key) == condition.text(key);
        patterns.iter().any(|pattern| same(pattern, "type") && same(pattern, "status"))
    })
}

/// The rule of a success policy (null: no policy) that the succeeded indexes satisfy, as the Job's condition tells it.
pub fn match_success(policy: &Value, completions: i64, succeeded: &Indexes) -> Option<String> {
    if succeeded.is_empty() {
        return None;
    }
    let matching = policy.list("rules").iter().position(|rule| {
        let count = rule.opt_int("succeededCount");
        if rule.has("succeededIndexes") {
            let required = Indexes::parse(rule.text("succeededIndexes"), completions);
            let there = required.in_both(succeeded);
            there >= count.unwrap_or_else(|| required.len())
        } else {
            count.is_some_and(|count| succeeded.len() >= count)
        }
    })?;
    Some(format!("Matched rules at index {matching}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    fn parse(text: &str) -> Value {
        json::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn the_first_matching_rule_decides() {
        let policy = parse(
            r#"{"rules":[
            {"action":"Ignore","onPodConditions":[{"type":"DisruptionTarget","status":"True"}]},
            {"action":"FailJob","onExitCodes":{"operator":"In","values":[42],"containerName":"main"}},
            {"action":"FailIndex","onExitCodes":{"operator":"NotIn","values":[1,42]}}]}"#,
        );
        let pod = |status: &str| parse(&format!(r#"{{"metadata":{{"name":"p","namespace":"n"}},"status":{status}}}"#));
        let exit = |container: &str, code: i64| {
            pod(&format!(
                r#"{{"containerStatuses":[{{"name":"{container}","state":{{"terminated":{{"exitCode":{code}}}}}}}]}}"#
            ))
        };
        let disrupted = pod(r#"{"conditions":[{"type":"DisruptionTarget","status":"True"}]}"#);
        for (pod, expected) in [
            (
                disrupted,
                Some((Action::Ignore, "Pod n/p has condition DisruptionTarget matching Ignore rule at index 0")),
            ),
            (
                exit("main", 42),
                Some((
                    Action::FailJob,
                    "Container main for pod n/p failed with exit code 42 matching FailJob rule at index 1",
                )),
            ),
            (exit("side", 42), None),
            (exit("main", 1), None),
            (exit("main", 0), None),
            (
                exit("side", 3),
                Some((
                    Action::FailIndex,
                    "Container side for pod n/p failed with exit code 3 matching FailIndex rule at index 2",
                )),
            ),
            (pod(r#"{"containerStatuses":[{"name":"main","state":{"running":{}}}]}"#), None),
        ] {
            let found = match_failure(&policy, &pod);
            assert_eq!(found.as_ref().map(|m| (m.action, m.message.as_str())), expected);
        }
        assert_eq!(match_failure(&Value::Null, &exit("main", 42)), None);
    }

    #[test]
    fn a_success_policy_is_met_by_indexes_and_counts() {
        for (rules, succeeded, met) in [
            (r#"[{"succeededCount":2}]"#, "0", None),
            (r#"[{"succeededCount":2}]"#, "0,3", Some("Matched rules at index 0")),
            (r#"[{"succeededIndexes":"0,2"}]"#, "0,1", None),
            (r#"[{"succeededCount":9},{"succeededIndexes":"0,2"}]"#, "0-2", Some("Matched rules at index 1")),
            (r#"[{"succeededIndexes":"0-4","succeededCount":2}]"#, "3,4", Some("Matched rules at index 0")),
            (r#"[{"succeededCount":0}]"#, "", None),
        ] {
            let policy = parse(&format!(r#"{{"rules":{rules}}}"#));
            assert_eq!(match_success(&policy, 5, &Indexes::parse(succeeded, 5)).as_deref(), met, "{rules} {succeeded}");
        }
    }
}
