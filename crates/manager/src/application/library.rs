//! The definitions that come with the program, under the names of those that KubeVela's chart brings: Applications that
//! are written for these need no others. A definition of the same name in the cluster takes the place of one of these.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use object::Value;

use super::definition_kinds::DefinitionKind;

#[cfg(test)]
mod tests;

type ByName = BTreeMap<String, Arc<Value>>;

static COMPONENTS: LazyLock<ByName> = LazyLock::new(|| read(include_bytes!("library/components.yaml")));
static TRAITS: LazyLock<ByName> = LazyLock::new(|| read(include_bytes!("library/traits.yaml")));

/// The definitions of a file; a file that comes with the program is read in a test.
fn read(file: &[u8]) -> ByName {
    let all = crate::kinds::listed(file).unwrap_or_default();
    all.into_iter().map(|definition| (definition.name().to_owned(), Arc::new(definition))).collect()
}

/// All definitions of a kind, by name.
fn of(kind: DefinitionKind) -> Option<&'static ByName> {
    match kind {
        DefinitionKind::Component => Some(&COMPONENTS),
        DefinitionKind::Trait => Some(&TRAITS),
        DefinitionKind::Policy | DefinitionKind::WorkflowStep => None,
    }
}

/// The definition of a name, if there is one.
pub(super) fn find(kind: DefinitionKind, name: &str) -> Option<&'static Arc<Value>> {
    of(kind)?.get(name)
}

/// All of them: of components first, each kind by name.
pub fn all() -> impl Iterator<Item = &'static Value> {
    DefinitionKind::ALL.into_iter().filter_map(of).flat_map(BTreeMap::values).map(Arc::as_ref)
}
