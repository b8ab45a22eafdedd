//! The errors that a check finds, with a bound.

use object::field::FieldError;

/// How many bytes the paths of the errors of one check take at most, about: a long key stands in the path of everything
/// that is in it. Upstream knows no such limit.
const MAX_BYTES: usize = 4 << 20;

/// Errors in the order in which they are found.
#[derive(Debug, Default)]
pub(crate) struct Found {
    errors: Vec<FieldError>,
    bytes: usize,
}

impl Found {
    /// Adds an error, which is made only if there is room.
    pub(crate) fn add_with(&mut self, make: impl FnOnce() -> FieldError) {
        if self.bytes < MAX_BYTES {
            let error = make();
            self.bytes += size_of::<FieldError>() + error.field.len();
            self.errors.push(error);
        }
    }

    /// The errors.
    pub(crate) fn into_errors(self) -> Vec<FieldError> {
        self.errors
    }
}
