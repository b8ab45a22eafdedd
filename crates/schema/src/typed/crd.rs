//! The structs of `apiextensions.k8s.io/v1`.

use super::{STRING, Struct, Ty, always, optional, pointer};

pub(crate) static DEFINITION: Ty = Ty::Struct(&Struct {
    name: "CustomResourceDefinition",
    fields: &[
        optional("apiVersion", STRING),
        optional("kind", STRING),
        optional("metadata", Ty::Struct(&super::meta::FIELDS)),
        always("spec", Ty::Struct(&SPEC)),
        optional("status", Ty::Struct(&STATUS)),
    ],
});

static SPEC: Struct = Struct {
    name: "CustomResourceDefinitionSpec",
    fields: &[
        always("group", STRING),
        always("names", Ty::Struct(&NAMES)),
        always("scope", Ty::Str("v1.ResourceScope")),
        always("versions", Ty::List(&Ty::Struct(&VERSION))),
        pointer("conversion", Ty::Struct(&CONVERSION)),
        optional("preserveUnknownFields", Ty::Bool),
    ],
};

static NAMES: Struct = Struct {
    name: "CustomResourceDefinitionNames",
    fields: &[
        always("plural", STRING),
        optional("singular", STRING),
        optional("shortNames", Ty::List(&STRING)),
        always("kind", STRING),
        optional("listKind", STRING),
        optional("categories", Ty::List(&STRING)),
    ],
};

static VERSION: Struct = Struct {
    name: "CustomResourceDefinitionVersion",
    fields: &[
        always("name", STRING),
        always("served", Ty::Bool),
        always("storage", Ty::Bool),
        optional("deprecated", Ty::Bool),
        pointer("deprecationWarning", STRING),
        pointer("schema", Ty::Struct(&VALIDATION)),
        pointer("subresources", Ty::Struct(&SUBRESOURCES)),
        optional("additionalPrinterColumns", Ty::List(&Ty::Struct(&COLUMN))),
        optional("selectableFields", Ty::List(&Ty::Struct(&SELECTABLE))),
    ],
};

static CONVERSION: Struct = Struct {
    name: "CustomResourceConversion",
    fields: &[always("strategy", Ty::Str("v1.ConversionStrategyType")), pointer("webhook", Ty::Struct(&WEBHOOK))],
};

static WEBHOOK: Struct = Struct {
    name: "WebhookConversion",
    fields: &[pointer("clientConfig", Ty::Struct(&CLIENT)), always("conversionReviewVersions", Ty::List(&STRING))],
};

static CLIENT: Struct = Struct {
    name: "WebhookClientConfig",
    fields: &[pointer("url", STRING), pointer("service", Ty::Struct(&SERVICE)), optional("caBundle", Ty::Bytes)],
};

static SERVICE: Struct = Struct {
    name: "ServiceReference",
    fields: &[always("namespace", STRING), always("name", STRING), pointer("path", STRING), pointer("port", Ty::Int32)],
};

static VALIDATION: Struct =
    Struct { name: "CustomResourceValidation", fields: &[pointer("openAPIV3Schema", Ty::Struct(&SCHEMA))] };

static SUBRESOURCES: Struct = Struct {
    name: "CustomResourceSubresources",
    fields: &[pointer("status", Ty::Struct(&STATUS_SUBRESOURCE)), pointer("scale", Ty::Struct(&SCALE))],
};

static STATUS_SUBRESOURCE: Struct = Struct { name: "CustomResourceSubresourceStatus", fields: &[] };

static SCALE: Struct = Struct {
    name: "CustomResourceSubresourceScale",
    fields: &[
        always("specReplicasPath", STRING),
        always("statusReplicasPath", STRING),
        pointer("labelSelectorPath", STRING),
    ],
};

static COLUMN: Struct = Struct {
    name: "CustomResourceColumnDefinition",
    fields: &[
        always("name", STRING),
        always("type", STRING),
        optional("format", STRING),
        optional("description", STRING),
        optional("priority", Ty::Int32),
        always("jsonPath", STRING),
    ],
};

static SELECTABLE: Struct = Struct { name: "SelectableField", fields: &[always("jsonPath", STRING)] };

static STATUS: Struct = Struct {
    name: "CustomResourceDefinitionStatus",
    fields: &[
        always("conditions", Ty::List(&Ty::Struct(&CONDITION))),
        always("acceptedNames", Ty::Struct(&NAMES)),
        always("storedVersions", Ty::List(&STRING)),
    ],
};

static CONDITION: Struct = Struct {
    name: "CustomResourceDefinitionCondition",
    fields: &[
        always("type", Ty::Str("v1.CustomResourceDefinitionConditionType")),
        always("status", Ty::Str("v1.ConditionStatus")),
        always("lastTransitionTime", Ty::Time),
        optional("reason", STRING),
        optional("message", STRING),
    ],
};

pub(super) static SCHEMA_TYPE: Ty = Ty::Struct(&SCHEMA);

pub(super) static SCHEMA_LIST: Ty = Ty::List(&SCHEMA_TYPE);

static SCHEMA: Struct = Struct {
    name: "JSONSchemaProps",
    fields: &[
        optional("id", STRING),
        optional("$schema", STRING),
        pointer("$ref", STRING),
        optional("description", STRING),
        optional("type", STRING),
        optional("format", STRING),
        optional("title", STRING),
        pointer("default", Ty::Any),
        pointer("maximum", Ty::Float),
        optional("exclusiveMaximum", Ty::Bool),
        pointer("minimum", Ty::Float),
        optional("exclusiveMinimum", Ty::Bool),
        pointer("maxLength", Ty::Int64),
        pointer("minLength", Ty::Int64),
        optional("pattern", STRING),
        pointer("maxItems", Ty::Int64),
        pointer("minItems", Ty::Int64),
        optional("uniqueItems", Ty::Bool),
        pointer("multipleOf", Ty::Float),
        optional("enum", Ty::List(&Ty::Any)),
        pointer("maxProperties", Ty::Int64),
        pointer("minProperties", Ty::Int64),
        optional("required", Ty::List(&STRING)),
        pointer("items", Ty::SchemaOrArray),
        optional("allOf", Ty::List(&Ty::Struct(&SCHEMA))),
        optional("oneOf", Ty::List(&Ty::Struct(&SCHEMA))),
        optional("anyOf", Ty::List(&Ty::Struct(&SCHEMA))),
        pointer("not", Ty::Struct(&SCHEMA)),
        optional("properties", Ty::Map(&Ty::Struct(&SCHEMA))),
        pointer("additionalProperties", Ty::SchemaOrBool),
        optional("patternProperties", Ty::Map(&Ty::Struct(&SCHEMA))),
        optional("dependencies", Ty::Map(&Ty::SchemaOrStrings)),
        pointer("additionalItems", Ty::SchemaOrBool),
        optional("definitions", Ty::Map(&Ty::Struct(&SCHEMA))),
        pointer("externalDocs", Ty::Struct(&EXTERNAL_DOCS)),
        pointer("example", Ty::Any),
        optional("nullable", Ty::Bool),
        pointer("x-kubernetes-preserve-unknown-fields", Ty::Bool),
        optional("x-kubernetes-embedded-resource", Ty::Bool),
        optional("x-kubernetes-int-or-string", Ty::Bool),
        optional("x-kubernetes-list-map-keys", Ty::List(&STRING)),
        pointer("x-kubernetes-list-type", STRING),
        pointer("x-kubernetes-map-type", STRING),
        optional("x-kubernetes-validations", Ty::List(&Ty::Struct(&RULE))),
    ],
};

static EXTERNAL_DOCS: Struct =
    Struct { name: "ExternalDocumentation", fields: &[optional("description", STRING), optional("url", STRING)] };

static RULE: Struct = Struct {
    name: "ValidationRule",
    fields: &[
        always("rule", STRING),
        optional("message", STRING),
        optional("messageExpression", STRING),
        pointer("reason", Ty::Str("v1.FieldValueErrorReason")),
        optional("fieldPath", STRING),
        pointer("optionalOldSelf", Ty::Bool),
    ],
};
