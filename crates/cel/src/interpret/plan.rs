//! The plan: a checked tree made ready to run.
//!
//! Names are resolved to slots, functions to pointers, constants folded and constant patterns compiled, once. As in
//! cel-go, a chain of selections and indexes is one [`Attribute`]: this decides what run-time costs are charged and
//! how far an optional selection reaches.

use std::sync::Arc;

use regexp::Regexp;

use super::cost::CallCost;
use super::functions::{ExternalFunction, ObjectTypes};
use crate::runtime::Function;
use crate::runtime::regex::RegexFunction;
use crate::value::{MapBuilder, Value};

/// The place of a variable in the frame of an evaluation.
pub(super) type Slot = usize;

/// A step of the plan.
#[derive(Debug)]
pub(super) enum Node {
    /// A value known when the plan was made.
    Constant(Value<'static>),
    /// A variable.
    Variable(Slot),
    /// A selection or an index, or several in a row.
    Attribute(Box<Attribute>),
    /// `has(operand.field)`
    Has(Box<Attribute>),
    /// `a && b`
    And(Box<[Node; 2]>),
    /// `a || b`
    Or(Box<[Node; 2]>),
    /// `c ? a : b`
    Conditional(Box<[Node; 3]>),
    /// `a == b`, or `a != b`
    Equals(Box<[Node; 2]>, bool),
    /// True unless the operand is false.
    NotStrictlyFalse(Box<Node>),
    /// A call of one argument.
    Unary(Box<Call<1>>),
    /// A call of two arguments.
    Binary(Box<Call<2>>),
    /// A call of none, or of three or more arguments.
    Call(Box<ManyCall>),
    /// A call of a function of the embedding program.
    External(Box<ExternalCall>),
    /// A call that takes a pattern.
    Regex(Box<RegexCall>),
    /// A search in a constant list of scalars.
    InSet(Box<(Node, MapBuilder<'static>)>),
    /// `optional.or(optional)`, or with `false` `optional.orValue(value)`
    OrElse(Box<[Node; 2]>, bool),
    /// `[a, ?b]`
    List(Box<[Element]>),
    /// `{k: v, ?k: v}`
    Map(Box<[Entry]>),
    /// `Type{field: value}`
    Message(Box<Message>),
    /// A loop.
    Fold(Box<Fold>),
    /// The loop of `all`, or with `false` of `exists`.
    Quantifier(Box<Quantifier>, bool),
    /// `accumulator + [element]`, done in place.
    Append(Box<Append>),
    /// `cel.@mapInsert(accumulator, key, value)`, done in place.
    Insert(Box<Insert>),
}

/// A value and what is selected from it.
#[derive(Debug)]
pub(super) struct Attribute {
    /// The value.
    pub(super) root: Root,
    /// The selections in order.
    pub(super) qualifiers: Vec<Qualifier>,
}

/// What an attribute starts from.
#[derive(Debug)]
pub(super) enum Root {
    /// A variable.
    Variable(Slot),
    /// The result of an expression.
    Operand(Node),
    /// One of two, neither of which is charged for as a variable.
    Conditional(Box<[Node; 3]>),
}

/// A selection.
#[derive(Debug)]
pub(super) struct Qualifier {
    /// The field, key or index.
    pub(super) key: Key,
    /// Whether absence is an answer: `a.?b`, `a[?b]`.
    pub(super) optional: bool,
}

/// The key of a selection.
#[derive(Debug)]
pub(super) enum Key {
    /// A field, or a constant string.
    Field(Arc<str>),
    /// Another constant.
    Constant(Value<'static>),
    /// A variable or a selection.
    Attribute(Box<Attribute>),
    /// The result of an expression.
    Node(Box<Node>),
}

/// A call of a fixed number of arguments.
#[derive(Debug)]
pub(super) struct Call<const N: usize> {
    pub(super) name: Arc<str>,
    pub(super) function: Function,
    pub(super) cost: CallCost,
    pub(super) args: [Node; N],
}

/// A call of any number of arguments.
#[derive(Debug)]
pub(super) struct ManyCall {
    pub(super) name: Arc<str>,
    pub(super) function: Function,
    pub(super) cost: CallCost,
    pub(super) args: Box<[Node]>,
}

/// A call of a function of the embedding program, or (without one) of a function nobody implements.
#[derive(Debug)]
pub(super) struct ExternalCall {
    pub(super) name: Arc<str>,
    pub(super) function: Option<Arc<dyn ExternalFunction>>,
    pub(super) cost: CallCost,
    pub(super) args: Box<[Node]>,
}

/// A call that takes a pattern.
#[derive(Debug)]
pub(super) struct RegexCall {
    pub(super) name: Arc<str>,
    pub(super) function: RegexFunction,
    /// The pattern compiled, if it is constant.
    pub(super) pattern: Option<Regexp>,
    pub(super) cost: CallCost,
    pub(super) args: Box<[Node]>,
}

/// An element of a list literal.
#[derive(Debug)]
pub(super) struct Element {
    pub(super) value: Node,
    pub(super) optional: bool,
}

/// An entry of a map literal.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) key: Node,
    pub(super) value: Node,
    pub(super) optional: bool,
}

/// A message literal.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) name: Arc<str>,
    pub(super) fields: Box<[Field]>,
    /// Who checks the fields of an object of the embedding program.
    pub(super) maker: Option<Arc<dyn ObjectTypes>>,
}

/// A field of a message literal.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: Arc<str>,
    pub(super) value: Node,
    pub(super) optional: bool,
}

/// A loop over a list or a map.
#[derive(Debug)]
pub(super) struct Fold {
    pub(super) range: Node,
    pub(super) vars: Vars,
    pub(super) accumulator: Slot,
    pub(super) init: Node,
    pub(super) condition: Node,
    pub(super) step: Node,
    pub(super) result: Node,
}

/// The variables of a loop.
#[derive(Clone, Copy, Debug)]
pub(super) enum Vars {
    /// Each element, or each key of a map.
    One(Slot),
    /// Each index or key, and each element or value.
    Two(Slot, Slot),
}

/// A loop whose accumulator is the conjunction or disjunction of a predicate.
#[derive(Debug)]
pub(super) struct Quantifier {
    pub(super) range: Node,
    pub(super) vars: Vars,
    pub(super) predicate: Node,
}

/// An addition to the list a loop makes.
#[derive(Debug)]
pub(super) struct Append {
    pub(super) accumulator: Slot,
    pub(super) element: Node,
    /// The cost of making the list of the element alone; a constant one costs nothing.
    pub(super) cost: u64,
}

/// An addition to the map a loop makes.
#[derive(Debug)]
pub(super) struct Insert {
    pub(super) accumulator: Slot,
    pub(super) entry: Inserted,
}

/// What is added to a map.
#[derive(Debug)]
pub(super) enum Inserted {
    /// A key and a value.
    Pair(Node, Node),
    /// The entries of another map.
    Map(Node),
}
