//! What is checked of a ValidatingAdmissionPolicy beside its fields: that its expressions compile and give what they
//! are for.

use crate::admission::cel::{Names, VariableTypes, compile, environment};
use cel::env::Env;
use cel::library::ExpressionSet;
use cel::types::Type;
use object::Value;
use object::field::{FieldError, Path};
use std::cell::OnceCell;
use std::collections::HashSet;
use std::sync::Arc;

/// The expressions of a policy that are wrong. Those that `old` has already may use all that the server knows.
pub(crate) fn expression_errors(policy: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let spec = policy.get("spec").unwrap_or(&Value::Null);
    if old.is_some_and(|old| old.get("spec") == Some(spec)) {
        return Vec::new();
    }
    let mut known = HashSet::new();
    if let Some(old) = old.and_then(|old| old.get("spec")) {
        PLACES.iter().for_each(|place| known.extend(texts(old, place).map(|(_, text)| text.to_owned())));
    }
    let compiler = Compiler::new(spec, known);
    let (root, mut errors) = (Path::ROOT, Vec::new());
    let root = root.child("spec");
    for place in PLACES {
        let list = root.child(place.list);
        for (i, text) in texts(spec, place) {
            let result = compile(compiler.environment(place, text), text, place.types);
            if place.list == "variables" {
                let items = spec.get(place.list).and_then(Value::as_array).unwrap_or_default();
                let name = items.get(i).and_then(|v| v.str_at(&["name"])).unwrap_or_default();
                compiler.types.declare(name, result.as_ref().ok().map(|c| &c.ty));
            }
            if let Err(why) = result {
                errors.push(why.at(&list.index(i).child(place.field), text));
            }
        }
    }
    errors
}

/// Where expressions are, in the order in which they can refer to each other.
struct Place {
    list: &'static str,
    field: &'static str,
    types: &'static [Type],
    /// What they may name in a policy that has everything.
    names: Names,
}

const ALL: Names = Names { authorizer: true, params: true, variables: true };

const PLACES: &[Place] = &[
    Place {
        list: "matchConditions",
        field: "expression",
        types: &[Type::Bool],
        names: Names { variables: false, ..ALL },
    },
    Place { list: "variables", field: "expression", types: &[], names: ALL },
    Place { list: "validations", field: "expression", types: &[Type::Bool], names: ALL },
    Place {
        list: "validations",
        field: "messageExpression",
        types: &[Type::String],
        names: Names { authorizer: false, ..ALL },
    },
    Place { list: "auditAnnotations", field: "valueExpression", types: &[Type::String, Type::Null], names: ALL },
];

/// The expressions of a place that are not blank, with their indices.
fn texts<'v>(spec: &'v Value, place: &'static Place) -> impl Iterator<Item = (usize, &'v str)> {
    let items = spec.get(place.list).and_then(Value::as_array).unwrap_or_default();
    let texts = items.iter().enumerate().filter_map(|(i, item)| Some((i, item.str_at(&[place.field])?)));
    texts.filter(|(_, text)| !text.trim().is_empty())
}

struct Compiler {
    types: Arc<VariableTypes>,
    parameters: bool,
    variables: bool,
    known: HashSet<String>,
    environments: [OnceCell<Env>; 8],
}

impl Compiler {
    fn new(spec: &Value, known: HashSet<String>) -> Self {
        let parameters = spec.get("paramKind").is_some_and(|k| !k.is_null());
        let variables = spec.get("variables").and_then(Value::as_array).is_some_and(|v| !v.is_empty());
        Compiler { types: Arc::default(), parameters, variables, known, environments: Default::default() }
    }

    /// What an expression of a place can name.
    fn environment(&self, place: &Place, expression: &str) -> &Env {
        let names = Names {
            authorizer: place.names.authorizer,
            params: self.parameters,
            variables: self.variables && place.names.variables,
        };
        let known = self.known.contains(expression);
        let [n0, n1, n2, n3, s0, s1, s2, s3] = &self.environments;
        let cell = match (known, names.authorizer, names.variables) {
            (false, false, false) => n0,
            (false, false, true) => n1,
            (false, true, false) => n2,
            (false, true, true) => n3,
            (true, false, false) => s0,
            (true, false, true) => s1,
            (true, true, false) => s2,
            (true, true, true) => s3,
        };
        let set = if known { ExpressionSet::Stored } else { ExpressionSet::New };
        cell.get_or_init(|| environment(set, names, &self.types))
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
    fn variables_can_be_used_by_what_follows() {
        let spec = r#"{"paramKind":{"kind":"X"},"variables":[{"name":"a","expression":"1"},
            {"name":"b","expression":"variables.a + 1 > params.n"}],"validations":[{"expression":"variables.b"}]}"#;
        assert_eq!(errors(spec), Vec::<String>::new());
        let spec = r#"{"variables":[{"name":"a","expression":"1"}],"validations":[{"expression":"variables.a"},
            {"expression":"variables.none"}]}"#;
        assert_eq!(errors(spec).len(), 2);
    }
}
