//! The extension libraries of cel-go that Kubernetes enables.

use super::{Library, Version};
use crate::env::{FunctionDecl, OverloadDecl};
use crate::operators;
use crate::types::Type;

/// Optional values, in cel-go's newest version of the library.
pub(super) fn optionals() -> Library {
    use Type::{Bool, Dyn, Int, String};
    let k = || Type::param("K");
    let v = || Type::param("V");
    let list = || Type::list(v());
    let map = || Type::map(k(), v());
    let optional = || Type::optional(v());
    let functions = vec![
        FunctionDecl::new("optional.of", [OverloadDecl::global("optional_of", [v()], optional())]),
        FunctionDecl::new(
            "optional.ofNonZeroValue",
            [OverloadDecl::global("optional_ofNonZeroValue", [v()], optional())],
        ),
        FunctionDecl::new("optional.none", [OverloadDecl::global("optional_none", [], optional())]),
        FunctionDecl::new(
            "optional.unwrap",
            [OverloadDecl::global("optional_unwrap", [Type::list(optional())], list())],
        ),
        FunctionDecl::new("unwrapOpt", [OverloadDecl::member("optional_unwrapOpt", [Type::list(optional())], list())]),
        FunctionDecl::new("value", [OverloadDecl::member("optional_value", [optional()], v())]),
        FunctionDecl::new("hasValue", [OverloadDecl::member("optional_hasValue", [optional()], Bool)]),
        FunctionDecl::new("or", [OverloadDecl::member("optional_or_optional", [optional(), optional()], optional())]),
        FunctionDecl::new("orValue", [OverloadDecl::member("optional_orValue_value", [optional(), v()], v())]),
        FunctionDecl::new(
            operators::OPT_SELECT,
            [OverloadDecl::global("select_optional_field", [Dyn, String], optional())],
        ),
        FunctionDecl::new(
            operators::OPT_INDEX,
            [
                OverloadDecl::global("list_optindex_optional_int", [list(), Int], optional()),
                OverloadDecl::global("optional_list_optindex_optional_int", [Type::optional(list()), Int], optional()),
                OverloadDecl::global("map_optindex_optional_value", [map(), k()], optional()),
                OverloadDecl::global("optional_map_optindex_optional_value", [Type::optional(map()), k()], optional()),
            ],
        ),
        FunctionDecl::new(
            operators::INDEX,
            [
                OverloadDecl::global("optional_list_index_int", [Type::optional(list()), Int], optional()),
                OverloadDecl::global("optional_map_index_value", [Type::optional(map()), k()], optional()),
            ],
        ),
        FunctionDecl::new("first", [OverloadDecl::member("list_first", [list()], optional())]),
        FunctionDecl::new("last", [OverloadDecl::member("list_last", [list()], optional())]),
    ];
    Library::new("optional", Version(1, 28), functions).with_types([Type::opaque(crate::types::OPTIONAL, vec![])])
}

/// The strings extension, version 2.
pub(super) fn strings() -> Library {
    use Type::{Dyn, Int, String};
    let strings = || Type::list(String);
    let functions = vec![
        FunctionDecl::new("charAt", [OverloadDecl::member("string_char_at_int", [String, Int], String)]),
        FunctionDecl::new(
            "indexOf",
            [
                OverloadDecl::member("string_index_of_string", [String, String], Int),
                OverloadDecl::member("string_index_of_string_int", [String, String, Int], Int),
            ],
        ),
        FunctionDecl::new(
            "lastIndexOf",
            [
                OverloadDecl::member("string_last_index_of_string", [String, String], Int),
                OverloadDecl::member("string_last_index_of_string_int", [String, String, Int], Int),
            ],
        ),
        FunctionDecl::new("lowerAscii", [OverloadDecl::member("string_lower_ascii", [String], String)]),
        FunctionDecl::new("upperAscii", [OverloadDecl::member("string_upper_ascii", [String], String)]),
        FunctionDecl::new(
            "replace",
            [
                OverloadDecl::member("string_replace_string_string", [String, String, String], String),
                OverloadDecl::member("string_replace_string_string_int", [String, String, String, Int], String),
            ],
        ),
        FunctionDecl::new(
            "split",
            [
                OverloadDecl::member("string_split_string", [String, String], strings()),
                OverloadDecl::member("string_split_string_int", [String, String, Int], strings()),
            ],
        ),
        FunctionDecl::new(
            "substring",
            [
                OverloadDecl::member("string_substring_int", [String, Int], String),
                OverloadDecl::member("string_substring_int_int", [String, Int, Int], String),
            ],
        ),
        FunctionDecl::new("trim", [OverloadDecl::member("string_trim", [String], String)]),
        FunctionDecl::new("format", [OverloadDecl::member("string_format", [String, Type::list(Dyn)], String)]),
        FunctionDecl::new("strings.quote", [OverloadDecl::global("strings_quote", [String], String)]),
        FunctionDecl::new(
            "join",
            [
                OverloadDecl::member("list_join", [strings()], String),
                OverloadDecl::member("list_join_string", [strings(), String], String),
            ],
        ),
    ];
    Library::new("cel.lib.ext.strings", Version(1, 29), functions)
}

/// The sets extension.
pub(super) fn sets() -> Library {
    let list = || Type::list(Type::param("T"));
    let functions = [
        ("sets.contains", "list_sets_contains_list"),
        ("sets.equivalent", "list_sets_equivalent_list"),
        ("sets.intersects", "list_sets_intersects_list"),
    ];
    let functions = functions
        .into_iter()
        .map(|(name, id)| FunctionDecl::new(name, [OverloadDecl::global(id, [list(), list()], Type::Bool)]));
    Library::new("cel.lib.ext.sets", Version(1, 29), functions.collect())
}

/// What the macros of the two-variable comprehensions expand to.
pub(super) fn two_variable_comprehensions() -> Library {
    let map = || Type::map(Type::param("K"), Type::param("V"));
    let insert = FunctionDecl::new(
        "cel.@mapInsert",
        [
            OverloadDecl::global("@mapInsert_map_map", [map(), map()], map()),
            OverloadDecl::global("@mapInsert_map_key_value", [map(), Type::param("K"), Type::param("V")], map()),
        ],
    );
    Library::new("cel.lib.ext.comprehensions", Version(1, 32), vec![insert])
}
