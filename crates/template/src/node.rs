//! The syntax tree. Nodes print as Go prints them, since error messages quote them.

use object::go;
use std::fmt::{self, Display, Formatter};

/// A sequence of nodes.
#[derive(Debug, Default)]
pub(crate) struct List {
    pub nodes: Vec<Node>,
}

#[derive(Debug)]
pub(crate) struct Node {
    /// Where it starts, in bytes.
    pub pos: usize,
    pub kind: Kind,
}

#[derive(Debug)]
pub(crate) enum Kind {
    Text(String),
    Action(Pipe),
    If(Branch),
    With(Branch),
    Range(Branch),
    Template(String, Option<Pipe>),
    Break,
    Continue,
    // What follows stands in commands.
    Pipe(Box<Pipe>),
    Identifier(String),
    Variable(Vec<String>),
    Field(Vec<String>),
    Chain(Box<Node>, Vec<String>),
    Dot,
    Nil,
    Bool(bool),
    Number(Box<Number>),
    String { quoted: String, text: String },
}

#[derive(Debug)]
pub(crate) struct Branch {
    pub pipe: Pipe,
    pub list: List,
    pub otherwise: Option<List>,
}

#[derive(Debug)]
pub(crate) struct Pipe {
    pub pos: usize,
    /// `=` in the place of `:=`.
    pub assigns: bool,
    /// Names with their `$`.
    pub declares: Vec<String>,
    pub commands: Vec<Command>,
}

#[derive(Debug)]
pub(crate) struct Command {
    pub pos: usize,
    pub args: Vec<Node>,
}

/// A number literal: everything that it can be.
#[derive(Debug, Default)]
pub(crate) struct Number {
    pub text: String,
    pub int: Option<i64>,
    pub uint: Option<u64>,
    pub float: Option<f64>,
    /// Real and imaginary part.
    pub complex: Option<(f64, f64)>,
}

/// What an error can be at.
#[derive(Clone, Copy)]
pub(crate) enum At<'t> {
    Node(&'t Node),
    Pipe(&'t Pipe),
    Command(&'t Command),
}

impl At<'_> {
    pub fn pos(&self) -> usize {
        match self {
            At::Node(n) => n.pos,
            At::Pipe(p) => p.pos,
            At::Command(c) => c.pos,
        }
    }
}

impl Display for At<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            At::Node(n) => n.fmt(f),
            At::Pipe(p) => p.fmt(f),
            At::Command(c) => c.fmt(f),
        }
    }
}

impl Display for List {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.nodes.iter().try_for_each(|n| n.fmt(f))
    }
}

impl Display for Node {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::Text(t) => f.write_str(t),
            Kind::Action(p) => write!(f, "{{{{{p}}}}}"),
            Kind::If(b) => b.write(f, "if"),
            Kind::With(b) => b.write(f, "with"),
            Kind::Range(b) => b.write(f, "range"),
            Kind::Template(name, None) => write!(f, "{{{{template {}}}}}", go::quote(name)),
            Kind::Template(name, Some(p)) => write!(f, "{{{{template {} {p}}}}}", go::quote(name)),
            Kind::Break => f.write_str("{{break}}"),
            Kind::Continue => f.write_str("{{continue}}"),
            Kind::Pipe(p) => p.fmt(f),
            Kind::Identifier(name) => f.write_str(name),
            Kind::Variable(idents) => f.write_str(&idents.join(".")),
            Kind::Field(idents) => fields(f, idents),
            Kind::Chain(node, idents) => {
                operand(f, node)?;
                fields(f, idents)
            }
            Kind::Dot => f.write_str("."),
            Kind::Nil => f.write_str("nil"),
            Kind::Bool(b) => b.fmt(f),
            Kind::Number(n) => f.write_str(&n.text),
            Kind::String { quoted, .. } => f.write_str(quoted),
        }
    }
}

fn fields(f: &mut Formatter<'_>, idents: &[String]) -> fmt::Result {
    idents.iter().try_for_each(|i| write!(f, ".{i}"))
}

/// A node, in parentheses if it is a pipeline.
fn operand(f: &mut Formatter<'_>, node: &Node) -> fmt::Result {
    match &node.kind {
        Kind::Pipe(p) => write!(f, "({p})"),
        _ => node.fmt(f),
    }
}

impl Branch {
    fn write(&self, f: &mut Formatter<'_>, name: &str) -> fmt::Result {
        write!(f, "{{{{{name} {}}}}}{}", self.pipe, self.list)?;
        if let Some(otherwise) = &self.otherwise {
            write!(f, "{{{{else}}}}{otherwise}")?;
        }
        f.write_str("{{end}}")
    }
}

impl Display for Pipe {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if !self.declares.is_empty() {
            f.write_str(&self.declares.join(", "))?;
            f.write_str(if self.assigns { " = " } else { " := " })?;
        }
        for (i, c) in self.commands.iter().enumerate() {
            if i > 0 {
                f.write_str(" | ")?;
            }
            c.fmt(f)?;
        }
        Ok(())
    }
}

impl Display for Command {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (i, arg) in self.args.iter().enumerate() {
            if i > 0 {
                f.write_str(" ")?;
            }
            operand(f, arg)?;
        }
        Ok(())
    }
}

impl List {
    /// Whether there is nothing but space.
    pub fn is_empty(&self) -> bool {
        self.nodes.iter().all(|n| matches!(&n.kind, Kind::Text(t) if t.trim().is_empty()))
    }
}
