//! What the keeper knows of all objects under management: who claims them, how they were last seen, how often they had
//! to be repaired. Memory grows with the inventories, not with the cluster.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use compact_str::CompactString;
use jiff::{SignedDuration, Timestamp};
use object::Value;

use crate::fight::Fight;
use crate::identity::{Kind, ObjectKey};
use crate::managed;
use crate::plan::{Heirs, Rivals};
use crate::seen::Seen;

/// How long an object is kept for somebody who wants it and has not taken it yet.
const HAND_OVER: SignedDuration = SignedDuration::from_secs(10);

/// One item's claim on an object.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    /// The parent.
    pub parent: Arc<str>,
    /// The field manager; shared by the claims in one namespace.
    pub manager: Arc<str>,
    /// Whether the item says that its parent created the object, and would not leave it behind as an orphan.
    pub created: bool,
    /// Whether `created` is recorded, so that a crash does not lose it.
    pub is_recorded: bool,
    /// Whether the item protects the object, and for which family.
    pub protects: Option<crate::parent::Family>,
    /// Since when the parent wants it no more.
    pub leaving: Option<Timestamp>,
    /// A digest of what was last applied; 0 if it is not known.
    pub content: u64,
    /// Somebody else changed or deleted the object since: what was applied last need not be there any more.
    pub disturbed: bool,
}

#[derive(Debug, Default)]
struct Entry {
    claims: Vec<Claim>,
    /// The object as it was after the keeper's last write or look; `None` while it is not known to be as it should be.
    clean: Option<Seen>,
    /// What a watch told while a write was under way.
    during_write: Option<Box<Seen>>,
    /// Whether the list that is under way has it.
    is_listed: bool,
    /// That a watch told during a write that the object is gone: its last state, if that was told.
    gone_during_write: Option<Option<Seen>>,
    /// Writes under way.
    writing: u32,
    fight: Option<Box<Fight>>,
    /// Who created the object and left it to the others.
    handed_over: bool,
}

#[derive(Debug, Default)]
struct Watched {
    version: CompactString,
    objects: usize,
    /// Whether a watch is open and nothing was missed.
    is_live: bool,
}

/// Everything the keeper knows.
#[derive(Debug, Default)]
pub(crate) struct Index {
    objects: HashMap<Arc<ObjectKey>, Entry>,
    parents: HashMap<Arc<str>, HashSet<Arc<ObjectKey>>>,
    kinds: BTreeMap<(CompactString, CompactString), Watched>,
    drifted: BTreeMap<Arc<str>, BTreeSet<ObjectKey>>,
    delayed: BTreeMap<Timestamp, Vec<ObjectKey>>,
}

impl Index {
    /// Replaces the claims of a parent. `claims` are the objects, the version in which they are written and the claims;
    /// what is known of a claim that stays stays known.
    pub fn claim(&mut self, parent: &Arc<str>, claims: Vec<(ObjectKey, CompactString, Claim)>) {
        let before = self.parents.remove(parent).unwrap_or_default();
        let mut now: HashMap<ObjectKey, Vec<Claim>> = HashMap::with_capacity(claims.len());
        let mut versions = HashMap::new();
        for (key, version, claim) in claims {
            versions.insert((key.group.clone(), key.kind.clone()), version);
            now.entry(key).or_default().push(claim);
        }
        for key in before.iter().filter(|key| !now.contains_key(&***key)) {
            self.drop_claims(parent, key);
        }
        let mut keys = HashSet::with_capacity(now.len());
        for (key, mut claims) in now {
            let kind = (key.group.clone(), key.kind.clone());
            let known = self.objects.get_key_value(&key).map(|(key, _)| key.clone());
            let is_new = known.is_none();
            let key = known.unwrap_or_else(|| Arc::new(key));
            keys.insert(key.clone());
            let entry = self.objects.entry(key).or_default();
            let (old, others): (Vec<Claim>, Vec<Claim>) =
                std::mem::take(&mut entry.claims).into_iter().partition(|claim| claim.parent == *parent);
            for claim in &mut claims {
                if let Some(old) = old.iter().find(|old| old.manager == claim.manager) {
                    claim.content = old.content;
                    claim.disturbed = old.disturbed;
                    claim.leaving = claim.leaving.map(|since| old.leaving.unwrap_or(since));
                }
            }
            claims.extend(others);
            claims.shrink_to_fit();
            entry.claims = claims;
            if is_new {
                let watched = self.kinds.entry(kind.clone()).or_default();
                watched.objects += 1;
                if let Some(version) = versions.get(&kind).filter(|_| watched.version.is_empty()) {
                    watched.version = version.clone();
                }
            }
        }
        if !keys.is_empty() {
            self.parents.insert(parent.clone(), keys);
        }
    }

    fn drop_claims(&mut self, parent: &Arc<str>, key: &ObjectKey) {
        let Some(entry) = self.objects.get_mut(key) else { return };
        entry.claims.retain(|claim| claim.parent != *parent);
        if !entry.claims.is_empty() {
            return;
        }
        self.objects.remove(key);
        let kind = (key.group.clone(), key.kind.clone());
        if let Some(watched) = self.kinds.get_mut(&kind) {
            watched.objects -= 1;
            if watched.objects == 0 {
                self.kinds.remove(&kind);
            }
        }
    }

    /// Gives up the claims of a parent that `keep` does not want, told by object and manager.
    pub fn retain(&mut self, parent: &str, keep: impl Fn(&ObjectKey, &str) -> bool) {
        let Some((parent, keys)) = self.parents.remove_entry(parent) else { return };
        let mut kept = HashSet::with_capacity(keys.len());
        for key in keys {
            let is_ours = |claim: &Claim| claim.parent == parent;
            if let Some(entry) = self.objects.get_mut(&key) {
                entry.claims.retain(|claim| !is_ours(claim) || keep(&key, &claim.manager));
                if entry.claims.iter().any(is_ours) {
                    kept.insert(key);
                } else {
                    self.drop_claims(&parent, &key);
                }
            }
        }
        if !kept.is_empty() {
            self.parents.insert(parent, kept);
        }
    }

    /// The kinds under management.
    pub fn kinds(&self) -> Vec<Kind> {
        let kind = |((group, kind), watched): (&(CompactString, CompactString), &Watched)| Kind {
            group: group.clone(),
            version: watched.version.clone(),
            kind: kind.clone(),
        };
        self.kinds.iter().map(kind).collect()
    }

    /// How many kinds have an open watch.
    pub fn live_kinds(&self) -> usize {
        self.kinds.values().filter(|watched| watched.is_live).count()
    }

    /// How many objects are under management.
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// What other claims mean for `manager` of `parent`.
    pub fn rivals(&self, key: &ObjectKey, manager: &str) -> Rivals {
        let Some(entry) = self.objects.get(key) else { return Rivals::default() };
        let others = entry.claims.iter().filter(|claim| *claim.manager != *manager);
        let (leaving, staying): (Vec<&Claim>, Vec<&Claim>) = others.partition(|claim| claim.leaving.is_some());
        let created = staying.iter().any(|claim| claim.created);
        let handed_over = !created && (entry.handed_over || leaving.iter().any(|claim| claim.created));
        Rivals { created, handed_over }
    }

    /// Whether another claim of the family than `manager`'s protects the object.
    pub fn family_protects(&self, key: &ObjectKey, manager: &str, family: crate::parent::Family) -> bool {
        self.claims(key)
            .any(|claim| *claim.manager != *manager && claim.leaving.is_none() && claim.protects == Some(family))
    }

    /// Whether `manager`'s claim is being given up.
    pub fn is_leaving(&self, key: &ObjectKey, manager: &str) -> bool {
        self.claims(key).any(|claim| *claim.manager == *manager && claim.leaving.is_some())
    }

    /// Who else wants the object that `manager` lets go of; those who have yet to take it are told. If it is `bequeathed`,
    /// one of them has to know durably that it is theirs: by a record, or by what the object itself tells.
    pub fn heirs(&mut self, key: &ObjectKey, live: &Value, manager: &str, bequeathed: bool, now: Timestamp) -> Heirs {
        let staying = |claim: &&Claim| *claim.manager != *manager && claim.leaving.is_none();
        let holds = |claim: &Claim| managed::applied(live, &claim.manager).is_some();
        let is_held = self.claims(key).filter(staying).any(holds);
        let is_held = is_held || managed::other_permits(live, manager).any(|permit| !self.is_leaving(key, permit));
        let knows = |claim: &Claim| claim.is_recorded || managed::inherits(live, &claim.manager, manager);
        if is_held && (!bequeathed || self.claims(key).filter(staying).any(|claim| holds(claim) && knows(claim))) {
            return Heirs::Holding;
        }
        // What becomes of it when nobody takes it in time.
        let late = if is_held { Heirs::Holding } else { Heirs::None };
        let since = self.claims(key).find(|claim| *claim.manager == *manager).and_then(|claim| claim.leaving);
        if since.is_none_or(|since| now.duration_since(since) > HAND_OVER) {
            return late;
        }
        let waiting: Vec<Arc<str>> = self.claims(key).filter(staying).map(|claim| claim.parent.clone()).collect();
        if waiting.is_empty() {
            return late;
        }
        for parent in waiting {
            self.drifted.entry(parent).or_default().insert(key.clone());
        }
        Heirs::Waiting
    }

    /// The creator of the object has let go of it, and others hold it: it is theirs.
    pub fn hand_over(&mut self, key: &ObjectKey) {
        if let Some(entry) = self.objects.get_mut(key) {
            entry.handed_over = true;
        }
    }

    /// The inventory of a parent is recorded as it is now.
    pub fn recorded(&mut self, parent: &str) {
        for key in self.parents.get(parent).into_iter().flatten() {
            let claims = self.objects.get_mut(key).map(|entry| entry.claims.iter_mut());
            claims.into_iter().flatten().filter(|claim| *claim.parent == *parent).for_each(|claim| {
                claim.is_recorded = claim.created;
            });
        }
    }

    /// Whether nothing has to be asked: a watch covers the kind, the object is as it was left, and `content` is what
    /// was applied last.
    pub fn is_settled(&self, key: &ObjectKey, manager: &str, content: u64) -> bool {
        let kind = (key.group.clone(), key.kind.clone());
        self.kinds.get(&kind).is_some_and(|watched| watched.is_live)
            && self.objects.get(key).is_some_and(|entry| {
                entry.clean.is_some()
                    && entry
                        .claims
                        .iter()
                        .any(|claim| *claim.manager == *manager && claim.content == content && !claim.disturbed)
            })
    }

    /// A digest of the versions of all that a parent claims; `None` unless all is settled and watched.
    pub fn versions(&self, parent: &str) -> Option<u64> {
        let mut sum = 0_u64;
        for key in self.parents.get(parent).into_iter().flatten() {
            let kind = (key.group.clone(), key.kind.clone());
            let entry = self.objects.get(key)?;
            let is_applied = |claim: &Claim| &*claim.parent == parent && claim.content != 0 && !claim.disturbed;
            let is_settled = entry.claims.iter().any(is_applied);
            let seen = entry.clean.as_ref().filter(|_| is_settled)?;
            self.kinds.get(&kind).filter(|watched| watched.is_live)?;
            // The order of a set is no order.
            sum = sum.wrapping_add(seen.digest(key));
        }
        Some(sum)
    }

    /// Until when the object is left alone, because somebody changes it back again and again.
    pub fn is_fought_over(&self, key: &ObjectKey, now: Timestamp) -> Option<Timestamp> {
        self.objects.get(key)?.fight.as_ref()?.until(now)
    }

    /// A write begins; events until its end may be its own.
    pub fn write_begins(&mut self, key: &ObjectKey) {
        if let Some(entry) = self.objects.get_mut(key) {
            entry.writing += 1;
        }
    }

    /// A write ended: with the object as it then was, or in an error (`None`). Whether the object changed since.
    pub fn write_ends(&mut self, key: &ObjectKey, written: Option<Seen>, now: Timestamp) -> bool {
        let Some(entry) = self.objects.get_mut(key) else { return false };
        entry.writing = entry.writing.saturating_sub(1);
        let told = entry.during_write.take();
        let is_newer = |told: &Seen, written: &Seen| told.is_after(written) && !told.differs_in_status_only(written);
        let is_gone = entry.gone_during_write.take().is_some_and(|gone| match (&gone, &written) {
            // What was deleted before it was written, so that it could be made anew, is there.
            (Some(gone), Some(written)) => gone.is_after(written),
            (_, written) => written.is_some(),
        });
        let changed = match (&told, &written) {
            (Some(told), Some(written)) => is_gone || is_newer(told, written),
            _ => is_gone,
        };
        entry.clean = written;
        if changed {
            self.drift(key, now);
        }
        changed
    }

    /// The content of `manager`'s claim is now `content`.
    pub fn applied(&mut self, key: &ObjectKey, manager: &str, content: u64, created: bool) {
        let Some(entry) = self.objects.get_mut(key) else { return };
        if let Some(claim) = entry.claims.iter_mut().find(|claim| *claim.manager == *manager) {
            claim.content = content;
            claim.created = created;
            claim.disturbed = false;
        }
        if created {
            entry.handed_over = false;
        }
    }

    /// `manager` took fields by force: the other parents look whether they were theirs.
    pub fn displace_others(&mut self, key: &ObjectKey, manager: &str) {
        let Some(entry) = self.objects.get_mut(key) else { return };
        let others = entry.claims.iter_mut().filter(|claim| *claim.manager != *manager && claim.leaving.is_none());
        for claim in others.filter(|claim| claim.content != 0) {
            claim.disturbed = true;
            self.drifted.entry(claim.parent.clone()).or_default().insert(key.clone());
        }
    }

    /// The parents that protect an object.
    pub fn protectors(&self, key: &ObjectKey) -> Vec<Arc<str>> {
        self.claims(key).filter(|claim| claim.protects.is_some()).map(|claim| claim.parent.clone()).collect()
    }

    /// The parents that declare an object.
    pub fn claimants(&self, key: &ObjectKey) -> Vec<Arc<str>> {
        self.claims(key).filter(|claim| claim.leaving.is_none()).map(|claim| claim.parent.clone()).collect()
    }

    /// Notes that the object had to be repaired; from the count of repairs follows for how long it is left alone.
    pub fn repaired(&mut self, key: &ObjectKey, now: Timestamp) {
        if let Some(entry) = self.objects.get_mut(key) {
            entry.fight.get_or_insert_default().repaired(now);
        }
    }

    /// What `manager` applied last; 0 if it is not known.
    pub fn content(&self, key: &ObjectKey, manager: &str) -> u64 {
        self.claims(key).find(|claim| *claim.manager == *manager).map_or(0, |claim| claim.content)
    }

    /// A watch tells of an object.
    pub fn saw(&mut self, key: &ObjectKey, seen: Seen, now: Timestamp) {
        let Some(entry) = self.objects.get_mut(key) else { return };
        if entry.writing > 0 {
            entry.during_write = Some(Box::new(seen));
            return;
        }
        let Some(clean) = &mut entry.clean else { return };
        if seen.differs_in_status_only(clean) {
            *clean = seen;
        } else if seen.is_after(clean) {
            self.drift(key, now);
        }
    }

    /// A watch tells that an object is gone, or no longer carries its labels.
    /// `last` is how it was then, if that is known.
    pub fn lost(&mut self, key: &ObjectKey, last: Option<Seen>, now: Timestamp) {
        let Some(entry) = self.objects.get_mut(key) else { return };
        // What was written since is there again.
        if let (Some(clean), Some(last)) = (&entry.clean, &last)
            && clean.is_known_after(last) == Some(true)
        {
            return;
        }
        if entry.writing > 0 {
            entry.gone_during_write = Some(last);
        }
        if entry.claims.iter().any(|claim| claim.content != 0) {
            self.drift(key, now);
        }
    }

    /// A list of a kind begins.
    pub fn list_begins(&mut self, kind: &Kind) {
        self.of_kind(kind).for_each(|(_, entry)| entry.is_listed = false);
    }

    /// The list that is under way has an object.
    pub fn found(&mut self, key: &ObjectKey, seen: Seen, now: Timestamp) {
        if let Some(entry) = self.objects.get_mut(key) {
            entry.is_listed = true;
        }
        self.saw(key, seen, now);
    }

    /// A list of a kind, of this version, is through, and a watch goes on from there: what it did not have is lost,
    /// unless it was written since.
    pub fn list_ends(&mut self, kind: &Kind, version: &str, now: Timestamp) {
        let missing: Vec<Arc<ObjectKey>> =
            self.of_kind(kind).filter(|(_, entry)| !entry.is_listed).map(|(key, _)| key.clone()).collect();
        if let Some(watched) = self.kinds.get_mut(&(kind.group.clone(), kind.kind.clone())) {
            watched.is_live = true;
        }
        for key in missing {
            self.lost(&key, Some(Seen::missing(version)), now);
        }
    }

    /// The watch of a kind may have missed something.
    pub fn watch_is_lost(&mut self, kind: &Kind) {
        if let Some(watched) = self.kinds.get_mut(&(kind.group.clone(), kind.kind.clone())) {
            watched.is_live = false;
        }
    }

    fn of_kind<'a>(&'a mut self, kind: &'a Kind) -> impl Iterator<Item = (&'a Arc<ObjectKey>, &'a mut Entry)> {
        self.objects.iter_mut().filter(|(key, _)| key.group == kind.group && key.kind == kind.kind)
    }

    /// An object is not as it should be: those who claim it are told, at once or, in a fight, when it is time.
    fn drift(&mut self, key: &ObjectKey, now: Timestamp) {
        let Some(entry) = self.objects.get_mut(key) else { return };
        entry.clean = None;
        // Whoever puts it right first puts right what is theirs alone.
        entry.claims.iter_mut().for_each(|claim| claim.disturbed = true);
        if let Some(until) = entry.fight.as_ref().and_then(|fight| fight.until(now)) {
            self.delayed.entry(until).or_default().push(key.clone());
            return;
        }
        for claim in entry.claims.iter().filter(|claim| claim.leaving.is_none()) {
            self.drifted.entry(claim.parent.clone()).or_default().insert(key.clone());
        }
    }

    /// Moves what was delayed until `now` to what drifted; when the next is due.
    pub fn due(&mut self, now: Timestamp) -> Option<Timestamp> {
        while let Some(first) = self.delayed.first_entry().filter(|first| *first.key() <= now) {
            for key in first.remove() {
                self.drift(&key, now);
            }
        }
        self.delayed.keys().next().copied()
    }

    /// The next parent whose objects drifted, and which.
    pub fn next_drift(&mut self) -> Option<(Arc<str>, BTreeSet<ObjectKey>)> {
        self.drifted.pop_first()
    }

    fn claims(&self, key: &ObjectKey) -> impl Iterator<Item = &Claim> {
        self.objects.get(key).into_iter().flat_map(|entry| &entry.claims)
    }
}
