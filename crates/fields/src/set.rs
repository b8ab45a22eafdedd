//! Sets of fields.

use crate::path::{FieldPath, PathElement};
use std::cmp::Ordering;

/// A set of paths: a trie whose nodes are sorted, so that every operation on two sets is one merge of both.
///
/// A node is a *member* (its path is in the set), has children, or both; a node that is neither does not exist. The
/// object itself is never a member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSet {
    nodes: Vec<Node>,
}

/// A step within a [`FieldSet`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// The step.
    pub element: PathElement,
    /// Whether the path that ends here is in the set.
    pub member: bool,
    /// What is in the set below.
    pub children: FieldSet,
}

impl FieldSet {
    /// The empty set.
    pub const fn new() -> Self {
        FieldSet { nodes: Vec::new() }
    }

    /// The empty set with room for so many nodes.
    pub(crate) fn with_capacity(nodes: usize) -> Self {
        FieldSet { nodes: Vec::with_capacity(nodes) }
    }

    /// The set of some paths.
    pub fn of<'p>(paths: impl IntoIterator<Item = &'p FieldPath>) -> Self {
        let mut set = FieldSet::new();
        for path in paths {
            set.insert(path.elements());
        }
        set
    }

    /// Whether there is no member.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// How many members there are.
    pub fn len(&self) -> usize {
        self.nodes.iter().map(|n| usize::from(n.member) + n.children.len()).sum()
    }

    /// The nodes of this level, in order.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Adds one path; parents do not become members. The empty path is the object itself and is not kept.
    pub fn insert(&mut self, path: &[PathElement]) {
        let Some((first, rest)) = path.split_first() else { return };
        let i = match self.find(first) {
            Ok(i) => i,
            Err(i) => {
                self.nodes.insert(i, Node { element: first.clone(), member: false, children: FieldSet::new() });
                i
            }
        };
        match rest {
            [] => self.nodes[i].member = true,
            _ => self.nodes[i].children.insert(rest),
        }
    }

    /// Adds a node whose element comes after all others; one that is neither member nor has children is left out.
    pub(crate) fn push(&mut self, element: PathElement, member: bool, children: FieldSet) {
        if member || !children.is_empty() {
            debug_assert!(self.nodes.last().is_none_or(|n| n.element < element));
            self.nodes.push(Node { element, member, children });
        }
    }

    /// Takes nodes in any order; of equal elements everything is kept in one node.
    pub(crate) fn from_nodes(mut nodes: Vec<Node>) -> Self {
        nodes.retain(|n| n.member || !n.children.is_empty());
        if nodes.windows(2).any(|w| w[0].element >= w[1].element) {
            nodes.sort_by(|a, b| a.element.cmp(&b.element));
            nodes.dedup_by(|later, kept| {
                let same = later.element == kept.element;
                if same {
                    kept.member |= later.member;
                    kept.children = kept.children.union(&later.children);
                }
                same
            });
        }
        FieldSet { nodes }
    }

    /// Whether the path is a member.
    pub fn has(&self, path: &[PathElement]) -> bool {
        match path {
            [] => false,
            [last] => self.get(last).is_some_and(|n| n.member),
            [first, rest @ ..] => self.get(first).is_some_and(|n| n.children.has(rest)),
        }
    }

    /// The node of an element.
    pub fn get(&self, element: &PathElement) -> Option<&Node> {
        self.find(element).ok().map(|i| &self.nodes[i])
    }

    /// The members below an element, seen from there.
    pub fn below(&self, element: &PathElement) -> Option<&FieldSet> {
        self.get(element).map(|n| &n.children).filter(|c| !c.is_empty())
    }

    fn find(&self, element: &PathElement) -> Result<usize, usize> {
        // Sets are mostly built and read in order: look at the end first.
        match self.nodes.last().map(|n| n.element.cmp(element)) {
            None => Err(0),
            Some(Ordering::Less) => Err(self.nodes.len()),
            Some(Ordering::Equal) => Ok(self.nodes.len() - 1),
            Some(Ordering::Greater) => self.nodes.binary_search_by(|n| n.element.cmp(element)),
        }
    }

    /// What is in either set.
    pub fn union(&self, other: &FieldSet) -> FieldSet {
        if other.is_empty() {
            return self.clone();
        }
        if self.is_empty() {
            return other.clone();
        }
        let mut out = Vec::with_capacity(self.nodes.len().max(other.nodes.len()));
        zip(self, other, |a, b| match (a, b) {
            (Some(a), Some(b)) => out.push(Node {
                element: a.element.clone(),
                member: a.member || b.member,
                children: a.children.union(&b.children),
            }),
            (Some(only), None) | (None, Some(only)) => out.push(only.clone()),
            (None, None) => {}
        });
        FieldSet { nodes: out }
    }

    /// What is in both sets; elements are those of `self`.
    pub fn intersection(&self, other: &FieldSet) -> FieldSet {
        let mut out = FieldSet::new();
        if !self.is_empty() && !other.is_empty() {
            zip(self, other, |a, b| {
                if let (Some(a), Some(b)) = (a, b) {
                    out.push(a.element.clone(), a.member && b.member, a.children.intersection(&b.children));
                }
            });
        }
        out
    }

    /// What is in `self` and not in `other`. A member of `other` does not take away what is below it.
    pub fn difference(&self, other: &FieldSet) -> FieldSet {
        self.subtract(other, false)
    }

    /// What is in `self` and neither in `other` nor below a member of `other`.
    pub fn recursive_difference(&self, other: &FieldSet) -> FieldSet {
        self.subtract(other, true)
    }

    fn subtract(&self, other: &FieldSet, recursive: bool) -> FieldSet {
        if self.is_empty() || other.is_empty() {
            return self.clone();
        }
        let mut out = FieldSet::new();
        zip(self, other, |a, b| match (a, b) {
            (Some(a), Some(b)) => {
                let children =
                    if recursive && b.member { FieldSet::new() } else { a.children.subtract(&b.children, recursive) };
                out.push(a.element.clone(), a.member && !b.member, children);
            }
            (Some(a), None) => out.nodes.push(a.clone()),
            (None, _) => {}
        });
        out
    }

    /// Takes the members of `other` away, and with `recursive` what is below them.
    pub(crate) fn take_away(&mut self, other: &FieldSet, recursive: bool) {
        let mut emptied = false;
        for b in &other.nodes {
            let Ok(i) = self.find(&b.element) else { continue };
            let a = &mut self.nodes[i];
            a.member &= !b.member;
            if b.member && recursive {
                a.children = FieldSet::new();
            }
            a.children.take_away(&b.children, recursive);
            emptied |= !a.member && a.children.is_empty();
        }
        if emptied {
            self.nodes.retain(|n| n.member || !n.children.is_empty());
        }
    }

    /// Whether some path is in both sets.
    pub fn intersects(&self, other: &FieldSet) -> bool {
        let mut found = false;
        zip(self, other, |a, b| {
            if let (false, Some(a), Some(b)) = (found, a, b) {
                found = a.member && b.member || a.children.intersects(&b.children);
            }
        });
        found
    }

    /// Whether every path of `self` is in `other`.
    pub fn is_subset(&self, other: &FieldSet) -> bool {
        let mut subset = true;
        zip(self, other, |a, b| {
            subset = subset
                && match (a, b) {
                    (Some(a), Some(b)) => (!a.member || b.member) && a.children.is_subset(&b.children),
                    (Some(_), None) => false,
                    (None, _) => true,
                };
        });
        subset
    }

    /// Whether there is a list item, named by its keys, of which nothing is below.
    pub fn has_bare_items(&self) -> bool {
        let is_bare = |n: &Node| n.children.is_empty() && matches!(n.element, PathElement::Key(_));
        self.nodes.iter().any(|n| is_bare(n) || n.children.has_bare_items())
    }

    /// The members that have no members below them.
    pub fn leaves(&self) -> FieldSet {
        let mut out = FieldSet::new();
        for n in &self.nodes {
            out.push(n.element.clone(), n.member && n.children.is_empty(), n.children.leaves());
        }
        out
    }

    /// The members' paths: on each level the members first, then what is below, as upstream walks a set.
    pub fn paths(&self) -> Vec<FieldPath> {
        let mut out = Vec::new();
        self.collect(&mut Vec::new(), &mut out);
        out
    }

    fn collect(&self, prefix: &mut Vec<PathElement>, out: &mut Vec<FieldPath>) {
        for n in self.nodes.iter().filter(|n| n.member) {
            let mut path = prefix.clone();
            path.push(n.element.clone());
            out.push(FieldPath(path));
        }
        for n in self.nodes.iter().filter(|n| !n.children.is_empty()) {
            prefix.push(n.element.clone());
            n.children.collect(prefix, out);
            prefix.pop();
        }
    }
}

/// Walks two sorted levels together; `visit` sees each element once, with the nodes of both sides.
fn zip<'s>(a: &'s FieldSet, b: &'s FieldSet, mut visit: impl FnMut(Option<&'s Node>, Option<&'s Node>)) {
    let (mut i, mut j) = (0, 0);
    loop {
        match (a.nodes.get(i), b.nodes.get(j)) {
            (None, None) => return,
            (Some(x), None) => {
                visit(Some(x), None);
                i += 1;
            }
            (None, Some(y)) => {
                visit(None, Some(y));
                j += 1;
            }
            (Some(x), Some(y)) => match x.element.cmp(&y.element) {
                Ordering::Less => {
                    visit(Some(x), None);
                    i += 1;
                }
                Ordering::Greater => {
                    visit(None, Some(y));
                    j += 1;
                }
                Ordering::Equal => {
                    visit(Some(x), Some(y));
                    i += 1;
                    j += 1;
                }
            },
        }
    }
}

/// Which fields an endpoint may own at all; the rest is taken out of every comparison and set.
#[derive(Clone, Debug, PartialEq)]
pub enum FieldFilter {
    /// Everything but these fields and what is below them (upstream's reset fields).
    Exclude(FieldSet),
    /// Only what one of these patterns leads to: the steps towards it, itself, and all below it.
    Include(Vec<Vec<Pattern>>),
}

/// A step of a [`FieldFilter::Include`] pattern.
#[derive(Clone, Debug, PartialEq)]
pub enum Pattern {
    /// Any element.
    Any,
    /// This element.
    Is(PathElement),
}

impl FieldFilter {
    /// The part of a set that passes.
    pub fn filter(&self, mut set: FieldSet) -> FieldSet {
        match self {
            FieldFilter::Exclude(fields) => {
                set.take_away(fields, true);
                set
            }
            FieldFilter::Include(patterns) => {
                let patterns: Vec<&[Pattern]> = patterns.iter().map(Vec::as_slice).collect();
                include(set, &patterns)
            }
        }
    }
}

fn include(set: FieldSet, patterns: &[&[Pattern]]) -> FieldSet {
    if patterns.iter().any(|p| p.is_empty()) {
        return set;
    }
    let mut out = FieldSet::new();
    for node in set.nodes {
        let rest: Vec<&[Pattern]> = patterns
            .iter()
            .filter_map(|p| match p.split_first() {
                Some((Pattern::Any, rest)) => Some(rest),
                Some((Pattern::Is(e), rest)) if *e == node.element => Some(rest),
                _ => None,
            })
            .collect();
        if !rest.is_empty() {
            let children = include(node.children, &rest);
            out.push(node.element, node.member, children);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(paths: &[&[&str]]) -> FieldSet {
        FieldSet::of(&paths.iter().map(|p| FieldPath::fields(p)).collect::<Vec<_>>())
    }

    fn show(s: &FieldSet) -> Vec<String> {
        s.paths().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn algebra_works_on_members_and_keeps_parents_apart() {
        let a = set(&[&["a"], &["a", "x"], &["b", "y"]]);
        let b = set(&[&["a"], &["b", "y"], &["c"]]);
        assert_eq!(show(&a.union(&b)), [".a", ".c", ".a.x", ".b.y"]);
        assert_eq!(show(&a.intersection(&b)), [".a", ".b.y"]);
        assert_eq!(show(&a.difference(&b)), [".a.x"]);
        assert_eq!(show(&a.recursive_difference(&b)), Vec::<String>::new());
        assert_eq!(show(&a.leaves()), [".a.x", ".b.y"]);
        assert!(a.intersects(&b) && !set(&[&["a", "z"]]).intersects(&b));
        assert!(set(&[&["a"]]).is_subset(&a) && !b.is_subset(&a));
        assert_eq!(a.len(), 3);
        assert!(a.has(FieldPath::fields(&["b", "y"]).elements()) && !a.has(FieldPath::fields(&["b"]).elements()));
    }

    #[test]
    fn an_include_filter_keeps_the_steps_towards_its_fields() {
        let s = set(&[&["spec"], &["spec", "c", "r"], &["spec", "c", "x"], &["spec", "d", "r", "q"], &["status"]]);
        let filter = FieldFilter::Include(vec![vec![
            Pattern::Is(PathElement::field("spec")),
            Pattern::Any,
            Pattern::Is(PathElement::field("r")),
        ]]);
        assert_eq!(show(&filter.filter(s.clone())), [".spec", ".spec.c.r", ".spec.d.r.q"]);
        let exclude = FieldFilter::Exclude(set(&[&["spec", "c"], &["status"]]));
        assert_eq!(show(&exclude.filter(s)), [".spec", ".spec.d.r.q"]);
    }
}
