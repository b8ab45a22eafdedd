//! Types, as the checker deduces them and as error messages print them.

use std::fmt;
use std::sync::{Arc, LazyLock};

/// The name of the optional type, as it is printed and declared.
pub const OPTIONAL: &str = "optional_type";

/// A type. Cloning is cheap: parts are shared.
///
/// Equality is exact: names of type parameters matter, and a wrapper equals its primitive, as in cel-go, where
/// both are one kind with one name. [`Type::is_equivalent`] ignores the names of type parameters.
#[derive(Clone, Debug)]
pub enum Type {
    /// Not known before the expression runs.
    Dyn,
    /// `google.protobuf.Any`: checked like [`Type::Dyn`].
    Any,
    /// Of the value `null`.
    Null,
    /// `bool`
    Bool,
    /// `int`
    Int,
    /// `uint`
    Uint,
    /// `double`
    Double,
    /// `string`
    String,
    /// `bytes`
    Bytes,
    /// `google.protobuf.Timestamp`
    Timestamp,
    /// `google.protobuf.Duration`
    Duration,
    /// Of an expression that did not check; compatible with every type.
    Error,
    /// `list(T)`
    List(Arc<Type>),
    /// `map(K, V)`
    Map(Arc<(Type, Type)>),
    /// A type with fields, by name; the fields come from a [`crate::env::TypeProvider`].
    Object(Arc<str>),
    /// A named type without visible parts, perhaps with parameters, such as `optional_type(T)` or `net.IP`.
    Opaque(Arc<OpaqueType>),
    /// A primitive that may also be null: `wrapper(int)`.
    Wrapper(Primitive),
    /// A type parameter of a declaration.
    Param(Arc<str>),
    /// A free type variable of one check; printed `_varN`.
    Var(u32),
    /// The type of a type: `type(T)`, or `type` when nothing is known of T.
    Type(Option<Arc<Type>>),
}

/// Name and parameters of an opaque type.
#[derive(Clone, Debug)]
pub struct OpaqueType {
    /// The name.
    pub name: Arc<str>,
    /// The parameters, often none.
    pub params: Vec<Type>,
}

/// A type that has a wrapper message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Primitive {
    /// `bool`
    Bool,
    /// `int`
    Int,
    /// `uint`
    Uint,
    /// `double`
    Double,
    /// `string`
    String,
    /// `bytes`
    Bytes,
}

/// What a type is at its root, with wrappers counted as their primitives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// [`Type::Dyn`]
    Dyn,
    /// [`Type::Any`]
    Any,
    /// [`Type::Null`]
    Null,
    /// [`Type::Bool`] or its wrapper
    Bool,
    /// [`Type::Int`] or its wrapper
    Int,
    /// [`Type::Uint`] or its wrapper
    Uint,
    /// [`Type::Double`] or its wrapper
    Double,
    /// [`Type::String`] or its wrapper
    String,
    /// [`Type::Bytes`] or its wrapper
    Bytes,
    /// [`Type::Timestamp`]
    Timestamp,
    /// [`Type::Duration`]
    Duration,
    /// [`Type::Error`]
    Error,
    /// [`Type::List`]
    List,
    /// [`Type::Map`]
    Map,
    /// [`Type::Object`]
    Object,
    /// [`Type::Opaque`]
    Opaque,
    /// [`Type::Param`] or [`Type::Var`]
    Param,
    /// [`Type::Type`]
    Type,
}

impl Primitive {
    /// The type without null.
    pub fn unwrapped(self) -> Type {
        match self {
            Primitive::Bool => Type::Bool,
            Primitive::Int => Type::Int,
            Primitive::Uint => Type::Uint,
            Primitive::Double => Type::Double,
            Primitive::String => Type::String,
            Primitive::Bytes => Type::Bytes,
        }
    }
}

static LIST_OF_DYN: LazyLock<Arc<Type>> = LazyLock::new(|| Arc::new(Type::Dyn));

impl Type {
    /// `list(element)`
    pub fn list(element: Type) -> Type {
        match element {
            Type::Dyn => Type::List(LIST_OF_DYN.clone()),
            other => Type::List(Arc::new(other)),
        }
    }

    /// `map(key, value)`
    pub fn map(key: Type, value: Type) -> Type {
        Type::Map(Arc::new((key, value)))
    }

    /// A type with fields.
    pub fn object(name: impl Into<Arc<str>>) -> Type {
        Type::Object(name.into())
    }

    /// A named type with parameters.
    pub fn opaque(name: impl Into<Arc<str>>, params: Vec<Type>) -> Type {
        Type::Opaque(Arc::new(OpaqueType { name: name.into(), params }))
    }

    /// `optional_type(value)`
    pub fn optional(value: Type) -> Type {
        static NAME: LazyLock<Arc<str>> = LazyLock::new(|| OPTIONAL.into());
        Type::Opaque(Arc::new(OpaqueType { name: NAME.clone(), params: vec![value] }))
    }

    /// A type parameter of a declaration.
    pub fn param(name: impl Into<Arc<str>>) -> Type {
        Type::Param(name.into())
    }

    /// `type(of)`
    pub fn type_of(of: Type) -> Type {
        Type::Type(Some(Arc::new(of)))
    }

    /// What the type is at its root.
    pub fn kind(&self) -> Kind {
        match self {
            Type::Dyn => Kind::Dyn,
            Type::Any => Kind::Any,
            Type::Null => Kind::Null,
            Type::Bool | Type::Wrapper(Primitive::Bool) => Kind::Bool,
            Type::Int | Type::Wrapper(Primitive::Int) => Kind::Int,
            Type::Uint | Type::Wrapper(Primitive::Uint) => Kind::Uint,
            Type::Double | Type::Wrapper(Primitive::Double) => Kind::Double,
            Type::String | Type::Wrapper(Primitive::String) => Kind::String,
            Type::Bytes | Type::Wrapper(Primitive::Bytes) => Kind::Bytes,
            Type::Timestamp => Kind::Timestamp,
            Type::Duration => Kind::Duration,
            Type::Error => Kind::Error,
            Type::List(_) => Kind::List,
            Type::Map(_) => Kind::Map,
            Type::Object(_) => Kind::Object,
            Type::Opaque(_) => Kind::Opaque,
            Type::Param(_) | Type::Var(_) => Kind::Param,
            Type::Type(_) => Kind::Type,
        }
    }

    /// The element type of a list.
    pub fn element(&self) -> Option<&Type> {
        match self {
            Type::List(element) => Some(element),
            _ => None,
        }
    }

    /// Key and value type of a map.
    pub fn entry(&self) -> Option<(&Type, &Type)> {
        match self {
            Type::Map(entry) => Some((&entry.0, &entry.1)),
            _ => None,
        }
    }

    /// The value type of an optional. An optional without parameters counts as one of dyn.
    pub fn optional_value(&self) -> Option<&Type> {
        match self {
            Type::Opaque(opaque) if &*opaque.name == OPTIONAL => Some(opaque.params.first().unwrap_or(&Type::Dyn)),
            _ => None,
        }
    }

    /// The first parameter of a list, map, opaque type or type of a type.
    pub fn first_param(&self) -> Option<&Type> {
        match self {
            Type::List(element) => Some(element),
            Type::Map(entry) => Some(&entry.0),
            Type::Opaque(opaque) => opaque.params.first(),
            Type::Type(Some(of)) => Some(of),
            _ => None,
        }
    }

    /// The name values of this type have at run time, without parameters: `int`, `list`, `null_type`,
    /// `google.protobuf.Timestamp`. It is also the identifier that denotes the type in an expression.
    pub fn runtime_name(&self) -> &str {
        match self.kind() {
            Kind::Dyn => "dyn",
            Kind::Any => "google.protobuf.Any",
            Kind::Null => "null_type",
            Kind::Bool => "bool",
            Kind::Int => "int",
            Kind::Uint => "uint",
            Kind::Double => "double",
            Kind::String => "string",
            Kind::Bytes => "bytes",
            Kind::Timestamp => "google.protobuf.Timestamp",
            Kind::Duration => "google.protobuf.Duration",
            Kind::Error => "error",
            Kind::List => "list",
            Kind::Map => "map",
            Kind::Type => "type",
            Kind::Object | Kind::Opaque | Kind::Param => match self {
                Type::Object(name) | Type::Param(name) => name,
                Type::Opaque(opaque) => &opaque.name,
                _ => "",
            },
        }
    }

    /// Whether both are the same type, whatever their type parameters are called.
    pub fn is_equivalent(&self, other: &Type) -> bool {
        self.matches(other, false)
    }

    /// Whether the type is dyn or `google.protobuf.Any`, which are checked when the expression runs.
    pub fn is_dyn(&self) -> bool {
        matches!(self, Type::Dyn | Type::Any)
    }

    /// Whether the type is dyn, any, or that of an expression that did not check.
    pub fn is_dyn_or_error(&self) -> bool {
        matches!(self, Type::Dyn | Type::Any | Type::Error)
    }

    fn matches(&self, other: &Type, param_names: bool) -> bool {
        match (self, other) {
            (Type::List(a), Type::List(b)) => Arc::ptr_eq(a, b) || a.matches(b, param_names),
            (Type::Map(a), Type::Map(b)) => {
                Arc::ptr_eq(a, b) || (a.0.matches(&b.0, param_names) && a.1.matches(&b.1, param_names))
            }
            (Type::Object(a), Type::Object(b)) => a == b,
            (Type::Opaque(a), Type::Opaque(b)) => {
                Arc::ptr_eq(a, b)
                    || (a.name == b.name
                        && a.params.len() == b.params.len()
                        && a.params.iter().zip(&b.params).all(|(a, b)| a.matches(b, param_names)))
            }
            (Type::Type(Some(a)), Type::Type(Some(b))) => a.matches(b, param_names),
            (Type::Type(a), Type::Type(b)) => a.is_none() && b.is_none(),
            (Type::Param(a), Type::Param(b)) => !param_names || a == b,
            (Type::Var(a), Type::Var(b)) => !param_names || a == b,
            (Type::Param(_), Type::Var(_)) | (Type::Var(_), Type::Param(_)) => !param_names,
            _ => self.kind() == other.kind() && !matches!(self.kind(), Kind::Object | Kind::Opaque),
        }
    }
}

impl PartialEq for Type {
    fn eq(&self, other: &Type) -> bool {
        self.matches(other, true)
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Any => f.write_str("any"),
            Type::Null => f.write_str("null"),
            Type::Timestamp => f.write_str("timestamp"),
            Type::Duration => f.write_str("duration"),
            Type::Error => f.write_str("!error!"),
            Type::List(element) => write!(f, "list({element})"),
            Type::Map(entry) => write!(f, "map({}, {})", entry.0, entry.1),
            Type::Opaque(opaque) if opaque.params.is_empty() => f.write_str(&opaque.name),
            Type::Opaque(opaque) => {
                write!(f, "{}(", opaque.name)?;
                for (i, param) in opaque.params.iter().enumerate() {
                    if i > 0 {
                        f.write_str(", ")?;
                    }
                    write!(f, "{param}")?;
                }
                f.write_str(")")
            }
            Type::Wrapper(primitive) => write!(f, "wrapper({})", primitive.unwrapped()),
            Type::Var(number) => write!(f, "_var{number}"),
            Type::Type(None) => f.write_str("type"),
            Type::Type(Some(of)) => write!(f, "type({of})"),
            Type::Object(name) | Type::Param(name) => f.write_str(name),
            Type::Dyn | Type::Bool | Type::Int | Type::Uint | Type::Double | Type::String | Type::Bytes => {
                f.write_str(self.runtime_name())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_print_as_cel_go_prints_them() {
        for (ty, text) in [
            (Type::Dyn, "dyn"),
            (Type::Error, "!error!"),
            (Type::Null, "null"),
            (Type::Timestamp, "timestamp"),
            (Type::map(Type::String, Type::list(Type::Int)), "map(string, list(int))"),
            (Type::optional(Type::Bool), "optional_type(bool)"),
            (Type::opaque("net.IP", vec![]), "net.IP"),
            (Type::Wrapper(Primitive::Uint), "wrapper(uint)"),
            (Type::type_of(Type::Any), "type(any)"),
            (Type::Type(None), "type"),
            (Type::Var(3), "_var3"),
        ] {
            assert_eq!(ty.to_string(), text);
        }
    }

    #[test]
    fn a_wrapper_equals_its_primitive_and_parameters_differ_by_name() {
        assert_eq!(Type::Wrapper(Primitive::Int), Type::Int);
        assert_ne!(Type::param("A"), Type::param("B"));
        assert!(Type::list(Type::param("A")).is_equivalent(&Type::list(Type::param("B"))));
        assert_ne!(Type::list(Type::Int), Type::list(Type::Uint));
        assert_ne!(Type::object("a"), Type::object("b"));
    }
}
