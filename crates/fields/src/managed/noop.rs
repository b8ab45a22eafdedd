//! Writes that change nothing, and ownership that admission broke.

use super::entry::decode_managers;
use object::Value;

/// Undoes new times where they are all that changed: if `new` equals `old` but for the times of its entries, it gets
/// the old times back, and the write can be dropped. Tells whether the two are equal now.
pub fn keep_times_of_noop(old: &Value, new: &mut Value) -> bool {
    if !same_but_times(old, new) {
        return false;
    }
    if let Some(entries) = old.at(&["metadata", "managedFields"]) {
        new.set_at(&["metadata", "managedFields"], entries.clone());
    }
    true
}

fn same_but_times(old: &Value, new: &Value) -> bool {
    let (Some(old), Some(new)) = (old.as_object(), new.as_object()) else { return old == new };
    old.len() == new.len()
        && old.iter().zip(new.iter()).all(|((ok, ov), (nk, nv))| {
            ok == nk
                && match (ok, ov, nv) {
                    ("metadata", Value::Object(o), Value::Object(n)) => {
                        o.len() == n.len()
                            && o.iter().zip(n.iter()).all(|((ok, ov), (nk, nv))| {
                                ok == nk && (ov == nv || ok == "managedFields" && same_entries(ov, nv))
                            })
                    }
                    _ => ov == nv,
                }
        })
}

fn same_entries(old: &Value, new: &Value) -> bool {
    let (Some(old), Some(new)) = (old.as_array(), new.as_array()) else { return false };
    old.len() == new.len() && old.iter().zip(new).all(|(o, n)| without_time(o).eq(without_time(n)))
}

fn without_time(entry: &Value) -> impl Iterator<Item = (&str, &Value)> {
    entry.as_object().into_iter().flat_map(object::Map::iter).filter(|(key, _)| *key != "time")
}

/// After mutating admission: entries that can no longer be read are put back to those `before` it, and the requester
/// is warned with the text given back.
pub fn restore_invalid_entries(before: &Value, after: &mut Value) -> Option<String> {
    let error = decode_managers(after).err()?;
    match before.at(&["metadata", "managedFields"]) {
        Some(entries) => after.set_at(&["metadata", "managedFields"], entries.clone()),
        None => {
            after.remove_at(&["metadata", "managedFields"]);
        }
    }
    Some(format!(
        ".metadata.managedFields was in an invalid state after admission; this could be caused by an outdated mutating admission controller; please fix your requests: {error}"
    ))
}
