//! Room on the stack for walks over deep schemas.
//!
//! A definition may nest about a thousand levels. The walks over schemas are recursive, which is fast and reads well;
//! they go no deeper than the schema, whose depth is known beforehand. Where it is unusual, they run on a thread with
//! a stack that suffices.

use object::Value;

/// The deepest schema (or value) that is walked on the stack of the caller.
const SHALLOW: usize = 100;

/// Bytes of stack for each level, with much to spare in a debug build.
const PER_LEVEL: usize = 32 * 1024;

/// Runs `work`, which recurses at most `depth` levels, where it has room.
pub(crate) fn with_room<R: Send>(depth: usize, work: impl FnOnce() -> R + Send) -> R {
    if depth <= SHALLOW {
        return work();
    }
    std::thread::scope(|scope| {
        let size = (depth + SHALLOW) * PER_LEVEL;
        match std::thread::Builder::new().stack_size(size).spawn_scoped(scope, work) {
            Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            // Memory for the thread's stack could not be had: nothing a caller could do better.
            Err(error) => std::panic::panic_any(format!("no thread for a deep schema: {error}")),
        }
    })
}

/// How deep the arrays and objects of a value nest. Costs no stack.
pub(crate) fn depth(value: &Value) -> usize {
    let mut deepest = 0;
    let mut open = vec![(value, 1)];
    while let Some((value, level)) = open.pop() {
        deepest = deepest.max(level);
        match value {
            Value::Array(items) => open.extend(items.iter().filter(|v| nests(v)).map(|v| (v, level + 1))),
            Value::Object(members) => open.extend(members.values().filter(|v| nests(v)).map(|v| (v, level + 1))),
            _ => {}
        }
    }
    deepest
}

fn nests(value: &Value) -> bool {
    matches!(value, Value::Array(_) | Value::Object(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_counts_nested_arrays_and_objects() {
        for (text, want) in [("1", 1), ("[]", 1), ("[1,[2,{}]]", 3), (r#"{"a":{"b":[]},"c":1}"#, 3)] {
            assert_eq!(depth(&object::json::parse(text.as_bytes()).unwrap()), want, "{text}");
        }
    }

    #[test]
    fn deep_work_runs_elsewhere_and_hands_back_its_result() {
        fn down(n: usize) -> usize {
            if n == 0 { 0 } else { std::hint::black_box(down(n - 1) + 1) }
        }
        assert_eq!(with_room(900, || down(900)), 900);
    }
}
