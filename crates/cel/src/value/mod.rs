//! Values at run time.
//!
//! A [`Value`] borrows: `'a` is the time for which both the program and the data of the embedding program are held.
//! Strings, lists and maps that stand in the program's constants or in the embedding program's data are referred to,
//! never copied; what an expression makes itself is reference counted. Cloning a value copies a few words.
//! Borrowing was chosen over handles because a rule runs for microseconds over data that outlives it: no counter is
//! touched and nothing is allocated on the way from a variable to a field.
//!
//! The embedding program shows its data through [`ListAdapter`] and [`MapAdapter`]: one adapter (say, a schema node)
//! interprets any number of plain data nodes handed to it as [`Data`].

mod equality;
mod error;
mod map;
mod time;

use std::any::Any;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

pub use error::{Error, ErrorKind};
pub use map::{Map, MapBuilder};
pub(crate) use map::{TWO_63, TWO_64, int_of_double, uint_of_double};
pub use time::{Civil, Duration, Timestamp};

/// The result of evaluating an expression or a part of one.
pub type Result<T> = std::result::Result<T, Error>;

/// A value.
#[derive(Clone, Debug)]
pub enum Value<'a> {
    /// `null`
    Null,
    /// A boolean.
    Bool(bool),
    /// A signed 64-bit integer.
    Int(i64),
    /// An unsigned 64-bit integer.
    Uint(u64),
    /// An IEEE 754 double.
    Double(f64),
    /// Text.
    String(Text<'a>),
    /// Octets.
    Bytes(Octets<'a>),
    /// A point in time.
    Timestamp(Timestamp),
    /// A span of time.
    Duration(Duration),
    /// A list.
    List(List<'a>),
    /// A map, or an object of the embedding program, which behaves as a map from field names.
    Map(Map<'a>),
    /// A type, by name: what `type(x)` gives and `int` names.
    Type(Text<'a>),
    /// A value that may be missing.
    Optional(Option<Arc<Value<'a>>>),
    /// A value only functions look into: an IP address, a quantity, an authorizer.
    Opaque(Arc<dyn Opaque>),
}

/// Text, borrowed or shared.
#[derive(Clone)]
pub enum Text<'a> {
    /// Text of the program or the embedding program.
    Borrowed(&'a str),
    /// Text made by the expression.
    Shared(Arc<str>),
}

impl Deref for Text<'_> {
    type Target = str;
    fn deref(&self) -> &str {
        match self {
            Text::Borrowed(text) => text,
            Text::Shared(text) => text,
        }
    }
}

impl fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

/// Octets, borrowed or shared.
#[derive(Clone)]
pub enum Octets<'a> {
    /// Octets of the program or the embedding program.
    Borrowed(&'a [u8]),
    /// Octets made by the expression.
    Shared(Arc<[u8]>),
}

impl Deref for Octets<'_> {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        match self {
            Octets::Borrowed(octets) => octets,
            Octets::Shared(octets) => octets,
        }
    }
}

impl fmt::Debug for Octets<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

/// A list.
#[derive(Clone)]
pub enum List<'a> {
    /// Elements made by the expression or handed in by value.
    Owned(Arc<Vec<Value<'a>>>),
    /// Elements of the embedding program, read in place.
    Adapted(AdaptedList<'a>),
    /// One list after another, joined without copying, because the language's price of `+` is that of one step.
    Joined(Arc<Joined<'a>>),
    /// Elements with rules of their own for equality and `+`; what [`ListSemantics::add`] makes.
    Ruled(Arc<Vec<Value<'a>>>, &'a dyn ListSemantics),
}

/// A node of the embedding program's data. Adapters downcast it to what they know it is.
pub type Data = dyn Any + Send + Sync;

/// Two lists seen as one.
pub struct Joined<'a> {
    first: List<'a>,
    second: List<'a>,
    /// The length of the first.
    split: usize,
    len: usize,
}

/// A list of the embedding program: data, and what interprets it.
#[derive(Clone, Copy)]
pub struct AdaptedList<'a> {
    /// Interprets the data.
    pub adapter: &'a dyn ListAdapter,
    /// The data.
    pub data: &'a Data,
}

/// Interprets lists of the embedding program.
pub trait ListAdapter: Send + Sync {
    /// The number of elements.
    fn len(&self, data: &Data) -> usize;

    /// Whether there are no elements.
    fn is_empty(&self, data: &Data) -> bool {
        self.len(data) == 0
    }

    /// The element at `index`, which is below [`ListAdapter::len`]; an error where the data is not what its
    /// description promises.
    fn get<'a>(&'a self, data: &'a Data, index: usize) -> Result<Value<'a>>;

    /// Rules for `==` and `+` that differ from the language's.
    fn semantics(&self) -> Option<&dyn ListSemantics> {
        None
    }

    /// Whether the list is of a declared type: to compare it with what is no list is an error then, and only integers
    /// are indexes.
    fn is_typed(&self) -> bool {
        false
    }
}

/// Equality and `+` of lists that are sets or keyed by fields of their elements.
pub trait ListSemantics: Send + Sync {
    /// Whether `list`, which has these semantics, equals `other`.
    fn equals(&self, list: &List<'_>, other: &List<'_>) -> Result<bool>;

    /// `list + other`, where `list` has these semantics.
    fn add<'a>(&'a self, list: &List<'a>, other: &List<'a>) -> Result<Value<'a>>;
}

/// Interprets maps and objects of the embedding program. Keys are strings.
pub trait MapAdapter: Send + Sync {
    /// The number of entries.
    fn len(&self, data: &Data) -> usize;

    /// Whether there are no entries.
    fn is_empty(&self, data: &Data) -> bool {
        self.len(data) == 0
    }

    /// The value of `key` if present; an error where the data is not what its description promises.
    fn get<'a>(&'a self, data: &'a Data, key: &str) -> Option<Result<Value<'a>>>;

    /// Whether `key` is present. Asked by `has()` and `in`.
    fn contains(&self, data: &Data, key: &str) -> bool {
        self.get(data, key).is_some()
    }

    /// The key at `index` in iteration order, below [`MapAdapter::len`].
    fn key<'a>(&'a self, data: &'a Data, index: usize) -> Option<&'a str>;

    /// Whether the data equals `other`, where the language's own rule (same keys, equal values) is not it.
    fn equals(&self, data: &Data, other: &Map<'_>) -> Option<Result<bool>> {
        let _ = (data, other);
        None
    }

    /// Whether the map is of a declared type: to compare it with what is no map is an error then, and so is a key that
    /// is no string.
    fn is_typed(&self) -> bool {
        false
    }

    /// The name `type()` shows for an object that is not a plain map.
    fn type_name(&self) -> Option<&str> {
        None
    }
}

/// A value only functions look into.
pub trait Opaque: Any + fmt::Debug + Send + Sync {
    /// The name of the value's type, such as `net.IP`.
    fn type_name(&self) -> &'static str;

    /// Whether `other`, of the same type, is the same value.
    fn equals(&self, other: &dyn Opaque) -> bool;

    /// Whether the value was computed from others in a way that upstream's `==` does not know on its right side.
    fn is_computed(&self) -> bool {
        false
    }

    /// The size that run-time costs are computed from, if the type has one.
    fn size(&self) -> Option<u64> {
        None
    }

    /// For functions: the value as what it is.
    fn as_any(&self) -> &dyn Any;
}

impl<'a> List<'a> {
    /// A list of `elements`.
    pub fn new(elements: Vec<Value<'a>>) -> Self {
        List::Owned(Arc::new(elements))
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        match self {
            List::Owned(elements) | List::Ruled(elements, _) => elements.len(),
            List::Adapted(list) => list.adapter.len(list.data),
            List::Joined(lists) => lists.len,
        }
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The element at `index`, or the `index out of bounds` error.
    pub fn get(&self, index: usize) -> Result<Value<'a>> {
        match self {
            List::Owned(elements) | List::Ruled(elements, _) => {
                elements.get(index).cloned().ok_or_else(|| out_of_bounds(index))
            }
            List::Adapted(list) if index < list.adapter.len(list.data) => list.adapter.get(list.data, index),
            List::Adapted(_) => Err(out_of_bounds(index)),
            List::Joined(lists) if index < lists.split => lists.first.get(index),
            List::Joined(lists) if index < lists.len => lists.second.get(index - lists.split),
            List::Joined(_) => Err(out_of_bounds(index)),
        }
    }

    /// The elements in order.
    pub fn iter(&self) -> impl Iterator<Item = Result<Value<'a>>> + '_ {
        (0..self.len()).map(|index| self.get(index))
    }

    /// Rules for `==` and `+` that differ from the language's.
    pub fn semantics(&self) -> Option<&'a dyn ListSemantics> {
        match self {
            List::Owned(_) | List::Joined(_) => None,
            List::Adapted(list) => list.adapter.semantics(),
            List::Ruled(_, semantics) => Some(*semantics),
        }
    }

    /// Whether the list is of a type that the embedding program declares.
    pub(crate) fn is_typed(&self) -> bool {
        match self {
            List::Owned(_) | List::Joined(_) => false,
            List::Adapted(list) => list.adapter.is_typed(),
            List::Ruled(..) => true,
        }
    }

    /// `self + other`.
    pub fn concat(&self, other: &List<'a>) -> Result<Value<'a>> {
        if let Some(semantics) = self.semantics() {
            return semantics.add(self, other);
        }
        let (split, len) = (self.len(), self.len() + other.len());
        if split == 0 || split == len {
            // What follows a list without rules of its own loses its rules.
            let kept = if split == 0 { other } else { self };
            if kept.semantics().is_none() {
                return Ok(Value::List(kept.clone()));
            }
        }
        if len > COPIED_WHEN_JOINED {
            let joined = Joined { first: self.clone(), second: other.clone(), split, len };
            return Ok(Value::List(List::Joined(Arc::new(joined))));
        }
        let elements = self.iter().chain(other.iter()).collect::<Result<Vec<_>>>()?;
        Ok(Value::List(List::new(elements)))
    }
}

/// Lists of this many elements and fewer are copied when joined: reading them is then faster.
const COPIED_WHEN_JOINED: usize = 32;

impl fmt::Debug for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

fn out_of_bounds(index: usize) -> Error {
    Error::new(format!("index out of bounds: {index}"))
}

impl<'a> Value<'a> {
    /// A string made by an expression.
    pub fn shared(text: impl Into<Arc<str>>) -> Self {
        Value::String(Text::Shared(text.into()))
    }

    /// A string of a constant or of the embedding program.
    pub fn borrowed(text: &'a str) -> Self {
        Value::String(Text::Borrowed(text))
    }

    /// A list of `elements`.
    pub fn list(elements: Vec<Value<'a>>) -> Self {
        Value::List(List::new(elements))
    }

    /// A present optional.
    pub fn some(value: Value<'a>) -> Self {
        Value::Optional(Some(Arc::new(value)))
    }

    /// An opaque value.
    pub fn opaque(value: impl Opaque) -> Self {
        Value::Opaque(Arc::new(value))
    }

    /// The opaque value within, if it is a `T`.
    pub fn downcast<T: 'static>(&self) -> Option<&T> {
        match self {
            Value::Opaque(value) => value.as_any().downcast_ref(),
            _ => None,
        }
    }

    /// The text within a string.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// The name of the value's type as errors and `type()` show it.
    pub fn type_name(&self) -> Text<'a> {
        Text::Borrowed(match self {
            Value::Null => "null_type",
            Value::Bool(_) => "bool",
            Value::Int(_) => "int",
            Value::Uint(_) => "uint",
            Value::Double(_) => "double",
            Value::String(_) => "string",
            Value::Bytes(_) => "bytes",
            Value::Timestamp(_) => "google.protobuf.Timestamp",
            Value::Duration(_) => "google.protobuf.Duration",
            Value::List(_) => "list",
            Value::Map(map) => return map.type_name(),
            Value::Type(_) => "type",
            Value::Optional(_) => "optional_type",
            Value::Opaque(value) => value.type_name(),
        })
    }

    /// The size run-time costs are computed from: code points, octets, elements or entries; 1 for what has none.
    pub fn cost_size(&self) -> u64 {
        match self {
            Value::String(text) => text_size(text),
            Value::Bytes(octets) => octets.len() as u64,
            Value::List(list) => list.len() as u64,
            Value::Map(map) => map.len() as u64,
            Value::Opaque(value) => value.size().unwrap_or(1),
            _ => 1,
        }
    }

    /// Whether the value is its type's zero value: what `optional.ofNonZeroValue` takes for none.
    pub fn is_zero(&self) -> bool {
        match self {
            Value::Null => true,
            Value::Bool(value) => !value,
            Value::Int(value) => *value == 0,
            Value::Uint(value) => *value == 0,
            Value::Double(value) => *value == 0.0,
            Value::String(text) => text.is_empty(),
            Value::Bytes(octets) => octets.is_empty(),
            Value::Timestamp(time) => time.seconds() == time::MIN_SECONDS && time.nanos() == 0,
            Value::Duration(duration) => duration.0 == 0,
            Value::List(list) => list.is_empty(),
            Value::Map(map) => map.is_empty(),
            Value::Optional(value) => value.is_none(),
            Value::Type(_) | Value::Opaque(_) => false,
        }
    }
}

impl fmt::Display for Value<'_> {
    /// The value as Go's `%v` shows it within error messages: `no such key: 1.5`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Null => f.write_str("null"),
            Value::Bool(value) => write!(f, "{value}"),
            Value::Int(value) => write!(f, "{value}"),
            Value::Uint(value) => write!(f, "{value}"),
            Value::Double(value) => f.write_str(&crate::runtime::number::format_shortest(*value)),
            Value::String(text) | Value::Type(text) => f.write_str(text),
            Value::Bytes(octets) => f.write_str(&String::from_utf8_lossy(octets)),
            Value::Timestamp(time) => write!(f, "{time}"),
            Value::Duration(duration) => write!(f, "{duration}"),
            Value::List(_) | Value::Map(_) | Value::Optional(_) => f.write_str(&self.type_name()),
            Value::Opaque(value) => write!(f, "{value:?}"),
        }
    }
}

/// The number of code points; a fast path for ASCII.
fn text_size(text: &str) -> u64 {
    if text.is_ascii() { text.len() as u64 } else { text.chars().count() as u64 }
}

macro_rules! value_from {
    ($($from:ty => $make:expr),* $(,)?) => {
        $(impl<'a> From<$from> for Value<'a> {
            fn from(value: $from) -> Self {
                $make(value)
            }
        })*
    };
}

value_from! {
    bool => Value::Bool,
    i64 => Value::Int,
    u64 => Value::Uint,
    f64 => Value::Double,
    &'a str => Value::borrowed,
    String => Value::shared,
    Arc<str> => Value::shared,
    Timestamp => Value::Timestamp,
    Duration => Value::Duration,
    List<'a> => Value::List,
    Map<'a> => Value::Map,
    Vec<Value<'a>> => Value::list,
}
