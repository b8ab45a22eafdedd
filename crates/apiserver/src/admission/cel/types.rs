//! The types of what expressions on requests can name.

use cel::env::TypeProvider;
use cel::types::Type;
use std::sync::Arc;

/// The object types of requests: name, and fields with their types.
const TYPES: &[(&str, &[(&str, Field)])] = &[
    (
        "kubernetes.AdmissionRequest",
        &[
            ("kind", Field::Object("kubernetes.GroupVersionKind")),
            ("resource", Field::Object("kubernetes.GroupVersionResource")),
            ("subResource", Field::Text),
            ("requestKind", Field::Object("kubernetes.GroupVersionKind")),
            ("requestResource", Field::Object("kubernetes.GroupVersionResource")),
            ("requestSubResource", Field::Text),
            ("name", Field::Text),
            ("namespace", Field::Text),
            ("operation", Field::Text),
            ("userInfo", Field::Object("kubernetes.UserInfo")),
            ("dryRun", Field::Bool),
            ("options", Field::Any),
        ],
    ),
    ("kubernetes.GroupVersionKind", &[("group", Field::Text), ("version", Field::Text), ("kind", Field::Text)]),
    ("kubernetes.GroupVersionResource", &[("group", Field::Text), ("version", Field::Text), ("resource", Field::Text)]),
    (
        "kubernetes.UserInfo",
        &[("username", Field::Text), ("uid", Field::Text), ("groups", Field::Texts), ("extra", Field::TextsMap)],
    ),
    (
        "kubernetes.Namespace",
        &[
            ("metadata", Field::Object("kubernetes.NamespaceMetadata")),
            ("spec", Field::Object("kubernetes.NamespaceSpec")),
            ("status", Field::Object("kubernetes.NamespaceStatus")),
        ],
    ),
    (
        "kubernetes.NamespaceMetadata",
        &[
            ("name", Field::Text),
            ("generateName", Field::Text),
            ("namespace", Field::Text),
            ("labels", Field::TextMap),
            ("annotations", Field::TextMap),
            ("UID", Field::Text),
            ("creationTimestamp", Field::Time),
            ("deletionGracePeriodSeconds", Field::Int),
            ("deletionTimestamp", Field::Time),
            ("generation", Field::Int),
            ("resourceVersion", Field::Text),
            ("finalizers", Field::Texts),
        ],
    ),
    ("kubernetes.NamespaceSpec", &[("finalizers", Field::Texts)]),
    ("kubernetes.NamespaceStatus", &[("phase", Field::Text)]),
];

#[derive(Clone, Copy)]
enum Field {
    Text,
    Bool,
    Int,
    Time,
    Any,
    Texts,
    TextMap,
    TextsMap,
    Object(&'static str),
}

impl Field {
    fn cel_type(self) -> Type {
        match self {
            Field::Text => Type::String,
            Field::Bool => Type::Bool,
            Field::Int => Type::Int,
            Field::Time => Type::Timestamp,
            Field::Any => Type::Dyn,
            Field::Texts => Type::list(Type::String),
            Field::TextMap => Type::map(Type::String, Type::String),
            Field::TextsMap => Type::map(Type::String, Type::list(Type::String)),
            Field::Object(name) => Type::object(name),
        }
    }
}

pub(super) struct Types;

fn fields(object: &str) -> &'static [(&'static str, Field)] {
    TYPES.iter().find(|(name, _)| *name == object).map_or(&[], |(_, fields)| fields)
}

impl TypeProvider for Types {
    fn find_type(&self, name: &str) -> Option<Type> {
        TYPES.iter().any(|(known, _)| *known == name).then(|| Type::object(name))
    }

    fn field_type(&self, object: &str, field: &str) -> Option<Type> {
        fields(object).iter().find(|(name, _)| *name == field).map(|(_, ty)| ty.cel_type())
    }

    fn field_names(&self, object: &str) -> Vec<Arc<str>> {
        fields(object).iter().map(|(name, _)| (*name).into()).collect()
    }
}
