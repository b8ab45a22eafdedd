//! The scale subresource: its three paths in an object.

use object::field::{FieldError, Path};
use object::{Value, go};

/// Where an object keeps what its scale shows. Each path is written `.spec.replicas`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scale {
    /// The wanted number of replicas.
    pub spec_replicas: String,
    /// The observed number of replicas.
    pub status_replicas: String,
    /// The selector of the replicas' pods, in its text form.
    pub label_selector: Option<String>,
}

impl Scale {
    /// Reads `subresources.scale` of a version.
    pub fn from_value(value: &Value) -> Self {
        let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        Scale {
            spec_replicas: text("specReplicasPath"),
            status_replicas: text("statusReplicasPath"),
            label_selector: Some(text("labelSelectorPath")).filter(|path| !path.is_empty()),
        }
    }

    /// The wanted number of replicas; `None` where the object has none. The error is upstream's.
    pub fn replicas(&self, object: &Value) -> Result<Option<i64>, String> {
        integer(object, &self.spec_replicas)
    }

    /// The observed number of replicas.
    pub fn observed_replicas(&self, object: &Value) -> Result<Option<i64>, String> {
        integer(object, &self.status_replicas)
    }

    /// The selector; `None` where the object has none.
    pub fn selector<'o>(&self, object: &'o Value) -> Result<Option<&'o str>, String> {
        let Some(path) = &self.label_selector else { return Ok(None) };
        match nested(object, path)? {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(mismatch(path, other, "string")),
        }
    }

    /// Sets the wanted number of replicas.
    pub fn set_replicas(&self, object: &mut Value, replicas: i64) {
        let path: Vec<&str> = steps(&self.spec_replicas).collect();
        object.set_at(&path, Value::Int(replicas));
    }

    /// Checks the wanted number of replicas.
    pub(crate) fn validate_spec(&self, object: &Value, errors: &mut Vec<FieldError>) {
        check_replicas(&self.spec_replicas, object, errors);
    }

    /// Checks the observed number of replicas and the selector.
    pub(crate) fn validate_status(&self, object: &Value, errors: &mut Vec<FieldError>) {
        check_replicas(&self.status_replicas, object, errors);
        if let (Err(error), Some(path)) = (self.selector(object), &self.label_selector) {
            errors.push(FieldError::invalid(&Path::ROOT.child(path), "", error));
        }
    }
}

fn check_replicas(path: &str, object: &Value, errors: &mut Vec<FieldError>) {
    let at = Path::ROOT.child(path);
    match integer(object, path) {
        Err(error) => errors.push(FieldError::invalid(&at, 0, error)),
        Ok(Some(n)) if n < 0 => errors.push(FieldError::invalid(&at, n, "should be a non-negative integer")),
        Ok(Some(n)) if n > i64::from(i32::MAX) => {
            errors.push(FieldError::invalid(&at, n, format!("should be less than or equal to {}", i32::MAX)));
        }
        Ok(_) => {}
    }
}

fn steps(path: &str) -> impl Iterator<Item = &str> {
    path.strip_prefix('.').unwrap_or(path).split('.')
}

fn integer(object: &Value, path: &str) -> Result<Option<i64>, String> {
    match nested(object, path)? {
        None => Ok(None),
        Some(Value::Int(n)) => Ok(Some(*n)),
        Some(other) => Err(mismatch(path, other, "int64")),
    }
}

fn nested<'o>(object: &'o Value, path: &str) -> Result<Option<&'o Value>, String> {
    let mut at = object;
    let mut walked = String::new();
    for step in steps(path) {
        walked.push('.');
        walked.push_str(step);
        match at {
            Value::Null => return Ok(None),
            Value::Object(members) => match members.get(step) {
                Some(next) => at = next,
                None => return Ok(None),
            },
            other => return Err(mismatch(&walked, other, "map[string]interface {}")),
        }
    }
    Ok(Some(at))
}

fn mismatch(path: &str, value: &Value, wanted: &str) -> String {
    let path = path.strip_prefix('.').unwrap_or(path);
    // Upstream writes the one type without the blank that Go itself prints.
    let wanted = if wanted.starts_with("map") { "map[string]interface{}" } else { wanted };
    format!(".{path} accessor error: {} is of the type {}, expected {wanted}", go::plain(value), go::type_name(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_types_are_told_as_upstream() {
        let scale = Scale {
            spec_replicas: ".spec.i".to_owned(),
            status_replicas: ".status.i.j".to_owned(),
            label_selector: None,
        };
        let object = object::json::parse(br#"{"spec":{"i":2.5},"status":{"i":"x"}}"#).unwrap();
        let mut errors = Vec::new();
        scale.validate_spec(&object, &mut errors);
        scale.validate_status(&object, &mut errors);
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(
            errors,
            [
                ".spec.i: Invalid value: 0: .spec.i accessor error: 2.5 is of the type float64, expected int64",
                ".status.i.j: Invalid value: 0: .status.i.j accessor error: x is of the type string, expected map[string]interface{}",
            ]
        );
    }
}
