//! The words of a wrong text, fetched as the parser looks ahead.
//!
//! What is no word is reported when the look-ahead reaches it: the order counts when too many errors end the work.

use super::report::{Halt, Report};
use crate::parse::lexer::{Kind, Lexer, Token};
use crate::source::Location;

/// Words fetched on demand.
pub(super) struct Stream<'t> {
    text: &'t str,
    lexer: Lexer<'t>,
    /// The words the grammar sees.
    tokens: Vec<Token>,
    /// The current word.
    index: usize,
}

impl<'t> Stream<'t> {
    pub fn new(text: &'t str) -> Self {
        Stream { text, lexer: Lexer::new(text), tokens: Vec::new(), index: 0 }
    }

    /// The number of the current word.
    pub fn index(&self) -> usize {
        self.index
    }

    /// The `ahead`-th word from the current one, which is number 0.
    pub fn peek(&mut self, ahead: usize, report: &mut Report<'_>) -> Result<Token, Halt> {
        let wanted = self.index + ahead;
        while self.tokens.len() <= wanted {
            if let Some(&last) = self.tokens.last().filter(|last| last.kind == Kind::Eof) {
                return Ok(last);
            }
            let token = self.fetch(report)?;
            self.tokens.push(token);
        }
        let end = self.text.len() as u32;
        Ok(self.tokens.get(wanted).copied().unwrap_or(Token { kind: Kind::Eof, start: end, end }))
    }

    /// The word before the current one.
    pub fn previous(&self) -> Option<Token> {
        self.index.checked_sub(1).and_then(|index| self.tokens.get(index)).copied()
    }

    /// Goes on by one word, unless it is the last.
    pub fn advance(&mut self, report: &mut Report<'_>) -> Result<Token, Halt> {
        let token = self.peek(0, report)?;
        if token.kind != Kind::Eof {
            self.index += 1;
            self.peek(0, report)?;
        }
        Ok(token)
    }

    fn fetch(&mut self, report: &mut Report<'_>) -> Result<Token, Halt> {
        loop {
            let start = self.lexer.at;
            match self.lexer.next_visible() {
                Ok(token) => return Ok(token),
                Err(wrong) => {
                    // Blanks before the wrong word were passed over.
                    let start = self.lexer.at.max(start);
                    let rest = self.text.get(wrong.stopped_at..).unwrap_or_default();
                    let end = wrong.stopped_at + rest.chars().next().map_or(0, char::len_utf8);
                    let found = self.text.get(start..end).unwrap_or_default();
                    report.syntax_error(start as u32, format!("token recognition error at: '{found}'"))?;
                    self.lexer.at = end;
                }
            }
        }
    }

    /// The text of a word.
    pub fn text(&self, token: Token) -> &'t str {
        self.text.get(token.start as usize..token.end as usize).unwrap_or_default()
    }

    /// The text from one word to another, as error messages show it: blanks and comments stay, what is no word goes.
    pub fn text_between(&self, first: Token, last: Token) -> String {
        let mut lexer = Lexer::new(self.text);
        lexer.at = first.start as usize;
        let mut found = String::new();
        while lexer.at < last.end as usize {
            match lexer.next() {
                Ok(token) if token.kind == Kind::Eof => break,
                Ok(token) => found.push_str(self.text(token)),
                Err(wrong) => {
                    let rest = self.text.get(wrong.stopped_at..).unwrap_or_default();
                    lexer.at = wrong.stopped_at + rest.chars().next().map_or(0, char::len_utf8);
                    if rest.is_empty() {
                        break;
                    }
                }
            }
        }
        found
    }
}

/// The place of a byte of the text.
pub(super) fn location(text: &str, issues: &crate::issues::Issues, at: u32) -> Location {
    let before = text.get(..at as usize).unwrap_or(text);
    issues.source().location(before.chars().count() as u32)
}
