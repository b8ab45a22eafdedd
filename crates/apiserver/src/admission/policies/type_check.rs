//! Checking the expressions of ValidatingAdmissionPolicies against the schemas of what they are about. It finds mistakes
//! that show otherwise only when a request comes; what it finds changes nothing for requests.
//!
//! Source of the rules and texts: `k8s.io/apiserver/pkg/admission/plugin/policy/validating/typechecking.go`.

use super::params::ParamKind;
use crate::admission::cel::{SchemaTypes, VariableTypes, typed_environment};
use crate::catalogue::{Catalogue, Resource};
use cel::check::check;
use cel::env::Env;
use cel::parse::{ParserOptions, parse};
use cel::types::Type;
use object::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How many kinds a rule is checked against.
const MAX_TYPES: usize = 10;

/// What is odd about an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Where it is: `spec.validations[0].expression`.
    pub field: String,
    /// What is odd, kind by kind.
    pub text: String,
}

/// Checks the validations of a policy and their messages against what is served now.
pub fn check_types(catalogue: &Catalogue, policy: &Value) -> Vec<Warning> {
    let spec = policy.get("spec").unwrap_or(&Value::Null);
    let mut types = SchemaTypes::default();
    let kinds: Vec<(String, Type)> =
        kinds(catalogue, spec).into_values().map(|r| (shown(&r), types.learn(&r))).collect();
    if kinds.is_empty() {
        return Vec::new();
    }
    let params = spec.get("paramKind").filter(|kind| !kind.is_null()).map(ParamKind::read);
    let params = params.and_then(|kind| kind.resource(catalogue).ok()).map(|r| types.learn(&r));
    let types = Arc::new(types);
    let kinds: Vec<(String, Env)> =
        kinds.into_iter().map(|(kind, ty)| (kind, environment(&types, spec, &ty, params.as_ref()))).collect();
    let mut warnings = Vec::new();
    let validations = spec.get("validations").and_then(Value::as_array).unwrap_or_default();
    for (i, validation) in validations.iter().enumerate() {
        for key in ["expression", "messageExpression"] {
            let Some(expression) = validation.str_at(&[key]).filter(|text| !text.is_empty()) else { continue };
            let issues = kinds.iter().filter_map(|(kind, env)| Some(format!("{kind}: {}\n", issues(env, expression)?)));
            let issues: Vec<String> = issues.collect();
            if !issues.is_empty() {
                warnings.push(Warning { field: format!("spec.validations[{i}].{key}"), text: issues.join("\n") });
            }
        }
    }
    warnings
}

/// What expressions on objects of a type may name.
fn environment(types: &Arc<SchemaTypes>, spec: &Value, object: &Type, params: Option<&Type>) -> Env {
    let variables: Arc<VariableTypes> = Arc::default();
    let env = typed_environment(types, &variables, object, params);
    for variable in spec.get("variables").and_then(Value::as_array).unwrap_or_default() {
        let text = |key: &str| variable.str_at(&[key]).unwrap_or_default();
        let parsed = parse(text("expression"), &ParserOptions::default()).ok();
        let checked = parsed.and_then(|parsed| check(&env, parsed).ok());
        variables.declare(text("name"), checked.as_ref().map(|c| c.result_type()));
    }
    env
}

fn issues(env: &Env, expression: &str) -> Option<String> {
    match parse(expression, &ParserOptions::default()) {
        Err(why) => Some(why.to_string()),
        Ok(parsed) => check(env, parsed).err().map(|why| why.to_string()),
    }
}

/// The kinds that the rules of a policy name one by one, in order; a rule with a wildcard names none.
fn kinds(catalogue: &Catalogue, spec: &Value) -> BTreeMap<(String, String, String), Arc<Resource>> {
    let mut found = BTreeMap::new();
    let rules = spec.at(&["matchConstraints", "resourceRules"]).and_then(Value::as_array).unwrap_or_default();
    for rule in rules {
        let names = |key: &str| {
            let list = rule.get(key).and_then(Value::as_array).unwrap_or_default();
            let mut names: Vec<&str> = list.iter().filter_map(Value::as_str).collect();
            names.sort_unstable();
            names
        };
        let (groups, versions, mut resources) = (names("apiGroups"), names("apiVersions"), names("resources"));
        if groups.iter().chain(&versions).any(|name| name.contains('*')) {
            continue;
        }
        resources.retain(|name| !name.contains(['*', '/']));
        let mut count = 0;
        for (group, version) in groups.iter().flat_map(|group| versions.iter().map(move |version| (group, version))) {
            for resource in resources.iter().filter_map(|name| catalogue.resource(group, version, name)) {
                let key = (resource.group.clone(), resource.version.clone(), resource.kind.clone());
                found.insert(key, resource.clone());
                count += 1;
                if count == MAX_TYPES {
                    return found;
                }
            }
        }
    }
    found
}

/// A kind as Go prints it.
fn shown(resource: &Resource) -> String {
    format!("{}/{}, Kind={}", resource.group, resource.version, resource.kind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    fn warnings(spec: &str) -> Vec<Warning> {
        let policy = json::parse(format!(r#"{{"spec":{spec}}}"#).as_bytes()).unwrap();
        check_types(&crate::builtin::catalogue(&[]), &policy)
    }

    fn about(resources: &str, rest: &str) -> String {
        format!(
            r#"{{"matchConstraints":{{"resourceRules":[{{"apiGroups":["apps",""],"apiVersions":["v1"],"operations":["*"],
                "resources":[{resources}]}}]}},{rest}}}"#
        )
    }

    #[test]
    fn mistakes_are_told_for_each_kind() {
        let rest = r#""validations":[{"expression":"object.replicas > 1"},
            {"expression":"object.spec.replicas > 1","messageExpression":"'n ' + object.spec.replicas"}]"#;
        let found = warnings(&about(r#""replicasets","deployments""#, rest));
        let text = |column: usize, why: &str, source: &str| {
            ["Deployment", "ReplicaSet"]
                .map(|kind| {
                    let dots = ".".repeat(column - 1);
                    format!("apps/v1, Kind={kind}: ERROR: <input>:1:{column}: {why}\n | {source}\n | {dots}^\n")
                })
                .join("\n")
        };
        let expected = [
            Warning {
                field: "spec.validations[0].expression".into(),
                text: text(7, "undefined field 'replicas'", "object.replicas > 1"),
            },
            Warning {
                field: "spec.validations[1].messageExpression".into(),
                text: text(
                    6,
                    "found no matching overload for '_+_' applied to '(string, int)'",
                    "'n ' + object.spec.replicas",
                ),
            },
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn what_is_right_is_not_complained_of() {
        let rest = r#""paramKind":{"apiVersion":"v1","kind":"ConfigMap"},
            "variables":[{"name":"pods","expression":"object.spec.template.spec"}],
            "validations":[
                {"expression":"variables.pods.containers.all(c, c.image.startsWith('x') && has(c.resources.limits))"},
                {"expression":"object.metadata.namespace == request.namespace && object.metadata.labels['a'] == 'b'"},
                {"expression":"oldObject == null || oldObject.metadata.generation < object.metadata.generation"},
                {"expression":"authorizer.group('').resource('pods').check('get').allowed() && params.data.size() > 0"},
                {"expression":"object.spec.strategy.rollingUpdate.maxSurge == 1 && namespaceObject.metadata.name != ''"},
                {"expression":"object.spec.template.spec.containers[0].resources.limits['cpu'] == '1'"}]"#;
        assert_eq!(warnings(&about(r#""deployments""#, rest)), []);
    }

    #[test]
    fn what_is_not_named_one_by_one_is_not_checked() {
        let rest = r#""validations":[{"expression":"object.nope"}]"#;
        for resources in [r#""*""#, r#""pods/status""#, r#""nowhere""#] {
            assert_eq!(warnings(&about(resources, rest)), [], "{resources}");
        }
        assert_eq!(warnings(&about(r#""pods""#, rest)).len(), 1);
        let recursive =
            r#""validations":[{"expression":"object.spec.versions[0].schema.openAPIV3Schema.not.not == 1"}]"#;
        let spec = format!(
            r#"{{"matchConstraints":{{"resourceRules":[{{"apiGroups":["apiextensions.k8s.io"],"apiVersions":["v1"],
                "operations":["*"],"resources":["customresourcedefinitions"]}}]}},{recursive}}}"#
        );
        assert!(warnings(&spec)[0].text.contains("undefined field 'not'"));
    }
}
