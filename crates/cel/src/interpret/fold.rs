//! Loops.

use super::attribute::go_type;
use super::cost;
use super::eval::{Frame, State};
use super::plan::{Fold, Quantifier, Vars};
use crate::value::{Error, List, Map, Result, Value};

/// What a loop goes over.
enum Range<'a> {
    List(List<'a>),
    Map(Map<'a>),
}

impl<'a> Range<'a> {
    fn new(value: Value<'a>, vars: Vars) -> Result<Self> {
        match (value, vars) {
            (Value::List(list), _) => Ok(Range::List(list)),
            (Value::Map(map), _) => Ok(Range::Map(map)),
            (other, Vars::One(_)) => Err(Error::new(format!("got '{}', expected iterable type", go_type(&other)))),
            (other, Vars::Two(..)) => {
                Err(Error::new(format!("unsupported comprehension range type: {}", go_type(&other))))
            }
        }
    }

    fn len(&self) -> usize {
        match self {
            Range::List(list) => list.len(),
            Range::Map(map) => map.len(),
        }
    }
}

impl<'a> Frame<'a, '_> {
    /// Sets the variables of a loop for the iteration at `index`. `false` if there is nothing at it.
    fn bind(&mut self, range: &Range<'a>, vars: Vars, index: usize) -> bool {
        match (range, vars) {
            (Range::List(list), Vars::One(slot)) => self.set(slot, State::from(list.get(index))),
            (Range::List(list), Vars::Two(first, second)) => {
                self.set(first, State::Value(Value::Int(i64::try_from(index).unwrap_or(i64::MAX))));
                self.set(second, State::from(list.get(index)));
            }
            (Range::Map(map), vars) => {
                let Some(key) = map.key(index) else { return false };
                match vars {
                    Vars::One(slot) => self.set(slot, State::Value(key)),
                    Vars::Two(first, second) => {
                        let Some(value) = map.find(&key) else { return false };
                        self.set(first, State::Value(key));
                        self.set(second, State::from(value));
                    }
                }
            }
        }
        true
    }

    fn unbind(&mut self, vars: Vars) {
        match vars {
            Vars::One(slot) => drop(self.take(slot)),
            Vars::Two(first, second) => {
                self.take(first);
                self.take(second);
            }
        }
    }

    /// Runs a loop.
    pub(super) fn fold(&mut self, fold: &'a Fold) -> Result<Value<'a>> {
        let range = Range::new(self.eval(&fold.range)?, fold.vars)?;
        self.set(fold.accumulator, State::Pending(&fold.init));
        for index in 0..range.len() {
            if !self.bind(&range, fold.vars, index) {
                continue;
            }
            match self.eval(&fold.condition) {
                Ok(Value::Bool(false)) => break,
                Err(error) if error.is_fatal() => return Err(error),
                // An error or a value of another type does not end the loop.
                _ => {}
            }
            match self.eval(&fold.step) {
                Err(error) if error.is_fatal() => return Err(error),
                result => self.set(fold.accumulator, State::from(result)),
            }
            self.iterate()?;
        }
        let result = self.eval(&fold.result);
        self.take(fold.accumulator);
        self.unbind(fold.vars);
        result
    }

    /// Runs the loop of `all` or `exists`, charging what the loop it stands for would cost: the condition, which
    /// reads the accumulator, before each predicate, and the reading of the accumulator beside the predicate.
    pub(super) fn quantifier(&mut self, quantifier: &'a Quantifier, all: bool) -> Result<Value<'a>> {
        let range = Range::new(self.eval(&quantifier.range)?, quantifier.vars)?;
        // `@not_strictly_false(@result)`; `exists` negates as well.
        let condition = if all { cost::SELECT + 1 } else { cost::SELECT + 2 };
        let mut failure = None;
        let mut decided = false;
        for index in 0..range.len() {
            if !self.bind(&range, quantifier.vars, index) {
                continue;
            }
            self.charge(condition)?;
            if decided {
                break;
            }
            self.charge(cost::SELECT)?;
            match self.eval(&quantifier.predicate) {
                Ok(Value::Bool(value)) => decided = value != all,
                Ok(_) => failure = failure.or_else(|| Some(Error::no_such_overload())),
                Err(error) if error.is_fatal() => return Err(error),
                Err(error) => failure = failure.or(Some(error)),
            }
            self.iterate()?;
        }
        self.charge(cost::SELECT)?;
        self.unbind(quantifier.vars);
        match failure {
            Some(error) if !decided => Err(error),
            _ => Ok(Value::Bool(decided != all)),
        }
    }
}
