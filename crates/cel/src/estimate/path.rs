//! Where a value comes from: a variable and the steps from it.
//!
//! cel-go keeps paths as slices it appends to, and a Go slice with spare capacity is extended in place: two paths
//! with a common prefix may share memory, and the one extended later overwrites the last step of the other.
//! Estimates depend on it (a loop over `v.p` whose body selects `v.q` may be priced with the size of `v.q`), so it is
//! simulated: a path is a view of a shared buffer, and buffers grow as Go's do.

use std::sync::Arc;

/// One step of a path. The first of a path is a variable's name, as [`Step::Field`], or the step from a value
/// that has no path itself, such as the element of a list literal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// To a field, by name as written in the expression, or to the value of a map by a literal key.
    Field(Arc<str>),
    /// To the elements of a list.
    Items,
    /// To the keys of a map.
    Keys,
    /// To the values of a map.
    Values,
    /// To the indices of a list.
    Indices,
}

/// A view of a buffer. The default one is empty.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Path {
    buffer: usize,
    len: usize,
}

impl Path {
    pub(super) fn is_empty(self) -> bool {
        self.len == 0
    }
}

/// The buffers of all paths of one estimate.
#[derive(Default)]
pub(super) struct Paths {
    buffers: Vec<Buffer>,
}

struct Buffer {
    steps: Vec<Step>,
    capacity: usize,
}

impl Paths {
    pub(super) fn steps(&self, path: Path) -> &[Step] {
        self.buffers.get(path.buffer).and_then(|buffer| buffer.steps.get(..path.len)).unwrap_or_default()
    }

    /// The path with one more step, as Go's `append`.
    pub(super) fn append(&mut self, path: Path, step: Step) -> Path {
        let len = path.len + 1;
        if let Some(buffer) = self.buffers.get_mut(path.buffer)
            && path.len > 0
            && path.len < buffer.capacity
        {
            match buffer.steps.get_mut(path.len) {
                Some(slot) => *slot = step,
                None => buffer.steps.push(step),
            }
            return Path { buffer: path.buffer, len };
        }
        let mut steps = self.steps(path).to_vec();
        steps.push(step);
        let capacity = if path.len == 0 { 1 } else { path.len * 2 };
        self.buffers.push(Buffer { steps, capacity });
        Path { buffer: self.buffers.len() - 1, len }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(name: &str) -> Step {
        Step::Field(name.into())
    }

    #[test]
    fn a_path_of_spare_capacity_is_overwritten_by_its_sibling() {
        let mut paths = Paths::default();
        let mut base = Path::default();
        for name in ["a", "b", "c"] {
            base = paths.append(base, field(name));
        }
        let p = paths.append(base, field("p"));
        let q = paths.append(base, field("q"));
        assert_eq!(paths.steps(p), paths.steps(q));
        assert_eq!(paths.steps(q).last(), Some(&field("q")));
    }

    #[test]
    fn a_full_path_is_copied() {
        let mut paths = Paths::default();
        let a = paths.append(Path::default(), field("a"));
        let b = paths.append(a, field("b"));
        let p = paths.append(b, field("p"));
        let q = paths.append(b, field("q"));
        assert_eq!(paths.steps(p).last(), Some(&field("p")));
        assert_eq!(paths.steps(q).last(), Some(&field("q")));
    }
}
