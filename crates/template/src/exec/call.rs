//! Calls of functions and methods: their arguments, and whether those fit.

use super::{Exec, Result, Slot};
use crate::funcs::{self, Function, Param};
use crate::node::{At, Kind, Node};
use crate::print;
use crate::value::{Special, Val};

impl<'t, 'a> Exec<'t, 'a, '_> {
    #[allow(clippy::too_many_arguments)] // the operands of Go's evalCall
    pub(super) fn call(
        &mut self,
        dot: &Slot<'a>,
        function: Function,
        name: &'t str,
        receiver: Option<Val<'a>>,
        node: At<'t>,
        args: &'t [Node],
        last: Option<Slot<'a>>,
    ) -> Result<Slot<'a>> {
        let signature = function.signature();
        let fixed = signature.fixed.len();
        let count = args.len() + usize::from(last.is_some());
        if signature.rest.is_some() {
            if count < fixed {
                return self
                    .error(format_args!("wrong number of args for {name}: want at least {fixed} got {}", args.len()));
            }
        } else if count != fixed {
            return self.error(format_args!("wrong number of args for {name}: want {fixed} got {count}"));
        }
        if function.is("and") || function.is("or") {
            return self.and_or(dot, function.is("or"), args, last);
        }
        let param = |i: usize| signature.fixed.get(i).copied().or(signature.rest);
        let mut values = Vec::with_capacity(count + 1);
        values.extend(receiver);
        let mut boxed = vec![];
        for (i, arg) in args.iter().enumerate() {
            let slot = self.arg(dot, param(i), arg)?;
            boxed.push(slot.boxed);
            values.push(slot.val);
        }
        if let Some(last) = last {
            values.push(self.check(last, param(args.len()))?.val);
        }
        if let Some(complaint) = self.boxed_complaint(function, &values, &boxed) {
            self.at = Some(node);
            return self.error(format_args!("error calling {name}: {complaint}"));
        }
        if function.is("call") {
            let callee = args
                .first()
                .map_or_else(|| print::plain(&self.world.heap, &values[0]).unwrap_or_default(), |n| n.to_string());
            self.at = Some(node);
            return match values.first() {
                None | Some(Val::Nil) => self.error("error calling call: call of nil"),
                Some(v) => {
                    let type_name = self.world.heap.type_name(v);
                    self.error(format_args!("error calling call: non-function {callee} of type {type_name}"))
                }
            };
        }
        match function.run(&mut self.world, &values) {
            Ok(val) => Ok(Slot::plain(val)),
            Err(e) => {
                self.at = Some(node);
                self.error(format_args!("error calling {name}: {e}"))
            }
        }
    }

    /// Two builtins of Go see the interface around their arguments: `len` around a nil, `slice` around its indices.
    fn boxed_complaint(&self, function: Function, values: &[Val<'a>], boxed: &[bool]) -> Option<&'static str> {
        if function.is("len") && boxed == [true] && matches!(values, [Val::Nil]) {
            return Some("len of nil pointer");
        }
        let slices = function.is("slice") && self.functions == funcs::Set::Go;
        let sliceable = matches!(values.first(), Some(Val::Str(_) | Val::List(_)));
        (slices && sliceable && boxed.get(1..).is_some_and(|b| b.contains(&true)))
            .then_some("cannot index slice/array with type interface {}")
    }

    fn and_or(&mut self, dot: &Slot<'a>, or: bool, args: &'t [Node], last: Option<Slot<'a>>) -> Result<Slot<'a>> {
        let mut value = Slot::invalid();
        for arg in args {
            value = self.arg(dot, Some(Param::Reflect), arg)?;
            if self.world.heap.truth(&value.val) == or {
                return Ok(value);
            }
        }
        Ok(last.unwrap_or(value))
    }

    /// Sees to it that a value fits a parameter.
    fn check(&self, value: Slot<'a>, param: Option<Param>) -> Result<Slot<'a>> {
        let Some(param) = param else { return Ok(value) };
        if value.is_invalid() {
            if param.can_be_nil() {
                return Ok(value);
            }
            return self.error(format_args!("invalid value; expected {}", param.name()));
        }
        if param.takes(&self.world.heap, &value.val) {
            return Ok(value);
        }
        let got = if value.val.is_nil() { "interface {}" } else { self.world.heap.type_name(&value.val) };
        self.error(format_args!("wrong type for value; expected {}; got {got}", param.name()))
    }

    pub(super) fn arg(&mut self, dot: &Slot<'a>, param: Option<Param>, node: &'t Node) -> Result<Slot<'a>> {
        self.step()?;
        self.at = Some(At::Node(node));
        let value = match &node.kind {
            Kind::Dot => dot.clone(),
            Kind::Nil => match param {
                Some(p) if !p.can_be_nil() => return self.error(format_args!("cannot assign nil to {}", p.name())),
                _ => return Ok(Slot::invalid()),
            },
            Kind::Field(idents) => self.field_chain(dot, dot.clone(), idents, At::Node(node), &[], None)?,
            Kind::Variable(idents) => self.variable(dot, node, idents, &[], None)?,
            Kind::Pipe(pipe) => self.pipeline(dot, pipe)?,
            Kind::Identifier(name) => self.function(dot, name, At::Node(node), &[], None)?,
            Kind::Chain(inner, idents) => self.chain(dot, node, inner, idents, &[], None)?,
            _ => return self.literal(param, node).map(Slot::plain),
        };
        self.check(value, param)
    }

    /// A literal as an argument, read as the parameter's type.
    fn literal(&mut self, param: Option<Param>, node: &'t Node) -> Result<Val<'a>> {
        match (param, &node.kind) {
            (None | Some(Param::Any | Param::Reflect), _) => self.constant(node),
            (Some(Param::Bool), Kind::Bool(b)) => Ok(Val::Bool(*b)),
            (Some(Param::Bool), _) => self.error(format_args!("expected bool; found {node}")),
            (Some(Param::String), Kind::String { text, .. }) => self.paid(Val::str(text.as_str()), text.len()),
            (Some(Param::String), _) => self.error(format_args!("expected string; found {node}")),
            (Some(Param::Int | Param::Int64 | Param::Duration), kind) => match kind {
                Kind::Number(n) if n.int.is_some() => {
                    let i = n.int.unwrap_or_default();
                    Ok(match param {
                        Some(Param::Int) => Val::int(i),
                        Some(Param::Duration) => Val::special(Special::Duration(i)),
                        _ => Val::int64(i),
                    })
                }
                _ => self.error(format_args!("expected integer; found {node}")),
            },
            (Some(Param::Float), Kind::Number(n)) if n.float.is_some() => Ok(Val::Float(n.float.unwrap_or_default())),
            (Some(Param::Float), _) => self.error(format_args!("expected float; found {node}")),
            (Some(p), _) => self.error(format_args!("can't handle {node} for arg of type {}", p.name())),
        }
    }
}
