//! What functions do. The checker knows functions by their declarations, the planner finds them here by name;
//! which overload runs is decided by the values.

pub(crate) mod arithmetic;
pub(crate) mod convert;
mod format;
pub(crate) mod formats;
pub(crate) mod lists;
pub(crate) mod net;
pub(crate) mod number;
mod optional;
mod quantity;
pub(crate) mod regex;
mod semver;
mod strings;
mod time;
pub(crate) mod url;

use crate::operators;
use crate::value::{Error, Result, Value};

/// An implementation: the receiver first, then the arguments.
pub(crate) type Function = for<'a> fn(&[Value<'a>]) -> Result<Value<'a>>;

/// The implementation of a function; those of patterns are [`regex::RegexFunction`]s.
pub(crate) fn lookup(name: &str) -> Option<Function> {
    operator(name)
        .or_else(|| standard(name))
        .or_else(|| extension(name))
        .or_else(|| network(name))
        .or_else(|| kubernetes(name))
}

fn operator(name: &str) -> Option<Function> {
    Some(match name {
        operators::ADD => arithmetic::add,
        operators::SUBTRACT => arithmetic::subtract,
        operators::MULTIPLY => arithmetic::multiply,
        operators::DIVIDE => arithmetic::divide,
        operators::MODULO => arithmetic::modulo,
        operators::NEGATE => arithmetic::negate,
        operators::LOGICAL_NOT => arithmetic::not,
        operators::LESS => arithmetic::less,
        operators::LESS_EQUALS => arithmetic::less_equals,
        operators::GREATER => arithmetic::greater,
        operators::GREATER_EQUALS => arithmetic::greater_equals,
        operators::IN => arithmetic::contains,
        _ => return None,
    })
}

fn standard(name: &str) -> Option<Function> {
    Some(match name {
        "size" => arithmetic::size,
        "contains" => strings::contains,
        "startsWith" => strings::starts_with,
        "endsWith" => strings::ends_with,
        "bool" => convert::bool,
        "bytes" => convert::bytes,
        "double" => convert::double,
        "duration" => convert::duration,
        "dyn" => convert::dynamic,
        "int" => convert::int,
        "string" => convert::string,
        "timestamp" => convert::timestamp,
        "type" => convert::type_of,
        "uint" => convert::uint,
        "getFullYear" => time::full_year,
        "getMonth" => time::month,
        "getDayOfYear" => time::day_of_year,
        "getDayOfMonth" => time::day_of_month,
        "getDate" => time::date,
        "getDayOfWeek" => time::day_of_week,
        "getHours" => time::hours,
        "getMinutes" => time::minutes,
        "getSeconds" => time::seconds,
        "getMilliseconds" => time::milliseconds,
        _ => return None,
    })
}

fn extension(name: &str) -> Option<Function> {
    Some(match name {
        "charAt" => strings::char_at,
        "indexOf" => strings::index_of,
        "lastIndexOf" => strings::last_index_of,
        "join" => strings::join,
        "lowerAscii" => strings::lower_ascii,
        "upperAscii" => strings::upper_ascii,
        "replace" => strings::replace,
        "split" => strings::split,
        "substring" => strings::substring,
        "trim" => strings::trim,
        "strings.quote" => strings::quote,
        "format" => format::format,
        "sets.contains" => lists::sets_contains,
        "sets.equivalent" => lists::sets_equivalent,
        "sets.intersects" => lists::sets_intersects,
        "optional.of" => optional::of,
        "optional.ofNonZeroValue" => optional::of_non_zero,
        "optional.none" => optional::none,
        "optional.unwrap" | "unwrapOpt" => optional::unwrap,
        "value" => optional::value,
        "hasValue" => optional::has_value,
        "first" => optional::first,
        "last" => optional::last,
        _ => return None,
    })
}

fn network(name: &str) -> Option<Function> {
    Some(match name {
        "url" => url::url,
        "isURL" => url::is_url,
        "getScheme" => url::scheme,
        "getHost" => url::host,
        "getHostname" => url::hostname,
        "getPort" => url::port,
        "getEscapedPath" => url::escaped_path,
        "getQuery" => url::query,
        "ip" => net::ip,
        "isIP" => net::is_ip,
        "ip.isCanonical" => net::is_canonical,
        "family" => net::family,
        "isUnspecified" => net::is_unspecified,
        "isLoopback" => net::is_loopback,
        "isLinkLocalMulticast" => net::is_link_local_multicast,
        "isLinkLocalUnicast" => net::is_link_local_unicast,
        "isGlobalUnicast" => net::is_global_unicast,
        "cidr" => net::cidr,
        "isCIDR" => net::is_cidr,
        "containsIP" => net::contains_ip,
        "containsCIDR" => net::contains_cidr,
        "prefixLength" => net::prefix_length,
        "masked" => net::masked,
        _ => return None,
    })
}

fn kubernetes(name: &str) -> Option<Function> {
    Some(match name {
        "isSorted" => lists::is_sorted,
        "sum" => lists::sum_int,
        "min" => lists::min,
        "max" => lists::max,
        "quantity" => quantity::quantity,
        "isQuantity" => quantity::is_quantity,
        "isInteger" => quantity::is_integer,
        "asInteger" => quantity::as_integer,
        "asApproximateFloat" => quantity::as_approximate_float,
        "sign" => quantity::sign,
        "add" => quantity::add,
        "sub" => quantity::sub,
        "semver" => semver::semver,
        "isSemver" => semver::is_semver,
        "major" => semver::major,
        "minor" => semver::minor,
        "patch" => semver::patch,
        "compareTo" => semver::compare_to,
        "isLessThan" => semver::is_less_than,
        "isGreaterThan" => semver::is_greater_than,
        "format.named" => formats::named,
        "validate" => formats::validate,
        "format.dns1123Label" => formats::dns1123_label,
        "format.dns1123Subdomain" => formats::dns1123_subdomain,
        "format.dns1035Label" => formats::dns1035_label,
        "format.qualifiedName" => formats::qualified_name,
        "format.dns1123LabelPrefix" => formats::dns1123_label_prefix,
        "format.dns1123SubdomainPrefix" => formats::dns1123_subdomain_prefix,
        "format.dns1035LabelPrefix" => formats::dns1035_label_prefix,
        "format.labelValue" => formats::label_value,
        "format.uri" => formats::uri,
        "format.uuid" => formats::uuid,
        "format.byte" => formats::byte,
        "format.date" => formats::date,
        "format.datetime" => formats::date_time,
        "jsonpatch.escapeKey" => strings::escape_json_pointer,
        _ => return None,
    })
}

/// The implementation an overload's declaration asks for where the function's name alone does not tell: the zero a
/// sum starts from.
pub(crate) fn lookup_overload(id: &str) -> Option<Function> {
    Some(match id {
        "list_uint_sum_uint" => lists::sum_uint,
        "list_double_sum_double" => lists::sum_double,
        "list_duration_sum_duration" => lists::sum_duration,
        _ => return None,
    })
}

/// Stands in for a function that has no implementation.
pub(crate) fn missing(name: &str) -> Error {
    Error::no_overload_of(name)
}
