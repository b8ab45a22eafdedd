//! Structural schemas: a version's `openAPIV3Schema`, compiled.

use crate::format::Format;
use crate::intern::{Digest, Id, Interner};
use crate::rules::{self, Compiled, Decls, Expressions};
use crate::stack;
use compact_str::CompactString;
use object::Value;
use std::sync::{Arc, OnceLock};

/// The `type` of a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// `array`
    Array,
    /// `boolean`
    Boolean,
    /// `integer`
    Integer,
    /// `number`
    Number,
    /// `object`
    Object,
    /// `string`
    String,
}

impl Type {
    /// The type named so.
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "array" => Type::Array,
            "boolean" => Type::Boolean,
            "integer" => Type::Integer,
            "number" => Type::Number,
            "object" => Type::Object,
            "string" => Type::String,
            _ => return None,
        })
    }

    /// The name in a schema.
    pub fn name(self) -> &'static str {
        match self {
            Type::Array => "array",
            Type::Boolean => "boolean",
            Type::Integer => "integer",
            Type::Number => "number",
            Type::Object => "object",
            Type::String => "string",
        }
    }
}

/// `x-kubernetes-list-type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListType {
    /// One value as a whole.
    Atomic,
    /// Scalars, each at most once.
    Set,
    /// Objects, told apart by the values of their keys.
    Map,
}

/// `x-kubernetes-map-type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapType {
    /// One value as a whole.
    Atomic,
    /// Each member on its own.
    Granular,
}

/// `additionalProperties`.
#[derive(Clone, Copy, Debug)]
pub enum Additional<'s> {
    /// Not given.
    Absent,
    /// `true` or `false`.
    Any(bool),
    /// A schema for every other member.
    Schema(&'s Node),
}

/// One node of a structural schema. It is small, since a server keeps the schemas of all its definitions: flags, the
/// children, and a list of those keywords that are set.
#[derive(Debug, Default)]
pub struct Node {
    typ: Option<Type>,
    nullable: bool,
    preserve_unknown: bool,
    int_or_string: bool,
    embedded: bool,
    /// The root, or an embedded resource.
    resource: bool,
    rules_within: bool,
    additional_any: Option<bool>,
    list_type: Option<ListType>,
    map_type: Option<MapType>,
    properties: Box<[(CompactString, Arc<Node>)]>,
    items: Option<Arc<Node>>,
    additional: Option<Arc<Node>>,
    facts: Box<[Fact]>,
}

/// A keyword that is set on a node, other than those that shape it.
#[derive(Debug)]
pub(crate) enum Fact {
    Default(Box<Value>),
    ListMapKeys(Box<[CompactString]>),
    Rules(Box<RuleSet>),
    Format(Option<Format>, Box<str>),
    Pattern(Box<Pattern>),
    Enum(Box<[Value]>),
    Required(Box<[CompactString]>),
    Maximum(f64, bool),
    Minimum(f64, bool),
    MultipleOf(f64),
    MaxLength(i64),
    MinLength(i64),
    MaxItems(i64),
    MinItems(i64),
    MaxProperties(i64),
    MinProperties(i64),
    AllOf(Box<[Node]>),
    AnyOf(Box<[Node]>),
    OneOf(Box<[Node]>),
    Not(Box<Node>),
}

/// The rules of a node, compiled when they first run.
#[derive(Debug)]
pub(crate) struct RuleSet {
    rules: Box<[Rule]>,
    compiled: OnceLock<Option<Compiled>>,
}

/// A regular expression of a schema, compiled when it is first matched.
#[derive(Debug)]
pub(crate) struct Pattern {
    pub(crate) text: Box<str>,
    pub(crate) compiled: OnceLock<Option<regexp::Regexp>>,
}

/// One of `x-kubernetes-validations`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// The CEL expression.
    pub rule: Box<str>,
    /// What people are told when it fails.
    pub message: Box<str>,
    /// A CEL expression that makes what people are told.
    pub message_expression: Box<str>,
    /// The reason of the error.
    pub reason: Option<Box<str>>,
    /// Where the error is shown, relative to the node.
    pub field_path: Box<str>,
    /// Whether `oldSelf` is an optional.
    pub optional_old_self: Option<bool>,
}

impl Rule {
    /// Reads a rule of a definition; what is missing or of another type is empty.
    pub fn from_value(value: &Value) -> Self {
        let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().into();
        Rule {
            rule: text("rule"),
            message: text("message"),
            message_expression: text("messageExpression"),
            reason: value.get("reason").and_then(Value::as_str).map(Into::into),
            field_path: text("fieldPath"),
            optional_old_self: value.get("optionalOldSelf").and_then(Value::as_bool),
        }
    }
}

impl Node {
    /// `type`; none for int-or-string and for nodes that only preserve what they hold.
    pub fn typ(&self) -> Option<Type> {
        self.typ
    }

    /// `nullable`
    pub fn nullable(&self) -> bool {
        self.nullable
    }

    /// `x-kubernetes-preserve-unknown-fields`
    pub fn preserve_unknown(&self) -> bool {
        self.preserve_unknown
    }

    /// `x-kubernetes-int-or-string`
    pub fn int_or_string(&self) -> bool {
        self.int_or_string
    }

    /// `x-kubernetes-embedded-resource`
    pub fn embedded(&self) -> bool {
        self.embedded
    }

    /// `x-kubernetes-list-type`
    pub fn list_type(&self) -> Option<ListType> {
        self.list_type
    }

    /// `x-kubernetes-map-type`
    pub fn map_type(&self) -> Option<MapType> {
        self.map_type
    }

    /// The properties, in order of their names.
    pub fn properties(&self) -> impl DoubleEndedIterator<Item = (&str, &Node)> + ExactSizeIterator {
        self.properties.iter().map(|(name, node)| (name.as_str(), &**node))
    }

    /// The property `name`.
    pub fn property(&self, name: &str) -> Option<&Node> {
        let at = self.properties.binary_search_by(|(n, _)| n.as_str().cmp(name)).ok()?;
        self.properties.get(at).map(|(_, node)| &**node)
    }

    /// `items`
    pub fn items(&self) -> Option<&Node> {
        self.items.as_deref()
    }

    /// `additionalProperties`
    pub fn additional(&self) -> Additional<'_> {
        match (&self.additional, self.additional_any) {
            (Some(schema), _) => Additional::Schema(schema),
            (None, Some(any)) => Additional::Any(any),
            (None, None) => Additional::Absent,
        }
    }

    /// `additionalProperties`, where it is a schema.
    pub fn additional_schema(&self) -> Option<&Node> {
        self.additional.as_deref()
    }

    /// `x-kubernetes-list-map-keys`
    pub fn list_map_keys(&self) -> &[CompactString] {
        self.fact(|f| if let Fact::ListMapKeys(keys) = f { Some(&**keys) } else { None }).unwrap_or_default()
    }

    /// `required`
    pub fn required(&self) -> &[CompactString] {
        self.fact(|f| if let Fact::Required(names) = f { Some(&**names) } else { None }).unwrap_or_default()
    }

    /// `x-kubernetes-validations`
    pub fn rules(&self) -> &[Rule] {
        self.fact(|f| if let Fact::Rules(set) = f { Some(&*set.rules) } else { None }).unwrap_or_default()
    }

    /// The rules as programs, in the same order, compiled now if they never ran; none where the node has no CEL type.
    pub(crate) fn compiled_rules(&self, decls: Option<&Decls>) -> Option<&Compiled> {
        let compile = || match decls {
            Some(decls) => Some(rules::compile(self, decls.get(self)?, &Expressions::All, None)),
            None => Some(rules::compile(self, Decls::new(self).get(self)?, &Expressions::All, None)),
        };
        self.rule_set()?.compiled.get_or_init(compile).as_ref()
    }

    fn rule_set(&self) -> Option<&RuleSet> {
        self.fact(|f| if let Fact::Rules(set) = f { Some(&**set) } else { None })
    }

    /// Whether the rules of this node and of all below it are compiled.
    pub(crate) fn rules_compiled(&self) -> bool {
        !self.rules_within
            || self.rule_set().is_none_or(|set| set.compiled.get().is_some())
                && self.properties.iter().all(|(_, node)| node.rules_compiled())
                && self.items().is_none_or(Node::rules_compiled)
                && self.additional_schema().is_none_or(Node::rules_compiled)
    }

    /// Whether this node or one below it has rules.
    pub(crate) fn rules_within(&self) -> bool {
        self.rules_within
    }

    /// Whether this is the root or an embedded resource, which have `apiVersion`, `kind` and `metadata`.
    pub(crate) fn is_resource(&self) -> bool {
        self.resource
    }

    /// `default`
    pub fn default_value(&self) -> Option<&Value> {
        self.fact(|f| if let Fact::Default(value) = f { Some(&**value) } else { None })
    }

    /// `enum`
    pub fn enum_values(&self) -> Option<&[Value]> {
        self.fact(|f| if let Fact::Enum(values) = f { Some(&**values) } else { None })
    }

    /// `format` as it is written, whether it is known or not.
    pub fn format(&self) -> Option<&str> {
        self.fact(|f| if let Fact::Format(_, name) = f { Some(&**name) } else { None })
    }

    /// `maxLength`
    pub fn max_length(&self) -> Option<i64> {
        self.fact(|f| if let Fact::MaxLength(n) = f { Some(*n) } else { None })
    }

    /// `maxItems`
    pub fn max_items(&self) -> Option<i64> {
        self.fact(|f| if let Fact::MaxItems(n) = f { Some(*n) } else { None })
    }

    /// `maxProperties`
    pub fn max_properties(&self) -> Option<i64> {
        self.fact(|f| if let Fact::MaxProperties(n) = f { Some(*n) } else { None })
    }

    pub(crate) fn facts(&self) -> &[Fact] {
        &self.facts
    }

    fn fact<'s, T>(&'s self, pick: impl Fn(&'s Fact) -> Option<T>) -> Option<T> {
        self.facts.iter().find_map(pick)
    }
}

/// A version's schema, compiled. Share it: it is immutable, and what it compiles later (regular expressions, rules) is
/// kept inside.
#[derive(Debug, Default)]
pub struct Structural {
    root: Node,
    depth: usize,
}

impl Structural {
    /// Compiles an `openAPIV3Schema`. The error names a keyword that has no structural form; texts are upstream's.
    pub fn new(schema: &Value) -> Result<Self, String> {
        let depth = stack::depth(schema);
        let (mut root, _) = stack::with_room(depth, || compile(schema, &mut Interner::new()))?;
        root.resource = true;
        Ok(Structural { root, depth })
    }

    /// Whether any node has rules.
    pub fn has_rules(&self) -> bool {
        self.root.rules_within
    }

    /// The schema of the object itself.
    pub fn root(&self) -> &Node {
        &self.root
    }

    /// How deep walks over this schema go, at most.
    pub fn depth(&self) -> usize {
        self.depth
    }
}

/// What has no structural form, in the order in which upstream looks, and whether it counts when it is empty.
const UNSUPPORTED: [&str; 7] =
    ["id", "$schema", "$ref", "additionalItems", "patternProperties", "definitions", "dependencies"];

fn compile(schema: &Value, interner: &mut Interner) -> Result<(Node, Id), String> {
    let mut digest = interner.digest();
    let Value::Object(members) = schema else { return Ok((Node::default(), digest.finish())) };
    for key in UNSUPPORTED {
        if members.get(key).is_some_and(|v| !matches!(v, Value::Null) && v.as_str() != Some("")) {
            let name = if key == "$schema" { "schema" } else { key };
            return Err(format!("OpenAPIV3Schema '{name}' is not supported"));
        }
    }
    if members.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
        return Err("'x-kubernetes-preserve-unknown-fields' must be true or undefined".to_owned());
    }
    let mut node = Node::default();
    let mut facts = Vec::new();
    for (key, value) in members.iter().filter(|(key, _)| !matches!(*key, "description" | "title")) {
        digest.text(key);
        set(&mut node, &mut facts, key, value, (&mut digest, interner))?;
    }
    for (bound, exclusive) in [("maximum", "exclusiveMaximum"), ("minimum", "exclusiveMinimum")] {
        let Some(limit) = members.get(bound).and_then(number) else { continue };
        let strict = members.get(exclusive).and_then(Value::as_bool).unwrap_or(false);
        facts.push(if bound == "maximum" { Fact::Maximum(limit, strict) } else { Fact::Minimum(limit, strict) });
    }
    node.facts = facts.into();
    node.resource = node.embedded;
    node.rules_within = !node.rules().is_empty()
        || node.properties.iter().any(|(_, node)| node.rules_within)
        || node.items().is_some_and(Node::rules_within)
        || node.additional_schema().is_some_and(Node::rules_within);
    Ok((node, digest.finish()))
}

/// Compiles a schema below another; one that was met before is not kept again.
fn part(schema: &Value, digest: &mut Digest, interner: &mut Interner) -> Result<Arc<Node>, String> {
    let (node, id) = compile(schema, interner)?;
    digest.id(id);
    Ok(interner.keep(id, node))
}

fn set(
    node: &mut Node,
    facts: &mut Vec<Fact>,
    key: &str,
    value: &Value,
    (digest, interner): (&mut Digest, &mut Interner),
) -> Result<(), String> {
    if !matches!(key, "properties" | "items" | "additionalProperties") {
        digest.value(value);
    }
    let flag = || value.as_bool().unwrap_or(false);
    match key {
        "type" => node.typ = value.as_str().and_then(Type::parse),
        "nullable" => node.nullable = flag(),
        "x-kubernetes-preserve-unknown-fields" => node.preserve_unknown = flag(),
        "x-kubernetes-int-or-string" => node.int_or_string = flag(),
        "x-kubernetes-embedded-resource" => node.embedded = flag(),
        "x-kubernetes-list-type" => {
            node.list_type = match value.as_str() {
                Some("atomic") => Some(ListType::Atomic),
                Some("set") => Some(ListType::Set),
                Some("map") => Some(ListType::Map),
                _ => None,
            }
        }
        "x-kubernetes-map-type" => {
            node.map_type = match value.as_str() {
                Some("atomic") => Some(MapType::Atomic),
                Some("granular") => Some(MapType::Granular),
                _ => None,
            }
        }
        "properties" => {
            let Value::Object(members) = value else { return Ok(()) };
            digest.value(&Value::Int(members.len() as i64));
            node.properties = members
                .iter()
                .map(|(name, schema)| {
                    digest.text(name);
                    Ok((CompactString::from(name), part(schema, digest, interner)?))
                })
                .collect::<Result<_, String>>()?;
        }
        "items" => {
            if value.as_array().is_some() {
                return Err("OpenAPIV3Schema 'items' must be a schema, but is an array".to_owned());
            }
            if !value.is_null() {
                node.items = Some(part(value, digest, interner)?);
            }
        }
        "additionalProperties" => match value {
            Value::Bool(any) => {
                digest.value(value);
                node.additional_any = Some(*any);
            }
            _ => node.additional = Some(part(value, digest, interner)?),
        },
        _ => facts.extend(fact(key, value, interner)?),
    }
    Ok(())
}

fn fact(key: &str, value: &Value, interner: &mut Interner) -> Result<Option<Fact>, String> {
    let mut compile = |schema: &Value| compile(schema, interner).map(|(node, _)| node);
    let branches = value.as_array().unwrap_or_default();
    Ok(match key {
        "default" => Some(Fact::Default(Box::new(value.clone()))),
        "x-kubernetes-list-map-keys" => Some(Fact::ListMapKeys(strings(value))),
        "required" => Some(Fact::Required(strings(value))),
        "x-kubernetes-validations" => {
            let rules = value.as_array().unwrap_or_default().iter().map(Rule::from_value).collect();
            Some(Fact::Rules(Box::new(RuleSet { rules, compiled: OnceLock::new() })))
        }
        "format" => value.as_str().map(|name| Fact::Format(Format::parse(name), name.into())),
        "pattern" => {
            value.as_str().map(|text| Fact::Pattern(Box::new(Pattern { text: text.into(), compiled: OnceLock::new() })))
        }
        "enum" => Some(Fact::Enum(value.as_array().unwrap_or_default().into())),
        "multipleOf" => number(value).map(Fact::MultipleOf),
        "maxLength" => value.as_int().map(Fact::MaxLength),
        "minLength" => value.as_int().map(Fact::MinLength),
        "maxItems" => value.as_int().map(Fact::MaxItems),
        "minItems" => value.as_int().map(Fact::MinItems),
        "maxProperties" => value.as_int().map(Fact::MaxProperties),
        "minProperties" => value.as_int().map(Fact::MinProperties),
        "allOf" => Some(Fact::AllOf(branches.iter().map(compile).collect::<Result<_, String>>()?)),
        "anyOf" => Some(Fact::AnyOf(branches.iter().map(compile).collect::<Result<_, String>>()?)),
        "oneOf" => Some(Fact::OneOf(branches.iter().map(compile).collect::<Result<_, String>>()?)),
        "not" => Some(Fact::Not(Box::new(compile(value)?))),
        _ => None,
    })
}

fn strings(value: &Value) -> Box<[CompactString]> {
    value.as_array().unwrap_or_default().iter().filter_map(Value::as_str).map(CompactString::from).collect()
}

pub(crate) fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Int(i) => Some(*i as f64),
        Value::Float(f) => Some(*f),
        _ => None,
    }
}
