//! The quality-of-service class of a pod.

use crate::check::quantity;
use crate::quantity::Quantity;
use crate::read::Read;
use object::Value;

/// `Guaranteed` where all containers limit and request the same of CPU and memory, `BestEffort` where none says
/// anything, `Burstable` otherwise.
pub(crate) fn qos_class(spec: &Value) -> &'static str {
    const NAMES: [&str; 2] = ["cpu", "memory"];
    let mut guaranteed = true;
    let mut totals: [[Option<Quantity>; 2]; 2] = [[None; 2]; 2];
    for container in spec.list("containers").iter().chain(spec.list("initContainers")) {
        let resources = container.sub("resources");
        let positive = |part: &str, name: &str| quantity(resources.sub(part).sub(name)).filter(|q| q.sign().is_gt());
        for (i, name) in NAMES.iter().enumerate() {
            for (j, part) in ["requests", "limits"].iter().enumerate() {
                if let Some(quantity) = positive(part, name) {
                    let total = &mut totals[j][i];
                    *total = Some(total.map_or(quantity, |t| t.plus(quantity)));
                }
            }
            guaranteed &= positive("limits", name).is_some();
        }
    }
    let [requests, limits] = totals;
    if requests.iter().chain(&limits).all(Option::is_none) {
        return "BestEffort";
    }
    let same = requests.iter().zip(&limits).all(|(r, l)| r.is_none_or(|r| *l == Some(r)));
    let as_many = requests.iter().flatten().count() == limits.iter().flatten().count();
    if guaranteed && same && as_many { "Guaranteed" } else { "Burstable" }
}
