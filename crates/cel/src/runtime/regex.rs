//! `text.matches(pattern)`, `text.find(pattern)` and `text.findAll(pattern[, limit])`. The interpreter has the pattern
//! compiled: when the program is made, or when it is first used.

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
    /// The function of a name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "matches" => RegexFunction::Matches,
            "find" => RegexFunction::Find,
            "findAll" => RegexFunction::FindAll,
            _ => return None,
        })
    }

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

    /// The error of values the function does not take.
    pub(crate) fn mismatch(self) -> Error {
        if self == RegexFunction::Matches { Error::no_such_overload() } else { Error::mismatch() }
    }
}

fn part<'a>(text: &Text<'a>, range: std::ops::Range<usize>) -> Value<'a> {
    match text {
        Text::Borrowed(text) => Value::borrowed(text.get(range).unwrap_or_default()),
        Text::Shared(text) => Value::shared(text.get(range).unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_find_all_count_from_zero_and_negative_is_none() {
        for (limit, count) in [(-1, 2), (0, 0), (1, 1), (9, 2)] {
            let args = [Value::borrowed("a1b22"), Value::borrowed("[0-9]+"), Value::Int(limit)];
            let found =
                RegexFunction::FindAll.compile("[0-9]+").and_then(|re| RegexFunction::FindAll.apply(&re, &args));
            assert!(matches!(found, Ok(Value::List(list)) if list.len() == count), "{limit}");
        }
    }
}
