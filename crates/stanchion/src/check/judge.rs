//! What the server would say of each object.

use super::input::{Document, Source};
use super::place;
use super::report::{Finding, Outcome, Severity};
use apiserver::admission::WrittenExpressions;
use object::field::{FieldError, Path};
use object::{Value, json, metadata, names, yaml};
use schema::{Version, crd};
use std::collections::{BTreeMap, HashMap};

const DEFINITION: &str = "CustomResourceDefinition";

/// Compiled versions by `apiVersion` and kind.
type Known = HashMap<(String, String), Version>;

/// Judges everything: definitions first, then objects by them.
pub fn judge(sources: &[Source]) -> Outcome {
    let mut outcome = Outcome { files: sources.len(), ..Outcome::default() };
    let mut known = Known::new();
    // By the place of the file and of the object in it, so that findings come in the order of the input.
    let mut found: BTreeMap<(usize, usize), Vec<Finding>> = BTreeMap::new();
    for (f, source) in sources.iter().enumerate() {
        for (d, document) in source.objects.iter().enumerate().filter(|(_, d)| is_definition(&d.value)) {
            outcome.definitions += 1;
            let mut findings = Findings::new(source, document);
            findings.definition(&mut known);
            found.insert((f, d), findings.out);
        }
    }
    for (f, source) in sources.iter().enumerate() {
        for (d, document) in source.objects.iter().enumerate().filter(|(_, d)| !is_definition(&d.value)) {
            outcome.objects += 1;
            let mut findings = Findings::new(source, document);
            findings.object(&known);
            found.insert((f, d), findings.out);
        }
    }
    outcome.findings = found.into_values().flatten().collect();
    outcome
}

fn is_definition(value: &Value) -> bool {
    value.str_at(&["kind"]) == Some(DEFINITION)
        && value.str_at(&["apiVersion"]).is_some_and(|v| v.starts_with("apiextensions.k8s.io/"))
}

/// The findings about one object.
struct Findings<'s> {
    source: &'s Source,
    document: &'s Document,
    out: Vec<Finding>,
}

impl<'s> Findings<'s> {
    fn new(source: &'s Source, document: &'s Document) -> Self {
        Findings { source, document, out: Vec::new() }
    }

    fn definition(&mut self, known: &mut Known) {
        let value = &self.document.value;
        if value.str_at(&["apiVersion"]) != Some("apiextensions.k8s.io/v1") {
            return self.add(Severity::Error, "", "only apiextensions.k8s.io/v1 is served".to_owned());
        }
        let decoded = match crd::decode(value) {
            Ok(decoded) => decoded,
            Err(error) => {
                let message = format!("{DEFINITION} in version \"v1\" cannot be handled as a {DEFINITION}: {error}");
                return self.add(Severity::Error, "", message);
            }
        };
        self.unknown(&decoded.unknown);
        let mut definition = decoded.definition;
        crd::default(&mut definition);
        crd::prepare_create(&mut definition);
        let errors = crd::validate(&definition);
        let valid = errors.is_empty();
        self.errors(&errors);
        if !valid {
            return;
        }
        let text = |path: &[&str]| definition.str_at(path).unwrap_or_default().to_owned();
        let (group, kind) = (text(&["spec", "group"]), text(&["spec", "names", "kind"]));
        for version in definition.at(&["spec", "versions"]).and_then(Value::as_array).unwrap_or_default() {
            let name = version.str_at(&["name"]).unwrap_or_default();
            if let Ok(Some(compiled)) = Version::new(&definition, name) {
                known.insert((format!("{group}/{name}"), kind.clone()), compiled);
            }
        }
    }

    fn object(&mut self, known: &Known) {
        let value = &self.document.value;
        let text = |key: &str| value.str_at(&[key]).unwrap_or_default().to_owned();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        if value.as_object().is_none() {
            return self.add(Severity::Error, "", format!("not an object: {}", value.type_name()));
        }
        if kind.is_empty() || api_version.is_empty() {
            let missing = if kind.is_empty() { "Kind" } else { "apiVersion" };
            return self.add(Severity::Error, "", format!("Object '{missing}' is missing"));
        }
        let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
        if let Some(custom) = known.get(&(api_version.clone(), kind.clone())) {
            self.custom(custom);
        } else if let Some((resource, version)) = kinds::find_kind(group, version, &kind) {
            self.built_in(resource, version);
        } else {
            let message = format!("no matches for kind \"{kind}\" in version \"{api_version}\": not checked");
            self.add(Severity::Note, "", message);
        }
    }

    fn custom(&mut self, version: &Version) {
        let mut object = self.document.value.clone();
        let unknown = match version.receive(&mut object, true) {
            Ok(unknown) => unknown,
            Err(error) => return self.add(Severity::Error, "", error.to_string()),
        };
        self.unknown(&unknown);
        let mut errors = self.metadata(&mut object, version.namespaced, names::dns1123_subdomain);
        let outcome = version.validate(&object);
        errors.extend(outcome.errors);
        self.errors(&errors);
        for warning in outcome.warnings {
            self.add(Severity::Warning, "", warning);
        }
    }

    fn built_in(&mut self, resource: &kinds::Resource, version: &kinds::Version) {
        let Some(definition) = version.definition() else { return };
        let kind = resource.kind;
        let decoded = match kinds::decode(definition, self.document.value.clone()) {
            Ok(decoded) => decoded,
            Err(error) => {
                let name = version.name;
                let message = format!("{kind} in version \"{name}\" cannot be handled as a {kind}: {error}");
                return self.add(Severity::Error, "", message);
            }
        };
        self.unknown(&decoded.unknown().map(str::to_owned).collect::<Vec<_>>());
        let mut object = decoded.object;
        (version.default)(&mut object);
        if let Some(conversion) = version.convert {
            (conversion.to_stored)(&mut object);
        }
        if resource.namespaced && object.namespace().is_empty() {
            object.metadata_mut().insert("namespace", "default");
        }
        self.errors(&resource.validate_with(&object, &mut WrittenExpressions::default()));
    }

    /// Checks metadata as a create does; an object without a namespace goes to `default`.
    fn metadata(&self, object: &mut Value, namespaced: bool, check: names::NameCheck) -> Vec<FieldError> {
        let meta = object.metadata_mut();
        if namespaced && meta.get("namespace").is_none() {
            meta.insert("namespace", "default");
        }
        metadata::validate(meta, namespaced, check, &Path::ROOT.child("metadata"))
    }

    /// Tells unknown fields, and those that the text gives twice.
    fn unknown(&mut self, unknown: &[String]) {
        for path in unknown {
            self.add(Severity::Warning, path, format!("unknown field \"{path}\""));
        }
        if self.document.number > 0 || !self.document.within.is_empty() {
            return;
        }
        let text = self.source.text.as_bytes();
        if let Ok((_, repeated)) = json::parse_strict(text) {
            for path in repeated {
                self.add(Severity::Warning, &path, format!("duplicate field \"{path}\""));
            }
        } else if let Ok((_, repeated)) = yaml::parse_strict(text) {
            repeated.into_iter().for_each(|message| self.add(Severity::Warning, "", message));
        }
    }

    fn errors(&mut self, errors: &[FieldError]) {
        for error in errors {
            self.add(Severity::Error, &error.field, error.to_string());
        }
    }

    fn add(&mut self, severity: Severity, field: &str, message: String) {
        let value = &self.document.value;
        self.out.push(Finding {
            file: self.source.name.clone(),
            line: place::line(self.source, self.document, field),
            kind: value.str_at(&["kind"]).unwrap_or_default().to_owned(),
            name: value.name().to_owned(),
            field: field.to_owned(),
            message,
            ..Finding::new(severity)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::input::Document;

    fn source(text: &str) -> Source {
        let objects = yaml::parse_all(text.as_bytes()).unwrap().into_iter().enumerate();
        let objects =
            objects.map(|(number, (value, line))| Document { value, number, within: Vec::new(), line }).collect();
        Source { name: "f.yaml".to_owned(), text: text.to_owned(), objects }
    }

    const DEFINITION: &str = "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: foos.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: foos, kind: Foo}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer, maximum: 5}
";

    #[test]
    fn objects_are_judged_by_definitions_beside_them() {
        let objects = "apiVersion: example.com/v1\nkind: Foo\nmetadata: {name: a}\nspec:\n  x: 1\n  size: 7\n";
        let outcome = judge(&[source(objects), source(DEFINITION)]);
        let told: Vec<(Severity, usize, &str)> =
            outcome.findings.iter().map(|f| (f.severity, f.line, f.message.as_str())).collect();
        assert_eq!(
            told,
            [
                (Severity::Warning, 5, "unknown field \"spec.x\""),
                (
                    Severity::Error,
                    6,
                    "spec.size: Invalid value: 7: spec.size in body should be less than or equal to 5"
                ),
            ]
        );
    }

    #[test]
    fn a_bad_definition_is_told_with_its_line() {
        let outcome = judge(&[source(&DEFINITION.replace("type: integer", "type: int"))]);
        assert_eq!(outcome.findings.len(), 1);
        assert_eq!(outcome.findings[0].line, 19);
        assert!(outcome.findings[0].message.contains("Unsupported value: \"int\""), "{:?}", outcome.findings);
    }

    #[test]
    fn unknown_kinds_are_only_noted() {
        let outcome = judge(&[source("apiVersion: x.io/v1\nkind: Bar\nmetadata: {name: a}\n")]);
        assert_eq!(outcome.findings[0].severity, Severity::Note);
    }

    #[test]
    fn built_in_kinds_are_judged_too() {
        let outcome = judge(&[source("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: A}\n")]);
        assert!(outcome.findings[0].message.starts_with("metadata.name: Invalid value: \"A\""));
    }

    #[test]
    fn expressions_of_policies_are_compiled() {
        let policy = "apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: a}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [\"\"], apiVersions: [v1], operations: [CREATE], resources: [pods]}
  validations:
  - expression: object.spec
";
        let outcome = judge(&[source(policy)]);
        let told: Vec<(usize, &str)> = outcome.findings.iter().map(|f| (f.line, f.message.as_str())).collect();
        let message =
            "spec.validations[0].expression: Invalid value: \"object.spec\": must evaluate to bool but got dyn";
        assert_eq!(told, [(9, message)]);
    }
}
