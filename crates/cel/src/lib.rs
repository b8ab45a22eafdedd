//! The Common Expression Language as Kubernetes 1.33 uses it.
//!
//! The language is that of cel-go 0.23 with its extensions and the libraries of Kubernetes, down to the text of each
//! message, its place, and the numbers of the cost model: an expression a real API server refuses is refused here with
//! the same words, and one it accepts costs the same.
//!
//! An expression goes through four steps, each a function of values:
//!
//! 1. [`parse::parse`] makes a tree of the text, with macros expanded;
//! 2. [`check::check`] gives types to its nodes, against an [`env::Env`] put together from [`library`] declarations,
//!    variables and the object types of a [`env::TypeProvider`];
//! 3. [`estimate::estimate`] says how dear it may get, [`estimate::explain`] why, from the sizes a
//!    [`estimate::SizeEstimator`] knows;
//! 4. [`interpret::Program`] runs it, counting the cost as it goes.
//!
//! ```
//! use cel::check::check;
//! use cel::env::{Env, VariableDecl};
//! use cel::estimate::estimate;
//! use cel::interpret::{Limits, Program};
//! use cel::library::ExpressionSet;
//! use cel::parse::{ParserOptions, parse};
//! use cel::types::Type;
//! use cel::value::Value;
//!
//! let env = Env::kubernetes(ExpressionSet::New).with_variables([VariableDecl::new("replicas", Type::Int)]);
//! let checked = check(&env, parse("replicas <= 3", &ParserOptions::default())?)?;
//! assert_eq!(checked.result_type().to_string(), "bool");
//! assert_eq!(estimate(&checked, &()).max, 2);
//!
//! let program = Program::new(&checked)?;
//! let evaluation = program.eval(&[("replicas", Value::Int(5))], Limits::NONE);
//! assert!(matches!(evaluation.result, Ok(Value::Bool(false))));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Nothing here knows of Kubernetes objects or schemas, reads files, or looks at a clock.

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
mod runtime;
pub mod source;
pub mod types;
pub mod unparse;
mod validators;
pub mod value;

/// Amounts, which some functions read and give.
pub use ::quantity;
