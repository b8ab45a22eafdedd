//! Which way ANTLR's adaptive prediction takes.
//!
//! For this grammar the prediction comes down to a few words of look-ahead at each choice; they are written out here.
//! Where no way fits, the prediction still takes one that has left its rule by then, and the error shows up later.

use super::graph::{Choice, Graph, PRODUCTS, RELATIONS, Rule, SUMS, State, Step};
use super::walk::{Failure, Walk};
use super::words::Words;
use crate::parse::lexer::{Kind, Token};

impl Walk<'_, '_> {
    /// The way to take at a state with a choice, from 0.
    pub(super) fn way(&mut self, state: &State) -> Result<usize, Failure> {
        let word = self.peek(0)?;
        let starts_first = || state.steps.first().is_some_and(|step| starts(step, word));
        let second_if = |other: bool| Ok(usize::from(other));
        match state.choice {
            None => Ok(0),
            Some(Choice::Optional) => second_if(!starts_first()),
            Some(Choice::ByWord) => {
                state.steps.iter().position(|step| starts(step, word)).ok_or(Failure::NoWay(word, word))
            }
            Some(Choice::Unary) => self.unary(word),
            Some(Choice::Minus) => self.minus(word),
            Some(Choice::Primary) => self.primary(word),
            Some(Choice::Literal) => self.literal(state, word),
            Some(Choice::MemberLoop) => second_if(!matches!(word.kind, Kind::Dot | Kind::LBracket)),
            Some(Choice::MemberKind) => self.member(word),
            Some(Choice::RelationLoop) => second_if(!RELATIONS.has(word.kind) || self.precedence() > 1),
            Some(Choice::CalcLoop) => {
                let binds = match self.precedence() {
                    0 | 1 => PRODUCTS | SUMS,
                    2 => PRODUCTS,
                    _ => Words::NONE,
                };
                second_if(!binds.has(word.kind))
            }
            Some(Choice::CalcKind) => second_if(SUMS.has(word.kind)),
            Some(Choice::Comma) => self.comma(state, word),
        }
    }

    fn first_of(&self, rule: Rule) -> Words {
        self.graph.state(self.graph.start(rule)).next
    }

    fn unary(&mut self, word: Token) -> Result<usize, Failure> {
        match word.kind {
            Kind::Exclam => Ok(1),
            Kind::Minus => {
                let second = self.peek(1)?;
                match second.kind {
                    // `-1` is a constant.
                    Kind::Int | Kind::Float => Ok(0),
                    kind if self.first_of(Rule::Member).has(kind) => Ok(2),
                    _ => Err(Failure::NoWay(word, second)),
                }
            }
            kind if self.first_of(Rule::Member).has(kind) => Ok(0),
            _ => Err(Failure::NoWay(word, word)),
        }
    }

    fn minus(&mut self, word: Token) -> Result<usize, Failure> {
        let member = self.first_of(Rule::Member);
        if word.kind != Kind::Minus {
            return if member.has(word.kind) { Ok(1) } else { Err(Failure::NoWay(word, word)) };
        }
        let second = self.peek(1)?;
        if member.has(second.kind) { Ok(0) } else { Err(Failure::NoWay(word, second)) }
    }

    fn primary(&mut self, word: Token) -> Result<usize, Failure> {
        let name = match word.kind {
            Kind::LParen => return Ok(2),
            Kind::LBracket => return Ok(3),
            Kind::LBrace => return Ok(4),
            Kind::Ident => 0,
            Kind::Dot => 1,
            kind if self.first_of(Rule::Literal).has(kind) => return Ok(6),
            _ => return Err(Failure::NoWay(word, word)),
        };
        let first = self.peek(name)?;
        if first.kind != Kind::Ident {
            return Err(Failure::NoWay(word, first));
        }
        let mut ahead = name + 1;
        if self.peek(ahead)?.kind == Kind::LParen {
            return Ok(1);
        }
        loop {
            match self.peek(ahead)?.kind {
                Kind::LBrace => return Ok(5),
                Kind::Dot if self.peek(ahead + 1)?.kind == Kind::Ident => ahead += 2,
                _ => return Ok(0),
            }
        }
    }

    fn literal(&mut self, state: &State, word: Token) -> Result<usize, Failure> {
        if word.kind == Kind::Minus {
            let second = self.peek(1)?;
            return match second.kind {
                Kind::Int => Ok(0),
                Kind::Float => Ok(2),
                _ => Err(Failure::NoWay(word, second)),
            };
        }
        state.steps.iter().position(|step| starts(step, word)).ok_or(Failure::NoWay(word, word))
    }

    fn member(&mut self, word: Token) -> Result<usize, Failure> {
        if word.kind == Kind::LBracket {
            return Ok(2);
        }
        let second = self.peek(1)?;
        match second.kind {
            Kind::Question | Kind::EscapedIdent => Ok(0),
            Kind::Ident => Ok(usize::from(self.peek(2)?.kind == Kind::LParen)),
            _ => Err(Failure::NoWay(word, second)),
        }
    }

    fn comma(&mut self, state: &State, word: Token) -> Result<usize, Failure> {
        if word.kind != Kind::Comma {
            return Ok(1);
        }
        let second = self.peek(1)?;
        // Behind the comma of the first way comes an element.
        let mut at = state.steps.first().copied();
        while let Some(Step::To(next)) = at {
            at = self.graph.state(next).steps.first().copied();
        }
        let goes_on = match at {
            Some(Step::Word { next, .. }) => self.graph.state(next).next.has(second.kind),
            _ => false,
        };
        Ok(usize::from(!goes_on))
    }
}

/// Whether a way can start with the word.
fn starts(step: &Step, word: Token) -> bool {
    match step {
        Step::To(next) | Step::Rule { next, .. } => Graph::get().state(*next).next.has(word.kind),
        Step::Word { words, .. } => words.has(word.kind),
    }
}
