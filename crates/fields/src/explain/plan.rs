//! What an apply would do.

use super::{list, owners_of};
use crate::managed::{ApplyError, FieldManager, ManagerId, Managers, Operation, decode_managers};
use crate::path::{FieldPath, equal_values};
use crate::set::FieldSet;
use crate::typed;
use object::{Value, json};
use std::fmt;

/// What an apply would do to one field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    /// Set it to another value while others own it: a conflict. By force it would be taken from them.
    Conflicts,
    /// Set it where nothing is.
    Adds,
    /// Change its value.
    Changes,
    /// Own it from now on, with the value it has.
    Takes,
    /// Go on owning it; nothing changes.
    Keeps,
    /// Own it no more; it stays, as others own it (or what it is part of).
    Releases,
    /// Remove it: it is left out now, and nobody else owns it.
    Removes,
}

impl Effect {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Effect::Conflicts => "conflicts",
            Effect::Adds => "adds",
            Effect::Changes => "changes",
            Effect::Takes => "takes",
            Effect::Keeps => "keeps",
            Effect::Releases => "releases",
            Effect::Removes => "removes",
        }
    }
}

/// A field that an apply touches.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedField {
    /// The field.
    pub path: FieldPath,
    /// What happens to it.
    pub effect: Effect,
    /// Its value now; `None` where it is not set.
    pub before: Option<Value>,
    /// Its value afterwards, conflicts forced.
    pub after: Option<Value>,
    /// Who owns it beside the applier now.
    pub others: Vec<ManagerId>,
}

/// What an apply would do, field by field; containers are told only where nothing below them is.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The fields, in the order of their effects, then of their paths.
    pub fields: Vec<PlannedField>,
    /// The object afterwards, conflicts forced.
    pub object: Value,
}

impl Plan {
    /// Plans an apply of `config` by `manager`; `live` is `None` where the object does not exist. It fails where the
    /// apply would fail by force too.
    pub fn new(
        endpoint: &FieldManager,
        live: Option<&Value>,
        config: &Value,
        manager: &str,
    ) -> Result<Plan, ApplyError> {
        let object = endpoint.apply(live, config, manager, true, 0)?;
        let conflicts = match endpoint.apply(live, config, manager, false, 0) {
            Err(ApplyError::Conflict(conflicts)) => conflicts.fields(),
            _ => FieldSet::new(),
        };
        let none = Value::Null;
        let live = live.unwrap_or(&none);
        let before = decode_managers(live).unwrap_or_default();
        let after = decode_managers(&object).unwrap_or_default();
        let own = |managers: &Managers| {
            let own = |id: &ManagerId| id.manager == manager && id.operation == Operation::Apply;
            managers.iter().filter(|(id, _)| own(id)).fold(FieldSet::new(), |set, (_, owned)| set.union(&owned.set))
        };
        let (had, has) = (own(&before), own(&after));
        let mut fields = Vec::new();
        for path in had.union(&has).union(&conflicts).leaves().paths() {
            let steps = path.elements();
            let value = |object: &Value| endpoint.schema().and_then(|s| typed::value_at(s, object, steps)).cloned();
            let (was, is) = (value(live), value(&object));
            let effect = match (&was, &is) {
                _ if conflicts.has(steps) => Effect::Conflicts,
                (None, _) if has.has(steps) => Effect::Adds,
                (Some(was), Some(is)) if has.has(steps) && !equal_values(was, is) => Effect::Changes,
                _ if had.has(steps) && has.has(steps) => Effect::Keeps,
                _ if has.has(steps) => Effect::Takes,
                (_, Some(_)) => Effect::Releases,
                (_, None) => Effect::Removes,
            };
            let is_self = |id: &ManagerId| id.manager == manager && id.operation == Operation::Apply;
            let others = owners_of(&before, steps).into_iter().filter(|id| !is_self(id)).cloned().collect();
            fields.push(PlannedField { path, effect, before: was, after: is, others });
        }
        fields.sort_by(|a, b| a.effect.cmp(&b.effect).then_with(|| a.path.cmp(&b.path)));
        Ok(Plan { fields, object })
    }

    /// Whether it cannot be done without force.
    pub fn has_conflicts(&self) -> bool {
        self.fields.iter().any(|f| f.effect == Effect::Conflicts)
    }
}

/// A line for each field: what happens, the path, the values, and who else owns it.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for field in &self.fields {
            write!(f, "{:<9}  {}", field.effect.as_str(), field.path)?;
            let text = |v: &Option<Value>| v.as_ref().map(json::to_string).unwrap_or_default();
            match field.effect {
                Effect::Conflicts | Effect::Changes => {
                    write!(f, ": {} -> {}", text(&field.before), text(&field.after))?;
                }
                Effect::Adds => write!(f, ": {}", text(&field.after))?,
                Effect::Takes | Effect::Keeps | Effect::Releases | Effect::Removes => {
                    write!(f, ": {}", text(&field.before))?;
                }
            }
            if !field.others.is_empty() {
                write!(f, "  # {}", list(&field.others))?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}
