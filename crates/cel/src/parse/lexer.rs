//! The words of the language.
//!
//! [`Lexer::next`] finds the longest word at a place, as the lexer generated from cel-go's grammar does, and says where
//! the search stopped when there is none.

use std::fmt;

/// Makes the kinds of words of their numbers and the names used in lists of expected words.
macro_rules! kinds {
    ($($kind:ident = $number:literal, $name:literal;)*) => {
        /// The kinds of words, numbered as in cel-go's generated lexer (the numbers order the expected words in error
        /// texts).
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub(crate) enum Kind {
            $($kind = $number,)*
        }

        impl Kind {
            /// All kinds in the order of their numbers.
            pub const ALL: &[Kind] = &[$(Kind::$kind,)*];
        }

        impl fmt::Display for Kind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self {
                    $(Kind::$kind => $name,)*
                })
            }
        }
    };
}

// `Hidden` is blanks or a comment, which the grammar does not see.
kinds! {
    Eof = 0, "<EOF>";
    Equals = 1, "'=='";
    NotEquals = 2, "'!='";
    In = 3, "'in'";
    Less = 4, "'<'";
    LessEquals = 5, "'<='";
    GreaterEquals = 6, "'>='";
    Greater = 7, "'>'";
    And = 8, "'&&'";
    Or = 9, "'||'";
    LBracket = 10, "'['";
    RBracket = 11, "']'";
    LBrace = 12, "'{'";
    RBrace = 13, "'}'";
    LParen = 14, "'('";
    RParen = 15, "')'";
    Dot = 16, "'.'";
    Comma = 17, "','";
    Minus = 18, "'-'";
    Exclam = 19, "'!'";
    Question = 20, "'?'";
    Colon = 21, "':'";
    Plus = 22, "'+'";
    Star = 23, "'*'";
    Slash = 24, "'/'";
    Percent = 25, "'%'";
    True = 26, "'true'";
    False = 27, "'false'";
    Null = 28, "'null'";
    Hidden = 29, "WHITESPACE";
    Float = 31, "NUM_FLOAT";
    Int = 32, "NUM_INT";
    Uint = 33, "NUM_UINT";
    String = 34, "STRING";
    Bytes = 35, "BYTES";
    Ident = 36, "IDENTIFIER";
    EscapedIdent = 37, "ESC_IDENTIFIER";
}

/// A word: its kind and the bytes it covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub kind: Kind,
    pub start: u32,
    pub end: u32,
}

/// No word starts here: the byte at which the search gave up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoToken {
    pub stopped_at: usize,
}

/// Cuts a text into words.
#[derive(Clone, Debug)]
pub(crate) struct Lexer<'t> {
    text: &'t str,
    /// Where the next word starts.
    pub at: usize,
}

fn is_ident_start(b: u8) -> bool {
    b.is_ascii_alphabetic() || b == b'_'
}

fn is_ident(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_'
}

impl<'t> Lexer<'t> {
    pub fn new(text: &'t str) -> Self {
        Lexer { text, at: 0 }
    }

    fn byte(&self, at: usize) -> u8 {
        self.text.as_bytes().get(at).copied().unwrap_or(0)
    }

    fn run(&self, mut at: usize, class: impl Fn(u8) -> bool) -> usize {
        while at < self.text.len() && class(self.byte(at)) {
            at += 1;
        }
        at
    }

    /// The next word the grammar sees: blanks and comments are passed over.
    pub fn next_visible(&mut self) -> Result<Token, NoToken> {
        loop {
            let token = self.next()?;
            if token.kind != Kind::Hidden {
                return Ok(token);
            }
        }
    }

    /// The next word. After an error the lexer stays where it is.
    pub fn next(&mut self) -> Result<Token, NoToken> {
        let start = self.at;
        let (kind, end) = self.scan(start)?;
        self.at = end;
        // Texts are limited to 100 000 code points before they are cut into words.
        Ok(Token { kind, start: start as u32, end: end as u32 })
    }

    fn scan(&self, start: usize) -> Result<(Kind, usize), NoToken> {
        let Some(&first) = self.text.as_bytes().get(start) else {
            return Ok((Kind::Eof, start));
        };
        let one = |kind| Ok((kind, start + 1));
        let second = self.byte(start + 1);
        match first {
            b' ' | b'\t' | b'\r' | b'\n' | 0x0c => {
                Ok((Kind::Hidden, self.run(start, |b| matches!(b, b' ' | b'\t' | b'\r' | b'\n' | 0x0c))))
            }
            b'/' if second == b'/' => Ok((Kind::Hidden, self.run(start, |b| b != b'\n'))),
            b'[' => one(Kind::LBracket),
            b']' => one(Kind::RBracket),
            b'{' => one(Kind::LBrace),
            b'}' => one(Kind::RBrace),
            b'(' => one(Kind::LParen),
            b')' => one(Kind::RParen),
            b',' => one(Kind::Comma),
            b'-' => one(Kind::Minus),
            b'?' => one(Kind::Question),
            b':' => one(Kind::Colon),
            b'+' => one(Kind::Plus),
            b'*' => one(Kind::Star),
            b'/' => one(Kind::Slash),
            b'%' => one(Kind::Percent),
            b'.' if second.is_ascii_digit() => {
                Ok((Kind::Float, self.exponent(self.run(start + 1, |b| b.is_ascii_digit()))))
            }
            b'.' => one(Kind::Dot),
            b'!' if second == b'=' => Ok((Kind::NotEquals, start + 2)),
            b'!' => one(Kind::Exclam),
            b'<' if second == b'=' => Ok((Kind::LessEquals, start + 2)),
            b'<' => one(Kind::Less),
            b'>' if second == b'=' => Ok((Kind::GreaterEquals, start + 2)),
            b'>' => one(Kind::Greater),
            b'=' if second == b'=' => Ok((Kind::Equals, start + 2)),
            b'&' if second == b'&' => Ok((Kind::And, start + 2)),
            b'|' if second == b'|' => Ok((Kind::Or, start + 2)),
            b'=' | b'&' | b'|' => Err(NoToken { stopped_at: start + 1 }),
            b'0'..=b'9' => Ok(self.number(start)),
            b'"' | b'\'' => self.quoted(start, false).map(|end| (Kind::String, end)),
            b'`' => self.backquoted(start),
            b if is_ident_start(b) => Ok(self.word(start)),
            _ => Err(NoToken { stopped_at: start }),
        }
    }

    /// Behind the exponent that may start at `at`.
    fn exponent(&self, at: usize) -> usize {
        if !matches!(self.byte(at), b'e' | b'E') {
            return at;
        }
        let digits = if matches!(self.byte(at + 1), b'+' | b'-') { at + 2 } else { at + 1 };
        let end = self.run(digits, |b| b.is_ascii_digit());
        if end > digits { end } else { at }
    }

    fn number(&self, start: usize) -> (Kind, usize) {
        if self.byte(start) == b'0' && self.byte(start + 1) == b'x' && self.byte(start + 2).is_ascii_hexdigit() {
            return self.unsigned(self.run(start + 2, |b| b.is_ascii_hexdigit()));
        }
        let digits = self.run(start, |b| b.is_ascii_digit());
        let fraction = if self.byte(digits) == b'.' && self.byte(digits + 1).is_ascii_digit() {
            self.run(digits + 1, |b| b.is_ascii_digit())
        } else {
            digits
        };
        let end = self.exponent(fraction);
        if end > digits { (Kind::Float, end) } else { self.unsigned(digits) }
    }

    fn unsigned(&self, at: usize) -> (Kind, usize) {
        if matches!(self.byte(at), b'u' | b'U') { (Kind::Uint, at + 1) } else { (Kind::Int, at) }
    }

    fn word(&self, start: usize) -> (Kind, usize) {
        // A prefix of a string is an identifier of its own when the string does not end.
        let raw = |b: u8| matches!(b, b'r' | b'R');
        let quote = |at: usize| matches!(self.byte(at), b'"' | b'\'');
        let (first, second) = (self.byte(start), self.byte(start + 1));
        let bytes = matches!(first, b'b' | b'B');
        let string = if quote(start + 1) && raw(first) {
            self.quoted(start + 1, true).map(|end| (Kind::String, end))
        } else if quote(start + 1) && bytes {
            self.quoted(start + 1, false).map(|end| (Kind::Bytes, end))
        } else if bytes && raw(second) && quote(start + 2) {
            self.quoted(start + 2, true).map(|end| (Kind::Bytes, end))
        } else {
            Err(NoToken { stopped_at: start })
        };
        if let Ok(found) = string {
            return found;
        }
        let end = self.run(start, is_ident);
        let kind = match self.text.get(start..end) {
            Some("in") => Kind::In,
            Some("true") => Kind::True,
            Some("false") => Kind::False,
            Some("null") => Kind::Null,
            _ => Kind::Ident,
        };
        (kind, end)
    }

    fn backquoted(&self, start: usize) -> Result<(Kind, usize), NoToken> {
        let end = self.run(start + 1, |b| is_ident(b) || matches!(b, b'.' | b'-' | b'/' | b' '));
        if end > start + 1 && self.byte(end) == b'`' {
            Ok((Kind::EscapedIdent, end + 1))
        } else {
            Err(NoToken { stopped_at: end })
        }
    }

    /// Behind the string whose opening quote is at `start`.
    fn quoted(&self, start: usize, raw: bool) -> Result<usize, NoToken> {
        let quote = self.byte(start);
        if self.byte(start + 1) == quote {
            if self.byte(start + 2) == quote
                && let Some(end) = self.tripled(start + 3, quote, raw)
            {
                return Ok(end);
            }
            // Two quotes are the empty string when three do not find their end.
            return Ok(start + 2);
        }
        let mut at = start + 1;
        while at < self.text.len() {
            match self.byte(at) {
                b'\n' | b'\r' => break,
                b if b == quote => return Ok(at + 1),
                b'\\' if !raw => at = self.escape(at)?,
                _ => at += 1,
            }
        }
        Err(NoToken { stopped_at: at })
    }

    fn tripled(&self, mut at: usize, quote: u8, raw: bool) -> Option<usize> {
        while at < self.text.len() {
            let b = self.byte(at);
            if b == quote && self.byte(at + 1) == quote && self.byte(at + 2) == quote {
                return Some(at + 3);
            }
            at = if b == b'\\' && !raw { self.escape(at).ok()? } else { at + 1 };
        }
        None
    }

    /// Behind the escape sequence whose backslash is at `at`.
    fn escape(&self, at: usize) -> Result<usize, NoToken> {
        let octal = |b: u8| (b'0'..=b'7').contains(&b);
        let (digits, is_digit): (usize, fn(u8) -> bool) = match self.byte(at + 1) {
            b'a' | b'b' | b'f' | b'n' | b'r' | b't' | b'v' | b'"' | b'\'' | b'\\' | b'?' | b'`' => return Ok(at + 2),
            b'0'..=b'3' => (2, octal),
            b'x' | b'X' => (2, |b| b.is_ascii_hexdigit()),
            b'u' => (4, |b| b.is_ascii_hexdigit()),
            b'U' => (8, |b| b.is_ascii_hexdigit()),
            _ => return Err(NoToken { stopped_at: at + 1 }),
        };
        for place in at + 2..at + 2 + digits {
            if !is_digit(self.byte(place)) {
                return Err(NoToken { stopped_at: place });
            }
        }
        Ok(at + 2 + digits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<(Kind, &str)> {
        let mut lexer = Lexer::new(text);
        let mut found = Vec::new();
        while let Ok(token) = lexer.next_visible() {
            if token.kind == Kind::Eof {
                break;
            }
            found.push((token.kind, &text[token.start as usize..token.end as usize]));
        }
        found
    }

    #[test]
    fn the_longest_word_wins() {
        use Kind::*;
        let cases: &[(&str, &[(Kind, &str)])] = &[
            ("1e", &[(Int, "1"), (Ident, "e")]),
            ("1.", &[(Int, "1"), (Dot, ".")]),
            ("1.5e-3u", &[(Float, "1.5e-3"), (Ident, "u")]),
            (".5", &[(Float, ".5")]),
            ("0x1Fu 0x", &[(Uint, "0x1Fu"), (Int, "0"), (Ident, "x")]),
            ("inn in", &[(Ident, "inn"), (In, "in")]),
            (r#"r'\' b"x" bR'\'"#, &[(String, r"r'\'"), (Bytes, r#"b"x""#), (Bytes, r"bR'\'")]),
            ("'''a'b''' ''", &[(String, "'''a'b'''"), (String, "''")]),
            ("'''a", &[(String, "''")]),
            ("a // b\n c", &[(Ident, "a"), (Ident, "c")]),
            ("`a-b`", &[(EscapedIdent, "`a-b`")]),
            ("a<=b!=c", &[(Ident, "a"), (LessEquals, "<="), (Ident, "b"), (NotEquals, "!="), (Ident, "c")]),
        ];
        for (text, expected) in cases {
            assert_eq!(words(text), *expected, "{text}");
        }
    }

    #[test]
    fn the_search_stops_where_no_word_can_go_on() {
        for (text, stopped_at) in
            [("= ", 1), ("'a\\q'", 3), ("'\\u12'", 5), ("'ab", 3), ("``", 1), ("@", 0), ("'a\nb'", 2)]
        {
            assert_eq!(Lexer::new(text).next(), Err(NoToken { stopped_at }), "{text}");
        }
    }
}
