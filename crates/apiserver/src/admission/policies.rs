//! What is checked of a ValidatingAdmissionPolicy beside its fields: that its expressions compile and give what they
//! are for.

use super::cel::Types;
use cel::check::check;
use cel::env::{Env, TypeProvider, VariableDecl};
use cel::library::ExpressionSet;
use cel::parse::{ParserOptions, parse};
use cel::types::Type;
use object::Value;
use object::field::{FieldError, Path};
use parking_lot::Mutex;
use std::cell::OnceCell;
use std::sync::Arc;

/// The object type of `variables`.
const VARIABLES: &str = "kubernetes.variables";

/// The expressions of a policy that are wrong. Those that `old` has already may use all that the server knows.
pub(crate) fn expression_errors(policy: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let spec = policy.get("spec").unwrap_or(&Value::Null);
    if old.is_some_and(|old| old.get("spec") == Some(spec)) {
        return Vec::new();
    }
    let mut known = Vec::new();
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
            match result {
                Ok(ty) if place.list == "variables" => {
                    let items = spec.get(place.list).and_then(Value::as_array).unwrap_or_default();
                    let name = items.get(i).and_then(|v| v.str_at(&["name"])).unwrap_or_default();
                    compiler.types.0.lock().push((name.into(), ty));
                }
                Ok(_) => {}
                Err(why) => {
                    let item = list.index(i);
                    errors.push(FieldError::invalid(&item.child(place.field), text, why));
                }
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
}

const PLACES: &[Place] = &[
    Place { list: "matchConditions", field: "expression", types: &[Type::Bool] },
    Place { list: "variables", field: "expression", types: &[] },
    Place { list: "validations", field: "expression", types: &[Type::Bool] },
    Place { list: "validations", field: "messageExpression", types: &[Type::String] },
    Place { list: "auditAnnotations", field: "valueExpression", types: &[Type::String, Type::Null] },
];

/// The expressions of a place that are not blank, with their indices.
fn texts<'v>(spec: &'v Value, place: &'static Place) -> impl Iterator<Item = (usize, &'v str)> {
    let items = spec.get(place.list).and_then(Value::as_array).unwrap_or_default();
    let texts = items.iter().enumerate().filter_map(|(i, item)| Some((i, item.str_at(&[place.field])?)));
    texts.filter(|(_, text)| !text.trim().is_empty())
}

/// The types of requests, and the variables of the policy as far as they are compiled.
#[derive(Default)]
struct Known(Mutex<Vec<(Arc<str>, Type)>>);

impl TypeProvider for Known {
    fn find_type(&self, name: &str) -> Option<Type> {
        if name == VARIABLES { Some(Type::object(VARIABLES)) } else { Types.find_type(name) }
    }

    fn field_type(&self, object: &str, field: &str) -> Option<Type> {
        if object != VARIABLES {
            return Types.field_type(object, field);
        }
        self.0.lock().iter().find(|(name, _)| **name == *field).map(|(_, ty)| ty.clone())
    }

    fn field_names(&self, object: &str) -> Vec<Arc<str>> {
        if object != VARIABLES {
            return Types.field_names(object);
        }
        self.0.lock().iter().map(|(name, _)| name.clone()).collect()
    }
}

struct Compiler {
    types: Arc<Known>,
    parameters: bool,
    variables: bool,
    known: Vec<String>,
    environments: [OnceCell<Env>; 4],
}

impl Compiler {
    fn new(spec: &Value, known: Vec<String>) -> Self {
        let parameters = spec.get("paramKind").is_some_and(|k| !k.is_null());
        let variables = spec.get("variables").and_then(Value::as_array).is_some_and(|v| !v.is_empty());
        Compiler { types: Arc::default(), parameters, variables, known, environments: Default::default() }
    }

    /// What an expression of a place can name: match conditions come before variables.
    fn environment(&self, place: &Place, expression: &str) -> &Env {
        let variables = self.variables && place.list != "matchConditions";
        let known = self.known.iter().any(|k| k == expression);
        let [plain, with, stored_plain, stored_with] = &self.environments;
        let cell = match (known, variables) {
            (false, false) => plain,
            (false, true) => with,
            (true, false) => stored_plain,
            (true, true) => stored_with,
        };
        cell.get_or_init(|| {
            let mut all = super::cel::variables().to_vec();
            if variables {
                all.push(VariableDecl::new("variables", Type::object(VARIABLES)));
            }
            if self.parameters {
                all.push(VariableDecl::new("params", Type::Dyn));
            }
            let set = if known { ExpressionSet::Stored } else { ExpressionSet::New };
            Env::kubernetes(set).with_provider(self.types.clone()).with_variables(all)
        })
    }
}

/// The type of an expression that gives one of `types`, or any if there are none; the error is upstream's text.
fn compile(env: &Env, expression: &str, types: &[Type]) -> Result<Type, String> {
    let failed = |why: String| format!("compilation failed: {why}");
    let parsed = parse(expression, &ParserOptions::default()).map_err(|e| failed(e.to_string()))?;
    let checked = check(env, parsed).map_err(|e| failed(e.to_string()))?;
    let result = checked.result_type();
    if types.is_empty() || types.iter().any(|ty| ty == result) {
        return Ok(result.clone());
    }
    match types {
        [wanted] => Err(format!("must evaluate to {wanted} but got {result}")),
        types => {
            let name = |ty: &Type| if *ty == Type::Null { "null_type".to_owned() } else { ty.to_string() };
            let names: Vec<String> = types.iter().map(name).collect();
            Err(format!("must evaluate to one of [{}] but got {result}", names.join(" ")))
        }
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
