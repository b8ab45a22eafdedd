//! Why a rule costs what it costs: the sizes that its estimate assumes, and the bounds that would help.

use super::decl::Decl;
use cel::checked::CheckedAst;
use cel::estimate::{self, SizeEstimate, SizeEstimator, Step};

/// A size that an estimate assumes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assumption {
    /// What has the size, from the rule's own place: `self.names[*].first`, `self.labels{key}`.
    pub path: String,
    /// The keyword that bounds it: `maxItems`, `maxLength` or `maxProperties`.
    pub keyword: &'static str,
    /// The greatest size, in the unit of the estimate: items, members, or bytes (four for each character of a string).
    pub size: u64,
    /// Whether the schema says so. Otherwise it is what the largest request can hold.
    pub bounded: bool,
    /// The greatest value of the keyword with which, all else being the same, the rule would stay within its limit.
    /// None where the rule is within it, or no bound on this alone would do.
    pub would_fit: Option<u64>,
}

/// What an estimate of an expression assumes. `most` is what one evaluation may cost.
pub(super) fn assumptions(checked: &CheckedAst, decl: &Decl, most: u64) -> Vec<Assumption> {
    let (cost, nodes) = estimate::explain(checked, decl);
    let mut out: Vec<Assumption> = Vec::new();
    for node in nodes {
        let Some(at) = decl.walk(&node.path) else { continue };
        let Some((keyword, unit)) = at.keyword() else { continue };
        let path = text(&node.path);
        if out.iter().any(|known| known.path == path) {
            continue;
        }
        let would_fit = if cost.max > most { bound(checked, decl, &node.path, at.max(), most) } else { None };
        let would_fit = would_fit.map(|size| size / unit);
        out.push(Assumption { path, keyword, size: at.max(), bounded: at.is_bounded(), would_fit });
    }
    out
}

/// The greatest size at `path` with which one evaluation costs at most `most`.
fn bound(checked: &CheckedAst, decl: &Decl, path: &[Step], now: u64, most: u64) -> Option<u64> {
    let fits = |size: u64| estimate::estimate(checked, &Otherwise { decl, path, size }).max <= most;
    let (mut low, mut high) = (0, now);
    if !fits(low) {
        return None;
    }
    while low + 1 < high {
        let middle = low + (high - low) / 2;
        if fits(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low > 0).then_some(low)
}

/// The sizes of a type, with another one at one place.
struct Otherwise<'o> {
    decl: &'o Decl,
    path: &'o [Step],
    size: u64,
}

impl SizeEstimator for Otherwise<'_> {
    fn size(&self, path: &[Step]) -> Option<SizeEstimate> {
        if path.get(1..) == self.path.get(1..) {
            return Some(SizeEstimate::at_most(self.size));
        }
        self.decl.size(path)
    }
}

fn text(path: &[Step]) -> String {
    let mut out = String::new();
    for step in path {
        match step {
            Step::Field(name) if out.is_empty() => out.push_str(name),
            Step::Field(name) => {
                out.push('.');
                out.push_str(name);
            }
            Step::Items => out.push_str("[*]"),
            Step::Values => out.push_str("{value}"),
            Step::Keys => out.push_str("{key}"),
            Step::Indices => out.push_str("[index]"),
        }
    }
    out
}
