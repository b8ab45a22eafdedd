//! Parts of a definition in Go's syntax, as some errors print them: upstream's internal structs, field by field.

use super::{Hoisted, list, members};
use object::Value;
use object::field::Shown;
use object::go::{self, ADDRESS};
use std::fmt::Write;

/// Where printing ends, in bytes. Nested schemas are printed at each level that is wrong, which could add up.
const MAX_TEXT: usize = 64 * 1024;

/// How a field is printed.
#[derive(Clone, Copy)]
enum Form {
    Text,
    Flag,
    /// A pointer; its type.
    Pointer(&'static str),
    Json,
    Strings,
    Schemas,
    SchemaMap(&'static str),
    Rules,
}

const SCHEMA: [(&str, &str, Form); 43] = [
    ("id", "ID", Form::Text),
    ("$schema", "Schema", Form::Text),
    ("$ref", "Ref", Form::Pointer("*string")),
    ("description", "Description", Form::Text),
    ("type", "Type", Form::Text),
    ("nullable", "Nullable", Form::Flag),
    ("format", "Format", Form::Text),
    ("title", "Title", Form::Text),
    ("default", "Default", Form::Pointer("*apiextensions.JSON")),
    ("maximum", "Maximum", Form::Pointer("*float64")),
    ("exclusiveMaximum", "ExclusiveMaximum", Form::Flag),
    ("minimum", "Minimum", Form::Pointer("*float64")),
    ("exclusiveMinimum", "ExclusiveMinimum", Form::Flag),
    ("maxLength", "MaxLength", Form::Pointer("*int64")),
    ("minLength", "MinLength", Form::Pointer("*int64")),
    ("pattern", "Pattern", Form::Text),
    ("maxItems", "MaxItems", Form::Pointer("*int64")),
    ("minItems", "MinItems", Form::Pointer("*int64")),
    ("uniqueItems", "UniqueItems", Form::Flag),
    ("multipleOf", "MultipleOf", Form::Pointer("*float64")),
    ("enum", "Enum", Form::Json),
    ("maxProperties", "MaxProperties", Form::Pointer("*int64")),
    ("minProperties", "MinProperties", Form::Pointer("*int64")),
    ("required", "Required", Form::Strings),
    ("items", "Items", Form::Pointer("*apiextensions.JSONSchemaPropsOrArray")),
    ("allOf", "AllOf", Form::Schemas),
    ("oneOf", "OneOf", Form::Schemas),
    ("anyOf", "AnyOf", Form::Schemas),
    ("not", "Not", Form::Pointer("*apiextensions.JSONSchemaProps")),
    ("properties", "Properties", Form::SchemaMap("map[string]apiextensions.JSONSchemaProps")),
    ("additionalProperties", "AdditionalProperties", Form::Pointer("*apiextensions.JSONSchemaPropsOrBool")),
    ("patternProperties", "PatternProperties", Form::SchemaMap("map[string]apiextensions.JSONSchemaProps")),
    ("dependencies", "Dependencies", Form::SchemaMap("apiextensions.JSONSchemaDependencies")),
    ("additionalItems", "AdditionalItems", Form::Pointer("*apiextensions.JSONSchemaPropsOrBool")),
    ("definitions", "Definitions", Form::SchemaMap("apiextensions.JSONSchemaDefinitions")),
    ("externalDocs", "ExternalDocs", Form::Pointer("*apiextensions.ExternalDocumentation")),
    ("example", "Example", Form::Pointer("*apiextensions.JSON")),
    ("x-kubernetes-preserve-unknown-fields", "XPreserveUnknownFields", Form::Pointer("*bool")),
    ("x-kubernetes-embedded-resource", "XEmbeddedResource", Form::Flag),
    ("x-kubernetes-int-or-string", "XIntOrString", Form::Flag),
    ("x-kubernetes-list-map-keys", "XListMapKeys", Form::Strings),
    ("x-kubernetes-list-type", "XListType", Form::Pointer("*string")),
    ("x-kubernetes-map-type", "XMapType", Form::Pointer("*string")),
];

/// The keywords in the order of upstream's struct.
pub(super) const SCHEMA_ORDER: [&str; 44] = {
    let mut out = [""; 44];
    let mut i = 0;
    while i < SCHEMA.len() {
        out[i] = SCHEMA[i].0;
        i += 1;
    }
    out[43] = "x-kubernetes-validations";
    out
};

/// A schema: `apiextensions.JSONSchemaProps{ID:"", …}`.
pub(super) fn schema(value: &Value) -> Shown {
    let mut out = String::new();
    push_schema(&mut out, value);
    Shown::raw(out)
}

/// `items` that are no single schema.
pub(super) fn items(value: &Value) -> Shown {
    let mut out =
        "apiextensions.JSONSchemaPropsOrArray{Schema:(*apiextensions.JSONSchemaProps)(nil), JSONSchemas:".to_owned();
    push_schemas(&mut out, value.as_array().unwrap_or_default());
    out.push('}');
    Shown::raw(out)
}

fn push_schema(out: &mut String, value: &Value) {
    if out.len() > MAX_TEXT {
        return out.push('…');
    }
    out.push_str("apiextensions.JSONSchemaProps{");
    for (key, name, form) in SCHEMA {
        let _ = write!(out, "{name}:");
        push_field(out, value, key, form);
        out.push_str(", ");
    }
    out.push_str("XValidations:");
    push_field(out, value, "x-kubernetes-validations", Form::Rules);
    out.push('}');
}

fn push_field(out: &mut String, value: &Value, key: &str, form: Form) {
    let field = value.get(key).filter(|v| !v.is_null());
    match form {
        Form::Text => out.push_str(&go::quote(field.and_then(Value::as_str).unwrap_or_default())),
        Form::Flag => {
            let _ = write!(out, "{}", field == Some(&Value::Bool(true)));
        }
        Form::Pointer(ty) => {
            let _ = write!(out, "({ty})({})", if field.is_some() { ADDRESS } else { "nil" });
        }
        Form::Json => match list(value, key) {
            [] => out.push_str("[]apiextensions.JSON(nil)"),
            items => {
                let items: Vec<String> = items.iter().map(go::syntax).collect();
                let _ = write!(out, "[]apiextensions.JSON{{{}}}", items.join(", "));
            }
        },
        Form::Strings => match list(value, key) {
            [] => out.push_str("[]string(nil)"),
            items => {
                let items: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
                out.push_str(&go::string_list(&items));
            }
        },
        Form::Schemas => match list(value, key) {
            [] => out.push_str("[]apiextensions.JSONSchemaProps(nil)"),
            items => push_schemas(out, items),
        },
        Form::SchemaMap(ty) => {
            let map = members(value, key);
            if map.is_empty() {
                let _ = write!(out, "{ty}(nil)");
                return;
            }
            let _ = write!(out, "{ty}{{");
            for (i, (name, inner)) in map.iter().enumerate() {
                let _ = write!(out, "{}{}:", if i > 0 { ", " } else { "" }, go::quote(name));
                if key == "dependencies" {
                    push_dependency(out, inner);
                } else {
                    push_schema(out, inner);
                }
            }
            out.push('}');
        }
        Form::Rules => match list(value, key) {
            [] => out.push_str("apiextensions.ValidationRules(nil)"),
            items => {
                let items: Vec<String> = items.iter().map(rule_text).collect();
                let _ = write!(out, "apiextensions.ValidationRules{{{}}}", items.join(", "));
            }
        },
    }
}

fn push_dependency(out: &mut String, value: &Value) {
    let schema = if value.as_object().is_some() { ADDRESS } else { "nil" };
    let names: Vec<&str> = value.as_array().unwrap_or_default().iter().filter_map(Value::as_str).collect();
    let names = if names.is_empty() { "[]string(nil)".to_owned() } else { go::string_list(&names) };
    let _ = write!(
        out,
        "apiextensions.JSONSchemaPropsOrStringArray{{Schema:(*apiextensions.JSONSchemaProps)({schema}), Property:{names}}}"
    );
}

fn push_schemas(out: &mut String, items: &[Value]) {
    out.push_str("[]apiextensions.JSONSchemaProps{");
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            out.push_str(", ");
        }
        push_schema(out, item);
    }
    out.push('}');
}

fn rule_text(value: &Value) -> String {
    rule_form(&crate::Rule::from_value(value))
}

/// A rule: `apiextensions.ValidationRule{Rule:"…", …}`.
pub(super) fn rule(rule: &crate::Rule) -> Shown {
    Shown::raw(rule_form(rule))
}

fn rule_form(rule: &crate::Rule) -> String {
    let pointer = |set: bool| if set { ADDRESS } else { "nil" };
    format!(
        "apiextensions.ValidationRule{{Rule:{}, Message:{}, MessageExpression:{}, Reason:(*apiextensions.FieldValueErrorReason)({}), FieldPath:{}, OptionalOldSelf:(*bool)({})}}",
        go::quote(&rule.rule),
        go::quote(&rule.message),
        go::quote(&rule.message_expression),
        pointer(rule.reason.is_some()),
        go::quote(&rule.field_path),
        pointer(rule.optional_old_self.is_some()),
    )
}

/// All versions, without what moved up to the spec.
pub(super) fn versions(hoisted: &Hoisted<'_>) -> Shown {
    const TYPE: &str = "[]apiextensions.CustomResourceDefinitionVersion";
    if hoisted.spec.get("versions").is_none_or(Value::is_null) {
        return Shown::raw(format!("{TYPE}(nil)"));
    }
    let items: Vec<String> = hoisted.versions.iter().map(|v| version_form(v, hoisted)).collect();
    Shown::raw(format!("{TYPE}{{{}}}", items.join(", ")))
}

fn version_form(version: &Value, hoisted: &Hoisted<'_>) -> String {
    let mut out = String::from("apiextensions.CustomResourceDefinitionVersion{");
    for (key, name, form) in [
        ("name", "Name", Form::Text),
        ("served", "Served", Form::Flag),
        ("storage", "Storage", Form::Flag),
        ("deprecated", "Deprecated", Form::Flag),
        ("deprecationWarning", "DeprecationWarning", Form::Pointer("*string")),
    ] {
        let _ = write!(out, "{name}:");
        push_field(&mut out, version, key, form);
        out.push_str(", ");
    }
    for (key, name, ty, moved) in [
        ("schema", "Schema", "*apiextensions.CustomResourceValidation", hoisted.schema),
        ("subresources", "Subresources", "*apiextensions.CustomResourceSubresources", hoisted.subresources),
    ] {
        let own = version.get(key).is_some() && !moved;
        let _ = write!(out, "{name}:({ty})({}), ", if own { ADDRESS } else { "nil" });
    }
    let _ = write!(out, "AdditionalPrinterColumns:{}, ", columns_form(version, hoisted));
    let _ = write!(out, "SelectableFields:{}}}", selectable_form(version, hoisted));
    out
}

fn columns_form(version: &Value, hoisted: &Hoisted<'_>) -> String {
    const TYPE: &str = "[]apiextensions.CustomResourceColumnDefinition";
    let columns = if hoisted.columns { &[][..] } else { list(version, "additionalPrinterColumns") };
    if columns.is_empty() {
        return format!("{TYPE}(nil)");
    }
    let items: Vec<String> = columns
        .iter()
        .map(|column| {
            let text = |key: &str| go::quote(super::text(column, key));
            format!(
                "apiextensions.CustomResourceColumnDefinition{{Name:{}, Type:{}, Format:{}, Description:{}, Priority:{}, JSONPath:{}}}",
                text("name"),
                text("type"),
                text("format"),
                text("description"),
                column.get("priority").and_then(Value::as_int).unwrap_or(0),
                text("jsonPath"),
            )
        })
        .collect();
    format!("{TYPE}{{{}}}", items.join(", "))
}

fn selectable_form(version: &Value, hoisted: &Hoisted<'_>) -> String {
    const TYPE: &str = "[]apiextensions.SelectableField";
    let fields = if hoisted.selectable { &[][..] } else { list(version, "selectableFields") };
    if fields.is_empty() {
        return format!("{TYPE}(nil)");
    }
    let items: Vec<String> = fields
        .iter()
        .map(|field| format!("apiextensions.SelectableField{{JSONPath:{}}}", go::quote(super::text(field, "jsonPath"))))
        .collect();
    format!("{TYPE}{{{}}}", items.join(", "))
}
