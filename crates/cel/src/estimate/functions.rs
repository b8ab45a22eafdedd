//! Costs of calls, and of what the language itself provides.

use crate::ast::{Call, Expr, ExprKind};
use crate::types::Kind;

use super::path::Step;
use super::{CostEstimate, Coster, EntrySize, Node, REGEX_LENGTH, STRING_TRAVERSAL, SizeEstimate};

/// Cost of a call and, where it is known, the size of its result.
pub(super) struct CallEstimate {
    pub(super) cost: CostEstimate,
    pub(super) size: Option<SizeEstimate>,
}

impl CallEstimate {
    pub(super) fn new(cost: CostEstimate) -> CallEstimate {
        CallEstimate { cost, size: None }
    }

    pub(super) fn sized(cost: CostEstimate, size: SizeEstimate) -> CallEstimate {
        CallEstimate { cost, size: Some(size) }
    }
}

impl<'a> Coster<'a> {
    pub(super) fn cost_call(&mut self, expr: &'a Expr, call: &'a Call) -> CostEstimate {
        if let ("dyn", Some(arg)) = (&*call.function, call.args.first()) {
            let cost = self.cost(arg);
            self.copy_sizes(expr, arg);
            return CostEstimate::fixed(1).plus(cost);
        }
        let mut costs = Vec::with_capacity(call.args.len());
        let mut args = Vec::with_capacity(call.args.len());
        for arg in &call.args {
            costs.push(self.cost(arg));
            args.push(self.node(arg));
        }
        let checked = self.checked;
        let overloads = checked.overloads(expr.id);
        if overloads.is_empty() {
            return CostEstimate::default();
        }
        let mut sum = CostEstimate::default();
        let target = call.target.as_ref().map(|target| {
            sum = self.cost(target);
            self.node(target)
        });
        let mut range = CostEstimate { min: u64::MAX, max: 0 };
        let mut size: Option<SizeEstimate> = None;
        for overload in overloads {
            let estimate = self.call_estimate(expr, &call.function, &overload.id, target, &args, &costs);
            range = range.union(estimate.cost);
            if let Some(result) = estimate.size {
                size = Some(size.map_or(result, |size| size.union(result)));
            }
            let step = match &*overload.id {
                "index_list" => Some(Step::Items),
                "index_map" => Some(Step::Values),
                _ => None,
            };
            if let (Some(step), Some(container)) = (step, call.args.first()) {
                size = self.entry(container).map(|entry| entry.value);
                let container = self.path(container);
                let path = self.paths.append(container, step);
                self.set_path(expr, path);
            }
            if size.is_none() {
                size = self.size(expr);
            }
        }
        self.set_size(expr, size);
        sum.plus(range)
    }

    fn call_estimate(
        &mut self,
        expr: &'a Expr,
        function: &str,
        overload: &str,
        target: Option<Node<'a>>,
        args: &[Node<'a>],
        costs: &[CostEstimate],
    ) -> CallEstimate {
        let arguments = || costs.iter().fold(CostEstimate::default(), |sum, cost| sum.plus(*cost));
        if let Some(estimate) = self.library_estimate(function, overload, target, args) {
            return CallEstimate { cost: estimate.cost.plus(arguments()), size: estimate.size };
        }
        let walk = |node: &Node<'_>| node.size_or_unknown().cost(STRING_TRAVERSAL);
        match (overload, target, args) {
            ("string_format", Some(target), _) => CallEstimate::new(walk(&target).plus(arguments())),
            ("string_to_bytes", _, [text]) => {
                let size = text.size_or_unknown();
                // The multiplication wraps in cel-go, and its result is compared with nothing.
                let bytes = SizeEstimate { min: size.min, max: size.max.wrapping_mul(4) };
                CallEstimate::sized(walk(text).plus(arguments()), bytes)
            }
            ("bytes_to_string", _, [bytes]) => {
                let size = bytes.size_or_unknown();
                CallEstimate::sized(walk(bytes).plus(arguments()), SizeEstimate { min: size.min / 4, max: size.max })
            }
            ("strings_quote", _, [text]) => {
                let size = text.size_or_unknown();
                let quoted =
                    SizeEstimate { min: size.min.wrapping_add(2), max: size.max.wrapping_mul(2).wrapping_add(2) };
                CallEstimate::sized(walk(text).plus(arguments()), quoted)
            }
            ("starts_with_string" | "ends_with_string", _, [affix]) => CallEstimate::new(walk(affix).plus(arguments())),
            ("in_list", _, [_, list]) => CallEstimate::new(list.size_or_unknown().cost(1.0).plus(arguments())),
            ("matches_string", Some(target), [pattern]) => {
                let text = target.size_or_unknown().plus(SizeEstimate::fixed(1)).cost(STRING_TRAVERSAL);
                let pattern = pattern.size_or_unknown().cost(REGEX_LENGTH);
                CallEstimate::new(text.times(pattern).plus(arguments()))
            }
            ("contains_string", Some(target), [part]) => {
                CallEstimate::new(walk(&target).times(walk(part)).plus(arguments()))
            }
            ("logical_or" | "logical_and", ..) => {
                let [left, right] = costs else { return CallEstimate::new(arguments()) };
                CallEstimate::new(CostEstimate { min: left.min, max: left.plus(*right).max })
            }
            ("conditional", _, [_, yes, no]) => {
                let size = yes.size_or_unknown().union(no.size_or_unknown());
                let entry = EntrySize::union(self.entry(yes.expr), self.entry(no.expr));
                self.set_entry(expr, entry);
                let [condition, yes, no] = costs else { return CallEstimate::new(arguments()) };
                CallEstimate::sized(condition.plus(yes.union(*no)), size)
            }
            ("add_string" | "add_bytes" | "add_list", _, [left, right]) => {
                let size = left.size_or_unknown().plus(right.size_or_unknown());
                let entry = EntrySize::union(self.entry(left.expr), self.entry(right.expr));
                self.set_entry(expr, entry);
                let cost = if overload == "add_list" { CostEstimate::fixed(1) } else { size.cost(STRING_TRAVERSAL) };
                CallEstimate::sized(cost.plus(arguments()), size)
            }
            (
                "less_string"
                | "greater_string"
                | "less_equals_string"
                | "greater_equals_string"
                | "less_bytes"
                | "greater_bytes"
                | "less_equals_bytes"
                | "greater_equals_bytes"
                | "equals"
                | "not_equals",
                _,
                [left, right],
            ) => {
                let max = left.size_or_unknown().max.min(right.size_or_unknown().max);
                let compared = SizeEstimate { min: max.min(1), max };
                CallEstimate::new(compared.cost(STRING_TRAVERSAL).plus(arguments()))
            }
            _ => CallEstimate::new(CostEstimate::fixed(1).plus(arguments())),
        }
    }

    /// Kind and size of the elements of a list (or the keys of a map); nothing for other types.
    pub(super) fn element(&mut self, list: &Node<'a>) -> Option<(Kind, SizeEstimate)> {
        let kind = list.ty.first_param()?.kind();
        let size = if list.path.is_empty() {
            None
        } else {
            // A copy, so that this step never overwrites another path's.
            let mut steps = self.paths.steps(list.path).to_vec();
            steps.push(Step::Items);
            self.sizes.size(&steps)
        };
        Some((kind, size.unwrap_or(SizeEstimate::UNKNOWN)))
    }

    /// The integer a node is the literal of.
    pub(super) fn int_literal(node: &Node<'_>) -> Option<i64> {
        match node.expr.kind {
            ExprKind::Literal(crate::ast::Literal::Int(value)) => Some(value),
            _ => None,
        }
    }
}
