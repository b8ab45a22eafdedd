//! What strategic merge patches need to know of a type: strategies and merge keys, by the path of a field.

use crate::definitions::{Definition, Schema, Type};

/// Where in a type a walk is: what is known of the field that it came by, and the structure below it.
#[derive(Clone, Copy, Debug)]
pub struct PatchSchema {
    definition: Option<&'static Definition>,
    schema: Option<&'static Schema>,
}

impl PatchSchema {
    /// The start of a walk at an object.
    pub fn of(definition: &'static Definition) -> Self {
        PatchSchema { definition: Some(definition), schema: None }
    }

    /// The field of a name; nothing where the structure has no such field. Values of a map are its fields.
    ///
    /// ```
    /// use kinds::{PatchSchema, definitions};
    /// let pod = PatchSchema::of(definitions().get("io.k8s.api.core.v1.Pod").unwrap());
    /// let containers = pod.field("spec").and_then(|s| s.field("containers")).unwrap();
    /// assert_eq!((containers.strategy(), containers.merge_key()), ("merge", "name"));
    /// assert_eq!(containers.item().field("ports").unwrap().merge_key(), "containerPort");
    /// ```
    pub fn field(self, name: &str) -> Option<Self> {
        if let Some(definition) = self.definition.filter(|d| !d.fields.is_empty()) {
            return Some(Self::below(&definition.field(name)?.schema));
        }
        match self.schema.map(|s| &s.ty) {
            Some(Type::Map(value)) => Some(Self::below(value)),
            _ => None,
        }
    }

    /// The items of a list; the place itself where it is none.
    pub fn item(self) -> Self {
        match self.schema.map(|s| &s.ty) {
            Some(Type::List(item)) => Self::below(item),
            _ => self,
        }
    }

    /// `x-kubernetes-patch-strategy`, for example `merge` or `merge,retainKeys`; empty where there is none.
    pub fn strategy(self) -> &'static str {
        self.schema.map_or("", |s| s.patch_strategy)
    }

    /// `x-kubernetes-patch-merge-key`; empty where there is none.
    pub fn merge_key(self) -> &'static str {
        self.schema.map_or("", |s| s.patch_merge_key)
    }

    /// What is published about the field, if the walk came by one.
    pub fn schema(self) -> Option<&'static Schema> {
        self.schema
    }

    /// The structure at this place, if it is one.
    pub fn definition(self) -> Option<&'static Definition> {
        self.definition
    }

    fn below(schema: &'static Schema) -> Self {
        PatchSchema { definition: schema.ty.definition(), schema: Some(schema) }
    }
}
