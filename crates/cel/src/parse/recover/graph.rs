//! cel-go's grammar as a graph.
//!
//! The states and their kinds are those an ANTLR parser has for the grammar, as far as its treatment of errors depends
//! on them: which words may come next at a state, and what to do when another comes.

use super::words::Words;
use crate::parse::lexer::Kind;
use std::sync::LazyLock;

/// A state of the graph.
pub(super) type StateId = usize;

/// The rules of the grammar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Rule {
    Start,
    Expr,
    Or,
    And,
    Relation,
    Calc,
    Unary,
    Member,
    Primary,
    ExprList,
    ListInit,
    FieldList,
    OptField,
    MapList,
    EscapeIdent,
    OptExpr,
    Literal,
}

/// How many rules there are.
pub(super) const RULES: usize = Rule::Literal as usize + 1;

/// What part of its rule an element is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Label {
    /// A part nobody asks for.
    None,
    /// The first or only expression.
    E,
    /// The second expression, or those after the first of a chain.
    E1,
    /// The third expression.
    E2,
    /// The operator, or the operators of a chain.
    Op,
    /// The question mark of optional syntax.
    Opt,
    /// An identifier.
    Id,
    /// The dot before a name.
    LeadingDot,
    /// The opening parenthesis of a member call.
    Open,
    /// Arguments, elements or entries.
    List,
    /// The colon of an entry.
    Colon,
    /// The key or field of an entry.
    Key,
    /// The value of an entry.
    Value,
    /// The sign of a number.
    Sign,
    /// The word of a constant.
    Word,
}

/// How a way is chosen where there are several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// The first way if the next word can start it, otherwise the second.
    Optional,
    /// The way the next word can start; none is an error.
    ByWord,
    Unary,
    /// Another minus or what follows the chain of them.
    Minus,
    Primary,
    Literal,
    MemberLoop,
    MemberKind,
    RelationLoop,
    CalcLoop,
    CalcKind,
    /// Another element after a comma, or the end of the list.
    Comma,
}

/// The kinds of states that matter to the treatment of errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StateKind {
    Basic,
    /// Before alternatives.
    Block,
    /// Before the alternatives of a loop that runs at least once.
    PlusBlock,
    /// Before the alternatives of a loop that may not run.
    StarBlock,
    /// Before a loop that may not run.
    StarEntry,
    /// Behind a round of it.
    StarBack,
    /// Behind a round of a loop that runs at least once.
    PlusBack,
    RuleStop,
}

/// A way out of a state.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    To(StateId),
    Word { words: Words, label: Label, next: StateId },
    Rule { rule: Rule, precedence: u8, label: Label, next: StateId },
}

#[derive(Clone, Debug)]
pub(super) struct State {
    pub kind: StateKind,
    pub steps: Vec<Step>,
    pub choice: Option<Choice>,
    /// The words that may come next within the rule.
    pub next: Words,
}

#[derive(Debug)]
pub(super) struct Graph {
    states: Vec<State>,
    starts: [StateId; RULES],
    stops: [StateId; RULES],
}

/// An element of a rule.
enum Part {
    Word(Label, Words),
    Rule(Label, Rule, u8),
    Optional(Vec<Part>),
    Star(Choice, Choice, Vec<Vec<Part>>),
    Plus(Choice, Vec<Part>),
    Alternatives(Choice, Vec<Vec<Part>>),
}

static GRAPH: LazyLock<Graph> = LazyLock::new(build);

impl Graph {
    /// The graph of the grammar.
    pub fn get() -> &'static Graph {
        &GRAPH
    }

    #[allow(clippy::indexing_slicing)]
    pub fn state(&self, id: StateId) -> &State {
        // Ids come only from the graph itself.
        &self.states[id]
    }

    pub fn start(&self, rule: Rule) -> StateId {
        self.starts[rule as usize]
    }

    pub fn stop(&self, rule: Rule) -> StateId {
        self.stops[rule as usize]
    }

    /// Where the parser goes on after the rule called at `state`.
    pub fn follow(&self, state: StateId) -> Option<StateId> {
        match self.state(state).steps.first() {
            Some(Step::Rule { next, .. }) => Some(*next),
            _ => None,
        }
    }

    fn add(&mut self, kind: StateKind, steps: Vec<Step>, choice: Option<Choice>) -> StateId {
        self.states.push(State { kind, steps, choice, next: Words::NONE });
        self.states.len() - 1
    }

    /// Adds the states of a sequence that ends at `end`; gives the first.
    fn sequence(&mut self, parts: Vec<Part>, end: StateId) -> StateId {
        parts.into_iter().rev().fold(end, |next, part| self.part(part, next))
    }

    fn part(&mut self, part: Part, next: StateId) -> StateId {
        use StateKind::*;
        match part {
            Part::Word(label, words) => self.add(Basic, vec![Step::Word { words, label, next }], None),
            Part::Rule(label, rule, precedence) => {
                self.add(Basic, vec![Step::Rule { rule, precedence, label, next }], None)
            }
            Part::Optional(inner) => {
                let first = self.sequence(inner, next);
                self.add(Block, vec![Step::To(first), Step::To(next)], Some(Choice::Optional))
            }
            Part::Alternatives(choice, ways) => {
                let steps = ways.into_iter().map(|way| Step::To(self.sequence(way, next))).collect();
                self.add(Block, steps, Some(choice))
            }
            Part::Star(choice, block_choice, ways) => {
                let entry = self.add(StarEntry, Vec::new(), Some(choice));
                let back = self.add(StarBack, vec![Step::To(entry)], None);
                let steps: Vec<Step> = ways.into_iter().map(|way| Step::To(self.sequence(way, back))).collect();
                let block_choice = (steps.len() > 1).then_some(block_choice);
                let block = self.add(StarBlock, steps, block_choice);
                self.states[entry].steps = vec![Step::To(block), Step::To(next)];
                entry
            }
            Part::Plus(choice, inner) => {
                let back = self.add(PlusBack, Vec::new(), Some(choice));
                let first = self.sequence(inner, back);
                let block = self.add(PlusBlock, vec![Step::To(first)], None);
                self.states[back].steps = vec![Step::To(block), Step::To(next)];
                block
            }
        }
    }

    /// The words that may come at `state`. No rule is empty, so what follows a rule's call does not show.
    fn look(&self, state: StateId, seen: &mut Vec<StateId>) -> Words {
        if seen.contains(&state) {
            return Words::NONE;
        }
        seen.push(state);
        if self.states[state].kind == StateKind::RuleStop {
            return Words::RULE_END;
        }
        self.states[state].steps.iter().fold(Words::NONE, |words, step| {
            words
                | match *step {
                    Step::To(next) => self.look(next, seen),
                    Step::Word { words, .. } => words,
                    Step::Rule { rule, .. } => self.look(self.starts[rule as usize], seen),
                }
        })
    }
}

fn word(kind: Kind) -> Part {
    labelled(Label::None, kind)
}

fn labelled(label: Label, kind: Kind) -> Part {
    Part::Word(label, Words::of(&[kind]))
}

fn rule(label: Label, rule: Rule) -> Part {
    Part::Rule(label, rule, 0)
}

/// `head (separator tail)*`
fn separated(choice: Choice, first: Vec<Part>, more: Vec<Part>) -> Vec<Part> {
    let mut parts = first;
    parts.push(Part::Star(choice, choice, vec![more]));
    parts
}

fn optional_question() -> Part {
    Part::Optional(vec![labelled(Label::Opt, Kind::Question)])
}

fn call(label: Label) -> [Part; 3] {
    [labelled(label, Kind::LParen), Part::Optional(vec![rule(Label::List, Rule::ExprList)]), word(Kind::RParen)]
}

fn braces(open: Kind, list: Rule, close: Kind) -> [Part; 4] {
    [
        labelled(Label::Op, open),
        Part::Optional(vec![rule(Label::List, list)]),
        Part::Optional(vec![word(Kind::Comma)]),
        word(close),
    ]
}

fn dotted_ident() -> Vec<Part> {
    vec![Part::Optional(vec![labelled(Label::LeadingDot, Kind::Dot)]), labelled(Label::Id, Kind::Ident)]
}

fn parts(of: Rule) -> Vec<Part> {
    use Label::*;
    match of {
        Rule::Start => vec![rule(E, Rule::Expr), word(Kind::Eof)],
        Rule::Expr => {
            let rest = vec![labelled(Op, Kind::Question), rule(E1, Rule::Or), word(Kind::Colon), rule(E2, Rule::Expr)];
            vec![rule(E, Rule::Or), Part::Optional(rest)]
        }
        Rule::Or => {
            let more = vec![labelled(Op, Kind::Or), rule(E1, Rule::And)];
            separated(Choice::Optional, vec![rule(E, Rule::And)], more)
        }
        Rule::And => {
            let more = vec![labelled(Op, Kind::And), rule(E1, Rule::Relation)];
            separated(Choice::Optional, vec![rule(E, Rule::Relation)], more)
        }
        Rule::Relation => {
            let more = vec![Part::Word(Op, RELATIONS), Part::Rule(E1, Rule::Relation, 2)];
            separated(Choice::RelationLoop, vec![rule(E, Rule::Calc)], more)
        }
        Rule::Calc => {
            let product = vec![Part::Word(Op, PRODUCTS), Part::Rule(E1, Rule::Calc, 3)];
            let sum = vec![Part::Word(Op, SUMS), Part::Rule(E1, Rule::Calc, 2)];
            vec![rule(E, Rule::Unary), Part::Star(Choice::CalcLoop, Choice::CalcKind, vec![product, sum])]
        }
        Rule::Unary => {
            let not = Part::Plus(Choice::Optional, vec![labelled(Op, Kind::Exclam)]);
            let minus = Part::Plus(Choice::Minus, vec![labelled(Op, Kind::Minus)]);
            let ways =
                vec![vec![rule(E, Rule::Member)], vec![not, rule(E, Rule::Member)], vec![minus, rule(E, Rule::Member)]];
            vec![Part::Alternatives(Choice::Unary, ways)]
        }
        Rule::Member => {
            let select = vec![labelled(Op, Kind::Dot), optional_question(), rule(Id, Rule::EscapeIdent)];
            let mut member_call = vec![labelled(Op, Kind::Dot), labelled(Id, Kind::Ident)];
            member_call.extend(call(Open));
            let index =
                vec![labelled(Op, Kind::LBracket), optional_question(), rule(E1, Rule::Expr), word(Kind::RBracket)];
            let ways = vec![select, member_call, index];
            vec![rule(E, Rule::Primary), Part::Star(Choice::MemberLoop, Choice::MemberKind, ways)]
        }
        Rule::Primary => {
            let mut global_call = dotted_ident();
            global_call.extend(call(Op));
            let mut message = dotted_ident();
            let more = vec![word(Kind::Dot), labelled(Id, Kind::Ident)];
            message.push(Part::Star(Choice::Optional, Choice::Optional, vec![more]));
            message.extend(braces(Kind::LBrace, Rule::FieldList, Kind::RBrace));
            let ways = vec![
                dotted_ident(),
                global_call,
                vec![word(Kind::LParen), rule(E, Rule::Expr), word(Kind::RParen)],
                braces(Kind::LBracket, Rule::ListInit, Kind::RBracket).into(),
                braces(Kind::LBrace, Rule::MapList, Kind::RBrace).into(),
                message,
                vec![rule(E, Rule::Literal)],
            ];
            vec![Part::Alternatives(Choice::Primary, ways)]
        }
        Rule::ExprList => {
            separated(Choice::Optional, vec![rule(E, Rule::Expr)], vec![word(Kind::Comma), rule(E, Rule::Expr)])
        }
        Rule::ListInit => {
            separated(Choice::Comma, vec![rule(E, Rule::OptExpr)], vec![word(Kind::Comma), rule(E, Rule::OptExpr)])
        }
        Rule::FieldList | Rule::MapList => {
            let key = if of == Rule::FieldList { Rule::OptField } else { Rule::OptExpr };
            let entry = || [rule(Key, key), labelled(Colon, Kind::Colon), rule(Value, Rule::Expr)];
            let mut more = vec![word(Kind::Comma)];
            more.extend(entry());
            separated(Choice::Comma, entry().into(), more)
        }
        Rule::OptField => vec![optional_question(), rule(Id, Rule::EscapeIdent)],
        Rule::EscapeIdent => {
            let ways = vec![vec![labelled(Id, Kind::Ident)], vec![labelled(Id, Kind::EscapedIdent)]];
            vec![Part::Alternatives(Choice::ByWord, ways)]
        }
        Rule::OptExpr => vec![optional_question(), rule(E, Rule::Expr)],
        Rule::Literal => {
            let signed = |kind| vec![Part::Optional(vec![labelled(Sign, Kind::Minus)]), labelled(Word, kind)];
            let kinds = [Kind::String, Kind::Bytes, Kind::True, Kind::False, Kind::Null];
            let mut ways = vec![signed(Kind::Int), vec![labelled(Word, Kind::Uint)], signed(Kind::Float)];
            ways.extend(kinds.map(|kind| vec![labelled(Word, kind)]));
            vec![Part::Alternatives(Choice::Literal, ways)]
        }
    }
}

/// The words of relations.
pub(super) const RELATIONS: Words = Words::of(&[
    Kind::Equals,
    Kind::NotEquals,
    Kind::In,
    Kind::Less,
    Kind::LessEquals,
    Kind::GreaterEquals,
    Kind::Greater,
]);

/// The words of products.
pub(super) const PRODUCTS: Words = Words::of(&[Kind::Star, Kind::Slash, Kind::Percent]);

/// The words of sums.
pub(super) const SUMS: Words = Words::of(&[Kind::Plus, Kind::Minus]);

fn build() -> Graph {
    const ALL: [Rule; RULES] = [
        Rule::Start,
        Rule::Expr,
        Rule::Or,
        Rule::And,
        Rule::Relation,
        Rule::Calc,
        Rule::Unary,
        Rule::Member,
        Rule::Primary,
        Rule::ExprList,
        Rule::ListInit,
        Rule::FieldList,
        Rule::OptField,
        Rule::MapList,
        Rule::EscapeIdent,
        Rule::OptExpr,
        Rule::Literal,
    ];
    let mut graph = Graph { states: Vec::new(), starts: [0; RULES], stops: [0; RULES] };
    for of in ALL {
        let stop = graph.add(StateKind::RuleStop, Vec::new(), None);
        graph.stops[of as usize] = stop;
        graph.starts[of as usize] = graph.sequence(parts(of), stop);
    }
    for id in 0..graph.states.len() {
        graph.states[id].next = graph.look(id, &mut Vec::new());
    }
    graph
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_an_expression_starts_with() {
        let graph = Graph::get();
        assert_eq!(
            graph.state(graph.start(Rule::Expr)).next.to_string(),
            "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
        );
        assert_eq!(graph.state(graph.start(Rule::EscapeIdent)).next.to_string(), "{IDENTIFIER, ESC_IDENTIFIER}");
    }
}
