//! Libraries of Kubernetes on lists, regular expressions, quantities, formats, versions and JSON patches.

use super::{Library, Version};
use crate::env::{FunctionDecl, OverloadDecl};
use crate::types::Type;

/// Folds and searches on lists.
pub(super) fn lists() -> Library {
    use Type::{Bool, Bytes, Double, Duration, Int, String, Timestamp, Uint};
    let ordered: [(&str, Type); 8] = [
        ("int", Int),
        ("uint", Uint),
        ("double", Double),
        ("bool", Bool),
        ("duration", Duration),
        ("timestamp", Timestamp),
        ("string", String),
        ("bytes", Bytes),
    ];
    let summable: [(&str, Type); 4] = [("int", Int), ("uint", Uint), ("double", Double), ("duration", Duration)];
    let fold = |name: &str, of: &[(&str, Type)]| {
        let overloads = of.iter().map(|(element, ty)| {
            OverloadDecl::member(format!("list_{element}_{name}_{element}"), [Type::list(ty.clone())], ty.clone())
        });
        FunctionDecl::new(name, overloads)
    };
    let is_sorted = ordered.iter().map(|(element, ty)| {
        OverloadDecl::member(format!("list_{element}_is_sorted_bool"), [Type::list(ty.clone())], Bool)
    });
    let search = |name: &str, id: &str| {
        let element = || Type::param("T");
        FunctionDecl::new(name, [OverloadDecl::member(id, [Type::list(element()), element()], Int)])
    };
    let functions = vec![
        FunctionDecl::new("isSorted", is_sorted),
        fold("sum", &summable),
        fold("min", &ordered),
        fold("max", &ordered),
        search("indexOf", "list_a_index_of_int"),
        search("lastIndexOf", "list_a_last_index_of_int"),
    ];
    Library::new("k8s.lists", Version(1, 0), functions)
}

/// Searches with regular expressions.
pub(super) fn regex() -> Library {
    use Type::{Int, String};
    let functions = vec![
        FunctionDecl::new("find", [OverloadDecl::member("string_find_string", [String, String], String)]),
        FunctionDecl::new(
            "findAll",
            [
                OverloadDecl::member("string_find_all_string", [String, String], Type::list(String)),
                OverloadDecl::member("string_find_all_string_int", [String, String, Int], Type::list(String)),
            ],
        ),
    ];
    Library::new("k8s.regex", Version(1, 0), functions)
}

/// Quantities such as `100Mi`. `sign` is declared as a function, not as a method: `sign(quantity('1'))`.
pub(super) fn quantity() -> Library {
    use Type::{Bool, Double, Int, String};
    let quantity = || Type::object("kubernetes.Quantity");
    let method =
        |name: &str, id: &str, result: Type| FunctionDecl::new(name, [OverloadDecl::member(id, [quantity()], result)]);
    let compare = |name: &str, id: &str, result: Type| {
        FunctionDecl::new(name, [OverloadDecl::member(id, [quantity(), quantity()], result)])
    };
    let arithmetic = |name: &str, id: &str| {
        FunctionDecl::new(
            name,
            [
                OverloadDecl::member(id, [quantity(), quantity()], quantity()),
                OverloadDecl::member(format!("{id}_int"), [quantity(), Int], quantity()),
            ],
        )
    };
    let functions = vec![
        FunctionDecl::new("quantity", [OverloadDecl::global("string_to_quantity", [String], quantity())]),
        FunctionDecl::new("isQuantity", [OverloadDecl::global("is_quantity_string", [String], Bool)]),
        FunctionDecl::new("sign", [OverloadDecl::global("quantity_sign", [quantity()], Int)]),
        compare("isGreaterThan", "quantity_is_greater_than", Bool),
        compare("isLessThan", "quantity_is_less_than", Bool),
        compare("compareTo", "quantity_compare_to", Int),
        method("asApproximateFloat", "quantity_get_float", Double),
        method("asInteger", "quantity_get_int", Int),
        method("isInteger", "quantity_is_integer", Bool),
        arithmetic("add", "quantity_add"),
        arithmetic("sub", "quantity_sub"),
    ];
    Library::new("kubernetes.quantity", Version(1, 28), functions)
}

/// The names of the formats of `format.<name>()` and `format.named('<name>')`.
pub(crate) const FORMATS: [&str; 13] = [
    "dns1123Label",
    "dns1123Subdomain",
    "dns1035Label",
    "qualifiedName",
    "dns1123LabelPrefix",
    "dns1123SubdomainPrefix",
    "dns1035LabelPrefix",
    "labelValue",
    "uri",
    "uuid",
    "byte",
    "date",
    "datetime",
];

/// Named formats of strings.
pub(super) fn format() -> Library {
    let format = || Type::object("kubernetes.NamedFormat");
    let mut functions = vec![
        FunctionDecl::new(
            "validate",
            [OverloadDecl::member(
                "format-validate",
                [format(), Type::String],
                Type::optional(Type::list(Type::String)),
            )],
        ),
        FunctionDecl::new(
            "format.named",
            [OverloadDecl::global("format-named", [Type::String], Type::optional(format()))],
        ),
    ];
    functions.extend(FORMATS.iter().map(|name| {
        let name = format!("format.{name}");
        let overload = OverloadDecl::global(name.as_str(), [], format());
        FunctionDecl::new(name, [overload])
    }));
    Library::new("format", Version(1, 31), functions)
}

/// Semantic versions.
pub(super) fn semver() -> Library {
    use Type::{Bool, Int, String};
    let semver = || Type::object("kubernetes.Semver");
    let method = |name: &str, id: &str| FunctionDecl::new(name, [OverloadDecl::member(id, [semver()], Int)]);
    let compare = |name: &str, id: &str, result: Type| {
        FunctionDecl::new(name, [OverloadDecl::member(id, [semver(), semver()], result)])
    };
    let functions = vec![
        FunctionDecl::new(
            "semver",
            [
                OverloadDecl::global("string_to_semver", [String], semver()),
                OverloadDecl::global("string_bool_to_semver", [String, Bool], semver()),
            ],
        ),
        FunctionDecl::new(
            "isSemver",
            [
                OverloadDecl::global("is_semver_string", [String], Bool),
                OverloadDecl::global("is_semver_string_bool", [String, Bool], Bool),
            ],
        ),
        compare("isGreaterThan", "semver_is_greater_than", Bool),
        compare("isLessThan", "semver_is_less_than", Bool),
        compare("compareTo", "semver_compare_to", Int),
        method("major", "semver_major"),
        method("minor", "semver_minor"),
        method("patch", "semver_patch"),
    ];
    Library::new("kubernetes.Semver", Version(1, 33), functions)
}

/// Escaping of JSON pointers.
pub(super) fn json_patch() -> Library {
    let escape = FunctionDecl::new(
        "jsonpatch.escapeKey",
        [OverloadDecl::global("jsonpatch_escapeKey_string", [Type::String], Type::String)],
    );
    Library::new("kubernetes.jsonpatch", Version(1, 32), vec![escape])
}
