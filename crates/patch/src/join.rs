//! Walking two objects side by side.

use object::{Map, Value};

/// The members of both maps by key, each key once, in order. Members that `each` answers with a value make the
/// result. One pass: inserting into a map one by one would cost its length each time.
pub(crate) fn join<E>(
    left: Map,
    right: Map,
    mut each: impl FnMut(&str, Option<Value>, Option<Value>) -> Result<Option<Value>, E>,
) -> Result<Map, E> {
    let mut members = Vec::with_capacity(left.len().max(right.len()));
    let (mut left, mut right) = (left.into_iter().peekable(), right.into_iter().peekable());
    loop {
        let order = match (left.peek(), right.peek()) {
            (Some((left, _)), Some((right, _))) => left.cmp(right),
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (None, None) => break,
        };
        let (key, left, right) = match order {
            std::cmp::Ordering::Less => {
                let Some((key, value)) = left.next() else { break };
                (key, Some(value), None)
            }
            std::cmp::Ordering::Greater => {
                let Some((key, value)) = right.next() else { break };
                (key, None, Some(value))
            }
            std::cmp::Ordering::Equal => {
                let (Some((key, left)), Some((_, right))) = (left.next(), right.next()) else { break };
                (key, Some(left), Some(right))
            }
        };
        if let Some(value) = each(&key, left, right)? {
            members.push((key, value));
        }
    }
    Ok(members.into_iter().collect())
}
