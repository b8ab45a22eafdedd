//! From tokens to a syntax tree. Follows the grammar of Go's `text/template/parse`, in its words of complaint.

use crate::funcs;
use crate::lex::{Kind as Token, Lexer, Token as Item};
use crate::literal::unquote;
use crate::node::{Branch, Command, Kind, List, Node, Number, Pipe};
use object::go;
use std::collections::BTreeMap;

/// How deep actions and parentheses may nest together. Go allows 10,000 parentheses; its stacks grow.
const MAX_DEPTH: usize = 200;

type Result<T> = std::result::Result<T, String>;

/// Templates by name.
pub(crate) type Set = BTreeMap<String, List>;

/// Reads a text: the template `name` and those that it defines.
pub(crate) fn parse(name: &str, text: &str, functions: funcs::Set) -> Result<Set> {
    let mut parser = Parser {
        name,
        functions,
        lexer: Lexer::new(text),
        tokens: Vec::with_capacity(3),
        newest_line: 1,
        scope: Scope::new(),
        depth: 0,
        set: Set::new(),
    };
    let root = parser.root()?;
    parser.add(name.to_owned(), root)?;
    Ok(parser.set)
}

struct Parser<'t> {
    /// The name that errors carry, also in templates that the text defines.
    name: &'t str,
    functions: funcs::Set,
    lexer: Lexer<'t>,
    /// Tokens put back, the next one last.
    tokens: Vec<Item>,
    /// The line of the newest token, which errors carry.
    newest_line: usize,
    scope: Scope,
    depth: usize,
    set: Set,
}

/// What each template has of its own.
struct Scope {
    variables: Vec<String>,
    range_depth: usize,
    /// The line on which the action under way began, or 0.
    action_line: usize,
}

impl Scope {
    fn new() -> Self {
        Scope { variables: vec!["$".to_owned()], range_depth: 0, action_line: 0 }
    }
}

/// What an action is.
enum Action {
    Node(Node),
    End,
    Else,
}

impl Action {
    fn describe(&self) -> String {
        match self {
            Action::Node(n) => n.to_string(),
            Action::End => "{{end}}".to_owned(),
            Action::Else => "{{else}}".to_owned(),
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Control {
    If,
    With,
    Range,
}

impl Parser<'_> {
    fn next(&mut self) -> Item {
        self.tokens.pop().unwrap_or_else(|| {
            let token = self.lexer.next_token();
            self.newest_line = token.line;
            token
        })
    }

    fn next_non_space(&mut self) -> Item {
        loop {
            let token = self.next();
            if token.kind != Token::Space {
                return token;
            }
        }
    }

    fn back(&mut self, token: Item) {
        self.tokens.push(token);
    }

    fn peek(&mut self) -> &Item {
        if self.tokens.is_empty() {
            let token = self.next();
            self.tokens.push(token);
        }
        &self.tokens[self.tokens.len() - 1]
    }

    fn peek_non_space(&mut self) -> &Item {
        let token = self.next_non_space();
        self.back(token);
        self.peek()
    }

    fn error<T>(&self, message: impl std::fmt::Display) -> Result<T> {
        Err(format!("template: {}:{}: {message}", self.name, self.newest_line))
    }

    fn unexpected<T>(&self, token: &Item, context: &str) -> Result<T> {
        if token.kind != Token::Error {
            return self.error(format_args!("unexpected {} in {context}", token.describe()));
        }
        let mut extra = String::new();
        let started = self.scope.action_line;
        if started != 0 && started != token.line {
            // Not "action in action".
            let begin = if token.text.ends_with(" action") { "" } else { " in action" };
            extra = format!("{begin} started at {}:{started}", self.name);
        }
        self.error(format_args!("{}{extra}", token.text))
    }

    fn expect(&mut self, kind: Token, context: &str) -> Result<Item> {
        let token = self.next_non_space();
        if token.kind == kind { Ok(token) } else { self.unexpected(&token, context) }
    }

    fn add(&mut self, name: String, list: List) -> Result<()> {
        match self.set.get(&name) {
            Some(old) if !old.is_empty() => {
                if !list.is_empty() {
                    return self.error(format_args!("template: multiple definition of template {}", go::quote(&name)));
                }
            }
            _ => {
                self.set.insert(name, list);
            }
        }
        Ok(())
    }

    fn enter(&mut self) -> Result<()> {
        if self.depth >= MAX_DEPTH {
            return self.error("max expression depth exceeded");
        }
        self.depth += 1;
        Ok(())
    }

    fn root(&mut self) -> Result<List> {
        let mut list = List::default();
        loop {
            match self.peek().kind {
                Token::Eof => return Ok(list),
                Token::LeftDelim => {
                    let delimiter = self.next();
                    let after = self.next_non_space();
                    if after.kind == Token::Define {
                        self.definition()?;
                        continue;
                    }
                    self.back(after);
                    self.back(delimiter);
                }
                _ => {}
            }
            match self.text_or_action()? {
                Action::Node(n) => list.nodes.push(n),
                other => return self.error(format_args!("unexpected {}", other.describe())),
            }
        }
    }

    /// `define` is past.
    fn definition(&mut self) -> Result<()> {
        let outer = std::mem::replace(&mut self.scope, Scope::new());
        let context = "define clause";
        let token = self.next_non_space();
        let name = self.template_name(&token, context)?;
        self.expect(Token::RightDelim, context)?;
        let (list, end) = self.item_list()?;
        if !matches!(end, Action::End) {
            return self.error(format_args!("unexpected {} in {context}", end.describe()));
        }
        self.add(name, list)?;
        self.scope = outer;
        Ok(())
    }

    /// Nodes up to `end` or `else`.
    fn item_list(&mut self) -> Result<(List, Action)> {
        let mut list = List::default();
        while self.peek_non_space().kind != Token::Eof {
            match self.text_or_action()? {
                Action::Node(n) => list.nodes.push(n),
                end => return Ok((list, end)),
            }
        }
        self.error("unexpected EOF")
    }

    fn text_or_action(&mut self) -> Result<Action> {
        let token = self.next_non_space();
        match token.kind {
            Token::Text => Ok(Action::Node(Node { pos: token.pos, kind: Kind::Text(token.text) })),
            Token::LeftDelim => {
                self.scope.action_line = token.line;
                let action = self.action();
                self.scope.action_line = 0;
                action
            }
            _ => self.unexpected(&token, "input"),
        }
    }

    fn action(&mut self) -> Result<Action> {
        let token = self.next_non_space();
        match token.kind {
            Token::Block => self.block(),
            Token::Break => self.jump(&token, "{{break}}", Kind::Break),
            Token::Continue => self.jump(&token, "{{continue}}", Kind::Continue),
            Token::Else => {
                // `else if` is an `else` with an `if` to come.
                if !matches!(self.peek_non_space().kind, Token::If | Token::With) {
                    self.expect(Token::RightDelim, "else")?;
                }
                Ok(Action::Else)
            }
            Token::End => self.expect(Token::RightDelim, "end").map(|_| Action::End),
            Token::If => self.control(Control::If),
            Token::Range => self.control(Control::Range),
            Token::With => self.control(Control::With),
            Token::Template => self.template(),
            _ => {
                let pos = token.pos;
                self.back(token);
                let pipe = self.pipeline("command", Token::RightDelim)?;
                Ok(Action::Node(Node { pos, kind: Kind::Action(pipe) }))
            }
        }
    }

    fn jump(&mut self, token: &Item, name: &str, kind: Kind) -> Result<Action> {
        let next = self.next_non_space();
        if next.kind != Token::RightDelim {
            return self.unexpected(&next, name);
        }
        if self.scope.range_depth == 0 {
            return self.error(format_args!("{name} outside {{{{range}}}}"));
        }
        Ok(Action::Node(Node { pos: token.pos, kind }))
    }

    fn control(&mut self, control: Control) -> Result<Action> {
        self.enter()?;
        let node = self.control_inner(control)?;
        self.depth -= 1;
        Ok(Action::Node(node))
    }

    fn control_inner(&mut self, control: Control) -> Result<Node> {
        let variables = self.scope.variables.len();
        let context = match control {
            Control::If => "if",
            Control::With => "with",
            Control::Range => "range",
        };
        let pipe = self.pipeline(context, Token::RightDelim)?;
        let pos = pipe.pos;
        let ranges = usize::from(control == Control::Range);
        self.scope.range_depth += ranges;
        let (list, next) = self.item_list()?;
        self.scope.range_depth -= ranges;
        let mut otherwise = None;
        if matches!(next, Action::Else) {
            let chained = match (control, self.peek().kind) {
                (Control::If, Token::If) | (Control::With, Token::With) => {
                    self.next();
                    true
                }
                _ => false,
            };
            if chained {
                // The end of the inner one is the end of both.
                if let Action::Node(inner) = self.control(control)? {
                    otherwise = Some(List { nodes: vec![inner] });
                }
            } else {
                let (list, next) = self.item_list()?;
                if !matches!(next, Action::End) {
                    return self.error(format_args!("expected end; found {}", next.describe()));
                }
                otherwise = Some(list);
            }
        }
        self.scope.variables.truncate(variables);
        let branch = Branch { pipe, list, otherwise };
        let kind = match control {
            Control::If => Kind::If(branch),
            Control::With => Kind::With(branch),
            Control::Range => Kind::Range(branch),
        };
        Ok(Node { pos, kind })
    }

    fn block(&mut self) -> Result<Action> {
        self.enter()?;
        let context = "block clause";
        let token = self.next_non_space();
        let name = self.template_name(&token, context)?;
        let pipe = self.pipeline(context, Token::RightDelim)?;
        let line = self.newest_line;
        let outer = std::mem::replace(&mut self.scope, Scope::new());
        let (list, end) = self.item_list()?;
        if !matches!(end, Action::End) {
            self.newest_line = line;
            return self.error(format_args!("unexpected {} in {context}", end.describe()));
        }
        self.add(name.clone(), list)?;
        self.scope = outer;
        self.depth -= 1;
        Ok(Action::Node(Node { pos: token.pos, kind: Kind::Template(name, Some(pipe)) }))
    }

    fn template(&mut self) -> Result<Action> {
        let context = "template clause";
        let token = self.next_non_space();
        let name = self.template_name(&token, context)?;
        let next = self.next_non_space();
        let mut pipe = None;
        if next.kind != Token::RightDelim {
            self.back(next);
            pipe = Some(self.pipeline(context, Token::RightDelim)?);
        }
        Ok(Action::Node(Node { pos: token.pos, kind: Kind::Template(name, pipe) }))
    }

    fn template_name(&mut self, token: &Item, context: &str) -> Result<String> {
        match token.kind {
            Token::String | Token::RawString => unquote(&token.text).or_else(|e| self.error(e)),
            _ => self.unexpected(token, context),
        }
    }

    fn pipeline(&mut self, context: &str, end: Token) -> Result<Pipe> {
        let pos = self.peek_non_space().pos;
        let mut pipe = Pipe { pos, assigns: false, declares: Vec::new(), commands: Vec::new() };
        self.declarations(&mut pipe, context)?;
        loop {
            let token = self.next_non_space();
            match token.kind {
                kind if kind == end => {
                    self.check_pipeline(&pipe, context)?;
                    return Ok(pipe);
                }
                Token::Bool
                | Token::CharConstant
                | Token::Complex
                | Token::Dot
                | Token::Field
                | Token::Identifier
                | Token::Number
                | Token::Nil
                | Token::RawString
                | Token::String
                | Token::Variable
                | Token::LeftParen => {
                    self.back(token);
                    let command = self.command()?;
                    pipe.commands.push(command);
                }
                _ => return self.unexpected(&token, context),
            }
        }
    }

    fn declarations(&mut self, pipe: &mut Pipe, context: &str) -> Result<()> {
        while self.peek_non_space().kind == Token::Variable {
            let variable = self.next();
            let after = self.next();
            let next = if after.kind == Token::Space { self.next_non_space() } else { after.clone() };
            match next.kind {
                Token::Assign | Token::Declare => {
                    pipe.assigns = next.kind == Token::Assign;
                    self.scope.variables.push(variable.text.clone());
                    pipe.declares.push(variable.text);
                    return Ok(());
                }
                Token::Char if next.text == "," => {
                    self.scope.variables.push(variable.text.clone());
                    pipe.declares.push(variable.text);
                    if context != "range" || pipe.declares.len() >= 2 {
                        return self.error(format_args!("too many declarations in {context}"));
                    }
                    match self.peek_non_space().kind {
                        Token::Variable | Token::RightDelim | Token::RightParen => {}
                        _ => return self.error("range can only initialize variables"),
                    }
                }
                _ => {
                    // A variable that is used: everything goes back.
                    self.back(next);
                    if after.kind == Token::Space {
                        self.back(after);
                    }
                    self.back(variable);
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn check_pipeline(&self, pipe: &Pipe, context: &str) -> Result<()> {
        if pipe.commands.is_empty() {
            return self.error(format_args!("missing value for {context}"));
        }
        for (i, command) in pipe.commands.iter().enumerate().skip(1) {
            if let Some(Kind::Bool(_) | Kind::Dot | Kind::Nil | Kind::Number(_) | Kind::String { .. }) =
                command.args.first().map(|a| &a.kind)
            {
                return self.error(format_args!("non executable command in pipeline stage {}", i + 1));
            }
        }
        Ok(())
    }

    fn command(&mut self) -> Result<Command> {
        let mut command = Command { pos: self.peek_non_space().pos, args: Vec::new() };
        loop {
            self.peek_non_space();
            if let Some(operand) = self.operand()? {
                command.args.push(operand);
            }
            let token = self.next();
            match token.kind {
                Token::Space => continue,
                Token::RightDelim | Token::RightParen => self.back(token),
                Token::Pipe => {}
                _ => return self.unexpected(&token, "operand"),
            }
            break;
        }
        if command.args.is_empty() {
            return self.error("empty command");
        }
        Ok(command)
    }

    /// A term with the fields after it.
    fn operand(&mut self) -> Result<Option<Node>> {
        let Some(mut node) = self.term()? else { return Ok(None) };
        if self.peek().kind != Token::Field {
            return Ok(Some(node));
        }
        let pos = self.peek().pos;
        let mut fields = Vec::new();
        while self.peek().kind == Token::Field {
            fields.push(self.next().text[1..].to_owned());
        }
        match &mut node.kind {
            Kind::Field(idents) | Kind::Variable(idents) => {
                idents.append(&mut fields);
                node.pos = pos;
            }
            Kind::Bool(_) | Kind::String { .. } | Kind::Number(_) | Kind::Nil | Kind::Dot => {
                let term = go::quote(&node.to_string());
                return self.error(format_args!("unexpected . after term {term}"));
            }
            _ => node = Node { pos, kind: Kind::Chain(Box::new(node), fields) },
        }
        Ok(Some(node))
    }

    fn term(&mut self) -> Result<Option<Node>> {
        let token = self.next_non_space();
        let kind = match token.kind {
            Token::Identifier => {
                if !self.functions.has(&token.text) {
                    return self.error(format_args!("function {} not defined", go::quote(&token.text)));
                }
                Kind::Identifier(token.text)
            }
            Token::Dot => Kind::Dot,
            Token::Nil => Kind::Nil,
            Token::Variable => {
                if !self.scope.variables.contains(&token.text) {
                    return self.error(format_args!("undefined variable {}", go::quote(&token.text)));
                }
                Kind::Variable(vec![token.text])
            }
            Token::Field => Kind::Field(vec![token.text[1..].to_owned()]),
            Token::Bool => Kind::Bool(token.text == "true"),
            Token::CharConstant | Token::Complex | Token::Number => {
                let number = match token.kind {
                    Token::CharConstant => Number::char_constant(&token.text),
                    Token::Complex => Number::complex(&token.text),
                    _ => Number::real(&token.text),
                };
                Kind::Number(Box::new(number.or_else(|e| self.error(e))?))
            }
            Token::LeftParen => {
                self.enter()?;
                let pipe = self.pipeline("parenthesized pipeline", Token::RightParen)?;
                self.depth -= 1;
                return Ok(Some(Node { pos: pipe.pos, kind: Kind::Pipe(Box::new(pipe)) }));
            }
            Token::String | Token::RawString => {
                let text = unquote(&token.text).or_else(|e| self.error(e))?;
                Kind::String { quoted: token.text, text }
            }
            _ => {
                self.back(token);
                return Ok(None);
            }
        };
        Ok(Some(Node { pos: token.pos, kind }))
    }
}
