//! Makes plans of trees.

use std::sync::Arc;

use super::attribute::require_qualifier;
use super::cost::{self, CallCost};
use super::functions::Functions;
use super::plan::{
    Append, Attribute, Call, Element, Entry, ExternalCall, Field, Fold, Insert, Inserted, Key, ManyCall, Message, Node,
    Qualifier, Quantifier, RegexCall, Root, Slot, Vars,
};
use crate::ast::{self, Comprehension, Expr, ExprId, ExprKind, ListExpr, Literal, MapEntry, Select, StructExpr};
use crate::checked::{CheckedAst, Reference};
use crate::operators;
use crate::runtime::regex::RegexFunction;
use crate::runtime::{lookup, lookup_overload};
use crate::types::Type;
use crate::value::{Error, Map, MapBuilder, Octets, Result, Text, Value, int_of_double, uint_of_double};

const MAP_INSERT: &str = "cel.@mapInsert";

/// Names of types that stand for themselves where no checker resolved them.
const TYPE_NAMES: [&str; 13] = [
    "bool",
    "bytes",
    "double",
    "google.protobuf.Duration",
    "google.protobuf.Timestamp",
    "int",
    "list",
    "map",
    "null_type",
    "optional_type",
    "string",
    "type",
    "uint",
];

/// What plans are made with, and what has been found out on the way.
pub(super) struct Planner<'e> {
    /// What the checker knows; nothing of an expression that was only parsed.
    checked: Option<&'e CheckedAst>,
    functions: &'e Functions,
    /// Variables of the loops around the current node, innermost last.
    scope: Vec<(Arc<str>, Slot)>,
    /// Slots of variables from outside, by name.
    pub(super) variables: Vec<(Arc<str>, Slot)>,
    /// How many slots the plan uses.
    pub(super) slots: usize,
    /// The loop whose step is being planned, if its accumulator starts as an empty list or map.
    building: Option<Slot>,
}

impl<'e> Planner<'e> {
    pub(super) fn new(checked: Option<&'e CheckedAst>, functions: &'e Functions) -> Self {
        Planner { checked, functions, scope: Vec::new(), variables: Vec::new(), slots: 0, building: None }
    }

    /// The plan of a node.
    pub(super) fn plan(&mut self, expr: &Expr) -> Result<Node> {
        match &expr.kind {
            ExprKind::Literal(literal) => Ok(Node::Constant(constant(literal))),
            ExprKind::Ident(name) => Ok(self.ident(expr.id, name)),
            ExprKind::Select(select) => self.select(expr, select),
            ExprKind::Call(call) => self.call(expr.id, call),
            ExprKind::List(list) => self.list(list),
            ExprKind::Map(entries) => self.map(entries),
            ExprKind::Struct(message) => self.message(expr.id, message),
            ExprKind::Comprehension(fold) => self.fold(fold),
        }
    }

    fn new_slot(&mut self) -> Slot {
        self.slots += 1;
        self.slots - 1
    }

    fn local(&self, name: &str) -> Option<Slot> {
        self.scope.iter().rev().find(|(local, _)| &**local == name).map(|(_, slot)| *slot)
    }

    fn variable(&mut self, name: &str) -> Node {
        if let Some((_, slot)) = self.variables.iter().find(|(known, _)| &**known == name) {
            return Node::Variable(*slot);
        }
        let slot = self.new_slot();
        self.variables.push((Arc::from(name), slot));
        Node::Variable(slot)
    }

    fn ident(&mut self, id: ExprId, name: &Arc<str>) -> Node {
        if let Some(slot) = self.local(name) {
            return Node::Variable(slot);
        }
        let name = name.strip_prefix('.').unwrap_or(name);
        let Some(checked) = self.checked else {
            return if TYPE_NAMES.contains(&name) { type_constant(name) } else { self.variable(name) };
        };
        match checked.reference(id) {
            Some(Reference::Ident { value: Some(value), .. }) => Node::Constant(constant(value)),
            Some(Reference::Ident { name, value: None }) => {
                let name = name.clone();
                if let Some(slot) = self.local(&name) {
                    Node::Variable(slot)
                } else if matches!(checked.type_of(id), Type::Type(_)) {
                    type_constant(&name)
                } else {
                    self.variable(&name)
                }
            }
            _ => self.variable(name),
        }
    }

    fn select(&mut self, expr: &Expr, select: &Select) -> Result<Node> {
        // The checker may have found that the whole is one qualified name.
        if !select.test_only
            && let Some(Reference::Ident { name, .. }) = self.checked.and_then(|checked| checked.reference(expr.id))
        {
            let name = name.clone();
            return Ok(self.ident(expr.id, &name));
        }
        let operand = self.plan(&select.operand)?;
        let mut attribute = into_attribute(operand);
        attribute.qualifiers.push(Qualifier { key: Key::Field(select.field.clone()), optional: false });
        let attribute = Box::new(attribute);
        Ok(if select.test_only { Node::Has(attribute) } else { Node::Attribute(attribute) })
    }

    fn index(&mut self, args: [Node; 2], optional: bool) -> Node {
        let [operand, index] = args;
        let key = match index {
            Node::Constant(Value::String(text)) => Key::Field(shared(&text)),
            Node::Constant(value) => Key::Constant(value),
            Node::Variable(_) | Node::Attribute(_) => Key::Attribute(Box::new(into_attribute(index))),
            index => Key::Node(Box::new(index)),
        };
        let mut attribute = into_attribute(operand);
        attribute.qualifiers.push(Qualifier { key, optional });
        Node::Attribute(Box::new(attribute))
    }

    fn call(&mut self, id: ExprId, call: &ast::Call) -> Result<Node> {
        let qualified = self.qualified_function(call);
        let (name, target) = match &qualified {
            Some(name) => (&**name, None),
            None => (&*call.function, call.target.as_ref()),
        };
        if let Some(in_place) = self.in_place(name, call)? {
            return Ok(in_place);
        }
        let mut args = Vec::with_capacity(call.args.len() + 1);
        for (index, arg) in target.into_iter().chain(&call.args).enumerate() {
            // The branches of a conditional may still end in an addition to the accumulator.
            let is_branch = name == operators::CONDITIONAL && index > 0;
            args.push(if is_branch { self.plan(arg) } else { self.nested(arg) }?);
        }
        if let (operators::INDEX | operators::OPT_INDEX, [_, Node::Constant(key)]) = (name, &*args) {
            require_qualifier(key)?;
        }
        match self.operator(name, args) {
            Ok(node) => Ok(node),
            Err(args) => self.function(id, name, args),
        }
    }

    /// The name of a qualified function of an expression that was only parsed.
    fn qualified_function(&self, call: &ast::Call) -> Option<String> {
        let target = call.target.as_ref().filter(|_| self.checked.is_none())?;
        let prefix = qualified_name(target)?;
        let root = prefix.split('.').next()?;
        let name = format!("{prefix}.{}", call.function);
        (self.local(root).is_none() && lookup(&name).is_some()).then_some(name)
    }

    /// What is no plain call; gives the arguments back otherwise.
    fn operator(&mut self, name: &str, args: Vec<Node>) -> std::result::Result<Node, Vec<Node>> {
        match name {
            operators::LOGICAL_AND => two(args).map(|args| Node::And(Box::new(args))),
            operators::LOGICAL_OR => two(args).map(|args| Node::Or(Box::new(args))),
            operators::EQUALS => two(args).map(|args| Node::Equals(Box::new(args), true)),
            operators::NOT_EQUALS => two(args).map(|args| Node::Equals(Box::new(args), false)),
            operators::INDEX => two(args).map(|args| self.index(args, false)),
            operators::OPT_INDEX | operators::OPT_SELECT => two(args).map(|args| self.index(args, true)),
            "or" => two(args).map(|args| Node::OrElse(Box::new(args), true)),
            "orValue" => two(args).map(|args| Node::OrElse(Box::new(args), false)),
            operators::CONDITIONAL => <[Node; 3]>::try_from(args).map(|args| Node::Conditional(Box::new(args))),
            operators::NOT_STRICTLY_FALSE => {
                <[Node; 1]>::try_from(args).map(|[arg]| Node::NotStrictlyFalse(Box::new(arg)))
            }
            _ => Err(args),
        }
    }

    fn function(&mut self, id: ExprId, name: &str, args: Vec<Node>) -> Result<Node> {
        let overload = match self.checked.map(|checked| checked.overloads(id)) {
            Some([overload]) => Some(&*overload.id),
            _ => None,
        };
        let call_cost = CallCost::of(name, overload);
        if let Some(function) = RegexFunction::named(name) {
            // The planner reports what the pattern's compiler says, without the words of the function.
            let pattern = match args.get(1) {
                Some(Node::Constant(Value::String(pattern))) => Some(RegexFunction::Matches.compile(pattern)?),
                _ => None,
            };
            let (name, args) = (Arc::from(name), args.into());
            return Ok(Node::Regex(Box::new(RegexCall { name, function, pattern, cost: call_cost, args })));
        }
        let function = overload.and_then(lookup_overload).or_else(|| lookup(name));
        let Some(function) = function else {
            return Ok(Node::External(Box::new(ExternalCall {
                name: Arc::from(name),
                function: self.functions.get(name),
                cost: call_cost,
                args: args.into(),
            })));
        };
        if let ([Node::Constant(value)], true) = (&*args, is_conversion(name)) {
            let args = std::slice::from_ref(value);
            return function(args).map(Node::Constant).map_err(|error| error.named(name, args));
        }
        if name == operators::IN
            && overload == Some("in_list")
            && let [_, Node::Constant(Value::List(list))] = &*args
        {
            match list_as_set(list) {
                Some(set) if set.is_empty() => return Ok(Node::Constant(Value::Bool(false))),
                Some(set) => {
                    if let Some(element) = args.into_iter().next() {
                        return Ok(Node::InSet(Box::new((element, set))));
                    }
                    return Err(Error::no_such_overload());
                }
                None => {}
            }
        }
        let (name, cost) = (Arc::from(name), call_cost);
        let args = match <[Node; 1]>::try_from(args) {
            Ok(args) => return Ok(Node::Unary(Box::new(Call { name, function, cost, args }))),
            Err(args) => args,
        };
        Ok(match <[Node; 2]>::try_from(args) {
            Ok(args) => Node::Binary(Box::new(Call { name, function, cost, args })),
            Err(args) => Node::Call(Box::new(ManyCall { name, function, cost, args: args.into() })),
        })
    }

    /// An addition to the accumulator of the loop around, if `call` is one.
    fn in_place(&mut self, name: &str, call: &ast::Call) -> Result<Option<Node>> {
        let Some(accumulator) = self.building else { return Ok(None) };
        let Some(Expr { kind: ExprKind::Ident(ident), .. }) = call.args.first() else { return Ok(None) };
        if self.local(ident) != Some(accumulator) || call.target.is_some() {
            return Ok(None);
        }
        let entry = match (name, &*call.args) {
            (operators::ADD, [_, Expr { kind: ExprKind::List(list), .. }]) => {
                let ([element], true) = (&*list.elements, list.optional.is_empty()) else { return Ok(None) };
                let element = self.nested(element)?;
                let cost = if matches!(element, Node::Constant(_)) { 0 } else { cost::LIST };
                return Ok(Some(Node::Append(Box::new(Append { accumulator, element, cost }))));
            }
            (MAP_INSERT, [_, map]) => Inserted::Map(self.nested(map)?),
            (MAP_INSERT, [_, key, value]) => Inserted::Pair(self.nested(key)?, self.nested(value)?),
            _ => return Ok(None),
        };
        Ok(Some(Node::Insert(Box::new(Insert { accumulator, entry }))))
    }

    /// Plans a part that must not change the accumulator in place.
    fn nested(&mut self, expr: &Expr) -> Result<Node> {
        let building = self.building.take();
        let node = self.plan(expr);
        self.building = building;
        node
    }

    fn list(&mut self, list: &ListExpr) -> Result<Node> {
        let building = self.building.take();
        let elements = list.elements.iter().map(|element| self.plan(element)).collect::<Result<Vec<Node>>>();
        self.building = building;
        let elements = elements?;
        if list.optional.is_empty() && elements.iter().all(|element| matches!(element, Node::Constant(_))) {
            let values = elements.into_iter().filter_map(into_constant).collect();
            return Ok(Node::Constant(Value::list(values)));
        }
        let is_optional = |index: usize| list.optional.iter().any(|optional| *optional as usize == index);
        let elements = elements.into_iter().enumerate().map(|(at, value)| Element { value, optional: is_optional(at) });
        Ok(Node::List(elements.collect()))
    }

    fn map(&mut self, entries: &[MapEntry]) -> Result<Node> {
        let building = self.building.take();
        let planned = entries
            .iter()
            .map(|entry| {
                let (key, value) = (self.plan(&entry.key)?, self.plan(&entry.value)?);
                Ok(Entry { key, value, optional: entry.optional })
            })
            .collect::<Result<Vec<Entry>>>();
        self.building = building;
        let planned = planned?;
        let is_constant = |entry: &Entry| {
            !entry.optional && matches!((&entry.key, &entry.value), (Node::Constant(_), Node::Constant(_)))
        };
        if planned.iter().all(is_constant) {
            let entries =
                planned.into_iter().filter_map(|entry| Some((into_constant(entry.key)?, into_constant(entry.value)?)));
            return Ok(Node::Constant(Value::Map(Map::new(entries))));
        }
        Ok(Node::Map(planned.into()))
    }

    fn message(&mut self, id: ExprId, message: &StructExpr) -> Result<Node> {
        let name = match self.checked.and_then(|checked| checked.reference(id)) {
            Some(Reference::Ident { name, .. }) => name.clone(),
            _ => message.type_name.clone(),
        };
        let name = name.strip_prefix('.').map_or_else(|| name.clone(), Arc::from);
        let fields = message.fields.iter().map(|field| {
            Ok(Field { name: field.name.clone(), value: self.nested(&field.value)?, optional: field.optional })
        });
        let fields = fields.collect::<Result<Box<[Field]>>>()?;
        let maker = self.functions.maker(&name);
        Ok(Node::Message(Box::new(Message { name, fields, maker })))
    }

    fn fold(&mut self, fold: &Comprehension) -> Result<Node> {
        let building = self.building.take();
        let node = self.fold_parts(fold);
        self.building = building;
        node
    }

    fn fold_parts(&mut self, fold: &Comprehension) -> Result<Node> {
        let range = self.plan(&fold.range)?;
        let init = self.plan(&fold.accu_init)?;
        let depth = self.scope.len();
        let accumulator = self.new_slot();
        let first = self.new_slot();
        self.scope.push((fold.accu_var.clone(), accumulator));
        self.scope.push((fold.iter_var.clone(), first));
        let vars = match &fold.iter_var2 {
            None => Vars::One(first),
            Some(name) => {
                let second = self.new_slot();
                self.scope.push((name.clone(), second));
                Vars::Two(first, second)
            }
        };
        let quantifier = quantifier(fold);
        if let Some((predicate, all)) = quantifier {
            let predicate = self.plan(predicate)?;
            self.scope.truncate(depth);
            return Ok(Node::Quantifier(Box::new(Quantifier { range, vars, predicate }), all));
        }
        let condition = self.plan(&fold.condition)?;
        let starts_empty = match &init {
            Node::Constant(Value::List(list)) => list.is_empty(),
            Node::Constant(Value::Map(map)) => map.is_empty(),
            _ => false,
        };
        self.building = starts_empty.then_some(accumulator);
        let step = self.plan(&fold.step)?;
        self.building = None;
        self.scope.truncate(depth);
        self.scope.push((fold.accu_var.clone(), accumulator));
        let result = self.plan(&fold.result)?;
        self.scope.truncate(depth);
        Ok(Node::Fold(Box::new(Fold { range, vars, accumulator, init, condition, step, result })))
    }
}

/// The predicate of a loop that the macros `all` (true) and `exists` (false) make.
fn quantifier(fold: &Comprehension) -> Option<(&Expr, bool)> {
    let is_accumulator = |expr: &Expr| matches!(&expr.kind, ExprKind::Ident(name) if *name == fold.accu_var);
    let ExprKind::Literal(Literal::Bool(init)) = fold.accu_init.kind else { return None };
    let argument = |expr: &'_ Expr, function: &str| match &expr.kind {
        ExprKind::Call(call) if &*call.function == function && call.args.len() == 1 => Some(()),
        _ => None,
    };
    argument(&fold.condition, operators::NOT_STRICTLY_FALSE)?;
    let ExprKind::Call(held) = &fold.condition.kind else { return None };
    let held = held.args.first()?;
    let holds = if init {
        is_accumulator(held)
    } else {
        argument(held, operators::LOGICAL_NOT)?;
        matches!(&held.kind, ExprKind::Call(not) if not.args.first().is_some_and(is_accumulator))
    };
    let ExprKind::Call(step) = &fold.step.kind else { return None };
    let joined = if init { operators::LOGICAL_AND } else { operators::LOGICAL_OR };
    let [accumulated, predicate] = &*step.args else { return None };
    let matches_macro = holds
        && &*step.function == joined
        && is_accumulator(accumulated)
        && is_accumulator(&fold.result)
        && !mentions(predicate, &fold.accu_var, &mut Vec::new());
    matches_macro.then_some((predicate, init))
}

/// Whether the accumulator of the loop around is used within `expr`; inner loops have accumulators of their own.
fn mentions<'x>(expr: &'x Expr, name: &str, stack: &mut Vec<&'x Expr>) -> bool {
    stack.push(expr);
    while let Some(expr) = stack.pop() {
        match &expr.kind {
            ExprKind::Literal(_) => {}
            ExprKind::Ident(ident) if &**ident == name => return true,
            ExprKind::Ident(_) => {}
            ExprKind::Select(select) => stack.push(&select.operand),
            ExprKind::Call(call) => stack.extend(call.target.iter().chain(&call.args)),
            ExprKind::List(list) => stack.extend(&list.elements),
            ExprKind::Map(entries) => entries.iter().for_each(|entry| stack.extend([&entry.key, &entry.value])),
            ExprKind::Struct(message) => stack.extend(message.fields.iter().map(|field| &field.value)),
            ExprKind::Comprehension(fold) => {
                stack.push(&fold.range);
                stack.push(&fold.accu_init);
                if &*fold.accu_var != name {
                    stack.extend([&fold.condition, &fold.step, &fold.result]);
                }
            }
        }
    }
    false
}

fn two(args: Vec<Node>) -> std::result::Result<[Node; 2], Vec<Node>> {
    args.try_into()
}

fn into_constant(node: Node) -> Option<Value<'static>> {
    match node {
        Node::Constant(value) => Some(value),
        _ => None,
    }
}

fn into_attribute(node: Node) -> Attribute {
    match node {
        Node::Attribute(attribute) => *attribute,
        Node::Variable(slot) => Attribute { root: Root::Variable(slot), qualifiers: Vec::new() },
        Node::Conditional(branches) => Attribute { root: Root::Conditional(branches), qualifiers: Vec::new() },
        operand => Attribute { root: Root::Operand(operand), qualifiers: Vec::new() },
    }
}

fn constant(literal: &Literal) -> Value<'static> {
    match literal {
        Literal::Null => Value::Null,
        Literal::Bool(value) => Value::Bool(*value),
        Literal::Int(value) => Value::Int(*value),
        Literal::Uint(value) => Value::Uint(*value),
        Literal::Double(value) => Value::Double(*value),
        Literal::String(text) => Value::String(Text::Shared(text.clone())),
        Literal::Bytes(octets) => Value::Bytes(Octets::Shared(octets.clone())),
    }
}

fn type_constant(name: &str) -> Node {
    Node::Constant(Value::Type(Text::Shared(Arc::from(name))))
}

fn shared(text: &Text<'static>) -> Arc<str> {
    match text {
        Text::Shared(text) => text.clone(),
        Text::Borrowed(text) => Arc::from(*text),
    }
}

fn is_conversion(name: &str) -> bool {
    matches!(name, "bool" | "bytes" | "double" | "duration" | "dyn" | "int" | "string" | "timestamp" | "type" | "uint")
}

/// The members of a constant list, if all are scalars that can be looked up. Members that are numbers stand for equal
/// numbers of other types as well.
fn list_as_set(list: &crate::value::List<'static>) -> Option<MapBuilder<'static>> {
    let mut set = MapBuilder::new();
    for element in list.iter() {
        let element = element.ok()?;
        match element {
            Value::Double(double) => {
                if let Some(int) = int_of_double(double) {
                    set.insert(Value::Int(int), Value::Null);
                }
                if let Some(uint) = uint_of_double(double) {
                    set.insert(Value::Uint(uint), Value::Null);
                }
                set.insert(element, Value::Null);
            }
            Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::String(_) => set.insert(element, Value::Null),
            _ => return None,
        }
    }
    Some(set)
}

fn qualified_name(expr: &Expr) -> Option<String> {
    match &expr.kind {
        ExprKind::Ident(name) => Some(name.strip_prefix('.').unwrap_or(name).to_owned()),
        ExprKind::Select(select) if !select.test_only => {
            Some(format!("{}.{}", qualified_name(&select.operand)?, select.field))
        }
        _ => None,
    }
}
