//! The standard library of the language.

use super::{Library, Version};
use crate::env::{FunctionDecl, OverloadDecl};
use crate::operators;
use crate::types::Type;

/// Every operator and function that needs no extension.
pub(super) fn library() -> Library {
    let mut functions = operators_of_values();
    functions.extend(orderings());
    functions.extend(conversions());
    functions.extend(strings_and_sizes());
    functions.extend(time_accessors());
    Library::new("stdlib", Version(1, 0), functions)
}

fn global(id: &str, args: impl IntoIterator<Item = Type>, result: Type) -> OverloadDecl {
    OverloadDecl::global(id, args, result)
}

fn member(id: &str, args: impl IntoIterator<Item = Type>, result: Type) -> OverloadDecl {
    OverloadDecl::member(id, args, result)
}

fn operators_of_values() -> Vec<FunctionDecl> {
    use Type::{Bool, Bytes, Double, Duration, Int, String, Timestamp, Uint};
    let a = || Type::param("A");
    let list = || Type::list(Type::param("A"));
    let map = || Type::map(Type::param("A"), Type::param("B"));
    let same = |id: &str, ty: Type| global(id, [ty.clone(), ty.clone()], ty);
    vec![
        FunctionDecl::new(operators::CONDITIONAL, [global("conditional", [Bool, a(), a()], a())]),
        FunctionDecl::new(operators::LOGICAL_AND, [same("logical_and", Bool)]),
        FunctionDecl::new(operators::LOGICAL_OR, [same("logical_or", Bool)]),
        FunctionDecl::new(operators::LOGICAL_NOT, [global("logical_not", [Bool], Bool)]),
        FunctionDecl::new(operators::NOT_STRICTLY_FALSE, [global("not_strictly_false", [Bool], Bool)]),
        FunctionDecl::new(operators::EQUALS, [global("equals", [a(), a()], Bool)]),
        FunctionDecl::new(operators::NOT_EQUALS, [global("not_equals", [a(), a()], Bool)]),
        FunctionDecl::new(
            operators::ADD,
            [
                same("add_bytes", Bytes),
                same("add_double", Double),
                same("add_duration_duration", Duration),
                global("add_duration_timestamp", [Duration, Timestamp], Timestamp),
                global("add_timestamp_duration", [Timestamp, Duration], Timestamp),
                same("add_int64", Int),
                same("add_list", list()),
                same("add_string", String),
                same("add_uint64", Uint),
            ],
        ),
        FunctionDecl::new(
            operators::SUBTRACT,
            [
                same("subtract_double", Double),
                same("subtract_duration_duration", Duration),
                same("subtract_int64", Int),
                global("subtract_timestamp_duration", [Timestamp, Duration], Timestamp),
                global("subtract_timestamp_timestamp", [Timestamp, Timestamp], Duration),
                same("subtract_uint64", Uint),
            ],
        ),
        FunctionDecl::new(
            operators::MULTIPLY,
            [same("multiply_double", Double), same("multiply_int64", Int), same("multiply_uint64", Uint)],
        ),
        FunctionDecl::new(
            operators::DIVIDE,
            [same("divide_double", Double), same("divide_int64", Int), same("divide_uint64", Uint)],
        ),
        FunctionDecl::new(operators::MODULO, [same("modulo_int64", Int), same("modulo_uint64", Uint)]),
        FunctionDecl::new(
            operators::NEGATE,
            [global("negate_double", [Double], Double), global("negate_int64", [Int], Int)],
        ),
        FunctionDecl::new(
            operators::INDEX,
            [global("index_list", [list(), Int], a()), global("index_map", [map(), a()], Type::param("B"))],
        ),
        FunctionDecl::new(
            operators::IN,
            [global("in_list", [a(), list()], Bool), global("in_map", [a(), map()], Bool)],
        ),
    ]
}

fn orderings() -> Vec<FunctionDecl> {
    use Type::{Bool, Bytes, Double, Duration, Int, String, Timestamp, Uint};
    let operators = [
        (operators::LESS, "less"),
        (operators::LESS_EQUALS, "less_equals"),
        (operators::GREATER, "greater"),
        (operators::GREATER_EQUALS, "greater_equals"),
    ];
    let sides = [
        ("bool", Bool, Bool),
        ("int64", Int, Int),
        ("int64_double", Int, Double),
        ("int64_uint64", Int, Uint),
        ("uint64", Uint, Uint),
        ("uint64_double", Uint, Double),
        ("uint64_int64", Uint, Int),
        ("double", Double, Double),
        ("double_int64", Double, Int),
        ("double_uint64", Double, Uint),
        ("string", String, String),
        ("bytes", Bytes, Bytes),
        ("timestamp", Timestamp, Timestamp),
        ("duration", Duration, Duration),
    ];
    operators
        .into_iter()
        .map(|(name, prefix)| {
            let overloads = sides.iter().map(|(suffix, left, right)| {
                OverloadDecl::global(format!("{prefix}_{suffix}"), [left.clone(), right.clone()], Bool)
            });
            FunctionDecl::new(name, overloads)
        })
        .collect()
}

fn conversions() -> Vec<FunctionDecl> {
    use Type::{Bool, Bytes, Double, Duration, Int, String, Timestamp, Uint};
    let to = |name: &str, result: Type, from: &[(&str, Type)]| {
        FunctionDecl::new(name, from.iter().map(|(id, arg)| global(id, [arg.clone()], result.clone())))
    };
    vec![
        to("bool", Bool, &[("bool_to_bool", Bool), ("string_to_bool", String)]),
        to("bytes", Bytes, &[("bytes_to_bytes", Bytes), ("string_to_bytes", String)]),
        to(
            "double",
            Double,
            &[
                ("double_to_double", Double),
                ("int64_to_double", Int),
                ("string_to_double", String),
                ("uint64_to_double", Uint),
            ],
        ),
        to("dyn", Type::Dyn, &[("to_dyn", Type::param("A"))]),
        to(
            "duration",
            Duration,
            &[("duration_to_duration", Duration), ("int64_to_duration", Int), ("string_to_duration", String)],
        ),
        to(
            "int",
            Int,
            &[
                ("int64_to_int64", Int),
                ("double_to_int64", Double),
                ("duration_to_int64", Duration),
                ("string_to_int64", String),
                ("timestamp_to_int64", Timestamp),
                ("uint64_to_int64", Uint),
            ],
        ),
        to(
            "string",
            String,
            &[
                ("string_to_string", String),
                ("bool_to_string", Bool),
                ("bytes_to_string", Bytes),
                ("double_to_string", Double),
                ("duration_to_string", Duration),
                ("int64_to_string", Int),
                ("timestamp_to_string", Timestamp),
                ("uint64_to_string", Uint),
            ],
        ),
        to(
            "timestamp",
            Timestamp,
            &[("timestamp_to_timestamp", Timestamp), ("int64_to_timestamp", Int), ("string_to_timestamp", String)],
        ),
        FunctionDecl::new("type", [global("type", [Type::param("A")], Type::type_of(Type::param("A")))]),
        to(
            "uint",
            Uint,
            &[
                ("uint64_to_uint64", Uint),
                ("double_to_uint64", Double),
                ("int64_to_uint64", Int),
                ("string_to_uint64", String),
            ],
        ),
    ]
}

fn strings_and_sizes() -> Vec<FunctionDecl> {
    use Type::{Bool, Bytes, Int, String};
    let list = || Type::list(Type::param("A"));
    let map = || Type::map(Type::param("A"), Type::param("B"));
    vec![
        FunctionDecl::new(
            "size",
            [
                global("size_bytes", [Bytes], Int),
                member("bytes_size", [Bytes], Int),
                global("size_list", [list()], Int),
                member("list_size", [list()], Int),
                global("size_map", [map()], Int),
                member("map_size", [map()], Int),
                global("size_string", [String], Int),
                member("string_size", [String], Int),
            ],
        ),
        FunctionDecl::new("contains", [member("contains_string", [String, String], Bool)]),
        FunctionDecl::new("endsWith", [member("ends_with_string", [String, String], Bool)]),
        FunctionDecl::new("startsWith", [member("starts_with_string", [String, String], Bool)]),
        FunctionDecl::new(
            "matches",
            [global("matches", [String, String], Bool), member("matches_string", [String, String], Bool)],
        ),
    ]
}

fn time_accessors() -> Vec<FunctionDecl> {
    use Type::{Duration, Int, String, Timestamp};
    let accessors = [
        ("getFullYear", "timestamp_to_year", "timestamp_to_year_with_tz", None),
        ("getMonth", "timestamp_to_month", "timestamp_to_month_with_tz", None),
        ("getDayOfYear", "timestamp_to_day_of_year", "timestamp_to_day_of_year_with_tz", None),
        ("getDayOfMonth", "timestamp_to_day_of_month", "timestamp_to_day_of_month_with_tz", None),
        ("getDate", "timestamp_to_day_of_month_1_based", "timestamp_to_day_of_month_1_based_with_tz", None),
        ("getDayOfWeek", "timestamp_to_day_of_week", "timestamp_to_day_of_week_with_tz", None),
        ("getHours", "timestamp_to_hours", "timestamp_to_hours_with_tz", Some("duration_to_hours")),
        ("getMinutes", "timestamp_to_minutes", "timestamp_to_minutes_with_tz", Some("duration_to_minutes")),
        ("getSeconds", "timestamp_to_seconds", "timestamp_to_seconds_tz", Some("duration_to_seconds")),
        (
            "getMilliseconds",
            "timestamp_to_milliseconds",
            "timestamp_to_milliseconds_with_tz",
            Some("duration_to_milliseconds"),
        ),
    ];
    accessors
        .into_iter()
        .map(|(name, plain, zoned, duration)| {
            let mut overloads = vec![member(plain, [Timestamp], Int), member(zoned, [Timestamp, String], Int)];
            overloads.extend(duration.map(|id| member(id, [Duration], Int)));
            FunctionDecl::new(name, overloads)
        })
        .collect()
}
