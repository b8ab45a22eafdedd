//! CEL expressions in built-in kinds. Here it is known where they are, what they may name and what they are to give;
//! whether a text is right is asked of a [`Compiler`], so that its errors stand among the others in upstream's order.

/// What an expression is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose<'a> {
    /// Whether a webhook or policy applies: a boolean, without variables.
    Condition,
    /// A value that those after it may use under this name, in the order of the calls.
    Variable(&'a str),
    /// Whether a request is right: a boolean.
    Validation,
    /// What is said of one that is not: a string, without the authorizer.
    Message,
    /// What is recorded: a string or null.
    Annotation,
    /// What is applied: an `Object`.
    Apply,
    /// Which operations are carried out: a list of `JSONPatch`.
    JsonPatch,
}

/// An expression of an object that is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expression<'a> {
    /// The text to compile, never blank.
    pub text: &'a str,
    /// What it is for.
    pub purpose: Purpose<'a>,
    /// Whether it may name `params`.
    pub params: bool,
    /// Whether it may name `variables`.
    pub variables: bool,
    /// Whether the old object has it, so that it may use all that the server knows.
    pub stored: bool,
}

/// Why an expression cannot be taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is wrong.
    Invalid(String),
    /// It is right, and cannot be run.
    Internal(String),
}

/// What compiles the expressions of one object, one after the other.
pub trait Compiler {
    /// Compiles an expression; the error is upstream's text.
    fn compile(&mut self, expression: &Expression<'_>) -> Result<(), Fault>;
}

/// Takes every expression, for checks of everything else.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unchecked;

impl Compiler for Unchecked {
    fn compile(&mut self, _: &Expression<'_>) -> Result<(), Fault> {
        Ok(())
    }
}
