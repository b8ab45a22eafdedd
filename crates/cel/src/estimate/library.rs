//! Costs of the functions of Kubernetes, and of the extensions with costs of their own.

use crate::types::{Kind, Type};

use super::functions::CallEstimate;
use super::{CostEstimate, Coster, Node, REGEX_LENGTH, STRING_TRAVERSAL, SizeEstimate};

/// An authorization check: two fit into the run-time budget of one expression.
const AUTHORIZATION_CHECK: u64 = 350_000;
/// Creation of the list and the message a selector's requirement takes.
const PER_REQUIREMENT: f64 = 50.0;
/// The shortest requirement of a selector is two characters long.
const REQUIREMENTS_PER_CHARACTER: f64 = 0.5;
/// Bytes of an address, of either family.
const ADDRESS: SizeEstimate = SizeEstimate { min: 4, max: 16 };
/// The longest regular expression of a named format.
const FORMAT_REGEX: f64 = 128.0;
/// The longest name of a format.
const FORMAT_NAME: u64 = 64;

impl<'a> Coster<'a> {
    /// The estimate of a function with a cost of its own, without that of its arguments.
    pub(super) fn library_estimate(
        &mut self,
        function: &str,
        overload: &str,
        target: Option<Node<'a>>,
        args: &[Node<'a>],
    ) -> Option<CallEstimate> {
        let nominal = || Some(CallEstimate::new(CostEstimate::fixed(1)));
        if let (Some(factor), [a, b]) = (sets_factor(overload), args) {
            let pairs = a.size_or_unknown().times(b.size_or_unknown());
            return Some(CallEstimate::new(pairs.cost(factor).plus(CostEstimate::fixed(1))));
        }
        match function {
            "check" => Some(CallEstimate::new(CostEstimate::fixed(AUTHORIZATION_CHECK))),
            "serviceAccount" | "path" | "group" | "resource" | "subresource" | "namespace" | "name" | "allowed"
            | "reason" | "error" | "errored" => nominal(),
            "masked"
            | "prefixLength"
            | "family"
            | "isUnspecified"
            | "isLoopback"
            | "isLinkLocalMulticast"
            | "isLinkLocalUnicast"
            | "isGlobalUnicast"
            | "format.named" => nominal(),
            "sign" | "asInteger" | "isInteger" | "asApproximateFloat" | "isGreaterThan" | "isLessThan"
            | "compareTo" | "add" | "sub" | "major" | "minor" | "patch" => nominal(),
            "getScheme" | "getHostname" | "getHost" | "getPort" | "getEscapedPath" | "getQuery" => nominal(),
            "fieldSelector" | "labelSelector" => match args {
                [selector] => Some(CallEstimate::new(selector_cost(selector.size_or_unknown()))),
                _ => None,
            },
            "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => {
                let target = target?;
                let size = target.size_or_unknown();
                let Some((kind, element)) = self.element(&target) else {
                    return Some(CallEstimate::new(size.cost(STRING_TRAVERSAL)));
                };
                let mut each = CostEstimate::fixed(1);
                if let Kind::String | Kind::Bytes = kind {
                    each = each.plus(element.cost(STRING_TRAVERSAL));
                }
                Some(CallEstimate::new(size.repetitions(each)))
            }
            "url" | "jsonpatch.escapeKey" => match args {
                [text] => Some(Self::walked(text)),
                _ => None,
            },
            "lowerAscii" | "upperAscii" | "substring" | "trim" => target.map(|target| Self::walked(&target)),
            "replace" => match (target, args) {
                (Some(target), [old, new, ..]) => {
                    let size = target.size_or_unknown();
                    let result = replaced(size, old.size_or_unknown(), new.size_or_unknown());
                    Some(CallEstimate::sized(size.cost(2.0 * STRING_TRAVERSAL), result))
                }
                _ => None,
            },
            "split" => {
                let size = target?.size_or_unknown();
                let limit = args.get(1).and_then(Self::int_literal);
                // A negative limit, which stands for none, becomes a huge one.
                let max = limit.map_or(size.max, i64::cast_unsigned);
                Some(CallEstimate::sized(size.cost(2.0 * STRING_TRAVERSAL), SizeEstimate::at_most(max)))
            }
            "join" => {
                let target = target?;
                let count = target.size_or_unknown();
                let mut size = match self.element(&target) {
                    Some((_, element)) => count.times(element),
                    None => SizeEstimate::default(),
                };
                if let Some(separator) = args.first() {
                    let separators =
                        SizeEstimate { min: count.min.saturating_sub(1), max: count.max.saturating_sub(1) };
                    size = size.plus(separator.size_or_unknown().times(separators));
                }
                Some(CallEstimate::sized(size.cost(STRING_TRAVERSAL), size))
            }
            "find" | "findAll" => {
                let (target, pattern) = (target?, args.first()?);
                let size = target.size_or_unknown();
                let text = size.plus(SizeEstimate::fixed(1)).cost(STRING_TRAVERSAL);
                let pattern = pattern.size_or_unknown().cost(REGEX_LENGTH);
                Some(CallEstimate::sized(text.times(pattern), SizeEstimate::at_most(size.max)))
            }
            "ip" if target.is_some() => nominal(),
            "ip" | "cidr" | "isIP" | "isCIDR" | "quantity" | "isQuantity" | "semver" | "isSemver" => {
                Some(CallEstimate::new(args.first()?.size_or_unknown().cost(STRING_TRAVERSAL)))
            }
            "ip.isCanonical" => Some(CallEstimate::new(args.first()?.size_or_unknown().cost(2.0 * STRING_TRAVERSAL))),
            "containsIP" | "containsCIDR" => {
                let (_, other) = (target?, args.first()?);
                let mut cost = ADDRESS.plus(ADDRESS).cost(STRING_TRAVERSAL);
                if function == "containsCIDR" {
                    cost = cost.plus(ADDRESS.cost(STRING_TRAVERSAL)).plus(CostEstimate::fixed(1));
                }
                if let "cidr_contains_ip_string" | "cidr_contains_cidr_string" = overload {
                    cost = cost.plus(other.size_or_unknown().cost(STRING_TRAVERSAL));
                }
                Some(CallEstimate::new(cost))
            }
            "validate" => {
                target?;
                let walk = args.first()?.size_or_unknown().cost(STRING_TRAVERSAL);
                Some(CallEstimate::new(walk.scaled(FORMAT_REGEX * REGEX_LENGTH)))
            }
            "_==_" => match args {
                [left, right] => equality(left, right).map(CallEstimate::new),
                _ => None,
            },
            _ => None,
        }
    }

    /// A walk over a string whose result is as long.
    fn walked(text: &Node<'a>) -> CallEstimate {
        let size = text.size_or_unknown();
        CallEstimate::sized(size.cost(STRING_TRAVERSAL), size)
    }
}

fn sets_factor(overload: &str) -> Option<f64> {
    match overload {
        "list_sets_contains_list" | "list_sets_intersects_list" => Some(1.0),
        "list_sets_equivalent_list" => Some(2.0),
        _ => None,
    }
}

fn selector_cost(length: SizeEstimate) -> CostEstimate {
    let requirements = length.cost(REQUIREMENTS_PER_CHARACTER).scaled(PER_REQUIREMENT);
    CostEstimate::fixed(10).plus(length.cost(STRING_TRAVERSAL)).plus(requirements)
}

/// The size of a string after replacements, from its size and those of the needle and the replacement.
fn replaced(size: SizeEstimate, old: SizeEstimate, new: SizeEstimate) -> SizeEstimate {
    // An empty needle puts a replacement around every character and keeps them all.
    let (most, kept_max) = if old.min == 0 {
        (size.max.saturating_add(1), size.max)
    } else if new.max <= old.min {
        (0, size.max)
    } else {
        (quotient(size.max, old.min), 0)
    };
    let (fewest, kept_min) = if old.max == 0 {
        (size.min.saturating_add(1), size.min)
    } else if old.max <= new.min {
        (0, size.min)
    } else {
        (quotient(size.min, old.max), 0)
    };
    let replacements = SizeEstimate { min: fewest, max: most };
    replacements.times(new).plus(SizeEstimate { min: kept_min, max: kept_max })
}

/// `ceil(a / b)` in doubles, as upstream computes it.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "as in Go; `as` saturates at 2^64"
)]
fn quotient(a: u64, b: u64) -> u64 {
    (a as f64 / b as f64).ceil() as u64
}

/// The cost of `==` on the types of the libraries. `!=` has none of its own upstream.
fn equality(left: &Node<'_>, right: &Node<'_>) -> Option<CostEstimate> {
    if left.ty.runtime_name() != right.ty.runtime_name() {
        return None;
    }
    match left.ty {
        Type::Opaque(opaque) => matches!(&*opaque.name, "net.IP" | "net.CIDR").then(|| CostEstimate::fixed(1)),
        Type::Object(name) => match &**name {
            "kubernetes.Quantity"
            | "kubernetes.Semver"
            | "kubernetes.authorization.Authorizer"
            | "kubernetes.authorization.PathCheck"
            | "kubernetes.authorization.GroupCheck"
            | "kubernetes.authorization.ResourceCheck"
            | "kubernetes.authorization.Decision" => Some(CostEstimate::fixed(1)),
            "kubernetes.NamedFormat" => Some(CostEstimate { min: 1, max: FORMAT_NAME }.scaled(STRING_TRAVERSAL)),
            // Upstream reads the right side's size for both.
            "kubernetes.URL" => {
                let max = right.size.map_or(1, |size| size.max);
                Some(CostEstimate { min: 1, max }.scaled(STRING_TRAVERSAL))
            }
            _ => None,
        },
        _ => None,
    }
}
