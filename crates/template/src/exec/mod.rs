//! Running a template. Follows Go's `text/template/exec.go` step by step where an error can show it: which node is at hand,
//! and whether a value has been taken out of its interface.

mod call;

use crate::funcs;
use crate::node::{At, Branch, Command, Kind, List, Node, Number, Pipe};
use crate::parse::Set;
use crate::print;
use crate::value::{Dict, Elem, Special, Val};
use crate::world::World;
use crate::{MissingKey, Settings};
use object::go;

/// How deep templates, control structures and parentheses may nest while they run.
const MAX_DEPTH: usize = 300;

/// A formatted error.
type Result<T> = std::result::Result<T, String>;

/// A value, and whether it is still in an interface, as the items of lists and maps are.
#[derive(Clone)]
struct Slot<'a> {
    val: Val<'a>,
    boxed: bool,
}

impl<'a> Slot<'a> {
    fn plain(val: Val<'a>) -> Self {
        Slot { val, boxed: false }
    }

    fn boxed(val: Val<'a>) -> Self {
        Slot { val, boxed: true }
    }

    /// Nothing at all: what a missing key gives.
    fn invalid() -> Self {
        Slot::plain(Val::Nil)
    }

    fn is_invalid(&self) -> bool {
        self.val.is_nil() && !self.boxed
    }
}

enum Flow {
    On,
    Break,
    Continue,
}

pub(crate) struct Exec<'t, 'a, 's> {
    /// The template that the text is of.
    pub parse_name: &'t str,
    pub text: &'t str,
    pub functions: funcs::Set,
    pub set: &'t Set,
    pub settings: &'s Settings,
    world: World<'a>,
    /// The template that runs.
    name: &'t str,
    at: Option<At<'t>>,
    variables: Vec<(&'t str, Slot<'a>)>,
    out: String,
    depth: usize,
    steps: usize,
}

impl<'t, 'a, 's> Exec<'t, 'a, 's> {
    pub fn new(
        parse_name: &'t str,
        text: &'t str,
        functions: funcs::Set,
        set: &'t Set,
        settings: &'s Settings,
        world: World<'a>,
    ) -> Self {
        let (name, out) = (parse_name, String::new());
        let steps = settings.limits.steps;
        Exec {
            parse_name,
            text,
            functions,
            set,
            settings,
            world,
            name,
            at: None,
            variables: Vec::new(),
            out,
            depth: 0,
            steps,
        }
    }

    /// Runs the template `name` with `data` as its dot.
    pub fn run(mut self, name: &'t str, data: Val<'a>) -> Result<String> {
        self.name = name;
        let set = self.set;
        let Some(list) = set.get(name) else {
            return Err(format!(
                "template: no template {} associated with template {}",
                go::quote(name),
                go::quote(self.parse_name)
            ));
        };
        let dot = Slot::plain(data);
        self.variables.push(("$", dot.clone()));
        self.walk_list(&dot, list)?;
        Ok(self.out)
    }

    fn error<T>(&self, message: impl std::fmt::Display) -> Result<T> {
        let Some(at) = &self.at else {
            return Err(format!("template: {}: {message}", self.name));
        };
        let before = self.text.get(..at.pos()).unwrap_or(self.text);
        let line = 1 + before.matches('\n').count();
        let column = before.len() - before.rfind('\n').map_or(0, |i| i + 1);
        let place = format!("{}:{line}:{column}", self.parse_name);
        Err(format!("template: {place}: executing {} at <{at}>: {message}", go::quote(self.name)))
    }

    /// Counts a step of work.
    fn step(&mut self) -> Result<()> {
        match self.steps.checked_sub(1) {
            Some(left) => {
                self.steps = left;
                Ok(())
            }
            None => self.error("the template takes too many steps"),
        }
    }

    fn enter(&mut self) -> Result<()> {
        if self.depth >= MAX_DEPTH {
            return self.error(format_args!("exceeded maximum template depth ({MAX_DEPTH})"));
        }
        self.depth += 1;
        Ok(())
    }

    fn write(&mut self, text: &str) -> Result<()> {
        if self.out.len() + text.len() > self.settings.limits.output {
            return self.error("the output is too large");
        }
        self.out.push_str(text);
        Ok(())
    }

    fn walk_list(&mut self, dot: &Slot<'a>, list: &'t List) -> Result<Flow> {
        self.enter()?;
        for node in &list.nodes {
            match self.walk(dot, node)? {
                Flow::On => {}
                jump => {
                    self.depth -= 1;
                    return Ok(jump);
                }
            }
        }
        self.depth -= 1;
        Ok(Flow::On)
    }

    fn walk(&mut self, dot: &Slot<'a>, node: &'t Node) -> Result<Flow> {
        self.step()?;
        self.at = Some(At::Node(node));
        match &node.kind {
            Kind::Text(text) => self.write(text)?,
            Kind::Action(pipe) => {
                let value = self.pipeline(dot, pipe)?;
                if pipe.declares.is_empty() {
                    self.print(node, &value)?;
                }
            }
            Kind::If(branch) => return self.if_or_with(dot, branch, false),
            Kind::With(branch) => return self.if_or_with(dot, branch, true),
            Kind::Range(branch) => return self.range(dot, branch),
            Kind::Template(name, pipe) => self.template(dot, name, pipe.as_ref())?,
            Kind::Break => return Ok(Flow::Break),
            Kind::Continue => return Ok(Flow::Continue),
            _ => return self.error(format_args!("unknown node: {node}")),
        }
        Ok(Flow::On)
    }

    fn print(&mut self, node: &'t Node, value: &Slot<'a>) -> Result<()> {
        self.at = Some(At::Node(node));
        if value.val.is_nil() {
            return if self.settings.hide_no_value { Ok(()) } else { self.write("<no value>") };
        }
        if let Val::Str(s) = &value.val {
            return self.write(&s.text());
        }
        match print::plain(&self.world.heap, &value.val) {
            Ok(text) => self.write(&text),
            Err(e) => self.error(e),
        }
    }

    fn if_or_with(&mut self, dot: &Slot<'a>, branch: &'t Branch, with: bool) -> Result<Flow> {
        let mark = self.variables.len();
        let value = self.pipeline(dot, &branch.pipe)?;
        let flow = if self.world.heap.truth(&value.val) {
            self.walk_list(if with { &value } else { dot }, &branch.list)?
        } else if let Some(otherwise) = &branch.otherwise {
            self.walk_list(dot, otherwise)?
        } else {
            Flow::On
        };
        self.variables.truncate(mark);
        Ok(flow)
    }

    fn range(&mut self, dot: &Slot<'a>, branch: &'t Branch) -> Result<Flow> {
        let outer = self.variables.len();
        let value = self.pipeline(dot, &branch.pipe)?;
        let mark = self.variables.len();
        let mut ran = false;
        let mut once = |exec: &mut Self, index: Slot<'a>, item: Slot<'a>| -> Result<bool> {
            ran = true;
            exec.iteration(branch, mark, index, item)
        };
        match value.val {
            Val::Int(n, of) => {
                if branch.pipe.declares.len() > 1 {
                    return self.error(format_args!("can't use {n} to iterate over more than one variable"));
                }
                for i in 0..n {
                    if !once(self, Slot::invalid(), Slot::plain(Val::Int(i, of)))? {
                        break;
                    }
                }
            }
            Val::List(list) => {
                let boxed = self.world.heap.list_elem(list) == Elem::Any;
                let mut i = 0;
                while let Some(val) = self.world.heap.item(list, i) {
                    if !once(self, Slot::plain(Val::int(i as i64)), Slot { val, boxed })? {
                        break;
                    }
                    i += 1;
                }
            }
            Val::Map(dict) => {
                let boxed = self.world.heap.dict_elem(dict) == Elem::Any;
                for (key, val) in self.world.heap.members(dict) {
                    if !once(self, Slot::plain(Val::str(key.as_str())), Slot { val, boxed })? {
                        break;
                    }
                }
            }
            Val::Nil => {}
            other => {
                let text = print::plain(&self.world.heap, &other).unwrap_or_default();
                return self.error(format_args!("range can't iterate over {text}"));
            }
        }
        let mut flow = Flow::On;
        if let (false, Some(otherwise)) = (ran, &branch.otherwise) {
            flow = self.walk_list(dot, otherwise)?;
        }
        self.variables.truncate(outer);
        Ok(flow)
    }

    /// One turn of a loop; false after `break`.
    fn iteration(&mut self, branch: &'t Branch, mark: usize, index: Slot<'a>, item: Slot<'a>) -> Result<bool> {
        self.step()?;
        let pipe = &branch.pipe;
        let names: Vec<&'t str> = pipe.declares.iter().map(String::as_str).collect();
        if pipe.assigns {
            // With two variables the index comes first.
            match names.as_slice() {
                [only] => self.set_variable(only, item.clone())?,
                [first, second] => {
                    self.set_variable(first, index)?;
                    self.set_variable(second, item.clone())?;
                }
                _ => {}
            }
        } else {
            if let (false, Some(top)) = (names.is_empty(), mark.checked_sub(1)) {
                self.variables[top].1 = item.clone();
            }
            if let (true, Some(below)) = (names.len() > 1, mark.checked_sub(2)) {
                self.variables[below].1 = index;
            }
        }
        let flow = self.walk_list(&item, &branch.list)?;
        self.variables.truncate(mark);
        Ok(!matches!(flow, Flow::Break))
    }

    fn template(&mut self, dot: &Slot<'a>, name: &'t str, pipe: Option<&'t Pipe>) -> Result<()> {
        let Some(list) = self.set.get(name) else {
            return self.error(format_args!("template {} not defined", go::quote(name)));
        };
        let dot = match pipe {
            Some(pipe) => self.pipeline(dot, pipe)?,
            None => Slot::invalid(),
        };
        let outer_name = std::mem::replace(&mut self.name, name);
        let outer = std::mem::replace(&mut self.variables, vec![("$", dot.clone())]);
        // A break cannot leave a template: the parser sees to it.
        self.walk_list(&dot, list)?;
        self.variables = outer;
        self.name = outer_name;
        Ok(())
    }

    fn set_variable(&mut self, name: &str, value: Slot<'a>) -> Result<()> {
        match self.variables.iter_mut().rev().find(|(n, _)| *n == name) {
            Some((_, slot)) => {
                *slot = value;
                Ok(())
            }
            None => self.error(format_args!("undefined variable: {name}")),
        }
    }

    fn pipeline(&mut self, dot: &Slot<'a>, pipe: &'t Pipe) -> Result<Slot<'a>> {
        self.enter()?;
        self.at = Some(At::Pipe(pipe));
        let mut value: Option<Slot<'a>> = None;
        for command in &pipe.commands {
            self.step()?;
            let mut result = self.command(dot, command, value)?;
            result.boxed = false;
            value = Some(result);
        }
        let value = value.unwrap_or_else(Slot::invalid);
        for name in &pipe.declares {
            if pipe.assigns {
                self.set_variable(name, value.clone())?;
            } else {
                self.variables.push((name, value.clone()));
            }
        }
        self.depth -= 1;
        Ok(value)
    }

    fn command(&mut self, dot: &Slot<'a>, command: &'t Command, last: Option<Slot<'a>>) -> Result<Slot<'a>> {
        let Some(first) = command.args.first() else { return Ok(Slot::invalid()) };
        let args = &command.args[1..];
        match &first.kind {
            Kind::Field(idents) => {
                self.at = Some(At::Node(first));
                return self.field_chain(dot, dot.clone(), idents, At::Node(first), args, last);
            }
            Kind::Chain(node, idents) => return self.chain(dot, first, node, idents, args, last),
            Kind::Identifier(name) => {
                self.at = Some(At::Node(first));
                return self.function(dot, name, At::Command(command), args, last);
            }
            Kind::Pipe(pipe) => {
                self.not_a_function(first, args, last.as_ref())?;
                return self.pipeline(dot, pipe);
            }
            Kind::Variable(idents) => return self.variable(dot, first, idents, args, last),
            _ => {}
        }
        self.at = Some(At::Node(first));
        self.not_a_function(first, args, last.as_ref())?;
        match &first.kind {
            Kind::Dot => Ok(dot.clone()),
            Kind::Nil => self.error("nil is not a command"),
            Kind::Bool(_) | Kind::Number(_) | Kind::String { .. } => self.constant(first).map(Slot::plain),
            _ => self.error(format_args!("can't evaluate command {}", go::quote(&first.to_string()))),
        }
    }

    fn not_a_function(&self, first: &'t Node, args: &[Node], last: Option<&Slot<'a>>) -> Result<()> {
        if !args.is_empty() || last.is_some() {
            return self.error(format_args!("can't give argument to non-function {first}"));
        }
        Ok(())
    }

    fn constant(&mut self, node: &'t Node) -> Result<Val<'a>> {
        self.at = Some(At::Node(node));
        match &node.kind {
            Kind::Bool(b) => Ok(Val::Bool(*b)),
            Kind::String { text, .. } => self.paid(Val::str(text.as_str()), text.len()),
            Kind::Number(n) => self.number(n),
            _ => self.error(format_args!("can't handle assignment of {node} to empty interface argument")),
        }
    }

    fn paid(&mut self, val: Val<'a>, bytes: usize) -> Result<Val<'a>> {
        match self.world.heap.charge(bytes) {
            Ok(()) => Ok(val),
            Err(e) => self.error(e),
        }
    }

    /// A number where nothing says which type it shall have: its own form decides.
    fn number(&self, n: &Number) -> Result<Val<'a>> {
        if let Some((re, im)) = n.complex {
            return Ok(Val::Complex(re, im));
        }
        let hex = n.text.starts_with("0x") || n.text.starts_with("0X");
        let hex_int = hex && !n.text.contains(['p', 'P']);
        let char_constant = n.text.starts_with('\'');
        match (n.float, n.int) {
            (Some(f), _) if !hex_int && !char_constant && n.text.contains(['.', 'e', 'E', 'p', 'P']) => {
                Ok(Val::Float(f))
            }
            (_, Some(i)) => Ok(Val::int(i)),
            _ if n.uint.is_some() => self.error(format_args!("{} overflows int", n.text)),
            _ => Ok(Val::Nil),
        }
    }

    fn chain(
        &mut self,
        dot: &Slot<'a>,
        chain: &'t Node,
        node: &'t Node,
        idents: &'t [String],
        args: &'t [Node],
        last: Option<Slot<'a>>,
    ) -> Result<Slot<'a>> {
        self.at = Some(At::Node(chain));
        if matches!(node.kind, Kind::Nil) {
            return self.error(format_args!("indirection through explicit nil in {chain}"));
        }
        let receiver = self.arg(dot, None, node)?;
        self.field_chain(dot, receiver, idents, At::Node(chain), args, last)
    }

    fn variable(
        &mut self,
        dot: &Slot<'a>,
        node: &'t Node,
        idents: &'t [String],
        args: &'t [Node],
        last: Option<Slot<'a>>,
    ) -> Result<Slot<'a>> {
        self.at = Some(At::Node(node));
        let [name, fields @ ..] = idents else { return Ok(Slot::invalid()) };
        let Some((_, value)) = self.variables.iter().rev().find(|(n, _)| n == name) else {
            return self.error(format_args!("undefined variable: {name}"));
        };
        let value = value.clone();
        if fields.is_empty() {
            self.not_a_function(node, args, last.as_ref())?;
            return Ok(value);
        }
        self.field_chain(dot, value, fields, At::Node(node), args, last)
    }

    /// `.X.Y.Z`, possibly with arguments for the last, which then is a method.
    fn field_chain(
        &mut self,
        dot: &Slot<'a>,
        mut receiver: Slot<'a>,
        idents: &'t [String],
        node: At<'t>,
        args: &'t [Node],
        last: Option<Slot<'a>>,
    ) -> Result<Slot<'a>> {
        let Some((final_name, names)) = idents.split_last() else { return Ok(receiver) };
        for name in names {
            receiver = self.field(dot, name, node, &[], None, receiver)?;
        }
        self.field(dot, final_name, node, args, last, receiver)
    }

    fn field(
        &mut self,
        dot: &Slot<'a>,
        name: &'t str,
        node: At<'t>,
        args: &'t [Node],
        last: Option<Slot<'a>>,
        receiver: Slot<'a>,
    ) -> Result<Slot<'a>> {
        if receiver.is_invalid() {
            if self.settings.missing_key == MissingKey::Error {
                return self.error(format_args!("nil data; no entry for key {}", go::quote(name)));
            }
            return Ok(Slot::invalid());
        }
        let has_args = !args.is_empty() || last.is_some();
        match &receiver.val {
            Val::Nil => return self.error(format_args!("nil pointer evaluating interface {{}}.{name}")),
            Val::Map(dict) => {
                if has_args {
                    return self.error(format_args!("{name} is not a method but has arguments"));
                }
                return self.key(*dict, name);
            }
            Val::Special(special) => {
                if let Special::Struct(_, fields) = &**special {
                    if let Some((_, text)) = fields.iter().find(|(n, _)| *n == name) {
                        if has_args {
                            return self.error(format_args!("{name} has arguments but cannot be invoked as function"));
                        }
                        return Ok(Slot::plain(Val::str(text.as_str())));
                    }
                } else if let Some(method) = funcs::method(special, name) {
                    return self.call(dot, method, name, Some(receiver.val.clone()), node, args, last);
                }
            }
            _ => {}
        }
        let type_name = if receiver.boxed { "interface {}" } else { self.world.heap.type_name(&receiver.val) };
        self.error(format_args!("can't evaluate field {name} in type {type_name}"))
    }

    fn key(&self, dict: Dict<'a>, name: &str) -> Result<Slot<'a>> {
        let elem = self.world.heap.dict_elem(dict);
        if let Some(val) = self.world.heap.get(dict, name) {
            return Ok(Slot { val, boxed: elem == Elem::Any });
        }
        match self.settings.missing_key {
            MissingKey::Invalid => Ok(Slot::invalid()),
            MissingKey::Zero => Ok(match elem {
                Elem::Any => Slot::boxed(Val::Nil),
                Elem::Str => Slot::plain(Val::str("")),
                Elem::Int => Slot::plain(Val::int(0)),
            }),
            MissingKey::Error => self.error(format_args!("map has no entry for key {}", go::quote(name))),
        }
    }

    fn function(
        &mut self,
        dot: &Slot<'a>,
        name: &'t str,
        node: At<'t>,
        args: &'t [Node],
        last: Option<Slot<'a>>,
    ) -> Result<Slot<'a>> {
        match self.functions.find(name) {
            Some(function) => self.call(dot, function, name, None, node, args, last),
            None => self.error(format_args!("{} is not a defined function", go::quote(name))),
        }
    }
}
