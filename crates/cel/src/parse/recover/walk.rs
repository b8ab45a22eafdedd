//! Walks a wrong text through the grammar, reporting and recovering as ANTLR's parsers do.
//!
//! This is the default error strategy of ANTLR 4 with cel-go's limits: on a wrong word it tries to delete it or to make
//! up the missing one, and otherwise skips to a word that can follow one of the rules under way. The walk keeps its own
//! stack, so nesting is limited only by the checks.

use super::graph::{Choice, Graph, Label, RULES, Rule, StateId, StateKind, Step};
use super::report::{Halt, Report};
use super::stream::Stream;
use super::tree::{Child, Leaf, NodeId, Tree};
use super::words::Words;
use crate::parse::MAX_DEPTH;
use crate::parse::lexer::{Kind, Token};

/// How often the parser tries to recover.
const MAX_RECOVERIES: u32 = 30;
/// How many words one recovery may skip.
const MAX_SKIPPED: u32 = 256;

/// Why a rule cannot go on.
#[derive(Debug)]
pub(super) enum Failure {
    /// No way fits the words from the first to the second.
    NoWay(Token, Token),
    Mismatch,
    Halt,
}

impl From<Halt> for Failure {
    fn from(Halt: Halt) -> Self {
        Failure::Halt
    }
}

/// A rule under way.
struct Frame {
    rule: Rule,
    node: NodeId,
    /// The state that called the rule; none for the first.
    caller: Option<StateId>,
    precedence: u8,
    label: Label,
}

pub(super) struct Walk<'t, 'r> {
    pub(super) graph: &'static Graph,
    pub(super) stream: Stream<'t>,
    pub(super) report: &'r mut Report<'t>,
    tree: Tree,
    frames: Vec<Frame>,
    /// How many rules of each kind are under way.
    depths: [u32; RULES],
    /// The state errors are judged by.
    state: StateId,
    recovering: bool,
    /// Where the last recovery ended, and in which states one ended there.
    last_error: Option<(usize, Vec<StateId>)>,
    recoveries: u32,
    /// Words skipped by the recovery under way, if one is.
    skipped: Option<u32>,
}

/// Parses as far as recovery reaches; gives the tree and its root.
pub(super) fn walk<'t>(text: &'t str, report: &mut Report<'t>) -> Result<(Tree, NodeId), Halt> {
    let graph = Graph::get();
    let mut walk = Walk {
        graph,
        stream: Stream::new(text),
        report,
        tree: Tree::default(),
        frames: Vec::new(),
        depths: [0; RULES],
        state: graph.start(Rule::Start),
        recovering: false,
        last_error: None,
        recoveries: 0,
        skipped: None,
    };
    let root = walk.run()?;
    Ok((walk.tree, root))
}

impl Walk<'_, '_> {
    pub(super) fn peek(&mut self, ahead: usize) -> Result<Token, Halt> {
        self.stream.peek(ahead, self.report)
    }

    pub(super) fn precedence(&self) -> u8 {
        self.frames.last().map_or(0, |frame| frame.precedence)
    }

    fn run(&mut self) -> Result<NodeId, Halt> {
        let mut root = self.enter(Rule::Start, None, 0, Label::None)?;
        let mut at = self.graph.start(Rule::Start);
        loop {
            at = match self.step(at) {
                Ok(Some(next)) => next,
                Ok(None) => return Ok(root),
                Err(Failure::Halt) => return Err(Halt),
                Err(failure) => {
                    self.report_failure(failure)?;
                    self.recover()?;
                    match self.frames.last() {
                        Some(frame) => self.graph.stop(frame.rule),
                        None => return Ok(root),
                    }
                }
            };
            if let [frame] = self.frames.as_slice() {
                root = frame.node;
            }
        }
    }

    /// Takes one step; gives the next state, none at the end.
    fn step(&mut self, at: StateId) -> Result<Option<StateId>, Failure> {
        let graph = self.graph;
        let state = graph.state(at);
        match state.kind {
            StateKind::RuleStop => return Ok(self.leave()),
            StateKind::StarBack | StateKind::PlusBack => {
                self.state = at;
                self.sync()?;
                let entry = if state.kind == StateKind::StarBack { target(state.steps.first()) } else { at };
                return self.choose(entry).map(Some);
            }
            StateKind::StarEntry | StateKind::Block => {
                self.state = at;
                self.sync()?;
                return self.choose(at).map(Some);
            }
            StateKind::StarBlock if state.choice.is_some() => {
                self.state = at;
                self.sync()?;
                let next = self.choose(at)?;
                return Ok(Some(next));
            }
            StateKind::PlusBlock => {
                self.state = at;
                self.sync()?;
            }
            StateKind::StarBlock | StateKind::Basic => {}
        }
        match state.steps.first() {
            Some(&Step::To(next)) => Ok(Some(next)),
            Some(&Step::Word { words, label, next }) => {
                self.state = at;
                let leaf = self.match_word(words)?;
                self.attach(label, Child::Leaf(leaf));
                Ok(Some(next))
            }
            Some(&Step::Rule { rule, precedence, label, .. }) => {
                self.enter(rule, Some(at), precedence, label)?;
                Ok(Some(graph.start(rule)))
            }
            None => Ok(None),
        }
    }

    /// Chooses a way at a state and notes it where the tree needs to know.
    fn choose(&mut self, at: StateId) -> Result<StateId, Failure> {
        let graph = self.graph;
        let state = graph.state(at);
        let way = self.way(state)?;
        match state.choice {
            Some(Choice::Unary | Choice::Primary | Choice::Literal | Choice::ByWord) => self.set_way(way + 1),
            Some(Choice::MemberKind | Choice::CalcKind) => {
                self.wrap();
                self.set_way(way + 1);
            }
            Some(Choice::RelationLoop) if way == 0 => self.wrap(),
            _ => {}
        }
        let next = target(state.steps.get(way));
        // A loop that runs again does not judge its start anew.
        let block = graph.state(next);
        Ok(if block.kind == StateKind::PlusBlock { target(block.steps.first()) } else { next })
    }

    fn set_way(&mut self, way: usize) {
        if let Some(node) = self.frames.last().and_then(|frame| self.tree.get_mut(frame.node)) {
            node.way = way;
        }
    }

    /// Makes the node so far the first part of a new one, as left recursion would.
    fn wrap(&mut self) {
        if let Some(frame) = self.frames.last_mut() {
            let start = self.tree.get(frame.node).map_or(0, |node| node.start);
            let outer = self.tree.add(frame.rule, start);
            if let Some(node) = self.tree.get_mut(outer) {
                node.children.push((Label::E, Child::Node(frame.node)));
            }
            frame.node = outer;
        }
    }

    fn attach(&mut self, label: Label, child: Child) {
        if let Some(node) = self.frames.last().and_then(|frame| self.tree.get_mut(frame.node)) {
            node.children.push((label, child));
        }
    }

    fn enter(&mut self, rule: Rule, caller: Option<StateId>, precedence: u8, label: Label) -> Result<NodeId, Halt> {
        let depth = self.depths.get_mut(rule as usize).map(|depth| {
            *depth += 1;
            *depth
        });
        let start = self.peek(0)?.start;
        if depth > Some(MAX_DEPTH) {
            return Err(self.report.limit(format!("expression recursion limit exceeded: {MAX_DEPTH}")));
        }
        let node = self.tree.add(rule, start);
        self.frames.push(Frame { rule, node, caller, precedence, label });
        self.state = self.graph.start(rule);
        Ok(node)
    }

    /// Ends the current rule; gives where its caller goes on.
    fn leave(&mut self) -> Option<StateId> {
        let frame = self.frames.pop()?;
        if let Some(depth) = self.depths.get_mut(frame.rule as usize) {
            *depth = depth.saturating_sub(1);
        }
        let caller = frame.caller?;
        self.state = caller;
        self.attach(frame.label, Child::Node(frame.node));
        self.graph.follow(caller)
    }

    fn leaf(&self, token: Token) -> Leaf {
        Leaf { at: token.start, text: self.stream.text(token).to_owned() }
    }

    fn match_word(&mut self, words: Words) -> Result<Leaf, Failure> {
        let token = self.peek(0)?;
        if words.has(token.kind) {
            self.matched();
            self.advance()?;
            return Ok(self.leaf(token));
        }
        self.count_recovery()?;
        self.skipped = Some(0);
        let found = self.recover_inline();
        self.skipped = None;
        found
    }

    fn recover_inline(&mut self) -> Result<Leaf, Failure> {
        if let Some(token) = self.delete_word()? {
            self.advance()?;
            return Ok(self.leaf(token));
        }
        let current = self.peek(0)?;
        let behind = match self.graph.state(self.state).steps.first() {
            Some(Step::To(next) | Step::Word { next, .. } | Step::Rule { next, .. }) => *next,
            None => return Err(Failure::Mismatch),
        };
        if !self.expected_at(behind).has(current.kind) {
            return Err(Failure::Mismatch);
        }
        let expected = self.expected();
        if !self.recovering {
            self.recovering = true;
            let found = self.display(current);
            self.report.syntax_error(current.start, format!("missing {expected} at {found}"))?;
        }
        let missing = expected.first();
        let text = match missing {
            Kind::Eof => "<missing EOF>".to_owned(),
            kind if (kind as u8) < Kind::Hidden as u8 => format!("<missing {kind}>"),
            _ => "<missing undefined>".to_owned(),
        };
        let near = if current.kind == Kind::Eof { self.stream.previous().unwrap_or(current) } else { current };
        Ok(Leaf { at: near.start, text })
    }

    fn matched(&mut self) {
        self.recovering = false;
        self.last_error = None;
    }

    /// Takes the current word away; a recovery may take only so many.
    fn advance(&mut self) -> Result<(), Halt> {
        if let Some(skipped) = &mut self.skipped {
            if *skipped >= MAX_SKIPPED {
                let message = format!("error recovery token lookahead limit exceeded: {MAX_SKIPPED}");
                return Err(self.report.limit(message));
            }
            *skipped += 1;
        }
        self.stream.advance(self.report)?;
        Ok(())
    }

    /// Deletes the current word if the next one is expected; gives that one.
    fn delete_word(&mut self) -> Result<Option<Token>, Halt> {
        let second = self.peek(1)?;
        if !self.expected().has(second.kind) {
            return Ok(None);
        }
        self.report_unwanted()?;
        self.advance()?;
        self.matched();
        self.peek(0).map(Some)
    }

    fn report_unwanted(&mut self) -> Result<(), Halt> {
        if self.recovering {
            return Ok(());
        }
        self.recovering = true;
        let token = self.peek(0)?;
        let message = format!("extraneous input {} expecting {}", self.display(token), self.expected());
        self.report.syntax_error(token.start, message)
    }

    fn report_failure(&mut self, failure: Failure) -> Result<(), Halt> {
        if self.recovering {
            return Ok(());
        }
        self.recovering = true;
        match failure {
            Failure::Halt => Err(Halt),
            Failure::NoWay(first, last) => {
                let input =
                    if first.kind == Kind::Eof { "<EOF>".to_owned() } else { self.stream.text_between(first, last) };
                self.report.syntax_error(last.start, format!("no viable alternative at input {}", quote(&input)))
            }
            Failure::Mismatch => {
                let token = self.peek(0)?;
                let message = format!("mismatched input {} expecting {}", self.display(token), self.expected());
                self.report.syntax_error(token.start, message)
            }
        }
    }

    fn count_recovery(&mut self) -> Result<(), Halt> {
        if self.recoveries == MAX_RECOVERIES {
            let at = self.peek(0)?.start;
            self.report.syntax_error(at, format!("error recovery attempt limit exceeded: {MAX_RECOVERIES}"))?;
            return Err(Halt);
        }
        self.recoveries += 1;
        Ok(())
    }

    /// Skips to a word that can follow one of the rules under way.
    fn recover(&mut self) -> Result<(), Halt> {
        self.count_recovery()?;
        self.skipped = Some(0);
        let index = self.stream.index();
        let stuck = self.last_error.as_ref().is_some_and(|(at, states)| *at == index && states.contains(&self.state));
        if stuck {
            self.advance()?;
        }
        let index = self.stream.index();
        match &mut self.last_error {
            Some((at, states)) => {
                *at = index;
                states.push(self.state);
            }
            None => self.last_error = Some((index, vec![self.state])),
        }
        self.skip_to(self.recovery_set())?;
        self.skipped = None;
        Ok(())
    }

    fn skip_to(&mut self, words: Words) -> Result<(), Halt> {
        loop {
            let kind = self.peek(0)?.kind;
            if kind == Kind::Eof || words.has(kind) {
                return Ok(());
            }
            self.advance()?;
        }
    }

    /// What can follow the rules under way.
    fn recovery_set(&self) -> Words {
        let follows = self.frames.iter().filter_map(|frame| self.graph.follow(frame.caller?));
        follows.fold(Words::NONE, |words, state| words | self.graph.state(state).next).without_rule_end()
    }

    /// The words expected at the current state.
    fn expected(&self) -> Words {
        self.expected_at(self.state)
    }

    /// The words expected at a state of the current rule, with what follows the rule if it may end there.
    fn expected_at(&self, state: StateId) -> Words {
        let mut next = self.graph.state(state).next;
        let mut expected = next.without_rule_end();
        for frame in self.frames.iter().rev() {
            if !next.has_rule_end() {
                return expected;
            }
            let Some(follow) = frame.caller.and_then(|caller| self.graph.follow(caller)) else { break };
            next = self.graph.state(follow).next;
            expected |= next.without_rule_end();
        }
        if next.has_rule_end() { expected | Words::of(&[Kind::Eof]) } else { expected }
    }

    /// Checks the current word at the start of a choice or loop, and behind each round of a loop.
    fn sync(&mut self) -> Result<(), Failure> {
        if self.recovering {
            return Ok(());
        }
        let kind = self.peek(0)?.kind;
        let state = self.graph.state(self.state);
        if state.next.has_rule_end() || state.next.has(kind) {
            return Ok(());
        }
        match state.kind {
            StateKind::Block | StateKind::StarBlock | StateKind::PlusBlock | StateKind::StarEntry => {
                if self.delete_word()?.is_some() { Ok(()) } else { Err(Failure::Mismatch) }
            }
            StateKind::PlusBack | StateKind::StarBack => {
                self.report_unwanted()?;
                let words = self.expected() | self.recovery_set();
                Ok(self.skip_to(words)?)
            }
            StateKind::Basic | StateKind::RuleStop => Ok(()),
        }
    }

    fn display(&self, token: Token) -> String {
        match self.stream.text(token) {
            "" => "'<EOF>'".to_owned(),
            text => quote(text),
        }
    }
}

fn target(step: Option<&Step>) -> StateId {
    match step {
        Some(Step::To(next) | Step::Word { next, .. } | Step::Rule { next, .. }) => *next,
        None => 0,
    }
}

fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\t', "\\t").replace('\n', "\\n").replace('\r', "\\r"))
}
