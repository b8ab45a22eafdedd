//! JSON with everything that the text says and a [`Value`](crate::Value) does not: the order of the members, the
//! repeated ones, how a number is written.

use super::{Error, Reader};
use crate::{Told, Value, go};
use compact_str::CompactString;
use std::collections::HashSet;
use std::fmt::Write;

/// How many repeated keys are told at most, as upstream.
const MAX_REPEATED: usize = 100;

/// A JSON value as it stands in a text.
#[derive(Clone, Debug, PartialEq)]
pub enum Ordered<'t> {
    /// An object: its members in the order of the text, repeated keys too.
    Object(Vec<(CompactString, Ordered<'t>)>),
    /// An array.
    Array(Vec<Ordered<'t>>),
    /// Anything else, and its text.
    Scalar(Value, &'t str),
}

impl<'t> Ordered<'t> {
    /// Reads one JSON value; only white space may follow it.
    ///
    /// # Errors
    /// As those of [`parse`](super::parse).
    pub fn parse(text: &'t [u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(text);
        let value = reader.ordered()?;
        reader.end_of_document()?;
        Ok(value)
    }

    /// The path of each repeated key (`spec.list[0].name`), in the order of the text, each path once; the first hundred.
    pub fn repeated(&self) -> Vec<String> {
        let mut found = Repeated::default();
        found.look(self);
        found.told.into_vec()
    }

    /// Go's word for what this is.
    pub fn kind(&self) -> &'static str {
        match self {
            Ordered::Object(_) => "object",
            Ordered::Array(_) => "array",
            Ordered::Scalar(value, _) => go::json_kind(value),
        }
    }
}

/// The search for repeated keys.
#[derive(Default)]
struct Repeated {
    /// The path to where the search is.
    path: String,
    told: Told,
}

impl Repeated {
    fn look(&mut self, at: &Ordered<'_>) {
        let end = self.path.len();
        match at {
            Ordered::Object(members) => {
                let mut seen: HashSet<&str> = HashSet::with_capacity(members.len());
                for (key, value) in members {
                    if end > 0 {
                        self.path.push('.');
                    }
                    self.path.push_str(key);
                    if !seen.insert(key) {
                        self.tell();
                    }
                    self.look(value);
                    self.path.truncate(end);
                }
            }
            Ordered::Array(items) => {
                for (i, item) in items.iter().enumerate() {
                    let _ = write!(self.path, "[{i}]");
                    self.look(item);
                    self.path.truncate(end);
                }
            }
            Ordered::Scalar(..) => {}
        }
    }

    fn tell(&mut self) {
        let told = self.told.as_ref();
        if told.len() < MAX_REPEATED && !told.contains(&self.path) {
            self.told.add_with(|| self.path.clone());
        }
    }
}

impl From<Ordered<'_>> for Value {
    fn from(ordered: Ordered<'_>) -> Value {
        match ordered {
            Ordered::Object(members) => {
                let members: Vec<(CompactString, Value)> =
                    members.into_iter().map(|(key, value)| (key, value.into())).collect();
                Value::Object(members.into())
            }
            Ordered::Array(items) => Value::Array(items.into_iter().map(Value::from).collect()),
            Ordered::Scalar(value, _) => value,
        }
    }
}

impl<'t> Reader<'t> {
    fn ordered(&mut self) -> Result<Ordered<'t>, Error> {
        self.skip_space();
        match self.text.get(self.at) {
            Some(b'{') => {
                let mut members = Vec::new();
                let mut more = self.enter(b'}')?;
                while more {
                    members.push((self.key()?, self.ordered()?));
                    more = self.another(b'}', "after object key:value pair")?;
                }
                Ok(Ordered::Object(members))
            }
            Some(b'[') => {
                let mut items = Vec::new();
                let mut more = self.enter(b']')?;
                while more {
                    items.push(self.ordered()?);
                    more = self.another(b']', "after array element")?;
                }
                Ok(Ordered::Array(items))
            }
            _ => {
                let start = self.at;
                let value = self.value()?;
                let text = std::str::from_utf8(&self.text[start..self.at]).unwrap_or_default();
                Ok(Ordered::Scalar(value, text))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_keep_their_order_and_scalars_their_text() {
        let one = |text| Ordered::Scalar(Value::Int(1), text);
        let read = Ordered::parse(br#" {"b":[1e3],"a":1,"b":1} "#).unwrap();
        let list = Ordered::Array(vec![Ordered::Scalar(Value::Float(1000.0), "1e3")]);
        assert_eq!(read, Ordered::Object(vec![("b".into(), list), ("a".into(), one("1")), ("b".into(), one("1"))]));
        assert_eq!(crate::json::to_string(&read.into()), r#"{"a":1,"b":1}"#);
    }

    #[test]
    fn repeated_keys_are_told_up_to_a_limit() {
        let pairs: String = (0..1000).map(|i| format!("\"k{i}\":1,\"k{i}\":2,")).collect();
        for (key, told) in [("a".to_owned(), 100), ("x".repeat(1 << 17), 8), ("x".repeat(1 << 20), 1)] {
            let text = format!(r#"{{"z":1,"{key}":[{{{pairs}"z":1}}],"z":2}}"#);
            let repeated = Ordered::parse(text.as_bytes()).unwrap().repeated();
            assert_eq!(repeated.len(), told, "{}", key.len());
        }
    }

    #[test]
    fn errors_are_those_of_values() {
        for text in ["", "{", "[1 2]", "{\"a\" 1}", "1 2", "nul"] {
            let (ordered, value) = (Ordered::parse(text.as_bytes()), crate::json::parse(text.as_bytes()));
            assert_eq!(ordered.unwrap_err(), value.unwrap_err(), "{text}");
        }
    }
}
