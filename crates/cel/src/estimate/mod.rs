//! The cost estimator: how dear an expression may get, before it is ever run.
//!
//! The model is that of cel-go 0.23 with the function costs of Kubernetes 1.33, peculiarities included, because a
//! server refuses expressions by these numbers. Sizes of variables and their parts come from a [`SizeEstimator`].

mod bounds;
mod functions;
mod library;
mod path;

use std::sync::Arc;

use crate::ast::{Comprehension, Expr, ExprId, ExprKind, Literal};
use crate::checked::CheckedAst;
use crate::types::{Kind, Type};

pub use bounds::{CostEstimate, SizeEstimate};
pub use path::Step;

use path::{Path, Paths};

/// What is known of the sizes of variables and their parts.
pub trait SizeEstimator {
    /// The size of the value at a path, which is never empty, or nothing when it is not known.
    ///
    /// The first step is a variable, or, for parts of literals and of computed lists and maps, the step from
    /// them; the estimator of Kubernetes ignores it either way and walks the others from the type of `self`.
    fn size(&self, path: &[Step]) -> Option<SizeEstimate>;
}

/// Knows no sizes.
impl SizeEstimator for () {
    fn size(&self, _: &[Step]) -> Option<SizeEstimate> {
        None
    }
}

/// Estimates the cost of an expression.
pub fn estimate(checked: &CheckedAst, sizes: &dyn SizeEstimator) -> CostEstimate {
    Coster::new(checked, sizes).cost(checked.expr())
}

/// Cost and size of one node, as an estimate assumed them.
#[derive(Clone, Debug)]
pub struct NodeEstimate {
    /// The node.
    pub id: ExprId,
    /// The cost of the node and everything below it, once.
    pub cost: CostEstimate,
    /// The size of its value, if any was found.
    pub size: Option<SizeEstimate>,
    /// Where the value comes from; empty if unknown.
    pub path: Vec<Step>,
}

/// [`estimate`], with the parts: every node that was visited, children before parents.
pub fn explain(checked: &CheckedAst, sizes: &dyn SizeEstimator) -> (CostEstimate, Vec<NodeEstimate>) {
    let mut coster = Coster::new(checked, sizes);
    coster.nodes = Some(Vec::new());
    let cost = coster.cost(checked.expr());
    (cost, coster.nodes.unwrap_or_default())
}

const SELECT_AND_IDENT: CostEstimate = CostEstimate::fixed(1);
const LIST_CREATION: CostEstimate = CostEstimate::fixed(10);
const MAP_CREATION: CostEstimate = CostEstimate::fixed(30);
const MESSAGE_CREATION: CostEstimate = CostEstimate::fixed(40);
/// Per code point or byte of a string that is walked over.
const STRING_TRAVERSAL: f64 = 0.1;
/// Per code point of a regular expression.
const REGEX_LENGTH: f64 = 0.25;

/// An upper end and nothing below it, to start a union from.
const NOTHING: SizeEstimate = SizeEstimate { min: u64::MAX, max: 0 };

struct Coster<'a> {
    checked: &'a CheckedAst,
    sizes: &'a dyn SizeEstimator,
    paths: Paths,
    /// By id.
    expr_paths: Vec<Path>,
    /// By id.
    computed: Vec<Option<SizeEstimate>>,
    /// By id.
    entries: Vec<Option<EntrySize>>,
    locals: Vec<(Arc<str>, Local)>,
    nodes: Option<Vec<NodeEstimate>>,
}

/// Sizes of the keys (or indices) and values of a list or map.
#[derive(Clone, Copy)]
struct EntrySize {
    container: Kind,
    key: SizeEstimate,
    value: SizeEstimate,
}

impl EntrySize {
    fn union(a: Option<EntrySize>, b: Option<EntrySize>) -> Option<EntrySize> {
        let (a, b) = (a?, b?);
        Some(EntrySize { container: a.container, key: a.key.union(b.key), value: a.value.union(b.value) })
    }
}

/// Where a size was found.
enum Found {
    ByPath(SizeEstimate),
    Otherwise(Option<SizeEstimate>),
}

/// A variable of a comprehension.
#[derive(Clone, Copy)]
struct Local {
    path: Path,
    size: Option<SizeEstimate>,
    entry: Option<EntrySize>,
}

/// An argument or receiver, with what was known of it when its call was reached.
#[derive(Clone, Copy)]
struct Node<'a> {
    expr: &'a Expr,
    ty: &'a Type,
    path: Path,
    size: Option<SizeEstimate>,
}

impl Node<'_> {
    fn size_or_unknown(&self) -> SizeEstimate {
        self.size.unwrap_or(SizeEstimate::UNKNOWN)
    }
}

impl<'a> Coster<'a> {
    fn new(checked: &'a CheckedAst, sizes: &'a dyn SizeEstimator) -> Coster<'a> {
        let nodes = checked.types.len();
        Coster {
            checked,
            sizes,
            paths: Paths::default(),
            expr_paths: vec![Path::default(); nodes],
            computed: vec![None; nodes],
            entries: vec![None; nodes],
            locals: Vec::new(),
            nodes: None,
        }
    }

    fn cost(&mut self, expr: &'a Expr) -> CostEstimate {
        let cost = match &expr.kind {
            ExprKind::Literal(_) => CostEstimate::default(),
            ExprKind::Ident(name) => {
                let path = match self.local(name) {
                    Some(local) => local.path,
                    None => self.paths.append(Path::default(), Step::Field(name.clone())),
                };
                self.set_path(expr, path);
                SELECT_AND_IDENT
            }
            ExprKind::Select(select) if select.test_only => self.cost(&select.operand),
            ExprKind::Select(select) => {
                let mut sum = self.cost(&select.operand);
                if let Kind::Map | Kind::Object | Kind::Param = self.type_of(&select.operand).kind() {
                    sum = sum.plus(SELECT_AND_IDENT);
                }
                let operand = self.path(&select.operand);
                let path = self.paths.append(operand, Step::Field(select.field.clone()));
                self.set_path(expr, path);
                sum
            }
            ExprKind::Call(call) => self.cost_call(expr, call),
            ExprKind::List(list) => {
                let mut sum = CostEstimate::default();
                let mut items = if list.elements.is_empty() { SizeEstimate::default() } else { NOTHING };
                for element in &list.elements {
                    sum = sum.plus(self.cost(element));
                    items = items.union(self.size_or_unknown(element));
                }
                let entry = EntrySize { container: Kind::List, key: SizeEstimate::fixed(1), value: items };
                self.set_entry(expr, Some(entry));
                sum.plus(LIST_CREATION)
            }
            ExprKind::Map(entries) => {
                let mut sum = CostEstimate::default();
                let start = if entries.is_empty() { SizeEstimate::default() } else { NOTHING };
                let (mut key, mut value) = (start, start);
                for entry in entries {
                    sum = sum.plus(self.cost(&entry.key)).plus(self.cost(&entry.value));
                    key = key.union(self.size_or_unknown(&entry.key));
                    value = value.union(self.size_or_unknown(&entry.value));
                }
                self.set_entry(expr, Some(EntrySize { container: Kind::Map, key, value }));
                sum.plus(MAP_CREATION)
            }
            ExprKind::Struct(message) => {
                let mut sum = CostEstimate::default();
                for field in &message.fields {
                    sum = sum.plus(self.cost(&field.value));
                }
                sum.plus(MESSAGE_CREATION)
            }
            ExprKind::Comprehension(fold) if is_binding(fold) => self.cost_binding(expr, fold),
            ExprKind::Comprehension(fold) => self.cost_fold(expr, fold),
        };
        self.note(expr, cost);
        cost
    }

    /// Keeps what is known of a node, if asked to, without remembering its size: that would change the estimate.
    fn note(&mut self, expr: &Expr, cost: CostEstimate) {
        if self.nodes.is_none() {
            return;
        }
        let size = match self.find_size(expr) {
            Found::ByPath(size) => Some(size),
            Found::Otherwise(size) => size,
        };
        let path = self.paths.steps(self.path(expr)).to_vec();
        if let Some(nodes) = &mut self.nodes {
            nodes.push(NodeEstimate { id: expr.id, cost, size, path });
        }
    }

    fn cost_fold(&mut self, expr: &'a Expr, fold: &'a Comprehension) -> CostEstimate {
        let mut sum = self.cost(&fold.range);
        sum = sum.plus(self.cost(&fold.accu_init));
        self.push_accumulator(fold);
        let entry = self.entry(&fold.range);
        let container = entry.map_or_else(|| self.type_of(&fold.range).kind(), |entry| entry.container);
        let is_list = container == Kind::List;
        let (key_step, value_step) = if is_list { (Step::Indices, Step::Items) } else { (Step::Keys, Step::Values) };
        let (key, value) = (entry.map(|entry| entry.key), entry.map(|entry| entry.value));
        match &fold.iter_var2 {
            Some(second) => {
                self.push_part(&fold.iter_var, &fold.range, key_step, key);
                self.push_part(second, &fold.range, value_step, value);
            }
            None if is_list => self.push_part(&fold.iter_var, &fold.range, value_step, value),
            None => self.push_part(&fold.iter_var, &fold.range, key_step, key),
        }
        let condition = self.cost(&fold.condition);
        let step = self.cost(&fold.step);
        self.pop(&fold.iter_var);
        if let Some(second) = &fold.iter_var2 {
            self.pop(second);
        }
        sum = sum.plus(self.cost(&fold.result));
        self.pop(&fold.accu_var);

        // Asked for only now, when the body may have overwritten the path of the range: see `path`.
        let count = self.size_or_unknown(&fold.range);
        sum = sum.plus(count.repetitions(step.plus(condition)));
        match &fold.accu_init.kind {
            ExprKind::Literal(_) => {
                let size = self.size(&fold.accu_init);
                self.set_size(expr, size);
            }
            ExprKind::List(_) | ExprKind::Map(_) => {
                self.set_size(expr, Some(count));
                let entry = self.entry(&fold.step);
                self.set_entry(expr, entry);
            }
            _ => {}
        }
        sum
    }

    fn cost_binding(&mut self, expr: &'a Expr, fold: &'a Comprehension) -> CostEstimate {
        let mut sum = self.cost(&fold.range);
        sum = sum.plus(self.cost(&fold.accu_init));
        self.push_accumulator(fold);
        sum = sum.plus(self.cost(&fold.result));
        self.pop(&fold.accu_var);
        self.copy_sizes(expr, &fold.result);
        sum
    }

    fn push_accumulator(&mut self, fold: &'a Comprehension) {
        let local = Local {
            path: self.path(&fold.accu_init),
            entry: self.entry(&fold.accu_init),
            size: self.size(&fold.accu_init),
        };
        self.locals.push((fold.accu_var.clone(), local));
    }

    fn push_part(&mut self, name: &Arc<str>, range: &'a Expr, step: Step, size: Option<SizeEstimate>) {
        let range = self.path(range);
        let path = self.paths.append(range, step);
        self.locals.push((name.clone(), Local { path, size, entry: None }));
    }

    fn pop(&mut self, name: &str) {
        if let Some(at) = self.locals.iter().rposition(|(local, _)| &**local == name) {
            self.locals.remove(at);
        }
    }

    fn local(&self, name: &str) -> Option<Local> {
        self.locals.iter().rev().find(|(local, _)| &**local == name).map(|(_, local)| *local)
    }

    fn type_of(&self, expr: &Expr) -> &'a Type {
        self.checked.type_of(expr.id)
    }

    fn path(&self, expr: &Expr) -> Path {
        if let ExprKind::Ident(name) = &expr.kind
            && let Some(local) = self.local(name)
        {
            return local.path;
        }
        self.expr_paths.get(expr.id as usize).copied().unwrap_or_default()
    }

    fn set_path(&mut self, expr: &Expr, path: Path) {
        if let Some(slot) = self.expr_paths.get_mut(expr.id as usize) {
            *slot = path;
        }
    }

    fn set_size(&mut self, expr: &Expr, size: Option<SizeEstimate>) {
        if let (Some(slot), Some(size)) = (self.computed.get_mut(expr.id as usize), size) {
            *slot = Some(size);
        }
    }

    fn set_entry(&mut self, expr: &Expr, entry: Option<EntrySize>) {
        if let (Some(slot), Some(entry)) = (self.entries.get_mut(expr.id as usize), entry) {
            *slot = Some(entry);
        }
    }

    fn copy_sizes(&mut self, to: &Expr, from: &'a Expr) {
        let size = self.size(from);
        self.set_size(to, size);
        let entry = self.entry(from);
        self.set_entry(to, entry);
    }

    fn entry(&self, expr: &Expr) -> Option<EntrySize> {
        if let Some(entry) = self.entries.get(expr.id as usize).copied().flatten() {
            return Some(entry);
        }
        match &expr.kind {
            ExprKind::Ident(name) => self.local(name)?.entry,
            _ => None,
        }
    }

    fn size_or_unknown(&mut self, expr: &'a Expr) -> SizeEstimate {
        self.size(expr).unwrap_or(SizeEstimate::UNKNOWN)
    }

    /// The size of a node's value. What a path says is remembered, because the path may be overwritten.
    fn size(&mut self, expr: &'a Expr) -> Option<SizeEstimate> {
        match self.find_size(expr) {
            Found::ByPath(size) => {
                self.set_size(expr, Some(size));
                Some(size)
            }
            Found::Otherwise(size) => size,
        }
    }

    /// What was computed for a node before anything else, then of a literal, by path, by type, and of a local
    /// variable.
    fn find_size(&self, expr: &Expr) -> Found {
        if let Some(size) = self.computed.get(expr.id as usize).copied().flatten() {
            return Found::Otherwise(Some(size));
        }
        if let Some(size) = literal_size(expr) {
            return Found::Otherwise(Some(SizeEstimate::fixed(size)));
        }
        if let Some(size) = self.size_at(self.path(expr)) {
            return Found::ByPath(size);
        }
        if is_scalar(self.type_of(expr)) {
            return Found::Otherwise(Some(SizeEstimate::fixed(1)));
        }
        Found::Otherwise(match &expr.kind {
            ExprKind::Ident(name) => self.local(name).and_then(|local| local.size),
            _ => None,
        })
    }

    fn size_at(&self, path: Path) -> Option<SizeEstimate> {
        if path.is_empty() { None } else { self.sizes.size(self.paths.steps(path)) }
    }

    fn node(&mut self, expr: &'a Expr) -> Node<'a> {
        let size = self.size(expr);
        Node { expr, ty: self.type_of(expr), path: self.path(expr), size }
    }
}

/// Whether a comprehension only binds a variable, as `optMap` does: it never loops.
fn is_binding(fold: &Comprehension) -> bool {
    matches!(&fold.range.kind, ExprKind::List(list) if list.elements.is_empty())
        && matches!(fold.condition.kind, ExprKind::Literal(Literal::Bool(false)))
        && &*fold.accu_var != "__result__"
}

fn literal_size(expr: &Expr) -> Option<u64> {
    let size = match &expr.kind {
        ExprKind::Literal(Literal::String(text)) => text.chars().count(),
        ExprKind::Literal(Literal::Bytes(bytes)) => bytes.len(),
        ExprKind::Literal(_) => 1,
        ExprKind::List(list) => list.elements.len(),
        ExprKind::Map(entries) => entries.len(),
        _ => return None,
    };
    u64::try_from(size).ok()
}

/// Whether values of a type have size 1.
fn is_scalar(ty: &Type) -> bool {
    match ty.kind() {
        Kind::Bool | Kind::Double | Kind::Duration | Kind::Int | Kind::Timestamp | Kind::Uint => true,
        _ => ty.optional_value().is_some_and(is_scalar),
    }
}
