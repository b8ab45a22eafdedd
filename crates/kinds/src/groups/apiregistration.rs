//! The resources of the group `apiregistration.k8s.io`.

use crate::check::{self, Errors};
use crate::read::{Read, default_to, object_mut};
use crate::resource::{Column, Context, Generation, MetadataChecks, Resource, Strategy, Subresource, Version};
use crate::table;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use object::field::{FieldError, Path};
use object::{Value, map, names};

pub(crate) const RESOURCES: &[Resource] = &[Resource {
    categories: &["api-extensions"],
    namespaced: false,
    subresources: &[Subresource::status("APIService")],
    columns: &[Column::NAME, Column::new("Service", "string"), Column::new("Available", "string"), Column::AGE],
    cells: |object, now| {
        let service = object.sub("spec").sub("service");
        let shown = if object.sub("spec").has("service") {
            format!("{}/{}", service.text("namespace"), service.text("name"))
        } else {
            "Local".to_owned()
        };
        let available = object.sub("status").list("conditions").iter().find(|c| c.text("type") == "Available");
        let available = match available.map(|c| (c.text("status"), c.text("reason"))) {
            None => "Unknown".to_owned(),
            Some(("True", _)) => "True".to_owned(),
            Some((status, reason)) => format!("{status} ({reason})"),
        };
        vec![object.name().into(), shown.into(), available.into(), table::age(object, now)]
    },
    strategy: Strategy {
        name: names::path_segment,
        generation: Generation::None,
        unconditional_update: false,
        validate,
        validate_update: |new, _| validate(new),
        validate_status,
        prepare_create,
        metadata: MetadataChecks { anew: 1, ..MetadataChecks::ONCE },
        reset_status: &[&["spec"], &["metadata"]],
        ..Strategy::WITH_STATUS
    },
    ..Resource::new(
        "apiregistration.k8s.io",
        "APIService",
        "apiservices",
        &[Version::stored("v1", "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.APIService").with_default(
            |object| {
                if let Some(service) = object_mut(object, &["spec", "service"]) {
                    default_to(service, "port", 443);
                }
            },
        )],
    )
}];

/// What is served by the program itself is there at once.
fn prepare_create(object: &mut Value, context: &Context<'_>) {
    if object.sub("spec").has("service") {
        return;
    }
    let available = map! {
        "type" => "Available",
        "status" => "True",
        "lastTransitionTime" => context.now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        "reason" => "Local",
        "message" => "Local APIServices are always available",
    };
    object.set_at(&["status"], map! { "conditions" => vec![Value::from(available)] }.into());
}

fn validate_status(new: &Value, _: &Value) -> Errors {
    let mut out = Errors::new();
    let status = Path::ROOT.child("status");
    let conditions = status.child("conditions");
    for (i, condition) in new.sub("status").list("conditions").iter().enumerate() {
        check::one_of(condition, "status", &["True", "False", "Unknown"], &conditions.index(i), &mut out);
    }
    out
}

fn validate(object: &Value) -> Errors {
    let mut out = Errors::new();
    let path = Path::ROOT.child("spec");
    let spec = object.sub("spec");
    let (group, version) = (spec.text("group"), spec.text("version"));
    let meta = Path::ROOT.child("metadata");
    let required = format!("{version}.{group}");
    if object.name() != required && names::path_segment(object.name()).is_empty() {
        let why = format!("must be `spec.version+\".\"+spec.group`: {}", object::go::quote(&required));
        out.push(FieldError::invalid(&meta.child("name"), object.name(), why));
    }
    if group.is_empty() {
        if version != "v1" {
            let why = "only v1 may have an empty group and it better be legacy kube";
            out.push(FieldError::required(&path.child("group"), why));
        }
    } else {
        check::name(names::dns1123_subdomain, group, &path.child("group"), &mut out);
    }
    check::name(names::dns1035_label, version, &path.child("version"), &mut out);
    for (key, most) in [("groupPriorityMinimum", 20_000), ("versionPriority", 1000)] {
        let value = spec.int(key);
        if value <= 0 || value > most {
            let why = format!("must be positive and less than {most}");
            out.push(FieldError::invalid(&path.child(key), value, why));
        }
    }
    let service = spec.sub("service");
    let at = path.child("service");
    if !spec.has("service") {
        if !spec.text("caBundle").is_empty() {
            let why = "local APIServices may not have a caBundle";
            let size = STANDARD.decode(spec.text("caBundle")).map_or(0, |bundle| bundle.len());
            out.push(FieldError::invalid(&path.child("caBundle"), format!("{size} bytes").as_str(), why));
        }
        if spec.flag("insecureSkipTLSVerify") {
            let why = "local APIServices may not have insecureSkipTLSVerify";
            out.push(FieldError::invalid(&path.child("insecureSkipTLSVerify"), true, why));
        }
        return out;
    }
    check::required(service, "namespace", &at, &mut out);
    check::required(service, "name", &at, &mut out);
    let port = service.int("port");
    if let Some(why) = check::port_number(port) {
        out.push(FieldError::invalid(&at.child("port"), port, format!("port is not valid: {why}")));
    }
    if spec.flag("insecureSkipTLSVerify") && !spec.text("caBundle").is_empty() {
        let why = "may not be true if caBundle is present";
        out.push(FieldError::invalid(&path.child("insecureSkipTLSVerify"), true, why));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    fn value(text: &str) -> Value {
        json::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn what_is_served_here_has_no_certificates_and_is_available() {
        let spec = r#""group":"a.io","version":"v1","groupPriorityMinimum":1,"versionPriority":1"#;
        let name = r#""metadata":{"name":"v1.a.io"}"#;
        let object = value(&format!(r#"{{{name},"spec":{{{spec},"caBundle":"YWJj","insecureSkipTLSVerify":true}}}}"#));
        let found: Vec<String> = validate(&object).iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            [
                r#"spec.caBundle: Invalid value: "3 bytes": local APIServices may not have a caBundle"#,
                "spec.insecureSkipTLSVerify: Invalid value: true: local APIServices may not have insecureSkipTLSVerify",
            ]
        );
        let context = Context { now: jiff::Timestamp::UNIX_EPOCH, user: None };
        for (service, expected) in [
            (
                "",
                r#"{"conditions":[{"lastTransitionTime":"1970-01-01T00:00:00Z","message":"Local APIServices are always available","reason":"Local","status":"True","type":"Available"}]}"#,
            ),
            (r#","service":{"name":"s","namespace":"n"}"#, "{}"),
        ] {
            let mut object = value(&format!(r#"{{{name},"spec":{{{spec}{service}}},"status":{{}}}}"#));
            prepare_create(&mut object, &context);
            assert_eq!(json::to_string(object.sub("status")), expected);
        }
    }

    #[test]
    fn conditions_are_true_false_or_unknown() {
        let object = value(r#"{"status":{"conditions":[{"status":"True"},{"status":"x"}]}}"#);
        let found: Vec<String> = validate_status(&object, &object).iter().map(ToString::to_string).collect();
        let expected =
            r#"status.conditions[1].status: Unsupported value: "x": supported values: "True", "False", "Unknown""#;
        assert_eq!(found, [expected]);
    }
}
