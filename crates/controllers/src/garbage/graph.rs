//! Who owns whom.
//!
//! The graph knows every object by its uid; what it does not know but heard of in a reference is a virtual node until
//! somebody has looked. It follows upstream's `GraphBuilder`, event by event: [`Graph::seen`], [`Graph::gone`],
//! [`Graph::absent`].

use super::absent::Absent;
use super::identity::{Coordinates, Identity, Reference, Type, Uid};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// What an object says of itself.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) uid: Uid,
    pub(super) ty: Arc<Type>,
    pub(super) key: Arc<str>,
    pub(super) owners: Vec<Reference>,
    pub(super) deletion: Deletion,
}

/// How far an object's deletion is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Deletion {
    /// It has a time of deletion.
    pub(super) began: bool,
    /// Besides, its dependents have to be orphaned first.
    pub(super) orphans: bool,
    /// Besides, its dependents have to be deleted first.
    pub(super) foreground: bool,
}

/// What a change of the graph asks for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Effects {
    /// Objects to be looked at: should they be deleted?
    pub(super) look: Vec<Uid>,
    /// The same for what was only heard of: in a moment, as what is missing may be on its way.
    pub(super) look_soon: Vec<Uid>,
    /// The same, after a while.
    pub(super) look_later: Vec<Uid>,
    /// Objects whose dependents are to be orphaned.
    pub(super) orphan: Vec<Uid>,
    /// References across namespaces: the dependent and the owner that it names.
    pub(super) reports: Vec<(Coordinates, Coordinates)>,
}

/// An object.
#[derive(Debug)]
struct Node {
    identity: Identity,
    /// It was heard of, not seen.
    virtual_: bool,
    /// How far its deletion was when it was last seen.
    deletion: Deletion,
    /// It is being deleted. That never changes back.
    deleting: bool,
    /// Its dependents are being deleted. That never changes back.
    deleting_dependents: bool,
    /// Most objects have neither owners nor dependents.
    links: Option<Box<Links>>,
}

#[derive(Debug, Default)]
struct Links {
    owners: Vec<Reference>,
    /// The dependents, and whether the owner's deletion in the foreground waits for each.
    dependents: HashMap<Uid, bool>,
    /// How many of them it waits for.
    blocking: usize,
    /// Those whose reference is new or changed since somebody last looked at them.
    fresh: BTreeSet<Uid>,
    /// Those that were there when the owner's deletion in the foreground began and were not looked at since.
    unlooked: BTreeSet<Uid>,
}

impl Node {
    fn new(identity: Identity, virtual_: bool) -> Self {
        let deletion = Deletion::default();
        Node { identity, virtual_, deletion, deleting: false, deleting_dependents: false, links: None }
    }

    fn owners(&self) -> &[Reference] {
        self.links.as_ref().map(|l| l.owners.as_slice()).unwrap_or_default()
    }

    fn dependents(&self) -> impl Iterator<Item = &Uid> {
        self.links.iter().flat_map(|l| l.dependents.keys())
    }

    fn has_dependents(&self) -> bool {
        self.links.as_ref().is_some_and(|l| !l.dependents.is_empty())
    }

    fn links_mut(&mut self) -> &mut Links {
        self.links.get_or_insert_default()
    }

    fn tidy(&mut self) {
        if self.links.as_ref().is_some_and(|l| l.owners.is_empty() && l.dependents.is_empty()) {
            self.links = None;
        }
    }
}

impl Links {
    fn put(&mut self, dependent: &Uid, blocks: bool) {
        let before = self.dependents.insert(dependent.clone(), blocks);
        self.blocking += usize::from(blocks);
        self.blocking -= usize::from(before == Some(true));
        self.fresh.insert(dependent.clone());
    }

    fn remove(&mut self, dependent: &Uid) {
        self.blocking -= usize::from(self.dependents.remove(dependent) == Some(true));
        self.fresh.remove(dependent);
        self.unlooked.remove(dependent);
    }
}

/// What a worker has to know of an object that it looks at.
#[derive(Clone, Debug)]
pub(super) struct Item {
    pub(super) coordinates: Coordinates,
    pub(super) virtual_: bool,
    pub(super) deleting: bool,
    pub(super) deleting_dependents: bool,
}

/// What an object waits for whose dependents are being deleted.
///
/// Upstream's owner does not wait for dependents that do not block it, but as a rule they are looked at before it is
/// gone, and so see it waiting. Here that is no matter of luck.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Waiting {
    /// Nothing any more.
    Done,
    /// Dependents; these of them have to be looked at.
    For(Vec<Uid>),
}

/// Who owns whom.
#[derive(Debug, Default)]
pub(super) struct Graph {
    nodes: HashMap<Uid, Node>,
    absent: Absent,
}

impl Graph {
    /// Puts an object in that was there at the start, without its owners; [`Graph::seen`] comes when all are in.
    pub(super) fn insert(&mut self, uid: Uid, ty: &Arc<Type>, key: &Arc<str>) {
        self.nodes.entry(uid).or_insert_with(|| Node::new(Identity::Seen(ty.clone(), key.clone()), false));
    }

    /// All uids of objects that were seen.
    pub(super) fn uids(&self) -> impl Iterator<Item = &Uid> {
        self.nodes.iter().filter(|(_, node)| !node.virtual_).map(|(uid, _)| uid)
    }

    /// An object came or changed.
    pub(super) fn seen(&mut self, seen: Seen) -> Effects {
        let mut effects = Effects::default();
        let Seen { uid, ty, key, owners, deletion } = seen;
        let identity = Identity::Seen(ty, key);
        if self.nodes.get(&uid).is_some_and(|node| node.virtual_) {
            self.observe(&uid, &identity, &mut effects);
        }
        let node = self.nodes.entry(uid.clone()).or_insert_with(|| Node::new(identity, false));
        let before = std::mem::replace(&mut node.deletion, deletion);
        node.deleting |= deletion.began;
        if node.owners() != owners {
            let old = std::mem::replace(&mut node.links_mut().owners, owners.clone());
            node.tidy();
            self.relink(&uid, &old, &owners, &mut effects);
        }
        if deletion.orphans && !before.orphans {
            effects.orphan.push(uid);
        } else if deletion.foreground
            && !before.foreground
            && let Some(node) = self.nodes.get_mut(&uid)
        {
            node.deleting_dependents = true;
            if let Some(links) = &mut node.links {
                links.unlooked = links.dependents.keys().cloned().collect();
                effects.look.extend(links.unlooked.iter().cloned());
            }
            effects.look.push(uid);
        }
        effects
    }

    /// An object that was heard of is there: those who believe it to be somewhere else have to be looked at.
    fn observe(&mut self, uid: &Uid, identity: &Identity, effects: &mut Effects) {
        let Some(node) = self.nodes.get_mut(uid) else { return };
        node.virtual_ = false;
        let there = identity.coordinates(uid);
        if node.identity.coordinates(uid) == there {
            return;
        }
        node.identity = identity.clone();
        let (_, mistaken) = self.split_dependents(uid, &there);
        for dependent in mistaken {
            if let Some(node) = self.nodes.get(&dependent)
                && !there.namespace.is_empty()
                && node.identity.namespace() != there.namespace
            {
                effects.reports.extend(report(&dependent, node, uid));
            }
            effects.look.push(dependent);
        }
    }

    /// The owners of an object are others, or their references are.
    fn relink(&mut self, uid: &Uid, old: &[Reference], new: &[Reference], effects: &mut Effects) {
        let find = |list: &[Reference], uid: &Uid| list.iter().rev().find(|r| r.uid == *uid).cloned();
        for reference in old {
            let now = find(new, &reference.uid);
            if reference.blocks && now.is_none_or(|r| !r.blocks) && self.nodes.contains_key(&reference.uid) {
                // The owner may wait for this dependent no more.
                effects.look.push(reference.uid.clone());
            }
        }
        let mut mistaken = false;
        for reference in new {
            if find(old, &reference.uid).is_none() {
                mistaken |= self.join(uid, reference, mistaken, effects);
            } else if let Some(owner) = self.nodes.get_mut(&reference.uid) {
                owner.links_mut().put(uid, reference.blocks);
            }
        }
        if mistaken {
            effects.look.push(uid.clone());
        }
        for reference in old.iter().filter(|r| find(new, &r.uid).is_none()) {
            if let Some(owner) = self.nodes.get_mut(&reference.uid) {
                owner.links_mut().remove(uid);
                owner.tidy();
            }
        }
    }

    /// Makes an object the dependent of an owner. Tells whether the owner may be another one than the reference means;
    /// that is not looked into when another reference was `mistaken` already.
    fn join(&mut self, uid: &Uid, reference: &Reference, mistaken: bool, effects: &mut Effects) -> bool {
        let namespace = self.nodes.get(uid).map(|n| n.identity.namespace().to_owned()).unwrap_or_default();
        let known = self.nodes.contains_key(&reference.uid);
        let owner = self
            .nodes
            .entry(reference.uid.clone())
            .or_insert_with(|| Node::new(Identity::Heard(Box::new(reference.coordinates(&namespace))), true));
        owner.links_mut().put(uid, reference.blocks);
        if !known {
            // Somebody has to find out whether it is there.
            effects.look_soon.push(reference.uid.clone());
            return false;
        }
        if mistaken {
            return false;
        }
        let there = owner.identity.namespace();
        if !there.is_empty() && there != namespace {
            if !owner.virtual_
                && let Some(node) = self.nodes.get(uid)
            {
                effects.reports.extend(report(uid, node, &reference.uid));
            }
            return true;
        }
        !owner.identity.is_meant_by(reference)
    }

    /// An object is gone.
    pub(super) fn gone(&mut self, uid: &Uid) -> Effects {
        let mut effects = Effects::default();
        if let Some(node) = self.nodes.get(uid) {
            let last = node.identity.coordinates(uid);
            self.remove(uid, last, &mut effects);
        }
        effects
    }

    /// Somebody has looked: there is no object of this uid there.
    pub(super) fn absent(&mut self, there: Coordinates) -> Effects {
        let mut effects = Effects::default();
        let uid = there.uid.clone();
        let Some(node) = self.nodes.get(&uid) else { return effects };
        let believed = node.identity.coordinates(&uid);
        let virtual_ = node.virtual_;
        if !virtual_ && believed == there {
            self.remove(&uid, there, &mut effects);
            return effects;
        }
        let (right, mistaken) = self.split_dependents(&uid, &there);
        if virtual_ && mistaken.is_empty() {
            self.remove(&uid, there, &mut effects);
            return effects;
        }
        // Some believe it to be somewhere else, or it was seen somewhere else: only those who meant this place are wrong.
        if !right.is_empty() {
            self.absent.add(there.clone());
            effects.look.extend(right);
        }
        if virtual_
            && believed == there
            && let Some(other) = self.alternative(&mistaken, &there)
            && let Some(node) = self.nodes.get_mut(&uid)
        {
            node.identity = Identity::Heard(Box::new(other));
            effects.look_later.push(uid);
        }
        effects
    }

    fn remove(&mut self, uid: &Uid, there: Coordinates, effects: &mut Effects) {
        let Some(node) = self.nodes.remove(uid) else { return };
        let links = node.links.unwrap_or_default();
        for reference in &links.owners {
            let Some(owner) = self.nodes.get_mut(&reference.uid) else { continue };
            owner.links_mut().remove(uid);
            owner.tidy();
            if owner.deleting_dependents {
                effects.look.push(reference.uid.clone());
            }
        }
        if !links.dependents.is_empty() {
            self.absent.add(there);
        }
        effects.look.extend(links.dependents.into_keys());
    }

    /// The dependents whose references mean an owner at these coordinates, and those whose references do not.
    fn split_dependents(&self, owner: &Uid, there: &Coordinates) -> (Vec<Uid>, Vec<Uid>) {
        let (mut right, mut mistaken) = (Vec::new(), Vec::new());
        for uid in self.nodes.get(owner).into_iter().flat_map(Node::dependents) {
            let Some(dependent) = self.nodes.get(uid) else { continue };
            if !there.namespace.is_empty() && dependent.identity.namespace() != there.namespace {
                mistaken.push(uid.clone());
                continue;
            }
            let means = |wanted: bool| {
                let mut references = dependent.owners().iter().filter(|r| r.uid == *owner);
                references.any(|r| there.is_meant_by(r) == wanted)
            };
            if means(true) {
                right.push(uid.clone());
            }
            if means(false) {
                mistaken.push(uid.clone());
            }
        }
        (right, mistaken)
    }

    /// Another place where an owner may be that is absent `there`: the first one after it, or the first one at all.
    fn alternative(&self, dependents: &[Uid], there: &Coordinates) -> Option<Coordinates> {
        let mut others = BTreeSet::new();
        for dependent in dependents.iter().filter_map(|uid| self.nodes.get(uid)) {
            for reference in dependent.owners().iter().filter(|r| r.uid == there.uid) {
                let other = reference.coordinates(dependent.identity.namespace());
                let same_but_for_namespace = there.is_meant_by(reference) && there.namespace.is_empty();
                if other != *there && !same_but_for_namespace {
                    others.insert(other);
                }
            }
        }
        let next = others.range(there..).next().cloned();
        next.or_else(|| others.into_iter().next())
    }

    /// Somebody has looked at an object: its owners need not wait for that any more.
    pub(super) fn looked(&mut self, uid: &Uid) -> Effects {
        let mut effects = Effects::default();
        let owners: Vec<Uid> =
            self.nodes.get(uid).map(Node::owners).unwrap_or_default().iter().map(|r| r.uid.clone()).collect();
        for owner in owners {
            let Some(links) = self.nodes.get_mut(&owner).and_then(|node| node.links.as_mut()) else { continue };
            if links.unlooked.remove(uid) && links.unlooked.is_empty() {
                effects.look.push(owner);
            }
        }
        effects
    }

    /// Remembers that an owner is absent.
    pub(super) fn remember_absent(&mut self, owner: Coordinates) {
        self.absent.add(owner);
    }

    /// Whether an owner that an object in this namespace names is known to be absent.
    pub(super) fn is_absent(&self, reference: &Reference, namespace: &str) -> bool {
        self.absent.has(&reference.coordinates("")) || self.absent.has(&reference.coordinates(namespace))
    }

    /// What a worker has to know of an object.
    pub(super) fn item(&self, uid: &Uid) -> Option<Item> {
        let node = self.nodes.get(uid)?;
        Some(Item {
            coordinates: node.identity.coordinates(uid),
            virtual_: node.virtual_,
            deleting: node.deleting,
            deleting_dependents: node.deleting_dependents,
        })
    }

    /// The dependents of an object.
    pub(super) fn dependents(&self, uid: &Uid) -> Vec<Coordinates> {
        let dependents = self.nodes.get(uid).into_iter().flat_map(Node::dependents);
        dependents.filter_map(|uid| Some(self.nodes.get(uid)?.identity.coordinates(uid))).collect()
    }

    /// Whether an object has dependents, and whether one of them has its own dependents being deleted.
    pub(super) fn dependents_state(&self, uid: &Uid) -> (bool, bool) {
        let Some(node) = self.nodes.get(uid) else { return (false, false) };
        let deleting = |uid: &Uid| self.nodes.get(uid).is_some_and(|n| n.deleting_dependents);
        (node.has_dependents(), node.dependents().any(deleting))
    }

    /// What an object waits for whose dependents are being deleted. Dependents that were looked at since their
    /// reference last changed need not be looked at again: whatever comes of that comes by itself.
    pub(super) fn waits(&mut self, uid: &Uid) -> Waiting {
        let Some(links) = self.nodes.get_mut(uid).and_then(|node| node.links.as_mut()) else { return Waiting::Done };
        if links.blocking == 0 {
            return if links.unlooked.is_empty() { Waiting::Done } else { Waiting::For(Vec::new()) };
        }
        let fresh = std::mem::take(&mut links.fresh);
        let blocking: Vec<Uid> = fresh.into_iter().filter(|uid| links.dependents.get(uid) == Some(&true)).collect();
        let open = |uid: &Uid| self.nodes.get(uid).is_some_and(|n| !n.deleting_dependents);
        Waiting::For(blocking.into_iter().filter(open).collect())
    }
}

/// The report of a reference to an owner in another namespace.
fn report(uid: &Uid, node: &Node, owner: &Uid) -> Option<(Coordinates, Coordinates)> {
    let reference = node.owners().iter().find(|r| r.uid == *owner)?;
    Some((node.identity.coordinates(uid), reference.coordinates(node.identity.namespace())))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by it")]
mod tests;
