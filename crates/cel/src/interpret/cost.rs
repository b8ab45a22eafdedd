//! What calls cost when they run: cel-go's run-time tracker and the costs Kubernetes puts on its functions.

use crate::runtime::formats::Format;
use crate::value::Value;

/// The cost of reading a variable or selecting a field.
pub(super) const SELECT: u64 = 1;
/// The cost of making a list.
pub(super) const LIST: u64 = 10;
/// The cost of making a map.
pub(super) const MAP: u64 = 30;
/// The cost of making a message.
pub(super) const STRUCT: u64 = 40;

/// Nesting at which deep traversal stops counting.
const MAX_DEPTH: u32 = 1_000;
/// Parts at which deep traversal stops counting and any limit is passed. Short texts count nothing, so that the cost
/// alone would not end a traversal of lists that hold one list many times.
const MAX_PARTS: u64 = 4_000_000;

/// How the cost of a call follows from its arguments and result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallCost {
    /// A fixed cost.
    Fixed(u64),
    /// Walking over the text that is the argument at the index, some number of times.
    Text { index: usize, times: u8 },
    /// Walking over all leaves of the first argument.
    Traversal,
    /// Making the text that is the result.
    Join,
    /// Matching the first argument against the second.
    Regex,
    /// Searching the first argument for the second.
    Contains,
    /// As many steps as the second argument is large.
    Membership,
    /// Walking over the shorter of two texts.
    Shorter,
    /// Walking over both texts.
    Both,
    /// Comparing each element of one list with each of another, some number of times.
    SetProduct(u64),
    /// Comparing an address with a network, with reading either from text.
    Network { cidr: bool, text: bool },
    /// Matching against the pattern of a named format.
    Validate,
    /// Reading a selector.
    Selector,
}

impl CallCost {
    /// The cost of a call of `function`; `overload` is the one overload the checker resolved, if it was one.
    pub(super) fn of(function: &str, overload: Option<&str>) -> CallCost {
        match overload {
            Some("list_sets_contains_list" | "list_sets_intersects_list") => return CallCost::SetProduct(1),
            Some("list_sets_equivalent_list") => return CallCost::SetProduct(2),
            _ => {}
        }
        match function {
            "check" => return CallCost::Fixed(350_000),
            "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => return CallCost::Traversal,
            "ip" if overload == Some("cidr_ip") => return CallCost::Fixed(1),
            "url"
            | "lowerAscii"
            | "upperAscii"
            | "substring"
            | "trim"
            | "jsonpatch.escapeKey"
            | "ip"
            | "cidr"
            | "isIP"
            | "isCIDR"
            | "quantity"
            | "isQuantity"
            | "semver"
            | "isSemver" => {
                return CallCost::Text { index: 0, times: 1 };
            }
            "replace" | "split" | "ip.isCanonical" => return CallCost::Text { index: 0, times: 2 },
            "join" => return CallCost::Join,
            "find" | "findAll" => return CallCost::Regex,
            "containsIP" => {
                return CallCost::Network { cidr: false, text: overload == Some("cidr_contains_ip_string") };
            }
            "containsCIDR" => {
                return CallCost::Network { cidr: true, text: overload == Some("cidr_contains_cidr_string") };
            }
            "validate" => return CallCost::Validate,
            "fieldSelector" | "labelSelector" => return CallCost::Selector,
            _ => {}
        }
        match overload {
            Some("starts_with_string" | "ends_with_string") => CallCost::Text { index: 1, times: 1 },
            Some("string_to_bytes" | "bytes_to_string" | "strings_quote" | "string_format") => {
                CallCost::Text { index: 0, times: 1 }
            }
            Some("in_list") => CallCost::Membership,
            Some(
                "less_string"
                | "greater_string"
                | "less_equals_string"
                | "greater_equals_string"
                | "less_bytes"
                | "greater_bytes"
                | "less_equals_bytes"
                | "greater_equals_bytes",
            ) => CallCost::Shorter,
            Some("add_string" | "add_bytes") => CallCost::Both,
            Some("matches_string") => CallCost::Regex,
            Some("contains_string") => CallCost::Contains,
            _ => CallCost::Fixed(1),
        }
    }

    /// Whether the cost is known before the call is made.
    pub(super) fn is_known_before(self) -> bool {
        self != CallCost::Join
    }

    /// The cost of one call.
    pub(super) fn charge(self, args: &[Value<'_>], result: Option<&Value<'_>>) -> u64 {
        let size = |index: usize| args.get(index).map_or(0, Value::cost_size);
        match self {
            CallCost::Fixed(cost) => cost,
            CallCost::Text { index, times } => text_cost(size(index).saturating_mul(u64::from(times))),
            CallCost::Traversal => {
                let mut parts = 0;
                let cost = args.first().map_or(0, |value| traversal(value, 0, &mut parts));
                if parts > MAX_PARTS { u64::MAX } else { cost }
            }
            CallCost::Join => text_cost(result.map_or(1, Value::cost_size).saturating_mul(2)),
            CallCost::Regex => regex_cost(size(0), size(1)),
            CallCost::Contains => text_cost(size(0)).saturating_mul(text_cost(size(1))),
            CallCost::Membership => size(1),
            CallCost::Shorter => text_cost(size(0).min(size(1))),
            CallCost::Both => text_cost(size(0).saturating_add(size(1))),
            CallCost::SetProduct(times) => size(0).saturating_mul(size(1)).saturating_mul(times).saturating_add(1),
            CallCost::Network { cidr, text } => {
                let network = size(0);
                let masked = if cidr { text_cost(network) + 1 } else { 0 };
                text_cost(network * 2) + masked + if text { text_cost(size(1)) } else { 0 }
            }
            CallCost::Validate => match args.first().and_then(Value::downcast::<Format>) {
                Some(format) => regex_cost(size(1), format.regex_size()),
                None => 1,
            },
            CallCost::Selector => {
                let length = size(1);
                10 + text_cost(length) + length.div_ceil(2).saturating_mul(50)
            }
        }
    }
}

/// The cost of `a == b` or `a != b`.
pub(super) fn equality(a: &Value<'_>, b: &Value<'_>, equals: bool) -> u64 {
    if equals && matches!(a, Value::Opaque(_)) {
        return 1;
    }
    text_cost(a.cost_size().min(b.cost_size()))
}

/// A tenth of the size, rounded up. Upstream multiplies by 0.1 in floating point, which rounds to the same.
fn text_cost(size: u64) -> u64 {
    size.div_ceil(10)
}

/// A tenth of the text's size times a quarter of the pattern's. One is added to the text's size, so that an empty
/// text does not hide the price of a pattern.
fn regex_cost(text: u64, pattern: u64) -> u64 {
    text_cost(text.saturating_add(1)).saturating_mul(pattern.div_ceil(4))
}

fn traversal(value: &Value<'_>, depth: u32, parts: &mut u64) -> u64 {
    *parts += 1;
    match value {
        _ if *parts > MAX_PARTS => 1,
        Value::String(text) => text.len() as u64 / 10,
        Value::Bytes(octets) => octets.len() as u64 / 10,
        Value::List(list) if depth < MAX_DEPTH => {
            list.iter().map(|element| element.map_or(1, |element| traversal(&element, depth + 1, parts))).sum()
        }
        Value::Map(map) if depth < MAX_DEPTH => map
            .iter()
            .map(|(key, value)| {
                traversal(&key, depth + 1, parts) + value.map_or(1, |value| traversal(&value, depth + 1, parts))
            })
            .sum(),
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integer_division_rounds_as_upstreams_floating_point() {
        for size in (0..2_000_000).chain((1..50).map(|shift| (1 << shift) * 10)).chain((1..50).map(|shift| 1 << shift))
        {
            assert_eq!(text_cost(size), (size as f64 * 0.1).ceil() as u64, "{size}");
            assert_eq!(size / 10, (size as f64 * 0.1) as u64, "{size}");
        }
    }

    #[test]
    fn calls_cost_what_upstream_charges() {
        let text = |len: usize| Value::shared("x".repeat(len));
        for (function, overload, args, cost) in [
            ("startsWith", Some("starts_with_string"), vec![text(1000), text(11)], 2),
            ("contains", Some("contains_string"), vec![text(11), text(11)], 4),
            ("matches", Some("matches_string"), vec![text(10), text(5)], 4),
            ("matches", None, vec![text(1000), text(5)], 1),
            ("_+_", Some("add_string"), vec![text(5), text(6)], 2),
            ("_<_", Some("less_string"), vec![text(50), text(6)], 1),
            ("replace", None, vec![text(11), text(1), text(1)], 3),
            ("isSorted", None, vec![Value::list(vec![text(25), text(5)])], 2),
            ("sum", None, vec![Value::list(vec![Value::Int(1), Value::Int(2)])], 2),
            ("sets.equivalent", Some("list_sets_equivalent_list"), vec![Value::list(vec![Value::Null]); 2], 3),
            ("check", None, vec![], 350_000),
            ("@in", Some("in_list"), vec![Value::Null, Value::list(vec![Value::Null; 7])], 7),
            ("size", Some("size_string"), vec![text(500)], 1),
        ] {
            assert_eq!(CallCost::of(function, overload).charge(&args, None), cost, "{function}");
        }
    }
}
