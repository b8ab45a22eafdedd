//! What binds a policy to requests and parameters.

use crate::admission::matching::Criteria;
use object::Value;
use object::selector::Labels;

/// A ValidatingAdmissionPolicyBinding.
#[derive(Debug)]
pub(super) struct Binding {
    /// Its name.
    pub name: String,
    /// The name of the policy.
    pub policy: String,
    /// Which of the requests that the policy is about are meant; none stands for all.
    pub criteria: Option<Criteria>,
    /// Where the parameters are.
    pub params: Option<ParamRef>,
    /// What follows from a validation that fails, in this order.
    pub actions: Vec<Action>,
}

/// What follows from a validation that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// The request is refused.
    Deny,
    /// The client is warned.
    Warn,
    /// It is recorded.
    Audit,
}

impl Action {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Action::Deny => "Deny",
            Action::Warn => "Warn",
            Action::Audit => "Audit",
        }
    }
}

/// Where parameters are.
#[derive(Debug)]
pub(super) struct ParamRef {
    /// In which namespace; empty for that of the request.
    pub namespace: String,
    /// Which they are.
    pub chosen: Chosen,
    /// Whether it is an error that there are none.
    pub required: bool,
}

/// Which parameters are meant.
#[derive(Debug)]
pub(super) enum Chosen {
    /// The one of a name.
    Name(String),
    /// Those with labels; the error is upstream's text.
    Selector(Result<Labels, String>),
}

impl Binding {
    /// Reads a binding.
    pub fn read(binding: &Value) -> Self {
        let spec = |key: &str| binding.at(&["spec", key]).filter(|v| !v.is_null());
        let actions = spec("validationActions").and_then(Value::as_array).unwrap_or_default();
        let actions = actions.iter().filter_map(|action| match action.as_str()? {
            "Deny" => Some(Action::Deny),
            "Warn" => Some(Action::Warn),
            "Audit" => Some(Action::Audit),
            _ => None,
        });
        Binding {
            name: binding.name().to_owned(),
            policy: binding.str_at(&["spec", "policyName"]).unwrap_or_default().to_owned(),
            criteria: spec("matchResources").map(Criteria::of_policy),
            params: spec("paramRef").map(ParamRef::read),
            actions: actions.collect(),
        }
    }
}

impl ParamRef {
    fn read(reference: &Value) -> Self {
        let text = |key: &str| reference.str_at(&[key]).unwrap_or_default().to_owned();
        let selector = reference.get("selector").filter(|s| !s.is_null());
        ParamRef {
            namespace: text("namespace"),
            chosen: match (text("name"), selector) {
                (name, Some(selector)) if name.is_empty() => Chosen::Selector(Labels::from_object(selector)),
                (name, _) => Chosen::Name(name),
            },
            required: text("parameterNotFoundAction") == "Deny",
        }
    }
}
