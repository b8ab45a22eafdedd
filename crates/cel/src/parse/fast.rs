//! The parser for texts that are right.
//!
//! It gives up, without a word, at the first thing that is wrong or beyond a limit; finding the right words is the work
//! of [`crate::parse::recover`]. Its recursion is bounded by [`MAX_DEPTH`].

use crate::ast::{Ast, Expr, ExprKind, ListExpr, Literal, MapEntry, SourceInfo, StructExpr, StructField};
use crate::parse::builder::{self, Builder};
use crate::parse::lexer::{Kind, Lexer, Token};
use crate::parse::macros::{self, Shape};
use crate::parse::names::{NAMES, is_reserved};
use crate::parse::{MAX_DEPTH, literal};
use std::sync::Arc;

/// Something is wrong; no more is known here.
#[derive(Debug)]
pub(crate) struct GiveUp;

type Result<T> = std::result::Result<T, GiveUp>;

/// An expression and its height: how deep cel-go's visitor goes below it.
struct Node {
    expr: Expr,
    height: u32,
}

struct Parser<'t> {
    text: &'t str,
    lexer: Lexer<'t>,
    token: Token,
    builder: Builder,
    keep_macro_calls: bool,
    /// How many rules of each of these kinds are under way.
    expr_depth: u32,
    relation_depth: u32,
    calc_depth: u32,
}

/// Parses `text`, or gives up when there is anything to complain about.
pub(crate) fn parse(text: &Arc<str>, keep_macro_calls: bool) -> Result<Ast> {
    let mut lexer = Lexer::new(text);
    let token = lexer.next_visible().map_err(|_| GiveUp)?;
    let builder = Builder::new(8 + text.len() / 4);
    let mut parser =
        Parser { text, lexer, token, builder, keep_macro_calls, expr_depth: 0, relation_depth: 0, calc_depth: 0 };
    let root = parser.expr()?;
    parser.expect(Kind::Eof)?;
    let (positions, macro_calls) = parser.builder.finish(text);
    Ok(Ast { expr: root.expr, source: SourceInfo { text: Arc::clone(text), positions, macro_calls } })
}

/// One level higher, if that is still allowed.
fn taller(height: u32) -> Result<u32> {
    if height < MAX_DEPTH { Ok(height + 1) } else { Err(GiveUp) }
}

fn enter(depth: &mut u32) -> Result<()> {
    *depth += 1;
    if *depth > MAX_DEPTH { Err(GiveUp) } else { Ok(()) }
}

impl<'t> Parser<'t> {
    fn advance(&mut self) -> Result<Token> {
        let token = self.token;
        self.token = self.lexer.next_visible().map_err(|_| GiveUp)?;
        Ok(token)
    }

    fn eat(&mut self, kind: Kind) -> Result<Option<Token>> {
        if self.token.kind == kind { self.advance().map(Some) } else { Ok(None) }
    }

    fn expect(&mut self, kind: Kind) -> Result<Token> {
        if self.token.kind != kind {
            return Err(GiveUp);
        }
        if kind == Kind::Eof { Ok(self.token) } else { self.advance() }
    }

    fn slice(&self, token: Token) -> &'t str {
        self.text.get(token.start as usize..token.end as usize).unwrap_or_default()
    }

    fn name(&self, token: Token) -> Arc<str> {
        Arc::from(self.slice(token))
    }

    fn expr(&mut self) -> Result<Node> {
        enter(&mut self.expr_depth)?;
        let condition = self.logical(Kind::Or)?;
        let Some(question) = self.eat(Kind::Question)? else {
            self.expr_depth -= 1;
            return Ok(condition);
        };
        let id = self.builder.id(question.start);
        let yes = self.logical(Kind::Or)?;
        self.expect(Kind::Colon)?;
        let no = self.expr()?;
        self.expr_depth -= 1;
        let height = taller(condition.height.max(yes.height).max(no.height))?;
        let args = vec![condition.expr, yes.expr, no.expr];
        Ok(Node { expr: builder::call(id, Arc::clone(&NAMES.conditional), None, args), height })
    }

    /// A chain of `||` or `&&`, made into a balanced tree.
    fn logical(&mut self, operator: Kind) -> Result<Node> {
        let first = self.operand(operator)?;
        if self.token.kind != operator {
            return Ok(first);
        }
        let mut height = first.height;
        let (mut terms, mut ops) = (vec![Some(first.expr)], Vec::new());
        while let Some(op) = self.eat(operator)? {
            let term = self.operand(operator)?;
            height = height.max(term.height);
            terms.push(Some(term.expr));
            ops.push(self.builder.id(op.start));
        }
        let function = if operator == Kind::Or { &NAMES.or } else { &NAMES.and };
        let expr = balance(&mut terms, &ops, function).ok_or(GiveUp)?;
        Ok(Node { expr, height })
    }

    fn operand(&mut self, operator: Kind) -> Result<Node> {
        if operator == Kind::Or { self.logical(Kind::And) } else { self.relation() }
    }

    fn binary(
        &mut self,
        op: Token,
        function: &Arc<str>,
        left: Node,
        right: impl FnOnce(&mut Self) -> Result<Node>,
    ) -> Result<Node> {
        let id = self.builder.id(op.start);
        let right = right(self)?;
        let height = taller(left.height.max(right.height))?;
        Ok(Node { expr: builder::call(id, Arc::clone(function), None, vec![left.expr, right.expr]), height })
    }

    fn relation(&mut self) -> Result<Node> {
        enter(&mut self.relation_depth)?;
        let mut left = self.sum()?;
        while let Some(function) = NAMES.relation(self.token.kind) {
            let op = self.advance()?;
            enter(&mut self.relation_depth)?;
            left = self.binary(op, function, left, Self::sum)?;
            self.relation_depth -= 1;
        }
        self.relation_depth -= 1;
        Ok(left)
    }

    fn sum(&mut self) -> Result<Node> {
        let mut left = self.product()?;
        while let Some(function) = NAMES.sum(self.token.kind) {
            let op = self.advance()?;
            enter(&mut self.calc_depth)?;
            left = self.binary(op, function, left, Self::product)?;
            self.calc_depth -= 1;
        }
        Ok(left)
    }

    fn product(&mut self) -> Result<Node> {
        enter(&mut self.calc_depth)?;
        let mut left = self.unary()?;
        while let Some(function) = NAMES.product(self.token.kind) {
            let op = self.advance()?;
            enter(&mut self.calc_depth)?;
            left = self.binary(op, function, left, Self::unary)?;
            self.calc_depth -= 1;
        }
        self.calc_depth -= 1;
        Ok(left)
    }

    fn unary(&mut self) -> Result<Node> {
        let kind = self.token.kind;
        let function = match kind {
            Kind::Exclam => &NAMES.not,
            Kind::Minus => &NAMES.negate,
            _ => return self.member(None),
        };
        let first = self.advance()?;
        if kind == Kind::Minus && matches!(self.token.kind, Kind::Int | Kind::Float) {
            return self.member(Some(first));
        }
        let mut odd = true;
        while self.eat(kind)?.is_some() {
            odd = !odd;
        }
        // A lone minus belongs to the number it stands before, and to a member that starts so.
        let sign = if kind == Kind::Exclam && self.token.kind == Kind::Minus { self.eat(Kind::Minus)? } else { None };
        if sign.is_some() && !matches!(self.token.kind, Kind::Int | Kind::Float) {
            return Err(GiveUp);
        }
        if !odd {
            return self.member(sign);
        }
        let id = self.builder.id(first.start);
        let operand = self.member(sign)?;
        Ok(Node { expr: builder::call(id, Arc::clone(function), None, vec![operand.expr]), height: operand.height })
    }

    /// A primary expression with its selections, calls and indices; `sign` stands before a number.
    fn member(&mut self, sign: Option<Token>) -> Result<Node> {
        let mark = self.builder.count();
        // Still a name that may turn out to be that of a message.
        let (mut is_name, mut is_reserved_name) = (false, false);
        let mut node = match self.token.kind {
            _ if sign.is_some() => self.literal(sign)?,
            Kind::Ident | Kind::Dot => {
                let dot = self.eat(Kind::Dot)?.is_some();
                let token = self.expect(Kind::Ident)?;
                let word = self.slice(token);
                is_reserved_name = is_reserved(word);
                let name: Arc<str> = if dot { format!(".{word}").into() } else { Arc::from(word) };
                if self.token.kind == Kind::LParen {
                    if is_reserved_name {
                        return Err(GiveUp);
                    }
                    self.call(None, name)?
                } else {
                    is_name = true;
                    Node { expr: self.builder.ident(token.start, name), height: 0 }
                }
            }
            Kind::LParen => {
                self.advance()?;
                let inner = self.expr()?;
                self.expect(Kind::RParen)?;
                inner
            }
            Kind::LBracket => self.list()?,
            Kind::LBrace => self.map()?,
            _ => self.literal(None)?,
        };
        loop {
            match self.token.kind {
                Kind::Dot => {
                    let dot = self.advance()?;
                    let optional = self.eat(Kind::Question)?.is_some();
                    let field = self.expect(Kind::Ident)?;
                    let name = self.name(field);
                    if !optional && self.token.kind == Kind::LParen {
                        node = self.call(Some(node), name)?;
                        is_name = false;
                        continue;
                    }
                    is_name &= !optional;
                    let height = taller(node.height)?;
                    let expr = if optional {
                        let field = self.builder.literal(field.start, Literal::String(name));
                        self.builder.call(dot.start, Arc::clone(&NAMES.opt_select), vec![node.expr, field])
                    } else {
                        builder::select(self.builder.id(dot.start), node.expr, name, false)
                    };
                    node = Node { expr, height };
                }
                Kind::LBracket => {
                    let bracket = self.advance()?;
                    let id = self.builder.id(bracket.start);
                    let function = if self.eat(Kind::Question)?.is_some() { &NAMES.opt_index } else { &NAMES.index };
                    let index = self.expr()?;
                    self.expect(Kind::RBracket)?;
                    let height = taller(node.height.max(index.height))?;
                    let args = vec![node.expr, index.expr];
                    node = Node { expr: builder::call(id, Arc::clone(function), None, args), height };
                    is_name = false;
                }
                Kind::LBrace if is_name => {
                    self.builder.forget_from(mark);
                    node = self.message(&node.expr)?;
                    (is_name, is_reserved_name) = (false, false);
                }
                _ if is_reserved_name => return Err(GiveUp),
                _ => return Ok(node),
            }
        }
    }

    /// The call of a function; the current word is its parenthesis.
    fn call(&mut self, target: Option<Node>, function: Arc<str>) -> Result<Node> {
        let paren = self.expect(Kind::LParen)?;
        let id = self.builder.id(paren.start);
        let mut height = target.as_ref().map_or(0, |t| t.height);
        let mut args = Vec::new();
        if self.token.kind != Kind::RParen {
            loop {
                let arg = self.expr()?;
                height = height.max(arg.height);
                args.push(arg.expr);
                if self.eat(Kind::Comma)?.is_none() {
                    break;
                }
            }
        }
        self.expect(Kind::RParen)?;
        let is_member = target.is_some();
        if is_member {
            height = taller(height)?;
        }
        let target = target.map(|t| t.expr);
        let Some(found) = macros::find(&function, is_member, args.len()) else {
            return Ok(Node { expr: builder::call(id, function, target, args), height });
        };
        let shapes: Vec<Shape<'_>> = args.iter().map(Shape::from).collect();
        found.check(&shapes).map_err(|_| GiveUp)?;
        let written = self.keep_macro_calls.then(|| {
            let args = args.iter().map(|arg| self.written(arg)).collect();
            let target = target.as_ref().map(|target| self.written(target));
            builder::call(0, function, target, args)
        });
        let expr = found.expand(&mut self.builder, paren.start, target, args).ok_or(GiveUp)?;
        if let Some(written) = written {
            self.builder.macro_calls.insert(expr.id, written);
        }
        self.builder.forget(id);
        Ok(Node { expr, height })
    }

    /// What is kept of a part of a macro call: an expansion is found again by its id.
    fn written(&self, part: &Expr) -> Expr {
        if self.builder.macro_calls.contains_key(&part.id) {
            Expr { id: part.id, kind: ExprKind::Ident(Arc::from("")) }
        } else {
            part.clone()
        }
    }

    fn list(&mut self) -> Result<Node> {
        let bracket = self.advance()?;
        let id = self.builder.id(bracket.start);
        let (mut elements, mut optional, mut height) = (Vec::new(), Vec::new(), 0);
        while self.token.kind != Kind::RBracket {
            if self.token.kind == Kind::Comma && elements.is_empty() {
                self.advance()?;
                break;
            }
            if self.eat(Kind::Question)?.is_some() {
                optional.push(elements.len() as u32);
            }
            let element = self.expr()?;
            height = height.max(element.height);
            elements.push(element.expr);
            if self.eat(Kind::Comma)?.is_none() {
                break;
            }
        }
        self.expect(Kind::RBracket)?;
        Ok(Node { expr: Expr { id, kind: ExprKind::List(ListExpr { elements, optional }) }, height })
    }

    fn map(&mut self) -> Result<Node> {
        let brace = self.advance()?;
        let id = self.builder.id(brace.start);
        let (mut entries, mut height) = (Vec::new(), 0);
        while self.token.kind != Kind::RBrace {
            if self.token.kind == Kind::Comma && entries.is_empty() {
                self.advance()?;
                break;
            }
            let entry = self.builder.id(u32::MAX);
            let optional = self.eat(Kind::Question)?.is_some();
            let key = self.expr()?;
            let colon = self.expect(Kind::Colon)?;
            self.builder.set(entry, colon.start);
            let value = self.expr()?;
            height = height.max(key.height).max(value.height);
            entries.push(MapEntry { id: entry, key: key.expr, value: value.expr, optional });
            if self.eat(Kind::Comma)?.is_none() {
                break;
            }
        }
        self.expect(Kind::RBrace)?;
        Ok(Node { expr: Expr { id, kind: ExprKind::Map(entries) }, height })
    }

    /// The fields of a message literal; the current word is its brace.
    fn message(&mut self, name: &Expr) -> Result<Node> {
        let brace = self.advance()?;
        let id = self.builder.id(brace.start);
        let (mut fields, mut height) = (Vec::new(), 0);
        while self.token.kind != Kind::RBrace {
            if self.token.kind == Kind::Comma && fields.is_empty() {
                self.advance()?;
                break;
            }
            let optional = self.eat(Kind::Question)?.is_some();
            let field = self.expect(Kind::Ident)?;
            let colon = self.expect(Kind::Colon)?;
            let entry = self.builder.id(colon.start);
            let value = self.expr()?;
            height = height.max(value.height);
            fields.push(StructField { id: entry, name: self.name(field), value: value.expr, optional });
            if self.eat(Kind::Comma)?.is_none() {
                break;
            }
        }
        self.expect(Kind::RBrace)?;
        let type_name = qualified(name).ok_or(GiveUp)?.into();
        Ok(Node { expr: Expr { id, kind: ExprKind::Struct(StructExpr { type_name, fields }) }, height })
    }

    fn literal(&mut self, sign: Option<Token>) -> Result<Node> {
        let token = self.token;
        let (text, negative) = (self.slice(token), sign.is_some());
        let value = match token.kind {
            Kind::Int => literal::int(text, negative).map(Literal::Int),
            Kind::Float => literal::double(text, negative).map(Literal::Double),
            Kind::Uint => literal::uint(text).map(Literal::Uint),
            Kind::String => literal::string(text).map(|s| Literal::String(s.into())),
            Kind::Bytes => literal::bytes(text).map(|b| Literal::Bytes(b.into())),
            Kind::True => Ok(Literal::Bool(true)),
            Kind::False => Ok(Literal::Bool(false)),
            Kind::Null => Ok(Literal::Null),
            _ => return Err(GiveUp),
        };
        self.advance()?;
        let value = value.map_err(|_| GiveUp)?;
        Ok(Node { expr: self.builder.literal(sign.unwrap_or(token).start, value), height: 0 })
    }
}

/// `a.b.c` as it is written.
fn qualified(name: &Expr) -> Option<String> {
    let mut parts = Vec::new();
    let mut at = name;
    loop {
        match &at.kind {
            ExprKind::Ident(first) => parts.push(&**first),
            ExprKind::Select(s) => {
                parts.push(&*s.field);
                at = &s.operand;
                continue;
            }
            _ => return None,
        }
        parts.reverse();
        return Some(parts.join("."));
    }
}

/// The balanced tree of a chain: `terms` has one more element than `ops`, and is emptied.
fn balance(terms: &mut [Option<Expr>], ops: &[u32], function: &Arc<str>) -> Option<Expr> {
    if ops.is_empty() {
        return terms.first_mut()?.take();
    }
    let middle = ops.len() / 2;
    let (left_terms, right_terms) = terms.split_at_mut_checked(middle + 1)?;
    let left = balance(left_terms, ops.get(..middle)?, function)?;
    let right = balance(right_terms, ops.get(middle + 1..)?, function)?;
    Some(builder::call(*ops.get(middle)?, Arc::clone(function), None, vec![left, right]))
}
