//! Ownership of objects whose versions only a webhook can convert.

use fields::managed::{ConvertError, VersionConverter};
use object::Value;
use parking_lot::Mutex;

/// What a definition's webhook made of objects while one write was worked out.
///
/// Field ownership is worked out without waiting for anybody. What it misses here it asks for; whoever works it out
/// gets that from the webhook ([`Conversions::missing`], [`Conversions::learn`]) and works it out again.
#[derive(Debug)]
pub struct Conversions {
    versions: Vec<String>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    known: Vec<(Value, String, Result<Value, String>)>,
    missing: Vec<(Value, String)>,
}

impl Conversions {
    /// Between the versions (`group/version`) of a definition.
    pub fn new(versions: Vec<String>) -> Self {
        Conversions { versions, state: Mutex::default() }
    }

    /// What was asked for in vain since the last call: objects, and the version in which each is wanted.
    pub fn missing(&self) -> Vec<(Value, String)> {
        std::mem::take(&mut self.state.lock().missing)
    }

    /// Keeps what the webhook made of an object; the error is the text that a client is told.
    pub fn learn(&self, object: Value, wanted: String, converted: Result<Value, String>) {
        self.state.lock().known.push((object, wanted, converted));
    }
}

impl VersionConverter for Conversions {
    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, ConvertError> {
        if !self.versions.iter().any(|v| v == api_version) {
            let why = format!("request to convert CR to an invalid group/version: {api_version}");
            return Err(ConvertError::Failed(why));
        }
        let mut state = self.state.lock();
        if let Some((.., converted)) = state.known.iter().find(|(o, wanted, _)| wanted == api_version && o == object) {
            return converted.clone().map_err(ConvertError::Failed);
        }
        state.missing.push((object.clone(), api_version.to_owned()));
        Err(ConvertError::Failed(format!("{api_version} is yet to be asked for")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::map;

    #[test]
    fn what_is_missing_is_asked_for_and_then_known() {
        let conversions = Conversions::new(vec!["g/v1".to_owned(), "g/v2".to_owned()]);
        let object = Value::Object(map! { "apiVersion" => "g/v1" });
        assert!(conversions.convert(&object, "g/v3").is_err());
        assert!(conversions.missing().is_empty());
        assert!(conversions.convert(&object, "g/v2").is_err());
        let wanted = conversions.missing();
        assert_eq!(wanted, [(object.clone(), "g/v2".to_owned())]);
        let converted = Value::Object(map! { "apiVersion" => "g/v2" });
        conversions.learn(object.clone(), "g/v2".to_owned(), Ok(converted.clone()));
        assert_eq!(conversions.convert(&object, "g/v2").ok(), Some(converted));
        assert!(conversions.missing().is_empty());
    }
}
