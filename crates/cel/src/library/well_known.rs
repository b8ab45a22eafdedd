//! The types every environment knows without a library: the language's own and the `google.protobuf` messages.

use crate::ast::Literal;
use crate::env::Ident;
use crate::types::{Primitive, Type};

/// Names that denote types, and the one enum constant of the well-known messages.
pub(crate) fn idents() -> Vec<Ident> {
    let language = [
        Type::Bool,
        Type::Bytes,
        Type::Double,
        Type::Duration,
        Type::Int,
        Type::list(Type::Dyn),
        Type::map(Type::Dyn, Type::Dyn),
        Type::Null,
        Type::String,
        Type::Timestamp,
        Type::Type(None),
        Type::Uint,
    ];
    let mut idents: Vec<Ident> = language
        .into_iter()
        .map(|ty| Ident { name: ty.runtime_name().into(), ty: Type::type_of(ty), value: None })
        .collect();
    let messages = MESSAGES.iter().filter_map(|name| Some((*name, message_type(name)?)));
    idents.extend(messages.map(|(name, ty)| Ident { name: name.into(), ty: Type::type_of(ty), value: None }));
    idents.push(Ident {
        name: "google.protobuf.NullValue.NULL_VALUE".into(),
        ty: Type::Int,
        value: Some(Literal::Int(0)),
    });
    idents
}

const MESSAGES: [&str; 17] = [
    "google.protobuf.Any",
    "google.protobuf.BoolValue",
    "google.protobuf.BytesValue",
    "google.protobuf.DoubleValue",
    "google.protobuf.Duration",
    "google.protobuf.Empty",
    "google.protobuf.FloatValue",
    "google.protobuf.Int32Value",
    "google.protobuf.Int64Value",
    "google.protobuf.ListValue",
    "google.protobuf.StringValue",
    "google.protobuf.Struct",
    "google.protobuf.Struct.FieldsEntry",
    "google.protobuf.Timestamp",
    "google.protobuf.UInt32Value",
    "google.protobuf.UInt64Value",
    "google.protobuf.Value",
];

fn message_type(name: &str) -> Option<Type> {
    Some(match name.strip_prefix("google.protobuf.")? {
        "Any" => Type::Any,
        "BoolValue" => Type::Wrapper(Primitive::Bool),
        "BytesValue" => Type::Wrapper(Primitive::Bytes),
        "DoubleValue" | "FloatValue" => Type::Wrapper(Primitive::Double),
        "Duration" => Type::Duration,
        "Int32Value" | "Int64Value" => Type::Wrapper(Primitive::Int),
        "ListValue" => Type::list(Type::Dyn),
        "StringValue" => Type::Wrapper(Primitive::String),
        "Struct" => Type::map(Type::String, Type::Dyn),
        "Timestamp" => Type::Timestamp,
        "UInt32Value" | "UInt64Value" => Type::Wrapper(Primitive::Uint),
        "Value" => Type::Dyn,
        "Empty" | "Struct.FieldsEntry" => Type::object(name),
        _ => return None,
    })
}

/// Whether the name is that of a well-known message, or of a type of the language that the Kubernetes provider
/// also knows as an object type (without fields).
pub(crate) fn is_object(name: &str) -> bool {
    MESSAGES.contains(&name)
        || matches!(name, "bool" | "bytes" | "double" | "int" | "uint" | "string" | "null_type" | "list" | "map")
}

/// The type of a field of a well-known message.
pub(crate) fn field_type(message: &str, field: &str) -> Option<Type> {
    Some(match (message.strip_prefix("google.protobuf.")?, field) {
        ("Any", "type_url") => Type::String,
        ("Any", "value") => Type::Bytes,
        ("Duration" | "Timestamp", "seconds" | "nanos") => Type::Int,
        ("ListValue", "values") => Type::list(Type::Dyn),
        ("Struct", "fields") => Type::map(Type::String, Type::Dyn),
        ("Struct.FieldsEntry", "key") => Type::String,
        ("Struct.FieldsEntry", "value") => Type::Dyn,
        ("Value", "null_value") => Type::Int,
        ("Value", "number_value") => Type::Double,
        ("Value", "string_value") => Type::String,
        ("Value", "bool_value") => Type::Bool,
        ("Value", "struct_value") => Type::map(Type::String, Type::Dyn),
        ("Value", "list_value") => Type::list(Type::Dyn),
        ("BoolValue", "value") => Type::Bool,
        ("BytesValue", "value") => Type::Bytes,
        ("DoubleValue" | "FloatValue", "value") => Type::Double,
        ("Int32Value" | "Int64Value", "value") => Type::Int,
        ("StringValue", "value") => Type::String,
        ("UInt32Value" | "UInt64Value", "value") => Type::Uint,
        _ => return None,
    })
}
