//! Looks at the tree of a wrong text for what the grammar cannot see: reserved names, constants out of range, bad
//! arguments of macros, trees too deep.
//!
//! cel-go does this even where the text has syntax errors, so their messages stand together.

use super::graph::{Label, Rule};
use super::report::{Halt, Report};
use super::tree::{Leaf, Node, NodeId, Tree};
use crate::parse::macros::{self, Shape};
use crate::parse::names::is_reserved;
use crate::parse::{MAX_DEPTH, literal};

/// What is known of a visited expression.
struct Value {
    /// The position: a byte, or none for what error recovery left without one.
    at: Option<u32>,
    kind: ValueKind,
}

enum ValueKind {
    Ident(String),
    Select,
    Other,
}

impl Value {
    fn other(at: u32) -> Value {
        Value { at: Some(at), kind: ValueKind::Other }
    }

    fn shape(&self) -> Shape<'_> {
        match &self.kind {
            ValueKind::Ident(name) => Shape::Ident(name),
            ValueKind::Select => Shape::Select,
            ValueKind::Other => Shape::Other,
        }
    }
}

struct Visitor<'a, 'r, 't> {
    tree: &'a Tree,
    report: &'r mut Report<'t>,
    depth: u32,
}

/// Visits the tree below `root`.
pub(super) fn visit(tree: &Tree, root: NodeId, report: &mut Report<'_>) -> Result<(), Halt> {
    let mut visitor = Visitor { tree, report, depth: 0 };
    let expr = tree.get(root).and_then(|node| node.node(Label::E));
    visitor.visit(expr).map(|_| ())
}

impl<'a> Visitor<'a, '_, '_> {
    /// Goes down to the first node that is more than its only part.
    fn unnest(&self, mut id: Option<NodeId>) -> Option<&'a Node> {
        loop {
            let node = self.tree.get(id?)?;
            let bare = match node.rule {
                Rule::Expr | Rule::Or | Rule::And | Rule::Relation | Rule::Calc => node.leaf(Label::Op).is_none(),
                Rule::Unary => node.way == 1,
                Rule::Member => node.way == 0,
                Rule::Primary => node.way == 3 || node.way == 7,
                _ => false,
            };
            if !bare {
                return Some(node);
            }
            id = node.node(Label::E);
        }
    }

    fn visit(&mut self, id: Option<NodeId>) -> Result<Value, Halt> {
        let Some(node) = self.unnest(id) else {
            return Ok(Value { at: None, kind: ValueKind::Other });
        };
        let counts = matches!(node.rule, Rule::Expr | Rule::Relation | Rule::Calc | Rule::Member);
        if counts {
            self.depth += 1;
            if self.depth > MAX_DEPTH {
                return Err(self.report.limit("max recursion depth exceeded"));
            }
        }
        let value = match node.rule {
            Rule::Expr | Rule::Relation | Rule::Calc => self.operation(node),
            Rule::Or | Rule::And => self.chain(node),
            Rule::Unary => self.unary(node),
            Rule::Member => self.member(node),
            Rule::Primary => self.primary(node),
            Rule::Literal => self.literal(node),
            _ => Ok(Value { at: None, kind: ValueKind::Other }),
        };
        if counts {
            self.depth -= 1;
        }
        value
    }

    fn error(&mut self, at: Option<u32>, message: impl Into<String>) -> Value {
        self.report.error(at, message);
        Value { at, kind: ValueKind::Other }
    }

    fn operation(&mut self, node: &'a Node) -> Result<Value, Halt> {
        let at = node.leaf(Label::Op).map_or(node.start, |op| op.at);
        self.visit(node.node(Label::E))?;
        self.visit(node.node(Label::E1))?;
        if node.rule == Rule::Expr {
            self.visit(node.node(Label::E2))?;
        }
        Ok(Value::other(at))
    }

    fn chain(&mut self, node: &'a Node) -> Result<Value, Halt> {
        self.visit(node.node(Label::E))?;
        let mut rest = node.nodes(Label::E1);
        for _ in node.leaves(Label::Op) {
            let Some(next) = rest.next() else {
                let wanted = if node.rule == Rule::Or { "||" } else { "&&" };
                return Ok(self.error(Some(node.start), format!("unexpected character, wanted '{wanted}'")));
            };
            self.visit(Some(next))?;
        }
        let count = node.leaves(Label::Op).count();
        let at = node.leaves(Label::Op).nth(count / 2).map_or(node.start, |op| op.at);
        Ok(Value::other(at))
    }

    fn unary(&mut self, node: &'a Node) -> Result<Value, Halt> {
        let Some(op) = node.leaf(Label::Op) else {
            return Ok(Value::other(node.start));
        };
        let even = node.leaves(Label::Op).count().is_multiple_of(2);
        let operand = self.visit(node.node(Label::E))?;
        Ok(if even { operand } else { Value::other(op.at) })
    }

    fn member(&mut self, node: &'a Node) -> Result<Value, Halt> {
        let operand = self.visit(node.node(Label::E))?;
        let op = node.leaf(Label::Op);
        let at = op.map_or(node.start, |op| op.at);
        match node.way {
            1 => {
                let Some(id) = node.node(Label::Id).filter(|_| op.is_some()) else {
                    return Ok(Value::other(node.start));
                };
                self.field_name(id);
                let kind = if node.leaf(Label::Opt).is_some() { ValueKind::Other } else { ValueKind::Select };
                Ok(Value { at: Some(at), kind })
            }
            2 => {
                let Some(id) = node.leaf(Label::Id) else {
                    return Ok(Value::other(node.start));
                };
                let at = node.leaf(Label::Open).map(|open| open.at);
                self.call(&id.text, Some(operand), at, node)
            }
            _ => {
                if op.is_some() {
                    self.visit(node.node(Label::E1))?;
                }
                Ok(Value::other(at))
            }
        }
    }

    /// Checks the name of a field.
    fn field_name(&mut self, id: NodeId) {
        let Some(node) = self.tree.get(id) else { return };
        match node.way {
            1 => {}
            2 => {
                self.error(Some(node.start), "unsupported syntax: '`'");
            }
            _ => {
                self.error(Some(node.start), "unsupported ident kind");
            }
        }
    }

    fn call(&mut self, name: &str, target: Option<Value>, at: Option<u32>, node: &'a Node) -> Result<Value, Halt> {
        let list = node.node(Label::List).and_then(|list| self.tree.get(list));
        let mut args = Vec::new();
        for arg in list.into_iter().flat_map(|list| list.nodes(Label::E)) {
            args.push(self.visit(Some(arg))?);
        }
        let result = Value { at, kind: ValueKind::Other };
        let Some(found) = macros::find(name, target.is_some(), args.len()) else {
            return Ok(result);
        };
        let shapes: Vec<Shape<'_>> = args.iter().map(Value::shape).collect();
        match found.check(&shapes) {
            Ok(()) if found == macros::Macro::Has => Ok(Value { at, kind: ValueKind::Select }),
            Ok(()) => Ok(result),
            Err(bad) => {
                let at = args.get(bad.index).and_then(|arg| arg.at);
                Ok(self.error(at, bad.message))
            }
        }
    }

    fn primary(&mut self, node: &'a Node) -> Result<Value, Halt> {
        match node.way {
            1 | 2 => {
                let Some(id) = node.leaf(Label::Id) else {
                    return Ok(Value::other(node.start));
                };
                if is_reserved(&id.text) {
                    return Ok(self.error(Some(node.start), format!("reserved identifier: {}", id.text)));
                }
                let dot = if node.leaf(Label::LeadingDot).is_some() { "." } else { "" };
                let name = format!("{dot}{}", id.text);
                if node.way == 2 {
                    let at = node.leaf(Label::Op).map(|op| op.at);
                    return self.call(&name, None, at, node);
                }
                Ok(Value { at: Some(id.at), kind: ValueKind::Ident(name) })
            }
            4..=6 => {
                if let Some(list) = node.node(Label::List).and_then(|list| self.tree.get(list)) {
                    match list.rule {
                        Rule::ListInit => {
                            for element in list.nodes(Label::E) {
                                self.optional(Some(element))?;
                            }
                        }
                        Rule::MapList => self.map_entries(list)?,
                        _ => self.fields(list)?,
                    }
                }
                Ok(Value::other(node.leaf(Label::Op).map_or(node.start, |op| op.at)))
            }
            _ => Ok(Value { at: None, kind: ValueKind::Other }),
        }
    }

    /// Visits what may stand behind a question mark.
    fn optional(&mut self, id: Option<NodeId>) -> Result<Value, Halt> {
        let inner = id.and_then(|id| self.tree.get(id)).and_then(|node| node.node(Label::E));
        self.visit(inner)
    }

    fn map_entries(&mut self, list: &'a Node) -> Result<(), Halt> {
        let (mut keys, mut values) = (list.nodes(Label::Key), list.nodes(Label::Value));
        for _ in list.leaves(Label::Colon) {
            let (Some(key), Some(value)) = (keys.next(), values.next()) else { break };
            self.optional(Some(key))?;
            self.visit(Some(value))?;
        }
        Ok(())
    }

    fn fields(&mut self, list: &'a Node) -> Result<(), Halt> {
        let (mut colons, mut values) = (list.leaves(Label::Colon), list.nodes(Label::Value));
        for field in list.nodes(Label::Key) {
            let (Some(_), Some(value)) = (colons.next(), values.next()) else { break };
            let name = self.tree.get(field).and_then(|field| field.node(Label::Id));
            let Some(name) = name else { break };
            match self.tree.get(name).map(|name| name.way) {
                Some(1) => {
                    self.visit(Some(value))?;
                }
                way => {
                    let message = if way == Some(2) { "unsupported syntax: '`'" } else { "unsupported ident kind" };
                    self.error(Some(list.start), message);
                }
            }
        }
        Ok(())
    }

    fn literal(&mut self, node: &'a Node) -> Result<Value, Halt> {
        let Some(word) = node.leaf(Label::Word) else {
            return Ok(Value { at: None, kind: ValueKind::Other });
        };
        let negative = node.leaf(Label::Sign).is_some();
        Ok(match check_literal(node.way, word, negative) {
            Ok(()) => Value::other(node.start),
            Err(message) => self.error(Some(node.start), message),
        })
    }
}

fn check_literal(way: usize, word: &Leaf, negative: bool) -> Result<(), &'static str> {
    match way {
        1 => literal::int(&word.text, negative).map(|_| ()),
        2 => literal::uint(&word.text).map(|_| ()),
        3 => literal::double(&word.text, negative).map(|_| ()),
        4 => literal::string(&word.text).map(|_| ()),
        5 => literal::bytes(&word.text).map(|_| ()),
        _ => Ok(()),
    }
}
