//! Makes nodes: hands out ids and notes their positions.

use crate::ast::{Call, Expr, ExprId, ExprKind, ListExpr, Literal, Select};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Hands out ids. Positions are bytes until [`Builder::finish`] turns them into code points.
#[derive(Debug, Default)]
pub(crate) struct Builder {
    /// By id, from 0.
    positions: Vec<u32>,
    pub macro_calls: BTreeMap<ExprId, Expr>,
}

impl Builder {
    pub fn new(capacity: usize) -> Self {
        let mut positions = Vec::with_capacity(capacity);
        positions.push(u32::MAX);
        Builder { positions, macro_calls: BTreeMap::new() }
    }

    /// A new id at a position.
    pub fn id(&mut self, at: u32) -> ExprId {
        let id = self.positions.len() as ExprId;
        self.positions.push(at);
        id
    }

    /// How many ids there are; a mark for [`Builder::forget_from`].
    pub fn count(&self) -> usize {
        self.positions.len()
    }

    /// Takes back the ids handed out since the mark.
    pub fn forget_from(&mut self, mark: usize) {
        self.positions.truncate(mark);
    }

    /// Takes the position of a node that gave way to a macro's expansion.
    pub fn forget(&mut self, id: ExprId) {
        self.set(id, u32::MAX);
    }

    /// Where the node is.
    pub fn position(&self, id: ExprId) -> u32 {
        self.positions.get(id as usize).copied().unwrap_or(u32::MAX)
    }

    /// Corrects the position of a node.
    pub fn set(&mut self, id: ExprId, at: u32) {
        if let Some(position) = self.positions.get_mut(id as usize) {
            *position = at;
        }
    }

    /// The positions in code points of `text`, and the macro calls.
    pub fn finish(mut self, text: &str) -> (Vec<u32>, BTreeMap<ExprId, Expr>) {
        if !text.is_ascii() {
            let mut points = vec![0u32; text.len() + 1];
            let mut count = 0;
            for (at, point) in points.iter_mut().enumerate() {
                *point = count;
                count += u32::from(text.is_char_boundary(at + 1));
            }
            for position in &mut self.positions {
                if let Some(&point) = points.get(*position as usize) {
                    *position = point;
                }
            }
        }
        (self.positions, self.macro_calls)
    }

    pub fn literal(&mut self, at: u32, value: Literal) -> Expr {
        Expr { id: self.id(at), kind: ExprKind::Literal(value) }
    }

    pub fn ident(&mut self, at: u32, name: Arc<str>) -> Expr {
        Expr { id: self.id(at), kind: ExprKind::Ident(name) }
    }

    pub fn list(&mut self, at: u32, elements: Vec<Expr>) -> Expr {
        Expr { id: self.id(at), kind: ExprKind::List(ListExpr { elements, optional: Vec::new() }) }
    }

    pub fn call(&mut self, at: u32, function: Arc<str>, args: Vec<Expr>) -> Expr {
        call(self.id(at), function, None, args)
    }
}

/// A call node with a given id.
pub(crate) fn call(id: ExprId, function: Arc<str>, target: Option<Expr>, args: Vec<Expr>) -> Expr {
    Expr { id, kind: ExprKind::Call(Box::new(Call { target, function, args })) }
}

/// A selection or presence test with a given id.
pub(crate) fn select(id: ExprId, operand: Expr, field: Arc<str>, test_only: bool) -> Expr {
    Expr { id, kind: ExprKind::Select(Box::new(Select { operand, field, test_only })) }
}
