//! The Common Expression Language as Kubernetes 1.33 uses it (cel-go 0.23): parse, check, estimate cost, run.

pub mod ast;
pub mod check;
pub mod checked;
pub mod env;
pub mod estimate;
pub mod interpret;
pub mod issues;
pub mod library;
pub mod operators;
pub mod parse;
pub mod quantity;
mod runtime;
pub mod source;
pub mod types;
mod validators;
pub mod value;
