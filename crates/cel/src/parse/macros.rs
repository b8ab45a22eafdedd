//! The macros: which calls are, which arguments they take, and what they expand to.
//!
//! The expansions are cel-go's, down to the order of ids; every made node stands at the position of the call's
//! parenthesis.

use crate::ast::{Comprehension, Expr, ExprId, ExprKind, Literal, MapEntry, StructField};
use crate::parse::builder::{self, Builder};
use crate::parse::names::{ACCUMULATOR, NAMES};
use std::sync::Arc;

/// The accumulator's older name, still refused as a variable's.
const OLD_ACCUMULATOR: &str = "__result__";

/// The most nodes a tree may have. `optMap` copies its receiver, so a chain of them doubles with each call.
const MAX_NODES: usize = 1 << 20;

/// A macro.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Macro {
    Has,
    All,
    Exists,
    ExistsOne,
    Map,
    Filter,
    OptMap,
    OptFlatMap,
    All2,
    Exists2,
    ExistsOne2,
    TransformList,
    TransformMap,
    TransformMapEntry,
}

/// What a macro sees of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape<'a> {
    /// A plain name.
    Ident(&'a str),
    /// A selection or presence test.
    Select,
    /// Anything else.
    Other,
}

impl<'a> From<&'a Expr> for Shape<'a> {
    fn from(expr: &'a Expr) -> Self {
        match &expr.kind {
            ExprKind::Ident(name) => Shape::Ident(name),
            ExprKind::Select(_) => Shape::Select,
            _ => Shape::Other,
        }
    }
}

/// An argument a macro does not take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BadArgument {
    /// Which argument.
    pub index: usize,
    pub message: String,
}

/// The macro a call stands for, if any.
pub(crate) fn find(name: &str, is_member: bool, arguments: usize) -> Option<Macro> {
    Some(match (name, is_member, arguments) {
        ("has", false, 1) => Macro::Has,
        ("all", true, 2) => Macro::All,
        ("exists", true, 2) => Macro::Exists,
        ("exists_one", true, 2) => Macro::ExistsOne,
        ("map", true, 2 | 3) => Macro::Map,
        ("filter", true, 2) => Macro::Filter,
        ("optMap", true, 2) => Macro::OptMap,
        ("optFlatMap", true, 2) => Macro::OptFlatMap,
        ("all", true, 3) => Macro::All2,
        ("exists", true, 3) => Macro::Exists2,
        ("existsOne" | "exists_one", true, 3) => Macro::ExistsOne2,
        ("transformList", true, 3 | 4) => Macro::TransformList,
        ("transformMap", true, 3 | 4) => Macro::TransformMap,
        ("transformMapEntry", true, 3 | 4) => Macro::TransformMapEntry,
        _ => return None,
    })
}

impl Macro {
    /// Checks the arguments.
    pub fn check(self, args: &[Shape<'_>]) -> Result<(), BadArgument> {
        let bad = |index, message: &str| Err(BadArgument { index, message: message.to_owned() });
        let name = |index: usize| match args.get(index) {
            Some(Shape::Ident(name)) => Some(*name),
            _ => None,
        };
        let overwrites = |name: &str| name == ACCUMULATOR || name == OLD_ACCUMULATOR;
        let unnamed = match self {
            Macro::Has => {
                return if args.first() == Some(&Shape::Select) {
                    Ok(())
                } else {
                    bad(0, "invalid argument to has() macro")
                };
            }
            Macro::OptMap => "optMap() variable name must be a simple identifier",
            Macro::OptFlatMap => "optFlatMap() variable name must be a simple identifier",
            Macro::Map | Macro::Filter => "argument is not an identifier",
            _ => "argument must be a simple name",
        };
        let Some(first) = name(0) else {
            return bad(0, unnamed);
        };
        match self {
            Macro::OptMap | Macro::OptFlatMap => Ok(()),
            Macro::All | Macro::Exists | Macro::ExistsOne | Macro::Map | Macro::Filter if overwrites(first) => {
                bad(0, "iteration variable overwrites accumulator variable")
            }
            Macro::All | Macro::Exists | Macro::ExistsOne | Macro::Map | Macro::Filter => Ok(()),
            _ => match name(1) {
                None => bad(1, unnamed),
                Some(second) if first == second => bad(1, &format!("duplicate variable name: {first}")),
                Some(_) if overwrites(first) => bad(0, "iteration variable overwrites accumulator variable"),
                Some(second) if overwrites(second) => bad(1, "iteration variable overwrites accumulator variable"),
                Some(_) => Ok(()),
            },
        }
    }

    /// Expands the call at the position `at`. None when the tree would become too large; the arguments must have
    /// passed [`Macro::check`].
    pub fn expand(self, b: &mut Builder, at: u32, target: Option<Expr>, args: Vec<Expr>) -> Option<Expr> {
        let mut args = args.into_iter();
        let first = args.next()?;
        if self == Macro::Has {
            let ExprKind::Select(inner) = first.kind else { return None };
            let id = b.id(at);
            return Some(builder::select(id, inner.operand, inner.field, true));
        }
        let ExprKind::Ident(var) = &first.kind else { return None };
        let (var, target) = (Arc::clone(var), target?);
        let mut m = Maker { b, at };
        match self {
            Macro::OptMap | Macro::OptFlatMap => return m.opt_map(target, var, args.next()?, self == Macro::OptMap),
            Macro::Filter => {
                let (init, condition) = (m.list(Vec::new()), m.bool(true));
                let step = m.append(first);
                let step = m.only_if(args.next()?, step);
                let result = m.accu();
                return Some(m.fold(target, var, None, Parts { init, condition, step, result }));
            }
            _ => {}
        }
        let var2 = match self {
            Macro::All | Macro::Exists | Macro::ExistsOne | Macro::Map => None,
            _ => match args.next()?.kind {
                ExprKind::Ident(name) => Some(name),
                _ => return None,
            },
        };
        let (body, filter) = match (args.next()?, args.next()) {
            (filter, Some(body)) => (body, Some(filter)),
            (body, None) => (body, None),
        };
        let parts = match self {
            Macro::All | Macro::All2 => m.all(body),
            Macro::Exists | Macro::Exists2 => m.exists(body),
            Macro::ExistsOne | Macro::ExistsOne2 => m.exists_one(body),
            Macro::TransformMap | Macro::TransformMapEntry => {
                m.transform_map(&var, body, filter, self == Macro::TransformMap)
            }
            _ => m.transform_list(body, filter, self == Macro::Map),
        };
        Some(m.fold(target, var, var2, parts))
    }
}

/// The parts of a fold besides range and variables.
struct Parts {
    init: Expr,
    condition: Expr,
    step: Expr,
    result: Expr,
}

/// Makes nodes at one position.
struct Maker<'b> {
    b: &'b mut Builder,
    at: u32,
}

impl Maker<'_> {
    fn accu(&mut self) -> Expr {
        self.b.ident(self.at, Arc::clone(&NAMES.accumulator))
    }

    fn bool(&mut self, value: bool) -> Expr {
        self.b.literal(self.at, Literal::Bool(value))
    }

    fn int(&mut self, value: i64) -> Expr {
        self.b.literal(self.at, Literal::Int(value))
    }

    fn list(&mut self, elements: Vec<Expr>) -> Expr {
        self.b.list(self.at, elements)
    }

    fn call(&mut self, function: &Arc<str>, args: Vec<Expr>) -> Expr {
        self.b.call(self.at, Arc::clone(function), args)
    }

    /// `accu + [element]`
    fn append(&mut self, element: Expr) -> Expr {
        let (accu, list) = (self.accu(), self.list(vec![element]));
        self.call(&NAMES.add, vec![accu, list])
    }

    /// `filter ? step : accu`
    fn only_if(&mut self, filter: Expr, step: Expr) -> Expr {
        let accu = self.accu();
        self.call(&NAMES.conditional, vec![filter, step, accu])
    }

    fn all(&mut self, body: Expr) -> Parts {
        let init = self.bool(true);
        let accu = self.accu();
        let condition = self.call(&NAMES.not_strictly_false, vec![accu]);
        let accu = self.accu();
        let step = self.call(&NAMES.and, vec![accu, body]);
        let result = self.accu();
        Parts { init, condition, step, result }
    }

    fn exists(&mut self, body: Expr) -> Parts {
        let init = self.bool(false);
        let accu = self.accu();
        let not = self.call(&NAMES.not, vec![accu]);
        let condition = self.call(&NAMES.not_strictly_false, vec![not]);
        let accu = self.accu();
        let step = self.call(&NAMES.or, vec![accu, body]);
        let result = self.accu();
        Parts { init, condition, step, result }
    }

    fn exists_one(&mut self, body: Expr) -> Parts {
        let (init, condition) = (self.int(0), self.bool(true));
        let (accu, one) = (self.accu(), self.int(1));
        let sum = self.call(&NAMES.add, vec![accu, one]);
        let step = self.only_if(body, sum);
        let (accu, one) = (self.accu(), self.int(1));
        let result = self.call(&NAMES.equals, vec![accu, one]);
        Parts { init, condition, step, result }
    }

    /// The parts of `map` and `transformList`, which differ in the order of their ids.
    fn transform_list(&mut self, body: Expr, filter: Option<Expr>, init_first: bool) -> Parts {
        let early = init_first.then(|| (self.list(Vec::new()), self.bool(true)));
        let step = self.append(body);
        let step = match filter {
            Some(filter) => self.only_if(filter, step),
            None => step,
        };
        let (init, condition) = early.unwrap_or_else(|| (self.list(Vec::new()), self.bool(true)));
        let result = self.accu();
        Parts { init, condition, step, result }
    }

    fn transform_map(&mut self, key: &Arc<str>, body: Expr, filter: Option<Expr>, keyed: bool) -> Parts {
        let mut args = vec![self.accu()];
        if keyed {
            args.push(self.b.ident(self.at, Arc::clone(key)));
        }
        args.push(body);
        let step = self.call(&NAMES.map_insert, args);
        let step = match filter {
            Some(filter) => self.only_if(filter, step),
            None => step,
        };
        let init = Expr { id: self.b.id(self.at), kind: ExprKind::Map(Vec::new()) };
        let condition = self.bool(true);
        let result = self.accu();
        Parts { init, condition, step, result }
    }

    fn fold(&mut self, range: Expr, iter_var: Arc<str>, iter_var2: Option<Arc<str>>, parts: Parts) -> Expr {
        self.comprehension(range, (iter_var, iter_var2, Arc::clone(&NAMES.accumulator)), parts)
    }

    fn comprehension(&mut self, range: Expr, vars: (Arc<str>, Option<Arc<str>>, Arc<str>), parts: Parts) -> Expr {
        let kind = ExprKind::Comprehension(Box::new(Comprehension {
            range,
            iter_var: vars.0,
            iter_var2: vars.1,
            accu_var: vars.2,
            accu_init: parts.init,
            condition: parts.condition,
            step: parts.step,
            result: parts.result,
        }));
        Expr { id: self.b.id(self.at), kind }
    }

    /// `target.hasValue() ? optional.of(fold without rounds, with accu = target.value()) : optional.none()`
    fn opt_map(&mut self, target: Expr, var: Arc<str>, body: Expr, wrap: bool) -> Option<Expr> {
        let id = self.b.id(self.at);
        let range = self.list(Vec::new());
        let copy = self.copy(&target)?;
        let has_value = builder::call(id, Arc::clone(&NAMES.has_value), Some(target), Vec::new());
        let init = builder::call(self.b.id(self.at), Arc::clone(&NAMES.value), Some(copy), Vec::new());
        let condition = self.bool(false);
        let step = self.b.ident(self.at, Arc::clone(&var));
        let vars = (Arc::clone(&NAMES.unused), None, var);
        let fold = self.comprehension(range, vars, Parts { init, condition, step, result: body });
        let some = if wrap { self.call(&NAMES.optional_of, vec![fold]) } else { fold };
        let none = self.call(&NAMES.optional_none, Vec::new());
        Some(self.call(&NAMES.conditional, vec![has_value, some, none]))
    }

    fn copy_id(&mut self, id: ExprId) -> Option<ExprId> {
        (self.b.count() < MAX_NODES).then(|| self.b.id(self.b.position(id)))
    }

    fn copy_all(&mut self, exprs: &[Expr]) -> Option<Vec<Expr>> {
        exprs.iter().map(|e| self.copy(e)).collect()
    }

    /// The same tree with new ids at the old positions.
    fn copy(&mut self, expr: &Expr) -> Option<Expr> {
        let id = self.copy_id(expr.id)?;
        let kind = match &expr.kind {
            ExprKind::Literal(_) | ExprKind::Ident(_) => expr.kind.clone(),
            ExprKind::Select(s) => {
                let operand = self.copy(&s.operand)?;
                return Some(builder::select(id, operand, Arc::clone(&s.field), s.test_only));
            }
            ExprKind::Call(c) => {
                let target = match &c.target {
                    Some(target) => Some(self.copy(target)?),
                    None => None,
                };
                let args = self.copy_all(&c.args)?;
                return Some(builder::call(id, Arc::clone(&c.function), target, args));
            }
            ExprKind::List(l) => {
                let mut list = l.clone();
                list.elements = self.copy_all(&l.elements)?;
                ExprKind::List(list)
            }
            ExprKind::Map(entries) => ExprKind::Map(
                entries
                    .iter()
                    .map(|e| {
                        let id = self.copy_id(e.id)?;
                        Some(MapEntry {
                            id,
                            key: self.copy(&e.key)?,
                            value: self.copy(&e.value)?,
                            optional: e.optional,
                        })
                    })
                    .collect::<Option<_>>()?,
            ),
            ExprKind::Struct(s) => {
                let mut copy = s.clone();
                copy.fields = s
                    .fields
                    .iter()
                    .map(|f| {
                        let id = self.copy_id(f.id)?;
                        Some(StructField {
                            id,
                            name: Arc::clone(&f.name),
                            value: self.copy(&f.value)?,
                            optional: f.optional,
                        })
                    })
                    .collect::<Option<_>>()?;
                ExprKind::Struct(copy)
            }
            ExprKind::Comprehension(c) => ExprKind::Comprehension(Box::new(Comprehension {
                range: self.copy(&c.range)?,
                iter_var: Arc::clone(&c.iter_var),
                iter_var2: c.iter_var2.clone(),
                accu_var: Arc::clone(&c.accu_var),
                accu_init: self.copy(&c.accu_init)?,
                condition: self.copy(&c.condition)?,
                step: self.copy(&c.step)?,
                result: self.copy(&c.result)?,
            })),
        };
        Some(Expr { id, kind })
    }
}
