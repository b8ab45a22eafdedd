//! Templates: Go's `text/template` with the functions of Sprig, plain `{{x}}` substitution, and structured values rendered
//! leaf by leaf.
//!
//! * [`Template`]: a Go template, with Go's behaviour and Go's error texts;
//! * [`fast`]: `{{name}}` replaced, nothing else;
//! * [`Tree`]: a value whose strings are templates. Each is rendered by itself, so that what is filled in can never add a
//!   field or a document;
//! * [`documents`]: the objects in a rendered text of YAML documents; [`yaml`]: values written as YAML.
//!
//! ```
//! use template::{Data, Functions, Settings, Template};
//!
//! let template = Template::parse("greeting", "Hello {{ .who | upper }}!", Functions::Sprig)?;
//! let data = object::Value::Object(object::map! { "who" => "you" });
//! assert_eq!(template.render(&Data::from(&data), &Settings::default())?, "Hello YOU!");
//!
//! let broken = Template::parse("t", "{{ .who.first }}", Functions::Sprig)?;
//! assert_eq!(
//!     broken.render(&Data::from(&data), &Settings::default()).unwrap_err().to_string(),
//!     "template: t:1:7: executing \"t\" at <.who.first>: can't evaluate field first in type interface {}",
//! );
//! # Ok::<(), template::Error>(())
//! ```
//!
//! Rendering does no I/O; the time and the randomness that functions see come with the [`Settings`]. Whatever the template,
//! rendering ends: steps, nesting, values and output are limited.

mod documents;
mod escape;
mod exec;
pub mod fast;
mod float;
mod funcs;
mod lex;
mod literal;
mod node;
mod parse;
mod print;
mod printf;
mod settings;
mod tree;
mod value;
mod world;
pub mod yaml;

pub use documents::documents;
pub use funcs::Set as Functions;
pub use settings::{Data, Limits, MissingKey, Settings};
pub use tree::Tree;

use object::Value;
use std::fmt;

/// Why a template is refused, or its rendering failed: one line, as Go prints it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(String);

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

/// A Go template, ready to be rendered any number of times.
#[derive(Debug)]
pub struct Template {
    name: String,
    text: String,
    functions: Functions,
    set: parse::Set,
}

impl Template {
    /// Reads a template. `name` is what errors call it.
    ///
    /// # Errors
    ///
    /// Those of Go's parser: `template: NAME:LINE: …`.
    pub fn parse(name: &str, text: &str, functions: Functions) -> Result<Template, Error> {
        let set = parse::parse(name, text, functions).map_err(Error)?;
        Ok(Template { name: name.to_owned(), text: text.to_owned(), functions, set })
    }

    /// Renders the template.
    ///
    /// # Errors
    ///
    /// Those of Go's `Execute`: `template: NAME:LINE:COLUMN: executing "NAME" at <…>: …`, and the same where a limit is
    /// reached. There is no partial output.
    pub fn render(&self, data: &Data<'_>, settings: &Settings) -> Result<String, Error> {
        let mut heap = value::Heap::new(settings.limits.values);
        let dot = data.dot(&mut heap).map_err(Error)?;
        let world = world::World::new(heap, settings.timestamp(), settings.seed);
        let exec = exec::Exec::new(&self.name, &self.text, self.functions, &self.set, settings, world);
        exec.run(&self.name, dot).map_err(Error)
    }
}

/// Whether a text has an action in it at all.
pub(crate) fn is_literal(text: &str) -> bool {
    !text.contains("{{")
}

impl<'a> From<&'a Value> for Data<'a> {
    fn from(value: &'a Value) -> Self {
        Data::Value(value)
    }
}
