//! Ownership through the scale subresource.
//!
//! A scale is an object of its own (`autoscaling/v1`), whose managers are those of the main object that own its
//! replicas field, under the name the field has there.

use super::entry::{ManagerId, Managers, Owned};
use crate::path::FieldPath;
use crate::set::FieldSet;
use std::collections::BTreeMap;

const SCALE_VERSION: &str = "autoscaling/v1";

/// Translates managers between an object and its scale.
#[derive(Clone, Debug, Default)]
pub struct ScalePaths {
    /// The version (`group/version`) in which the main object is written.
    pub api_version: String,
    /// For each version of the resource the path of its replicas field; `None` where that version has no scale.
    pub replicas: BTreeMap<String, Option<FieldPath>>,
}

impl ScalePaths {
    fn of(&self, owned: &Owned) -> Option<&Option<FieldPath>> {
        self.replicas.get(owned.api_version.as_str())
    }

    /// The managers that the scale of an object has.
    pub fn to_scale(&self, managers: &Managers) -> Managers {
        let owners = managers.iter().filter_map(|(id, owned)| {
            let path = self.of(owned)?.as_ref()?;
            owned.set.has(path.elements()).then(|| {
                let owned = Owned { set: replicas_of_scale(), api_version: SCALE_VERSION.into(), time: owned.time };
                (rename(id, &owned), owned)
            })
        });
        owners.collect()
    }

    /// The managers that an object has once its scale was written: `scale` are those of the scale after the write,
    /// `managers` those of the object before. Times of managers that come new through the scale are not kept, as
    /// upstream loses them.
    pub fn to_object(&self, managers: &Managers, scale: &Managers) -> Managers {
        let mut scale = scale.clone();
        let mut out = Managers::new();
        for (id, owned) in managers {
            let Some(path) = self.of(owned) else { continue };
            let Some(path) = path.as_ref().filter(|p| owned.set.has(p.elements())) else {
                out.insert(id.clone(), owned.clone());
                continue;
            };
            let in_scale = rename(id, &Owned { api_version: SCALE_VERSION.into(), ..owned.clone() });
            if scale.remove(&in_scale).is_some() {
                out.insert(id.clone(), owned.clone());
                continue;
            }
            let set = owned.set.difference(&FieldSet::of([path]));
            if !set.is_empty() {
                out.insert(id.clone(), Owned { set, ..owned.clone() });
            }
        }
        let Some(Some(path)) = self.replicas.get(&self.api_version) else { return out };
        for (id, owned) in scale.into_iter().filter(|(_, o)| o.set.has(scale_path().elements())) {
            let owned = Owned { set: FieldSet::of([path]), api_version: self.api_version.as_str().into(), ..owned };
            let id = rename(&id, &owned);
            let time = managers.get(&id).and_then(|o| o.time);
            out.insert(id, Owned { time, ..owned });
        }
        out
    }
}

fn rename(id: &ManagerId, owned: &Owned) -> ManagerId {
    ManagerId::new(&id.manager, id.operation, &owned.api_version, &id.subresource)
}

fn scale_path() -> FieldPath {
    FieldPath::fields(&["spec", "replicas"])
}

fn replicas_of_scale() -> FieldSet {
    FieldSet::of([&scale_path()])
}
