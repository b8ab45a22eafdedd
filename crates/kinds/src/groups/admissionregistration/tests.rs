//! Errors of webhooks and policies: their texts, their order, and what an old object excuses.

use crate::expressions::{Compiler, Expression, Fault};
use object::field::FieldError;
use object::{Value, json};

/// Takes what does not begin with `bad`, and writes down what it is asked.
#[derive(Default)]
struct Compiled(Vec<String>);

impl Compiler for Compiled {
    fn compile(&mut self, e: &Expression<'_>) -> Result<(), Fault> {
        let flags = [(e.params, "params"), (e.variables, "variables"), (e.stored, "stored")];
        let flags: String = flags.iter().filter(|(on, _)| *on).map(|(_, name)| format!(" {name}")).collect();
        self.0.push(format!("{:?} <{}>{flags}", e.purpose, e.text));
        match e.text {
            text if text.starts_with("bad") => Err(Fault::Invalid("is bad".to_owned())),
            text if text.starts_with("worse") => Err(Fault::Internal("is worse".to_owned())),
            _ => Ok(()),
        }
    }
}

struct Outcome {
    errors: Vec<String>,
    compiled: Vec<String>,
}

/// The outcome for an object of the kind `plural`, whose `field` is `new` and was `old`.
fn outcome(plural: &str, field: &str, new: &str, old: Option<&str>) -> Outcome {
    let mut resources = crate::resources().chain(crate::optional());
    let resource = resources.find(|r| r.plural == plural).unwrap();
    let read = |text: &str| {
        let text = format!(r#"{{"metadata":{{"name":"the.name"}},"{field}":{text}}}"#);
        let decoded = crate::decode(resource.versions[0].definition().unwrap(), json::parse(text.as_bytes()).unwrap());
        let mut object: Value = decoded.unwrap().object;
        (resource.versions[0].default)(&mut object);
        object
    };
    let mut compiled = Compiled::default();
    let errors = match old.map(read) {
        None => resource.validate_with(&read(new), &mut compiled),
        Some(old) => resource.validate_update_with(&read(new), &old, &mut compiled),
    };
    Outcome { errors: errors.iter().map(FieldError::to_string).collect(), compiled: compiled.0 }
}

const DNS_LABEL: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an \
     alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for \
     validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
     and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
     '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and \
     must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for \
     validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/// A webhook that is right, but for `members`.
fn hook(members: &str) -> String {
    let mut hook = json::parse(
        br#"{"name":"a.b.c","sideEffects":"None","admissionReviewVersions":["v1"],"clientConfig":{"url":"https://h"}}"#,
    )
    .unwrap();
    let Value::Object(more) = json::parse(format!("{{{members}}}").as_bytes()).unwrap() else { unreachable!() };
    for (key, value) in more {
        hook.set_at(&[key.as_str()], value);
    }
    json::to_string(&hook)
}

#[test]
fn errors_of_a_webhook_come_in_upstreams_order() {
    let everything = r#"[{"name":"b","rules":[{"operations":["*","X"],"apiGroups":["*","g"],"apiVersions":["*",""],
        "resources":["","*/*","a/*"],"scope":"s"}],"failurePolicy":"f","matchPolicy":"m","sideEffects":"Some",
        "timeoutSeconds":31,"namespaceSelector":{"matchLabels":{"a":"b c"}},
        "objectSelector":{"matchExpressions":[{"key":"k","operator":"o"}]},"reinvocationPolicy":"r",
        "matchConditions":[{"name":"","expression":"bad"},{"name":"n","expression":" "},{"name":"n","expression":"worse"}],
        "clientConfig":{"service":{"name":"n","port":0}},"admissionReviewVersions":["v2","v2","V"]},
        {"name":"b","clientConfig":{}}]"#;
    let operations = "supported values: \"*\", \"CONNECT\", \"CREATE\", \"DELETE\", \"UPDATE\"";
    let expected = [
        "[0].name: Invalid value: \"b\": should be a domain with at least three segments separated by dots".to_owned(),
        "[0].rules[0].operations: Invalid value: []admissionregistration.OperationType{\"*\", \"X\"}: if '*' is present, \
         must not specify other operations"
            .to_owned(),
        format!("[0].rules[0].operations[1]: Unsupported value: \"X\": {operations}"),
        "[0].rules[0].apiGroups: Invalid value: []string{\"*\", \"g\"}: if '*' is present, must not specify other API groups"
            .to_owned(),
        "[0].rules[0].apiVersions: Invalid value: []string{\"*\", \"\"}: if '*' is present, must not specify other API \
         versions"
            .to_owned(),
        "[0].rules[0].apiVersions[1]: Required value".to_owned(),
        "[0].rules[0].resources[0]: Required value".to_owned(),
        "[0].rules[0].resources[2]: Invalid value: \"a/*\": if '*/*' is present, must not specify a/*".to_owned(),
        "[0].rules[0].resources: Invalid value: []string{\"\", \"*/*\", \"a/*\"}: if '*/*' is present, must not specify \
         other resources"
            .to_owned(),
        "[0].rules[0].scope: Unsupported value: \"s\": supported values: \"*\", \"Cluster\", \"Namespaced\"".to_owned(),
        "[0].failurePolicy: Unsupported value: \"f\": supported values: \"Fail\", \"Ignore\"".to_owned(),
        "[0].matchPolicy: Unsupported value: \"m\": supported values: \"Equivalent\", \"Exact\"".to_owned(),
        "[0].sideEffects: Unsupported value: \"Some\": supported values: \"None\", \"NoneOnDryRun\"".to_owned(),
        "[0].timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 seconds".to_owned(),
        format!("[0].namespaceSelector.matchLabels: Invalid value: \"b c\": {LABEL_VALUE}"),
        "[0].objectSelector.matchExpressions[0].operator: Invalid value: \"o\": not a valid selector operator".to_owned(),
        "[0].reinvocationPolicy: Unsupported value: \"r\": supported values: \"IfNeeded\", \"Never\"".to_owned(),
        // Upstream takes the one for the other.
        "[0].clientConfig.service.name: Required value: service name is required".to_owned(),
        "[0].clientConfig.service.port: Invalid value: 0: port is not valid: must be between 1 and 65535, inclusive"
            .to_owned(),
        "[0].matchConditions[0].expression: Invalid value: \"bad\": is bad".to_owned(),
        "[0].matchConditions[0].name: Required value".to_owned(),
        "[0].matchConditions[1].expression: Required value".to_owned(),
        "[0].matchConditions[2].expression: Internal error: is worse".to_owned(),
        "[0].matchConditions[2].name: Duplicate value: \"n\"".to_owned(),
        "[0].admissionReviewVersions[1]: Invalid value: \"v2\": duplicate version".to_owned(),
        format!("[0].admissionReviewVersions[2]: Invalid value: \"V\": {DNS_LABEL}"),
        "[0].admissionReviewVersions: Invalid value: []string{\"v2\", \"v2\", \"V\"}: must include at least one of v1, \
         v1beta1"
            .to_owned(),
        "[1].name: Invalid value: \"b\": should be a domain with at least three segments separated by dots".to_owned(),
        "[1].sideEffects: Required value: must specify one of None, NoneOnDryRun".to_owned(),
        "[1].clientConfig: Required value: exactly one of url or service is required".to_owned(),
        "[1].admissionReviewVersions: Required value: must specify one of v1, v1beta1".to_owned(),
        "[1].name: Duplicate value: \"b\"".to_owned(),
    ];
    let errors = outcome("mutatingwebhookconfigurations", "webhooks", everything, None).errors;
    assert_eq!(errors, expected.map(|error| format!("webhooks{error}")));
}

#[test]
fn resources_of_rules_are_compared_with_those_before_them() {
    let covered = |i: usize, resource: &str, by: &str| {
        format!("resources[{i}]: Invalid value: {resource:?}: if '{by}' is present, must not specify {resource}")
    };
    let whole = |list: &str, why: &str| format!("resources: Invalid value: []string{{{list}}}: {why}");
    let (every, plain) = (
        "if '*/*' is present, must not specify other resources",
        "if '*' is present, must not specify other resources without subresources",
    );
    for (resources, expected) in [
        (r#""a","a/b","*/c""#, vec![]),
        // What stands before the wildcard is not seen.
        (r#""a/b","a/*""#, vec![]),
        (r#""a/*","a/b","a/*""#, vec![covered(1, "a/b", "a/*"), covered(2, "a/*", "a/*")]),
        (r#""*/b","a/b","*/*""#, vec![covered(1, "a/b", "*/b"), whole(r#""*/b", "a/b", "*/*""#, every)]),
        (r#""*/*","*/b""#, vec![covered(1, "*/b", "*/*"), whole(r#""*/*", "*/b""#, every)]),
        (r#""*","a""#, vec![whole(r#""*", "a""#, plain)]),
        // Of those without subresources the last one counts.
        (r#""a","*""#, vec![]),
        (r#""*","","a/b""#, vec!["resources[1]: Required value".to_owned()]),
    ] {
        let rules = format!(
            r#""rules":[{{"operations":["*"],"apiGroups":["*"],"apiVersions":["*"],"resources":[{resources}]}}]"#
        );
        let errors =
            outcome("validatingwebhookconfigurations", "webhooks", &format!("[{}]", hook(&rules)), None).errors;
        let expected: Vec<String> = expected.iter().map(|e| format!("webhooks[0].rules[0].{e}")).collect();
        assert_eq!(errors, expected, "{resources}");
    }
}

#[test]
fn an_update_may_keep_what_a_webhook_had() {
    let selector = r#""objectSelector":{"matchExpressions":[{"key":"k","operator":"In","values":["a b"]}]}"#;
    let conditions = |text: &str| format!(r#""matchConditions":[{{"name":"n n","expression":"{text}"}}]"#);
    let name = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
         alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
         '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
    let one = |members: &str| format!("[{}]", hook(members));
    let two = |members: &str| format!("[{},{}]", hook(members), hook(members));
    let sides = |value: &str| one(&format!(r#""sideEffects":{value}"#));
    let reviews = |value: &str| one(&format!(r#""admissionReviewVersions":{value}"#));
    for (old, new, expected) in [
        (sides(r#""Some""#), sides(r#""Unknown""#), vec![]),
        (
            sides(r#""Some""#),
            sides(r#""x""#),
            vec![
                "sideEffects: Unsupported value: \"x\": supported values: \"None\", \"NoneOnDryRun\", \"Some\", \"Unknown\""
                    .to_owned(),
            ],
        ),
        (
            sides("null"),
            sides("null"),
            vec!["sideEffects: Required value: must specify one of None, NoneOnDryRun, Some, Unknown".to_owned()],
        ),
        (
            sides(r#""None""#),
            sides(r#""Some""#),
            vec!["sideEffects: Unsupported value: \"Some\": supported values: \"None\", \"NoneOnDryRun\"".to_owned()],
        ),
        (reviews(r#"["v2"]"#), reviews(r#"["v3"]"#), vec![]),
        (
            reviews("[]"),
            reviews(r#"["v2"]"#),
            vec!["admissionReviewVersions: Invalid value: []string{\"v2\"}: must include at least one of v1, v1beta1".to_owned()],
        ),
        (two(""), two(""), vec![]),
        (one(selector), one(selector), vec![]),
        (
            one(""),
            one(selector),
            vec![format!("objectSelector.matchExpressions[0].values[0]: Invalid value: \"a b\": {LABEL_VALUE}")],
        ),
        (one(&conditions("bad")), one(&conditions("bad")), vec![]),
        (
            one(&conditions("bad")),
            one(&conditions("bad ")),
            vec![
                "matchConditions[0].expression: Invalid value: \"bad\": is bad".to_owned(),
                format!("matchConditions[0].name: Invalid value: \"n n\": {name}"),
            ],
        ),
    ] {
        for plural in ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"] {
            let errors = outcome(plural, "webhooks", &new, Some(&old)).errors;
            let expected: Vec<String> = expected.iter().map(|e| format!("webhooks[0].{e}")).collect();
            assert_eq!(errors, expected, "{new} after {old}");
        }
    }
}

#[test]
fn names_of_webhooks_are_wrong_once() {
    let long = "A".repeat(254);
    let new = format!("[{}]", hook(&format!(r#""name":"{long}""#)));
    let errors = outcome("validatingwebhookconfigurations", "webhooks", &new, None).errors;
    let expected =
        format!("webhooks[0].name: Invalid value: {long:?}: must be no more than 253 characters,{SUBDOMAIN}");
    assert_eq!(errors, [expected]);
}

const RULE: &str = r#"{"operations":["CREATE"],"apiGroups":[""],"apiVersions":["v1"],"resources":["pods"]}"#;

/// The `spec` of a policy with these members.
fn spec(members: &str) -> String {
    format!(r#"{{"matchConstraints":{{"resourceRules":[{RULE}]}},{members}}}"#)
}

#[test]
fn errors_of_a_policy_come_in_upstreams_order() {
    let new = r#"{"failurePolicy":"f","paramKind":{"apiVersion":"g/","kind":"K_"},
        "matchConstraints":{"matchPolicy":"m","excludeResourceRules":[{"resourceNames":["a/b","a/b"]}]},
        "matchConditions":[{"name":"n","expression":" bad "}],
        "variables":[{"name":"for","expression":"bad"},{"name":" ","expression":""}],
        "validations":[{"expression":"bad ","messageExpression":"worse","message":"a\rb","reason":"r"},
            {"messageExpression":" ","message":" "}],
        "auditAnnotations":[{"key":"a b","valueExpression":" bad "},{"key":"a b"}]}"#;
    let name = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
         alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
         '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
    let exclude = "matchConstraints.excludeResourceRules[0]";
    let expected = [
        "failurePolicy: Unsupported value: \"f\": supported values: \"Fail\", \"Ignore\"".to_owned(),
        "paramKind.apiVersion: Invalid value: \"g/\": version must be specified".to_owned(),
        format!("paramKind.kind: Invalid value: \"K_\": may have mixed case, but should otherwise match: {DNS_LABEL}"),
        "matchConstraints.matchPolicy: Unsupported value: \"m\": supported values: \"Equivalent\", \"Exact\""
            .to_owned(),
        format!("{exclude}.resourceNames[0]: Invalid value: \"a/b\": may not contain '/'"),
        format!("{exclude}.resourceNames[1]: Invalid value: \"a/b\": may not contain '/'"),
        format!("{exclude}.resourceNames[1]: Duplicate value: \"a/b\""),
        format!("{exclude}.operations: Required value"),
        format!("{exclude}.apiGroups: Required value"),
        format!("{exclude}.apiVersions: Required value"),
        format!("{exclude}.resources: Required value"),
        "matchConstraints.resourceRules: Required value".to_owned(),
        "matchConditions[0].expression: Invalid value: \"bad\": is bad".to_owned(),
        "variables[0].name: Invalid value: \"for\": name is not a valid CEL identifier".to_owned(),
        "variables[0].expression: Invalid value: \"bad\": is bad".to_owned(),
        "variables[1].name: Required value: name is not specified".to_owned(),
        "variables[1].expression: Required value: expression is not specified".to_owned(),
        "validations[0].expression: Invalid value: \"bad \": is bad".to_owned(),
        "validations[0].messageExpression: Internal error: is worse".to_owned(),
        "validations[0].message: Invalid value: \"a\\rb\": message must not contain line breaks".to_owned(),
        "validations[0].reason: Unsupported value: \"r\": supported values: \"Forbidden\", \"Invalid\", \
         \"RequestEntityTooLarge\""
            .to_owned(),
        "validations[1].expression: Required value: expression is not specified".to_owned(),
        "validations[1].messageExpression: Invalid value: \" \": must be non-empty if specified".to_owned(),
        "validations[1].message: Invalid value: \" \": message must be non-empty if specified".to_owned(),
        format!("auditAnnotations[0].key: Invalid value: \"the.name/a b\": {name}"),
        "auditAnnotations[0].valueExpression: Invalid value: \" bad \": is bad".to_owned(),
        format!("auditAnnotations[1].key: Invalid value: \"the.name/a b\": {name}"),
        "auditAnnotations[1].valueExpression: Required value: valueExpression is not specified".to_owned(),
        "auditAnnotations[1].key: Duplicate value: \"a b\"".to_owned(),
    ];
    let outcome = outcome("validatingadmissionpolicies", "spec", new, None);
    assert_eq!(outcome.errors, expected.map(|error| format!("spec.{error}")));
    let compiled = [
        "Condition <bad> params",
        "Variable(\"for\") <bad> params variables",
        "Validation <bad > params variables",
        "Message <worse> params variables",
        "Annotation <bad> params variables",
    ];
    assert_eq!(outcome.compiled, compiled);
}

#[test]
fn kinds_of_parameters_are_read_as_upstream_does() {
    for (version, expected) in [
        ("v1", None),
        ("g.g/v1", None),
        ("/v1", None),
        ("/", Some("\"/\": version must be specified".to_owned())),
        ("a/b/c", Some("\"a/b/c\": unexpected GroupVersion string: a/b/c".to_owned())),
        ("G/v1", Some(format!("\"G\": {SUBDOMAIN}"))),
        ("g/1", Some(format!("\"1\": {DNS_LABEL}"))),
    ] {
        let new = spec(&format!(
            r#""paramKind":{{"apiVersion":"{version}","kind":"K"}},"validations":[{{"expression":"true"}}]"#
        ));
        let errors = outcome("validatingadmissionpolicies", "spec", &new, None).errors;
        let expected: Vec<String> =
            expected.iter().map(|why| format!("spec.paramKind.apiVersion: Invalid value: {why}")).collect();
        assert_eq!(errors, expected, "{version}");
    }
}

#[test]
fn long_annotations_are_required_to_be_shorter() {
    let long = "1".repeat((5 << 10) + 1);
    let new = spec(&format!(r#""auditAnnotations":[{{"key":"k","valueExpression":" {long}"}}]"#));
    let outcome = outcome("validatingadmissionpolicies", "spec", &new, None);
    let expected = "spec.auditAnnotations[0].valueExpression: Required value: must not exceed 5120 bytes in length";
    assert_eq!((outcome.errors, outcome.compiled), (vec![expected.to_owned()], vec![]));
}

#[test]
fn expressions_that_a_policy_had_may_use_all_that_is_known() {
    let with = |condition: &str, kind: &str, rest: &str| {
        spec(&format!(
            r#""paramKind":{{"apiVersion":"v1","kind":"{kind}"}},"matchConditions":[{{"name":"n","expression":"{condition}"}}],
                "validations":[{{"expression":"v","messageExpression":"m"}}],
                "auditAnnotations":[{{"key":"k","valueExpression":" a"}}]{rest}"#
        ))
    };
    let old = with("c", "K", "");
    let after = ["Validation <v> params stored", "Message <m> params stored", "Annotation <a> params stored"];
    let condition = |text: &'static str| -> Vec<&'static str> { [text].into_iter().chain(after).collect() };
    for (new, expected) in [
        // Neither the conditions nor what they can name changed.
        (with("c", "K", ""), after.to_vec()),
        (with("c", "L", ""), condition("Condition <c> params stored")),
        (with("c ", "K", ""), condition("Condition <c> params stored")),
        (with("d", "K", ""), condition("Condition <d> params")),
        (
            with("c", "K", r#","variables":[{"name":"x","expression":"v"},{"name":"y","expression":"w"}]"#),
            vec![
                "Variable(\"x\") <v> params variables stored",
                "Variable(\"y\") <w> params variables",
                "Validation <v> params variables stored",
                "Message <m> params variables stored",
                "Annotation <a> params variables stored",
            ],
        ),
    ] {
        let outcome = outcome("validatingadmissionpolicies", "spec", &new, Some(&old));
        assert_eq!(outcome.compiled, expected, "{new}");
        assert_eq!(outcome.errors, Vec::<String>::new(), "{new}");
    }
}

#[test]
fn mutations_are_compiled_without_space_around_them() {
    let with = |apply: &str, patch: &str| {
        spec(&format!(
            r#""reinvocationPolicy":"Never","mutations":[
                {{"patchType":"ApplyConfiguration","applyConfiguration":{{"expression":"{apply}"}}}},
                {{"patchType":"JSONPatch","jsonPatch":{{"expression":"{patch}"}}}}]"#
        ))
    };
    let outcome = outcome("mutatingadmissionpolicies", "spec", &with(" a", "bad "), Some(&with(" a", "bad ")));
    assert_eq!(outcome.compiled, ["Apply <a> variables stored", "JsonPatch <bad> variables"]);
    assert_eq!(outcome.errors, ["spec.mutations[1].jsonPatch.expression: Invalid value: \"bad\": is bad"]);
}

#[test]
fn errors_of_bindings_come_in_upstreams_order() {
    let exclusive = "Forbidden: name and selector are mutually exclusive";
    let cases = [
        (
            r#"{"paramRef":{"name":"a/b","selector":{"matchExpressions":[{"key":"k","operator":"o"}]}},
                "matchResources":{"resourceRules":[{"operations":["DELETE"],"apiGroups":[""],"apiVersions":["v1"],
                "resources":[]}]},"validationActions":["Deny","x","Deny","Warn"]}"#,
            vec![
                "policyName: Required value".to_owned(),
                "paramRef.name: Invalid value: \"a/b\": may not contain '/'".to_owned(),
                format!("paramRef.name: {exclusive}"),
                "paramRef.selector.matchExpressions[0].operator: Invalid value: \"o\": not a valid selector operator".to_owned(),
                format!("paramRef.selector: {exclusive}"),
                "paramRef.parameterNotFoundAction: Required value".to_owned(),
                "matchResources.resourceRules[0].resources: Required value".to_owned(),
                "validationActions[1]: Unsupported value: \"x\": supported values: \"Audit\", \"Deny\", \"Warn\"".to_owned(),
                "validationActions[2]: Duplicate value: \"Deny\"".to_owned(),
                "validationActions: Invalid value: []admissionregistration.ValidationAction{\"Deny\", \"x\", \"Deny\", \
                 \"Warn\"}: must not contain both Deny and Warn (repeating the same validation failure information in the \
                 API response and headers serves no purpose)"
                    .to_owned(),
            ],
        ),
        (
            r#"{"policyName":"P","paramRef":{"parameterNotFoundAction":""}}"#,
            vec![
                format!("policyName: Invalid value: \"P\": {SUBDOMAIN}"),
                "paramRef: Required value: one of name or selector must be specified".to_owned(),
                "paramRef.parameterNotFoundAction: Required value".to_owned(),
                "validationActions: Required value: at least one validation action is required".to_owned(),
            ],
        ),
        (
            r#"{"policyName":"p","paramRef":{"name":"n","parameterNotFoundAction":"x"},"validationActions":["Audit"]}"#,
            vec![
                "paramRef.parameterNotFoundAction: Unsupported value: \"x\": supported values: \"Deny\", \"Allow\"".to_owned(),
            ],
        ),
    ];
    for (new, expected) in cases {
        let expected: Vec<String> = expected.iter().map(|e| format!("spec.{e}")).collect();
        assert_eq!(outcome("validatingadmissionpolicybindings", "spec", new, None).errors, expected, "{new}");
        assert_eq!(outcome("validatingadmissionpolicybindings", "spec", new, Some(new)).errors, expected, "{new}");
    }
    // The alpha version of mutating bindings denies by default.
    let new = r#"{"policyName":"p","paramRef":{"name":"n"}}"#;
    assert_eq!(outcome("mutatingadmissionpolicybindings", "spec", new, None).errors, Vec::<String>::new());
}
