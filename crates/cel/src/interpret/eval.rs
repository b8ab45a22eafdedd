//! Evaluating the steps of a plan.

use std::sync::Arc;

use super::cost::{self, CallCost};
use super::patterns::Patterns;
use super::plan::{Append, Call, Element, Entry, ExternalCall, Insert, Inserted, ManyCall, Node, RegexCall, Slot};
use super::{Activation, Limits};
use crate::runtime::missing;
use crate::value::{Error, List, Map, MapBuilder, Octets, Result, Text, Value};

/// The state of one evaluation.
pub(super) struct Frame<'a, 'r> {
    slots: Vec<State<'a>>,
    variables: &'a [(Arc<str>, Slot)],
    activation: &'r dyn Activation<'a>,
    limits: Limits<'r>,
    cost: u64,
    pub(super) iterations: u32,
    patterns: Patterns,
}

/// What is known of a variable.
pub(super) enum State<'a> {
    /// A variable from outside, not asked for yet.
    Unknown,
    /// An accumulator whose first value has not been needed yet.
    Pending(&'a Node),
    /// The value.
    Value(Value<'a>),
    /// The error in its place.
    Failed(Error),
}

impl<'a> From<Result<Value<'a>>> for State<'a> {
    fn from(result: Result<Value<'a>>) -> Self {
        match result {
            Ok(value) => State::Value(value),
            Err(error) => State::Failed(error),
        }
    }
}

impl<'a, 'r> Frame<'a, 'r> {
    pub(super) fn new(
        slots: usize,
        variables: &'a [(Arc<str>, Slot)],
        activation: &'r dyn Activation<'a>,
        limits: Limits<'r>,
    ) -> Self {
        let slots = std::iter::repeat_with(|| State::Unknown).take(slots).collect();
        Frame { slots, variables, activation, limits, cost: 0, iterations: 0, patterns: Patterns::default() }
    }

    /// The cost so far.
    pub(super) fn cost(&self) -> u64 {
        self.cost
    }

    /// Adds to the cost; an error once it passes the limit.
    pub(super) fn charge(&mut self, cost: u64) -> Result<()> {
        self.cost = self.cost.saturating_add(cost);
        if self.cost > self.limits.cost { Err(Error::cost_limit()) } else { Ok(()) }
    }

    /// Counts an iteration of a loop; an error if the embedding program wants to stop.
    pub(super) fn iterate(&mut self) -> Result<()> {
        self.iterations += 1;
        if self.iterations == 100 {
            self.iterations = 0;
            if self.limits.interrupt.is_some_and(|interrupt| interrupt()) {
                return Err(Error::interrupted());
            }
        }
        Ok(())
    }

    /// Sets a variable of a loop.
    pub(super) fn set(&mut self, slot: Slot, state: State<'a>) {
        if let Some(place) = self.slots.get_mut(slot) {
            *place = state;
        }
    }

    /// Takes a variable of a loop away.
    pub(super) fn take(&mut self, slot: Slot) -> State<'a> {
        self.slots.get_mut(slot).map_or(State::Unknown, |place| std::mem::replace(place, State::Unknown))
    }

    /// The value of a variable.
    pub(super) fn variable(&mut self, slot: Slot) -> Result<Value<'a>> {
        match self.slots.get(slot) {
            Some(State::Value(value)) => Ok(value.clone()),
            Some(State::Failed(error)) => Err(error.clone()),
            Some(State::Pending(init)) => {
                let result = self.eval(init);
                self.remember(slot, result)
            }
            Some(State::Unknown) | None => {
                let name = self.variables.iter().find(|(_, known)| *known == slot).map_or("", |(name, _)| name);
                let resolved = self.activation.resolve(name);
                let result = resolved.unwrap_or_else(|| Err(Error::new(format!("no such attribute(s): {name}"))));
                self.remember(slot, result)
            }
        }
    }

    fn remember(&mut self, slot: Slot, result: Result<Value<'a>>) -> Result<Value<'a>> {
        if !result.as_ref().is_err_and(Error::is_fatal) {
            self.set(slot, State::from(result.clone()));
        }
        result
    }

    /// Evaluates a step. Kept small: it is what recursion costs.
    pub(super) fn eval(&mut self, node: &'a Node) -> Result<Value<'a>> {
        match node {
            Node::Constant(value) => Ok(constant(value)),
            Node::Variable(slot) => {
                self.charge(cost::SELECT)?;
                self.variable(*slot)
            }
            Node::Attribute(attribute) => self.attribute(attribute),
            Node::Has(attribute) => self.has(attribute),
            Node::And(terms) => self.junction(terms, false),
            Node::Or(terms) => self.junction(terms, true),
            Node::Conditional(branches) => self.conditional(branches),
            Node::Equals(operands, equals) => self.equals(operands, *equals),
            Node::NotStrictlyFalse(operand) => self.not_strictly_false(operand),
            Node::Unary(call) => self.unary(call),
            Node::Binary(call) => self.binary(call),
            Node::Call(call) => self.call(call),
            Node::External(call) => self.external(call),
            Node::Regex(call) => self.regex(call),
            Node::InSet(membership) => {
                let element = self.eval(&membership.0)?;
                Ok(Value::Bool(membership.1.contains(&element)))
            }
            Node::OrElse(operands, optional) => self.or_else(operands, *optional),
            Node::List(elements) => self.list(elements),
            Node::Map(entries) => self.map(entries),
            Node::Message(message) => self.message(message),
            Node::Fold(fold) => self.fold(fold),
            Node::Quantifier(quantifier, all) => self.quantifier(quantifier, *all),
            Node::Append(append) => self.append(append),
            Node::Insert(insert) => self.insert(insert),
        }
    }

    /// `&&` and `||`: a term that decides wins over errors before it, else the first error stands.
    fn junction(&mut self, terms: &'a [Node; 2], decides: bool) -> Result<Value<'a>> {
        let mut failure = None;
        for term in terms {
            match self.eval(term) {
                Ok(Value::Bool(value)) if value == decides => return Ok(Value::Bool(decides)),
                Ok(Value::Bool(_)) => {}
                Ok(_) => failure = failure.or_else(|| Some(Error::no_such_overload())),
                Err(error) if error.is_fatal() => return Err(error),
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        failure.map_or(Ok(Value::Bool(!decides)), Err)
    }

    fn conditional(&mut self, branches: &'a [Node; 3]) -> Result<Value<'a>> {
        let branch = self.choose(branches)?;
        self.uncharged(branch)
    }

    /// The branch a conditional takes.
    pub(super) fn choose(&mut self, [condition, then, otherwise]: &'a [Node; 3]) -> Result<&'a Node> {
        match self.eval(condition)? {
            Value::Bool(true) => Ok(then),
            Value::Bool(false) => Ok(otherwise),
            _ => Err(Error::no_such_overload()),
        }
    }

    /// A value that can be looked at where it is, and the cost of reading it.
    fn at_hand<'s>(&'s self, node: &'s Node) -> Option<(&'s Value<'a>, u64)> {
        match node {
            Node::Constant(value) => Some((value, 0)),
            Node::Variable(slot) => match self.slots.get(*slot) {
                Some(State::Value(value)) => Some((value, cost::SELECT)),
                _ => None,
            },
            _ => None,
        }
    }

    fn equals(&mut self, [a, b]: &'a [Node; 2], equals: bool) -> Result<Value<'a>> {
        if let (Some((a, read_a)), Some((b, read_b))) = (self.at_hand(a), self.at_hand(b)) {
            let cost = read_a + read_b + cost::equality(a, b, equals);
            let result = a.equals(b);
            self.charge(cost)?;
            return equality(result, equals);
        }
        let [a, b] = match (self.eval(a), self.eval(b)) {
            (Ok(a), Ok(b)) => [a, b],
            (a, b) => self.both(a, b, CallCost::Fixed(1))?,
        };
        self.charge(cost::equality(&a, &b, equals))?;
        equality(a.equals(&b), equals)
    }

    /// Both operands are evaluated before the error of the first is looked at, and the call is charged for.
    #[cold]
    fn both(&mut self, a: Result<Value<'a>>, b: Result<Value<'a>>, cost: CallCost) -> Result<[Value<'a>; 2]> {
        match (a, b) {
            (Ok(a), Ok(b)) => Ok([a, b]),
            (Err(error), _) | (_, Err(error)) if error.is_fatal() => Err(error),
            (a, b) => {
                let operands =
                    [a.as_ref().map_or(Value::Null, Value::clone), b.as_ref().map_or(Value::Null, Value::clone)];
                self.charge(cost.charge(&operands, None))?;
                Ok([a?, b?])
            }
        }
    }

    fn not_strictly_false(&mut self, operand: &'a Node) -> Result<Value<'a>> {
        let value = self.eval(operand);
        self.charge(1)?;
        match value {
            Ok(Value::Bool(value)) => Ok(Value::Bool(value)),
            Err(error) if error.is_fatal() => Err(error),
            _ => Ok(Value::Bool(true)),
        }
    }

    /// Makes a call, unless it is too dear. Upstream looks at the price afterwards; the outcome is the same.
    fn charged(
        &mut self,
        cost: CallCost,
        args: &[Value<'a>],
        call: impl FnOnce() -> Result<Value<'a>>,
    ) -> Result<Value<'a>> {
        if cost.is_known_before() {
            self.charge(cost.charge(args, None))?;
            return call();
        }
        let result = call();
        self.charge(cost.charge(args, result.as_ref().ok()))?;
        result
    }

    fn unary(&mut self, call: &'a Call<1>) -> Result<Value<'a>> {
        let [arg] = &call.args;
        let args = match self.eval(arg) {
            Ok(arg) => [arg],
            Err(error) if error.is_fatal() => return Err(error),
            Err(error) => {
                self.charge(call.cost.charge(&[Value::Null], None))?;
                return Err(error);
            }
        };
        let result = self.charged(call.cost, &args, || (call.function)(&args));
        result.map_err(|error| error.named(&call.name, &args))
    }

    fn binary(&mut self, call: &'a Call<2>) -> Result<Value<'a>> {
        let [a, b] = &call.args;
        let args = match (self.eval(a), self.eval(b)) {
            (Ok(a), Ok(b)) => [a, b],
            (a, b) => self.both(a, b, call.cost)?,
        };
        let result = self.charged(call.cost, &args, || (call.function)(&args));
        result.map_err(|error| error.named(&call.name, &args))
    }

    /// Three and more arguments are evaluated up to the first error, and the call is then not charged for.
    fn arguments(&mut self, nodes: &'a [Node]) -> Result<Vec<Value<'a>>> {
        let mut args = Vec::with_capacity(nodes.len());
        for node in nodes {
            args.push(self.eval(node)?);
        }
        Ok(args)
    }

    fn call(&mut self, call: &'a ManyCall) -> Result<Value<'a>> {
        let args = self.arguments(&call.args)?;
        let result = self.charged(call.cost, &args, || (call.function)(&args));
        result.map_err(|error| error.named(&call.name, &args))
    }

    fn external(&mut self, call: &'a ExternalCall) -> Result<Value<'a>> {
        let args = self.arguments(&call.args)?;
        self.charged(call.cost, &args, || match &call.function {
            Some(function) => function.call(&args),
            None => Err(missing(&call.name)),
        })
    }

    fn regex(&mut self, call: &'a RegexCall) -> Result<Value<'a>> {
        if let Some(pattern) = &call.pattern {
            let args = self.arguments(&call.args)?;
            return self.charged(call.cost, &args, || call.function.apply(pattern, &args));
        }
        let args = match &*call.args {
            [text, pattern] => match (self.eval(text), self.eval(pattern)) {
                (Ok(text), Ok(pattern)) => vec![text, pattern],
                (text, pattern) => self.both(text, pattern, call.cost)?.into(),
            },
            args => self.arguments(args)?,
        };
        self.charge(call.cost.charge(&args, None))?;
        let [Value::String(_), Value::String(pattern), ..] = &*args else {
            return Err(call.function.mismatch().named(&call.name, &args));
        };
        let pattern = self.patterns.compiled(call.function, pattern)?;
        call.function.apply(pattern, &args)
    }

    /// `or` and `orValue`; what is not needed is not evaluated, and the call costs nothing.
    fn or_else(&mut self, [optional, other]: &'a [Node; 2], keep: bool) -> Result<Value<'a>> {
        match self.eval(optional)? {
            Value::Optional(Some(value)) if keep => Ok(Value::Optional(Some(value))),
            Value::Optional(Some(value)) => Ok(Arc::unwrap_or_clone(value)),
            Value::Optional(None) => self.eval(other),
            _ => Err(Error::no_such_overload()),
        }
    }

    /// Makes a list; making it costs the same when an element fails.
    fn list(&mut self, elements: &'a [Element]) -> Result<Value<'a>> {
        let values = self.elements(elements);
        if !values.as_ref().is_err_and(Error::is_fatal) {
            self.charge(cost::LIST)?;
        }
        Ok(Value::List(List::new(values?)))
    }

    fn elements(&mut self, elements: &'a [Element]) -> Result<Vec<Value<'a>>> {
        let mut values = Vec::with_capacity(elements.len());
        for element in elements {
            let value = self.eval(&element.value)?;
            match (element.optional, value) {
                (false, value) => values.push(value),
                (true, Value::Optional(Some(value))) => values.push(Arc::unwrap_or_clone(value)),
                (true, Value::Optional(None)) => {}
                (true, other) => return Err(not_optional(&other)),
            }
        }
        Ok(values)
    }

    /// Makes a map; making it costs the same when an entry fails.
    fn map(&mut self, entries: &'a [Entry]) -> Result<Value<'a>> {
        let map = self.entries(entries);
        if !map.as_ref().is_err_and(Error::is_fatal) {
            self.charge(cost::MAP)?;
        }
        Ok(Value::Map(Map::Owned(Arc::new(map?))))
    }

    fn entries(&mut self, entries: &'a [Entry]) -> Result<MapBuilder<'a>> {
        let mut map = MapBuilder::new();
        for entry in entries {
            let key = self.eval(&entry.key)?;
            let value = self.eval(&entry.value)?;
            match (entry.optional, value) {
                (false, value) => map.insert(key, value),
                (true, Value::Optional(Some(value))) => map.insert(key, Arc::unwrap_or_clone(value)),
                (true, Value::Optional(None)) => {}
                (true, other) => return Err(not_optional(&other)),
            }
        }
        Ok(map)
    }

    /// Takes the accumulator, whose only owner is the loop, so that it can be changed in place.
    fn take_accumulator(&mut self, slot: Slot) -> Result<Value<'a>> {
        match self.take(slot) {
            State::Value(value) => Ok(value),
            State::Pending(init) => self.eval(init),
            State::Failed(error) => Err(error),
            State::Unknown => Err(Error::no_such_overload()),
        }
    }

    fn append(&mut self, append: &'a Append) -> Result<Value<'a>> {
        self.charge(cost::SELECT)?;
        let element = self.eval(&append.element);
        self.charge(append.cost + 1)?;
        if let Err(error) = &element
            && error.is_fatal()
        {
            return Err(error.clone());
        }
        let accumulated = self.take_accumulator(append.accumulator)?;
        let (Value::List(List::Owned(mut elements)), element) = (accumulated, element?) else {
            return Err(Error::no_such_overload());
        };
        Arc::make_mut(&mut elements).push(element);
        Ok(Value::List(List::Owned(elements)))
    }

    fn insert(&mut self, insert: &'a Insert) -> Result<Value<'a>> {
        self.charge(cost::SELECT)?;
        let entries = match &insert.entry {
            Inserted::Pair(key, value) => vec![(self.eval(key)?, self.eval(value)?)],
            Inserted::Map(map) => match self.eval(map)? {
                Value::Map(map) => map.iter().map(|(key, value)| Ok((key, value?))).collect::<Result<Vec<_>>>()?,
                _ => return Err(Error::no_such_overload()),
            },
        };
        self.charge(1)?;
        let Value::Map(Map::Owned(mut map)) = self.take_accumulator(insert.accumulator)? else {
            return Err(Error::no_such_overload());
        };
        let builder = Arc::make_mut(&mut map);
        for (key, value) in entries {
            if builder.contains(&key) {
                return Err(Error::new(format!("insert failed: key {key} already exists")));
            }
            builder.insert(key, value);
        }
        Ok(Value::Map(Map::Owned(map)))
    }
}

/// A constant, lent by the program where it is text.
pub(super) fn constant<'a>(value: &'a Value<'static>) -> Value<'a> {
    match value {
        Value::String(Text::Shared(text)) => Value::borrowed(text),
        Value::Bytes(Octets::Shared(octets)) => Value::Bytes(Octets::Borrowed(octets)),
        value => value.clone(),
    }
}

fn not_optional(value: &Value<'_>) -> Error {
    Error::new(format!("cannot initialize optional value from non-optional value: {value}"))
}

/// What `==`, or `!=`, makes of a comparison. Values that cannot be compared are not equal, but only `!=` may say so.
fn equality<'a>(answer: Result<bool>, equals: bool) -> Result<Value<'a>> {
    match answer {
        Err(error) if !equals && !error.is_fatal() => Ok(Value::Bool(true)),
        answer => Ok(Value::Bool(answer? == equals)),
    }
}
