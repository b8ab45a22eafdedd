//! The parse tree of a wrong text, with what error recovery left of it.

use super::graph::{Label, Rule};

/// A node's number.
pub(super) type NodeId = usize;

/// A word of the tree: one of the text or one made up in its place.
#[derive(Clone, Debug)]
pub(super) struct Leaf {
    /// The first byte, or that of the word a made-up word stands before.
    pub at: u32,
    pub text: String,
}

/// A part of a node.
#[derive(Clone, Debug)]
pub(super) enum Child {
    Node(NodeId),
    Leaf(Leaf),
}

/// What a rule was applied to.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub rule: Rule,
    /// The way taken where the rule has several, from 1; 0 when it was not decided.
    pub way: usize,
    /// The first byte.
    pub start: u32,
    pub children: Vec<(Label, Child)>,
}

/// The nodes.
#[derive(Debug, Default)]
pub(super) struct Tree {
    nodes: Vec<Node>,
}

impl Tree {
    pub fn add(&mut self, rule: Rule, start: u32) -> NodeId {
        self.nodes.push(Node { rule, way: 0, start, children: Vec::new() });
        self.nodes.len() - 1
    }

    pub fn get(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(id)
    }

    pub fn get_mut(&mut self, id: NodeId) -> Option<&mut Node> {
        self.nodes.get_mut(id)
    }
}

impl Node {
    /// The sub-nodes with a label, in order.
    pub fn nodes(&self, label: Label) -> impl Iterator<Item = NodeId> {
        self.children.iter().filter_map(move |(l, child)| match child {
            Child::Node(id) if *l == label => Some(*id),
            _ => None,
        })
    }

    /// The words with a label, in order.
    pub fn leaves(&self, label: Label) -> impl Iterator<Item = &Leaf> {
        self.children.iter().filter_map(move |(l, child)| match child {
            Child::Leaf(leaf) if *l == label => Some(leaf),
            _ => None,
        })
    }

    pub fn node(&self, label: Label) -> Option<NodeId> {
        self.nodes(label).next()
    }

    pub fn leaf(&self, label: Label) -> Option<&Leaf> {
        self.leaves(label).next()
    }
}
