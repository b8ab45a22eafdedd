//! `matches`, `find` and `findAll`, with the pattern compiled when the program is made or at each call.

use regexp::Regexp;

use crate::value::{Error, List, Result, Text, Value};

/// Which of the functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RegexFunction {
    Matches,
    Find,
    FindAll,
}

impl RegexFunction {
    /// Compiles `pattern`, with the error text the function gives.
    pub(crate) fn compile(self, pattern: &str) -> Result<Regexp> {
        Regexp::new(pattern).map_err(|error| match self {
            RegexFunction::Matches => Error::new(error.to_string()),
            RegexFunction::Find | RegexFunction::FindAll => Error::new(format!("Illegal regex: {error}")),
        })
    }

    /// Applies the function to `args` (text, pattern, and for `findAll` perhaps a limit) with the pattern compiled.
    pub(crate) fn apply<'a>(self, pattern: &Regexp, args: &[Value<'a>]) -> Result<Value<'a>> {
        let (text, limit) = match args {
            [Value::String(text), _] => (text, -1),
            [Value::String(text), _, Value::Int(limit)] if self == RegexFunction::FindAll => (text, *limit),
            _ => return Err(Error::no_such_overload()),
        };
        Ok(match self {
            RegexFunction::Matches => Value::Bool(pattern.is_match(text)),
            RegexFunction::Find => pattern.find(text).map_or(Value::borrowed(""), |range| part(text, range)),
            RegexFunction::FindAll => {
                let limit = usize::try_from(limit).unwrap_or(usize::MAX);
                Value::List(List::new(pattern.find_iter(text).take(limit).map(|range| part(text, range)).collect()))
            }
        })
    }

    fn call<'a>(self, args: &[Value<'a>]) -> Result<Value<'a>> {
        match args {
            [Value::String(_), Value::String(pattern), ..] => self.apply(&self.compile(pattern)?, args),
            _ if self == RegexFunction::Matches => Err(Error::no_such_overload()),
            _ => Err(Error::mismatch()),
        }
    }
}

fn part<'a>(text: &Text<'a>, range: std::ops::Range<usize>) -> Value<'a> {
    match text {
        Text::Borrowed(text) => Value::borrowed(text.get(range).unwrap_or_default()),
        Text::Shared(text) => Value::shared(text.get(range).unwrap_or_default()),
    }
}

/// `text.matches(pattern)`
pub(crate) fn matches<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    RegexFunction::Matches.call(args)
}

/// `text.find(pattern)`
pub(crate) fn find<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    RegexFunction::Find.call(args)
}

/// `text.findAll(pattern[, limit])`
pub(crate) fn find_all<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    RegexFunction::FindAll.call(args)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_find_all_count_from_zero_and_negative_is_none() {
        for (limit, count) in [(-1, 2), (0, 0), (1, 1), (9, 2)] {
            let args = [Value::borrowed("a1b22"), Value::borrowed("[0-9]+"), Value::Int(limit)];
            let found = find_all(&args);
            assert!(matches!(found, Ok(Value::List(list)) if list.len() == count), "{limit}");
        }
    }
}
