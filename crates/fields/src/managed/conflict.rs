//! Conflicts.

use super::entry::ManagerId;
use crate::path::FieldPath;
use crate::set::FieldSet;
use object::Status;
use std::collections::BTreeMap;
use std::fmt::Write;

/// A field that an apply would change and another manager owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// Who owns it.
    pub manager: ManagerId,
    /// The field, in that manager's version.
    pub path: FieldPath,
}

/// All conflicts of one apply, in the order of the managers' identifiers, then of the fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflicts(pub Vec<Conflict>);

impl Conflicts {
    pub(super) fn of(sets: &BTreeMap<ManagerId, FieldSet>) -> Self {
        let of_manager = |(manager, set): (&ManagerId, &FieldSet)| {
            let manager = manager.clone();
            set.paths().into_iter().map(move |path| Conflict { manager: manager.clone(), path })
        };
        Conflicts(sets.iter().flat_map(of_manager).collect())
    }

    /// The fields, whoever owns them.
    pub fn fields(&self) -> FieldSet {
        FieldSet::of(self.0.iter().map(|c| &c.path))
    }

    /// The conflicts about fields that are not in the set.
    pub fn without(&self, allowed: &FieldSet) -> Conflicts {
        Conflicts(self.0.iter().filter(|c| !allowed.has(c.path.elements())).cloned().collect())
    }

    /// The message for people.
    pub fn message(&self) -> String {
        if let [only] = self.0.as_slice() {
            return format!("Apply failed with 1 conflict: conflict with {}: {}", only.manager, only.path);
        }
        let mut out = format!("Apply failed with {} conflicts:", self.0.len());
        let mut last: Option<&ManagerId> = None;
        for conflict in &self.0 {
            if last != Some(&conflict.manager) {
                out.push(if last.is_none() { ' ' } else { '\n' });
                let _ = write!(out, "conflicts with {}:", conflict.manager);
                last = Some(&conflict.manager);
            }
            let _ = write!(out, "\n- {}", conflict.path);
        }
        out
    }

    /// The answer: 409 with a cause for each conflict.
    pub fn to_status(&self) -> Status {
        let status = Status::new(409, "Conflict", self.message());
        self.0.iter().fold(status, |s, c| {
            s.with_cause("FieldManagerConflict", &c.path.to_string(), format!("conflict with {}", c.manager))
        })
    }
}
