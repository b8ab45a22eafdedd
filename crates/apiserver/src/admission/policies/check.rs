//! What is checked of policies beside their fields: that their expressions compile and give what they are for.

use crate::admission::cel::{JSON_PATCH, Names, OBJECT, VariableTypes, compile, environment};
use cel::env::Env;
use cel::library::ExpressionSet;
use cel::types::Type;
use object::Value;
use object::field::{FieldError, Path};
use std::collections::HashSet;
use std::sync::Arc;

/// The expressions of a ValidatingAdmissionPolicy that are wrong. Those that `old` has already may use all that the
/// server knows.
pub(crate) fn expression_errors(policy: &Value, old: Option<&Value>) -> Vec<FieldError> {
    errors(VALIDATING, policy, old)
}

/// The expressions of a MutatingAdmissionPolicy that are wrong.
pub(crate) fn mutation_errors(policy: &Value, old: Option<&Value>) -> Vec<FieldError> {
    errors(MUTATING, policy, old)
}

fn errors(places: &'static [Place], policy: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let spec = policy.get("spec").unwrap_or(&Value::Null);
    if old.is_some_and(|old| old.get("spec") == Some(spec)) {
        return Vec::new();
    }
    let mut known = HashSet::new();
    if let Some(old) = old.and_then(|old| old.get("spec")) {
        places.iter().for_each(|place| known.extend(texts(old, place).map(|(_, text)| text.to_owned())));
    }
    let compiler = Compiler::new(spec, known);
    let (root, mut errors) = (Path::ROOT, Vec::new());
    let root = root.child("spec");
    for place in places {
        let (list, types) = (root.child(place.list), (place.types)());
        for (i, text) in texts(spec, place) {
            let result = compile(&compiler.environment(place, text), text, &types);
            if place.list == "variables" {
                let items = spec.get(place.list).and_then(Value::as_array).unwrap_or_default();
                let name = items.get(i).and_then(|v| v.str_at(&["name"])).unwrap_or_default();
                compiler.types.declare(name, result.as_ref().ok().map(|c| &c.ty));
            }
            if let Err(why) = result {
                let item = list.index(i);
                errors.push(match place.within {
                    "" => why.at(&item.child(place.field), text),
                    within => why.at(&item.child(within).child(place.field), text),
                });
            }
        }
    }
    errors
}

/// Where expressions are, in the order in which they can refer to each other.
struct Place {
    list: &'static str,
    /// The member of an item that has the field; empty for the item itself.
    within: &'static str,
    field: &'static str,
    types: fn() -> Vec<Type>,
    /// What they may name in a policy that has everything.
    names: Names,
}

impl Place {
    const fn new(list: &'static str, field: &'static str, types: fn() -> Vec<Type>, names: Names) -> Self {
        Place { list, within: "", field, types, names }
    }
}

const ALL: Names = Names { authorizer: true, params: true, variables: true, patches: false };

const CONDITIONS: Place =
    Place::new("matchConditions", "expression", || vec![Type::Bool], Names { variables: false, ..ALL });
const VARIABLES: Place = Place::new("variables", "expression", Vec::new, ALL);

const VALIDATING: &[Place] = &[
    CONDITIONS,
    VARIABLES,
    Place::new("validations", "expression", || vec![Type::Bool], ALL),
    Place::new("validations", "messageExpression", || vec![Type::String], Names { authorizer: false, ..ALL }),
    Place::new("auditAnnotations", "valueExpression", || vec![Type::String, Type::Null], ALL),
];

const MUTATING: &[Place] = &[
    CONDITIONS,
    VARIABLES,
    Place {
        within: "applyConfiguration",
        ..Place::new("mutations", "expression", || vec![Type::object(OBJECT)], Names { patches: true, ..ALL })
    },
    Place {
        within: "jsonPatch",
        ..Place::new(
            "mutations",
            "expression",
            || vec![Type::list(Type::object(JSON_PATCH))],
            Names { patches: true, ..ALL },
        )
    },
];

/// The expressions of a place that are not blank, with their indices.
fn texts<'v>(spec: &'v Value, place: &'static Place) -> impl Iterator<Item = (usize, &'v str)> {
    let items = spec.get(place.list).and_then(Value::as_array).unwrap_or_default();
    let text = |item: &'v Value| match place.within {
        "" => item.str_at(&[place.field]),
        // The type says which of the members counts.
        within => item
            .str_at(&[within, place.field])
            .filter(|_| item.str_at(&["patchType"]).is_some_and(|ty| ty.eq_ignore_ascii_case(within)))
            .map(str::trim),
    };
    let texts = items.iter().enumerate().filter_map(move |(i, item)| Some((i, text(item)?)));
    texts.filter(|(_, text)| !text.trim().is_empty())
}

struct Compiler {
    types: Arc<VariableTypes>,
    parameters: bool,
    variables: bool,
    known: HashSet<String>,
}

impl Compiler {
    fn new(spec: &Value, known: HashSet<String>) -> Self {
        let parameters = spec.get("paramKind").is_some_and(|k| !k.is_null());
        let variables = spec.get("variables").and_then(Value::as_array).is_some_and(|v| !v.is_empty());
        Compiler { types: Arc::default(), parameters, variables, known }
    }

    /// What an expression of a place can name.
    fn environment(&self, place: &Place, expression: &str) -> Env {
        let names =
            Names { params: self.parameters, variables: self.variables && place.names.variables, ..place.names };
        let known = self.known.contains(expression);
        environment(if known { ExpressionSet::Stored } else { ExpressionSet::New }, names, &self.types)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    fn errors(spec: &str) -> Vec<String> {
        let policy = json::parse(format!(r#"{{"spec":{spec}}}"#).as_bytes()).unwrap();
        expression_errors(&policy, None).iter().map(FieldError::to_string).collect()
    }

    #[test]
    fn expressions_give_what_they_are_for() {
        let cases = [
            (r#"{"validations":[{"expression":"1"}]}"#, "must evaluate to bool but got int"),
            (
                r#"{"validations":[{"expression":"true","messageExpression":"5"}]}"#,
                "must evaluate to string but got int",
            ),
            (r#"{"validations":[{"expression":"object.x"}]}"#, "must evaluate to bool but got dyn"),
            (r#"{"validations":[{"expression":"variables.x"}]}"#, "undeclared reference to 'variables'"),
            (r#"{"validations":[{"expression":"params.x"}]}"#, "undeclared reference to 'params'"),
            (
                r#"{"auditAnnotations":[{"valueExpression":"1"}]}"#,
                "must evaluate to one of [string null_type] but got int",
            ),
        ];
        for (spec, why) in cases {
            let errors = errors(spec);
            assert_eq!(errors.len(), 1, "{spec}: {errors:?}");
            assert!(errors[0].contains(why), "{errors:?}");
        }
    }

    #[test]
    fn mutations_give_patches() {
        let errors = |mutation: &str| -> Vec<String> {
            let policy = json::parse(format!(r#"{{"spec":{{"mutations":[{mutation}]}}}}"#).as_bytes()).unwrap();
            mutation_errors(&policy, None).iter().map(FieldError::to_string).collect()
        };
        let apply = |text: &str| {
            format!(r#"{{"patchType":"ApplyConfiguration","applyConfiguration":{{"expression":"{text}"}}}}"#)
        };
        let patch = |text: &str| format!(r#"{{"patchType":"JSONPatch","jsonPatch":{{"expression":"{text}"}}}}"#);
        for (mutation, why) in [
            (apply("Object{spec: Object.spec{replicas: object.spec.replicas + 1}}"), ""),
            (apply("object.x ? Object{} : Object{?a: optional.none()}"), ""),
            (patch("[JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('a/b'), value: 'x'}]"), ""),
            (apply("'teapot'"), "must evaluate to Object but got string"),
            (apply("Object.spec{}"), "must evaluate to Object but got Object.spec"),
            (apply("Objects{}"), "undeclared reference to 'Objects'"),
            (patch("[]"), "must evaluate to list(JSONPatch) but got list(dyn)"),
            (patch("[JSONPatch{op: 1}]"), "expected type of field 'op' is 'string' but provided type is 'int'"),
            (patch("[JSONPatch{ops: ''}]"), "undefined field 'ops'"),
        ] {
            let errors = errors(&mutation);
            assert_eq!(errors.is_empty(), why.is_empty(), "{mutation}: {errors:?}");
            assert!(errors.iter().all(|e| e.starts_with("spec.mutations[0].") && e.contains(why)), "{errors:?}");
        }
    }

    #[test]
    fn variables_can_be_used_by_what_follows() {
        let spec = r#"{"paramKind":{"kind":"X"},"variables":[{"name":"a","expression":"1"},
            {"name":"b","expression":"variables.a + 1 > params.n"}],"validations":[{"expression":"variables.b"}]}"#;
        assert_eq!(errors(spec), Vec::<String>::new());
        let spec = r#"{"variables":[{"name":"a","expression":"1"}],"validations":[{"expression":"variables.a"},
            {"expression":"variables.none"}]}"#;
        assert_eq!(errors(spec).len(), 2);
    }
}
