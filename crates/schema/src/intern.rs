//! Equal parts of a schema are kept once. Most properties are plain strings, integers and booleans, so this is what
//! makes schemas small.

use crate::structural::Node;
use object::Value;
use std::collections::HashMap;
use std::collections::hash_map::{DefaultHasher, RandomState};
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;

/// What a schema says, in 128 bits. Two schemas with one id are taken to be equal: the hashes are keyed at random, so
/// nobody can make them collide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Id(u64, u64);

/// The nodes of one schema, by what they say.
pub(crate) struct Interner {
    seeds: (RandomState, RandomState),
    nodes: HashMap<Id, Arc<Node>>,
}

impl Interner {
    pub(crate) fn new() -> Self {
        Interner { seeds: (RandomState::new(), RandomState::new()), nodes: HashMap::new() }
    }

    /// Starts the id of a schema.
    pub(crate) fn digest(&self) -> Digest {
        Digest(self.seeds.0.build_hasher(), self.seeds.1.build_hasher())
    }

    /// The node that says the same, or this one from now on.
    pub(crate) fn keep(&mut self, id: Id, node: Node) -> Arc<Node> {
        self.nodes.entry(id).or_insert_with(|| Arc::new(node)).clone()
    }
}

/// An id in the making.
pub(crate) struct Digest(DefaultHasher, DefaultHasher);

impl Digest {
    pub(crate) fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.0.write(text.as_bytes());
        self.1.write(text.as_bytes());
    }

    pub(crate) fn id(&mut self, id: Id) {
        self.number(id.0);
        self.number(id.1);
    }

    pub(crate) fn value(&mut self, value: &Value) {
        match value {
            Value::Null => self.number(0),
            Value::Bool(b) => self.number(1 + u64::from(*b)),
            Value::Int(i) => {
                self.number(3);
                self.number(i.cast_unsigned());
            }
            Value::Float(f) => {
                self.number(4);
                self.number(f.to_bits());
            }
            Value::String(s) => {
                self.number(5);
                self.text(s);
            }
            Value::Array(items) => {
                self.number(6);
                self.number(items.len() as u64);
                items.iter().for_each(|item| self.value(item));
            }
            Value::Object(members) => {
                self.number(7);
                self.number(members.len() as u64);
                for (key, value) in members.iter() {
                    self.text(key);
                    self.value(value);
                }
            }
        }
    }

    pub(crate) fn finish(self) -> Id {
        Id(self.0.finish(), self.1.finish())
    }

    fn number(&mut self, n: u64) {
        self.0.write_u64(n);
        self.1.write_u64(n);
    }
}
