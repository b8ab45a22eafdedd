//! Which entry of the inventory a rendered target is.

use std::collections::{HashMap, HashSet};

use crate::identity::ObjectKey;
use crate::item::Item;

/// The entries that stay or come, in the order in which they were rendered, and those that go.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Matched {
    /// For each rendered target its entry. A known one keeps its state, a new one has the default state.
    pub wanted: Vec<Item>,
    /// Entries that nothing renders any more.
    pub unwanted: Vec<Item>,
    /// Whether an entry is new to the inventory, which must be recorded before anything is written.
    pub is_new: bool,
}

/// Finds for each of `rendered` (items with the identity, tenant, origin and an empty state) its entry of the inventory.
///
/// What counts is the object, not the place in the parent: a target that moved to another block, or is written in
/// another version of its kind, is still the same entry, and nothing is deleted and made again. Several targets of one
/// object (a raw item and a generator that each render a part) are told apart by their slots; those that render from
/// the place they had before keep theirs.
pub fn match_items(inventory: Vec<Item>, rendered: Vec<Item>) -> Matched {
    let mut known: HashMap<ObjectKey, Vec<Item>> = HashMap::with_capacity(inventory.len());
    for item in inventory {
        known.entry(item.identity.object()).or_default().push(item);
    }
    let mut taken: HashMap<ObjectKey, HashSet<u32>> = HashMap::new();
    let mut is_new = false;
    // First those that stayed where they were, so that a newcomer does not take the place of one of them.
    let mut wanted: Vec<(Item, bool)> = Vec::with_capacity(rendered.len());
    for mut item in rendered {
        let entry = known.get_mut(&item.identity.object()).and_then(|entries| {
            let same = |known: &Item| known.tenant == item.tenant && known.origin == item.origin;
            entries.iter().position(same).map(|position| entries.swap_remove(position))
        });
        let is_known = entry.is_some();
        if let Some(entry) = entry {
            taken.entry(item.identity.object()).or_default().insert(entry.slot);
            inherit(&mut item, entry);
        }
        wanted.push((item, is_known));
    }
    let wanted = wanted.into_iter().map(|(mut item, is_known)| {
        if is_known {
            return item;
        }
        let object = item.identity.object();
        // A permit's manager does not depend on the tenant; a replication's does, and another tenant is another manager.
        let entry = known.get_mut(&object).and_then(|entries| {
            let position = entries.iter().position(|known| known.tenant == item.tenant)?;
            Some(entries.swap_remove(position))
        });
        let taken = taken.entry(object).or_default();
        match entry {
            Some(entry) => {
                taken.insert(entry.slot);
                inherit(&mut item, entry);
            }
            None => {
                item.slot = (0..).find(|slot| !taken.contains(slot)).unwrap_or_default();
                taken.insert(item.slot);
                is_new = true;
            }
        }
        item
    });
    let wanted = wanted.collect();
    let mut unwanted: Vec<Item> = known.into_values().flatten().collect();
    Item::sort(&mut unwanted);
    Matched { wanted, unwanted, is_new }
}

fn inherit(item: &mut Item, entry: Item) {
    item.slot = entry.slot;
    item.state = entry.state;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::{Identity, Kind};

    fn item(name: &str, version: &str, tenant: &str, origin: &str) -> Item {
        let kind = Kind { group: "x.io".into(), version: version.into(), kind: "Foo".into() };
        let identity = Identity { kind, namespace: "n".into(), name: name.into() };
        Item { identity, tenant: tenant.into(), origin: origin.into(), ..Item::default() }
    }

    fn known(mut item: Item, slot: u32) -> Item {
        item.slot = slot;
        item.state.created = true;
        item
    }

    #[test]
    fn what_moved_or_changed_its_version_is_still_the_same_entry() {
        let inventory = vec![known(item("a", "v1", "t", "0/raw-0"), 0), known(item("b", "v1", "t", "0/raw-1"), 0)];
        for rendered in [
            vec![item("b", "v1", "t", "0/raw-0"), item("a", "v1", "t", "0/raw-1")],
            vec![item("a", "v2", "t", "1/raw-0"), item("b", "v1", "t", "0/raw-1")],
        ] {
            let matched = match_items(inventory.clone(), rendered.clone());
            let names = |items: &[Item]| items.iter().map(|item| item.identity.clone()).collect::<Vec<_>>();
            assert_eq!(names(&matched.wanted), names(&rendered));
            assert!(matched.wanted.iter().all(|item| item.state.created));
            assert_eq!((matched.unwanted, matched.is_new), (vec![], false));
        }
    }

    #[test]
    fn what_is_rendered_no_more_is_unwanted_and_what_is_new_is_said_to_be() {
        let inventory = vec![known(item("a", "v1", "t", "0/raw-0"), 0)];
        let matched = match_items(inventory.clone(), vec![item("b", "v1", "t", "0/raw-0")]);
        assert_eq!((matched.unwanted, matched.is_new), (inventory, true));
    }

    #[test]
    fn targets_of_one_object_have_slots_that_stay() {
        let raw = item("a", "v1", "t", "0/raw-0");
        let generated = item("a", "v1", "t", "0/generator-0-0");
        let first = match_items(Vec::new(), vec![raw.clone(), generated.clone()]).wanted;
        assert_eq!([first[0].slot, first[1].slot], [0, 1]);
        let inventory: Vec<Item> = first.into_iter().map(|item| known(item.clone(), item.slot)).collect();
        // The generator alone, then the raw item again before it.
        let alone = match_items(inventory.clone(), vec![generated.clone()]);
        assert_eq!((alone.wanted[0].slot, alone.unwanted[0].slot), (1, 0));
        let both = match_items(alone.wanted.clone(), vec![raw, generated]);
        assert_eq!([both.wanted[0].slot, both.wanted[1].slot], [0, 1]);
        assert!(both.is_new);
    }

    #[test]
    fn another_tenant_is_another_manager_and_so_another_entry() {
        let inventory = vec![known(item("a", "v1", "t", "0/raw-0"), 0)];
        let matched = match_items(inventory, vec![item("a", "v1", "u", "0/raw-0")]);
        assert_eq!((matched.wanted[0].state.created, matched.unwanted.len()), (false, 1));
    }
}
