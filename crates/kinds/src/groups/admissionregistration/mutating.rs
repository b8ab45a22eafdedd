//! MutatingAdmissionPolicies and their bindings: alpha in 1.33, served only where they are switched on.

use super::binding;
use super::expressions::Checker;
use super::policy::{self, GROUP, METADATA};
use crate::check::{self, Errors};
use crate::expressions::{Compiler, Purpose};
use crate::read::{Read, default_to, object_mut};
use crate::resource::{Column, Generation, Resource, Strategy, Version};
use object::Value;
use object::field::{FieldError, Path};

pub(super) const POLICIES: Resource = Resource {
    categories: &["api-extensions"],
    namespaced: false,
    columns: &[Column::NAME, Column::new("Mutations", "integer"), Column::new("ParamKind", "string"), Column::AGE],
    cells: |object, now| policy::cells_counting("mutations", object, now),
    strategy: Strategy { compiled: Some(validate), ..STRATEGY },
    ..Resource::new(
        GROUP,
        "MutatingAdmissionPolicy",
        "mutatingadmissionpolicies",
        &[Version::stored("v1alpha1", "io.k8s.api.admissionregistration.v1alpha1.MutatingAdmissionPolicy")
            .with_default(policy::default)],
    )
};

pub(super) const BINDINGS: Resource = Resource {
    categories: &["api-extensions"],
    namespaced: false,
    columns: &[Column::NAME, Column::new("PolicyName", "string"), Column::new("ParamRef", "string"), Column::AGE],
    cells: binding::cells,
    strategy: Strategy { compiled: Some(|object, _, _| validate_binding(object)), ..STRATEGY },
    ..Resource::new(
        GROUP,
        "MutatingAdmissionPolicyBinding",
        "mutatingadmissionpolicybindings",
        &[Version::stored("v1alpha1", "io.k8s.api.admissionregistration.v1alpha1.MutatingAdmissionPolicyBinding")
            .with_default(default_binding)],
    )
};

const STRATEGY: Strategy = Strategy {
    generation: Generation::Counts(&[&["spec"]]),
    unconditional_update: false,
    metadata: METADATA,
    ..Strategy::PLAIN
};

/// Version v1alpha1 has one default more than later ones.
fn default_binding(object: &mut Value) {
    binding::default(object);
    if let Some(reference) = object_mut(object, &["spec", "paramRef"]) {
        default_to(reference, "parameterNotFoundAction", "Deny");
    }
}

fn validate(object: &Value, old: Option<&Value>, compiler: &mut dyn Compiler) -> Errors {
    let mut out = Errors::new();
    let path = Path::ROOT.child("spec");
    let spec = object.sub("spec");
    let mut checker = Checker::of_policy(spec, old, true, compiler);
    policy::which_requests(spec, &path, &mut out);
    operations(spec.sub("matchConstraints"), &path.child("matchConstraints"), &mut out);
    policy::conditions_and_variables(spec, old, &path, &mut checker, &mut out);
    let (list, mutations) = (path.child("mutations"), spec.list("mutations"));
    if mutations.is_empty() {
        out.push(FieldError::required(&list, "mutations must contain at least one item"));
    }
    for (i, one) in mutations.iter().enumerate() {
        mutation(one, &list.index(i), &mut checker, &mut out);
    }
    check::required_one_of(spec, "reinvocationPolicy", &["IfNeeded", "Never"], &path, &mut out);
    out
}

/// There is nothing to change where an object is deleted.
fn operations(constraints: &Value, path: &Path<'_>, out: &mut Errors) {
    const OPERATIONS: [&str; 4] = ["*", "CONNECT", "CREATE", "UPDATE"];
    let at = path.child("resourceRules");
    let at = at.child("operations");
    let operations = constraints.list("resourceRules").iter().flat_map(|rule| rule.strings("operations"));
    for operation in operations.filter(|operation| !OPERATIONS.contains(operation)) {
        out.push(FieldError::not_supported(&at, operation, &OPERATIONS));
    }
}

fn mutation(mutation: &Value, path: &Path<'_>, checker: &mut Checker<'_>, out: &mut Errors) {
    let (own, other, purpose) = match mutation.text("patchType") {
        "JSONPatch" => ("jsonPatch", "applyConfiguration", Purpose::JsonPatch),
        "ApplyConfiguration" => ("applyConfiguration", "jsonPatch", Purpose::Apply),
        _ => return check::required_one_of(mutation, "patchType", &["ApplyConfiguration", "JSONPatch"], path, out),
    };
    let (expression, own_path) = (mutation.sub(own).text("expression"), path.child(own));
    let patch_type = mutation.text("patchType");
    if !mutation.has(own) {
        let why = format!("must be specified when patchType is {patch_type}");
        out.push(FieldError::required(&own_path, why));
    } else if expression.trim().is_empty() {
        out.push(FieldError::required(&own_path.child("expression"), ""));
    } else {
        checker.check(purpose, expression, &own_path.child("expression"), out);
    }
    if mutation.has(other) {
        let why = format!("must not be specified when patchType is {patch_type}");
        out.push(FieldError::invalid(&path.child(other), format!("{{{other}}}").as_str(), why));
    }
}

fn validate_binding(object: &Value) -> Errors {
    let mut out = Errors::new();
    let path = Path::ROOT.child("spec");
    let spec = object.sub("spec");
    binding::bound(spec, &path, &mut out);
    operations(spec.sub("matchResources"), &path.child("matchResources"), &mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expressions::Unchecked;
    use object::json;

    fn read(text: &str) -> Value {
        let mut object = json::parse(text.as_bytes()).unwrap();
        policy::default(&mut object);
        default_binding(&mut object);
        object
    }

    fn errors(spec: &str) -> Vec<String> {
        validate(&read(&format!(r#"{{"spec":{spec}}}"#)), None, &mut Unchecked)
            .iter()
            .map(FieldError::to_string)
            .collect()
    }

    fn with(operation: &str, rest: &str) -> String {
        format!(
            r#"{{"matchConstraints":{{"resourceRules":[{{"operations":["{operation}"],"apiGroups":[""],"apiVersions":["v1"],
                "resources":["pods"]}}]}},{rest}}}"#
        )
    }

    const MUTATION: &str =
        r#""mutations":[{"patchType":"ApplyConfiguration","applyConfiguration":{"expression":"Object{}"}}]"#;

    #[test]
    fn everything_but_the_failure_policy_has_to_be_said() {
        let expected = [
            "spec.matchConstraints: Required value",
            "spec.mutations: Required value: mutations must contain at least one item",
            "spec.reinvocationPolicy: Required value",
        ];
        assert_eq!(errors("{}"), expected);
        let all = with("UPDATE", &format!(r#"{MUTATION},"reinvocationPolicy":"Never""#));
        assert_eq!(errors(&all), Vec::<String>::new());
    }

    #[test]
    fn what_is_deleted_cannot_be_changed() {
        let rest = format!(r#"{MUTATION},"reinvocationPolicy":"Always""#);
        let expected = [
            "spec.matchConstraints.resourceRules.operations: Unsupported value: \"DELETE\": supported values: \"*\", \
             \"CONNECT\", \"CREATE\", \"UPDATE\"",
            "spec.reinvocationPolicy: Unsupported value: \"Always\": supported values: \"IfNeeded\", \"Never\"",
        ];
        assert_eq!(errors(&with("DELETE", &rest)), expected);
        let binding = read(
            r#"{"spec":{"policyName":"p","matchResources":{"resourceRules":[{"operations":["DELETE"],"apiGroups":[""],
                "apiVersions":["v1"],"resources":["pods"]}]}}}"#,
        );
        let errors = validate_binding(&binding);
        assert!(errors[0].to_string().starts_with("spec.matchResources.resourceRules.operations: Unsupported"));
    }

    #[test]
    fn a_mutation_says_one_thing_of_its_type() {
        let mutations = [
            (r#"{}"#, &["patchType: Required value"][..]),
            (
                r#"{"patchType":"other"}"#,
                &["patchType: Unsupported value: \"other\": supported values: \"ApplyConfiguration\", \"JSONPatch\""],
            ),
            (
                r#"{"patchType":"JSONPatch","applyConfiguration":{"expression":"Object{}"}}"#,
                &[
                    "jsonPatch: Required value: must be specified when patchType is JSONPatch",
                    "applyConfiguration: Invalid value: \"{applyConfiguration}\": must not be specified when patchType is \
                     JSONPatch",
                ],
            ),
            (r#"{"patchType":"JSONPatch","jsonPatch":{"expression":" "}}"#, &["jsonPatch.expression: Required value"]),
        ];
        for (text, expected) in mutations {
            let rest = format!(r#""mutations":[{text}],"reinvocationPolicy":"IfNeeded""#);
            let expected: Vec<String> = expected.iter().map(|e| format!("spec.mutations[0].{e}")).collect();
            assert_eq!(errors(&with("CREATE", &rest)), expected, "{text}");
        }
    }
}
