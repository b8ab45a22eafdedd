//! Which clusters an application concerns.

use std::collections::BTreeSet;

use compact_str::CompactString;
use object::Value;

use super::controller::Controller;
use super::declared::text;
use super::placement;
use super::status::Status;
use super::tracker::Trackers;

/// The field of the status with the clusters that selectors found.
const SELECTED: &str = "selectedClusters";

impl Controller {
    /// Notes which clusters concern an application, and says which of them cannot be asked.
    pub(super) fn place(&self, key: &str, trackers: &Trackers, status: &mut Status) {
        let entries = trackers.iter().filter(|tracker| !tracker.is_archived()).flat_map(|tracker| &tracker.entries);
        let mut clusters: BTreeSet<CompactString> = entries.map(|entry| entry.cluster.clone()).collect();
        let services = status.fields.get("services").and_then(Value::as_array).unwrap_or_default();
        clusters.extend(services.iter().map(|service| self.fleet.name_now(&text(service, "cluster"))));
        let troubles: Vec<String> = clusters.iter().filter_map(|cluster| self.fleet.trouble(cluster)).collect();
        self.fleet.place(key, clusters);
        match troubles.is_empty() {
            true => status.drop_conditions(&["ClustersReachable"]),
            false => status.condition("ClustersReachable", false, "Unreachable", &troubles.join("; ")),
        }
    }

    /// Whether selectors find other clusters than when the workflow ran last; what they find is noted.
    pub(super) fn is_placed_anew(&self, carried: &Value, status: &mut Status) -> bool {
        let Some(now) = placement::selection(carried, self.fleet.as_ref()) else {
            status.fields.remove(SELECTED);
            return false;
        };
        let now: Value = now.into();
        let is_new = status.fields.get(SELECTED).is_some_and(|before| *before != now);
        status.fields.insert(SELECTED, now);
        is_new
    }
}
