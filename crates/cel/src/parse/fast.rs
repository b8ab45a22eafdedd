//! The parser for texts that are right.
//!
//! It gives up, without a word, at the first thing that is wrong or beyond a limit; finding the right words is the work
//! of [`crate::parse::recover`]. Its recursion is bounded by [`MAX_DEPTH`].

use crate::ast::{Ast, Expr, ExprId, ExprKind, ListExpr, Literal, MapEntry, SourceInfo, StructExpr, StructField};
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

/// The function of a call.
struct Callee {
    token: Token,
    /// Whether a dot stands before the name.
    dot: bool,
    id: ExprId,
    paren: u32,
}

struct Parser<'t> {
    text: &'t str,
    lexer: Lexer<'t>,
    token: Token,
    builder: Builder,
    keep_macro_calls: bool,
    /// What was parsed and has no parent yet. Keeping it here keeps the recursive functions' frames small.
    values: Vec<Node>,
    /// The operators of chains under way.
    ops: Vec<ExprId>,
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
    let mut parser = Parser {
        text,
        lexer,
        token,
        builder,
        keep_macro_calls,
        values: Vec::with_capacity(8),
        ops: Vec::new(),
        expr_depth: 0,
        relation_depth: 0,
        calc_depth: 0,
    };
    parser.expr()?;
    parser.expect(Kind::Eof)?;
    let root = parser.pop()?;
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

    fn eat(&mut self, kind: Kind) -> Result<bool> {
        let found = self.token.kind == kind;
        if found {
            self.advance()?;
        }
        Ok(found)
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

    fn push(&mut self, expr: Expr, height: u32) {
        self.values.push(Node { expr, height });
    }

    fn pop(&mut self) -> Result<Node> {
        self.values.pop().ok_or(GiveUp)
    }

    /// Takes the values above `mark`, with the height of the tallest.
    fn take(&mut self, mark: usize) -> (Vec<Expr>, u32) {
        let mut height = 0;
        let values = self.values.drain(mark.min(self.values.len())..);
        let exprs = values.map(|node| {
            height = height.max(node.height);
            node.expr
        });
        (exprs.collect(), height)
    }

    fn expr(&mut self) -> Result<()> {
        enter(&mut self.expr_depth)?;
        self.or()?;
        if self.token.kind == Kind::Question {
            let id = self.builder.id(self.token.start);
            self.advance()?;
            self.or()?;
            self.expect(Kind::Colon)?;
            self.expr()?;
            self.operation(id, &NAMES.conditional, 3)?;
        }
        self.expr_depth -= 1;
        Ok(())
    }

    /// Calls an operator with the last `count` values.
    #[inline(never)]
    fn operation(&mut self, id: ExprId, function: &Arc<str>, count: usize) -> Result<()> {
        let (args, height) = self.take(self.values.len().saturating_sub(count));
        self.push(builder::call(id, Arc::clone(function), None, args), taller(height)?);
        Ok(())
    }

    fn or(&mut self) -> Result<()> {
        let (mark, first) = (self.values.len(), self.ops.len());
        self.and()?;
        while self.token.kind == Kind::Or {
            let at = self.token.start;
            self.advance()?;
            self.and()?;
            let id = self.builder.id(at);
            self.ops.push(id);
        }
        self.chain(mark, first, &NAMES.or)
    }

    fn and(&mut self) -> Result<()> {
        let (mark, first) = (self.values.len(), self.ops.len());
        self.relation()?;
        while self.token.kind == Kind::And {
            let at = self.token.start;
            self.advance()?;
            self.relation()?;
            let id = self.builder.id(at);
            self.ops.push(id);
        }
        self.chain(mark, first, &NAMES.and)
    }

    /// Makes a balanced tree of the values above `mark` and the operators above `first`.
    #[inline(never)]
    fn chain(&mut self, mark: usize, first: usize, function: &Arc<str>) -> Result<()> {
        if self.ops.len() == first {
            return Ok(());
        }
        let (terms, height) = self.take(mark);
        let mut terms: Vec<Option<Expr>> = terms.into_iter().map(Some).collect();
        let expr = balance(&mut terms, self.ops.get(first..).ok_or(GiveUp)?, function).ok_or(GiveUp)?;
        self.ops.truncate(first);
        self.push(expr, height);
        Ok(())
    }

    fn relation(&mut self) -> Result<()> {
        enter(&mut self.relation_depth)?;
        self.sum()?;
        while let Some(function) = NAMES.relation(self.token.kind) {
            let id = self.builder.id(self.token.start);
            self.advance()?;
            enter(&mut self.relation_depth)?;
            self.sum()?;
            self.relation_depth -= 1;
            self.operation(id, function, 2)?;
        }
        self.relation_depth -= 1;
        Ok(())
    }

    fn sum(&mut self) -> Result<()> {
        enter(&mut self.calc_depth)?;
        self.product()?;
        while let Some(function) = NAMES.sum(self.token.kind) {
            let id = self.builder.id(self.token.start);
            self.advance()?;
            enter(&mut self.calc_depth)?;
            self.product()?;
            self.calc_depth -= 1;
            self.operation(id, function, 2)?;
        }
        self.calc_depth -= 1;
        Ok(())
    }

    fn product(&mut self) -> Result<()> {
        self.unary()?;
        while let Some(function) = NAMES.product(self.token.kind) {
            let id = self.builder.id(self.token.start);
            self.advance()?;
            enter(&mut self.calc_depth)?;
            self.unary()?;
            self.calc_depth -= 1;
            self.operation(id, function, 2)?;
        }
        Ok(())
    }

    fn unary(&mut self) -> Result<()> {
        let (kind, start) = (self.token.kind, self.token.start);
        if !matches!(kind, Kind::Exclam | Kind::Minus) {
            return self.member(None);
        }
        self.advance()?;
        if kind == Kind::Minus && matches!(self.token.kind, Kind::Int | Kind::Float) {
            return self.member(Some(start));
        }
        let mut odd = true;
        while self.eat(kind)? {
            odd = !odd;
        }
        // Behind exclamation marks a number may have a sign.
        let sign = (self.token.kind == Kind::Minus).then_some(self.token.start);
        if sign.is_some() {
            self.advance()?;
        }
        if !odd {
            return self.member(sign);
        }
        let id = self.builder.id(start);
        self.member(sign)?;
        self.negation(id, kind)
    }

    #[inline(never)]
    fn negation(&mut self, id: ExprId, kind: Kind) -> Result<()> {
        let function = if kind == Kind::Exclam { &NAMES.not } else { &NAMES.negate };
        let operand = self.pop()?;
        self.push(builder::call(id, Arc::clone(function), None, vec![operand.expr]), operand.height);
        Ok(())
    }

    /// A primary expression with its selections, calls and indices; `sign` is where the sign of a number stands.
    fn member(&mut self, sign: Option<u32>) -> Result<()> {
        let mark = self.builder.count();
        // Still a name, which may turn out to be that of a message. A reserved word may be a part only of that.
        let (mut is_name, mut is_reserved) = (false, false);
        match self.token.kind {
            _ if sign.is_some() => self.literal(sign)?,
            Kind::Ident | Kind::Dot => {
                is_name = self.ident_or_call()?;
                is_reserved = is_name && self.is_reserved_name();
            }
            Kind::LParen => {
                self.advance()?;
                self.expr()?;
                self.expect(Kind::RParen)?;
            }
            Kind::LBracket => self.list()?,
            Kind::LBrace => self.map()?,
            _ => self.literal(None)?,
        }
        loop {
            match self.token.kind {
                Kind::Dot => is_name = self.select_or_call()? && is_name,
                Kind::LBracket => {
                    let id = self.builder.id(self.token.start);
                    self.advance()?;
                    let function = if self.eat(Kind::Question)? { &NAMES.opt_index } else { &NAMES.index };
                    self.expr()?;
                    self.expect(Kind::RBracket)?;
                    self.operation(id, function, 2)?;
                    is_name = false;
                }
                Kind::LBrace if is_name => {
                    self.builder.forget_from(mark);
                    self.message()?;
                    (is_name, is_reserved) = (false, false);
                }
                _ => break,
            }
        }
        if is_reserved { Err(GiveUp) } else { Ok(()) }
    }

    /// Whether the last value is a reserved word.
    fn is_reserved_name(&self) -> bool {
        let last = self.values.last().map(|node| &node.expr.kind);
        matches!(last, Some(ExprKind::Ident(name)) if is_reserved(name.strip_prefix('.').unwrap_or(name)))
    }

    /// An identifier or the call of a function; tells whether it is an identifier.
    fn ident_or_call(&mut self) -> Result<bool> {
        let dot = self.eat(Kind::Dot)?;
        let token = self.expect(Kind::Ident)?;
        if self.token.kind != Kind::LParen {
            self.ident(token, dot);
            return Ok(true);
        }
        if is_reserved(self.slice(token)) {
            return Err(GiveUp);
        }
        let (paren, mark) = (self.token.start, self.values.len());
        let id = self.builder.id(paren);
        self.arguments()?;
        self.call(Callee { token, dot, id, paren }, mark, false)?;
        Ok(false)
    }

    #[inline(never)]
    fn ident(&mut self, token: Token, dot: bool) {
        let word = self.slice(token);
        let name: Arc<str> = if dot { format!(".{word}").into() } else { Arc::from(word) };
        let expr = self.builder.ident(token.start, name);
        self.push(expr, 0);
    }

    /// A selection from the last value, or a call of its method; tells whether it may be a part of a name.
    fn select_or_call(&mut self) -> Result<bool> {
        let dot = self.token.start;
        self.advance()?;
        let optional = self.eat(Kind::Question)?;
        let token = self.expect(Kind::Ident)?;
        if optional || self.token.kind != Kind::LParen {
            self.select(dot, token, optional)?;
            return Ok(!optional);
        }
        let (paren, mark) = (self.token.start, self.values.len().saturating_sub(1));
        let id = self.builder.id(paren);
        self.arguments()?;
        self.call(Callee { token, dot: false, id, paren }, mark, true)?;
        Ok(false)
    }

    #[inline(never)]
    fn select(&mut self, dot: u32, token: Token, optional: bool) -> Result<()> {
        let (operand, name) = (self.pop()?, Arc::from(self.slice(token)));
        let expr = if optional {
            let field = self.builder.literal(token.start, Literal::String(name));
            self.builder.call(dot, Arc::clone(&NAMES.opt_select), vec![operand.expr, field])
        } else {
            builder::select(self.builder.id(dot), operand.expr, name, false)
        };
        self.push(expr, taller(operand.height)?);
        Ok(())
    }

    fn arguments(&mut self) -> Result<()> {
        self.advance()?;
        if !self.eat(Kind::RParen)? {
            loop {
                self.expr()?;
                if !self.eat(Kind::Comma)? {
                    break;
                }
            }
            self.expect(Kind::RParen)?;
        }
        Ok(())
    }

    /// Makes a call, or expands a macro, of the values above `mark`; the first is the receiver of a member call.
    #[inline(never)]
    fn call(&mut self, callee: Callee, mark: usize, is_member: bool) -> Result<()> {
        let (mut args, mut height) = self.take(mark);
        let target = if is_member {
            height = taller(height)?;
            (!args.is_empty()).then(|| args.remove(0))
        } else {
            None
        };
        let (word, id) = (self.slice(callee.token), callee.id);
        let found = if callee.dot { None } else { macros::find(word, is_member, args.len()) };
        let function: Arc<str> = if callee.dot { format!(".{word}").into() } else { Arc::from(word) };
        let Some(found) = found else {
            self.push(builder::call(id, function, target, args), height);
            return Ok(());
        };
        let shapes: Vec<Shape<'_>> = args.iter().map(Shape::from).collect();
        found.check(&shapes).map_err(|_| GiveUp)?;
        let written = self.keep_macro_calls.then(|| {
            let args = args.iter().map(|arg| self.written(arg)).collect();
            let target = target.as_ref().map(|target| self.written(target));
            builder::call(0, function, target, args)
        });
        let expr = found.expand(&mut self.builder, callee.paren, target, args).ok_or(GiveUp)?;
        if let Some(written) = written {
            self.builder.macro_calls.insert(expr.id, written);
        }
        self.builder.forget(id);
        self.push(expr, height);
        Ok(())
    }

    /// What is kept of a part of a macro call: an expansion is found again by its id.
    fn written(&self, part: &Expr) -> Expr {
        if self.builder.macro_calls.contains_key(&part.id) {
            Expr { id: part.id, kind: ExprKind::Ident(Arc::from("")) }
        } else {
            part.clone()
        }
    }

    fn list(&mut self) -> Result<()> {
        let (id, mark) = (self.builder.id(self.token.start), self.values.len());
        let mut optional = Vec::new();
        self.advance()?;
        while self.goes_on(Kind::RBracket, self.values.len() > mark)? {
            if self.eat(Kind::Question)? {
                optional.push((self.values.len() - mark) as u32);
            }
            self.expr()?;
            if !self.eat(Kind::Comma)? {
                break;
            }
        }
        self.expect(Kind::RBracket)?;
        let (elements, height) = self.take(mark);
        self.push(Expr { id, kind: ExprKind::List(ListExpr { elements, optional }) }, height);
        Ok(())
    }

    /// Whether another element comes before `close`. An empty list may hold a comma.
    fn goes_on(&mut self, close: Kind, some: bool) -> Result<bool> {
        if !some && self.eat(Kind::Comma)? {
            return Ok(false);
        }
        Ok(self.token.kind != close)
    }

    fn map(&mut self) -> Result<()> {
        let (id, mark) = (self.builder.id(self.token.start), self.values.len());
        let mut heads: Vec<(ExprId, bool)> = Vec::new();
        self.advance()?;
        while self.goes_on(Kind::RBrace, !heads.is_empty())? {
            let entry = self.builder.id(u32::MAX);
            let optional = self.eat(Kind::Question)?;
            heads.push((entry, optional));
            self.expr()?;
            let colon = self.expect(Kind::Colon)?;
            self.builder.set(entry, colon.start);
            self.expr()?;
            if !self.eat(Kind::Comma)? {
                break;
            }
        }
        self.expect(Kind::RBrace)?;
        let (parts, height) = self.take(mark);
        let mut parts = parts.into_iter();
        let entries = heads.into_iter().map_while(|(id, optional)| {
            let (key, value) = (parts.next()?, parts.next()?);
            Some(MapEntry { id, key, value, optional })
        });
        let entries = entries.collect();
        self.push(Expr { id, kind: ExprKind::Map(entries) }, height);
        Ok(())
    }

    /// A message literal; its name is the last value, the current word its brace.
    fn message(&mut self) -> Result<()> {
        let name = qualified(&self.pop()?.expr).ok_or(GiveUp)?;
        let (id, mark) = (self.builder.id(self.token.start), self.values.len());
        let mut heads: Vec<(ExprId, Token, bool)> = Vec::new();
        self.advance()?;
        while self.goes_on(Kind::RBrace, !heads.is_empty())? {
            let optional = self.eat(Kind::Question)?;
            let field = self.expect(Kind::Ident)?;
            let colon = self.expect(Kind::Colon)?;
            heads.push((self.builder.id(colon.start), field, optional));
            self.expr()?;
            if !self.eat(Kind::Comma)? {
                break;
            }
        }
        self.expect(Kind::RBrace)?;
        let (values, height) = self.take(mark);
        let fields = heads.into_iter().zip(values).map(|((id, field, optional), value)| StructField {
            id,
            name: Arc::from(self.slice(field)),
            value,
            optional,
        });
        let fields = fields.collect();
        self.push(Expr { id, kind: ExprKind::Struct(StructExpr { type_name: name.into(), fields }) }, height);
        Ok(())
    }

    #[inline(never)]
    fn literal(&mut self, sign: Option<u32>) -> Result<()> {
        let token = self.token;
        let (text, negative) = (self.slice(token), sign.is_some());
        let value = match token.kind {
            Kind::Int => literal::int(text, negative).map(Literal::Int),
            Kind::Float => literal::double(text, negative).map(Literal::Double),
            _ if negative => return Err(GiveUp),
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
        let expr = self.builder.literal(sign.unwrap_or(token.start), value);
        self.push(expr, 0);
        Ok(())
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
