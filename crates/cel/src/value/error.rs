//! Evaluation errors. They are values of the language: operators may absorb them.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// Why an evaluation gave no value. Prints the text cel-go gives. One pointer wide, cheap to clone.
#[derive(Clone, PartialEq, Eq)]
pub struct Error(Arc<Inner>);

#[derive(PartialEq, Eq)]
struct Inner {
    message: Cow<'static, str>,
    kind: ErrorKind,
    /// Whether a function was handed values none of its overloads takes; the caller names them.
    mismatch: bool,
}

/// What sort of error an [`Error`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// An error of the expression or its data. `&&`, `||` and the macros may absorb it.
    Evaluation,
    /// The evaluation cost more than its limit. Never absorbed.
    CostLimit,
    /// The embedding program asked for the evaluation to stop. Never absorbed.
    Interrupted,
}

impl Error {
    /// An evaluation error that prints `message`.
    pub fn new(message: impl Into<Cow<'static, str>>) -> Self {
        Error(Arc::new(Inner { message: message.into(), kind: ErrorKind::Evaluation, mismatch: false }))
    }

    /// An operation was applied to values it is not defined for.
    pub fn no_such_overload() -> Self {
        Error::new("no such overload")
    }

    /// A function has no overload for the values it was handed. [`Error::named`] tells which.
    pub(crate) fn mismatch() -> Self {
        Error(Arc::new(Inner { message: "no such overload".into(), kind: ErrorKind::Evaluation, mismatch: true }))
    }

    /// The error a call of `function` gives: with the types of `args` where no overload takes them.
    pub(crate) fn named(self, function: &str, args: &[super::Value<'_>]) -> Self {
        if !self.0.mismatch {
            return self;
        }
        let types: Vec<_> = args.iter().map(|arg| arg.type_name().to_string()).collect();
        Error::new(format!("no such overload: {function}({})", types.join(", ")))
    }

    /// The function named is not defined for the values it was applied to.
    pub(crate) fn no_overload_of(function: &str) -> Self {
        Error::new(format!("no such overload: {function}"))
    }

    /// A map or object lacks `key`.
    pub fn no_such_key(key: impl fmt::Display) -> Self {
        Error::new(format!("no such key: {key}"))
    }

    /// The cost limit was passed.
    pub(crate) fn cost_limit() -> Self {
        Error(Arc::new(Inner {
            message: "operation cancelled: actual cost limit exceeded".into(),
            kind: ErrorKind::CostLimit,
            mismatch: false,
        }))
    }

    /// The evaluation was interrupted.
    pub(crate) fn interrupted() -> Self {
        Error(Arc::new(Inner {
            message: "operation interrupted".into(),
            kind: ErrorKind::Interrupted,
            mismatch: false,
        }))
    }

    /// The text.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// What sort of error it is.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Whether the evaluation must end here, whatever surrounds the failed part.
    pub(crate) fn is_fatal(&self) -> bool {
        self.0.kind != ErrorKind::Evaluation
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Error({:?}, {:?})", self.0.kind, self.0.message)
    }
}

impl std::error::Error for Error {}
