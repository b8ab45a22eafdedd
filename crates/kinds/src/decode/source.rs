//! What a decoder reads from: a value, or a text in its order.

use super::decoder::Decoder;
use crate::definitions::Definition;
use compact_str::CompactString;
use object::json::{self, ordered::Ordered};
use object::{Map, Value, go};

/// Something to decode.
pub(super) trait Source: Sized + Into<Value> {
    /// The members of an object.
    type Members: IntoIterator<Item = (CompactString, Self)>;

    /// Whether members come in the order of a text, repeated ones too.
    const ORDERED: bool;

    /// What it is.
    fn open(self) -> Opened<Self>;

    /// Decodes a structure, into what was there before.
    fn structure(
        decoder: &mut Decoder,
        definition: &'static Definition,
        members: Self::Members,
        before: Option<Map>,
    ) -> Result<Map, String>;
}

/// A source, one level deep.
pub(super) enum Opened<S: Source> {
    Object(S::Members),
    Array(Vec<S>),
    /// A scalar, and its text if that is known.
    Scalar(Value, Option<String>),
}

impl<S: Source> Opened<S> {
    /// Go's word for what this is.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Opened::Object(_) => "object",
            Opened::Array(_) => "array",
            Opened::Scalar(value, _) => go::json_kind(value),
        }
    }

    /// The text of a number.
    pub(super) fn number(&self) -> Option<String> {
        match self {
            Opened::Scalar(value @ (Value::Int(_) | Value::Float(_)), text) => {
                Some(text.clone().unwrap_or_else(|| json::to_string(value)))
            }
            _ => None,
        }
    }

    /// The value, undecoded.
    pub(super) fn into_value(self) -> Value {
        match self {
            Opened::Object(members) => {
                let members: Vec<_> = members.into_iter().map(|(key, value)| (key, value.into())).collect();
                Value::Object(members.into())
            }
            Opened::Array(items) => Value::Array(items.into_iter().map(S::into).collect()),
            Opened::Scalar(value, _) => value,
        }
    }
}

impl Source for Value {
    type Members = Map;
    const ORDERED: bool = false;

    fn open(self) -> Opened<Self> {
        match self {
            Value::Object(members) => Opened::Object(members),
            Value::Array(items) => Opened::Array(items),
            scalar => Opened::Scalar(scalar, None),
        }
    }

    fn structure(
        decoder: &mut Decoder,
        definition: &'static Definition,
        members: Map,
        _before: Option<Map>,
    ) -> Result<Map, String> {
        decoder.sorted_structure(definition, members)
    }
}

impl Source for Ordered<'_> {
    type Members = Vec<(CompactString, Self)>;
    const ORDERED: bool = true;

    fn open(self) -> Opened<Self> {
        match self {
            Ordered::Object(members) => Opened::Object(members),
            Ordered::Array(items) => Opened::Array(items),
            Ordered::Scalar(value, text) => {
                let number = matches!(value, Value::Int(_) | Value::Float(_));
                Opened::Scalar(value, number.then(|| text.to_owned()))
            }
        }
    }

    fn structure(
        decoder: &mut Decoder,
        definition: &'static Definition,
        members: Self::Members,
        before: Option<Map>,
    ) -> Result<Map, String> {
        decoder.ordered_structure(definition, members, before)
    }
}
