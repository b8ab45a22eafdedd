//! From text to tokens. Where a token starts and on which line decides what errors say, so both are Go's.

use object::go;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The text of the token is the message.
    Error,
    Bool,
    Char,
    CharConstant,
    Complex,
    Assign,
    Declare,
    Eof,
    Field,
    Identifier,
    LeftDelim,
    LeftParen,
    Number,
    Pipe,
    RawString,
    RightDelim,
    RightParen,
    Space,
    String,
    Text,
    Variable,
    Block,
    Break,
    Continue,
    Dot,
    Define,
    Else,
    End,
    If,
    Nil,
    Range,
    Template,
    With,
}

impl Kind {
    fn is_keyword(self) -> bool {
        use Kind::*;
        matches!(self, Block | Break | Continue | Dot | Define | Else | End | If | Nil | Range | Template | With)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub kind: Kind,
    /// Where it starts, in bytes.
    pub pos: usize,
    /// On which line it starts, from 1.
    pub line: usize,
    pub text: String,
}

impl Token {
    /// The token as error messages name it.
    pub fn describe(&self) -> String {
        match self.kind {
            Kind::Eof => "EOF".to_owned(),
            Kind::Error => self.text.clone(),
            k if k.is_keyword() => format!("<{}>", self.text),
            _ if self.text.len() > 10 => format!("{}...", go::quote(&self.text.chars().take(10).collect::<String>())),
            _ => go::quote(&self.text),
        }
    }
}

pub(crate) struct Lexer<'t> {
    input: &'t str,
    pos: usize,
    start: usize,
    line: usize,
    start_line: usize,
    parens: usize,
    inside: bool,
    failed: bool,
}

const SPACES: [char; 4] = [' ', '\t', '\r', '\n'];

pub(crate) fn is_space(c: char) -> bool {
    SPACES.contains(&c)
}

fn is_alphanumeric(c: char) -> bool {
    c == '_' || c.is_alphabetic() || c.is_numeric()
}

fn has_left_trim(s: &str) -> bool {
    s.starts_with('-') && s[1..].starts_with(SPACES)
}

fn has_right_trim(s: &str) -> bool {
    s.starts_with(SPACES) && s[1..].starts_with('-')
}

impl<'t> Lexer<'t> {
    pub fn new(input: &'t str) -> Self {
        Lexer { input, pos: 0, start: 0, line: 1, start_line: 1, parens: 0, inside: false, failed: false }
    }

    /// The next token; after an error there are only ends.
    pub fn next_token(&mut self) -> Token {
        if self.failed {
            return Token { kind: Kind::Eof, pos: 0, line: self.start_line, text: String::new() };
        }
        if self.inside { self.action() } else { self.text() }
    }

    fn rest(&self) -> &'t str {
        &self.input[self.pos..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.pos += c.len_utf8();
        if c == '\n' {
            self.line += 1;
        }
        Some(c)
    }

    fn emit(&mut self, kind: Kind) -> Token {
        let text = self.input[self.start..self.pos].to_owned();
        let token = Token { kind, pos: self.start, line: self.start_line, text };
        self.start = self.pos;
        self.start_line = self.line;
        token
    }

    fn error(&mut self, message: String) -> Token {
        self.failed = true;
        Token { kind: Kind::Error, pos: self.start, line: self.start_line, text: message }
    }

    /// Passes over what was not read by `next`.
    fn ignore(&mut self) {
        self.count_lines();
        self.start = self.pos;
        self.start_line = self.line;
    }

    fn count_lines(&mut self) {
        self.line += self.input[self.start..self.pos].matches('\n').count();
    }

    fn text(&mut self) -> Token {
        loop {
            let Some(x) = self.rest().find("{{") else {
                self.pos = self.input.len();
                if self.pos > self.start {
                    self.count_lines();
                    return self.emit(Kind::Text);
                }
                return self.emit(Kind::Eof);
            };
            if x > 0 {
                let end = self.pos + x;
                let mut kept = end;
                if has_left_trim(&self.input[end + 2..]) {
                    kept = self.start + self.input[self.start..end].trim_end_matches(SPACES).len();
                }
                self.pos = kept;
                self.count_lines();
                let token = self.emit(Kind::Text);
                self.pos = end;
                self.ignore();
                if !token.text.is_empty() {
                    return token;
                }
            }
            // At the left delimiter.
            self.pos += 2;
            let marker = if has_left_trim(self.rest()) { 2 } else { 0 };
            if self.input[self.pos + marker..].starts_with("/*") {
                self.pos += marker;
                self.ignore();
                if let Err(token) = self.comment() {
                    return token;
                }
                continue;
            }
            let token = self.emit(Kind::LeftDelim);
            self.inside = true;
            self.pos += marker;
            self.ignore();
            self.parens = 0;
            return token;
        }
    }

    fn comment(&mut self) -> Result<(), Token> {
        self.pos += 2;
        let Some(x) = self.rest().find("*/") else {
            return Err(self.error("unclosed comment".to_owned()));
        };
        self.pos += x + 2;
        let (delimiter, trim) = self.at_right_delim();
        if !delimiter {
            return Err(self.error("comment ends before closing delimiter".to_owned()));
        }
        self.pos += if trim { 4 } else { 2 };
        if trim {
            self.pos += self.rest().len() - self.rest().trim_start_matches(SPACES).len();
        }
        self.ignore();
        Ok(())
    }

    /// Whether a right delimiter stands here, and whether it trims.
    fn at_right_delim(&self) -> (bool, bool) {
        let rest = self.rest();
        if has_right_trim(rest) && rest[2..].starts_with("}}") {
            return (true, true);
        }
        (rest.starts_with("}}"), false)
    }

    fn right_delim(&mut self) -> Token {
        let (_, trim) = self.at_right_delim();
        if trim {
            self.pos += 2;
            self.ignore();
        }
        self.pos += 2;
        let token = self.emit(Kind::RightDelim);
        if trim {
            self.pos += self.rest().len() - self.rest().trim_start_matches(SPACES).len();
            self.ignore();
        }
        self.inside = false;
        token
    }

    fn action(&mut self) -> Token {
        if self.at_right_delim().0 {
            if self.parens == 0 {
                return self.right_delim();
            }
            return self.error("unclosed left paren".to_owned());
        }
        let Some(c) = self.peek() else {
            return self.error("unclosed action".to_owned());
        };
        if is_space(c) {
            return self.space();
        }
        if is_alphanumeric(c) && !c.is_ascii_digit() {
            return self.identifier();
        }
        if c.is_ascii_digit() || c == '+' || c == '-' {
            return self.number();
        }
        if c == '.' && self.rest()[1..].starts_with(|d: char| d.is_ascii_digit()) {
            return self.number();
        }
        self.next();
        match c {
            '=' => self.emit(Kind::Assign),
            ':' => {
                if self.next() == Some('=') {
                    self.emit(Kind::Declare)
                } else {
                    self.error("expected :=".to_owned())
                }
            }
            '|' => self.emit(Kind::Pipe),
            '"' => self.quoted('"', Kind::String, "unterminated quoted string"),
            '\'' => self.quoted('\'', Kind::CharConstant, "unterminated character constant"),
            '`' => self.raw(),
            '$' => {
                if self.at_terminator() {
                    self.emit(Kind::Variable)
                } else {
                    self.name(Kind::Variable)
                }
            }
            // A point at the very end of the text is the start of a number that is none.
            '.' if self.rest().is_empty() => self.emit(Kind::Number),
            '.' if self.at_terminator() => self.emit(Kind::Dot),
            '.' => self.name(Kind::Field),
            '(' => {
                self.parens += 1;
                self.emit(Kind::LeftParen)
            }
            ')' => {
                if self.parens == 0 {
                    return self.error("unexpected right paren".to_owned());
                }
                self.parens -= 1;
                self.emit(Kind::RightParen)
            }
            '!'..='~' => self.emit(Kind::Char),
            c => self.error(format!("unrecognized character in action: {}", unicode(Some(c)))),
        }
    }

    fn space(&mut self) -> Token {
        let mut count = 0;
        while self.peek().is_some_and(is_space) {
            self.next();
            count += 1;
        }
        // The last space belongs to a delimiter that trims.
        let before = &self.input[self.pos - 1..];
        if has_right_trim(before) && before[2..].starts_with("}}") {
            self.pos -= 1;
            if before.starts_with('\n') {
                self.line -= 1;
            }
            if count == 1 {
                return self.right_delim();
            }
        }
        self.emit(Kind::Space)
    }

    fn identifier(&mut self) -> Token {
        while self.peek().is_some_and(is_alphanumeric) {
            self.next();
        }
        if !self.at_terminator() {
            return self.error(format!("bad character {}", unicode(self.peek())));
        }
        let kind = match &self.input[self.start..self.pos] {
            "block" => Kind::Block,
            "break" => Kind::Break,
            "continue" => Kind::Continue,
            "define" => Kind::Define,
            "else" => Kind::Else,
            "end" => Kind::End,
            "if" => Kind::If,
            "range" => Kind::Range,
            "nil" => Kind::Nil,
            "template" => Kind::Template,
            "with" => Kind::With,
            "true" | "false" => Kind::Bool,
            _ => Kind::Identifier,
        };
        self.emit(kind)
    }

    /// The rest of a field or variable, whose first character is read.
    fn name(&mut self, kind: Kind) -> Token {
        while self.peek().is_some_and(is_alphanumeric) {
            self.next();
        }
        if !self.at_terminator() {
            return self.error(format!("bad character {}", unicode(self.peek())));
        }
        self.emit(kind)
    }

    fn at_terminator(&self) -> bool {
        match self.peek() {
            None => true,
            Some(c) => is_space(c) || matches!(c, '.' | ',' | '|' | ':' | ')' | '(') || self.rest().starts_with("}}"),
        }
    }

    /// The rest of a text between quotes; what is in it the parser reads.
    fn quoted(&mut self, quote: char, kind: Kind, unterminated: &str) -> Token {
        loop {
            match self.next() {
                Some('\\') => {
                    if matches!(self.next(), None | Some('\n')) {
                        return self.error(unterminated.to_owned());
                    }
                }
                None | Some('\n') => return self.error(unterminated.to_owned()),
                Some(c) if c == quote => return self.emit(kind),
                Some(_) => {}
            }
        }
    }

    fn raw(&mut self) -> Token {
        loop {
            match self.next() {
                None => return self.error("unterminated raw quoted string".to_owned()),
                Some('`') => return self.emit(Kind::RawString),
                Some(_) => {}
            }
        }
    }

    fn number(&mut self) -> Token {
        let mut kind = Kind::Number;
        let mut good = self.scan_number();
        if good && matches!(self.peek(), Some('+' | '-')) {
            // A complex constant: 1+2i.
            good = self.scan_number() && self.input[..self.pos].ends_with('i');
            kind = Kind::Complex;
        }
        if !good {
            return self.error(format!("bad number syntax: {}", go::quote(&self.input[self.start..self.pos])));
        }
        self.emit(kind)
    }

    fn accept(&mut self, set: &str) -> bool {
        let yes = self.peek().is_some_and(|c| set.contains(c));
        if yes {
            self.next();
        }
        yes
    }

    fn accept_run(&mut self, set: &str) {
        while self.accept(set) {}
    }

    fn scan_number(&mut self) -> bool {
        self.accept("+-");
        let mut digits = "0123456789_";
        if self.accept("0") {
            if self.accept("xX") {
                digits = "0123456789abcdefABCDEF_";
            } else if self.accept("oO") {
                digits = "01234567_";
            } else if self.accept("bB") {
                digits = "01_";
            }
        }
        self.accept_run(digits);
        if self.accept(".") {
            self.accept_run(digits);
        }
        let exponent = match digits.len() {
            11 => self.accept("eE"),
            23 => self.accept("pP"),
            _ => false,
        };
        if exponent {
            self.accept("+-");
            self.accept_run("0123456789_");
        }
        self.accept("i");
        if self.peek().is_some_and(is_alphanumeric) {
            self.next();
            return false;
        }
        true
    }
}

/// A character as `%#U` prints it; the end of the text is -1 to Go.
fn unicode(c: Option<char>) -> String {
    match c {
        None => "U+FFFFFFFFFFFFFFFF".to_owned(),
        Some(c) if go::is_print(c) => format!("U+{:04X} '{c}'", c as u32),
        Some(c) => format!("U+{:04X}", c as u32),
    }
}
