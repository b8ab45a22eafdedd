//! The abstract syntax tree: what the parser makes, the checker annotates and the planner reads.
//!
//! Macros are already expanded in it, as in cel-go: `all`, `exists`, `map` and the others are
//! [`Comprehension`]s, `has(e.f)` is a test-only [`Select`], `a.?b` is a call of `_?._`. Every node carries an
//! [`ExprId`], unique within its tree; positions, types and overload references are kept beside the tree, by id.

use std::sync::Arc;

/// The identity of a node within one tree. Ids start at 1 and are dense; 0 stands for "no node".
pub type ExprId = u32;

/// A node.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// The node's identity.
    pub id: ExprId,
    /// What the node is.
    pub kind: ExprKind,
}

/// What a node is.
#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// A constant.
    Literal(Literal),
    /// A variable or a (partly) qualified name; a leading dot is kept.
    Ident(Arc<str>),
    /// `operand.field`, or `has(operand.field)` when `test_only`.
    Select(Box<Select>),
    /// A function, method or operator call.
    Call(Box<Call>),
    /// `[a, ?b]`.
    List(ListExpr),
    /// `{k: v, ?k: v}`.
    Map(Vec<MapEntry>),
    /// `pkg.Type{field: value}`.
    Struct(StructExpr),
    /// A fold over a list or a map: what the macros expand to.
    Comprehension(Box<Comprehension>),
}

/// A constant.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    /// `null`
    Null,
    /// `true`, `false`
    Bool(bool),
    /// A signed 64-bit integer.
    Int(i64),
    /// An unsigned 64-bit integer, written with the suffix `u`.
    Uint(u64),
    /// An IEEE 754 double.
    Double(f64),
    /// A string of code points.
    String(Arc<str>),
    /// A string of octets.
    Bytes(Arc<[u8]>),
}

/// Selection of a field, or the test for its presence.
#[derive(Clone, Debug, PartialEq)]
pub struct Select {
    /// What the field is selected from.
    pub operand: Expr,
    /// The field's name.
    pub field: Arc<str>,
    /// Whether only the presence is asked for: `has(operand.field)`.
    pub test_only: bool,
}

/// A call. Operators are calls of their internal names, see [`crate::operators`].
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The receiver of a member call.
    pub target: Option<Expr>,
    /// The function's name.
    pub function: Arc<str>,
    /// The arguments, without the receiver.
    pub args: Vec<Expr>,
}

/// A list literal.
#[derive(Clone, Debug, PartialEq)]
pub struct ListExpr {
    /// The elements in order.
    pub elements: Vec<Expr>,
    /// Indices of the elements written `?e`, ascending.
    pub optional: Vec<u32>,
}

/// An entry of a map literal.
#[derive(Clone, Debug, PartialEq)]
pub struct MapEntry {
    /// The entry's own identity.
    pub id: ExprId,
    /// The key.
    pub key: Expr,
    /// The value.
    pub value: Expr,
    /// Whether the entry was written `?k: v`.
    pub optional: bool,
}

/// A message literal.
#[derive(Clone, Debug, PartialEq)]
pub struct StructExpr {
    /// The type's name as written.
    pub type_name: Arc<str>,
    /// The fields in order.
    pub fields: Vec<StructField>,
}

/// A field of a message literal.
#[derive(Clone, Debug, PartialEq)]
pub struct StructField {
    /// The field's own identity.
    pub id: ExprId,
    /// The field's name.
    pub name: Arc<str>,
    /// The value.
    pub value: Expr,
    /// Whether the field was written `?f: v`.
    pub optional: bool,
}

/// A fold: `accu := init; for var in range { if !condition { break } accu := step }; result`.
#[derive(Clone, Debug, PartialEq)]
pub struct Comprehension {
    /// The list or map iterated over.
    pub range: Expr,
    /// The variable bound to each element (list) or key (map); with `iter_var2`, to each index or key.
    pub iter_var: Arc<str>,
    /// The second variable of the two-variable forms, bound to each element or value.
    pub iter_var2: Option<Arc<str>>,
    /// The accumulator's name; `@result` for the macros.
    pub accu_var: Arc<str>,
    /// The accumulator's first value.
    pub accu_init: Expr,
    /// Evaluated before each step; false ends the loop.
    pub condition: Expr,
    /// The accumulator's next value.
    pub step: Expr,
    /// The value of the whole, with the accumulator in scope.
    pub result: Expr,
}

/// A parsed expression: the tree, and where each node stands in the source.
#[derive(Clone, Debug)]
pub struct Ast {
    /// The root.
    pub expr: Expr,
    /// The source and the nodes' positions in it.
    pub source: SourceInfo,
}

/// The source text and, by [`ExprId`], the position of each node in it.
#[derive(Clone, Debug, Default)]
pub struct SourceInfo {
    /// The text.
    pub text: Arc<str>,
    /// By id: the offset in code points of the node's position as cel-go reports it (an operator's own
    /// position for a binary operator, the bracket for an index or a call); `u32::MAX` where there is none.
    pub positions: Vec<u32>,
    /// The macro calls that were expanded, by the id of the expansion's root: used to print an expression as it was written.
    pub macro_calls: std::collections::BTreeMap<ExprId, Expr>,
}
